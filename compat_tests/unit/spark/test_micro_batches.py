"""What readers do with the limits that Spark gives them, and how the process of a source ends."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given as given_by, strategies as some

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import examples
from compat_tests.unit.spark.micro_batches import ReadAllAvailable, table
from compat_tests.unit.spark.stream.streams import publisher
from fakeamqp import Broker
from fakeamqp.spark.micro_batches import exit_on_sigterm, most_rows, share
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue.reader import QueueStreamReader
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.shards import ShardStreamReader
from fakeamqp.spark.stream import StreamMicroBatchReader

each_reader = pytest.mark.parametrize(
    ("make", "options"),
    [
        (QueueStreamReader, {"queue": "orders"}),
        (QueueStreamReader, {"queue": "orders", "ackMode": "commit"}),
        (ShardStreamReader, {"queue": "orders,refunds", "shards": "2"}),
        (StreamMicroBatchReader, {"stream": "log"}),
    ],
    ids=["spool", "commit", "shards", "stream"],
)


def made(make, options, url, spool):
    """A reader, with a spool if its options need one."""
    needs_spool = not options.get("ackMode") and "stream" not in options
    given = {"amqp.url": url, **options, **({"spoolDir": str(spool)} if needs_spool else {})}
    parsed = read_options(given, streaming=True)
    return make(parsed, chosen_columns(parsed))


@each_reader
def test_preparation_for_available_now_opens_no_connection_and_no_spool(broker, tmp_path, make, options):
    """Spark does not stop it if the preparation of another source of the query fails."""
    spool = tmp_path / "spool"
    reader = made(make, options, broker.url, spool)
    reader.prepareForTriggerAvailableNow()
    assert pickle.loads(pickle.dumps(reader))._available_now is True
    broker.wait_until_idle()
    assert not broker.connections
    assert not spool.exists()


@each_reader
def test_a_batch_has_ten_thousand_rows_or_those_of_the_option(make, options, tmp_path):
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="limits came with PySpark 4.1")
    for more, rows in (({}, 10_000), ({"maxMessagesPerTrigger": "50"}, 50)):
        assert made(make, options | more, "amqp://h", tmp_path).getDefaultReadLimit().max_rows == rows


class ReadMaxRows:
    max_rows = 7.0


class ReadMaxFiles:
    """A limit that counts no rows."""


class ReadMaxBytes:
    max_rows = None


def test_most_rows_is_limit_of_read_max_rows_or_default():
    found = [most_rows(limit, 5) for limit in (ReadMaxRows(), ReadMaxFiles(), ReadMaxBytes(), None)]
    assert found == [7, 5, 5, 5]
    assert most_rows(ReadAllAvailable(), 5) is None


@pytest.mark.parametrize("given", [{"queue": "orders"}, {"queue": "orders,refunds", "shards": "2"}, {}])
def test_the_option_counts_where_a_limit_counts_no_rows(broker, tmp_path, given):
    with publisher(broker.url) as to:
        to.declare("log")
        for queue in ("orders", "log"):
            to.publish(queue, *range(5))
    given = {"spoolDir": str(tmp_path / "spool"), **given} if given else {"stream": "log"}
    parsed = read_options({"amqp.url": broker.url, "maxMessagesPerTrigger": "2", **given}, streaming=True)
    columns = chosen_columns(parsed)
    make = QueueStreamReader if "shards" not in given else ShardStreamReader
    reader = (StreamMicroBatchReader if "stream" in given else make)(parsed, columns)
    try:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadMaxFiles())
        assert len(table(reader, reader.partitions(start, end))) == 2
    finally:
        reader.stop()


@examples(200)
@given_by(
    some.dictionaries(some.text(max_size=3), some.integers(0, 10**7), max_size=8),
    some.none() | some.integers(1, 10**6),
)
def test_each_backlog_has_a_share_of_the_limit(backlogs, most):
    found = share(backlogs, most)
    assert found.keys() == {name for name, count in backlogs.items() if count}
    assert all(1 <= count <= backlogs[name] for name, count in found.items())
    total = sum(backlogs.values())
    expected = total if most is None else min(total, max(most, len(found)))
    assert sum(found.values()) == expected


@pytest.mark.parametrize(
    ("most", "found"),
    [
        (None, {"a": 1, "b": 11, "c": 31}),
        (43, {"a": 1, "b": 11, "c": 31}),
        (42, {"a": 1, "b": 10, "c": 31}),
        (23, {"a": 1, "b": 5, "c": 17}),
        (3, {"a": 1, "b": 1, "c": 1}),
        (2, {"a": 1, "b": 1, "c": 1}),
    ],
)
def test_shares_are_proportional_to_the_backlogs(most, found):
    assert share({"a": 1, "c": 31, "none": 0, "gone": -3, "b": 11}, most) == found
    assert share({}, most) == {}


# As PySpark's loop: it blocks in a read, and stops the reader whatever ends it.
SOURCE = """
import sys
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.options import read_options
from fakeamqp.spark.stream import StreamMicroBatchReader

options = read_options({"amqp.url": sys.argv[1], "stream": "log"}, streaming=True)
reader = StreamMicroBatchReader(options, chosen_columns(options))
try:
    print(reader.latestOffset({"log": 0}), flush=True)
    sys.stdin.read()
finally:
    reader.stop()
    print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_a_source_that_spark_ends_says_goodbye_to_the_broker():
    stream = {"name": "log", "durable": True, "arguments": {"x-queue-type": "stream"}}
    with (
        Broker(definitions={"queues": [stream]}) as broker,
        subprocess.Popen(
            [sys.executable, "-c", SOURCE, broker.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as source,
    ):
        assert source.stdout is not None
        assert source.stdout.readline() == "{'log': 0}\n"
        assert len(broker.connections) == 1
        source.send_signal(signal.SIGTERM)
        source.send_signal(signal.SIGTERM)  # Spark sends a second one at once.
        assert source.stdout.readline() == "stopped\n"
        assert source.wait() == 128 + signal.SIGTERM
        broker.wait_until_idle()
        assert not broker.connections


@pytest.fixture
def sigterm():
    """Sets the handler of SIGTERM, which is put back after the test."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda handler: signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGTERM, before)


def test_handlers_are_put_back(sigterm):
    sigterm(signal.SIG_DFL)
    restore = exit_on_sigterm()
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    restore()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_first_sigterm_ends_process_and_later_ones_are_ignored(sigterm):
    sigterm(signal.SIG_DFL)
    restore = exit_on_sigterm()
    with pytest.raises(SystemExit) as caught:
        signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None)
    assert caught.value.code == 143
    for _ in range(2):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        restore()


def test_foreign_sigterm_handler_is_not_replaced(sigterm):
    def theirs(_number, _frame):
        """Theirs."""

    sigterm(theirs)
    exit_on_sigterm()()
    assert signal.getsignal(signal.SIGTERM) is theirs


def test_only_a_main_thread_has_handlers():
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=lambda: exit_on_sigterm()())
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
