from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


# --- consume -----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.consume/01")
def test_queue_delivers_to_fifty_consumers(client: Client) -> None:
    client.declare("q")
    tags = {client.consume_ok("q", f"c{number}").consumer_tag for number in range(50)}
    assert client.declare_ok("q", passive=True).consumer_count == len(tags) == 50
    client.fill("q", *[b"m"] * 50)
    assert {client.delivery().method.consumer_tag for _ in range(50)} == tags


@pytest.mark.rule("0-9-1/basic.consume/consumer-tag-01")
def test_consume_with_consumer_tag_in_use_closes_the_connection_with_530(client: Client) -> None:
    client.declare("q").consume("q", "t")
    client.ends(
        m.BasicConsume(queue="q", consumer_tag="t"),
        530,
        text="NOT_ALLOWED - attempt to reuse consumer tag 't'",
    )


def test_consume_checks_consumer_tag_before_existence_of_queue(client: Client) -> None:
    client.declare("q").consume("q", "t").ends(m.BasicConsume(queue="missing", consumer_tag="t"), 530)


def test_consumer_tag_is_free_again_after_cancel(client: Client) -> None:
    client.declare("q").consume("q", "t").perform(m.BasicCancel(consumer_tag="t"))
    assert client.consume_ok("q", "t").consumer_tag == "t"


@pytest.mark.rule("0-9-1/basic.consume/consumer-tag-02")
@pytest.mark.protocols("0-9-1")
def test_a_consumer_is_known_on_its_own_channel_only(client: Client) -> None:
    client.open_channel(2).declare("q")
    client.consume("q", "t", channel=1).perform(m.BasicCancel(consumer_tag="t"), channel=2)
    assert client.declare_ok("q", passive=True).consumer_count == 1
    delivery = client.fill("q", b"still here").delivery(channel=1)
    assert delivery.method.consumer_tag == "t"
    client.ack(delivery.method.delivery_tag, channel=2).expect_channel_close(406, channel=2)
    client.close_channel(1).open_channel(1)
    assert client.empty("q") == [b"still here"], "what it holds is not for the other channel to settle"
    client.consume("q", "t", channel=1)
    assert client.open_channel(2).consume_ok("q", "t", channel=2).consumer_tag == "t"


