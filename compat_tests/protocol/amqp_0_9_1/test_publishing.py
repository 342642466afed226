from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties


def publish_bytes(client: Client, exchange: str, routing_key: str, body: bytes) -> bytes:
    """A publish on channel 1, to be sent in one write with others."""
    method = m.BasicPublish(exchange=exchange, routing_key=routing_key)
    frames = content_frames(1, 60, BasicProperties().encode(), body, 4000)
    return client.method_frame(method) + b"".join(frames)


# --- the exchange ------------------------------------------------------------------------------------
@pytest.mark.rule("0-9/basic.publish/missing-exchange", "0-9-1/basic.publish/exchange-must-exist")
def test_publishing_to_a_missing_exchange_closes_the_channel(client: Client) -> None:
    client.publish(exchange="missing", routing_key="k")
    client.expect_channel_close(404, text="NOT_FOUND - no exchange 'missing' in vhost '/'", at=(60, 40))


def test_publish_to_exchange_deleted_after_an_equal_publish_is_refused(client: Client) -> None:
    client.declare_exchange("x").publish(exchange="x", routing_key="k").expect_nothing()
    client.perform(m.ExchangeDelete(exchange="x"))
    client.publish(exchange="x", routing_key="k").expect_channel_close(404)


@pytest.mark.rule("0-9-1/basic.publish/exchange-default-exchange")
def test_default_exchange_routes_message_to_queue_named_by_routing_key(client: Client) -> None:
    assert client.declare("q").publish(b"to q", exchange="", routing_key="q").empty("q") == [b"to q"]


@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9-1/basic.publish/exchange-02")
def test_publishing_to_an_internal_exchange_is_refused(server: Server) -> None:
    client = server.client()
    server.vhost.exchanges.declare("inner", "fanout").internal = True
    client.publish(exchange="inner")
    client.expect_channel_close(
        403, text="ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'", at=(60, 40)
    )


