from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.rule("0-9-1/basic.get/one-message")
def test_get_takes_one_message(client: Client) -> None:
    got = client.declare("q").fill("q", b"1", b"2").send(m.BasicGet(queue="q")).expect_content(m.BasicGetOk)
    assert (got.body, got.method.message_count) == (b"1", 1)
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.get/queue-must-exist")
def test_getting_from_a_missing_queue_closes_the_channel(client: Client) -> None:
    client.fails(m.BasicGet(queue="missing"), 404, text="NOT_FOUND - no queue 'missing' in vhost '/'")


@pytest.mark.needs("settings")
def test_get_checks_read_permission_before_existence_of_queue(server: Server) -> None:
    server.state.access.add(User("writer", "secret", (), {"/": Permission(read="")}))
    client = server.client(user="writer", password="secret")
    client.fails(
        m.BasicGet(queue="missing"),
        403,
        text="ACCESS_REFUSED - read access to queue 'missing' in vhost '/' refused for user 'writer'",
    )


@pytest.mark.rule("0-9-1/basic.get/no-ack#set", "0-9-1/basic.get/no-ack#clear")
def test_message_of_get_with_no_ack_is_not_requeued_on_channel_close(client: Client) -> None:
    client.declare("q").fill("q", b"acknowledged or not", b"at once").get("q")
    client.get("q", no_ack=True)
    assert client.close_channel().open_channel().empty("q") == [b"acknowledged or not"]


@pytest.mark.rule("0-9-1/basic.get/exclusive-consumer")
def test_spec_personality_refuses_get_beside_exclusive_consumer(spec: Server) -> None:
    one, other = spec.client(), spec.client()
    one.declare("q").consume("q", exclusive=True)
    assert other.fails(m.BasicGet(queue="q"), 403).reply_text == (
        "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
    )
    one.call(m.BasicGet(queue="q"), m.BasicGetEmpty)


@pytest.mark.deviates("0-9-1/basic.get/exclusive-consumer")
def test_rabbitmq_allows_get_beside_exclusive_consumer(rabbitmq: Server) -> None:
    one, other = rabbitmq.client(), rabbitmq.client()
    one.declare("q").qos(1).consume("q", exclusive=True)
    one.fill("q", b"1", b"2")
    assert other.fetch("q").body == b"2"


@pytest.mark.rule("0-9-1/basic.get-ok/fields#tag", "0-9-1/basic.get-ok/fields#source")
@pytest.mark.rule("0-9-1/basic.get-ok/fields#count")
def test_get_ok_carries_delivery_tag_exchange_routing_key_and_message_count(client: Client) -> None:
    client.declare("q").bind("q", "amq.topic", "a.#")
    client.publish(b"first", exchange="amq.topic", routing_key="a.b.c")
    client.publish(b"second", exchange="amq.topic", routing_key="a")
    frame = client.send(m.BasicGet(queue="q")).take_frame()
    assert frame.payload == (
        b"\x00\x3c\x00\x47" + b"\0\0\0\0\0\0\0\x01" + b"\0" + b"\x09amq.topic" + b"\x05a.b.c" + b"\0\0\0\x01"
    )
    client.take_frame()
    assert client.take_frame().payload == b"first"


@pytest.mark.rule("0-9-1/basic.get-ok/fields#redelivered")
def test_get_ok_sets_redelivered_for_requeued_message(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    first = one.declare("q").fill("q", b"m").get("q")
    one.drop()
    second = other.get("q")
    assert first is not None
    assert second is not None
    assert (first.method.redelivered, second.method.redelivered) == (False, True)


@pytest.mark.rule("0-9-1/basic.get-ok/must-ack")
def test_unacknowledged_message_of_get_is_requeued_on_channel_close(client: Client) -> None:
    client.declare("q").fill("q", b"m").get("q")
    again = client.close_channel().open_channel().fetch("q")
    assert (again.body, again.method.redelivered) == (b"m", True)
    assert client.ack(again.method.delivery_tag).close_channel().open_channel().get("q") is None


@pytest.mark.rule("0-9/basic.get-ok/message-count")
@pytest.mark.rule("0-9-1/basic.get-ok/message-count#itself", "0-9-1/basic.get-ok/message-count#unacked")
def test_message_count_of_get_ok_counts_remaining_ready_messages(client: Client) -> None:
    client.declare("q").fill("q", b"1", b"2", b"3")
    counts = []
    while (got := client.get("q")) is not None:
        counts.append(got.method.message_count)
    assert counts == [2, 1, 0]


@pytest.mark.rule("0-9/basic.get-empty/cluster-id", "0-9-1/basic.get-empty/empty")
def test_get_on_empty_queue_is_answered_with_get_empty(client: Client) -> None:
    assert client.declare("q").send(m.BasicGet(queue="q")).take_frame().payload == b"\x00\x3c\x00\x48\x00"


@pytest.mark.rule("0-9-1/basic.get-empty/empty")
def test_get_on_queue_with_only_unacknowledged_messages_is_answered_with_get_empty(client: Client) -> None:
    client.declare("q").fill("q", b"m").get("q")
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)


def test_get_with_empty_queue_name_uses_the_queue_declared_last(client: Client) -> None:
    name = client.declare_ok("").queue
    assert client.fill(name, b"m").fetch("").body == b"m"
