"""What a test holds on to: a queue to look at again and wait for, a connection to act on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fakeamqp.inspect.counts import Count, Range
from fakeamqp.inspect.errors import NoSuchQueue, NoSuchVirtualHost, WaitTimeout
from fakeamqp.inspect.remarks import remark
from fakeamqp.inspect.topology import (
    BindingView,
    ConsumerView,
    QueueView,
    binding_views,
    consumer_view,
    counts_line,
    find_queue,
    message_views,
    queue_view,
)

if TYPE_CHECKING:
    from fakeamqp.inspect.connections import ConnectionView
    from fakeamqp.inspect.messages import MessageView
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState, ClientConnection

__all__ = ["ConnectionHandle", "Look", "QueueInspector"]

T = TypeVar("T")

_MOST_SHOWN = 10


class Look(Protocol):
    """How one gets at a broker's state from outside the engine."""

    def look(self, at: Callable[[BrokerState], Any], /) -> Any:
        """Call `at` inside the engine and return what it returns."""

    def wait_for(self, predicate: Callable[[BrokerState], object], /, timeout: float) -> bool:
        """Wait until `predicate` is true inside the engine, at most `timeout` seconds; whether it was."""


class QueueInspector:
    """One queue, whether it exists or not. What is read here is what is so at that moment.

    Attributes raise NoSuchQueue while the queue does not exist; the text names the nearest that does.
    """

    __slots__ = ("_broker", "name", "virtual_host")

    def __init__(self, broker: Look, name: str, virtual_host: str = "/") -> None:
        self._broker = broker
        self.name = name
        self.virtual_host = virtual_host

    def _ask(self, question: Callable[[Queue], T]) -> T:
        answer: T = self._broker.look(lambda state: question(find_queue(state, self.name, self.virtual_host)))
        return answer

    def view(self) -> QueueView:
        """Everything about the queue at one moment.

        Raises:
            NoSuchQueue: it does not exist.
        """
        view: QueueView = self._broker.look(lambda state: queue_view(state, self.name, self.virtual_host))
        return view

    @property
    def exists(self) -> bool:
        """Whether the queue exists."""
        try:
            return self._ask(lambda queue: True)
        except (NoSuchQueue, NoSuchVirtualHost):
            return False

    @property
    def ready(self) -> int:
        """How many messages wait."""
        return self._ask(lambda queue: len(queue.ready))

    @property
    def unacked(self) -> int:
        """How many messages clients hold."""
        return self._ask(lambda queue: len(queue.unacked))

    @property
    def set_aside(self) -> int:
        """How many messages a quorum queue keeps that nobody can be sent now; see `QueueView`."""
        return self._ask(lambda queue: queue.parked_count)

    @property
    def consumers(self) -> tuple[ConsumerView, ...]:
        """The consumers, in the order they came."""
        return self._ask(lambda queue: tuple(consumer_view(each) for each in queue.subscriptions))

    @property
    def messages(self) -> tuple[MessageView, ...]:
        """The messages: those that wait in the order of delivery, those clients hold, those set aside."""
        return self._ask(message_views)

    @property
    def bindings(self) -> tuple[BindingView, ...]:
        """The bindings that end here; the one every queue has to the default exchange is left out."""
        return self._ask(binding_views)

    def delete(self) -> int:
        """Delete the queue with what it holds, also under consumers: their clients are told (basic.cancel).

        Returns:
            How many messages waited.

        Raises:
            NoSuchQueue: it does not exist.
        """

        def act(queue: Queue) -> int:
            counts: list[int] = []
            queue.virtual_host.queues.delete(queue.name, queue.exclusive_owner, confirm=counts.append)
            return counts[0]

        return self._ask(act)

    def purge(self) -> int:
        """Drop all that waits; clients keep what they hold. Returns how many messages were dropped.

        Raises:
            NoSuchQueue: it does not exist.
            NotImplementedHere: it is a stream, which cannot be purged.
        """
        return self._ask(lambda queue: queue.purge())

    def cancel_consumers(self) -> int:
        """End every consumer from the broker's side, as when the queue moves to another node.

        Clients that understand it are told (basic.cancel); what they hold stays with them. A queue that is
        auto-delete goes.

        Returns:
            How many consumers there were.

        Raises:
            NoSuchQueue: it does not exist.
        """
        return self._ask(lambda queue: queue.cancel_all())

    def wait_for(
        self,
        count: Count | None = None,
        *,
        unacked: Count | None = None,
        consumers: Count | None = None,
        timeout: float = 5.0,
    ) -> QueueView:
        """Wait until the queue exists and all that is given holds at once.

        Args:
            count: how many messages are ready: exactly so many, or (at least, at most).
            unacked: how many messages clients hold.
            consumers: how many consumers there are.
            timeout: in seconds.

        Returns:
            A picture of the queue, taken right afterwards.

        Raises:
            WaitTimeout: it did not come about; the text says what there was instead.
        """
        wanted = _Wanted(count, unacked, consumers)
        taken: list[QueueView] = []
        if not self._broker.wait_for(lambda state: self._meets(state, wanted, taken), timeout=timeout):
            raise WaitTimeout(self._broker.look(lambda state: self._instead(state, wanted, timeout)))
        return taken[-1]

    async def wait_for_async(
        self,
        count: Count | None = None,
        *,
        unacked: Count | None = None,
        consumers: Count | None = None,
        timeout: float = 5.0,
    ) -> QueueView:
        """`wait_for`, for a coroutine: the event loop goes on meanwhile."""
        import asyncio
        from functools import partial

        return await asyncio.to_thread(
            partial(self.wait_for, count, unacked=unacked, consumers=consumers, timeout=timeout)
        )

    def _meets(self, state: BrokerState, wanted: _Wanted, taken: list[QueueView]) -> bool:
        try:
            queue = find_queue(state, self.name, self.virtual_host)
        except (NoSuchQueue, NoSuchVirtualHost):
            return False
        if not wanted.met_by(queue):
            return False
        taken.append(queue_view(state, self.name, self.virtual_host))
        return True

    def _instead(self, state: BrokerState, wanted: _Wanted, timeout: float) -> str:
        """What the error says."""
        waited = f"waited {timeout:g} s for queue {self.name!r}{wanted}"
        try:
            view = queue_view(state, self.name, self.virtual_host)
        except (NoSuchQueue, NoSuchVirtualHost) as problem:
            return f"{waited}, but {problem}{remark(state)}"
        lines = [f"{waited}, but there is {view!r}"]
        for title, each in (("messages", view.messages), ("consumers", view.consumers)):
            if each:
                lines.append(f"  {title}:")
                lines += [f"    {item!r}" for item in each[:_MOST_SHOWN]]
            if len(each) > _MOST_SHOWN:
                lines.append(f"    ... and {len(each) - _MOST_SHOWN} more")
        return "\n".join(lines) + remark(state)

    def __repr__(self) -> str:
        try:
            counts = self._ask(lambda queue: (len(queue.ready), len(queue.unacked), len(queue.subscriptions)))
        except (NoSuchQueue, NoSuchVirtualHost):
            return f"<queue {self.name!r} does not exist>"
        return counts_line(self.name, self.virtual_host, *counts)