def test_internal_exchange_routes_messages_from_a_bound_exchange(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare_exchange("inner", "fanout", internal=True)
    client.declare_exchange("outer", "fanout")
    client.perform(m.ExchangeBind(destination="inner", source="outer")).declare("q").bind("q", "inner")
    assert client.publish(b"through", exchange="outer").empty("q") == [b"through"]


@pytest.mark.needs("settings")
@pytest.mark.rule("0-9-1/basic.publish/access-denied")
def test_publishing_without_write_permission_is_refused(server: Server) -> None:
    server.state.access.add(User("reader", "secret", (), {"/": Permission(write="")}))
    client = server.client(user="reader", password="secret")
    client.declare("q").publish(exchange="amq.direct", routing_key="k")
    client.expect_channel_close(
        403,
        text="ACCESS_REFUSED - write access to exchange 'amq.direct' in vhost '/' refused for user 'reader'",
        at=(60, 40),
    )


@pytest.mark.rule("0-9-1/basic.publish/after-exception-ignored")
def test_publish_pipelined_after_a_refused_publish_is_discarded(client: Client) -> None:
    client.declare("q")
    client.send_bytes(publish_bytes(client, "missing", "k", b"1") + publish_bytes(client, "", "q", b"2"))
    client.expect_channel_close(404)
    client.expect_nothing()
    assert client.open_channel().count("q") == 0


# --- mandatory ---------------------------------------------------------------------------------------
@pytest.mark.rule("0-9/reply-code/no-route", "0-9/server-model/unroutable-choice#returned")
@pytest.mark.rule("0-9-1/basic.publish/mandatory-01")
def test_unroutable_mandatory_message_is_returned(client: Client) -> None:
    client.declare("q").bind("q", "amq.direct", "bound")
    client.publish(b"lost", exchange="amq.direct", routing_key="unbound", mandatory=True)
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert returned.body == b"lost"

    client.publish(b"kept", exchange="amq.direct", routing_key="bound", mandatory=True).expect_nothing()
    assert client.empty("q") == [b"kept"]


@pytest.mark.rule("0-9/server-model/unroutable-choice#dropped", "0-9-1/basic.publish/mandatory-clear")
def test_unroutable_message_without_mandatory_is_dropped_silently(client: Client) -> None:
    client.publish(exchange="amq.direct", routing_key="unbound").expect_nothing()
    client.declare("q")  # The channel is open.


def test_mandatory_message_routed_by_alternate_exchange_is_not_returned(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare_exchange("x", arguments={"alternate-exchange": "amq.fanout"})
    client.declare("q").bind("q", "amq.fanout")
    client.publish(b"saved", exchange="x", routing_key="unbound", mandatory=True).expect_nothing()
    saved = client.fetch("q")
    assert (saved.method.exchange, saved.method.routing_key, saved.body) == ("x", "unbound", b"saved")


# --- immediate ---------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.publish/immediate-01")
def test_spec_personality_returns_immediate_message_without_consumer(spec: Server) -> None:
    client = spec.client().declare("q")
    returned = client.publish(b"now", routing_key="q", immediate=True).expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (313, "NO_CONSUMERS")
    assert (returned.method.routing_key, returned.body) == ("q", b"now")
    assert client.count("q") == 0


@pytest.mark.deviates("0-9-1/basic.publish/immediate-01", "0-9-1/basic.publish/immediate-ready-consumer")
@pytest.mark.deviates("0-9-1/basic.publish/immediate-window-full#window")
@pytest.mark.deviates("0-9-1/basic.publish/immediate-window-full#older", "0-9-1/reply-code/no-consumers")
@pytest.mark.parametrize("exchange", ["", "missing"])
def test_rabbitmq_refuses_immediate_publish_with_540(rabbitmq: Server, exchange: str) -> None:
    client = rabbitmq.client().publish(exchange=exchange, routing_key="q", immediate=True)
    client.expect_connection_close(540, text="NOT_IMPLEMENTED - immediate=true", at=(60, 40))


@pytest.mark.rule("0-9-1/basic.publish/immediate-clear")
def test_a_message_waits_in_a_queue_without_consumers(client: Client) -> None:
    client.declare("q").publish(b"patient", routing_key="q").expect_nothing()
    assert client.empty("q") == [b"patient"]


@pytest.mark.rule("0-9-1/basic.publish/immediate-ready-consumer")
def test_spec_personality_delivers_immediate_message_to_ready_consumer(spec: Server) -> None:
    client = spec.client().declare("q").consume("q")
    assert client.publish(b"now", routing_key="q", immediate=True).delivery().body == b"now"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.publish/immediate-window-full#window")
def test_spec_personality_returns_immediate_message_while_prefetch_window_is_full(spec: Server) -> None:
    client = spec.client()
    client.declare("q").qos(1).consume("q")
    assert client.publish(b"1", routing_key="q", immediate=True).delivery().body == b"1"
    returned = client.publish(b"2", routing_key="q", immediate=True).expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.body) == (313, b"2")
    assert client.count("q") == 0


@pytest.mark.rule("0-9-1/basic.publish/immediate-window-full#older")
def test_spec_personality_returns_immediate_message_from_queue_with_older_messages(spec: Server) -> None:
    client = spec.client().declare("q").fill("q", b"old")
    client.publish(b"new", routing_key="q", immediate=True)
    assert client.expect_content(m.BasicReturn).body == b"new"
    assert client.empty("q") == [b"old"]


def test_immediate_message_is_queued_only_in_queues_with_a_ready_consumer(spec: Server) -> None:
    client = spec.client().declare("busy").declare("ready")
    for queue in ("busy", "ready"):
        client.bind(queue, "amq.fanout")
    client.consume("ready")
    assert client.publish(b"now", exchange="amq.fanout", immediate=True).delivery().body == b"now"
    client.expect_nothing()
    assert client.count("busy") == 0


def test_unroutable_immediate_message_is_dropped_silently(spec: Server) -> None:
    client = spec.client()
    client.publish(exchange="amq.direct", routing_key="unbound", immediate=True).expect_nothing()


# --- order of the checks -----------------------------------------------------------------------------
def limited_user(server: Server) -> Client:
    """Somebody who may write to exchanges with ok in their names."""
    server.state.access.add(User("limited", "secret", (), {"/": Permission(write="ok")}))
    return server.client(user="limited", password="secret")


@pytest.mark.needs("settings")
def test_publish_checks_write_permission_before_existence_of_exchange(server: Server) -> None:
    client = limited_user(server)
    client.publish(exchange="missing").expect_channel_close(403)
    client.open_channel().publish(exchange="missing-but-ok").expect_channel_close(404)


@pytest.mark.needs("settings")
def test_write_permission_calls_the_default_exchange_amq_default(server: Server) -> None:
    close = limited_user(server).publish(routing_key="ok").expect_channel_close(403)
    assert "write access to exchange 'amq.default' in vhost '/'" in close.reply_text


def test_publish_checks_existence_of_exchange_before_properties(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.publish(exchange="missing", user_id="somebody", expiration="x").expect_channel_close(404)


@pytest.mark.needs("settings")
def test_publish_checks_message_size_before_write_permission(rabbitmq: Server) -> None:
    client = limited_user(rabbitmq)
    size = 16 * 1024 * 1024
    client.publish(b"x" * size, exchange="ok-but-missing").expect_channel_close(404)
    client.open_channel().publish(b"x" * (size + 1), exchange="refused")
    client.expect_channel_close(
        406, text=f"PRECONDITION_FAILED - message size {size + 1} is larger than configured max size {size}"
    )


def test_publish_checks_internal_exchange_before_expiration(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare_exchange("inner", "fanout", internal=True)
    client.publish(exchange="inner", expiration="x").expect_channel_close(403)


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_publish_checks_user_id_after_expiration_and_cc_header(rabbitmq: Server) -> None:
    client = rabbitmq.client().publish(routing_key="q", user_id="somebody", expiration="x")
    assert "invalid expiration 'x'" in client.expect_channel_close(406).reply_text
    client.open_channel().publish(routing_key="q", user_id="somebody", headers={"CC": "no array"})
    assert "unacceptable_type_in_header" in client.expect_channel_close(406).reply_text


# --- contents ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [0, 1, 131_064, 131_065, 400_000])
def test_bodies_of_any_size_arrive_whole(client: Client, size: int) -> None:
    client.declare("q")
    body = bytes(range(256)) * (size // 256 + 1)
    assert client.publish(body[:size], routing_key="q", frame_size=4000).fetch("q").body == body[:size]


def test_interleaved_content_frames_of_two_channels_are_separate_messages(client: Client) -> None:
    client.open_channel(2).declare("q")
    properties = BasicProperties().encode()
    first = content_frames(1, 60, properties, b"first", 3)
    second = content_frames(2, 60, properties, b"second", 4)
    method = m.BasicPublish(routing_key="q")
    client.send(method, 1).send(method, 2)
    for one, other in zip(first, second, strict=True):
        client.send_bytes(one).send_bytes(other)
    assert client.empty("q") == [b"first", b"second"]
