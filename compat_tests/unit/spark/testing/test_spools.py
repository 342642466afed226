"""The spools and the checkpoint of a streaming job under test."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.spark.testing import AmqpStream, CrashNotPossible
from fakeamqp.spark.testing.crashes import block_commit, last_committed
from fakeamqp.spark.testing.spools import Spools


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
    path = checkpoint / kind / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("v1")


def test_last_committed_is_highest_number_of_a_commit_file(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    assert last_committed(checkpoint) == -1
    for batch in range(12):
        write(checkpoint, "offsets", batch)
        write(checkpoint, "commits", batch)
    write(checkpoint, "offsets", 12)
    write(checkpoint, "commits", ".12.crc")
    assert last_committed(checkpoint) == 11


def test_a_blocked_commit_is_there_as_soon_as_the_batch_is_begun(tmp_path):
    link = block_commit(tmp_path, running=False)
    assert link == tmp_path / "commits" / "0"
    assert not link.exists()
    assert last_committed(tmp_path) == -1
    write(tmp_path, "offsets", 0)
    assert link.exists()
    assert last_committed(tmp_path) == -1


def test_the_commit_of_a_batch_under_way_can_be_blocked_while_its_query_runs(tmp_path):
    write(tmp_path, "offsets", 0)
    with pytest.raises(CrashNotPossible, match="batch 0"):
        block_commit(tmp_path, running=False)
    assert block_commit(tmp_path, running=True).exists()


def test_a_commit_that_comes_first_makes_it_the_next_batch(tmp_path, monkeypatch):
    symlink = os.symlink

    def after_spark(target, link):
        monkeypatch.setattr(os, "symlink", symlink)
        write(tmp_path, "offsets", 0)
        write(tmp_path, "commits", 0)
        symlink(target, link)

    monkeypatch.setattr(os, "symlink", after_spark)
    assert block_commit(tmp_path, running=True) == tmp_path / "commits" / "1"
