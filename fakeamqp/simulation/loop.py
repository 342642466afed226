"""An asyncio event loop whose clock jumps: when nothing is ready, it is the time of what comes next.

Theory of operation. An iteration of the loop, as one of asyncio's, first makes ready what has come over the
network, then the timers that are due, and runs what was ready by then in first-come order. The loop has no
selector: what a selector would report is under way in the loop itself, for some iterations or until some
time. If nothing is ready, time jumps to the next timer or arrival; if there is none, nothing can ever happen
again, which is a deadlock. Code takes no time.

With a schedule, the order is drawn, but only among orders that asyncio and a network can produce:

- Bytes of one direction of a connection keep their order. How long they are under way, and how many are
  received at once, is drawn. So what comes over different connections comes in any order, and also between
  the steps of tasks that are running.
- Timers run in the order of their times, and in the order in which they were set at the same time. A timer
  may be late, as in a process that is held up: then what comes over the network meanwhile is handled before
  it, in the same iteration. So a timeout can strike when its operation has just succeeded.
- Callbacks of `call_soon` run in the order of the calls, which asyncio promises. The steps of tasks that
  stand next to each other, with no other callback between them, run in any order: asyncio promises none.
- Nothing else deviates: a task's own steps, the callbacks of a future, the order of iterations.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from asyncio import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NoReturn

from fakeamqp.simulation.errors import Deadlock, NotSimulated, TimeLimit
from fakeamqp.simulation.network import SimulatedNetwork
from fakeamqp.simulation.schedule import LATENESS, Schedule

if TYPE_CHECKING:
    from fakeamqp.model.races import Draw, RaceKind

#: The wall-clock time at which a simulation starts, in seconds of the epoch: 2024-01-01 00:00 UTC.
START = 1_704_067_200.0
#: The default limit of simulated time: a week.
LIMIT = 7 * 86_400.0

# A process may be held up for this many seconds.
_LONGEST_PAUSE = 0.1
# As many iterations without a break take as long as it is to the next timer: a task that polls waits for
# something.
_BUSY_ITERATIONS = 1000
# Cancelled timers are removed when they are at least so many, and half of all.
_CANCELLED_TIMERS = 100
# How long the loop stands still for a function in a thread before other tasks go on, in real seconds.
_THREAD_PATIENCE = 1.0
# How long the clock stands still for a function in a thread that has given a coroutine to the loop, in real
# seconds: the function waits for the coroutine, which may wait for a timer.
_GIVEN_PATIENCE = 0.01

_INFINITY = float("inf")
_DEFAULT_NAME = re.compile(r"Task-\d+")


class SimulatedTask(asyncio.Task[Any]):
    """A task with a name that is the same in every run, and a hash that is none of its address.

    asyncio keeps tasks in sets, for example those of a task group. Their order is that of hashes.
    """

    __slots__ = ("label", "number")

    #: Position among the tasks of the loop, from 1 on.
    number: int
    #: The name of its coroutine, and which task of this coroutine it is.
    label: str

    def __hash__(self) -> int:
        return self.number


class SimulatedFuture(asyncio.Future[Any]):
    """A future with a hash that is none of its address."""

    __slots__ = ("number",)

    number: int

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop with a clock that jumps and a network in memory.

    Args:
        schedule: makes the choices; first-come order without one.
        start: the wall-clock time at the start, in seconds of the epoch.
        limit: the largest simulated time, in seconds; then the loop raises TimeLimit. None for no limit.
    """

    #: Whether servers have sockets of the operating system: brokers ask.
    has_sockets = False
    #: Makes the choices, or None for first-come order.
    schedule: Schedule | None
    #: The network in memory. Host names are added to its `names`.
    network: SimulatedNetwork
    #: The wall-clock time at the start, in seconds of the epoch.
    start: float

    def __init__(
        self, schedule: Schedule | None = None, *, start: float = START, limit: float | None = LIMIT
    ) -> None:
        super().__init__()
        self.schedule = schedule
        self.network = SimulatedNetwork(self)
        self.start = start
        #: Called with the new time whenever time moves.
        self.on_time: Callable[[float], object] | None = None
        self._limit = _INFINITY if limit is None else limit
        self._now = 0.0
        self._iteration = 0
        self._still_since = 0
        self._sequence = 0
        self._tasks = 0
        self._task_names: dict[str, int] = {}
        # (time, sequence, handle), soonest first.
        self._timers: list[tuple[float, int, TimerHandle]] = []
        self._cancelled_timers = 0
        # What is under way: until the next iteration; until an iteration; until a time.
        self._arriving: list[Handle] = []
        self._by_iteration: list[tuple[int, int, Handle]] = []
        self._by_time: list[tuple[float, int, Handle]] = []
        # The timer whose lateness was decided last.
        self._paused_for = -1
        # What other threads have called, and how many functions run in threads.
        self._foreign: deque[Handle] = deque()
        self._foreign_change = threading.Condition()
        self._in_threads = 0
        self._threads: ThreadPoolExecutor | None = None
        # Whether a call of another thread is running, and the unfinished tasks that such calls have made.
        self._in_foreign_call = False
        self._given: set[asyncio.Task[Any]] = set()
        self._threads_before = threading.enumerate()
        self._steps = None if schedule is None else schedule.steps
        #: Whether tasks may go on in another order.
        self._draws_tasks = schedule is not None and schedule.deviates("task")
        self._draws_pauses = schedule is not None and schedule.deviates("pause")

    # -- time

    def time(self) -> float:
        """Simulated seconds since the start."""
        return self._now

    @contextmanager
    def limited_to(self, seconds: float) -> Iterator[None]:
        """Limit simulated time to so many seconds from now on, whatever the limit of the loop."""
        limit, self._limit = self._limit, self._now + seconds
        try:
            yield
        finally:
            self._limit = limit

    def wall_time(self) -> float:
        """Simulated wall-clock time, in seconds of the epoch."""
        return self.start + self._now

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        """Call a function after a delay."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        """Call a function at a time of the loop."""
        if when is None:
            raise TypeError("when cannot be None")
        if self._closed:  # type: ignore[attr-defined]
            raise RuntimeError("Event loop is closed")
        timer = TimerHandle(when, callback, args, self, context)
        # So that `cancel` calls `_timer_handle_cancelled`.
        timer._scheduled = True  # type: ignore[attr-defined]
        self._sequence += 1
        heappush(self._timers, (when, self._sequence, timer))
        return timer

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        self._cancelled_timers += 1
        timers = self._timers
        if self._cancelled_timers >= _CANCELLED_TIMERS and 2 * self._cancelled_timers > len(timers):
            timers[:] = [entry for entry in timers if not entry[2].cancelled()]
            heapify(timers)
            self._cancelled_timers = 0

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Call a function in the next iteration."""
        if self._debug or self._closed:  # type: ignore[attr-defined]
            return super().call_soon(callback, *args, context=context)
        handle = Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    # -- tasks

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        future = SimulatedFuture.__new__(SimulatedFuture)
        self._sequence += 1
        future.number = self._sequence
        future.__init__(loop=self)  # type: ignore[misc]
        return future

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: object = None, **settings: Any
    ) -> asyncio.Task[Any]:
        """A task of this loop. Its default name counts the tasks of this loop."""
        if self._task_factory is not None:  # type: ignore[attr-defined]
            if name is not None:
                settings["name"] = name
            return super().create_task(coro, **settings)
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        task = SimulatedTask.__new__(SimulatedTask)
        self._tasks = task.number = self._tasks + 1
        function = getattr(coro, "__qualname__", None) or type(coro).__qualname__
        nth = self._task_names[function] = self._task_names.get(function, 0) + 1
        task.label = f"{function} {nth}"
        if "context" in settings and settings["context"] is None:
            del settings["context"]  # Python 3.10 has no such argument.
        task.__init__(  # type: ignore[misc]
            coro, loop=self, name=f"Task-{task.number}" if name is None else name, **settings
        )
        if self._in_foreign_call:
            self._given.add(task)
            task.add_done_callback(self._given.discard)
        return task

    # -- chance

    @property
    def seed(self) -> int | None:
        """The seed of the simulation, or None: brokers ask, and draw what they draw from it."""
        return None if self.schedule is None else self.schedule.seed

    def random(self, name: str) -> random.Random:
        """A source of random numbers for one purpose, drawn from the seed of the simulation.

        Without a seed, it is the same in every run.
        """
        seed = 0 if self.schedule is None else self.schedule.seed
        return random.Random(f"{seed}:{name}")

    @property
    def lateness(self) -> Draw | None:
        """Draws the delays of the late outcomes of brokers; None without a schedule."""
        return None if self.schedule is None else self._draw_lateness

    def name_connection(self, way: str, name: str) -> None:
        """Name a connection of a broker; `way` has the addresses of client and broker: "a:1 -> b:2"."""
        if self.schedule is not None:
            self.schedule.name_connection(way, name)

    def _draw_lateness(self, kind: RaceKind, what: str, _nth: int) -> float:
        schedule = self.schedule
        assert schedule is not None
        return LATENESS[schedule.choose(kind, what, len(LATENESS), self._now)]

    # -- what is under way

    def _arrive(self, handle: Handle, iterations: int, seconds: float) -> None:
        """Make a handle ready in a later iteration, or at a later time."""
        if seconds:
            self._sequence += 1
            heappush(self._by_time, (self._now + seconds, self._sequence, handle))
        elif iterations:
            self._sequence += 1
            heappush(self._by_iteration, (self._iteration + 1 + iterations, self._sequence, handle))
        else:
            self._arriving.append(handle)

    # -- iterations

    def _run_once(self) -> None:
        # Called by `run_forever` until the loop is stopped.
        ready: deque[Handle] = self._ready  # type: ignore[attr-defined]
        by_time, timers = self._by_time, self._timers
        self._iteration += 1
        if self._foreign:
            self._take_foreign(ready)
        if self._arriving:
            ready.extend(self._arriving)
            self._arriving.clear()
        if self._by_iteration:
            self._take_by_iteration(ready)
        if not ready:
            if not self._stopping:  # type: ignore[attr-defined]
                self._wait(ready)
        elif not self._in_threads and (
            (self._draws_pauses and timers and timers[0][0] - self._now <= _LONGEST_PAUSE)
            or self._iteration - self._still_since > _BUSY_ITERATIONS
        ):
            self._pass_time()
        now = self._now
        while by_time and by_time[0][0] <= now:
            ready.append(heappop(by_time)[2])
        while timers and timers[0][0] <= now:
            timer = heappop(timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._cancelled_timers -= 1
            else:
                ready.append(timer)
        count = len(ready)
        if (count > 1 and self._draws_tasks) or self._steps is not None:
            self._run_drawn([ready.popleft() for _ in range(count)])
            return
        for _ in range(count):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _run_drawn(self, handles: list[Handle]) -> None:
        """Run what is ready; tasks that stand next to each other in any order."""
        steps, draws = self._steps, self._draws_tasks
        index, count = 0, len(handles)
        task = _task_of(handles[0]) if handles else None
        while index < count:
            handle = handles[index]
            index += 1
            if task is None:
                if not handle._cancelled:
                    handle._run()
                # Only now: what has run may have cancelled the next step.
                task = _task_of(handles[index]) if index < count else None
                continue
            group = [handle]
            while (task := _task_of(handles[index]) if index < count else None) is not None:
                group.append(handles[index])
                index += 1
            while group:
                handle = self._draw_task(group) if len(group) > 1 and draws else group.pop(0)
                if not handle._cancelled:
                    if steps is not None and (stepping := _task_of(handle)) is not None:
                        steps.note(stepping)
                    handle._run()

    def _draw_task(self, group: list[Handle]) -> Handle:
        schedule = self.schedule
        assert schedule is not None
        chosen = schedule.choose("task", _label(group[0]), len(group), self._now)
        if chosen:
            schedule.note(_label(group[chosen]))
            for handle in (group[0], group[chosen]):
                if given := given_name(_task_of(handle)):
                    schedule.names[_label(handle)] = f"{given} ({_label(handle)})"
        return group.pop(chosen)

    def _take_by_iteration(self, ready: deque[Handle]) -> None:
        by_iteration, iteration = self._by_iteration, self._iteration
        while by_iteration and by_iteration[0][0] <= iteration:
            ready.append(heappop(by_iteration)[2])

    # -- when nothing is ready

    def _wait(self, ready: deque[Handle]) -> None:
        """Let iterations or time pass until something is ready."""
        if self._by_iteration:
            self._iteration = self._by_iteration[0][0]
            self._take_by_iteration(ready)
            return
        self._purge()
        next_time = self._next_time()
        if self._in_threads:
            time_may_pass = bool(self._given) and next_time < _INFINITY
            self._wait_for_threads(ready, _GIVEN_PATIENCE if time_may_pass else None)
            if ready or not time_may_pass:
                return
        if next_time == _INFINITY:
            from fakeamqp.simulation.waits import deadlock_text

            raise Deadlock(deadlock_text(self))
        if self._draws_pauses and self._timers and self._timers[0][0] == next_time:
            next_time = self._decide_pause(next_time)
        self._move_to(next_time)

    def _purge(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)[2]._scheduled = False  # type: ignore[attr-defined]
            self._cancelled_timers -= 1

    def _next_time(self) -> float:
        by_time, timers = self._by_time, self._timers
        next_time = timers[0][0] if timers else _INFINITY
        return min(next_time, by_time[0][0]) if by_time else next_time

    def _move_to(self, when: float) -> None:
        if when > self._limit:
            from fakeamqp.simulation.waits import limit_text

            limit, self._limit = self._limit, _INFINITY  # What ends the run may take time again.
            raise TimeLimit(limit_text(self, limit))
        self._still_since = self._iteration
        if when > self._now:
            self._now = when
            if self.on_time is not None:
                self.on_time(when)

    def _pass_time(self) -> None:
        """Let time pass although something is ready: the process is held up, or it polls."""
        if self._timers:
            self._purge()
        next_time = self._next_time()
        if next_time <= self._now or next_time == _INFINITY:
            return
        if self._iteration - self._still_since > _BUSY_ITERATIONS:
            self._move_to(next_time)
        elif self._timers and self._timers[0][0] == next_time and next_time - self._now <= _LONGEST_PAUSE:
            timer = self._timers[0]
            if timer[1] != self._paused_for:
                self._paused_for = timer[1]
                schedule = self.schedule
                assert schedule is not None
                if schedule.choose("pause", f"a step before {_timer_label(timer[2])}", 2, self._now):
                    self._move_to(next_time)

    def _decide_pause(self, due: float) -> float:
        """How late the next timer is: on time, or as late as one of the next arrivals."""
        schedule = self.schedule
        assert schedule is not None
        arrivals = sorted({when for when, _, _ in self._by_time if due < when <= due + _LONGEST_PAUSE})
        if not arrivals:
            return due
        chosen = schedule.choose("pause", _timer_label(self._timers[0][2]), 1 + len(arrivals), self._now)
        return arrivals[chosen - 1] if chosen else due

    # -- other threads

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        """Call a function in the next iteration, also from a thread that `run_in_executor` has started.

        Simulated time passes for a coroutine that such a thread gives to the loop.
        """
        if self._thread_id in (None, threading.get_ident()):  # type: ignore[attr-defined]
            return self.call_soon(callback, *args, context=context)
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        handle = Handle(self._call_for_thread, (callback, *args), self, context)
        with self._foreign_change:
            self._foreign.append(handle)
            self._foreign_change.notify()
        return handle

    def _call_for_thread(self, callback: Callable[..., object], *args: Any) -> None:
        self._in_foreign_call = True
        try:
            callback(*args)
        finally:
            self._in_foreign_call = False

    def _other_threads(self) -> list[threading.Thread]:
        """Threads that were started since the loop was made, except those of the default executor."""
        own = set() if self._threads is None else self._threads._threads
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._threads_before and thread not in own
        ]

    def _take_foreign(self, ready: deque[Handle]) -> None:
        while self._foreign:
            ready.append(self._foreign.popleft())

    def _wait_for_threads(self, ready: deque[Handle], patience: float | None) -> None:
        with self._foreign_change:
            self._foreign_change.wait_for(lambda: self._foreign, patience)
        self._take_foreign(ready)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function in a thread. It takes real time, and no simulated time: the loop stands still.

        The loop goes on when the function has ended or calls `call_soon_threadsafe`. If it does neither
        within a second, the other tasks go on, and only the clock stands still.
        """
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        if executor is None:
            executor = self._default_executor  # type: ignore[attr-defined]
        if executor is None:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(thread_name_prefix="simulation")
            executor = self._threads
        future = self.create_future()
        handle = Handle(self._run_in_thread, (executor, func, args, future), self, None)
        self._arriving.append(handle)
        return future

    def _run_in_thread(
        self, executor: Executor, func: Callable[..., Any], args: Any, future: asyncio.Future[Any]
    ) -> None:
        if future.cancelled():
            return
        self._in_threads += 1
        work = executor.submit(func, *args)

        def finish() -> None:
            self._in_threads -= 1
            if future.cancelled():
                return
            error = work.exception()
            if error is None:
                future.set_result(work.result())
            else:
                future.set_exception(error)

        def ended(_: object) -> None:
            with self._foreign_change:
                self._foreign.append(Handle(finish, (), self, None))
                self._foreign_change.notify()

        work.add_done_callback(ended)
        self._wait_for_threads(self._ready, _THREAD_PATIENCE)  # type: ignore[attr-defined]

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads of the default executor, in real time."""
        for executor in (self._threads, self._default_executor):  # type: ignore[attr-defined]
            if executor is not None:
                executor.shutdown(wait=True)
        self._threads = None

    # -- network

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        """Addresses of localhost, of numbers and of the names of the simulated network."""
        return self.network.resolve(host, port, type)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """The address itself."""
        return str(sockaddr[0]), str(sockaddr[1])

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **settings: Any
    ) -> Any:
        """Listen in the simulated network; arguments as those of `asyncio.loop.create_server`."""
        return self.network.listen(protocol_factory, host, port, **settings)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **settings: Any
    ) -> tuple[Any, Any]:
        """Connect in the simulated network; arguments as those of `asyncio.loop.create_connection`."""
        return await self.network.connect(protocol_factory, host, port, **settings)

    # -- what BaseEventLoop leaves to its subclasses

    def _process_events(self, event_list: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def close(self) -> None:
        """Close the loop, and drop what is under way."""
        if not self.is_running():
            self._timers.clear()
            self._arriving.clear()
            self._by_iteration.clear()
            self._by_time.clear()
            self.network.close()
            if self._threads is not None:
                self._threads.shutdown(wait=False)
        super().close()


def _task_of(handle: Handle) -> asyncio.Task[Any] | None:
    """The task of which the handle runs a step, or None."""
    callback = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    # What tells the kind of most handles is their type.
    if type(task) is not SimulatedTask and not isinstance(task, asyncio.Task):
        return None
    return None if getattr(callback, "__name__", "") == "cancel" else task


def given_name(task: asyncio.Task[Any] | None) -> str:
    """The name that the app gave a task; "" if it gave none."""
    name = "" if task is None else task.get_name()
    return "" if _DEFAULT_NAME.fullmatch(name) else name


def _label(handle: Handle) -> str:
    task = _task_of(handle)
    return getattr(task, "label", None) or "a task"


def _timer_label(timer: TimerHandle) -> str:
    callback = timer._callback  # type: ignore[attr-defined]
    name = getattr(callback, "__qualname__", type(callback).__qualname__)
    return f"the timer {name}"


def _refuse(name: str, what: str, awaitable: bool) -> Callable[..., Any]:
    def refuse(self: SimulatedLoop, *args: Any, **settings: Any) -> NoReturn:
        raise NotSimulated(
            f"a simulation has no {what} (loop.{name}): simulated time does not wait for what happens "
            f"outside of the loop; replace it in the test, or run the test in real time"
        )

    async def refuse_later(self: SimulatedLoop, *args: Any, **settings: Any) -> NoReturn:
        refuse(self, *args, **settings)

    function = refuse_later if awaitable else refuse
    function.__name__ = name
    function.__qualname__ = f"SimulatedLoop.{name}"
    function.__doc__ = f"Refused: a simulation has no {what}."
    return function


for _what, _awaitable, _names in (
    ("sockets", False, "add_reader remove_reader add_writer remove_writer"),
    (
        "sockets",
        True,
        "sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendto sock_connect "
        "sock_accept sock_sendfile sendfile connect_accepted_socket create_datagram_endpoint "
        "create_unix_connection create_unix_server",
    ),
    ("pipes", True, "connect_read_pipe connect_write_pipe"),
    ("subprocesses", True, "subprocess_shell subprocess_exec"),
    ("signals", False, "add_signal_handler remove_signal_handler"),
):
    for _name in _names.split():
        setattr(SimulatedLoop, _name, _refuse(_name, _what, _awaitable))
