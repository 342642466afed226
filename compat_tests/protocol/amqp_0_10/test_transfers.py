"""message.transfer in both directions: where it goes, what comes with it, what may be missing."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Arrived, Client, Server, Session
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import encode_header
from fakeamqp.protocols.amqp_0_10.codec.types import UnknownStruct

rule = pytest.mark.rule

TO_Q = structs.DeliveryProperties(routing_key="q")


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


def send(session: Session, *header: structs.Struct | UnknownStruct, body: bytes | None = b"body") -> Session:
    session.call(
        x.MessageTransfer(accept_mode=1), header=encode_header(header) if header else None, body=body
    )
    return session


def test_transfers_are_copied_by_the_firehose() -> None:
    server = Server("rabbitmq-4.3")
    server.state.virtual_host("/").set_firehose(True)
    session = server.session()
    for name in ("q", "trace"):
        session.declare(name)
    session.bind("trace", "amq.rabbitmq.trace", "#").publish(key="q")
    assert len(session.subscribe("q").transfers()) == 1
    name = next(iter(server.state.connections)).name
    copies = [each.message for each in server.vhost.queues["trace"].ready]
    assert [(each.routing_key, each.body) for each in copies] == [
        ("publish.", b"body"),
        ("deliver.q", b"body"),
    ]
    for copy in copies:
        headers = copy.properties.headers
        assert (headers["connection"], headers["channel"], headers["user"]) == (name, 0, "guest")


# --- where it goes -----------------------------------------------------------------------------------
@rule("0-10/message.transfer/destination-blank-destination")
@pytest.mark.parametrize("destination", [None, ""])
def test_transfer_without_destination_goes_to_default_exchange(
    session: Session, destination: str | None
) -> None:
    (transfer,) = session.publish(exchange=destination, key="q").subscribe().transfers()
    assert (transfer.body, transfer.delivery.exchange) == (b"body", "")


@rule("0-10/message.transfer/destination-nonexistent-exchange")
def test_transfer_to_missing_exchange_fails_with_not_found(session: Session) -> None:
    exception = session.fails(x.MessageTransfer(destination="missing"), 404, body=b"lost")
    assert (exception.class_code, exception.command_code) == (4, 1)


def test_transfer_to_deleted_exchange_fails_with_not_found(session: Session) -> None:
    session.declare_exchange("e", "fanout").publish(exchange="e").perform(x.ExchangeDelete(exchange="e"))
    session.fails(x.MessageTransfer(destination="e", accept_mode=1), 404, header=[TO_Q], body=b"lost")


def test_transfer_to_exchange_declared_again_as_internal_is_refused(lenient: Server) -> None:
    session = lenient.session().declare_exchange("e", "fanout")
    session.publish(exchange="e").perform(x.ExchangeDelete(exchange="e"))
    internal = m.ExchangeDeclare(exchange="e", type="fanout", internal=True)
    lenient.client().call(internal, m.ExchangeDeclareOk)
    session.fails(x.MessageTransfer(destination="e", accept_mode=1), 403, header=[TO_Q], body=b"body")


@rule("0-10/message.delivery-properties/routing-key")
def test_routing_key_is_matched_by_type_of_exchange(session: Session) -> None:
    session.declare("other").bind("q", "amq.direct", "k").bind("other", "amq.topic", "k.#")
    session.publish(b"direct", exchange="amq.direct", key="k")
    session.publish(b"lost", exchange="amq.direct", key="k.x")
    session.publish(b"topic", exchange="amq.topic", key="k.x").subscribe("q", "d").subscribe("other", "o")
    got = [(each.command.destination, each.body, each.delivery.routing_key) for each in session.transfers()]
    assert got == [("d", b"direct", "k"), ("o", b"topic", "k.x")]


@rule("0-10/message.delivery-properties/exchange")
def test_delivery_properties_name_exchange_of_publish(session: Session) -> None:
    session.bind("q", "amq.direct", "k").publish(exchange="amq.direct", key="k")
    session.publish(key="q", **{"exchange": None})
    send(session, structs.DeliveryProperties(routing_key="q", exchange="a lie")).subscribe()
    assert [each.delivery.exchange for each in session.transfers()] == ["amq.direct", "", ""]


@rule("0-10/message.transfer/completion")
def test_transfer_is_completed_when_message_is_queued(session: Session) -> None:
    session.client.inbox.clear()
    command = x.MessageTransfer(accept_mode=1)
    id_ = session.send(command, header=[TO_Q], body=b"body", sync=True)
    assert id_ in (session.expect(c.SessionCompleted).commands or ())
    assert session.query().message_count == 1


# --- access ------------------------------------------------------------------------------------------
def login(server: Server, **patterns: str) -> Session:
    granted = {"configure": "", "write": ".*", "read": ".*"} | patterns
    server.state.access.add(User("ann", "secret", (), {"/": Permission(**granted)}))
    return server.session(b"ann's", user="ann", password="secret")


def test_transfer_without_write_permission_fails_with_403(server: Server) -> None:
    session = login(server, write="amq.fanout")
    session.call(x.MessageTransfer(destination="amq.fanout", accept_mode=1), body=b"fine")
    session.fails(x.MessageTransfer(destination="amq.direct", accept_mode=1), 403, body=b"denied")


def test_transfer_is_refused_after_write_permission_is_withdrawn(server: Server) -> None:
    session = login(server)
    session.call(x.MessageTransfer(destination="amq.fanout", accept_mode=1), body=b"fine")
    server.state.access.users["ann"].permissions["/"] = Permission(configure="", write="", read="")
    server.state.access.changed()
    session.fails(x.MessageTransfer(destination="amq.fanout", accept_mode=1), 403, body=b"denied")


def test_transfer_without_topic_permission_for_key_fails_with_403(server: Server) -> None:
    session = login(server)
    server.state.access.users["ann"].topic_permissions["/", "amq.topic"] = TopicPermission(write="^a")
    server.state.access.changed()
    command = x.MessageTransfer(destination="amq.topic", accept_mode=1)
    for _ in range(2):
        session.call(command, header=[structs.DeliveryProperties(routing_key="a.b")], body=b"fine")
    session.fails(command, 403, header=[structs.DeliveryProperties(routing_key="b.a")], body=b"denied")


def test_message_subscribe_without_read_permission_fails_with_403(server: Server) -> None:
    server.session().declare("q")
    login(server, read="").fails(x.MessageSubscribe(queue="q", destination="d"), 403)


# --- what may be missing -----------------------------------------------------------------------------
@rule("0-10/assembly/empty-body#header", "0-10/assembly/empty-body#body")
@pytest.mark.parametrize("header", [None, b""])
@pytest.mark.parametrize("body", [None, b"", b"body"])
def test_transfer_without_header_or_body_is_delivered_as_sent(
    session: Session, header: bytes | None, body: bytes | None
) -> None:
    session.bind("q", "amq.fanout")
    session.call(x.MessageTransfer(destination="amq.fanout"), header=header, body=body)
    session.client.inbox.clear()  # By the text it is accepted.
    (transfer,) = session.subscribe().transfers()
    assert (transfer.body, transfer.delivery.exchange) == (body, "amq.fanout")
    assert transfer.delivery.routing_key is None
    assert transfer.find(structs.MessageProperties) is None


@rule("0-10/assembly/header-entries#sequence")
def test_header_structs_sent_in_any_order_are_delivered_alike(session: Session) -> None:
    message = structs.MessageProperties(content_type="text/plain")
    send(session, message, TO_Q)
    first, second = send(session, TO_Q, message).subscribe().transfers()
    assert (first.structs, first.message.content_type) == (second.structs, "text/plain")


@rule("0-10/assembly/unexpected-header")
@rows("entry", UnknownStruct(0x7777, b"\0\0whatever"), structs.StreamProperties(content_type="text/plain"))
def test_undeclared_header_structs_are_delivered_unchanged(session: Session, entry: Any) -> None:
    message = structs.MessageProperties(content_type="a/b")
    session.bind("q", "amq.fanout").subscribe()
    for header in ((entry, TO_Q, message), (TO_Q, message, entry), (entry, message)):
        command = x.MessageTransfer(destination="amq.fanout", accept_mode=1)
        session.call(command, header=encode_header(header), body=b"body")
        transfer = session.transfer()
        assert entry in transfer.structs
        assert transfer.message.content_type == "a/b"


def test_invalid_header_ends_only_session_of_its_sender(server: Server) -> None:
    one, other = server.session(b"one"), server.session(b"other")
    other.declare("q").subscribe()
    broken = structs.MessageProperties(application_headers={"a": 1}).encode()
    broken = broken[:-1]
    header = TO_Q.encode() + (len(broken) - 4).to_bytes(4, "big") + broken[4:]
    one.fails(x.MessageTransfer(accept_mode=1), 503, header=header, body=b"lost")
    assert other.publish(b"fine").bodies() == [b"fine"]


# --- enumerations ------------------------------------------------------------------------------------
@rule("0-10/message/priority-values")
@pytest.mark.deviates("0-10/message/priority-values")
def test_priority_above_9_is_refused_only_by_spec(server: Server, session: Session) -> None:
    session.subscribe()
    for priority in (0, 9):
        session.publish(priority=priority)
    assert [each.delivery.priority for each in session.transfers()] == [0, 9]
    for priority in (10, 255):
        if server.is_spec:
            header = [structs.DeliveryProperties(routing_key="q", priority=priority)]
            other = server.session(b"%d" % priority)
            other.fails(x.MessageTransfer(accept_mode=1), 531, header=header, body=b"lost")
        else:
            assert session.publish(priority=priority).transfer().delivery.priority == priority


@pytest.mark.parametrize("mode", [0, 3])
def test_unknown_delivery_mode_fails_with_illegal_argument(session: Session, mode: int) -> None:
    octets = bytearray(structs.DeliveryProperties(routing_key="q", delivery_mode=1).encode())
    octets[8] = mode
    session.fails(x.MessageTransfer(accept_mode=1), 531, header=bytes(octets), body=b"lost")


def test_transfer_above_largest_message_size_ends_session_with_506(lenient: Server) -> None:
    session = lenient.session().declare("q")
    largest = lenient.state.personality.largest_message
    session.fails(x.MessageTransfer(accept_mode=1), 506, header=[TO_Q], body=bytes(largest + 1))


# --- to the client -----------------------------------------------------------------------------------
@rule("0-10/message.transfer/to-client#destination", "0-10/message.transfer/to-client#modes")
@rule("0-10/message.transfer/acquire-mode-publish")
def test_deliveries_carry_acquire_and_accept_mode_of_subscription(session: Session) -> None:
    session.publish().publish().subscribe(destination="browser", acquire_mode=1, accept_mode=1)
    session.subscribe(destination="taker", acquire_mode=0, accept_mode=0)
    said = [
        (each.command.destination, each.command.acquire_mode, each.command.accept_mode)
        for each in session.transfers()
    ]
    assert said == [("browser", 1, 1)] * 2 + [("taker", 0, 0)] * 2


@rule("0-10/message/grammar#peers", "0-10/message/grammar#recipients", "0-10/message/grammar#clients")
def test_broker_accepts_every_message_command_of_client(server: Server) -> None:
    """The broker sends only transfers and answers to publishers in return."""
    session = server.session().declare("q")
    for body in (b"1", b"2", b"3"):
        session.publish(body)
    one, two = session.subscribe(credit=2, acquire_mode=1).transfers()
    assert session.call(x.MessageResume(resume_id="unknown")).offset == 0
    assert list(session.call(x.MessageAcquire(transfers=ids(one.id, two.id))).transfers) == [one.id, two.id]
    session.accept(one.id).release(two.id).perform(x.MessageStop(destination="d"))
    (three,) = session.flow(1).flow(1000, unit=1).transfers()
    assert session.call(x.MessageAcquire(transfers=ids(three.id))).transfers
    session.reject(three.id).perform(x.MessageFlush(destination="d"))
    session.perform(x.MessageCancel(destination="d")).expect_nothing()
    assert session.query().message_count == 1


def ids(*numbers: int) -> x.SequenceSet:
    return x.SequenceSet.of(*numbers)


@rule("0-10/message/states#acquired", "0-10/message/states#not-acquired")
def test_accepted_or_released_transfer_cannot_be_acquired(session: Session) -> None:
    for body in (b"acquired", b"not acquired"):
        session.publish(body)
    (taken,) = session.subscribe(destination="taker", credit=1).transfers()
    (seen,) = session.subscribe(destination="browser", acquire_mode=1).transfers()
    assert (taken.body, seen.body) == (b"acquired", b"not acquired")
    session.accept(taken.id)  # acquired -> its end
    session.release(seen.id)  # not acquired -> its end
    assert not session.call(x.MessageAcquire(transfers=ids(taken.id, seen.id))).transfers
    assert session.query().message_count == 1


@pytest.mark.parametrize("body", [b"short", bytes(range(256)) * 40])
@pytest.mark.parametrize("text", ["short", "x" * 5000])
def test_transfer_larger_than_frame_is_delivered_whole(server: Server, body: bytes, text: str) -> None:
    session = server.open(max_frame_size=4096).session().declare("q").subscribe()
    session.publish(body, message=structs.MessageProperties(application_headers={"text": text}))
    (transfer,) = session.transfers()
    assert (transfer.body, transfer.message.application_headers) == (body, {"text": text})


@rule("0-10/message.delivery-properties/encoding", "0-10/message.message-properties/encoding")
def test_header_structs_have_specified_encoding(session: Session) -> None:
    """Bytes by hand: every field of both structs."""
    delivery = bytes.fromhex(
        "0000002e" "0401" "ff0f"  # size, code, flags: all twelve fields
        "05" "02" "0000000000000064" "0000000000000065" "0000000000000066"  # 5, 2, 100, 101, 102
        "0165" "0171" "00027264" "0000000000000067"  # "e", "q", "rd", 103
    )  # fmt: skip
    message = bytes.fromhex(
        "0000004b" "0403" "ff01"
        "0000000000000004" "000102030405060708090a0b0c0d0e0f"  # 4, the UUID
        "0002ffff" "0008" "0300" "0172" "036b6579" "0161" "0162"  # bytes, "r" and "key", "a", "b"
        "0005" "6775657374" "0001" "70"  # b"guest", b"p"
        "0000000f" "00000001" "016e" "31" "0000000000000007"  # {"n": 7}
    )  # fmt: skip
    session.subscribe()  # By the text what is immediate needs somebody who takes it.
    session.call(x.MessageTransfer(accept_mode=1), header=delivery + message, body=b"body")
    session._skip(c.SessionCompleted, c.SessionCommandPoint, c.SessionKnownCompleted)
    arrived: Arrived = session.client.take()
    assert arrived.header is not None
    assert arrived.header.endswith(message)
    read = structs.DeliveryProperties.decode(delivery)
    assert read == structs.DeliveryProperties(True, True, True, 5, 2, 100, 101, 102, "e", "q", "rd", 103)
    assert structs.MessageProperties.decode(message).application_headers == {"n": 7}


def test_transfer_with_accept_mode_2_fails_with_illegal_argument(client: Client) -> None:
    session = client.session().declare("q")
    octets = bytearray(x.MessageTransfer(accept_mode=1).encode())
    octets[-1] = 2
    assert _raw(session, bytes(octets)).error_code == 531


def _raw(session: Session, command: bytes) -> x.ExecutionException:
    session.client.send_frame(command, flags=0x0F, kind=1, track=1, channel=session.channel)
    return session.expect(x.ExecutionException)


# --- many queues -------------------------------------------------------------------------------------
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("personality", ["rabbitmq-4.3", "spec"])
def test_transfer_to_many_queues_is_answered_only_after_last_queue(personality: str, full: bool) -> None:
    session = Server(personality).session().declare_exchange("many", "fanout")
    if full:
        arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
        session.server.client().declare("full", arguments=arguments)
        session.bind("full", "many")
    for each in range(100):
        session.declare(f"many.{each}").bind(f"many.{each}", "many")
    session.client.inbox.clear()
    operations = session.server.state.operations
    operations.pauses = lambda: True
    transfer = session.transfer_id(exchange="many", key=None, accept_mode=0)
    slices = 0
    while operations.pending:
        assert session.client.inbox == []
        operations.step()
        slices += 1
    assert slices > 1
    if full and personality != "spec":
        assert session.expect(x.ExecutionException).command_id == transfer
        return
    if personality == "spec":
        answer = session.expect(x.MessageReject if full else x.MessageAccept)
        assert answer.transfers.ranges == SequenceSet.of(transfer).ranges
    assert transfer in session.expect(c.SessionCompleted).commands
