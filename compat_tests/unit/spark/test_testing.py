"""What runs streaming jobs under test, as far as it needs no Spark."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from fakeamqp.spark.spool.lock import FolderLock
from fakeamqp.spark.testing import AmqpStream, CrashNotPossible, QueryTimeout
from fakeamqp.spark.testing.checkpoint import Checkpoint
from fakeamqp.spark.testing.crashes import block_commit
from fakeamqp.spark.testing.spools import Spools
from fakeamqp.spark.testing.waiting import until_done, until_failed


class Query:
    """A query that is over when it is stopped."""

    lastProgress = None
    status: ClassVar = {"message": "busy"}

    def __init__(self, *ends):
        self.stopped = threading.Event()
        self._ends = ends

    def stop(self):
        self.stopped.set()

    def awaitTermination(self, timeout):
        [end] = self._ends
        if isinstance(end, Exception):
            raise end
        return bool(end)


def test_query_not_finished_within_timeout_is_stopped():
    query = Query()
    with pytest.raises(QueryTimeout, match=r"not through in 0.01 s; no batch is through, and it says: busy"):
        until_done(query, query.stopped.wait, 0.01)
    assert query.stopped.is_set()
    assert "amqp-stream-wait" not in {thread.name for thread in threading.enumerate()}


def test_until_done_raises_failure_of_waiting_function():
    def fail():
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        until_done(Query(), fail, 5)
    until_done(Query(), lambda: None, 5)


def test_until_failed_returns_error_or_raises_query_timeout():
    error = ValueError("on purpose")
    assert until_failed(Query(error), 1) is error
    with pytest.raises(QueryTimeout, match="has ended, and has not failed"):
        until_failed(Query(True), 1)
    with pytest.raises(QueryTimeout, match="has not failed in 1 s"):
        until_failed(Query(False), 1)


class Starting(Query):
    """A query that ends as soon as it is waited for, with an error or without."""

    isActive = False

    def exception(self):
        return None

    def __init__(self, error="", progress=None):
        super().__init__()
        self._error = error
        self.lastProgress = progress

    def processAllAvailable(self):
        if self._error:
            raise RuntimeError(self._error)


LATE = "terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"


@pytest.fixture
def starts(tmp_path, monkeypatch):
    """A function that gives a stream the queries that it starts one after the other."""

    def prepare(*queries):
        stream, to_come = AmqpStream(None, "amqp://127.0.0.1", tmp_path), list(queries)
        writer = SimpleNamespace(option=lambda *_: writer, start=lambda: to_come.pop(0))
        monkeypatch.setattr("fakeamqp.spark.testing.stream.writer_of", lambda *_: writer)
        stream.start(lambda rows: rows)
        return stream, to_come

    return prepare


def test_query_with_late_worker_is_started_again(starts):
    stream, to_come = starts(Starting(LATE), Starting(LATE), Starting())
    stream.process_all()
    assert to_come == []
    assert stream.error is None


def test_a_query_is_started_again_twice_at_most(starts):
    stream, to_come = starts(*(Starting(LATE) for _ in range(4)))
    with pytest.raises(RuntimeError, match="failed to connect back"):
        stream.process_all()
    assert len(to_come) == 1
    assert LATE in str(stream.error)


@pytest.mark.parametrize(
    "failed",
    [Starting("on purpose"), Starting(LATE, {"batchId": 0})],
    ids=["another error", "in a later batch"],
)
def test_no_other_failure_is_tried_again(starts, failed):
    stream, to_come = starts(failed, Starting())
    with pytest.raises(RuntimeError):
        stream.process_all()
    assert len(to_come) == 1


def spool_of(stream, queue):
    spool = Path(stream.options(queue=queue)["spoolDir"])
    spool.mkdir(parents=True)
    return spool


def test_the_end_of_a_query_is_that_of_its_source(starts, monkeypatch):
    """Spark's `stop` returns while the source still has the spool."""
    stream, _ = starts(Starting())
    source = FolderLock(spool_of(stream, "orders"))
    waits = []

    def release_late(seconds):
        waits.append(seconds)
        source.release()

    monkeypatch.setattr("fakeamqp.spark.spool.lock.time.sleep", release_late)
    stream.stop()
    assert len(waits) == 1


def test_reads_of_other_queues_have_spools_of_their_own(tmp_path):
    stream = AmqpStream(None, "amqp://127.0.0.1", tmp_path)

    def spool(*queues):
        return Path(stream.options(queue=list(queues))["spoolDir"])

    names = ["orders", "Orders", "a/b", "a_b", "..", "é", "x" * 255, "x" * 254]
    spools = {spool(name) for name in names}
    assert len({str(each).lower() for each in spools}) == len(names)
    assert all(each.parent == stream.spool and len(each.name) < 60 for each in spools)
    assert spool("a/b é").name == f"a_b__-{hashlib.sha256('a/b é'.encode()).hexdigest()[:8]}"
    assert spool("x" * 41).name.startswith("x" * 40 + "-")
    # The list of shards may change.
    assert spool("a", "b") == spool("b", "a") == spool("a", "b", "c") == spool("a")
    assert spool("clicks-{0..2}") == spool("clicks-0", "clicks-1")


def test_a_job_on_other_queues_continues_with_the_spool(tmp_path):
    spools = Spools(tmp_path)
    orders, alerts = spools.folder_for("orders"), spools.folder_for("alerts")
    spools.job_begins()
    assert (spools.folder_for("alerts"), spools.folder_for("orders")) == (alerts, orders)
    spools.job_begins()
    refunds = spools.folder_for("refunds")
    assert refunds == orders
    assert len({refunds, spools.folder_for("orders"), spools.folder_for("alerts")}) == 3


def test_another_object_finds_the_spools_of_a_job(tmp_path):
    spools, others = Spools(tmp_path), Spools(tmp_path)
    orders, alerts = spools.folder_for("orders"), spools.folder_for("alerts")
    assert (others.folder_for("alerts"), others.folder_for("orders")) == (alerts, orders)


def write(checkpoint, kind, batch):
    path = checkpoint.path / kind / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("v1")


def test_a_checkpoint_tells_its_batches(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    assert checkpoint.committed == -1
    for batch in range(12):
        write(checkpoint, "offsets", batch)
        write(checkpoint, "commits", batch)
    write(checkpoint, "offsets", 12)
    write(checkpoint, "commits", ".12.crc")
    assert checkpoint.committed == 11


def test_a_blocked_commit_is_there_as_soon_as_the_batch_is_begun(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    link = block_commit(checkpoint, running=False)
    assert link == checkpoint.commit(0)
    assert not link.exists()
    assert checkpoint.committed == -1
    write(checkpoint, "offsets", 0)
    assert link.exists()


def test_the_commit_of_a_batch_under_way_can_be_blocked_while_its_query_runs(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    write(checkpoint, "offsets", 0)
    with pytest.raises(CrashNotPossible, match="batch 0"):
        block_commit(checkpoint, running=False)
    assert block_commit(checkpoint, running=True).exists()


def test_a_commit_that_comes_first_makes_it_the_next_batch(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path)
    symlink = os.symlink

    def after_spark(target, link):
        monkeypatch.setattr(os, "symlink", symlink)
        write(checkpoint, "offsets", 0)
        write(checkpoint, "commits", 0)
        symlink(target, link)

    monkeypatch.setattr(os, "symlink", after_spark)
    assert block_commit(checkpoint, running=True) == checkpoint.commit(1)