class ConnectionHandle:
    """One client connection: a picture of the moment it was looked at, and what can be done to it.

    Every attribute of `ConnectionView` is an attribute here.
    """

    __slots__ = ("_broker", "_connection", "view")

    def __init__(self, broker: Look, connection: ClientConnection, view: ConnectionView) -> None:
        self._broker = broker
        self._connection = connection
        self.view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def __repr__(self) -> str:
        return repr(self.view)

    def close(self, code: int = 320, text: str = "CONNECTION_FORCED - closed by the test") -> None:
        """Close it with a handshake; the client sees this code and text."""
        self._broker.look(lambda _: self._connection.close_by_operator(code, text))

    def block(self, reason: str) -> None:
        """Tell the client that publishing is held back (connection.blocked) and read no further publishes."""
        self._broker.look(lambda _: self._connection.set_blocked(reason))

    def unblock(self) -> None:
        """End what `block` began."""
        self._broker.look(lambda _: self._connection.set_blocked(None))


class _Wanted:
    """What `wait_for` waits for."""

    def __init__(self, count: Count | None, unacked: Count | None, consumers: Count | None) -> None:
        given = {"ready": count, "unacked": unacked, "consumers": consumers}
        self._ranges = {name: Range.of(value, name) for name, value in given.items() if value is not None}

    def met_by(self, queue: Queue) -> bool:
        """Whether the queue is as wanted."""
        counts = {
            "ready": len(queue.ready),
            "unacked": len(queue.unacked),
            "consumers": len(queue.subscriptions),
        }
        return all(wanted.holds(counts[name]) for name, wanted in self._ranges.items())

    def __str__(self) -> str:
        if not self._ranges:
            return " to exist"
        return " to have " + ", ".join(f"{wanted} {name}" for name, wanted in self._ranges.items())
