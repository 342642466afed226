"""The same exchange, queue and message seen by clients of 0-9, 0-9-1 and 0-10 at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from compat_tests.scripted import amqp_0_9_1
from compat_tests.scripted.amqp_0_9 import Client as Client09
from compat_tests.scripted.amqp_0_10 import UNLIMITED, Server, Session
from fakeamqp.connection import PeerAddress
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9.codec.properties import FileProperties, StreamProperties
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x

rule = pytest.mark.rule


@dataclass
class World:
    """One broker with a client of each protocol, which has channel 1 or a session open."""

    server: Server
    old: Client09
    usual: amqp_0_9_1.Client
    session: Session


@pytest.fixture
def world() -> Iterator[World]:
    server = Server("rabbitmq-4.2")
    old = Client09(server, PeerAddress(port=40_009))
    old.protocol_header = amqp_0_9_1.PROTOCOL_HEADERS["0-9"]
    old.handshake()
    old.open_channel()
    world = World(server, old, server.client(), server.session())
    protocols = [each.protocol for each in server.state.connections]
    assert protocols == ["0-9", "0-9-1", "0-10"]
    yield world


def test_queue_exchange_and_binding_are_shared_by_clients_of_three_protocols(world: World) -> None:
    world.old.declare("q")
    assert world.usual.declare("q", passive=True).queue == "q"
    assert world.session.query("q").queue == "q"
    world.session.declare_exchange("x", "fanout")
    world.usual.bind("q", "x")
    world.old.publish(b"one", exchange="x")
    assert world.usual.count("q") == 1
    world.old.call(m.QueueUnbind(queue="q", exchange="x"), m.QueueUnbindOk)
    world.usual.publish(b"two", exchange="x")
    assert world.session.query("q").message_count == 1
    assert world.usual.call(m.QueueDelete(queue="q"), m.QueueDeleteOk).message_count == 1
    world.old.send(m.QueueDeclare(queue="q", passive=True))
    world.old.expect_channel_close(404)


def test_one_message_reaches_a_consumer_of_each(world: World) -> None:
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
            assert content.properties.headers == {"n": 1}
            assert content.properties.priority == 3
        transfer = world.session.transfer()
        assert transfer.body == b"m"
        assert transfer.delivery.exchange == "amq.fanout"
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
    world.old.declare("q", exclusive=True)
    world.usual.send(m.QueueDeclare(queue="q", exclusive=True))
    world.usual.expect_channel_close(405)
    world.session.fails(x.QueueDeclare(queue="q", exclusive=True), 405)
    world.old.drop()
    world.usual.open_channel()
    world.usual.send(m.QueueDeclare(queue="q", passive=True))
    world.usual.expect_channel_close(404)


@rule("0-9/content/mixed-classes", "0-9/queue/any-content#mix")
def test_contents_of_all_classes_wait_in_one_queue(world: World) -> None:
    old = world.old
    old.declare("q")
    old.send_content(m09.StreamPublish(routing_key="q"), StreamProperties(content_type="s"), b"stream")
    old.call(m09.FileOpen(identifier="f", content_size=4), m09.FileOpenOk)
    old.send_content(m09.FileStage(), FileProperties(filename="n"), b"file")
    old.send(m09.FilePublish(routing_key="q", identifier="f"))
    old.publish(b"basic", routing_key="q")
    assert world.usual.count("q") == 3
    old.consume("q", "basic", no_ack=True)
    assert old.bodies() == [b"basic"]
    # Those who know no such classes see messages like any others.
    got = world.usual.get("q", no_ack=True)
    assert got is not None and (got.body, got.properties.content_type) == (b"stream", "s")
    got = world.usual.get("q", no_ack=True)
    assert got is not None and got.body == b"file"
