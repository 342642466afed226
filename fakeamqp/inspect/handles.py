"""Handles of one queue and of one connection, with actions on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fakeamqp.errors import BrokerError, WaitTimeout
from fakeamqp.inspect.errors import (
    BadExpectation,
    Count,
    CountRange,
    NoSuchQueue,
    NoSuchVirtualHost,
    nearest,
)
from fakeamqp.inspect.hints import first_of, span, wait_report
from fakeamqp.inspect.topology import (
    BindingView,
    ConnectionView,
    ConsumerView,
    QueueView,
    binding_views,
    connection_view,
    consumer_view,
    find_queue,
    message_views,
    queue_line,
    queue_view,
)

if TYPE_CHECKING:
    from typing_extensions import Never

    from fakeamqp.inspect.inspection import StateReader
    from fakeamqp.inspect.messages import MessageView
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState, ClientConnection

T = TypeVar("T")


class QueueInspector:
    """A handle of one queue, whether it exists or not. Each attribute is read at the moment of its access.

    Reading it raises NoSuchQueue while the queue does not exist; the text names the nearest match.

    Attributes:
        name: the name of the queue.
        virtual_host: the name of its virtual host.
    """

    __slots__ = ("_reader", "name", "virtual_host")

    def __init__(self, reader: StateReader, name: str, virtual_host: str = "/") -> None:
        self._reader = reader
        self.name: str = name
        self.virtual_host: str = virtual_host

    def _ask(self, question: Callable[[Queue], T]) -> T:
        return self._reader.read(lambda state: question(find_queue(state, self.name, self.virtual_host)))

    def _change(self, act: Callable[[Queue], T]) -> T:
        return self._reader.change(lambda state: act(find_queue(state, self.name, self.virtual_host)))

    def view(self) -> QueueView:
        """Return the state of the queue at one moment.

        Raises:
            NoSuchQueue: it does not exist.
        """
        return self._reader.read(lambda state: queue_view(state, self.name, self.virtual_host))

    @property
    def exists(self) -> bool:
        """Whether the queue exists."""
        try:
            return self._ask(lambda queue: True)
        except (NoSuchQueue, NoSuchVirtualHost):
            return False

    @property
    def ready(self) -> int:
        """The number of messages ready for delivery."""
        return self._ask(lambda queue: len(queue.ready))

    @property
    def unacked(self) -> int:
        """The number of messages delivered to clients and not settled yet."""
        return self._ask(lambda queue: len(queue.unacked))

    @property
    def set_aside(self) -> int:
        """The number of messages that a quorum queue cannot deliver now; see `QueueView`."""
        return self._ask(lambda queue: queue.parked_count)

    @property
    def consumers(self) -> tuple[ConsumerView, ...]:
        """The consumers, in the order they started."""
        return self._ask(lambda queue: tuple(consumer_view(each) for each in queue.subscriptions))

    @property
    def messages(self) -> tuple[MessageView, ...]:
        """The messages: ready ones in delivery order, then unacked ones, then those set aside."""
        return self._ask(message_views)

    @property
    def bindings(self) -> tuple[BindingView, ...]:
        """The bindings to this queue, without its implicit binding to the default exchange."""
        return self._ask(binding_views)

    def delete(self) -> int:
        """Delete the queue and its messages, even if it has consumers; these get basic.cancel.

        Returns:
            The number of ready messages it had.

        Raises:
            NoSuchQueue: it does not exist.
        """

        def act(queue: Queue) -> int:
            counts: list[int] = []
            queue.virtual_host.queues.delete(queue.name, queue.exclusive_owner, confirm=counts.append)
            return counts[0]

        return self._change(act)

    def purge(self) -> int:
        """Drop the ready messages; unacked ones stay.

        Returns:
            The number of messages dropped.

        Raises:
            NoSuchQueue: it does not exist.
            NotImplementedHere: it is a stream; streams cannot be purged.
        """
        return self._change(lambda queue: queue.purge())

    def cancel_consumers(self) -> int:
        """Cancel every consumer from the broker's side, as when the queue moves to another node.

        Clients with the capability get basic.cancel. Unacked messages stay unacked. An auto-delete queue is
        deleted.

        Returns:
            The number of consumers cancelled.

        Raises:
            NoSuchQueue: it does not exist.
        """
        return self._change(lambda queue: queue.cancel_all())

    def wait_for(
        self,
        *misplaced: Never,
        ready: Count | None = None,
        unacked: Count | None = None,
        total: Count | None = None,
        consumers: Count | None = None,
        timeout: float = 5.0,
        **misspelled: Never,
    ) -> QueueView:
        """Wait until the queue exists and has all the numbers given, at the same time.

        Args:
            misplaced: numbers are given by name.
            ready: the number of ready messages: exactly so many, or (at least, at most).
            unacked: the number of messages that clients hold unsettled.
            total: the number of all messages: ready, unacked and set aside. 0 means that all are consumed.
            consumers: the number of consumers.
            timeout: in real seconds.
            misspelled: other names are errors.

        Returns:
            The view of the queue at that moment.

        Raises:
            WaitTimeout: the queue did not get there in time; the text shows its state.
            BadExpectation: a name does not exist, or a number is no number or range.
        """
        _check_use(misplaced, misspelled)
        wait = _Wait(self, ready=ready, unacked=unacked, total=total, consumers=consumers)
        return wait.result(self._reader.wait_for(wait.met, timeout), timeout, "wait_for_async")

    async def wait_for_async(
        self,
        *misplaced: Never,
        ready: Count | None = None,
        unacked: Count | None = None,
        total: Count | None = None,
        consumers: Count | None = None,
        timeout: float = 5.0,
        **misspelled: Never,
    ) -> QueueView:
        """`wait_for` for coroutines: it does not block the event loop."""
        _check_use(misplaced, misspelled)
        wait = _Wait(self, ready=ready, unacked=unacked, total=total, consumers=consumers)
        return wait.result(await self._reader.wait_for_async(wait.met, timeout), timeout)

    def wait_until_consumed(self, timeout: float = 5.0) -> QueueView:
        """Wait until the queue holds no message: none is ready, none unacked, none set aside.

        So every message that the queue had has been acked, rejected or dropped. A message counts once the
        broker has it: wait for the publish first if the app publishes without confirms.

        Args:
            timeout: in real seconds.

        Returns:
            The view of the queue at that moment.

        Raises:
            WaitTimeout: messages are left, or the queue does not exist; the text shows its state.
        """
        wait = _Wait(self, total=0)
        return wait.result(self._reader.wait_for(wait.met, timeout), timeout, "wait_until_consumed_async")

    async def wait_until_consumed_async(self, timeout: float = 5.0) -> QueueView:
        """`wait_until_consumed` for coroutines: it does not block the event loop."""
        wait = _Wait(self, total=0)
        return wait.result(await self._reader.wait_for_async(wait.met, timeout), timeout)

    def __repr__(self) -> str:
        try:
            return self._ask(queue_line)
        except (NoSuchQueue, NoSuchVirtualHost, BrokerError):
            return f"<queue {self.name!r} does not exist>"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ConnectionHandle(ConnectionView):
    """One client connection: its `ConnectionView` when it was read, and actions on the connection."""

    _reader: StateReader = field(repr=False)
    _connection: ClientConnection = field(repr=False)

    def close(self, code: int = 320, text: str = "CONNECTION_FORCED - closed by the test") -> None:
        """Close the connection with a handshake; the client sees this code and text."""
        self._reader.read(lambda _: self._connection.close_by_operator(code, text))

    def block(self, reason: str) -> None:
        """Send connection.blocked to the client, and read no further publishes from it."""
        self._reader.read(lambda _: self._connection.set_blocked(reason))

    def unblock(self) -> None:
        """Unblock the client, and read its publishes again."""
        self._reader.read(lambda _: self._connection.set_blocked(None))


def connection_handles(reader: StateReader) -> tuple[ConnectionHandle, ...]:
    """The open connections, oldest first."""
    return reader.read(
        lambda state: tuple(
            ConnectionHandle(**vars(connection_view(each, state)), _reader=reader, _connection=each)
            for each in state.connections
        )
    )


_NUMBERS: Mapping[str, Callable[[Queue], int]] = {
    "ready": lambda queue: len(queue.ready),
    "unacked": lambda queue: len(queue.unacked),
    "total": lambda queue: len(queue.ready) + len(queue.unacked) + queue.parked_count,
    "consumers": lambda queue: len(queue.subscriptions),
}


def _check_use(misplaced: Sequence[object], misspelled: Mapping[str, object]) -> None:
    """Raise BadExpectation for a wrong call of `wait_for`; the text says how it is written."""
    for value in misplaced:
        raise BadExpectation(f"wait_for({value!r}): which number? Give it by name, such as ready={value!r}")
    for name, value in misspelled.items():
        if name == "count":
            raise BadExpectation(
                f"wait_for(count={value!r}): use ready={value!r} for the messages that wait in the queue, "
                f"which are not those that a worker holds, total={value!r} for all of them, or "
                "wait_until_consumed()"
            )
        near = nearest(name, [*_NUMBERS, "timeout"])
        raise BadExpectation(f"wait_for knows no number {name!r}{near}")


class _Wait:
    """A wait until a queue has some numbers."""

    def __init__(self, queue: QueueInspector, **numbers: Count | None) -> None:
        self._queue = queue
        self._ranges = {name: CountRange.of(each, name) for name, each in numbers.items() if each is not None}
        self._view: QueueView | None = None

    def met(self, state: BrokerState) -> bool:
        name, virtual_host = self._queue.name, self._queue.virtual_host
        try:
            queue = find_queue(state, name, virtual_host)
        except (NoSuchQueue, NoSuchVirtualHost):
            return False
        if not all(wanted.holds(_NUMBERS[number](queue)) for number, wanted in self._ranges.items()):
            return False
        self._view = queue_view(state, name, virtual_host)
        return True

    def result(self, met: bool, timeout: float, awaitable: str = "") -> QueueView:
        """The view of the queue; raises WaitTimeout if it does not have the numbers."""
        if not met or self._view is None:
            raise WaitTimeout(
                self._queue._reader.read(lambda state: self._timeout_text(state, timeout, awaitable))
            )
        return self._view

    def _timeout_text(self, state: BrokerState, timeout: float, awaitable: str) -> str:
        queue = self._queue
        numbers = [f"{each} {'in total' if name == 'total' else name}" for name, each in self._ranges.items()]
        wanted = f"have {', '.join(numbers)}" if numbers else "exist"
        waited = f"waited {span(state, timeout)} for queue {queue.name!r} to {wanted}"
        try:
            view = queue_view(state, queue.name, queue.virtual_host)
        except (NoSuchQueue, NoSuchVirtualHost) as problem:
            return f"{waited}, but {str(problem).splitlines()[0]}{wait_report(state, awaitable)}"
        lines = [f"{waited}, but there is {view!r}"]
        for title, each in (("messages", view.messages), ("consumers", view.consumers)):
            if each:
                lines += [f"  {title}:", *first_of([repr(item) for item in each], "    ")]
        return "\n".join(lines) + wait_report(state, awaitable)
