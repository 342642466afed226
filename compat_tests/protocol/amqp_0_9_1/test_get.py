from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.rule("0-9-1/basic.get/one-message")
def test_get_takes_one_message(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"1", b"2")
    client.send(m.BasicGet(queue="q"))
    got = client.expect_content(m.BasicGetOk)
    assert (got.body, got.method.message_count) == (b"1", 1)
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.get/queue-must-exist")
def test_getting_from_a_missing_queue_closes_the_channel(client: Client) -> None:
    close = client.fails(m.BasicGet(queue="missing"), 404)
    assert close.reply_text == "NOT_FOUND - no queue 'missing' in vhost '/'"
    assert (close.class_id, close.method_id) == (60, 70)


@pytest.mark.needs("settings")
def test_get_checks_read_permission_before_existence_of_queue(server: Server) -> None:
    server.state.access.add(User("writer", "secret", (), {"/": Permission(read="")}))
    client = server.client(user="writer", password="secret")
    close = client.fails(m.BasicGet(queue="missing"), 403)
    assert close.reply_text == (
        "ACCESS_REFUSED - read access to queue 'missing' in vhost '/' refused for user 'writer'"
    )


@pytest.mark.rule("0-9-1/basic.get/no-ack#set", "0-9-1/basic.get/no-ack#clear")
def test_message_of_get_with_no_ack_is_not_requeued_on_channel_close(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"acknowledged or not", b"at once")
    client.get("q")
    client.get("q", no_ack=True)
    client.close_channel()
    client.open_channel()
    assert client.empty("q") == [b"acknowledged or not"]


@pytest.mark.rule("0-9-1/basic.get/exclusive-consumer")
def test_spec_personality_refuses_get_beside_exclusive_consumer(spec: Server) -> None:
    one, other = spec.client(), spec.client()
    one.declare("q")
    one.consume("q", exclusive=True)
    assert other.fails(m.BasicGet(queue="q"), 403).reply_text == (
        "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
    )
    one.call(m.BasicGet(queue="q"), m.BasicGetEmpty)


@pytest.mark.deviates("0-9-1/basic.get/exclusive-consumer")
def test_rabbitmq_allows_get_beside_exclusive_consumer(rabbitmq: Server) -> None:
    one, other = rabbitmq.client(), rabbitmq.client()
    one.declare("q")
    one.qos(1)
    one.consume("q", exclusive=True)
    one.fill("q", b"1", b"2")
    got = other.get("q")
    assert got is not None
    assert got.body == b"2"


@pytest.mark.rule(
    "0-9-1/basic.get-ok/fields#tag", "0-9-1/basic.get-ok/fields#source", "0-9-1/basic.get-ok/fields#count"
)
def test_get_ok_carries_delivery_tag_exchange_routing_key_and_message_count(client: Client) -> None:
    client.declare("q")
    client.bind("q", "amq.topic", "a.#")
    client.publish(b"first", exchange="amq.topic", routing_key="a.b.c")
    client.publish(b"second", exchange="amq.topic", routing_key="a")
    client.send(m.BasicGet(queue="q"))
    frame = client.take_frame()
    assert frame.payload == (
        b"\x00\x3c\x00\x47" + b"\0\0\0\0\0\0\0\x01" + b"\0" + b"\x09amq.topic" + b"\x05a.b.c" + b"\0\0\0\x01"
    )
    client.take_frame()
    assert client.take_frame().payload == b"first"


@pytest.mark.rule("0-9-1/basic.get-ok/fields#redelivered")
def test_get_ok_sets_redelivered_for_requeued_message(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q")
    one.fill("q", b"m")
    first = one.get("q")
    one.drop()
    second = other.get("q")
    assert first is not None
    assert second is not None
    assert (first.method.redelivered, second.method.redelivered) == (False, True)


@pytest.mark.rule("0-9-1/basic.get-ok/must-ack")
def test_unacknowledged_message_of_get_is_requeued_on_channel_close(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"m")
    client.get("q")
    client.close_channel()
    client.open_channel()
    again = client.get("q")
    assert again is not None
    assert (again.body, again.method.redelivered) == (b"m", True)
    client.ack(again.method.delivery_tag)
    client.close_channel()
    client.open_channel()
    assert client.get("q") is None


@pytest.mark.rule("0-9/basic.get-ok/message-count")
@pytest.mark.rule("0-9-1/basic.get-ok/message-count#itself", "0-9-1/basic.get-ok/message-count#unacked")
def test_message_count_of_get_ok_counts_remaining_ready_messages(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"1", b"2", b"3")
    counts = []
    while (got := client.get("q")) is not None:
        counts.append(got.method.message_count)
    assert counts == [2, 1, 0]


@pytest.mark.rule("0-9/basic.get-empty/cluster-id")
@pytest.mark.rule("0-9-1/basic.get-empty/empty")
def test_get_on_empty_queue_is_answered_with_get_empty(client: Client) -> None:
    client.declare("q")
    client.send(m.BasicGet(queue="q"))
    assert client.take_frame().payload == b"\x00\x3c\x00\x48\x00"


@pytest.mark.rule("0-9-1/basic.get-empty/empty")
def test_get_on_queue_with_only_unacknowledged_messages_is_answered_with_get_empty(client: Client) -> None:
    client.declare("q")
    client.fill("q", b"m")
    client.get("q")
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)


def test_get_with_empty_queue_name_uses_the_queue_declared_last(client: Client) -> None:
    name = client.declare("").queue
    client.fill(name, b"m")
    got = client.get("")
    assert got is not None
    assert got.body == b"m"
