"""Handles of one queue, exchange, consumer or connection, with actions on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from fakeamqp.blocking import blocking
from fakeamqp.errors import BrokerError, WaitTimeout
from fakeamqp.inspect.collection import Collection
from fakeamqp.inspect.errors import (
    BadExpectation,
    Count,
    CountRange,
    NoSuchConsumer,
    NoSuchExchange,
    NoSuchQueue,
    NoSuchVirtualHost,
    nearest,
)
from fakeamqp.inspect.hints import first_of, span, wait_report
from fakeamqp.inspect.topology import (
    BindingView,
    ConnectionView,
    ConsumerView,
    CreditView,
    ExchangeView,
    QueueView,
    binding_views,
    connection_view,
    consumer_view,
    consumer_views,
    exchange_view,
    find_consumer,
    find_exchange,
    find_queue,
    message_views,
    queue_line,
    queue_view,
)
from fakeamqp.lazy import raise_if_renamed

if TYPE_CHECKING:
    from typing_extensions import Never, Unpack

    from fakeamqp.inspect.explanations import Explanation
    from fakeamqp.inspect.frozen import FrozenDict
    from fakeamqp.inspect.inspection import StateReader
    from fakeamqp.inspect.messages import MessageView
    from fakeamqp.model.messages.message import MessageProperties
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState, ClientConnection

T = TypeVar("T")


class QueueHandle:
    """A handle of one queue, whether it exists or not. Each attribute is read at the moment of its access.

    Reading it raises NoSuchQueue while the queue does not exist; the text names the nearest match.

    Attributes:
        name: the name of the queue.
        virtual_host: the name of its virtual host.
    """

    __slots__ = ("_reader", "name", "virtual_host")

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

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

    @blocking
    def wait_for(
        self,
        /,
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
        return wait.result(self._reader.wait_for(wait.met, timeout), timeout, "wait_for.aio")

    @wait_for.coroutine
    async def _wait_for_coroutine(
        self,
        /,
        *misplaced: Never,
        ready: Count | None = None,
        unacked: Count | None = None,
        total: Count | None = None,
        consumers: Count | None = None,
        timeout: float = 5.0,
        **misspelled: Never,
    ) -> QueueView:
        _check_use(misplaced, misspelled)
        wait = _Wait(self, ready=ready, unacked=unacked, total=total, consumers=consumers)
        return wait.result(await self._reader.wait_for_async(wait.met, timeout), timeout)

    @blocking
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
        return wait.result(self._reader.wait_for(wait.met, timeout), timeout, "wait_until_consumed.aio")

    @wait_until_consumed.coroutine
    async def _wait_until_consumed_coroutine(self, timeout: float = 5.0) -> QueueView:
        wait = _Wait(self, total=0)
        return wait.result(await self._reader.wait_for_async(wait.met, timeout), timeout)

    def __repr__(self) -> str:
        try:
            return self._ask(queue_line)
        except (NoSuchQueue, NoSuchVirtualHost, BrokerError):
            return f"<queue {self.name!r} does not exist>"


class ExchangeHandle:
    """A handle of one exchange, whether it exists or not. Each attribute is read at the moment of its access.

    Reading it raises NoSuchExchange while the exchange does not exist; the text names the nearest match.

    Attributes:
        name: the name of the exchange; "" is the default exchange.
        virtual_host: the name of its virtual host.
    """

    __slots__ = ("_reader", "name", "virtual_host")

    def __init__(self, reader: StateReader, name: str, virtual_host: str = "/") -> None:
        self._reader = reader
        self.name: str = name
        self.virtual_host: str = virtual_host

    def view(self) -> ExchangeView:
        """Everything about the exchange at one moment.

        Raises:
            NoSuchExchange: it does not exist.
        """
        return self._reader.read(lambda state: exchange_view(state, self.name, self.virtual_host))

    @property
    def exists(self) -> bool:
        """Whether the exchange exists."""
        try:
            self._reader.read(lambda state: find_exchange(state, self.name, self.virtual_host))
        except (NoSuchExchange, NoSuchVirtualHost):
            return False
        return True

    @property
    def type(self) -> str:
        """The exchange type."""
        return self.view().type

    @property
    def durable(self) -> bool:
        """Whether it survives a restart."""
        return self.view().durable

    @property
    def auto_delete(self) -> bool:
        """Whether it is deleted with its last binding."""
        return self.view().auto_delete

    @property
    def internal(self) -> bool:
        """Whether clients cannot publish to it."""
        return self.view().internal

    @property
    def arguments(self) -> FrozenDict:
        """The arguments of exchange.declare."""
        return self.view().arguments

    @property
    def policy(self) -> str | None:
        """The name of the policy that applies, or None."""
        return self.view().policy

    @property
    def operator_policy(self) -> str | None:
        """The name of the operator policy that applies, or None."""
        return self.view().operator_policy

    @property
    def alternate_exchange(self) -> str | None:
        """The alternate exchange from its arguments or a policy, or None."""
        return self.view().alternate_exchange

    @property
    def bindings(self) -> tuple[BindingView, ...]:
        """The bindings from this exchange, in the order they were created."""
        return self.view().bindings

    @property
    def delayed(self) -> int:
        """The number of messages that it delays."""
        return self.view().delayed

    @property
    def messages(self) -> tuple[MessageView, ...]:
        """The delayed messages, soonest first."""
        return self.view().messages

    def explain(
        self,
        routing_key: str,
        headers: Mapping[str, Any] | None = None,
        *,
        body: bytes | str = b"",
        mandatory: bool = False,
        **properties: Unpack[MessageProperties],
    ) -> Explanation:
        """Explain where a message to this exchange would be routed now, and why: print the result to read it.

        Nothing is published and nothing changes.

        Args:
            routing_key: of the message.
            headers: of the message.
            body: of the message; only its size matters.
            mandatory: whether the publisher asks for unroutable messages to be returned.
            properties: further properties of the message, such as `expiration`.

        Raises:
            NoSuchVirtualHost: no virtual host has this name.
            UnknownProperty: a property is misspelled.
        """
        from fakeamqp.inspect.explanations import explain

        return self._reader.read(
            lambda state: explain(
                state,
                self.name,
                routing_key,
                headers,
                body=body,
                virtual_host=self.virtual_host,
                mandatory=mandatory,
                **properties,
            )
        )

    def __repr__(self) -> str:
        try:
            return repr(self.view())
        except (NoSuchExchange, NoSuchVirtualHost, BrokerError):
            return f"<exchange {self.name!r} does not exist>"


class ConsumerHandle:
    """A handle of the consumer with a tag, whether it exists or not. Each attribute is read when accessed.

    Reading it raises NoSuchConsumer while there is no such consumer, and if several channels have one.

    Attributes:
        tag: its consumer tag; in AMQP 0-10 the destination of the subscription.
        virtual_host: the name of its virtual host.
    """

    __slots__ = ("_reader", "tag", "virtual_host")

    def __init__(self, reader: StateReader, tag: str, virtual_host: str = "/") -> None:
        self._reader = reader
        self.tag: str = tag
        self.virtual_host: str = virtual_host

    def view(self) -> ConsumerView:
        """Everything about the consumer at one moment.

        Raises:
            NoSuchConsumer: it does not exist, or several channels have one.
        """
        return self._reader.read(lambda state: find_consumer(state, self.tag, self.virtual_host))

    @property
    def exists(self) -> bool:
        """Whether a consumer has this tag."""
        return bool(
            self._reader.read(
                lambda state: (
                    self.virtual_host in state.virtual_hosts
                    and self.tag in consumer_views(state).of(self.virtual_host)
                )
            )
        )

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self.view().queue

    @property
    def connection(self) -> str | None:
        """The name of its connection."""
        return self.view().connection

    @property
    def channel(self) -> int | None:
        """The number of its channel."""
        return self.view().channel

    @property
    def no_ack(self) -> bool:
        """Whether messages are settled when they are sent."""
        return self.view().no_ack

    @property
    def exclusive(self) -> bool:
        """Whether the queue may have no other consumer."""
        return self.view().exclusive

    @property
    def priority(self) -> int:
        """`x-priority`; consumers with a higher priority are served first."""
        return self.view().priority

    @property
    def prefetch(self) -> int:
        """The maximum number of unacked messages; 0 means no limit."""
        return self.view().prefetch

    @property
    def unacked(self) -> int:
        """The number of unacked messages."""
        return self.view().unacked

    @property
    def arguments(self) -> FrozenDict:
        """The arguments of basic.consume."""
        return self.view().arguments

    @property
    def next_offset(self) -> int | None:
        """The next offset to read in a stream; None for other queues."""
        return self.view().next_offset

    @property
    def credit(self) -> CreditView | None:
        """In AMQP 0-10 the credit left; None for 0-9-x."""
        return self.view().credit

    @property
    def browses(self) -> bool:
        """Whether it reads messages without acquiring them."""
        return self.view().browses

    def __repr__(self) -> str:
        try:
            return repr(self.view())
        except (NoSuchConsumer, NoSuchVirtualHost, BrokerError):
            return f"<consumer {self.tag!r} does not exist>"


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


def connection_handles(reader: StateReader) -> Collection[ConnectionHandle]:
    """The open connections, oldest first."""

    def handles(state: BrokerState) -> Collection[ConnectionHandle]:
        pairs = (
            (
                each.virtual_host_name,
                ConnectionHandle(**vars(connection_view(each, state)), _reader=reader, _connection=each),
            )
            for each in state.connections
        )
        return Collection._made("connections", pairs, state.virtual_hosts)

    return reader.read(handles)


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

    def __init__(self, queue: QueueHandle, **numbers: Count | None) -> None:
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
