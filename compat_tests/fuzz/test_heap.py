"""What has ended is not kept: the heap of this process is looked through in each of many conversations.

Two hundred conversations of each protocol go over real sockets to a broker that records trace and history.
Up to three clients talk at once. Each sends a recording, whole or mutated and cut, and goes with a FIN or a
RST. Before each goes, no closed connection or channel and no cancelled consumer may be in memory; after them,
nothing at all of their connections, and no message once the queues are gone.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import Any

from compat_tests.fuzz import mutations
from compat_tests.fuzz.checks import queues
from compat_tests.fuzz.profile import scaled
from compat_tests.fuzz.subjects import Subject, on_each
from compat_tests.fuzz.test_sockets import dial, say, vanish
from compat_tests.tools.heap import alive, ignore_older_objects
from fakeamqp import Broker
from fakeamqp.model.deliveries.delivery import Delivery
from fakeamqp.model.deliveries.subscription import Subscription
from fakeamqp.model.messages.message import Message
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection
from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection
from fakeamqp.protocols.amqp_0_10.server_session import ServerSession
from fakeamqp.protocols.amqp_0_10.server_subscription import ServerSubscription
from fakeamqp.protocols.amqp_1_0.receiving import ReceivingLink
from fakeamqp.protocols.amqp_1_0.sending import SendingLink
from fakeamqp.protocols.amqp_1_0.server_connection import Amqp10Connection
from fakeamqp.protocols.amqp_1_0.session import Amqp10Session
from fakeamqp.protocols.negotiation import Negotiation
from fakeamqp.runtime.connection_driver import ConnectionDriver
from fakeamqp.runtime.transport import TcpTransport

CONVERSATIONS = 200
KINDS: tuple[type[Any], ...] = (
    TcpTransport,
    ConnectionDriver,
    Negotiation,
    Amqp091Connection,
    BaseChannel,
    Amqp010Connection,
    ServerSession,
    ServerSubscription,
    Amqp10Connection,
    Amqp10Session,
    SendingLink,
    ReceivingLink,
    Subscription,
    Delivery,
    Message,
)
CONNECTIONS = (Amqp091Connection, Amqp010Connection, Amqp10Connection)


def stream(subject: Subject, random: Random) -> bytes:
    """A recording, every second time a mutated one, cut anywhere."""
    if random.random() < 0.5:
        return b"".join(random.choice(subject.recordings))
    octets = mutations.random_stream(subject.recordings, subject.framing, random, most=1)
    return octets[: random.randint(1, len(octets))] if octets else octets


class Heap:
    """What of `KINDS` is in memory."""

    def __init__(self) -> None:
        self.seen: set[type[Any]] = set()

    def kept(self) -> list[Any]:
        """What is left when all clients have gone and the broker is empty."""
        return alive(*KINDS)

    def ended(self, state: BrokerState, ports: set[int]) -> list[Any]:
        """The connections in memory of clients that have gone, and ended channels and consumers.

        Args:
            state: the broker.
            ports: those of clients that are still there.
        """
        for virtual_host in state.virtual_hosts.values():
            # A prepared branch outlives its channel, and needs it for what its commit returns.
            virtual_host.branches.abandon(prepared=True)
        channels: set[Any] = set()
        for connection in state.connections:
            channels.update(getattr(connection, "channels", {}).values())
        consumers: set[Any] = {
            address.subscription
            for virtual_host in state.virtual_hosts.values()
            for address in virtual_host.reply_addresses.values()
        }
        for queue in queues(state):
            consumers.update(queue.subscriptions)
            consumers.update(each.holder for each in queue.unacked)
        found = self.kept()
        self.seen.update(map(type, found))
        return [
            each
            for each in found
            if (isinstance(each, CONNECTIONS) and _port(each) not in ports)
            or (isinstance(each, BaseChannel) and each not in channels)
            or (isinstance(each, Subscription) and each not in consumers)
        ]


def _port(connection: Amqp091Connection[Any] | Amqp010Connection | Amqp10Connection) -> int:
    return int(connection.name.split(" ")[0].rpartition(":")[2])


def converse(
    broker: Broker,
    heap: Heap,
    clients: ExitStack,
    subject: Subject,
    random: Random,
) -> None:
    """One to three clients talk by turns, and go. The heap is looked through before each goes."""
    talking: list[tuple[socket.socket, list[bytes]]] = []
    for _ in range(random.randint(1, 3)):
        sizes = tuple(random.randint(20, 2_000) for _ in range(random.randint(1, 3)))
        chunks = mutations.chunked(stream(subject, random), sizes)
        talking.append((clients.enter_context(dial(broker)), [*chunks][::-1]))
    while talking:
        client, unsent = turn = random.choice(talking)
        if unsent:
            say(client, unsent.pop())
            continue
        broker.wait_until_idle(timeout=30)
        ports = {each.getsockname()[1] for each, _ in talking}
        assert not (ended := broker._reader.read(partial(heap.ended, ports=ports))), ended
        vanish(client, reset=random.random() < 0.5)
        talking.remove(turn)


@on_each
def test_ended_connections_and_messages_are_freed_from_memory(subject: Subject) -> None:
    heap = Heap()
    ignore_older_objects()
    with Broker(personality=subject.personality) as broker:
        for number in range(max(25, scaled(CONVERSATIONS / 2))):
            with ExitStack() as clients:
                converse(broker, heap, clients, subject, Random(number))
            broker.wait_until_idle(timeout=30)  # Some clients may not even have been accepted when they went.
            broker._reader.wait_for(lambda state: not state.connections, timeout=30)
            broker.reset()  # Sessions and prepared branches may be resumed. They go with the queues.
            assert not (kept := heap.kept()), (number, kept)
        assert broker.admin.failures == ()
    assert {Message, ConnectionDriver} <= heap.seen, "the conversations have no messages"
