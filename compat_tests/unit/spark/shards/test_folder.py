"""The folder of shards: complete segments, the state, and files that are left over."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.shards.folder import Filled, SharedFolder, State

FOLDERS = {"local": "{}", "uri": "file://{}", "another file system": "mock:/spool"}


@pytest.fixture(params=FOLDERS.values(), ids=FOLDERS)
def folder(request, tmp_path):
    return SharedFolder(request.param.format(tmp_path / "spool"))


SCHEMA = pa.schema([("value", pa.int64())])


def batch(*numbers):
    return pa.record_batch([pa.array(numbers, pa.int64())], SCHEMA)


def numbers_of(folder, shard, number):
    return [value for part in folder.read(shard, number) for value in part.column(0).to_pylist()]


def test_a_folder_is_on_the_disk_before_its_segments_are(monkeypatch, tmp_path):
    synced = []
    monkeypatch.setattr(SharedFolder, "_sync", lambda _self, path: synced.append(path))
    folder = SharedFolder(str(tmp_path / "spool"))
    folder.state()
    assert synced[0] == str(tmp_path)
    synced.clear()
    assert folder.write("a", 0, SCHEMA, [])
    assert synced[0] == str(tmp_path / "spool")
    assert synced[1].startswith(str(tmp_path / "spool" / "a" / "000000000000.arrow."))
    assert synced[2:] == [str(tmp_path / "spool" / "a")]


def test_segment_fails_if_folder_cannot_be_synced(monkeypatch, tmp_path):
    """The name is given by then, and only the folder's own entry may be lost."""
    folder = SharedFolder(str(tmp_path / "spool"))
    folder.write("a", 0, SCHEMA, [])
    fsync = os.fsync

    def fails(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(SpoolError, match="Input/output error"):
        folder.write("a", 1, SCHEMA, [])


def test_first_complete_segment_of_two_attempts_is_kept_and_a_failed_one_is_not(folder):
    def failing():
        yield batch(0)
        raise ZeroDivisionError

    def second():
        yield batch(3)
        yield batch(4)

    def first():
        yield batch(1, 2)
        assert folder.write("a/b", 3, SCHEMA, second())

    with pytest.raises(ZeroDivisionError):
        folder.write("a/b", 3, SCHEMA, failing())
    there = folder.contents("a/b")
    assert (there.sizes, there.temporaries, there.end) == ({}, {}, 0)
    assert not folder.write("a/b", 3, SCHEMA, first())
    there = folder.contents("a/b")
    assert list(there.sizes) == [3]
    assert there.sizes[3] > 0
    assert (there.temporaries, there.end) == ({}, 4)
    assert numbers_of(folder, "a/b", 3) == [3, 4]


def test_notes_have_the_counts_of_messages_and_go_with_their_segments(folder):
    for number, counts in enumerate([Filled(5), Filled(5, 1), Filled(5, 4, 3)]):
        folder.write("a", number, SCHEMA, [])
        folder.note("a", number, counts)
    there = folder.contents("a")
    assert there.filled == {0: (5, 0, 0), 1: (5, 1, 0), 2: (5, 4, 3)}
    for first in range(4):
        left = folder.tidy("a", folder.contents("a"), first, first)
        assert left == folder.contents("a")
        assert sorted(left.filled) == sorted(left.sizes) == list(range(first, 3))


def test_saved_state_of_shared_folder_is_read_again(folder):
    state = folder.state()
    assert state.committed == {}
    assert folder.state() == state
    folder.save(State(state.spool, {"a": 3}))
    folder.save(State(state.spool, {"a": 4}))
    assert folder.state() == State(state.spool, {"a": 4})


def test_shared_folder_with_segments_but_no_state_is_refused(folder):
    folder.write("a", 0, SCHEMA, [])
    with pytest.raises(SpoolError, match="has segments and no state"):
        folder.state()


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (b'{"format": 2, "spool": "x", "committed": {}}', "has format 2, this version reads 1"),
        (b'{"format": 1, "spool": "x"}', r"cannot read .*state-000000000003.json: KeyError\('committed'\)"),
        (b'{"format": 1, "spool": "x", "committed": []}', "AttributeError"),
        (b'{"format": 1, "spool": "x", "committed": {"a": "b"}}', "ValueError"),
        (b"[]", "TypeError"),
        (b"{", "JSONDecodeError"),
    ],
)
def test_unreadable_state_of_shared_folder_is_refused(tmp_path, state, said):
    folder = SharedFolder(str(tmp_path))
    folder.save(State("x", {"a": 1}))
    (tmp_path / "state-000000000003.json").write_bytes(state)
    (tmp_path / "state-000000000004.json.tmp").write_bytes(b"{}")
    for read in (folder.state, lambda: folder.require("x")):
        with pytest.raises(SpoolError, match=said):
            read()


