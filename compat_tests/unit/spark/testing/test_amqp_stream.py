"""The jobs of `AmqpStream`: what it asks of Spark, which is a recorder here, and what its queries become."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from compat_tests.tools.matrix import cases
from fakeamqp.spark.errors import OptionError, SpoolError
from fakeamqp.spark.queue.folder import FolderLock
from fakeamqp.spark.testing import AmqpStream, CrashNotPossible, NotACrash, NotStarted, QueryTimeout
from fakeamqp.spark.testing.crashes import kill_sources
from fakeamqp.spark.testing.errors import StreamTestError

URL = "amqp://127.0.0.1"
BLOCKED = RuntimeError("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.")


class Query:
    """A query, which a test ends."""

    lastProgress: Any = None
    status: ClassVar = {"message": "busy"}

    def __init__(self, error=None):
        self.isActive = True
        self.calls = []
        self.error = error

    def end(self, error=None):
        self.isActive, self.error = False, error

    def stop(self):
        self.calls.append("stop")
        self.isActive = False

    def exception(self):
        return self.error

    def processAllAvailable(self):
        self.calls.append("processAllAvailable")
        self._raise()

    def awaitTermination(self, *timeout):
        self.calls.append(("awaitTermination", *timeout))
        self._raise()
        return not self.isActive

    def _raise(self):
        if self.error is not None:
            self.isActive = False
            raise self.error


class Writer(DataStreamWriter):
    """A writer that notes what it is asked for."""

    def __init__(self, *queries):
        self.calls = {}
        self.queries = list(queries) or [Query()]

    def outputMode(self, mode):
        return self._note(outputMode=mode)

    def foreachBatch(self, function):
        return self._note(foreachBatch=function)

    def format(self, name):
        return self._note(format=name)

    def options(self, **options):
        return self._note(options=options)

    def option(self, key, value):
        return self._note(**{key: value})

    def trigger(self, **trigger):
        return self._note(trigger=trigger)

    def start(self):
        """The queries one after the other, the last one for ever."""
        return self.queries.pop(0) if len(self.queries) > 1 else self.queries[0]

    def _note(self, **calls):
        self.calls |= calls
        return self


class Rows(DataFrame):
    """Streaming rows, which have a writer."""

    isStreaming = True

    def __new__(cls, *_, **__):
        return object.__new__(cls)

    def __init__(self, format="", read=None):
        self.format, self.read, self.writer = format, read, Writer()

    @property
    def writeStream(self):
        return self.writer

    def collect(self):
        return self.read


def session():
    def reader(name):
        return SimpleNamespace(
            options=lambda **options: SimpleNamespace(load=lambda: Rows(name, options)),
        )

    return SimpleNamespace(readStream=SimpleNamespace(format=reader))


@pytest.fixture
def stream(tmp_path):
    return AmqpStream(session(), URL, tmp_path, {"amqp.heartbeat": 5, "amqp.tlsVerify": False})


CONNECTION = {"amqp.url": URL, "amqp.heartbeat": "5", "amqp.tlsVerify": "false"}


class Job:
    """A pipeline that keeps the rows of the source and has a result of its own, or hands them on."""

    def __init__(self, result=None):
        self.result = result

    def __call__(self, rows):
        self.rows = rows
        self.writer = rows.writer
        return rows if self.result is None else self.result


def folder(options):
    """The options without the folder of the spool, which is checked."""
    given = dict(options)
    assert Path(given.pop("spoolDir")).parent.name == "spool"
    return given


def test_a_job_reads_its_sources_with_the_options_of_the_source(stream):
    one = {"maxMessagesPerTrigger": 3, "routingKey": "a", "mandatory": True}
    with cases() as case:
        for name, key, value, text in [
            ("queue", "queue", "orders", "orders"),
            ("queue", "queue", ["a", "b"], "a,b"),
            ("stream", "stream", "log", "log"),
            ("super_stream", "superStream", ["x", "y"], "x,y"),
        ]:
            with case(name, text):
                job = Job()
                stream.start(job, **{name: value}, **one).end()
                expected = {**CONNECTION, key: text, "maxMessagesPerTrigger": "3"}
                read = folder(job.rows.read) if name == "queue" else job.rows.read
                assert (job.rows.format, read) == ("amqp", expected)
        for mode, has_spool in (("spool", True), ("commit", False), ("none", False)):
            with case(mode):
                read = stream.read(queue="orders", ackMode=mode).read
                assert ("spoolDir" in read) == has_spool
        for given in ({}, {"queue": "a", "stream": "b"}, {"stream": "a", "super_stream": "b"}):
            with case(given), pytest.raises(OptionError, match="say what to read, one of: queue="):
                stream.read(**given)


def test_options_of_a_reader_or_writer_of_the_job_itself(stream):
    given = stream.options(routingKey="alerts", mandatory=True)
    assert given == {**CONNECTION, "routingKey": "alerts", "mandatory": "true"}
    read = stream.options(Queue=["orders", "alerts"], **{"amqp.heartbeat": 7})
    assert folder(read) == {**CONNECTION, "Queue": "orders,alerts", "amqp.heartbeat": "7"}
    assert "spoolDir" not in stream.options(queue="orders", ackMode="commit")
    assert AmqpStream(session(), URL, stream.checkpoint).options() == {"amqp.url": URL}


def test_a_job_writes_where_its_options_say(stream):
    """To the exchange with the options of the sink, and into `rows` without any of them."""
    source = {"maxMessagesPerTrigger": 3}
    sink = {"routingKey": "alerts", "mandatory": True}
    both = {"amqp.connectionTimeout": "9s"}
    published = {**CONNECTION, "routingKey": "alerts", "mandatory": "true"}
    with cases() as case:
        for given, options in [
            ({}, None),
            (source, None),
            (both, None),
            ({**source, **sink}, published),
            ({"exchange": "", **sink}, {**published, "exchange": ""}),
            ({"exchange": "events"}, {**CONNECTION, "exchange": "events"}),
            ({"exchange": "events", **both}, {**CONNECTION, **both, "exchange": "events"}),
        ]:
            with case(given):
                job = Job()
                stream.start(job, queue="orders", **given).end()
                calls = job.writer.calls
                assert calls.pop("checkpointLocation") == str(stream.checkpoint)
                assert calls.pop("outputMode") == "append"
                if options is None:
                    calls.pop("foreachBatch")(Rows(read={"row": str(given)}), 0)
                    assert stream.rows == ["row"]
                    assert calls == {}
                else:
                    assert calls == {"format": "amqp", "options": options}
        with case("output mode"):
            job = Job()
            stream.start(job, queue="orders", output_mode="complete").end()
            assert job.writer.calls["outputMode"] == "complete"


def test_job_with_own_writer_gets_only_checkpoint_location_and_no_sink_options(stream):
    writer = Writer()
    stream.start(Job(writer), queue="orders", maxMessagesPerTrigger=3).end()
    assert writer.calls == {"checkpointLocation": str(stream.checkpoint)}
    with pytest.raises(OptionError, match=r"^mandatory, routingKey: the job has a writer of its own"):
        stream.start(Job(Writer()), queue="orders", routingKey="a", mandatory=True)
    rows = Rows()
    stream.start(rows).end()
    assert rows.writer.calls["outputMode"] == "append"
    stream.start(writer, **{"amqp.heartbeat": 1}).end()


def test_invalid_pipeline_is_refused_without_starting_query(stream):
    still = Rows()
    still.isStreaming = False
    with cases() as case:
        for pipeline, sources, expected in [
            (7, {"queue": "orders"}, "a pipeline is a function of the source's DataFrame, .* and not 7"),
            (Job(), {}, "say what the pipeline reads"),
            (Rows(), {"queue": "orders"}, "this pipeline has a source already"),
            (Writer(), {"queue": "orders"}, "this pipeline has a source already"),
            (Job(still), {"queue": "orders"}, "a DataFrame that is not streaming"),
            (Job(7), {"queue": "orders"}, "has returned 7, not a DataFrame and not the writeStream of one$"),
            (Job(Query()), {"queue": "orders"}, r"leave .start\(\) to amqp_stream"),
        ]:
            with case(expected), pytest.raises(StreamTestError, match=expected):
                stream.start(pipeline, **sources)
        with case("option"), pytest.raises(OptionError, match="'routingKeys'; did you mean 'routingKey'"):
            stream.start(Job(), queue="orders", routingKeys="a")
        assert stream.query is None


def test_a_query_is_waited_for_as_its_trigger_needs(stream):
    job = Job()
    query = stream.start(job, queue="orders")
    stream.process_all()
    assert query.calls == ["processAllAvailable"]
    assert "trigger" not in job.writer.calls
    query.end()
    job = Job()
    query = stream.run_available(job, queue="orders")
    assert query is stream.query
    assert query.calls == [("awaitTermination",)]
    assert job.writer.calls["trigger"] == {"availableNow": True}
    query.end()
    again = stream.restart()
    assert again is stream.query
    stream.process_all()
    assert again.calls[-1] == ("awaitTermination",)


def test_second_query_is_refused_while_query_runs(stream):
    with cases() as case:
        for call in (stream.process_all, stream.wait_failed, stream.restart, lambda: stream.crash("source")):
            with case("none", call), pytest.raises(NotStarted, match="there is no query yet"):
                call()
    stream.stop()
    query = stream.start(Job(), queue="orders")
    with pytest.raises(NotStarted, match="a query is running already"):
        stream.start(Job(), queue="orders")
    restarted = stream.restart()
    assert query.calls == ["stop"]
    stream.stop()
    stream.stop()
    assert restarted.calls == ["stop"]


def test_the_state_of_a_stream_is_in_its_repr(stream):
    assert repr(stream).startswith("<AmqpStream not started, 0 batches in ")
    assert (stream.query, stream.error, stream.cause, stream.rows) == (None, None, "", [])
    query = stream.start(Job(), queue="orders")
    commit(stream, 0)
    assert repr(stream) == f"<AmqpStream running, 1 batches in {stream.checkpoint}>"
    query.end()
    assert "ended" in repr(stream)


def test_a_batch_that_runs_again_replaces_its_rows(stream):
    gather = stream._gather
    for number, rows in ((1, ["c"]), (0, ["a"]), (1, ["b", "c"])):
        gather(SimpleNamespace(collect=lambda rows=rows: rows), number)
    assert stream.rows == ["a", "b", "c"]


class Captured(RuntimeError):
    __module__ = "pyspark.errors.exceptions.captured"


def test_a_failure_is_raised_once(stream):
    error = Captured("failed: Traceback (most recent call last):\n  File 'a'\nValueError: on purpose")
    with cases() as case:
        for handle in (stream.process_all, stream.wait_failed, stream.restart):
            with case("handled", handle):
                query = stream.start(Job(), queue="orders")
                assert (stream.error, stream.cause) == (None, "")
                query.end(error)
                try:
                    handle()
                except Captured as raised:
                    assert raised is error
                if handle == stream.restart:
                    assert stream.query is not query
                else:
                    assert stream.error is error
                    assert stream.cause == "ValueError: on purpose"
                stream.stop()
        with case("not handled"):
            stream.start(Job(), queue="orders").end(error)
            with pytest.raises(Captured):
                stream.close()
            assert stream.error is error
            stream.close()


def test_wait_failed_and_process_all_raise_query_timeout(stream):
    query = stream.start(Job(), queue="orders")
    with pytest.raises(QueryTimeout, match="the query has not failed in 7 s"):
        stream.wait_failed(7)
    assert query.calls == [("awaitTermination", 7)]
    query.lastProgress = {"batchId": 4}
    with pytest.raises(QueryTimeout, match="in 60 s; it was last heard of at batch 4, and it says: busy"):
        stream.wait_failed()
    assert stream.error is None
    stopped = threading.Event()
    query.lastProgress, query.processAllAvailable = None, stopped.wait
    stop = query.stop
    query.stop = lambda: (stop(), stopped.set())
    with pytest.raises(QueryTimeout, match=r"not through in 0\.01 s; no batch is through, and it says: busy"):
        stream.process_all(0.01)
    assert not query.isActive
    assert "amqp-stream-wait" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(QueryTimeout, match="has ended, and has not failed"):
        stream.wait_failed(1)


LATE = "terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"


def failing(error, progress=None):
    """A query that fails as soon as it is waited for."""
    query = Query(RuntimeError(error))
    query.lastProgress = progress
    return query


def test_query_with_late_worker_is_started_again_twice_at_most(stream):
    last = Query()
    stream.start(Job(Writer(failing(LATE), failing(LATE), last)), queue="orders")
    stream.process_all()
    assert (stream.query, stream.error) == (last, None)
    last.end()
    writer = Writer(*(failing(LATE) for _ in range(4)))
    stream.start(Job(writer), queue="orders")
    with pytest.raises(RuntimeError, match="failed to connect back"):
        stream.process_all()
    assert len(writer.queries) == 1
    assert LATE in str(stream.error)


@pytest.mark.parametrize(
    "failed",
    [("on purpose",), (LATE, {"batchId": 0})],
    ids=["another error", "in a later batch"],
)
def test_no_other_failure_is_tried_again(stream, failed):
    writer = Writer(failing(*failed), Query())
    stream.start(Job(writer), queue="orders")
    with pytest.raises(RuntimeError):
        stream.process_all()
    assert len(writer.queries) == 1


def commit(stream, batch, *kinds):
    for kind in kinds or ("offsets", "commits"):
        path = stream.checkpoint / kind / str(batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1")


def links(stream):
    return [path.name for path in stream.checkpoint.glob("commits/*") if path.is_symlink()]


def test_a_crash_after_the_sink_happens_with_the_next_batch(stream):
    commit(stream, 0)
    crash = stream.crash()
    assert (crash.how, crash.error, repr(crash)) == ("commit", None, "<Crash commit: to come>")
    assert links(stream) == ["1"]
    with pytest.raises(CrashNotPossible, match="a crash is to come already"):
        stream.crash("commit")
    query = stream.start(Job(), queue="orders")
    query.end(BLOCKED)
    assert crash.wait(5) is BLOCKED
    assert query.calls == [("awaitTermination", 5)]
    assert crash.wait() is BLOCKED
    assert repr(crash) == "<Crash commit: happened>"
    assert links(stream) == []
    query.end(RuntimeError(f"{BLOCKED} again"))
    stream.wait_failed()
    assert crash.error is BLOCKED
    stream.close()
    commit(stream, 1, "offsets")
    with pytest.raises(CrashNotPossible, match=r"batch 1 has crashed before .*: restart\(\) first"):
        stream.crash()
    stream.restart()
    assert stream.crash() is not crash
    assert links(stream) == ["1"]
    stream.query.end(BLOCKED)
    stream.wait_failed()
    stream.close()


def test_crash_block_expects_crash_and_raises_not_a_crash_otherwise(stream):
    query = stream.start(Job(), queue="orders")
    with stream.crash() as crash:
        query.end(BLOCKED)
    assert crash.error is BLOCKED
    query = stream.restart()
    with stream.crash() as crash:  # Of `process_all` or `run_available`.
        query.error = BLOCKED
        stream.process_all()
    assert crash.error is BLOCKED
    other = RuntimeError("on purpose")
    query = stream.restart()
    crash = stream.crash()
    with pytest.raises(NotACrash, match="the query failed, but not by the crash: on purpose"), crash:
        query.end(other)
    with pytest.raises(ValueError, match="of the test"), crash:
        raise ValueError("of the test")
    assert links(stream) != []
    with pytest.raises(NotACrash, match="the crash never came"):
        stream.close()
    assert links(stream) == []
    stream.close()


def test_unknown_crash_point_is_refused(stream):
    with pytest.raises(CrashNotPossible, match="there is no crash 'sink'; there are 'commit' and 'source'"):
        stream.crash("sink")


def test_a_killed_source_makes_its_query_fail(stream, monkeypatch):
    killed = []
    query = stream.start(Job(), queue="orders")
    error = RuntimeError("the source is gone")

    def kill(spark, spools):
        killed.append((spark, spools))
        query.end(error)

    monkeypatch.setattr("fakeamqp.spark.testing.stream.kill_sources", kill)
    crash = stream.crash("source")
    assert (crash.how, crash.error, repr(crash)) == ("source", error, "<Crash source: happened>")
    assert killed == [(stream._session, stream.checkpoint / "spool")]
    with pytest.raises(CrashNotPossible, match="there is no source to kill: the query is not running"):
        stream.crash("source")
    stream.close()


def test_stop_waits_for_spool_lock_of_source_and_raises_spool_error_if_it_stays(stream, monkeypatch):
    """Spark's `stop` returns while the source still has the spool."""
    stream.start(Job(), queue="orders")
    folder = Path(stream.options(queue="orders")["spoolDir"])
    folder.mkdir(parents=True)
    held = FolderLock(folder)
    with monkeypatch.context() as patch:
        patch.setattr(FolderLock.__init__, "__defaults__", (0.0,))
        with pytest.raises(SpoolError, match="in use by another query"):
            stream.stop()
    waits = []
    monkeypatch.setattr(
        "fakeamqp.spark.queue.folder.time.sleep", lambda seconds: (waits.append(seconds), held.release())
    )
    stream.stop()
    assert len(waits) == 1


