"""The files of a spool: acknowledged messages in Arrow's format, and how far Spark has processed them.

A file appears under its name only when it is complete: it is written under another one, brought to the disk,
renamed, and the folder is brought to the disk. What a crash leaves under the other name was not
acknowledged, and is thrown away.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.spool.files import check_regular, open_regular
from fakeamqp.spark.spool_kinds import STATE

_NAME = re.compile(r"([0-9]{20})-([0-9]+)\.arrow")
_FORMAT = 1
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True)
class SpoolSegment:
    """A file of rows `first` to `end` of the spool, `end` exclusive; `octets` is its size.

    Attributes:
        broken: why it cannot be read; None if it can.
    """

    path: str
    first: int
    end: int
    octets: int
    broken: str | None = None

    def load(self) -> pa.RecordBatch:
        """Its rows, mapped into memory and not read yet."""
        return read_segment(self.path)


@dataclass(frozen=True)
class SpoolState:
    """The id of the spool, and the first row that Spark has not processed."""

    spool: str
    committed: int


class SpoolFolder:
    """The folder of a spool. Its user holds the lock.

    Args:
        path: the folder, which exists.
        sync: whether files are brought to the disk; without, a crash of the machine may lose what it
            acknowledged.
    """

    def __init__(self, path: Path, *, sync: bool) -> None:
        self.path = path
        self._sync = sync

    def state(self) -> SpoolState:
        """The state; of a new spool if there is none yet.

        Raises:
            SpoolError: if it cannot be read or written, or segments are there without it.
        """
        try:
            with open(open_regular(self.path / STATE, os.O_RDONLY), encoding="utf-8") as file:
                said = json.load(file)
            if said["format"] != _FORMAT:
                raise SpoolError(
                    f"the spool in {self.path} has format {said['format']}, this version reads {_FORMAT}"
                )
            return SpoolState(str(said["spool"]), int(said["committed"]))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SpoolError(f"cannot read {self.path / STATE}: {error}") from None
        if any(_NAME.fullmatch(name) for name in os.listdir(self.path)):
            raise SpoolError(
                f"{self.path} has segments of a spool, and its {STATE} is gone; bring it back, or move them "
                "away and use a new checkpoint"
            )
        state = SpoolState(str(uuid.uuid4()), 0)
        self.save(state)
        return state

    def save(self, state: SpoolState) -> None:
        """Write the state.

        Raises:
            SpoolError: if it cannot be written.
        """
        text = json.dumps({"format": _FORMAT, "spool": state.spool, "committed": state.committed})
        self._put(STATE, lambda file: file.write(text.encode()))

    def segments(self) -> list[SpoolSegment]:
        """All segments in their order. Leftovers of a crash are removed."""
        found = []
        with _in_words(f"cannot read the spool in {self.path}"):
            for entry in sorted(os.scandir(self.path), key=lambda each: each.name):
                match = _NAME.fullmatch(entry.name)
                if match is not None:
                    check_regular(Path(entry.path))
                    first, rows = map(int, match.groups())
                    size = entry.stat().st_size
                    found.append(
                        SpoolSegment(entry.path, first, first + rows, size, _what_is_wrong(entry.path, rows))
                    )
                elif entry.name.endswith(".tmp"):
                    os.unlink(entry.path)
        return sorted(found, key=lambda segment: segment.first)

    def write(self, first: int, batch: pa.RecordBatch) -> SpoolSegment:
        """Write rows `first` and so on as a segment; it is on the disk when this returns.

        Raises:
            SpoolError: if it cannot be written; nothing of it is there then.
        """
        name = f"{first:020d}-{batch.num_rows}.arrow"

        def content(file: Any) -> None:
            with pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)

        octets = self._put(name, content)
        return SpoolSegment(str(self.path / name), first, first + batch.num_rows, octets)

    def remove(self, segments: list[SpoolSegment]) -> None:
        """Remove segments. One that cannot be removed stays; that is harmless."""
        for segment in segments:
            try:
                os.unlink(segment.path)
            except OSError:
                continue

    def _put(self, name: str, content: Callable[[Any], Any]) -> int:
        """Write a file atomically. Returns its size in bytes."""
        path = self.path / name
        unfinished = path.with_name(name + ".tmp")
        try:
            with _in_words(f"cannot write {path}"):
                with open(open_regular(unfinished, _WRITE), "wb") as file:
                    content(file)
                    file.flush()
                    octets = os.fstat(file.fileno()).st_size
                    if self._sync:
                        os.fsync(file.fileno())
                os.replace(unfinished, path)
                if self._sync:
                    self._sync_folder()
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        return octets

    def _sync_folder(self) -> None:
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_segment(path: str) -> pa.RecordBatch:
    """The rows of a segment, mapped into memory and not read yet.

    Raises:
        OSError: if the file is not there, or is none.
    """
    with pa.memory_map(path) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(0)


def _what_is_wrong(path: str, rows: int) -> str | None:
    try:
        there = read_segment(path).num_rows
    except (OSError, pa.ArrowInvalid) as error:
        return str(error)
    return None if there == rows else f"it has {there} rows, and {rows} by its name"


@contextmanager
def _in_words(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SpoolError(f"{what}: {error.strerror or error}") from None
