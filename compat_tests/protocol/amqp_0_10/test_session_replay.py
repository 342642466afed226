"""A session that loses its transport anywhere goes on without loss or repetition (session/replay).

Each exchange is recorded once and then cut behind each of its octets: what the client had sent by then, or
what it had received by then, is all that the other side knows when the session is attached again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Part, Reader, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, HEADER_SIZE, Assembler
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet

rule = pytest.mark.rule

_FOR_EVER = None
_BODIES = [b"one", b"two" * 50, b"", b"four"]


def _published(server: Server) -> list[bytes]:
    """What waits in the queue, in order."""
    return [each.message.body for each in server.vhost.queues["q"].ready]


def _transfers(client: Client, first_id: int) -> list[bytes]:
    """The bytes of each transfer of `_BODIES`, in frames so small that the larger ones need several."""
    client.max_frame_size = 64
    header = [structs.DeliveryProperties(routing_key="q")]
    command = x.MessageTransfer(accept_mode=1)
    octets = [client.command_bytes(command, header=header, body=body) for body in _BODIES]
    client.max_frame_size = 65535
    return octets


def _expected(client: Client) -> int:
    """Ask the broker what it expects, as a client does that wants to replay."""
    client.send(c.SessionFlush(expected=True))
    expected = next(each.what for each in client.inbox if isinstance(each.what, c.SessionExpected))
    client.inbox.clear()
    assert expected.commands is not None
    (id_,) = expected.commands
    return id_


_STREAM_OF_TRANSFERS = sum(map(len, _transfers(Server("rabbitmq-4.2").dial(), 0)))


def _cut_off(cut: int) -> tuple[Server, list[bytes], int]:
    """Lose the transport of a publisher behind so many octets: all its transfers, and the id of the first."""
    server = Server("rabbitmq-4.2")
    publisher = server.open().session(b"p", timeout=_FOR_EVER).declare("q")
    transfers = _transfers(publisher.client, publisher.next_id)
    publisher.client.send_bytes(b"".join(transfers)[:cut])
    publisher.client.drop()
    return server, transfers, publisher.next_id


@rule("0-10/session/replay#client", "0-10/session.command-point/numbering#id")
@rule("0-10/session.expected/include-next-command")
@pytest.mark.parametrize("cut", range(_STREAM_OF_TRANSFERS + 1))
def test_publisher_cut_off_at_any_octet_replays_without_loss_or_duplicate(cut: int) -> None:
    server, transfers, first_id = _cut_off(cut)
    client = server.open()
    client.call(c.SessionAttach(name=b"p"), c.SessionAttached)
    client.inbox.clear()
    id_ = _expected(client)
    client.send(c.SessionCommandPoint(command_id=id_, command_offset=0))
    client.send_bytes(b"".join(transfers[id_ - first_id :]))

    assert _published(server) == _BODIES


@rule("0-10/session/replay#client", "0-10/session.command-point/numbering#id")
@pytest.mark.parametrize("cut", range(0, _STREAM_OF_TRANSFERS + 1, 7))
def test_publisher_replaying_all_transfers_creates_no_duplicate(cut: int) -> None:
    server, transfers, first_id = _cut_off(cut)
    client = server.open()
    client.call(c.SessionAttach(name=b"p"), c.SessionAttached)
    client.send(c.SessionCommandPoint(command_id=first_id, command_offset=0))
    client.send_bytes(b"".join(transfers))

    assert _published(server) == _BODIES


@dataclass
class _Consumer:
    """A client that keeps what it received, by command id, over any number of transports."""

    seen: dict[int, bytes | None] = field(default_factory=dict)
    next_id: int = 0

    def receive(self, octets: bytes) -> None:
        """Take what of the broker's bytes has reached the client."""
        reader = Reader()
        reader.resume(0, b"c", Part(self.next_id, Assembler()))
        for event in reader.read(octets):
            if event.assembly is not None:
                command, _ = x.decode(event.assembly.first)
                if isinstance(command, x.MessageTransfer):
                    assert event.id not in self.seen, "nothing comes twice"
                    self.seen[event.id] = event.assembly.body
                self.next_id = event.id + 1


def _subscribed(server: Server) -> Session:
    session = server.open(max_frame_size=4096).session(b"c", timeout=_FOR_EVER)
    session.declare("q").perform(x.MessageSubscribe(queue="q", destination="d", accept_mode=0))
    session.completed(*range(session.end.outgoing.next_id)).client.inbox.clear()
    return session


def _deliver_all(server: Server, session: Session) -> bytes:
    """Have all messages sent to the subscription; answers with the bytes."""
    session.client.take_bytes()
    session.send(x.MessageFlow(destination="d", unit=1, value=0xFFFFFFFF))
    session.send(x.MessageFlow(destination="d", unit=0, value=0xFFFFFFFF))
    return session.client.take_bytes()


def _prepared() -> tuple[Server, Session]:
    server = Server("rabbitmq-4.2")
    session = _subscribed(server)
    publisher = server.open().session(b"p")
    for body in _BODIES:
        publisher.publish(body)
    return server, session


