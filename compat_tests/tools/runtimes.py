"""Pytest plugin: `--runtime asyncio` runs the tests of the broker on its event-loop runtime.

Most of them use blocking clients and call the broker from their own thread, which such a broker refuses. So a
`Portal` runs it in a loop of a thread of its own, and holds this loop while a test's thread is inside the
engine. Clients, faults, time and inspection are as in a test that is a coroutine.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

import pytest
from typing_extensions import Self

from fakeamqp import Broker
from fakeamqp.blocking import blocking
from fakeamqp.runtime.event_loop.engine import LoopEngine

T = TypeVar("T")

SECONDS = 60.0
"""How long a loop may take to answer."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--runtime", choices=("thread", "asyncio"), default="thread", help="what brokers of the tests run in"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make brokers run in event loops, if asked to."""
    config.addinivalue_line("markers", "threads_only: a test of what only the thread runtime has")
    if config.getoption("--runtime") == "asyncio":
        run_in_loops()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of what only threads have."""
    if config.getoption("--runtime") == "asyncio":
        reason = "only the thread runtime has this"
        for item in items:
            if item.get_closest_marker("threads_only") is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def run_in_loops() -> None:
    """From now on each broker runs in an event loop."""
    made = Broker.__init__

    def init(self: Broker, *args: Any, **options: Any) -> None:
        if (
            not (options.get("management") or options.get("control"))
            and options.get("management_port") is None
        ):
            options.setdefault("runtime", "asyncio")
        made(self, *args, **options)
        engine = self._engine
        if isinstance(engine, LoopEngine):
            engine.__class__ = Portal
            engine.prepare()  # type: ignore[attr-defined]

    def start(self: Broker) -> Broker:
        engine = self._engine
        if not isinstance(engine, Portal):
            return started(self)
        if engine.running:
            return self
        port = self._prepare_start()
        try:
            engine.start()
            self._listeners = engine.call(engine.listen_on(self._host, port, tls=self._tls))
        except BaseException:
            engine.stop()
            raise
        self._started()
        return self

    async def start_in_loop(self: Broker) -> Broker:
        return self.start()

    started = Broker.start
    Broker.__init__ = init  # type: ignore[method-assign]
    both = blocking(start)
    both.coroutine(start_in_loop)
    Broker.start = both  # type: ignore[method-assign, assignment]


class Portal(LoopEngine):
    """An engine in the event loop of a thread of its own, which other threads may enter."""

    def prepare(self) -> None:
        """Complete the object: it was made as a `LoopEngine`."""
        self._turnstile = threading.RLock()
        self._levels = 0
        self._runner: threading.Thread | None = None
        self._left = threading.Event()

    # -- the loop

    def start(self) -> None:
        """Start the loop, and the engine in it."""
        if self._loop is not None:
            return
        loop = asyncio.new_event_loop()
        self._runner = threading.Thread(
            target=self._run_loop, args=(loop,), name="loop of the broker", daemon=True
        )
        self._runner.start()
        self._event_loop = loop
        self.call(self._start())

    async def _start(self) -> None:
        super().start()

    @staticmethod
    def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and wait for it."""
        assert self._event_loop is not None
        with self._let_go():
            return asyncio.run_coroutine_threadsafe(coroutine, self._event_loop).result(SECONDS)

    def stop(self) -> None:
        """Stop the engine, and end the loop."""
        if threading.current_thread() is self._runner:
            super().stop()
            return
        with self._turnstile, self._let_go():
            if self._runner is None:
                return
            assert self._event_loop is not None
            if self._loop is not None:
                self.call(self._stop())
            self._event_loop.call_soon_threadsafe(self._event_loop.stop)
            self._runner.join(SECONDS)
            self._runner = None

    async def _stop(self) -> None:
        super().stop()
        await super().stopped()

    async def stopped(self) -> None:
        """Nothing is left to be done."""

    def connect_socketpair(self) -> socket.socket:
        """A blocking socket, for a thread that may block."""
        if not self._foreign():
            return super().connect_socketpair()
        found = self.call(self._connect())
        found.setblocking(True)
        return found

    async def _connect(self) -> socket.socket:
        return super().connect_socketpair()

    # -- other threads

    def __enter__(self) -> Self:
        if self._foreign():
            self._turnstile.acquire()
            self._levels += 1
            if self._levels == 1:
                self._hold()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._foreign_holder():
            self._levels -= 1
            if not self._levels:
                self._free()
            self._turnstile.release()

    def _foreign(self) -> bool:
        return self._runner is not None and threading.current_thread() is not self._runner

    def _foreign_holder(self) -> bool:
        return bool(self._levels) and threading.current_thread() is not self._runner

    def _hold(self) -> None:
        assert self._event_loop is not None
        came = threading.Event()
        self._left = left = threading.Event()

        def wait() -> None:
            self._thread = 0
            came.set()
            left.wait()

        self._event_loop.call_soon_threadsafe(wait)
        assert came.wait(SECONDS), "the loop does not answer"
        self._thread = threading.get_ident()

    def _free(self) -> None:
        self._thread = self._runner.ident or 0 if self._runner is not None else threading.get_ident()
        self._left.set()

    def _let_go(self) -> _LetGo:
        return _LetGo(self)

    def wait_until(self, predicate: Callable[[], object], timeout: float, every: float | None = None) -> bool:
        """Wait in the thread of the test."""
        if not self._foreign() or self._loop is None:
            return super().wait_until(predicate, timeout, every)
        return self.call(super().wait_until_async(predicate, timeout, every))

    async def wait_until_async(
        self, predicate: Callable[[], object], timeout: float, every: float | None = None
    ) -> bool:
        """Wait in another loop than the broker's."""
        return await asyncio.to_thread(self.wait_until, predicate, timeout, every)

    def give_peers_time(self, predicate: Callable[[], object], timeout: float) -> None:
        """Wait in the thread of the test."""
        if self._foreign() and self._loop is not None:
            self.wait_until(predicate, timeout)

    async def call_async(self, function: Callable[[], T]) -> T:
        """Call it in another thread than that of the caller's loop."""
        return await asyncio.to_thread(function)

    def settle(self) -> None:
        """Let bytes arrive, then follow the clock, as a thread of the test does it."""
        if self.stepped is None or self._loop is None or not self._foreign() or self._foreign_holder():
            super().settle()
            return
        self.call(self._let_bytes_arrive())
        self._settling = True
        try:
            with self:
                super().take_input()
        finally:
            self._settling = False

    def take_input(self) -> None:
        """Let bytes arrive first: clients are in other threads."""
        if self._foreign() and self._loop is not None:
            self.call(self._let_bytes_arrive())
        super().take_input()


class _LetGo:
    """Lets the loop run while the thread that holds it waits."""

    def __init__(self, portal: Portal) -> None:
        self._portal = portal
        self._levels = self._depth = 0

    def __enter__(self) -> None:
        portal = self._portal
        if portal._foreign_holder():
            self._levels, self._depth = portal._levels, portal._depth
            portal._levels = portal._depth = 0
            portal._free()

    def __exit__(self, *_: object) -> None:
        portal = self._portal
        if self._levels:
            if portal._runner is not None:
                portal._hold()
            portal._levels, portal._depth = self._levels, self._depth


def is_locked(lock: object) -> bool:
    """Whether some thread holds a reentrant lock. Its own method `locked` comes with Python 3.14."""
    return repr(lock).startswith("<locked")
