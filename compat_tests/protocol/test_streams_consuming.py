"""Consumers of streams: what they must ask for, where they begin, and how far their credit goes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compat_tests.protocol.driver import Client, Server
from compat_tests.protocol.streams import (
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
from compat_tests.protocol.test_exchange import refused
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicConsume
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

NUMBERS = [b"0", b"1", b"2", b"3", b"4"]


@pytest.fixture(params=ALL)
def server(request: pytest.FixtureRequest) -> Server:
    """A broker with a stream of five messages, written a minute after each other."""
    server = Server(request.param)
    client = server.client()
    declare(client)
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


def test_a_prefetch_count_is_required(server: Server, client: Client) -> None:
    named = "'{}'" if server.state.personality.name in BEFORE_4_0 else "stream {}"
    text = f"PRECONDITION_FAILED - consumer prefetch count is not set for {named.format(QUEUE)}"
    refused(client, asking(), 406, text)
    client.qos(5)
    client.qos(0)
    refused(client, asking(), 406, text)
    # Whatever else is wrong.
    refused(client, BasicConsume(queue="s", no_ack=True, arguments={"x-stream-offset": True}), 406, text)


def test_acknowledgements_are_required(server: Server, client: Client) -> None:
    client.qos(5)
    named = "stream queues" if server.state.personality.name in BEFORE_4_0 else "stream"
    text = f"NOT_IMPLEMENTED - automatic acknowledgement not supported by {named} {QUEUE}"
    refused_connection(client, BasicConsume(queue="s", no_ack=True), 540, text)


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_a_window_for_the_whole_channel_is_refused(name: str) -> None:
    client = Server(name).client()
    declare(client)
    client.qos(5, global_=True)
    client.send(asking())
    assert "prefetch count is not set" in client.expect_channel_close(406).reply_text
    client.open_channel()
    client.qos(5)
    client.qos(5, global_=True)
    refused_connection(client, asking(), 540, f"NOT_IMPLEMENTED - {QUEUE} does not support global qos")


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_a_window_for_the_whole_channel_that_was_lifted_is_none(name: str) -> None:
    client = Server(name).client()
    declare(client)
    client.qos(5, global_=True)
    client.qos(5)
    consume(client)


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_a_window_that_comes_later_does_not_hold_a_stream_back(name: str) -> None:
    client = Server(name).client()
    declare(client)
    client.qos(5)
    consume(client)
    client.fill("s", b"0")
    client.delivery()
    client.qos(1, global_=True)
    client.fill("s", b"1", b"2")
    assert client.bodies() == [b"1", b"2"]


def test_the_window_of_the_documents_counts_as_prefetch() -> None:
    client = Server("spec").client()
    declare(client)
    client.fill("s", *NUMBERS)
    client.qos(2)
    consume(client)
    assert client.bodies() == [b"0", b"1"]
    client.ack(1)
    assert client.bodies() == [b"2"]


def test_there_are_no_single_messages_to_get(server: Server) -> None:
    text = f"NOT_IMPLEMENTED - basic.get not supported by stream queues {QUEUE}"
    for no_ack in (False, True):
        refused_connection(server.client(), m.BasicGet(queue="s", no_ack=no_ack), 540, text)


def test_there_is_nothing_to_get_from_an_empty_stream_either() -> None:
    client = Server().client()
    declare(client)
    client.send(m.BasicGet(queue="s"))
    client.expect_connection_close(540)


@pytest.mark.parametrize("value", [5, "bad"])
def test_consumers_have_no_priorities(client: Client, value: Any) -> None:
    client.qos(5)
    text = f"PRECONDITION_FAILED - invalid arg 'x-priority' for {QUEUE} of queue type rabbit_stream_queue"
    refused(client, asking(x_priority=value), 406, text)


@pytest.mark.parametrize("name", RABBITMQ)
def test_arguments_that_are_known_in_some_versions(name: str) -> None:
    client = Server(name).client()
    declare(client)
    client.qos(5)
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
def test_classic_queues_refuse_the_arguments_of_streams(name: str, argument: str) -> None:
    client = Server(name).client()
    client.declare("s", durable=True)
    method = BasicConsume(queue="s", arguments={argument: "first"})
    if name == "rabbitmq-3.13" and argument != "x-stream-offset":
        client.call(method, m.BasicConsumeOk)
    else:
        text = f"invalid arg '{argument}' for {QUEUE} of queue type rabbit_classic_queue"
        refused(client, method, 406, f"PRECONDITION_FAILED - {text}")


def test_exclusive_consumers_exclude_nobody(client: Client) -> None:
    client.qos(100)
    for tag in ("a", "b"):
        client.call(
            BasicConsume(queue="s", consumer_tag=tag, exclusive=True, arguments={"x-stream-offset": "first"}),
            m.BasicConsumeOk,
        )
        assert client.bodies() == NUMBERS
    consume(client)
    assert client.bodies() == NUMBERS


# --- where they begin --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "first"),
    [("first", 0), ("last", 4), (b"first", 0), (b"last", 4), (0, 0), (3, 3), (4, 4), (-7, 0)],
    ids=repr,
)
def test_a_consumer_begins_where_it_asks_to(server: Server, offset: Any, first: int) -> None:
    skip_bytes(server, offset)
    assert read(server, offset) == NUMBERS[first:]


@pytest.mark.parametrize("offset", [None, "next", b"next", 5], ids=repr)
def test_a_consumer_may_want_only_what_comes(client: Client, offset: Any) -> None:
    skip_bytes(client.server, offset)
    client.qos(5)
    consume(client, offset)
    client.expect_nothing()
    client.fill("s", b"5")
    got = client.delivery()
    assert (got.body, offsets([got])) == (b"5", [5])


def test_an_offset_beyond_the_end_is_waited_for(client: Client) -> None:
    client.qos(1)
    consume(client, 7)
    client.fill("s", b"5", b"6")
    client.expect_nothing()
    client.fill("s", b"7", b"8")
    assert client.bodies() == [b"7"]  # What was passed over has cost no credit.


def test_the_last_of_an_empty_stream_is_the_next() -> None:
    client = Server().client()
    declare(client)
    client.qos(5)
    consume(client, "last")
    client.fill("s", b"0", b"1")
    assert client.bodies() == [b"0", b"1"]


@pytest.mark.parametrize(
    ("minutes", "first"), [(-10, 0), (0, 0), (0.5, 1), (1, 1), (3.99, 4), (4, 4)], ids=str
)
def test_a_consumer_may_begin_at_a_time(server: Server, minutes: float, first: int) -> None:
    written = server.clock.time() - 5 * 60  # When the first message was.
    assert read(server, Timestamp(int(written + minutes * 60))) == NUMBERS[first:]


def test_a_time_after_everything_is_the_next(server: Server, client: Client) -> None:
    client.qos(5)
    consume(client, Timestamp(int(server.clock.time()) + 3600))
    client.fill("s", b"5")
    assert client.bodies() == [b"5"]  # However early it is.


@pytest.mark.parametrize(
    ("age", "first"), [("30s", 5), ("60s", 4), ("1m", 4), ("119s", 4), ("2m", 3), ("1h", 0), ("1Y", 0)]
)
def test_a_consumer_may_begin_an_age_ago(server: Server, age: str, first: int) -> None:
    assert read(server, age) == NUMBERS[first:]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1w", '<<"1w">>'),
        ("5", '<<"5">>'),
        ("0s", '<<"0s">>'),
        ("1h ", '<<"1h ">>'),
        ("1\x00", "<<49,0>>"),
        ('1"', '<<"1\\"">>'),
    ],
)
def test_a_text_that_is_no_offset(client: Client, text: str, shown: str) -> None:
    # Looked at before the prefetch, and before what belongs to other queue types.
    about = f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for {QUEUE}: "
    reason = f"{{invalid_stream_offset_arg,{{longstr,{shown}}}}}"
    refused(client, asking(text, x_priority=1), 406, about + reason)


@pytest.mark.parametrize("text", ["bad", "", "First", " 1h", "-1s"])
def test_a_text_that_does_not_even_begin_with_a_digit(server: Server, client: Client, text: str) -> None:
    if server.state.personality.name in BEFORE_4_2:
        crashed(client, asking(text))
    else:
        client.send(asking(text))
        assert "invalid_stream_offset_arg" in client.expect_channel_close(406).reply_text


@pytest.mark.parametrize("value", [True, None, {"a": 1}, [1], Decimal("1.5"), 1.5, b"1h"], ids=repr)
def test_other_types_are_no_offsets(server: Server, client: Client, value: Any) -> None:
    skip_bytes(server, value)
    client.qos(5)
    crashed(client, BasicConsume(queue="s", arguments={"x-stream-offset": value}))
    assert not server.vhost.queues["s"].subscriptions


# --- deliveries --------------------------------------------------------------------------------------------


def test_deliveries_tell_their_offset_and_are_never_redelivered(client: Client) -> None:
    client.qos(10)
    for tag in ("a", "b"):
        consume(client, tag=tag)
        contents = deliveries(client)
        assert offsets(contents) == [0, 1, 2, 3, 4]
        assert not any(content.method.redelivered for content in contents)
        assert all(content.method.consumer_tag == tag for content in contents)


def test_the_offset_is_a_long_however_small(client: Client) -> None:
    client.qos(1)
    client.send(asking("first"))
    client.expect(m.BasicConsumeOk)
    client.take_frame()
    assert b"\x0fx-stream-offsetl" + bytes(8) in client.take_frame().payload


def test_a_publishers_own_offset_does_not_count(server: Server, client: Client) -> None:
    client.fill("s", b"5", headers={"x-stream-offset": "mine"})
    client.qos(5)
    consume(client, 5)
    assert offsets(deliveries(client)) == [5]


def test_each_reads_at_its_own_pace(server: Server) -> None:
    fast, slow = server.client(), server.client()
    fast.qos(10)
    slow.qos(1)
    consume(fast)
    consume(slow, 1)
    assert fast.bodies() == NUMBERS
    assert slow.bodies() == [b"1"]
    slow.ack(1)
    assert slow.bodies() == [b"2"]
    fast.ack(5, multiple=True)
    fast.fill("s", b"5")
    assert fast.bodies() == [b"5"]
    slow.expect_nothing()
    assert server.client().count("s") == 6


def test_consumers_on_one_channel_are_independent(client: Client) -> None:
    client.qos(4)
    consume(client, 3, "a")
    assert client.bodies() == [b"3", b"4"]
    consume(client, 0, "b")
    if client.server.state.personality.prefetch_is_per_consumer:
        assert client.bodies() == [b"0", b"1", b"2", b"3"]
    else:  # Each at its own place, but in one window.
        assert client.bodies() == [b"0", b"1"]
    client.fill("s", b"5")
    client.ack(2, multiple=True)
    tags = {content.method.consumer_tag: content.body for content in deliveries(client)}
    assert tags["a"] == b"5"


# --- credit ------------------------------------------------------------------------------------------------


def test_an_ack_of_many_gives_credit_for_each(client: Client) -> None:
    client.qos(3)
    consume(client)
    assert client.bodies() == [b"0", b"1", b"2"]
    client.ack(2, multiple=True)
    assert client.bodies() == [b"3", b"4"]


def test_later_prefetch_counts_do_not_change_a_consumer(server: Server) -> None:
    if not server.state.personality.prefetch_is_per_consumer:
        pytest.skip("the window is the channel's")
    client = server.client()
    client.qos(1)
    consume(client)
    assert client.bodies() == [b"0"]
    client.qos(5)
    client.expect_nothing()
    client.ack(1)
    assert client.bodies() == [b"1"]


@pytest.mark.parametrize("requeue", [True, False])
def test_a_refusal_gives_the_credit_back_and_nothing_else(client: Client, requeue: bool) -> None:
    client.qos(2)
    consume(client)
    assert client.bodies() == [b"0", b"1"]
    client.nack(1, requeue=requeue)
    assert client.bodies() == [b"2"]
    client.reject(2, requeue=requeue)
    assert client.bodies() == [b"3"]
    client.nack(0, multiple=True, requeue=requeue)
    assert client.bodies() == [b"4"]
    assert client.count("s") == 5


def test_recovery_gives_the_credit_back_before_it_says_so(client: Client) -> None:
    client.qos(2)
    consume(client)
    client.bodies()
    client.send(m.BasicRecover(requeue=True))
    assert [client.delivery().body, client.delivery().body] == [b"2", b"3"]
    client.expect(m.BasicRecoverOk)
    client.expect_nothing()


def test_recovery_brings_back_what_other_queues_gave(client: Client) -> None:
    client.declare("q", durable=True)
    client.fill("q", b"other")
    client.qos(1)
    client.consume("q", "c")
    client.delivery()
    consume(client)
    client.inbox.clear()
    client.send(m.BasicRecover(requeue=True))
    got = [frame.method for frame in client.inbox if frame.method is not None]
    if client.server.state.personality.name == "spec":  # One window for both: the one before had it.
        assert [type(method) for method in got] == [m.BasicRecoverOk, m.BasicDeliver]
    else:
        assert [type(method) for method in got] == [m.BasicDeliver, m.BasicRecoverOk, m.BasicDeliver]
        assert [method.redelivered for method in got if isinstance(method, m.BasicDeliver)] == [False, True]


def test_what_was_sent_to_a_cancelled_consumer_can_still_be_settled(client: Client) -> None:
    client.qos(2)
    tag = consume(client)
    client.bodies()
    client.call(m.BasicCancel(consumer_tag=tag), m.BasicCancelOk)
    client.ack(2, multiple=True)
    client.expect_nothing()
    client.fill("s", b"5")
    client.expect_nothing()
    consume(client, 4)
    assert client.bodies() == [b"4", b"5"]


def test_a_tag_is_settled_once(client: Client) -> None:
    client.qos(1)
    consume(client)
    client.bodies()
    client.ack(1)
    client.bodies()
    client.ack(1)
    assert "unknown delivery tag 1" in client.expect_channel_close(406).reply_text


@pytest.mark.parametrize("end", ["channel", "connection"])
def test_the_end_of_a_consumer_brings_nothing_back(server: Server, end: str) -> None:
    client = server.client()
    client.qos(5)
    consume(client)
    client.bodies()
    client.close_channel() if end == "channel" else client.drop()
    queue = server.vhost.queues["s"]
    assert (len(queue.ready), len(queue.unacked), len(queue.subscriptions)) == (5, 0, 0)
    other = server.client()
    other.qos(5)
    consume(other)
    assert not any(content.method.redelivered for content in deliveries(other))


def test_acks_in_a_transaction_give_credit_at_commit(client: Client) -> None:
    client.call(m.TxSelect(), m.TxSelectOk)
    client.qos(1)
    consume(client)
    client.bodies()
    client.ack(1)
    client.expect_nothing()
    client.send(m.TxCommit())
    got = [type(frame.method) for frame in client.inbox if frame.method is not None]
    assert sorted(each.__name__ for each in got) == ["BasicDeliver", "TxCommitOk"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_what_is_held_too_long_closes_the_channel_up_to_4_2(name: str) -> None:
    server = Server(name)
    client = server.client()
    declare(client)
    client.fill("s", b"0")
    client.qos(1)
    consume(client)
    client.delivery()
    server.advance(1800)
    if name == "rabbitmq-4.3":
        client.expect_nothing()
    else:
        client.expect_channel_close(406)
