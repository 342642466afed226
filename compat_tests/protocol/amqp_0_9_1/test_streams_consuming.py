"""Consumers of streams: what they must ask for, where they begin, and how far their credit goes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.streams import (
    ALL,
    BEFORE_4_0,
    BEFORE_4_2,
    QUEUE,
    RABBITMQ,
    consume,
    crashed,
    declare,
    offsets,
    read,
    refused_connection,
)
from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicConsume
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

NUMBERS = [b"0", b"1", b"2", b"3", b"4"]


@pytest.fixture(params=ALL)
def server(request: pytest.FixtureRequest) -> Server:
    """A broker with a stream of five messages, written a minute after each other."""
    server = Server(request.param)
    client = declare(server.client())
    for number in NUMBERS:
        client.fill("s", number)
        server.advance(60)
    return server


@pytest.fixture
def client(server: Server) -> Client:
    return server.client()


def asking(offset: Any = None, **arguments: Any) -> BasicConsume:
    table = {} if offset is None else {"x-stream-offset": offset}
    table |= {name.replace("_", "-"): value for name, value in arguments.items()}
    return BasicConsume(queue="s", arguments=table)


def skip_bytes(server: Server, value: Any) -> None:
    if isinstance(value, bytes) and server.state.personality.published_field_grammar:
        pytest.skip("the published grammar has no bytes")


def deliveries(client: Client) -> list[Any]:
    contents = []
    while client.inbox:
        contents.append(client.delivery())
    return contents


# --- what is asked of consumers ----------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_consume_from_stream_without_prefetch_count_is_refused_with_406(client: Client) -> None:
    named = "'{}'" if client.server.state.personality.name in BEFORE_4_0 else "stream {}"
    text = f"PRECONDITION_FAILED - consumer prefetch count is not set for {named.format(QUEUE)}"
    refused(client, asking(), 406, text)
    client.qos(5).qos(0)
    refused(client, asking(), 406, text)
    # Whatever else is wrong.
    refused(client, BasicConsume(queue="s", no_ack=True, arguments={"x-stream-offset": True}), 406, text)


@pytest.mark.needs("virtual time")
def test_no_ack_consume_from_stream_closes_connection_with_540(server: Server, client: Client) -> None:
    client.qos(5)
    named = "stream queues" if server.state.personality.name in BEFORE_4_0 else "stream"
    text = f"NOT_IMPLEMENTED - automatic acknowledgement not supported by {named} {QUEUE}"
    refused_connection(client, BasicConsume(queue="s", no_ack=True), 540, text)


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_consume_from_stream_after_qos_global_is_refused_up_to_4_2(name: str) -> None:
    client = declare(Server(name).client())
    client.qos(5, global_=True).send(asking())
    assert "prefetch count is not set" in client.expect_channel_close(406).reply_text
    client.open_channel().qos(5).qos(5, global_=True)
    refused_connection(client, asking(), 540, f"NOT_IMPLEMENTED - {QUEUE} does not support global qos")


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_qos_per_consumer_after_qos_global_allows_consume_from_stream(name: str) -> None:
    client = declare(Server(name).client())
    client.qos(5, global_=True).qos(5)
    consume(client)


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_qos_global_after_consume_does_not_limit_stream_consumer(name: str) -> None:
    client = Server(name).client()
    declare(client).qos(5)
    consume(client).fill("s", b"0").delivery()
    assert client.qos(1, global_=True).fill("s", b"1", b"2").bodies() == [b"1", b"2"]


@pytest.mark.needs("personality spec")
def test_prefetch_of_channel_counts_as_prefetch_count_in_spec_personality() -> None:
    client = Server("spec").client()
    declare(client).fill("s", *NUMBERS).qos(2)
    assert consume(client).bodies() == [b"0", b"1"]
    assert client.ack(1).bodies() == [b"2"]


@pytest.mark.needs("virtual time")
def test_get_from_stream_closes_connection_with_540(server: Server) -> None:
    text = f"NOT_IMPLEMENTED - basic.get not supported by stream queues {QUEUE}"
    for no_ack in (False, True):
        refused_connection(server.client(), m.BasicGet(queue="s", no_ack=no_ack), 540, text)


def test_get_from_empty_stream_closes_connection_with_540() -> None:
    client = Server().client()
    declare(client).ends(m.BasicGet(queue="s"), 540)


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("value", [5, "bad"])
def test_x_priority_of_stream_consumer_is_refused_with_406(client: Client, value: Any) -> None:
    client.qos(5)
    text = f"PRECONDITION_FAILED - invalid arg 'x-priority' for {QUEUE} of queue type rabbit_stream_queue"
    refused(client, asking(x_priority=value), 406, text)


@pytest.mark.parametrize("name", RABBITMQ)
def test_consumer_arguments_of_stream_are_accepted_or_refused_by_version(name: str) -> None:
    client = Server(name).client()
    declare(client).qos(5)
    refusing = {
        "x-cancel-on-ha-failover": "rabbitmq-3.13",
        "x-consumer-timeout": "rabbitmq-4.3",
        "x-credit": "",
        "x-foo": "",
    }
    for argument, version in refusing.items():
        method = BasicConsume(queue="s", arguments={argument: True})
        if name == version:
            text = f"invalid arg '{argument}' for {QUEUE} of queue type rabbit_stream_queue"
            refused(client, method, 406, f"PRECONDITION_FAILED - {text}")
            client.qos(5)
        else:
            client.call(method, m.BasicConsumeOk)


@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize("argument", ["x-stream-offset", "x-stream-filter", "x-stream-match-unfiltered"])
def test_stream_consumer_arguments_are_refused_by_classic_queue(name: str, argument: str) -> None:
    client = Server(name).client().declare("s", durable=True)
    method = BasicConsume(queue="s", arguments={argument: "first"})
    if name == "rabbitmq-3.13" and argument != "x-stream-offset":
        client.call(method, m.BasicConsumeOk)
    else:
        text = f"invalid arg '{argument}' for {QUEUE} of queue type rabbit_classic_queue"
        refused(client, method, 406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.needs("virtual time")
def test_exclusive_consumer_of_stream_does_not_exclude_other_consumers(client: Client) -> None:
    client.qos(100)
    for tag in ("a", "b"):
        client.call(
            BasicConsume(queue="s", consumer_tag=tag, exclusive=True, arguments={"x-stream-offset": "first"}),
            m.BasicConsumeOk,
        )
        assert client.bodies() == NUMBERS
    assert consume(client).bodies() == NUMBERS


# --- where they begin --------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(
    ("offset", "first"),
    [("first", 0), ("last", 4), (b"first", 0), (b"last", 4), (0, 0), (3, 3), (4, 4), (-7, 0)],
    ids=repr,
)
def test_consumer_begins_at_its_x_stream_offset(server: Server, offset: Any, first: int) -> None:
    skip_bytes(server, offset)
    assert read(server, offset) == NUMBERS[first:]


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("offset", [None, "next", b"next", 5], ids=repr)
def test_consumer_with_offset_next_gets_only_later_messages(client: Client, offset: Any) -> None:
    skip_bytes(client.server, offset)
    client.qos(5)
    consume(client, offset).expect_nothing()
    got = client.fill("s", b"5").delivery()
    assert (got.body, offsets([got])) == (b"5", [5])


@pytest.mark.needs("virtual time")
def test_consumer_with_offset_beyond_the_end_gets_no_earlier_message(client: Client) -> None:
    client.qos(1)
    consume(client, 7).fill("s", b"5", b"6").expect_nothing()
    assert client.fill("s", b"7", b"8").bodies() == [b"7"]  # What was passed over has cost no credit.


def test_offset_last_of_empty_stream_begins_with_the_next_message() -> None:
    client = Server().client()
    declare(client).qos(5)
    assert consume(client, "last").fill("s", b"0", b"1").bodies() == [b"0", b"1"]


@pytest.mark.needs("virtual time")
@rows("minutes, first", (-10, 0), (0, 0), (0.5, 1), (1, 1), (3.99, 4), (4, 4), ids=str)
def test_consumer_with_timestamp_offset_begins_with_first_message_since_then(
    server: Server, minutes: float, first: int
) -> None:
    written = server.clock.time() - 5 * 60  # When the first message was.
    assert read(server, Timestamp(int(written + minutes * 60))) == NUMBERS[first:]


@pytest.mark.needs("virtual time")
def test_timestamp_offset_after_last_message_begins_with_the_next_message(client: Client) -> None:
    client.qos(5)
    consume(client, Timestamp(int(client.server.clock.time()) + 3600))
    assert client.fill("s", b"5").bodies() == [b"5"]  # However early it is.


@pytest.mark.needs("virtual time")
@rows("age, first", ("30s", 5), ("60s", 4), ("1m", 4), ("119s", 4), ("2m", 3), ("1h", 0), ("1Y", 0))
def test_consumer_with_age_offset_begins_with_first_not_older(server: Server, age: str, first: int) -> None:
    assert read(server, age) == NUMBERS[first:]


@pytest.mark.needs("virtual time")
@rows(
    "text, shown",
    ("1w", '<<"1w">>'),
    ("5", '<<"5">>'),
    ("0s", '<<"0s">>'),
    ("1h ", '<<"1h ">>'),
    ("1\x00", "<<49,0>>"),
    ('1"', '<<"1\\"">>'),
)
def test_text_offset_beginning_with_digit_but_no_valid_age_is_refused_with_406(
    client: Client, text: str, shown: str
) -> None:
    # Looked at before the prefetch, and before what belongs to other queue types.
    about = f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for {QUEUE}: "
    reason = f"{{invalid_stream_offset_arg,{{longstr,{shown}}}}}"
    refused(client, asking(text, x_priority=1), 406, about + reason)


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("text", ["bad", "", "First", " 1h", "-1s"])
def test_text_offset_without_leading_digit_ends_connection_before_4_2_and_is_refused_since(
    server: Server, client: Client, text: str
) -> None:
    if server.state.personality.name in BEFORE_4_2:
        crashed(client, asking(text))
    else:
        client.send(asking(text))
        assert "invalid_stream_offset_arg" in client.expect_channel_close(406).reply_text


@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize("value", [True, None, {"a": 1}, [1], Decimal("1.5"), 1.5, b"1h"], ids=repr)
def test_offset_of_invalid_type_ends_the_connection(server: Server, client: Client, value: Any) -> None:
    skip_bytes(server, value)
    client.qos(5)
    crashed(client, BasicConsume(queue="s", arguments={"x-stream-offset": value}))
    assert not server.vhost.queues["s"].subscriptions


# --- deliveries --------------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_deliveries_of_stream_have_their_offset_and_are_not_redelivered(client: Client) -> None:
    client.qos(10)
    for tag in ("a", "b"):
        consume(client, tag=tag)
        contents = deliveries(client)
        assert offsets(contents) == [0, 1, 2, 3, 4]
        assert not any(content.method.redelivered for content in contents)
        assert all(content.method.consumer_tag == tag for content in contents)


@pytest.mark.needs("virtual time")
def test_x_stream_offset_of_delivery_is_a_64_bit_integer(client: Client) -> None:
    client.qos(1).send(asking("first")).expect(m.BasicConsumeOk)
    client.take_frame()
    assert b"\x0fx-stream-offsetl" + bytes(8) in client.take_frame().payload


@pytest.mark.needs("virtual time")
def test_x_stream_offset_of_publisher_is_replaced(client: Client) -> None:
    client.fill("s", b"5", headers={"x-stream-offset": "mine"}).qos(5)
    consume(client, 5)
    assert offsets(deliveries(client)) == [5]


@pytest.mark.needs("virtual time")
def test_two_stream_consumers_read_independently(server: Server) -> None:
    fast, slow = server.client(), server.client()
    fast.qos(10)
    slow.qos(1)
    consume(fast)
    consume(slow, 1)
    assert fast.bodies() == NUMBERS
    assert slow.bodies() == [b"1"]
    assert slow.ack(1).bodies() == [b"2"]
    assert fast.ack(5, multiple=True).fill("s", b"5").bodies() == [b"5"]
    slow.expect_nothing()
    assert server.client().count("s") == 6


@pytest.mark.needs("virtual time")
def test_consumers_on_one_channel_are_independent(client: Client) -> None:
    client.qos(4)
    assert consume(client, 3, "a").bodies() == [b"3", b"4"]
    consume(client, 0, "b")
    if client.server.state.personality.prefetch_is_per_consumer:
        assert client.bodies() == [b"0", b"1", b"2", b"3"]
    else:  # Each at its own place, but in one window.
        assert client.bodies() == [b"0", b"1"]
    client.fill("s", b"5").ack(2, multiple=True)
    tags = {content.method.consumer_tag: content.body for content in deliveries(client)}
    assert tags["a"] == b"5"


# --- credit ------------------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_multiple_ack_frees_prefetch_for_each_message(client: Client) -> None:
    client.qos(3)
    assert consume(client).bodies() == [b"0", b"1", b"2"]
    assert client.ack(2, multiple=True).bodies() == [b"3", b"4"]


@pytest.mark.needs("virtual time")
def test_later_qos_does_not_change_prefetch_of_stream_consumer(server: Server) -> None:
    if not server.state.personality.prefetch_is_per_consumer:
        pytest.skip("the window is the channel's")
    client = server.client().qos(1)
    assert consume(client).bodies() == [b"0"]
    client.qos(5).expect_nothing()
    assert client.ack(1).bodies() == [b"1"]


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("requeue", [True, False])
def test_nack_and_reject_free_prefetch_and_leave_stream_unchanged(client: Client, requeue: bool) -> None:
    client.qos(2)
    assert consume(client).bodies() == [b"0", b"1"]
    assert client.nack(1, requeue=requeue).bodies() == [b"2"]
    assert client.reject(2, requeue=requeue).bodies() == [b"3"]
    assert client.nack(0, multiple=True, requeue=requeue).bodies() == [b"4"]
    assert client.count("s") == 5


@pytest.mark.needs("virtual time")
def test_recover_frees_prefetch_of_stream_consumer_before_recover_ok(client: Client) -> None:
    client.qos(2)
    consume(client).bodies()
    client.send(m.BasicRecover(requeue=True))
    assert [client.delivery().body, client.delivery().body] == [b"2", b"3"]
    client.expect(m.BasicRecoverOk)
    client.expect_nothing()


@pytest.mark.needs("virtual time")
def test_recover_redelivers_message_of_classic_queue_beside_stream(client: Client) -> None:
    client.declare("q", durable=True).fill("q", b"other").qos(1).consume("q", "c").delivery()
    consume(client).inbox.clear()
    client.send(m.BasicRecover(requeue=True))
    got = [frame.method for frame in client.inbox if frame.method is not None]
    if client.server.is_spec:  # One window for both: the one before had it.
        assert [type(method) for method in got] == [m.BasicRecoverOk, m.BasicDeliver]
    else:
        assert [type(method) for method in got] == [m.BasicDeliver, m.BasicRecoverOk, m.BasicDeliver]
        assert [method.redelivered for method in got if isinstance(method, m.BasicDeliver)] == [False, True]


@pytest.mark.needs("virtual time")
def test_deliveries_of_cancelled_stream_consumer_can_be_acknowledged(client: Client) -> None:
    client.qos(2)
    consume(client, tag="c").bodies()
    client.perform(m.BasicCancel(consumer_tag="c")).ack(2, multiple=True).expect_nothing()
    client.fill("s", b"5").expect_nothing()
    assert consume(client, 4).bodies() == [b"4", b"5"]


@pytest.mark.needs("virtual time")
def test_second_ack_of_delivery_tag_closes_channel_with_406(client: Client) -> None:
    client.qos(1)
    consume(client).bodies()
    client.ack(1).bodies()
    client.ack(1)
    assert "unknown delivery tag 1" in client.expect_channel_close(406).reply_text


@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize("end", ["channel", "connection"])
def test_closed_channel_or_connection_requeues_no_stream_message(server: Server, end: str) -> None:
    client = server.client().qos(5)
    consume(client).bodies()
    client.close_channel() if end == "channel" else client.drop()
    queue = server.vhost.queues["s"]
    assert (len(queue.ready), len(queue.unacked), len(queue.subscriptions)) == (5, 0, 0)
    other = consume(server.client().qos(5))
    assert not any(content.method.redelivered for content in deliveries(other))


@pytest.mark.needs("virtual time")
def test_ack_in_transaction_frees_prefetch_at_commit(client: Client) -> None:
    client.perform(m.TxSelect()).qos(1)
    consume(client).bodies()
    client.ack(1).expect_nothing()
    client.send(m.TxCommit())
    got = [type(frame.method) for frame in client.inbox if frame.method is not None]
    assert sorted(each.__name__ for each in got) == ["BasicDeliver", "TxCommitOk"]


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_consumer_timeout_of_stream_closes_channel_up_to_4_2(name: str) -> None:
    server = Server(name)
    client = declare(server.client()).fill("s", b"0").qos(1)
    consume(client).delivery()
    server.advance(1800)
    if name == "rabbitmq-4.3":
        client.expect_nothing()
    else:
        client.expect_channel_close(406)
