"""The fixture `amqp_stream`, on a source of files: what it does with queries is the same for every source."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.spark.testing import NotACrash, NotStarted, QueryTimeout


class Lines:
    """Text files that a query reads, and what it has written, with the number of the batch."""

    def __init__(self, spark, folder):
        self.written = []
        self._spark = spark
        self._folder = folder
        self._files = 0

    def put(self, *lines):
        unfinished = self._folder / f".{self._files}"
        unfinished.write_text("\n".join(lines))
        unfinished.rename(self._folder / f"{self._files}.txt")
        self._files += 1

    def source(self):
        return self._spark.readStream.text(str(self._folder))

    def job(self):
        def write(rows, batch):
            self.written.append((batch, [row.value for row in rows.collect()]))

        return self.source().writeStream.foreachBatch(write)


@pytest.fixture
def lines(spark, tmp_path):
    return Lines(spark, tmp_path)


def test_run_available_goes_on_where_the_one_before_has_ended(lines, amqp_stream):
    lines.put("one")
    amqp_stream.run_available(lines.job())
    lines.put("two")
    amqp_stream.run_available(lines.job())
    assert lines.written == [(0, ["one"]), (1, ["two"])]


def test_process_all_waits_for_present_rows_and_restart_continues_query(lines, amqp_stream):
    query = amqp_stream.start(lines.job())
    lines.put("one")
    amqp_stream.process_all()
    assert lines.written == [(0, ["one"])]
    again = amqp_stream.restart()
    assert again is amqp_stream.query
    assert again.id == query.id
    assert not query.isActive
    lines.put("two")
    amqp_stream.process_all()
    assert lines.written == [(0, ["one"]), (1, ["two"])]


def test_rows_without_an_exchange_are_gathered_once_for_each_batch(lines, amqp_stream):
    lines.put("one")
    with amqp_stream.crash():
        amqp_stream.run_available(lines.source().selectExpr("upper(value) AS value"))
    amqp_stream.restart()
    amqp_stream.process_all()
    assert [row.value for row in amqp_stream.rows] == ["ONE"]


def test_a_crash_is_between_the_write_and_the_note_of_it(lines, amqp_stream):
    """Of a new query, of one that runs, and of one that is not running."""
    lines.put("one")
    with amqp_stream.crash() as first:
        amqp_stream.run_available(lines.job())
    assert first.error is amqp_stream.error
    amqp_stream.start(lines.job())
    amqp_stream.process_all()
    with amqp_stream.crash():
        lines.put("two")
    amqp_stream.restart()
    amqp_stream.process_all()
    amqp_stream.stop()
    lines.put("three")
    crash = amqp_stream.crash()
    amqp_stream.restart()
    assert crash.wait() is crash.error
    amqp_stream.restart()
    amqp_stream.process_all()
    assert lines.written == [(n, [text]) for n, text in enumerate(("one", "two", "three")) for _ in range(2)]


def test_other_failure_in_crash_block_raises_not_a_crash(lines, make_amqp_stream):
    def fail(rows, batch):
        raise ValueError("not this one")

    stream = make_amqp_stream()
    lines.put("one")
    with pytest.raises(NotACrash, match="not this one"), stream.crash():
        stream.start(lines.source().writeStream.foreachBatch(fail))
    with pytest.raises(NotACrash, match="never came"):
        stream.close()
    assert not list(stream.checkpoint.joinpath("commits").iterdir())


def test_failure_of_query_is_raised_by_waiting_call_or_by_close(lines, amqp_stream, make_amqp_stream):
    def fail(rows, batch):
        raise ValueError("on purpose")

    lines.put("one")
    with pytest.raises(Exception, match="on purpose"):
        amqp_stream.run_available(lines.source().writeStream.foreachBatch(fail))
    amqp_stream.start(lines.source().writeStream.foreachBatch(fail))
    assert "on purpose" in str(amqp_stream.wait_failed())

    unseen = make_amqp_stream()
    query = unseen.start(lines.source().writeStream.foreachBatch(fail))
    with pytest.raises(Exception, match="on purpose"):
        query.awaitTermination()
    with pytest.raises(Exception, match="on purpose"):
        unseen.close()


def test_wait_failed_timeout_shows_status_of_running_query(lines, amqp_stream):
    amqp_stream.start(lines.job())
    with pytest.raises(QueryTimeout, match=r"has not failed in 0.01 s; .*and it says: \w"):
        amqp_stream.wait_failed(timeout=0.01)
    with pytest.raises(NotStarted, match="running already"):
        amqp_stream.start(lines.job())


@pytest.fixture
def queries(lines):
    """Queries without `amqp_stream`: one that runs before it is set up, and those that the test adds."""
    found = [lines.source().writeStream.format("noop").start()]
    yield found
    active = [query.isActive for query in found]
    for query in found:
        query.stop()
    assert active == [True, False, False]


def test_queries_that_a_test_starts_by_itself_are_stopped_too(queries, lines, amqp_stream):
    queries.append(lines.source().writeStream.format("noop").start())
    queries.append(amqp_stream.start(lines.job()))
    assert all(query.isActive for query in queries)
