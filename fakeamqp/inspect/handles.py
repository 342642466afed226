"""Handles of one queue and of one connection, with actions on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fakeamqp.errors import BrokerError
from fakeamqp.inspect.connections import ConnectionView, connection_view
from fakeamqp.inspect.counts import Count, CountRange
from fakeamqp.inspect.errors import BadExpectation, NoSuchQueue, NoSuchVirtualHost, WaitTimeout, nearest
from fakeamqp.inspect.hints import first_of, span, wait_report
from fakeamqp.inspect.lookup import find_queue
from fakeamqp.inspect.topology import (
    BindingView,
    ConsumerView,
    QueueView,
    binding_views,
    consumer_view,
    message_views,
    queue_line,
    queue_view,
)

if TYPE_CHECKING:
    from typing_extensions import Never

    from fakeamqp.inspect.messages import MessageView
    from fakeamqp.inspect.reader import StateReader
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState, ClientConnection

__all__ = ["ConnectionHandle", "QueueInspector", "connection_handles"]

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
        """Everything about the queue at one moment.

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
        if misplaced or misspelled:
            raise BadExpectation(_misuse(misplaced, misspelled))
        return self._wait_for(
            {"ready": ready, "unacked": unacked, "total": total, "consumers": consumers}, timeout
        )

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
        if misplaced or misspelled:
            raise BadExpectation(_misuse(misplaced, misspelled))
        wanted = {"ready": ready, "unacked": unacked, "total": total, "consumers": consumers}
        return await self._wait_for_async(wanted, timeout)

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
        return self._wait_for({"total": 0}, timeout, "wait_until_consumed_async")

    async def wait_until_consumed_async(self, timeout: float = 5.0) -> QueueView:
        """`wait_until_consumed` for coroutines: it does not block the event loop."""
        return await self._wait_for_async({"total": 0}, timeout)

    def _wait_for(
        self, numbers: Mapping[str, Count | None], timeout: float, awaitable: str = "wait_for_async"
    ) -> QueueView:
        wanted = _Wanted(numbers)
        taken: list[QueueView] = []
        if not self._reader.wait_for(lambda state: self._meets(state, wanted, taken), timeout=timeout):
            raise WaitTimeout(
                self._reader.read(lambda state: self._timeout_text(state, wanted, timeout, awaitable))
            )
        return taken[-1]

    async def _wait_for_async(self, numbers: Mapping[str, Count | None], timeout: float) -> QueueView:
        wanted = _Wanted(numbers)
        taken: list[QueueView] = []
        if not await self._reader.wait_for_async(
            lambda state: self._meets(state, wanted, taken), timeout=timeout
        ):
            raise WaitTimeout(self._reader.read(lambda state: self._timeout_text(state, wanted, timeout, "")))
        return taken[-1]

    def _meets(self, state: BrokerState, wanted: _Wanted, taken: list[QueueView]) -> bool:
        try:
            queue = find_queue(state, self.name, self.virtual_host)
        except (NoSuchQueue, NoSuchVirtualHost):
            return False
        if not wanted.met_by(queue):
            return False
        taken.append(queue_view(state, self.name, self.virtual_host))
        return True

    def _timeout_text(self, state: BrokerState, wanted: _Wanted, timeout: float, awaitable: str) -> str:
        waited = f"waited {span(state, timeout)} for queue {self.name!r}{wanted}"
        try:
            view = queue_view(state, self.name, self.virtual_host)
        except (NoSuchQueue, NoSuchVirtualHost) as problem:
            return f"{waited}, but {str(problem).splitlines()[0]}{wait_report(state, awaitable)}"
        lines = [f"{waited}, but there is {view!r}"]
        for title, each in (("messages", view.messages), ("consumers", view.consumers)):
            if each:
                lines += [f"  {title}:", *first_of([repr(item) for item in each], "    ")]
        return "\n".join(lines) + wait_report(state, awaitable)

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
        """End what `block` began."""
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


def _misuse(misplaced: Sequence[object], misspelled: Mapping[str, object]) -> str:
    """What is wrong with a call of `wait_for`, and how it is written."""
    if misplaced:
        return f"wait_for({misplaced[0]!r}): which number? Give it by name, such as ready={misplaced[0]!r}"
    name, value = next(iter(misspelled.items()))
    if name == "count":
        return (
            f"wait_for(count={value!r}): use ready={value!r} for the messages that wait in the queue, which "
            f"are not those that a worker holds, total={value!r} for all of them, or wait_until_consumed()"
        )
    return f"wait_for knows no number {name!r}{nearest(name, [*_NUMBERS, 'timeout'])}"


class _Wanted:
    """The numbers that `wait_for` waits for."""

    def __init__(self, given: Mapping[str, Count | None]) -> None:
        self._ranges = {
            name: CountRange.of(value, name) for name, value in given.items() if value is not None
        }

    def met_by(self, queue: Queue) -> bool:
        """Whether the queue has these numbers."""
        return all(wanted.holds(_NUMBERS[name](queue)) for name, wanted in self._ranges.items())

    def __str__(self) -> str:
        if not self._ranges:
            return " to exist"
        numbers = (
            f"{wanted} {'in total' if name == 'total' else name}" for name, wanted in self._ranges.items()
        )
        return " to have " + ", ".join(numbers)
