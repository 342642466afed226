"""Commands and controls on their way to the client, which goes on counting them as the broker does."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Session, c, structs, x
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from fakeamqp.errors import FakeAMQPError
from fakeamqp.faults import FaultError, Faults
from fakeamqp.faults.actions import malformations
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec.commands import decode as decode_command
from fakeamqp.protocols.amqp_0_10.codec.controls import decode as decode_control
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, HEADER_SIZE, Assembler, check_header

WAYS = malformations(["0-10"])


@pytest.fixture
def consumer(server: FaultServer) -> Session:
    """A session on a connection of its own that takes from "q"."""
    session = server.session_with("q", b"consumer")
    session.subscribe("q")
    session.client.inbox.clear()
    return session


@pytest.fixture
def small(server: FaultServer) -> Session:
    """The same on a connection with small frames."""
    session = server.session_with("q", b"s", max_frame_size=4096)
    session.subscribe("q")
    session.client.inbox.clear()
    return session


def test_dropped_delivery_uses_its_number_and_stays_outstanding(consumer: Session, faults: Faults) -> None:
    faults.on("message.transfer", direction="sent", body=b"two").drop()
    for body in (b"one", b"two", b"three"):
        consumer.publish(body)
    transfers = consumer.transfers()
    assert [(each.id, each.body) for each in transfers] == [(0, b"one"), (2, b"three")]
    consumer.accept(2)
    assert list(consumer.end.ledger.outstanding) == [0, 1]


def test_a_held_delivery_keeps_its_number(consumer: Session, faults: Faults) -> None:
    rule = faults.on("message.transfer", direction="sent", queue="q", body=b"one").hold()
    for body in (b"one", b"two", b"three"):
        consumer.publish(body)
    assert [(each.id, each.body) for each in consumer.transfers()] == [(1, b"two"), (2, b"three")]
    assert rule.release() == 1
    consumer.publish(b"four")
    assert [(each.id, each.body) for each in consumer.transfers()] == [(0, b"one"), (3, b"four")]
    consumer.accept(0)
    assert list(consumer.end.ledger.outstanding) == [1, 2, 3]


def test_delayed_result_keeps_its_number(server: FaultServer, consumer: Session) -> None:
    server.faults.on("execution.result", direction="sent").delay(3)
    id_ = consumer.send(x.QueueQuery(queue="q"))
    consumer.publish(b"one")
    assert [each.id for each in consumer.transfers()] == [1]
    server.advance(3)
    late = consumer.client.inbox[-1]
    assert (late.id, late.what.command_id) == (0, id_)


def test_duplicated_delivery_has_a_number_of_its_own(consumer: Session, faults: Faults) -> None:
    faults.on("message.transfer", direction="sent", body=b"one").duplicate()
    consumer.publish(b"one")
    consumer.publish(b"two")
    transfers = consumer.transfers()
    assert [(each.id, each.body) for each in transfers] == [(0, b"one"), (1, b"one"), (2, b"two")]
    consumer.accept(1)
    assert list(consumer.end.ledger.outstanding) == [0, 2]
    consumer.completed(0, 1, 2)
    consumer.accept(0, 2)
    assert list(consumer.end.ledger.outstanding) == []


def test_client_receives_the_replaced_values_of_a_delivery(consumer: Session, faults: Faults) -> None:
    faults.on("message.transfer", direction="sent").replace(
        body=b"pears", redelivered=True, headers={"a": "b"}, exchange="elsewhere", app_id="shop"
    )
    consumer.publish(b"apples", message=structs.MessageProperties(content_type="text/plain"))
    (transfer,) = consumer.transfers()
    assert (transfer.body, transfer.redelivered, transfer.delivery.exchange) == (b"pears", True, "elsewhere")
    message = transfer.message
    assert (message.content_type, message.app_id, message.application_headers) == (
        "text/plain",
        b"shop",
        {"a": "b"},
    )


def test_next_session_completed_control_covers_the_dropped_control(consumer: Session, faults: Faults) -> None:
    rule = faults.on("session.completed", direction="sent").drop()
    consumer.send(x.ExecutionSync(), sync=True)
    consumer.client.expect_nothing()
    rule.remove()
    consumer.send(x.ExecutionSync(), sync=True)
    assert list(consumer.client.expect(c.SessionCompleted).commands.ranges) == [(0, consumer.next_id - 1)]


def test_delivery_cut_after_its_header_has_no_body(server: FaultServer, consumer: Session) -> None:
    server.faults.on("message.transfer", direction="sent").cut("header")
    consumer.publish(b"two apples")
    server.settle()
    octets = consumer.client.take_bytes()
    frames = []
    while octets:
        flags, kind, size, *_ = FRAME_HEADER.unpack_from(octets)
        frames.append((flags, kind))
        octets = octets[size:]
    assert frames[-2:] == [(11, 1), (3, 2)]
    assert consumer.client.closed


def test_delivery_cut_within_a_frame_ends_with_a_reset(server: FaultServer, consumer: Session) -> None:
    server.faults.on("message.transfer", direction="sent").cut(5, "reset")
    consumer.publish(b"two apples")
    server.settle()
    assert consumer.client.take_bytes()[-5:-3] == b"\x0b\x01"
    assert consumer.client.closed and consumer.client.connection.resets


def test_close_channel_on_a_delivery_ends_the_session_and_requeues_the_message(
    server: FaultServer, consumer: Session
) -> None:
    server.faults.on("message.transfer", direction="sent").once().close_channel(408, "gone")
    consumer.publish(b"one")
    server.settle()
    exception = consumer.expect(x.ExecutionException)
    assert (exception.error_code, exception.description) == (408, "gone")
    assert consumer.expect(c.SessionDetach).name == b"consumer"
    assert server.bodies() == [b"one"]


def test_exception_detach_and_attached_are_delayed_by_a_rule(server: FaultServer, session: Session) -> None:
    rule = server.faults.on(
        "execution.exception", "session.detach", "session.attached", direction="sent"
    ).delay(1)
    session.client.inbox.clear()
    session.send(x.QueuePurge(queue="nowhere"))
    session.expect_nothing()
    server.advance(1)
    assert session.expect(x.ExecutionException).error_code == 404
    assert session.client.expect(c.SessionDetach).name == b"shop"
    session.control(c.SessionAttach(name=b"shop"))
    server.advance(1)
    assert session.client.expect(c.SessionAttached).name == b"shop"
    assert rule.hits == 3


def test_held_delivery_to_a_detached_session_is_not_sent(server: FaultServer, consumer: Session) -> None:
    rule = server.faults.on("message.transfer", direction="sent").hold()
    consumer.publish(b"one")
    consumer.detach()
    rule.release()
    consumer.expect_nothing()
    assert "is not sent" in server.said[-1]


def test_resumed_session_gets_the_dropped_delivery(server: FaultServer) -> None:
    client = server.open()
    session = client.session(b"s", timeout=60)
    session.declare("q")
    session.subscribe("q")
    rule = server.faults.on("message.transfer", direction="sent", body=b"two").drop()
    for body in (b"one", b"two", b"three"):
        session.publish(body)
    assert [each.id for each in session.transfers()] == [0, 2]
    rule.remove()
    client.drop()
    again = server.open()
    again.send(c.SessionAttach(name=b"s"))
    again.expect(c.SessionAttached)
    assert again.expect(c.SessionFlush).expected
    again.send(c.SessionExpected(commands=x.SequenceSet.of(1, 3)))
    resumed = Session(again, b"s", 0)
    assert [(each.id, each.body) for each in resumed.transfers()] == [(1, b"two")]


# --- malformed ----------------------------------------------------------------------------------------


def read(octets: bytes, max_frame_size: int) -> None:
    """Read frames as a strict client does; raises what is wrong with them."""
    assemblers: dict[tuple[int, int], Assembler] = {}
    while octets:
        if len(octets) < HEADER_SIZE:
            raise FaultError("a frame is cut short")
        flags, kind, size, reserved, track, channel, reserved_2 = FRAME_HEADER.unpack_from(octets)
        check_header(flags, kind, size, reserved, track, reserved_2)
        if size > max_frame_size or size > len(octets):
            raise FaultError("a frame is larger than it may be, or than it is")
        if channel:
            raise FaultError("there is no session on this channel")
        assembler = assemblers.setdefault((channel, track), Assembler())
        assembly = assembler.add(flags, kind, octets[HEADER_SIZE:size])
        octets = octets[size:]
        if assembly is None:
            continue
        if assembly.header is not None:
            structs.decode_header(assembly.header)
        (decode_command if assembly.is_command else decode_control)(assembly.first)
    if any(each.received for each in assemblers.values()):
        raise FaultError("an assembly is cut short")


@pytest.mark.parametrize("how", WAYS)
def test_strict_client_notices_every_malformation_of_a_delivery(
    server: FaultServer, small: Session, how: str
) -> None:
    rule = server.faults.on("message.transfer", direction="sent").malform(how)
    small.publish(b"two apples", message=structs.MessageProperties(content_type="text/plain"))
    small.client.connection.receive(b"")
    octets = small.client.take_bytes()
    assert rule.hits == 1
    with pytest.raises(FakeAMQPError):
        read(octets, 4096)
    assert f"sent malformed ({how}): " in server.said[-1]


@pytest.mark.parametrize("how", [how for how, ways in WAYS.items() if not ways["0-10"].content_only])
def test_strict_client_notices_every_malformation_of_a_control(
    server: FaultServer, small: Session, how: str
) -> None:
    server.faults.on("session.completed", direction="sent").malform(how)
    small.send(x.ExecutionSync(), sync=True)
    with pytest.raises(FakeAMQPError):
        read(small.client.take_bytes(), 4096)


def _header_of_transfer(octets: bytes) -> tuple[int, ...]:
    """The header of the frame whose payload begins with the class and code of message.transfer."""
    while octets[HEADER_SIZE : HEADER_SIZE + 2] != x.MessageTransfer.INDEX.to_bytes(2, "big"):
        octets = octets[FRAME_HEADER.unpack_from(octets)[2] :]
    header: tuple[int, ...] = FRAME_HEADER.unpack_from(octets)
    return header


@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        ("bad-flags", {0}),
        ("unknown-type", {1}),
        ("wrong-track", {4}),
        ("wrong-channel", {5}),
    ],
)
def test_malformed_frame_header_differs_in_the_named_field_only(
    server: FaultServer, small: Session, how: str, wrong: set[int]
) -> None:
    """The fields of a frame's header, by number, that differ from those of the frame without a fault."""
    small.publish(b"apples")
    small.client.connection.receive(b"")
    good = small.client.take_bytes()
    server.faults.on("message.transfer", direction="sent").malform(how)
    small.publish(b"apples")
    small.client.connection.receive(b"")
    bad = small.client.take_bytes()
    headers = [_header_of_transfer(octets) for octets in (good, bad)]
    differing = {number for number, pair in enumerate(zip(*headers, strict=True)) if pair[0] != pair[1]}
    assert differing == wrong


