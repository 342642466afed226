"""What a task does with a broker: window, confirms, refusals, returns, losses. No Spark is started."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import SimpleNamespace

import pytest

cloudpickle = pytest.importorskip("pyspark.cloudpickle")
pa = pytest.importorskip("pyarrow")

# ruff: noqa: E402
from pyspark.sql import types

from compat_tests.unit.spark.sink import sink
from fakeamqp import Broker
from fakeamqp.spark.errors import (
    BrokerUnreachable,
    ConnectionLost,
    LoginRefused,
    PublishError,
    UnreadableAnswer,
)
from fakeamqp.spark.options import write_options
from fakeamqp.spark.sink import BatchWriter, MicroBatchWriter, publisher, writers
from fakeamqp.spark.wire import connection, pool
from fakeamqp.spark.wire.retries import RetryBudget


@pytest.fixture
def broker():
    with Broker(definitions={"queues": [{"name": "q", "durable": True}]}) as broker:
        yield broker


def rows(count, first=0):
    return sink.batch(
        value=[b"%d" % number for number in range(first, first + count)],
        message_id=[f"m{number}" for number in range(first, first + count)],
    )


def bodies(broker):
    return [int(message.body) for message in broker.queue("q").messages]


def so_far(text):
    """How many messages were confirmed and sent, as an error says."""
    [numbers] = re.findall(r"(\d+) of the (\d+) messages that this task has sent were confirmed$", text)
    return int(numbers[0]), int(numbers[1])


class Context:
    """What a task knows of itself."""

    def __init__(self, partition, **properties):
        self._partition, self._properties = partition, properties

    def partitionId(self):
        return self._partition

    def getLocalProperty(self, key):
        return self._properties.get(key)


@pytest.fixture
def task(monkeypatch):
    return lambda context: monkeypatch.setattr(writers.TaskContext, "get", lambda: context)


@pytest.fixture
def elsewhere():
    """Runs a function in a thread of its own, while the test does something to the broker."""
    threads = ThreadPoolExecutor(1)
    yield threads.submit
    threads.shutdown(wait=False)


def test_rows_arrive_in_their_order_and_are_counted(broker):
    done = sink.write(broker, rows(2500), rows(7, first=2500), maxInFlight="100")
    assert bodies(broker) == list(range(2507))
    assert (done.partition, done.confirmed, done.returned) == (0, 2507, 0)


def test_tasks_of_a_process_share_one_connection_and_close_their_channels(broker):
    connects = broker.faults.on("connection.open")
    for first in range(0, 110, 10):
        assert sink.write(broker, rows(5, first), rows(5, first + 5)).confirmed == 10
    assert bodies(broker) == list(range(110))
    assert connects.hits == 1
    broker.wait_until_idle()
    [idle] = broker.connections
    assert not idle.channels
    pool.close_idle()
    broker.wait_for(lambda: not broker.connections)


def test_a_connection_that_ends_while_it_is_idle_is_replaced(broker):
    sink.write(broker, rows(5))
    broker.connections[0].close(320, "maintenance")
    broker.wait_for(lambda: not broker.connections)
    done = sink.write(broker, rows(5, first=5), reconnectTimeout="0")
    assert (done.confirmed, done.republished, bodies(broker)) == (5, 0, list(range(10)))


def test_a_connection_that_ends_after_the_last_confirm_does_not_fail_the_task(broker):
    ended = broker.faults.on("channel.close").disconnect().once()
    assert sink.write(broker, rows(5), reconnectTimeout="0").confirmed == 5
    assert (ended.hits, bodies(broker)) == (1, list(range(5)))
    assert sink.write(broker, rows(5, first=5), reconnectTimeout="0").confirmed == 5


def test_a_task_that_fails_gives_no_connection_back(broker):
    good, bad = sink.batch(value=[b"0"], priority=[0]), sink.batch(value=[b"1"], priority=[256])
    with pytest.raises(PublishError):
        sink.write(broker, good, bad)
    broker.wait_until_idle()
    assert not broker.connections


@pytest.mark.parametrize("batches", [[], [sink.batch(value=[])]], ids=["none", "empty"])
def test_a_partition_without_rows_opens_no_connection(broker, batches):
    writer = sink.writer(broker, sink.batch(value=[]))
    connects = broker.faults.on("connection.open")
    assert writer.write(iter(batches)).confirmed == 0
    assert connects.hits == 0
    with Broker() as other:
        closed = other.url
    with pytest.raises(BrokerUnreachable, match="cannot connect to"):
        options = write_options(sink.options(closed, reconnectTimeout="0"))
        BatchWriter(options, sink.schema(["value"])).write(iter([sink.batch(value=[b""])]))


@pytest.mark.parametrize("most", [1, 2, 7])
def test_no_more_messages_are_open_than_maxInFlight(broker, most, elsewhere):
    held = broker.faults.on("confirm").hold()
    task = elsewhere(sink.write, broker, rows(20), maxInFlight=str(most))
    settled = 0
    while settled < 20:
        held.wait(settled + 1)
        broker.wait_until_idle()
        assert len(broker.published) <= settled + most
        settled += held.release()
    assert task.result(30).confirmed == 20
    assert bodies(broker) == list(range(20))


@pytest.mark.parametrize("how", [{"reverse": True}, {"multiple": True}, {"count": 3}])
def test_write_succeeds_for_confirms_in_any_order(broker, how, elsewhere):
    held = broker.faults.on("confirm").hold()
    task = elsewhere(sink.write, broker, rows(10))
    held.wait(10)
    while held.release(**how):
        pass
    assert task.result(30).confirmed == 10


def test_bodies_and_properties_that_need_several_frames_or_do_not_fit_one(broker):
    body = bytes(range(256)) * 4096
    sink.write(broker, sink.batch(value=[body, b"", body[:-1]]))
    assert [message.body for message in broker.queue("q").messages] == [body, b"", body[:-1]]
    headers = [[("a", "x" * 200_000)]]
    with pytest.raises(
        PublishError, match=r"properties have 2000\d\d bytes, and a frame holds at most 131064"
    ):
        sink.write(broker, sink.batch(value=[b""], headers=headers))


def test_rows_before_one_that_cannot_be_a_message_are_not_sent_either(broker):
    good = sink.batch(value=[b"0", b"1"], priority=[0, 1])
    bad = sink.batch(value=[b"2", b"3"], priority=[2, 256])
    with pytest.raises(PublishError, match="row 3 of the task cannot be sent: its priority is 256"):
        sink.write(broker, good, bad)
    assert bodies(broker) == [0, 1]


def test_large_messages_are_published_over_tls():
    body = bytes(range(256)) * 4096
    with Broker(tls=True, definitions={"queues": [{"name": "q"}]}) as broker:
        batch = sink.batch(value=[body, *[b"x"] * 2000, body])
        sink.write(broker, batch, **{"amqp.caFile": broker.tls.ca_file})
        assert [len(message.body) for message in broker.queue("q").messages] == [
            1 << 20,
            *[1] * 2000,
            1 << 20,
        ]


# Message ids


def ids(broker):
    return [message.message_id for message in broker.queue("q").messages]


def test_retried_task_reuses_message_ids_and_another_write_does_not(broker, task):
    batches = [sink.batch(value=[b"a", b"b"]), sink.batch(value=[b"c"])]
    writer = sink.writer(broker, batches[0])
    task(Context(7))
    for _attempt in range(2):
        cloudpickle.loads(cloudpickle.dumps(writer)).write(iter(batches))
    job = ids(broker)[0].removesuffix("-7-0")
    assert ids(broker) == [f"{job}-7-{row}" for row in (0, 1, 2)] * 2
    task(Context(8))
    writer.write(iter(batches))
    assert ids(broker)[6:] == [f"{job}-8-{row}" for row in (0, 1, 2)]
    sink.write(broker, *batches)
    assert not any(each.startswith(job) for each in ids(broker)[9:])


def test_ids_of_a_stream_are_those_of_its_batch(broker, task):
    task(Context(1, **{"sql.streaming.queryId": "query", "streaming.sql.batchId": "42"}))
    batch = sink.batch(value=[b"a", b"b"])
    for _restart in range(2):
        sink.writer(broker, batch, MicroBatchWriter).write(iter([batch]))
    assert ids(broker) == ["query-42-1-0", "query-42-1-1"] * 2
    # A batch write within a stream: there may be two of them in one batch.
    sink.write(broker, batch)
    assert not ids(broker)[-1].startswith("query")


@pytest.mark.parametrize("told", ["sql.streaming.queryId", "streaming.sql.batchId"])
def test_ids_of_a_task_that_knows_query_or_batch_only_are_those_of_its_write(broker, task, told):
    task(Context(1, **{told: "42"}))
    batch = sink.batch(value=[b"a"])
    for _write in range(2):
        sink.writer(broker, batch, MicroBatchWriter).write(iter([batch]))
    first, second = ids(broker)
    assert re.fullmatch("[0-9a-f]{32}-1-0", first)
    assert first != second


# What the broker refuses


@pytest.mark.parametrize("subject", ["basic.publish", "confirm"])
def test_refused_messages_fail_the_task(broker, subject):
    refused = broker.faults.on(subject).after(3).nack().times(5)
    with pytest.raises(PublishError) as caught:
        sink.write(broker, rows(500), maxInFlight="50")
    assert refused.hits == 5
    text = str(caught.value)
    where = "to exchange '' with routing key 'q'"
    assert "refused (nacked) 5 messages" in text
    assert f"(message 'm3' {where}; message 'm4' {where}; message 'm5' {where}; and 2 more)" in text
    confirmed, sent = so_far(text)
    assert confirmed == sent - 5 and sent <= 100
    assert len(broker.published) == sent - (5 if subject == "basic.publish" else 0)


def test_a_message_that_no_queue_gets_fails_the_task(broker):
    batch = sink.batch(
        value=[b"a", b"b", b"c"], routing_key=["q", "nobody", None], message_id=["1", "2", "3"]
    )
    with pytest.raises(PublishError) as caught:
        sink.write(broker, batch)
    assert (
        "unroutable: 1 message (message '2' to exchange '' with routing key 'nobody': 312 NO_ROUTE)"
        in str(caught.value)
    )


def test_onReturn_drop_logs_and_counts_unroutable_messages(broker, caplog):
    keys = ["nobody"] * 5 + ["q"]
    done = sink.write(
        broker, sink.batch(value=[b"a"] * 6, routing_key=keys, message_id=[*"123456"]), onReturn="drop"
    )
    assert (done.confirmed, done.returned) == (6, 5)
    [line] = caplog.messages
    assert line.startswith("unroutable: 5 messages (message '1' to exchange '' with routing key 'nobody'")
    assert line.endswith("; and 2 more)")


LATE = pa.map_(pa.string(), sink.TIME)


def test_a_returned_message_may_have_headers_that_python_has_no_values_for(broker):
    """The year 10000. Only the message id is read, so that the connection stays."""
    connects = broker.faults.on("connection.open")
    columns = sink.batch(value=[b"0", b"1"], routing_key=["nobody", "q"], message_id=["m0", "m1"])
    late = pa.array([[("at", 253_402_300_800_000_000)]] * 2, LATE)
    batch = pa.RecordBatch.from_arrays([*columns.columns, late], [*columns.schema.names, "headers"])
    with pytest.raises(PublishError, match=r"unroutable: 1 message \(message 'm0' to exchange ''"):
        sink.write(broker, batch)
    assert (connects.hits, bodies(broker)) == (1, [1])


def test_an_answer_that_cannot_be_read_is_not_tried_again(broker):
    connects = broker.faults.on("connection.open")
    broker.faults.on("confirm").malform("unknown-method")
    with pytest.raises(UnreadableAnswer, match=r"cannot read what the broker sent: .* 0 of the 10 messages"):
        sink.write(broker, rows(10))
    assert (connects.hits, bodies(broker)) == (1, list(range(10)))


def test_mandatory_false_reports_no_unroutable_messages(broker, caplog):
    batch = sink.batch(value=[b"a"], routing_key=["nobody"])
    done = sink.write(broker, batch, mandatory="false")
    assert (done.confirmed, done.returned) == (1, 0)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"exchange": ["nowhere"]}, "404 NOT_FOUND - no exchange 'nowhere'.* Declare the exchange first"),
        ({"user_id": ["somebody"]}, "406 PRECONDITION_FAILED.*user_id must be the name of the user"),
        ({"expiration": ["soon"]}, "406 PRECONDITION_FAILED.*expiration must be milliseconds"),
        ({"value": [bytes(17 << 20)]}, "406 PRECONDITION_FAILED.* The body exceeds max_message_size"),
        ({"headers": [[("CC", "q")]]}, "406 PRECONDITION_FAILED.* The headers CC and BCC must be lists"),
    ],
)
def test_channel_closed_for_invalid_publish_fails_task_without_reconnecting(broker, columns, said):
    connects = broker.faults.on("connection.open")
    with pytest.raises(PublishError, match=f"{said}.*[^0-9]0 of the 1 messages"):
        sink.write(broker, sink.batch(**{"value": [b""], **columns}))
    assert connects.hits == 1


def test_publish_without_write_permission_fails_task_with_403():
    with Broker(users={"reader": "r"}) as broker:
        broker.admin.add_user("reader", "r", permissions={"/": ("", "", ".*")})
        with pytest.raises(
            PublishError, match=r"403 ACCESS_REFUSED.*The user may not publish to this exchange"
        ):
            sink.write(broker, sink.batch(value=[b""]), **{"amqp.username": "reader", "amqp.password": "r"})


# Losses


def repeated(broker):
    """How many messages are in the queue twice; all are there in their order, and no confirmed one twice."""
    found = bodies(broker)
    assert [*dict.fromkeys(found)] == [*range(max(found) + 1)]
    assert sorted(set(ids(broker))) == sorted(f"m{number}" for number in set(found))
    return len(found) - len(set(found))


@pytest.mark.parametrize("how", ["disconnect", "close_connection"])
def test_unconfirmed_messages_are_published_again_after_lost_connection(broker, caplog, how):
    end = broker.faults.on("basic.publish", message_id="m300").once()
    {"disconnect": end.disconnect, "close_connection": lambda: end.close_connection(320, "maintenance")}[
        how
    ]()
    done = sink.write(broker, rows(1000), maxInFlight="100")
    assert (done.published, done.confirmed) == (1000, 1000)
    assert 0 < done.republished <= 100
    assert repeated(broker) <= done.republished
    [lost] = [text for text in caplog.messages if "connecting again" in text]
    confirmed, sent = so_far(lost.removesuffix("; connecting again"))
    assert 200 <= confirmed <= 300 < sent <= 400
    assert done.republished == sent - confirmed


def test_confirmed_messages_are_not_published_again_after_lost_connection(broker, elsewhere):
    """Confirms in any order: messages 0 to 2 and 5 to 9 are confirmed when the connection is lost."""
    held = broker.faults.on("confirm").hold().times(10)
    task = elsewhere(sink.write, broker, rows(10))
    held.wait(10)
    held.release(count=3)
    held.release(count=5, reverse=True)
    broker.wait_until_idle()
    broker.connections[0].close(320, "maintenance")
    done = task.result(30)
    assert (done.confirmed, done.republished) == (10, 2)
    assert bodies(broker) == [*range(10), 3, 4]


def test_sink_reconnects_until_unavailable_broker_accepts_connection(broker):
    away = broker.faults.on("basic.publish", message_id="m5").disconnect().once()
    refused = broker.faults.on("connection.open").after(1).disconnect().times(4)
    done = sink.write(broker, rows(10))
    assert (away.hits, refused.hits, done.confirmed) == (1, 4, 10)
    assert repeated(broker) <= done.republished


def test_attempts_to_connect_end_with_reconnectTimeout(broker):
    broker.faults.on("basic.publish", message_id="m5").disconnect().once()
    broker.faults.on("connection.open").after(1).disconnect()
    with pytest.raises(
        BrokerUnreachable, match=r"cannot connect to .* \(tried again for \d+\.\d s\)\. \d"
    ) as caught:
        sink.write(broker, rows(10), reconnectTimeout="100ms")
    assert so_far(str(caught.value))[1] >= 5


def test_login_refused_on_reconnect_fails_task():
    queues = {"queues": [{"name": "q", "durable": True}]}
    with Broker(users={"me": "old"}, definitions=queues) as broker:
        login = {"amqp.username": "me", "amqp.password": "old"}

        def batches():
            yield rows(5)
            broker.admin.add_user("me", "new")
            broker.connections[0].close(320, "maintenance")
            broker.wait_for(lambda: not broker.connections)
            yield rows(5, first=5)

        with pytest.raises(LoginRefused, match=r"403.* 5 of the 5 messages that this task has sent"):
            sink.writer(broker, rows(1), **login).write(batches())


@pytest.mark.parametrize("how", ["close_channel", "close_connection"])
def test_a_login_that_expires_is_renewed_from_its_file(tmp_path, how):
    """As RabbitMQ ends the channel of an OAuth token that is too old."""
    token = tmp_path / "token"
    queues = {"queues": [{"name": "q", "durable": True}]}
    with Broker(users={"me": "old"}, definitions=queues) as broker:
        login = {"amqp.username": "me", "amqp.passwordFile": str(token)}
        token.write_text("old")
        expired = getattr(broker.faults.on("basic.publish").after(5).once(), how)(403, "ACCESS_REFUSED")

        def batches():
            yield rows(5)
            token.write_text("new")
            broker.admin.add_user("me", "new")
            yield rows(5, first=5)

        done = sink.writer(broker, rows(1), **login).write(batches())
        assert (done.confirmed, expired.hits) == (10, 1)
        refused = getattr(broker.faults.on("basic.publish"), how)(403, "ACCESS_REFUSED")
        with pytest.raises(PublishError, match=r"403 ACCESS_REFUSED.*The user may not publish"):
            sink.write(broker, rows(5), **login)
        assert refused.hits == 1


def test_a_login_that_expires_while_its_file_is_away_is_renewed(tmp_path, monkeypatch):
    token = tmp_path / "token"
    failures = []

    class ThenRenewed(RetryBudget):
        def pause(self, error):
            failures.append(str(error))
            if len(failures) == 2:
                token.write_text("new")
            return super().pause(error)

    monkeypatch.setattr(publisher, "RetryBudget", ThenRenewed)
    with Broker(users={"me": "new"}, definitions={"queues": [{"name": "q", "durable": True}]}) as broker:
        login = {"amqp.username": "me", "amqp.passwordFile": str(token)}
        token.write_text("new")
        broker.faults.on("basic.publish").once().close_channel(403, "ACCESS_REFUSED")
        opened = broker.faults.on("channel.open-ok").once().call(lambda _: token.unlink())
        done = sink.write(broker, rows(5), **login)
        assert (done.confirmed, opened.hits) == (5, 1)
    assert [f"cannot read {token}: No such file" in failure for failure in failures] == [True, True]


@pytest.mark.parametrize("how", ["close_channel", "close_connection"])
def test_channel_or_connection_closed_with_406_on_publish_fails_task_without_retry(broker, how):
    end = getattr(broker.faults.on("basic.publish", message_id="m300"), how)(406, "PRECONDITION_FAILED")
    with pytest.raises(PublishError, match=r"406 PRECONDITION_FAILED") as caught:
        sink.write(broker, rows(1000), maxInFlight="100")
    assert end.hits == 1
    confirmed, sent = so_far(str(caught.value))
    assert 200 <= confirmed <= 300 < sent <= 400


@pytest.mark.parametrize("how", ["close_channel", "close_connection"])
def test_internal_error_is_retried_unless_message_has_decimal_header(broker, how):
    end = getattr(broker.faults.on("basic.publish").once(), how)(541, "INTERNAL_ERROR")
    assert sink.write(broker, rows(10)).confirmed == 10
    assert end.hits == 1
    struct = types.StructType([types.StructField("price", types.DecimalType(4, 2))])
    batch = pa.RecordBatch.from_pylist([{"value": b"1", "headers": {"price": Decimal("3.14")}}])
    options = write_options(sink.options(broker.url))
    again = getattr(broker.faults.on("basic.publish").once(), how)(541, "INTERNAL_ERROR")
    with pytest.raises(PublishError, match=r"541 INTERNAL_ERROR.* type DECIMAL .* cast it to STRING\."):
        BatchWriter(options, sink.schema(["value"]).add("headers", struct)).write(iter([batch]))
    assert again.hits == 1


def test_message_nacked_before_connection_loss_fails_task(broker):
    broker.faults.on("basic.publish", message_id="m2").nack()
    broker.faults.on("basic.publish", message_id="m5").disconnect()
    with pytest.raises(PublishError, match=r"refused \(nacked\) 1 message \(message 'm2'"):
        sink.write(broker, rows(10))


def test_a_connection_that_ends_between_two_batches_is_replaced(broker, caplog):
    def batches():
        yield rows(10)
        assert len(bodies(broker)) == 10
        [connection] = broker.connections
        connection.close(320, "maintenance")
        broker.wait_for(lambda: not broker.connections)
        yield rows(10, first=10)

    connects = broker.faults.on("connection.open")
    done = sink.writer(broker, rows(1)).write(batches())
    assert done.confirmed == 20
    assert bodies(broker) == list(range(20))
    assert connects.hits == 2
    assert "320 maintenance. No message was unconfirmed; connecting again" in caplog.text


def test_messages_without_confirm_within_confirm_timeout_are_published_again(broker, caplog):
    """Nothing else says that the network between them is down."""
    dropped = broker.faults.on("confirm").after(2).drop().times(8)
    done = sink.write(broker, rows(10), confirmTimeout="100ms")
    assert (dropped.hits, done.confirmed, done.republished) == (8, 10, 8)
    assert bodies(broker) == [*range(10), *range(2, 10)]
    assert "the broker confirmed nothing for 0.1 s: 8 messages are not confirmed. 2 of the 10" in caplog.text


@pytest.mark.parametrize(("late", "twice"), [(7, [7, 8, 9]), (10, [])])
def test_messages_confirmed_while_connection_closes_are_not_published_again(
    broker, elsewhere, monkeypatch, caplog, late, twice
):
    monkeypatch.setattr(connection, "_GOODBYE", 30.0)
    connects = broker.faults.on("connection.open")
    held = broker.faults.on("confirm").hold().times(10)
    closing = broker.faults.on("connection.close").hold().once()
    task = elsewhere(sink.write, broker, rows(10), confirmTimeout="100ms")
    closing.wait(1)
    held.wait(10)
    held.release(count=late)
    closing.release()
    done = task.result(30)
    assert (done.confirmed, done.republished) == (10, len(twice))
    assert bodies(broker) == [*range(10), *twice]
    assert (connects.hits > 1) == ("connecting again" in caplog.text) == bool(twice)


def test_message_nacked_while_connection_closes_fails_task(broker, monkeypatch, elsewhere):
    monkeypatch.setattr(connection, "_GOODBYE", 30.0)
    held = broker.faults.on("confirm").nack().hold().once()
    closing = broker.faults.on("connection.close").hold().once()
    task = elsewhere(sink.write, broker, rows(1), confirmTimeout="100ms")
    closing.wait(1)
    held.release()
    closing.release()
    with pytest.raises(PublishError, match=r"refused \(nacked\) 1 message \(message 'm0'"):
        task.result(30)
    assert bodies(broker) == [0]


def test_missing_confirms_fail_the_task_after_reconnectTimeout(broker):
    broker.faults.on("confirm").after(2).drop()
    with pytest.raises(
        ConnectionLost, match=r"nothing for 0\.1 s: 8 .* \(tried again for (?!0\.[01])[\d.]+ s\)\. 2 of"
    ):
        sink.write(broker, rows(10), confirmTimeout="100ms", reconnectTimeout="150ms")


def test_a_broker_that_blocks_publishers_is_waited_for(broker, elsewhere):
    alarm = broker.faults.memory_alarm()
    told = broker.faults.on("connection.blocked", direction="sent")
    task = elsewhere(sink.write, broker, rows(10))
    told.wait(1)
    assert bodies(broker) == []
    alarm.remove()
    assert task.result(30).confirmed == 10


def test_a_broker_that_blocks_publishers_for_too_long_fails_the_task(broker):
    broker.faults.memory_alarm()
    with pytest.raises(PublishError, match=r"for 0.1 s: it blocks publishers \(low on memory\), and 10 mess"):
        sink.write(broker, rows(10), confirmTimeout="100ms")


@pytest.fixture
def stopped(broker, elsewhere):
    """A task that has published 10 of 20 messages when the broker stops its channel, and the stop."""

    def stopped(**more):
        held = broker.faults.on("confirm").hold()
        answered = broker.faults.on("channel.flow-ok").call(lambda _: None)
        task = elsewhere(sink.write, broker, rows(20), maxInFlight="10", **more)
        held.wait(10)
        stop = broker.faults.channel_flow()
        answered.wait(1)
        held.remove()
        return task, stop

    return stopped


def test_a_broker_that_stops_a_channel_is_waited_for(broker, stopped, caplog):
    task, stop = stopped()
    broker.wait_for(lambda: "the broker blocks publishers: channel.flow" in caplog.text)
    stop.remove()
    assert task.result(30).confirmed == 20


def test_a_broker_that_stops_a_channel_for_too_long_fails_the_task(broker, stopped):
    task, _ = stopped(confirmTimeout="500ms")
    with pytest.raises(PublishError, match=r"it blocks publishers \(channel.flow\), and 0 .* 10 of the 10"):
        task.result(30)
    assert bodies(broker) == list(range(10))


class Stub:
    """A channel that is open, and a connection in whose turns time passes and `blocked` changes."""

    def __init__(self, clock, *turns):
        self.connection, self.flowing, self._clock, self._turns = self, True, clock, [*turns]
        self.blocked = None

    def check(self):
        pass

    def turn(self, _timeout):
        seconds, self.blocked = self._turns.pop(0)
        self._clock.now += seconds


def test_confirm_timeout_starts_again_when_the_broker_blocks_or_unblocks_publishers(monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=5.0)
    monkeypatch.setattr(publisher, "time", clock)
    publishing = publisher.SinkPublisher(
        write_options(sink.options("amqp://localhost/", confirmTimeout="10s"))
    )
    publishing._since = clock.now
    channel = Stub(clock, (8, "low on memory"), (8, None), (8, None), (8, None))
    with pytest.raises(ConnectionLost, match="nothing for 10 s: 0 messages"):
        publishing._wait(channel, lambda: False)
    assert clock.now == 5.0 + 4 * 8


# The driver's part


@pytest.mark.parametrize("kind", [BatchWriter, MicroBatchWriter])
def test_commit_and_abort_log_counts_of_published_messages(kind, caplog):
    caplog.set_level("INFO", "fakeamqp.spark.sink")
    writer = kind(write_options(sink.options("amqp://localhost/")), sink.schema(["value"]))
    messages = [writers.Written(0, 5, 5, 2, 1), writers.Written(1, 6, 6, 0, 0)]
    batch = () if kind is BatchWriter else (3,)
    writer.commit(messages, *batch)
    writer.abort([*messages, None], *batch)
    committed, aborted = caplog.records
    counts = ": published 11, confirmed 11, returned 2, republished 1"
    assert all(record.getMessage().endswith(counts) for record in caplog.records)
    assert committed.levelname == aborted.levelname == "WARNING"
    assert "what is published stays published" in aborted.getMessage()
    if batch:
        assert all("batch 3" in record.getMessage() for record in caplog.records)
    writer.commit([writers.Written(0, 5, 5, 0, 0)], *batch)
    assert caplog.records[-1].levelname == "INFO"