_STREAM_OF_DELIVERIES = len(_deliver_all(*_prepared()))


@rule("0-10/session/replay#server", "0-10/session.flush/expected")
@pytest.mark.parametrize("cut", range(_STREAM_OF_DELIVERIES + 1))
def test_subscriber_cut_off_at_any_octet_receives_each_message_once(cut: int) -> None:
    server, session = _prepared()
    consumer = _Consumer(next_id=session.end.outgoing.next_id)
    octets = _deliver_all(server, session)
    consumer.receive(octets[:cut])
    session.client.drop()

    client = server.open(max_frame_size=4096).send(c.SessionAttach(name=b"c"))
    asked = [each.what for each in client.inbox]
    client.inbox.clear()
    assert isinstance(asked[0], c.SessionAttached)
    assert any(isinstance(each, c.SessionFlush) and each.expected for each in asked)
    client.send(c.SessionExpected(commands=SequenceSet.of(consumer.next_id)))
    consumer.receive(client.take_bytes())

    assert [consumer.seen[id_] for id_ in sorted(consumer.seen)] == _BODIES


def test_replayed_transfers_can_be_accepted() -> None:
    server, session = _prepared()
    _deliver_all(server, session)
    session.client.drop()
    assert _published(server) == [], "what was sent stays acquired"

    client = server.open()
    client.send(c.SessionAttach(name=b"c")).inbox.clear()
    client.send(c.SessionExpected(commands=SequenceSet.of(0)))
    again = Session(client, b"c", 0)
    transfers = [each for each in client.inbox if isinstance(each.what, x.MessageTransfer)]
    assert [each.body for each in transfers] == _BODIES
    client.inbox.clear()
    again.point(next(iter(_due(client)))).accept(*[each.id for each in transfers if each.id is not None])
    assert server.vhost.queues["q"].unacked == {}


def _due(client: Client) -> SequenceSet:
    client.send(c.SessionFlush(expected=True))
    expected = next(each.what for each in client.inbox if isinstance(each.what, c.SessionExpected))
    client.inbox.clear()
    assert expected.commands is not None
    return expected.commands


def _payload(octets: bytes) -> bytes:
    """The bytes of the commands that frames carry, those of controls left out."""
    found = b""
    while octets:
        _, kind, size, *_ = FRAME_HEADER.unpack_from(octets)
        found += octets[HEADER_SIZE:size] if kind else b""
        octets = octets[size:]
    return found


@rule("0-10/session/replay#part", "0-10/session.command-point/nonzero-offset")
@rule("0-10/session.expected/minimal-fragments")
@pytest.mark.parametrize("offset", [1, 10, 40, 90])
def test_broker_sends_rest_of_command_partly_received_by_client(offset: int) -> None:
    server, session = _prepared()
    whole = _payload(_deliver_all(server, session))
    session.client.drop()

    client = server.open(max_frame_size=4096)
    client.send(c.SessionAttach(name=b"c")).inbox.clear()
    second = len(_payload(_whole(client, b"one")))
    fragment = structs.CommandFragment(command_id=1, byte_ranges=ByteRanges.of((offset, 2**64 - 1)))
    octets = client.send(c.SessionExpected(commands=SequenceSet.of(2), fragments=[fragment])).take_bytes()
    point = c.decode(octets[HEADER_SIZE : FRAME_HEADER.unpack_from(octets)[2]])
    assert isinstance(point, c.SessionCommandPoint)
    assert (point.command_id, point.command_offset) == (1, offset)
    assert _payload(octets) == whole[second + offset :]


def _whole(client: Client, body: bytes) -> bytes:
    """The frames of a transfer of `_prepared` as the broker sends it."""
    header = [structs.DeliveryProperties(exchange="", routing_key="q")]
    command = x.MessageTransfer(destination="d", accept_mode=0, acquire_mode=0)
    return client.command_bytes(command, header=header, body=body)


def test_unconfirmed_transfers_are_replayed_after_delay_without_session_expected() -> None:
    server, session = _prepared()
    _deliver_all(server, session)
    session.client.drop()

    client = server.open()
    client.send(c.SessionAttach(name=b"c")).inbox.clear()
    client.expect_nothing()
    server.advance(1)
    bodies = [each.body for each in client.inbox if isinstance(each.what, x.MessageTransfer)]
    assert bodies == _BODIES
    server.advance(100)
    assert len([each for each in client.inbox if isinstance(each.what, x.MessageTransfer)]) == len(_BODIES)


def test_transfers_confirmed_by_client_are_not_replayed() -> None:
    server, session = _prepared()
    _deliver_all(server, session)
    session.control(c.SessionConfirmed(commands=SequenceSet.of(0, 2))).client.drop()

    client = server.open().send(c.SessionAttach(name=b"c"))
    client.send(c.SessionExpected(commands=SequenceSet.of(0)))
    bodies = [each.body for each in client.inbox if isinstance(each.what, x.MessageTransfer)]
    assert bodies == [_BODIES[1], _BODIES[3]]