def test_delivery_without_a_fault_is_well_formed(small: Session) -> None:
    small.publish(b"x" * 9000, message=structs.MessageProperties(content_type="text/plain"))
    read(small.client.take_bytes(), 4096)


# --- sent out of the blue -----------------------------------------------------------------------------


def test_transfers_controls_and_bytes_sent_by_the_test_reach_the_client(
    server: FaultServer, consumer: Session
) -> None:
    server.client()
    sent = server.faults.send(
        x.MessageTransfer(destination="d"), body=b"out of the blue", routing_key="k", headers={"a": 1}
    )
    assert sent == 1
    consumer.publish(b"one")
    first, second = consumer.transfers()
    assert (first.id, first.body, first.delivery.routing_key) == (0, b"out of the blue", "k")
    assert first.message.application_headers == {"a": 1}
    assert (second.id, second.body) == (1, b"one")
    assert server.faults.send(c.SessionFlush(completed=True)) == 1
    assert consumer.client.expect(c.SessionFlush).completed
    assert server.faults.send(b"AMQP") == 2


def test_transfer_sent_by_the_test_keeps_to_the_maximum_frame_size(
    server: FaultServer, small: Session
) -> None:
    assert server.faults.send(x.MessageTransfer(destination="d"), body=b"x" * 9000, routing_key="k") == 1
    read(small.client.take_bytes(), 4096)


def test_sending_a_method_or_property_unknown_to_the_protocol_is_an_error(server: FaultServer) -> None:
    server.session(b"s")
    with pytest.raises(FaultError, match=r"bytes or a method of AMQP 0-10, not BasicAck"):
        server.faults.send(m.BasicAck())
    with pytest.raises(FaultError, match=r"there is no property 'prio'"):
        server.faults.send(x.MessageTransfer(), prio=1)
    server.client()
    with pytest.raises(FaultError, match="0-9-1 has no property 'ttl'"):
        server.faults.send(m.BasicDeliver(), ttl=1)
