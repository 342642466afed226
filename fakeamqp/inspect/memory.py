"""What the messages of a broker take of its memory, and what holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.model.memory import ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState


@dataclass(frozen=True, kw_only=True)
class QueueMemory:
    """What the messages of one queue take. A message that several queues share counts in the first of them.

    Args:
        name: of the queue.
        virtual_host: of the queue.
        messages: how many it holds, ready and unacknowledged.
        octets: the bytes that they count.
    """

    name: str
    virtual_host: str
    messages: int
    octets: int


@dataclass(frozen=True, kw_only=True)
class ConnectionMemory:
    """What waits for one client, or came from it and is not complete.

    Args:
        name: of the connection.
        waiting: bytes that the client has not taken, without large bodies, which count with their message,
            and bytes of its incomplete frames.
        unfinished: bytes of contents of which a part has come.
    """

    name: str
    waiting: int
    unfinished: int


@dataclass(frozen=True, kw_only=True)
class MemoryView:
    """What a broker counts of its memory, in bytes.

    `messages`, `connections`, `unfinished` and `trace` add up to `total`.

    Args:
        total: the sum.
        limit: above it publishers are blocked; None for no limit.
        alarm: whether they are blocked because of it.
        messages: messages that are stored anywhere: bodies, headers three times (as received, and decoded),
            nested contents, 512 bytes for each message and 256 for its place in each further queue. Queues
            that share a message share its bytes.
        connections: bytes that wait for clients, and incomplete frames of clients.
        unfinished: contents of which a part has come.
        trace: the events of the trace, without messages that count in `messages`.
        queues: the queues that hold messages, the largest first.
        clients: the connections that hold anything, the largest first.
        history: the bytes of `messages` that only the histories (`published`, `returned`, ...) keep.
        elsewhere: the bytes of `messages` that are neither in a queue nor in a history: in transactions,
            delayed, on their way to a client, or kept by the trace or by the test.
    """

    total: int
    limit: int | None
    alarm: bool
    messages: int
    connections: int
    unfinished: int
    trace: int
    queues: tuple[QueueMemory, ...]
    clients: tuple[ConnectionMemory, ...]
    history: int
    elsewhere: int


def memory_view(state: BrokerState) -> MemoryView:
    """What a broker counts now, and what holds it."""
    seen: set[int] = set()

    def octets(message: Message) -> int:
        """The bytes of a message, or 0 if they were counted before."""
        charge = message.charge
        if charge is None or id(charge) in seen:
            return 0
        seen.add(id(charge))
        return charge.octets

    memory = state.memory
    queues = [
        _queue(queue, octets)
        for virtual_host in state.virtual_hosts.values()
        for queue in virtual_host.queues.values()
        if len(queue.ready) or queue.unacked
    ]
    history = sum(octets(record.message) for each in memory.histories() for record in each)
    clients = [
        ConnectionMemory(
            name=connection.name,
            waiting=connection.waiting,
            unfinished=sum(channel.unfinished for channel in connection.open_channels),
        )
        for connection in state.connections
    ]
    clients = [each for each in clients if each.waiting or each.unfinished]
    messages = memory.messages.octets
    return MemoryView(
        total=memory.total,
        limit=memory.limit,
        alarm=memory.alarm,
        messages=messages,
        connections=memory.connections.octets,
        unfinished=memory.unfinished.octets,
        trace=0 if memory.trace is None else memory.trace.size(),
        queues=tuple(sorted(queues, key=lambda each: -each.octets)),
        clients=tuple(sorted(clients, key=lambda each: -each.waiting - each.unfinished)),
        history=history,
        elsewhere=messages - history - sum(each.octets for each in queues),
    )


def _queue(queue: Queue, count: Callable[[Message], int]) -> QueueMemory:
    octets = 0
    held: Iterable[object] = (*queue.ready, *(delivery.queued for delivery in queue.unacked))
    for queued in held:
        octets += count(queued.message)  # type: ignore[attr-defined]
        if hasattr(queued, "charge"):
            octets += ENTRY
    return QueueMemory(
        name=queue.name,
        virtual_host=queue.virtual_host.name,
        messages=len(queue.ready) + len(queue.unacked),
        octets=octets,
    )