@pytest.mark.rule("0-9-1/basic.consume/exclusive-01")
def test_exclusive_consume_on_queue_with_consumer_is_refused(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").consume("q")
    other.fails(
        m.BasicConsume(queue="q", exclusive=True),
        403,
        text="ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use",
    )
    assert one.declare_ok("q", passive=True).consumer_count == 1


@pytest.mark.rule("0-9-1/basic.consume/exclusive-blocks-others")
def test_second_consumer_beside_exclusive_consumer_is_refused(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").consume("q", exclusive=True).open_channel(2)
    for client, channel in ((one, 2), (other, 1)):
        client.fails(m.BasicConsume(queue="q"), 403, channel=channel)


@pytest.mark.rule("0-9-1/basic.consume/exclusive-released")
def test_queue_accepts_other_consumers_after_exclusive_consumer_ends(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").consume("q", "t", exclusive=True).perform(m.BasicCancel(consumer_tag="t"))
    other.consume("q", exclusive=True).drop()
    assert one.consume("q").fill("q", b"m").bodies() == [b"m"]


@pytest.mark.rule("0-9-1/basic.consume/empty-tag-generated")
def test_empty_consumer_tag_is_replaced_by_a_unique_generated_tag(client: Client) -> None:
    client.declare("q")
    tags = {client.consume_ok("q").consumer_tag for _ in range(10)}
    assert len(tags) == 10
    assert all(len(tag) == 31 and tag.startswith("amq.ctag-") for tag in tags)


@pytest.mark.rule("0-9-1/basic.consume/queue-must-exist")
def test_consuming_from_a_missing_queue_closes_the_channel(client: Client) -> None:
    client.fails(m.BasicConsume(queue="missing"), 404, text="NOT_FOUND - no queue 'missing' in vhost '/'")


@pytest.mark.needs("settings")
def test_consume_checks_read_permission_before_existence_of_queue(server: Server) -> None:
    server.state.access.add(User("writer", "secret", (), {"/": Permission(read="")}))
    client = server.client(user="writer", password="secret")
    client.fails(
        m.BasicConsume(queue="missing"),
        403,
        text="ACCESS_REFUSED - read access to queue 'missing' in vhost '/' refused for user 'writer'",
    )


@pytest.mark.rule("0-9/server-model/consumers-per-channel", "0-9-1/basic.consume/lifetime#channel")
def test_a_consumer_ends_with_its_channel(client: Client) -> None:
    client.open_channel(2).declare("q").consume("q", channel=2)
    assert client.fill("q", b"1").delivery(2).body == b"1"
    assert client.close_channel(2).declare_ok("q", passive=True).consumer_count == 0
    client.fill("q", b"2").expect_nothing()


@pytest.mark.rule("0-9-1/basic.consume/no-wait-silent")
def test_consume_with_no_wait_is_answered_by_deliveries_only(client: Client) -> None:
    client.declare("q").fill("q", b"m")
    delivery = client.send(m.BasicConsume(queue="q", consumer_tag="t", no_wait=True)).delivery()
    assert (delivery.method.consumer_tag, delivery.body) == ("t", b"m")
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.consume/arguments")
def test_consume_with_unknown_x_argument_is_accepted(client: Client) -> None:
    client.declare("q").send(m.BasicConsume(queue="q", consumer_tag="t", arguments={"unknown": 1}))
    assert client.expect(m.BasicConsumeOk).consumer_tag == "t"


@rows("value, kind", ("5", "longstr"), (1.5, "double"), (None, "void"), (True, "bool"))
def test_consume_with_non_integer_x_priority_is_refused(rabbitmq: Server, value: object, kind: str) -> None:
    client = rabbitmq.client().declare("q")
    client.fails(
        m.BasicConsume(queue="q", arguments={"x-priority": value}),
        406,
        text="PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': "
        f'"expected integer, got {kind}"',
    )


def test_consume_with_x_stream_offset_on_classic_queue_is_refused(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    assert client.fails(
        m.BasicConsume(queue="q", arguments={"x-stream-offset": "first"}), 406
    ).reply_text == (
        "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q' in vhost '/' "
        "of queue type rabbit_classic_queue"
    )


@pytest.mark.rule("0-9-1/basic.consume/existing-messages")
def test_new_consumer_receives_messages_already_in_the_queue(client: Client) -> None:
    assert client.declare("q").fill("q", b"1", b"2", b"3").consume("q").bodies() == [b"1", b"2", b"3"]


@pytest.mark.rule("0-9-1/basic.consume/consume-ok-first")
def test_consume_ok_comes_before_the_first_delivery(client: Client) -> None:
    client.declare("q").fill("q", b"m").send(m.BasicConsume(queue="q"))
    methods = [frame.method for frame in client.inbox if frame.method is not None]
    assert [type(method) for method in methods] == [m.BasicConsumeOk, m.BasicDeliver]


@pytest.mark.rule("0-9-1/basic.consume-ok/tag#client", "0-9-1/basic.consume-ok/tag#server")
def test_consume_ok_and_deliveries_carry_the_same_tag(client: Client) -> None:
    assert client.declare("q").consume_ok("q", "t").consumer_tag == "t"
    assert client.fill("q", b"m").delivery().method.consumer_tag == "t"
    made = client.perform(m.BasicCancel(consumer_tag="t")).consume_ok("q", "").consumer_tag
    assert client.fill("q", b"m").delivery().method.consumer_tag == made != ""


# --- turns -------------------------------------------------------------------------------------------
def takers(client: Client, count: int) -> list[str]:
    """Whose the next `count` deliveries are."""
    return [client.delivery().method.consumer_tag for _ in range(count)]


def test_messages_are_delivered_to_consumers_in_round_robin_order(client: Client) -> None:
    client.declare("q")
    for tag in ("1", "2", "3"):
        client.consume("q", tag, no_ack=True)
    client.fill("q", *[b"m"] * 7)
    assert takers(client, 7) == ["1", "2", "3", "1", "2", "3", "1"]


def test_round_robin_includes_consumers_of_other_connections(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").consume("q")
    other.consume("q")
    assert one.fill("q", b"1", b"2", b"3", b"4").bodies() == [b"1", b"3"]
    assert other.bodies() == [b"2", b"4"]


def test_consumer_with_full_prefetch_window_is_skipped_in_round_robin(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").qos(1)
    client.consume("q", "1").consume("q", "2").fill("q", b"0", b"1", b"2", b"3")
    assert takers(client, 2) == ["1", "2"]
    client.expect_nothing()
    client.ack(2)
    assert takers(client, 1) == ["2"]
    client.expect_nothing()
    client.ack(1)
    assert takers(client, 1) == ["1"]


# --- cancel ------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.cancel/01")
def test_cancel_after_queue_was_deleted_is_answered_with_cancel_ok(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").consume("q", "t")
    other.perform(m.QueueDelete(queue="q"))
    assert one.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk).consumer_tag == "t"
    one.expect_nothing()


@pytest.mark.rule("0-9-1/basic.consume/lifetime#cancel", "0-9-1/basic.cancel/stops")
def test_no_message_is_delivered_after_cancel_ok(client: Client) -> None:
    assert client.declare("q").consume("q", "t").fill("q", b"0").delivery().body == b"0"
    client.perform(m.BasicCancel(consumer_tag="t")).fill("q", b"1", b"2").expect_nothing()
    assert client.count("q") == 2


@pytest.mark.rule("0-9-1/basic.cancel/outstanding-remain")
def test_message_delivered_before_cancel_can_still_be_acknowledged(client: Client) -> None:
    assert client.declare("q").consume("q", "t").fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    assert client.perform(m.BasicCancel(consumer_tag="t")).count("q") == 0
    client.ack(1).expect_nothing()
    assert client.close_channel().open_channel().empty("q") == [b"2"]


@pytest.mark.rule("0-9-1/basic.cancel/inflight")
def test_deliveries_sent_before_cancel_arrive_before_cancel_ok(client: Client) -> None:
    client.declare("q").fill("q", *[b"m"] * 100)
    client.send(m.BasicConsume(queue="q", consumer_tag="t", no_wait=True))
    client.send(m.BasicCancel(consumer_tag="t")).fill("q", b"later")
    for _ in range(100):
        assert client.delivery().body == b"m"
    client.expect(m.BasicCancelOk)
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.cancel/unknown-tag")
def test_cancel_of_unknown_consumer_tag_is_answered_with_cancel_ok(client: Client) -> None:
    assert client.call(m.BasicCancel(consumer_tag="nope"), m.BasicCancelOk).consumer_tag == "nope"
    client.send(m.BasicCancel(consumer_tag="nope", no_wait=True)).expect_nothing()


@pytest.mark.rule("0-9-1/basic.cancel/no-wait-silent")
def test_cancel_with_no_wait_is_not_answered(client: Client) -> None:
    assert client.declare("q").consume("q", "t").fill("q", b"1").bodies() == [b"1"]
    client.send(m.BasicCancel(consumer_tag="t", no_wait=True))
    assert client.fill("q", b"2").declare_ok("q", passive=True).consumer_count == 0
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.cancel-ok/tag")
def test_cancel_ok_names_the_consumer(client: Client) -> None:
    client.declare("q").consume("q", "t").send(m.BasicCancel(consumer_tag="t"))
    assert client.take_frame().payload == b"\x00\x3c\x00\x1f\x01t"


def test_auto_delete_queue_is_deleted_with_its_last_consumer(client: Client) -> None:
    client.declare("q", auto_delete=True).consume("q", "1")
    client.consume("q", "2").perform(m.BasicCancel(consumer_tag="1"))
    client.declare("q", passive=True).perform(m.BasicCancel(consumer_tag="2"))
    client.fails(m.QueueDeclare(queue="q", passive=True), 404)
