"""The folder of a spool: its lock, segments in Arrow's format, and how far Spark has processed them.

A file appears under its name only when it is complete: it is written under another one, brought to the disk,
renamed, and the folder is brought to the disk. What a crash leaves under the other name was not
acknowledged, and is thrown away.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import stat
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.queue.partitions import Block, read_segment
from fakeamqp.spark.spools import STATE, spool_error

_SEGMENT = re.compile(r"([0-9]{20})-([0-9]+)\.arrow")
_FORMAT = 1
# A query that is stopping still flushes and closes its connection.
_PATIENCE = 10.0
_BETWEEN = 0.02


class FolderLock:
    """A lock on a folder, held until `release`, or until the process ends in any way.

    Raises:
        SpoolError: if another source holds it for all of `patience` seconds, in which a holder may end; the
            text has the process id. Or if the folder cannot be locked.
    """

    def __init__(self, folder: Path, patience: float = _PATIENCE) -> None:
        deadline = time.monotonic() + patience
        with spool_error(f"cannot lock the spool in {folder}"):
            self._file = _open_regular(folder / "lock", os.O_RDWR | os.O_CREAT)
            try:
                while not self._acquired():
                    if time.monotonic() >= deadline:
                        holder = os.pread(self._file, 300, 0).decode("utf-8", "replace").strip()
                        raise SpoolError(
                            f"the spool in {folder} is in use by another query, or by another source of this "
                            f"one ({holder or 'unknown'}): stop that query, or give this source its own "
                            "spoolDir. Sources on one queue share its messages: to use them twice, as in a "
                            "self-join, write them to a table first, or use foreachBatch"
                        )
                    time.sleep(_BETWEEN)
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Release the lock. May be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _acquired(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class SpoolFolder:
    """The files of a spool. The user of the object holds the lock.

    Without `sync`, files are not brought to the disk: a crash of the machine may lose what was acknowledged.

    Raises:
        SpoolError: if the file system fails. All methods raise it.
    """

    def __init__(self, path: Path, *, sync: bool) -> None:
        self.path = path
        self._sync = sync

    def state(self) -> tuple[str, int]:
        """The id of the spool, and the first row that Spark has not processed; of a new spool if need be.

        Raises:
            SpoolError: if it cannot be read, or segments are there without it.
        """
        try:
            with open(_open_regular(self.path / STATE, os.O_RDONLY), encoding="utf-8") as file:
                said = json.load(file)
            if said["format"] != _FORMAT:
                raise SpoolError(
                    f"the spool in {self.path} has format {said['format']}, this version reads {_FORMAT}"
                )
            return str(said["spool"]), int(said["committed"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SpoolError(f"cannot read {self.path / STATE}: {error}") from None
        if any(_SEGMENT.fullmatch(name) for name in os.listdir(self.path)):
            raise SpoolError(
                f"{self.path} has segments of a spool, and its {STATE} is gone; bring it back, or move them "
                "away and use a new checkpoint"
            )
        spool = str(uuid.uuid4())
        self.save(spool, 0)
        return spool, 0

    def save(self, spool: str, committed: int) -> None:
        """Write the state."""
        text = json.dumps({"format": _FORMAT, "spool": spool, "committed": committed})
        self._put(STATE, lambda file: file.write(text.encode()))

    def segments(self) -> list[Block]:
        """All segments in their order. Leftovers of a crash are removed."""
        found = []
        with spool_error(f"cannot read the spool in {self.path}"):
            for path in sorted(self.path.iterdir()):
                if match := _SEGMENT.fullmatch(path.name):
                    _check_regular(path)
                    first, rows = map(int, match.groups())
                    wrong = _what_is_wrong(path, rows)
                    found.append(Block(first, first + rows, path.stat().st_size, None, str(path), wrong))
                elif path.suffix == ".tmp":
                    path.unlink()
        return found

    def write(self, first: int, batch: pa.RecordBatch) -> Block:
        """Write rows `first` and so on as a segment; it is on the disk when this returns, or not there."""
        name, end = f"{first:020d}-{batch.num_rows}.arrow", first + batch.num_rows

        def content(file: Any) -> None:
            with pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)

        return Block(first, end, self._put(name, content), path=str(self.path / name))

    def remove(self, segments: Iterable[Block]) -> None:
        """Remove segments. One that cannot be removed stays; that is harmless."""
        for segment in segments:
            with suppress(OSError):
                os.unlink(segment.path)

    def _put(self, name: str, content: Callable[[Any], Any]) -> int:
        """Write a file atomically. Returns its size in bytes."""
        path = self.path / name
        unfinished = path.with_name(name + ".tmp")
        try:
            with spool_error(f"cannot write {path}"):
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                with open(_open_regular(unfinished, flags), "wb") as file:
                    content(file)
                    file.flush()
                    size = os.fstat(file.fileno()).st_size
                    if self._sync:
                        os.fsync(file.fileno())
                os.replace(unfinished, path)
                if self._sync:
                    folder = os.open(self.path, os.O_RDONLY)
                    try:
                        os.fsync(folder)
                    finally:
                        os.close(folder)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        return size


def _what_is_wrong(path: Path, rows: int) -> str | None:
    try:
        there = read_segment(str(path)).num_rows
    except (OSError, pa.ArrowInvalid) as error:
        return str(error)
    return None if there == rows else f"it has {there} rows, and {rows} by its name"


def _open_regular(path: Path, flags: int) -> int:
    """Open a file; one that is created has the mode 0644. Returns its descriptor.

    A symbolic link is not followed, and a FIFO does not block.

    Raises:
        SpoolError: it is no regular file.
        OSError: it cannot be opened.
    """
    _check_regular(path)
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SpoolError(f"{path} was replaced while it was opened")
    return descriptor


def _check_regular(path: Path) -> None:
    """Refuse a file that exists and is no regular file, with a SpoolError."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise SpoolError(
            f"{path} is a symbolic link or a special file; a spool has regular files only: remove it, or "
            "choose another spoolDir"
        )
