"""The files of a spool are regular files: links are not followed, and pipes do not block."""

from __future__ import annotations

import os
import socket

import pyarrow as pa
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.wire.played import Connection
from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.queue import folder as folders
from fakeamqp.spark.queue.folder import FolderLock, SpoolFolder

BATCH = pa.RecordBatch.from_pydict({"body": [b"1", b"2"]})
SEGMENT = f"{0:020d}-2.arrow"
pytestmark = pytest.mark.timeout(30)


def use(path):
    """All that a query does with the folder."""
    lock = FolderLock(path)
    try:
        folder = SpoolFolder(path, sync=False)
        folder.state()
        folder.segments()
        folder.write(2, BATCH)
        folder.save("id", 2)
    finally:
        lock.release()


@pytest.fixture
def used(tmp_path):
    """A folder with a lock, a state and a segment."""
    path = tmp_path / "spool"
    path.mkdir()
    use(path)
    SpoolFolder(path, sync=False).write(0, BATCH)
    return path


@pytest.mark.parametrize("name", ["lock", "state.json", SEGMENT, "state.json.tmp", f"{2:020d}-2.arrow.tmp"])
@pytest.mark.parametrize("kind", ["a symbolic link", "a FIFO"])
def test_symbolic_link_or_fifo_as_spool_file_is_refused(used, tmp_path, name, kind):
    target = tmp_path / "precious"
    target.write_bytes(b"mine")
    (used / name).unlink(missing_ok=True)
    if kind == "a FIFO":
        os.mkfifo(used / name)
    else:
        (used / name).symlink_to(target)
    with pytest.raises(SpoolError, match=f"{name} is a symbolic link or a special file; a spool has regular"):
        if not name.endswith(".tmp"):
            use(used)
        elif name.startswith("0"):
            SpoolFolder(used, sync=False).write(2, BATCH)
        else:
            SpoolFolder(used, sync=False).save("id", 2)
    assert target.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["lock", "state.json.tmp"])
@pytest.mark.parametrize("kind", ["a symbolic link", "a FIFO"])
def test_file_replaced_after_check_is_neither_followed_nor_waited_for(
    used, tmp_path, monkeypatch, name, kind
):
    target = tmp_path / "precious"
    target.write_bytes(b"mine")
    checked = folders._check_regular

    def check_and_replace(path):
        checked(path)
        path.unlink(missing_ok=True)
        os.mkfifo(path) if kind == "a FIFO" else path.symlink_to(target)

    monkeypatch.setattr(folders, "_check_regular", check_and_replace)
    with pytest.raises(SpoolError, match=name.removesuffix(".tmp")):
        FolderLock(used) if name == "lock" else SpoolFolder(used, sync=False).save("id", 2)
    assert target.read_bytes() == b"mine"


def test_a_lock_is_waited_for_until_its_holder_ends(tmp_path, monkeypatch):
    """Or until it is clear who has it."""
    clock = Connection()
    monkeypatch.setattr(folders, "time", clock)
    monkeypatch.setattr(folders, "_BETWEEN", 1)
    held = FolderLock(tmp_path)
    text = rf"spool in {tmp_path} is in use by .* \(process {os.getpid()} on {socket.gethostname()}\)"
    with pytest.raises(SpoolError, match=text):
        FolderLock(tmp_path, 3)
    assert clock.calls == [("sleep", 1)] * 3
    os.truncate(tmp_path / "lock", 0)
    with pytest.raises(SpoolError, match=r"\(unknown\): stop that query"):
        FolderLock(tmp_path, 0)
    (tmp_path / "lock").write_bytes(b" \xff\n")
    with pytest.raises(SpoolError, match="\\(\ufffd\\): stop that query"):
        FolderLock(tmp_path, 0)
    (tmp_path / "lock").write_text("a name that is longer than that of any process of any machine" * 9)
    monkeypatch.setattr(clock, "sleep", lambda _: held.release())
    again = FolderLock(tmp_path)
    assert (tmp_path / "lock").read_text() == f"process {os.getpid()} on {socket.gethostname()}\n"
    again.release()
    again.release()
    held.release()
    FolderLock(tmp_path, 0).release()


def test_symbolic_link_to_spool_folder_can_be_used(used, tmp_path):
    (tmp_path / "link").symlink_to(used)
    use(tmp_path / "link")