class Child:
    """A child process, as Java tells of it."""

    def __init__(self, pid, command):
        self.pid = lambda: pid
        self.info = lambda: SimpleNamespace(
            commandLine=lambda: SimpleNamespace(orElse=lambda otherwise: command or otherwise)
        )


def session_with(*children):
    """A session whose Java has these children."""
    current = SimpleNamespace(children=lambda: SimpleNamespace(toList=lambda: list(children)))
    lang = SimpleNamespace(ProcessHandle=SimpleNamespace(current=lambda: current))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=lang))
    return SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm))


SOURCE = "python -m pyspark.sql.streaming.python_streaming_source_runner"


def test_only_the_sources_of_a_query_are_killed(tmp_path, monkeypatch):
    """The only source, or of several those that have a file of its spools open."""
    killed = []
    monkeypatch.setattr(os, "kill", lambda *given: killed.append(given))
    spools = tmp_path / "spool"
    spools.mkdir()
    worker, here, gone = (
        Child(1, "python -m pyspark.daemon"),
        Child(os.getpid(), SOURCE),
        Child(2**30, SOURCE),
    )
    no_text = Child(3, None)
    with open(spools / "lock", "w"), cases() as case:
        for name, children, folder, expected in [
            ("one", (worker, gone, no_text), tmp_path / "other", [2**30]),
            ("its spool", (gone, here, worker), spools, [os.getpid()]),
        ]:
            with case(name):
                killed.clear()
                kill_sources(session_with(*children), folder)
                assert killed == [(each, signal.SIGKILL) for each in expected]
        for children, folder, count in [
            ((), spools, "no"),
            ((worker, no_text), spools, "no"),
            ((gone, here), tmp_path / "other", "2"),
            ((gone, here), tmp_path / "spoo", "2"),
        ]:
            with (
                case(count, len(children), folder.name),
                pytest.raises(CrashNotPossible, match=f"^{count} processes may be the source"),
            ):
                killed.clear()
                kill_sources(session_with(*children), folder)
            assert killed == []


def test_crash_of_source_is_refused_if_open_files_cannot_be_listed(tmp_path, monkeypatch):
    def fail(_):
        raise OSError("not permitted")

    monkeypatch.setattr(os, "readlink", fail)
    with open(tmp_path / "lock", "w"), pytest.raises(CrashNotPossible, match="2 processes may be the source"):
        kill_sources(session_with(Child(os.getpid(), SOURCE), Child(2**30, SOURCE)), tmp_path)