def test_the_last_state_counts_and_one_query_saves_it(tmp_path):
    def names():
        return sorted(path.name for path in tmp_path.iterdir())

    folder, other = SharedFolder(str(tmp_path)), SharedFolder(str(tmp_path))
    folder.save(State("x", {"a": 1}))
    assert other.state() == State("x", {"a": 1})
    other.save(State("x", {"a": 2}))
    assert names() == ["state-000000000001.json"]
    with pytest.raises(SpoolError, match="is in use by another query"):
        folder.save(State("x", {"a": 3}))
    assert folder.state() == State("x", {"a": 2})
    folder.save(State("x", {"a": 3}))
    assert names() == ["state-000000000002.json"]
    # The state of a new spool that another query makes first counts.
    third = SharedFolder(str(tmp_path))
    third._state_number = 1
    SharedFolder(str(tmp_path)).require("x")
    with pytest.raises(SpoolError, match=r"has spool x, and the driver has spool y\. With 'shards'"):
        folder.require("y")
    with pytest.raises(SpoolError, match=r"has no spool, and the driver has spool y\."):
        SharedFolder(str(tmp_path / "nowhere")).require("y")


def test_two_queries_that_make_a_spool_at_once_have_the_same(tmp_path, monkeypatch):
    first, second = SharedFolder(str(tmp_path)), SharedFolder(str(tmp_path))
    publish_file = SharedFolder._publish

    def publish_after_the_other(self, path, write):
        monkeypatch.setattr(SharedFolder, "_publish", publish_file)
        second.state()
        return self._publish(path, write)

    monkeypatch.setattr(SharedFolder, "_publish", publish_after_the_other)
    assert first.state() == second.state() == SharedFolder(str(tmp_path)).state()
    assert [path.name for path in tmp_path.iterdir()] == ["state-000000000000.json"]


def test_state_replaced_during_read_is_read_as_newer_state(tmp_path, monkeypatch):
    folder, driver = SharedFolder(str(tmp_path)), SharedFolder(str(tmp_path))
    driver.save(State("x", {"a": 1}))
    state_path = SharedFolder._state_path

    def save_meanwhile(self, number):
        monkeypatch.setattr(SharedFolder, "_state_path", state_path)
        driver.save(State("x", {"a": 2}))
        return state_path(self, number)

    monkeypatch.setattr(SharedFolder, "_state_path", save_meanwhile)
    assert folder.state() == State("x", {"a": 2})


def test_the_files_of_a_shard_are_known_by_their_names(tmp_path):
    folder = SharedFolder(str(tmp_path))
    shard = tmp_path / "a%2Fb"
    shard.mkdir()
    names = (
        *("000000000001.arrow", "000000000003.arrow", "000000000001-5-2.filled", "000000000007-4-3-2.filled"),
        *("000000000003.arrow.x.tmp", "000000000004.arrow.x.tmp", "000000000009.arrow.x.tmp"),
        *("1.arrow", "000000000008.arrow.gz", "000000000008-1.filled", "x"),
    )
    for name in names:
        (shard / name).write_bytes(b"1234")
    there = folder.contents("a/b")
    assert there.sizes == {1: 4, 3: 4}
    assert there.filled == {1: (5, 2, 0), 7: (4, 3, 2)}
    assert {Path(path).name: number for path, number in there.temporaries.items()} == {
        "000000000003.arrow.x.tmp": 3,
        "000000000004.arrow.x.tmp": 4,
        "000000000009.arrow.x.tmp": 9,
    }
    assert there.end == 8
    assert folder.contents("nothing").end == 0
    left = folder.tidy("a/b", there, 3, 4)
    assert (left.sizes, left.filled, left.temporaries) == ({3: 4}, {7: (4, 3, 2)}, {})
    gone = {"000000000001.arrow", "000000000001-5-2.filled", "000000000003.arrow.x.tmp"}
    assert {path.name for path in shard.iterdir()} == {*names} - gone


def test_only_files_of_this_machine_are_brought_to_the_disk(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "fsync")
    SharedFolder(str(tmp_path), sync=False)._sync(str(tmp_path))
    SharedFolder("mock:/spool")._sync("/spool")
    with pytest.raises(AttributeError, match="fsync"):
        SharedFolder(str(tmp_path))._sync(str(tmp_path))


def test_spool_dir_on_unknown_file_system_is_refused():
    with pytest.raises(SpoolError, match="cannot use spoolDir 'ftp://somewhere/spool'"):
        SharedFolder("ftp://somewhere/spool")
