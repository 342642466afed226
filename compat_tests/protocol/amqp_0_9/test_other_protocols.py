"""Exchanges, queues and messages that clients of 0-9, 0-9-1 and 0-10 share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from compat_tests.scripted import amqp_0_9_1
from compat_tests.scripted.amqp_0_9 import Client as OldClient
from compat_tests.scripted.amqp_0_10 import UNLIMITED, Server, Session
from compat_tests.scripted.requesting import Requester
from fakeamqp.connection import PeerAddress
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, StreamProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

rule = pytest.mark.rule


ID = UUID("cbf34e70-07a2-4447-b2aa-a660a88ac96b")
FIELDS: dict[str, Any] = {
    "priority": 7,
    "delivery_mode": 2,
    "message_id": str(ID),
    "correlation_id": "c-1",
    "reply_to": "answers",
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "user_id": "guest",
    "app_id": "tests",
    "application_headers": {"n": 1},
}
OWN = {"transaction_id": "t-1", "security_token": b"\0secret"}
HEADERS = {"n": 1, "x-amqp-0-9-transaction-id": "t-1", "x-amqp-0-9-security-token": b"\0secret"}


@dataclass
class World:
    """One broker with a queue "q" and a client of each protocol."""

    server: Server
    message: Requester
    old: OldClient
    usual: amqp_0_9_1.Client
    session: Session

    def subscribe(self) -> None:
        self.session.subscribe("q")
        self.session.flow(UNLIMITED)
        self.session.flow(UNLIMITED, unit=1)

    def got(self) -> m.MessageTransfer:
        """What a client of class message gets from the queue."""
        asked = self.message.get("q", no_ack=True)
        assert asked is not None
        method = asked.method
        assert isinstance(method, m.MessageTransfer)
        return method


@pytest.fixture
def world() -> World:
    server = Server("rabbitmq-4.2")
    old = OldClient(server, PeerAddress(port=40_009))
    old.protocol_header = amqp_0_9_1.PROTOCOL_HEADERS["0-9"]
    old.handshake()
    old.open_channel().declare("q")
    return World(server, Requester(old), old, server.client(), server.session())


def test_transfer_keeps_its_fields_for_a_client_of_0_9_1(world: World) -> None:
    world.message.publish("q", b"body", ttl=5000, **FIELDS, **OWN)
    content = world.usual.get("q")
    assert content is not None
    got = content.properties
    assert (content.body, content.method.routing_key) == (b"body", "q")
    texts = {name: value for name, value in FIELDS.items() if name != "application_headers"}
    assert {name: getattr(got, name) for name in texts} == texts
    assert (got.expiration, got.headers) == ("5000", HEADERS)
    assert got.timestamp == int(world.server.clock.time())


def test_transfer_keeps_body_and_headers_for_class_basic(world: World) -> None:
    world.message.publish("q", b"body", **FIELDS)
    content = world.old.get("q")
    assert content is not None
    assert (content.body, content.properties.headers) == (b"body", {"n": 1})


def test_transfer_keeps_its_fields_for_a_client_of_0_10(world: World) -> None:
    world.message.publish("q", b"body", ttl=5000, **FIELDS, **OWN)
    world.server.advance(1)
    world.subscribe()
    got = world.session.transfer()
    assert (got.body, got.delivery.exchange, got.delivery.routing_key) == (b"body", "", "q")
    assert (got.delivery.priority, got.delivery.delivery_mode, got.delivery.ttl) == (7, 2, 4000)
    message = got.message
    assert (message.content_type, message.content_encoding) == ("text/plain", "utf-8")
    assert (message.message_id, message.correlation_id, message.user_id) == (ID, b"c-1", b"guest")
    assert message.reply_to == structs.ReplyTo(routing_key="answers")
    assert message.application_headers == HEADERS


def test_a_message_of_0_9_1_comes_by_transfer(world: World) -> None:
    values = {name: value for name, value in FIELDS.items() if name != "application_headers"}
    world.usual.publish(
        b"body", routing_key="q", expiration="5000", timestamp=17, headers=HEADERS, type="t", **values
    )
    got = world.got()
    assert {name: getattr(got, name) for name in {**values, **OWN}} == {**values, **OWN}
    assert got.application_headers == {"n": 1, "x-jms-type": "t"}
    assert (got.body, got.ttl, got.timestamp) == (Body(b"body"), 5000, 17)
    assert got.expiration == int(world.server.clock.time()) + 5


def test_a_message_of_0_10_comes_by_transfer(world: World) -> None:
    world.session.publish(
        b"body",
        key="q",
        delivery_mode=2,
        priority=7,
        ttl=5000,
        message=structs.MessageProperties(
            message_id=ID,
            correlation_id=b"c-1",
            reply_to=structs.ReplyTo("amq.direct", "k"),
            content_type="text/plain",
            application_headers={"n": 1},
        ),
    )
    got = world.got()
    assert (got.body, got.delivery_mode, got.priority, got.ttl) == (Body(b"body"), 2, 7, 5000)
    assert (got.message_id, got.correlation_id, got.reply_to) == (str(ID), "c-1", "amq.direct/k")
    assert (got.content_type, got.application_headers) == ("text/plain", {"n": 1})


def test_a_transfer_comes_back_by_way_of_a_client_of_0_9_1(world: World) -> None:
    world.message.publish("q", b"body", ttl=5000, **FIELDS, **OWN)
    content = world.usual.get("q")
    assert content is not None
    world.usual.publish_bytes(content.properties.encode(), content.body, routing_key="q")
    got = world.got()
    assert {name: getattr(got, name) for name in {**FIELDS, **OWN}} == {**FIELDS, **OWN}
    assert got.ttl == 5000


def test_files_are_not_for_class_message(world: World) -> None:
    old = world.old
    old.call(m.FileOpen(identifier="f", content_size=4), m.FileOpenOk)
    old.send_content(m.FileStage(), FileProperties(filename="n"), b"file")
    old.send(m.FilePublish(routing_key="q", identifier="f"))
    assert world.message.get("q") is None
    world.message.consume("q", "d")
    old.publish(b"basic", routing_key="q")
    assert world.message.bodies() == [b"basic"]
    assert old.count("q") == 1


def test_queue_exchange_and_binding_are_shared_by_clients_of_three_protocols(world: World) -> None:
    world.old.declare("q")
    assert world.usual.declare_ok("q", passive=True).queue == "q"
    assert world.session.query("q").queue == "q"
    world.session.declare_exchange("x", "fanout")
    world.usual.bind("q", "x")
    world.old.publish(b"one", exchange="x")
    assert world.usual.count("q") == 1
    world.old.call(m.QueueUnbind(queue="q", exchange="x"), m.QueueUnbindOk)
    world.usual.publish(b"two", exchange="x")
    assert world.session.query("q").message_count == 1
    assert world.usual.call(m.QueueDelete(queue="q"), m.QueueDeleteOk).message_count == 1
    world.old.fails(m.QueueDeclare(queue="q", passive=True), 404)


def test_message_to_fanout_exchange_reaches_consumers_of_all_three_protocols(world: World) -> None:
    world.usual.declare("a")
    world.usual.declare("b")
    world.usual.declare("c")
    for queue in "abc":
        world.usual.bind(queue, "amq.fanout")
    world.old.consume("a", "t")
    world.usual.consume("b", "t")
    world.session.subscribe("c")
    world.session.flow(UNLIMITED)
    world.session.flow(UNLIMITED, unit=1)
    publishes: tuple[Any, ...] = (
        lambda: world.old.publish(
            b"m", exchange="amq.fanout", content_type="text/plain", headers={"n": 1}, priority=3
        ),
        lambda: world.usual.publish(
            b"m", exchange="amq.fanout", content_type="text/plain", headers={"n": 1}, priority=3
        ),
    )
    for publish in publishes:
        publish()
        for client in (world.old, world.usual):
            content = client.delivery()
            assert (content.body, content.method.exchange) == (b"m", "amq.fanout")
            assert content.properties.content_type == "text/plain"
            assert (content.properties.headers, content.properties.priority) == ({"n": 1}, 3)
        transfer = world.session.transfer()
        assert (transfer.body, transfer.delivery.exchange) == (b"m", "amq.fanout")
        assert transfer.message.application_headers == {"n": 1}
        assert transfer.message.content_type == "text/plain"


def test_consumers_of_three_protocols_take_turns(world: World) -> None:
    world.usual.declare("q")
    world.old.consume("q", "old")
    world.usual.consume("q", "usual")
    world.session.subscribe("q")
    world.session.flow(UNLIMITED)
    world.session.flow(UNLIMITED, unit=1)
    for number in range(6):
        world.usual.publish(b"%d" % number, routing_key="q")
    assert world.old.bodies() == [b"0", b"3"]
    assert world.usual.bodies() == [b"1", b"4"]
    assert world.session.bodies() == [b"2", b"5"]


def test_message_requeued_by_one_protocol_is_redelivered_over_another_with_the_flag(world: World) -> None:
    world.usual.declare("q")
    world.session.publish(b"m", key="q")
    got = world.old.get("q")
    assert got is not None and not got.method.redelivered
    world.old.reject(1, requeue=True)
    again = world.usual.get("q")
    assert again is not None and again.method.redelivered
    world.usual.nack(1)
    world.session.subscribe("q")
    world.session.flow(UNLIMITED)
    world.session.flow(UNLIMITED, unit=1)
    assert world.session.transfer().redelivered


def test_exclusive_queue_of_0_9_is_locked_for_clients_of_0_9_1_and_0_10(world: World) -> None:
    world.old.declare("mine", exclusive=True)
    world.usual.fails(m.QueueDeclare(queue="mine", exclusive=True), 405)
    world.session.fails(x.QueueDeclare(queue="mine", exclusive=True), 405)
    world.old.drop()
    world.usual.open_channel()
    world.usual.fails(m.QueueDeclare(queue="mine", passive=True), 404)


@rule("0-9/content/mixed-classes", "0-9/queue/any-content#mix")
def test_contents_of_all_classes_wait_in_one_queue(world: World) -> None:
    old = world.old
    old.declare("q")
    old.send_content(m.StreamPublish(routing_key="q"), StreamProperties(content_type="s"), b"stream")
    old.call(m.FileOpen(identifier="f", content_size=4), m.FileOpenOk)
    old.send_content(m.FileStage(), FileProperties(filename="n"), b"file")
    old.send(m.FilePublish(routing_key="q", identifier="f"))
    old.publish(b"basic", routing_key="q")
    assert world.usual.count("q") == 3
    old.consume("q", "basic", no_ack=True)
    assert old.bodies() == [b"basic"]
    # Those who know no such classes see messages like any others.
    got = world.usual.get("q", no_ack=True)
    assert got is not None and (got.body, got.properties.content_type) == (b"stream", "s")
    got = world.usual.get("q", no_ack=True)
    assert got is not None and got.body == b"file"
