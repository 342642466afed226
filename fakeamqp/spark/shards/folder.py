"""The spool of shards: files that are written once, on a file system that all executors see.

A file gets its name when it is complete, and never another content: the first one that has the name stays.
So two tasks that try the same segment agree about its rows, whichever comes first. That is as strong as the
file system is:

- Local and network file systems: a hard link, which fails if the name is taken. Brought to the disk before.
- HDFS: a rename, which fails if the name is taken.
- Object stores have neither: the name is looked up, and then the file is moved. Only the lease keeps another
  task from doing the same between the two steps.
"""

from __future__ import annotations

import json
import os
import re
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.spool_kinds import SHARD_STATE, check_kind

_SEGMENT = re.compile(r"([0-9]{12})\.arrow")
_FILLED = re.compile(r"([0-9]{12})-([0-9]+)-([0-9]+)\.filled")
_TEMPORARY = re.compile(r"([0-9]{12})\.arrow\..*\.tmp")
_FORMAT = 1
_FAILURES = OSError, pa.ArrowException


@dataclass(frozen=True)
class State:
    """The id of the spool, and the first segment of each shard that Spark has not processed."""

    spool: str
    committed: Mapping[str, int]


@dataclass(frozen=True)
class FolderContents:
    """The files of a shard.

    Attributes:
        sizes: the complete segments, with their sizes in bytes.
        filled: all segments that were complete at some time, also those that are gone, with the number of
            messages that were taken from the queue for them, and how many of those were redelivered ones.
        temporaries: files of segments that are not complete, or that another attempt has completed.
    """

    sizes: Mapping[int, int]
    filled: Mapping[int, tuple[int, int]]
    temporaries: Mapping[str, int]

    @property
    def end(self) -> int:
        """The number behind the last segment that was ever complete."""
        return max((*self.sizes, *self.filled), default=-1) + 1


class SharedFolder:
    """The folder of the option `spoolDir`: a path, or a URI of a file system that pyarrow knows.

    Args:
        said: the option.
        sync: whether files are brought to the disk, where that can be asked for.

    Raises:
        SpoolError: if there is no such file system. All methods raise it if the file system fails.
    """

    def __init__(self, said: str, *, sync: bool = True) -> None:
        self.path: str
        with _in_words(f"cannot use spoolDir {said!r}"):
            if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", said):
                self._files, self.path = fs.FileSystem.from_uri(said)
            else:
                self._files, self.path = fs.LocalFileSystem(), os.path.abspath(said)
        self._sync = sync
        self._local = isinstance(self._files, fs.LocalFileSystem)
        self._state_number = -1

    def make(self) -> None:
        """Make the folder, if there is none. Only the driver does: see `require`.

        Raises:
            SpoolError: a query without shards has it, or it cannot be made.
        """
        self._make(self.path)
        check_kind(self.path, (each.base_name for each in self._list(self.path)), shards=True)

    def require(self, spool: str) -> None:
        """Check that this process sees the spool of the driver.

        Raises:
            SpoolError: it does not.
        """
        found = self._read_state()
        if found is None or found.spool != spool:
            there = "no spool" if found is None else f"spool {found.spool}"
            raise SpoolError(
                f"an executor does not see spoolDir: on {socket.gethostname()}, {self.path} has {there}, and "
                f"the driver has spool {spool}. With 'shards', spoolDir has to be on a file system that the "
                "driver and all executors share"
            )

    # --- segments -------------------------------------------------------------------------------------

    def contents(self, shard: str) -> FolderContents:
        """The files of a shard."""
        sizes, filled, temporaries = {}, {}, {}
        for each in self._list(self._shard(shard)):
            if match := _SEGMENT.fullmatch(each.base_name):
                sizes[int(match[1])] = each.size
            elif match := _FILLED.fullmatch(each.base_name):
                filled[int(match[1])] = int(match[2]), int(match[3])
            elif match := _TEMPORARY.fullmatch(each.base_name):
                temporaries[each.path] = int(match[1])
        return FolderContents(sizes, filled, temporaries)

    def has(self, shard: str, number: int) -> bool:
        """True if a segment is complete."""
        with _in_words(f"cannot read the spool in {self.path}"):
            found = self._files.get_file_info(self._segment(shard, number))
        return bool(found.type == fs.FileType.File)

    def new(self, shard: str, number: int, schema: pa.Schema) -> Segment:
        """A segment to write to."""
        self._make(self._shard(shard))
        return Segment(self, self._segment(shard, number), schema)

    def read(self, shard: str, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a segment."""
        path = self._segment(shard, number)
        with (
            _in_words(f"cannot read {path}"),
            self._files.open_input_file(path) as file,
            pa.ipc.open_file(file) as reader,
        ):
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)

    def note(self, shard: str, number: int, taken: int, redelivered: int) -> None:
        """Note that a segment is complete, before its messages are acknowledged: `FolderContents.filled`."""
        path = self._note(shard, number, taken, redelivered)
        with _in_words(f"cannot write {path}"):
            self.create(path).close()
            self.sync(os.path.dirname(path))

    def tidy(self, shard: str, there: FolderContents, first: int, processed: int) -> FolderContents:
        """Remove segments before `first`, and temporary files of those that are processed or complete.

        A file that cannot be removed stays; that is harmless. Returns what is left.
        """
        for number in there.sizes:
            if number < first:
                self.delete(self._segment(shard, number))
        for number, counts in there.filled.items():
            if number < first:
                self.delete(self._note(shard, number, *counts))
        for path, number in there.temporaries.items():
            if number < processed or number in there.sizes:
                self.delete(path)
        return FolderContents(
            {number: size for number, size in there.sizes.items() if number >= first},
            {number: counts for number, counts in there.filled.items() if number >= first},
            {},
        )

    # --- state ----------------------------------------------------------------------------------------

    def state(self) -> State:
        """The state; of a new spool if there is none."""
        state = self._read_state()
        if state is None:
            if any(_SEGMENT.fullmatch(each.base_name) for each in self._list(self.path, recursive=True)):
                raise SpoolError(
                    f"{self.path} has segments and no state; bring it back, or move them away and use a new "
                    "checkpoint"
                )
            self.save(State(str(uuid.uuid4()), {}))
            return self.state()
        return state

    def _read_state(self) -> State | None:
        while True:
            matches = (SHARD_STATE.fullmatch(each.base_name) for each in self._list(self.path))
            number = max((int(match[1]) for match in matches if match is not None), default=None)
            if number is None:
                return None
            path = self._state_path(number)
            try:
                with _in_words(f"cannot read {path}"), self._files.open_input_stream(path) as file:
                    said = json.loads(file.read())
                if said["format"] != _FORMAT:
                    raise SpoolError(f"{path} has format {said['format']}, this version reads {_FORMAT}")
                self._state_number = number
                return State(str(said["spool"]), {str(k): int(v) for k, v in said["committed"].items()})
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise SpoolError(f"cannot read {path}: {error!r}") from None
            except SpoolError:
                # The driver removes a state when there is a newer one.
                if self._files.get_file_info(path).type != fs.FileType.NotFound:
                    raise

    def save(self, state: State) -> None:
        """Write the state, as the next of the files that have it."""
        said = {"format": _FORMAT, "spool": state.spool, "committed": dict(state.committed)}
        number = self._state_number + 1
        with _in_words(f"cannot write to the spool in {self.path}"):
            temporary = self.temporary(self._state_path(number))
            with self.create(temporary) as file:
                file.write(json.dumps(said).encode())
            self.sync(temporary)
            if not self.publish(temporary, self._state_path(number)) and self._state_number >= 0:
                raise SpoolError(f"the spool in {self.path} is in use by another query")
            if self._state_number >= 0:
                with suppress(OSError):
                    self._files.delete_file(self._state_path(self._state_number))
        self._state_number = number

    # --- files ----------------------------------------------------------------------------------------

    @staticmethod
    def temporary(path: str) -> str:
        """A name for a file that is not complete. No two are the same."""
        return f"{path}.{uuid.uuid4()}.tmp"

    def create(self, path: str) -> Any:
        """A new file to write to."""
        return self._files.open_output_stream(path)

    def sync(self, path: str) -> None:
        """Bring a file to the disk; file systems of others do that when it is closed."""
        if self._local and self._sync:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def publish(self, temporary: str, path: str) -> bool:
        """Give a complete file its name. Returns False if another file has it; that one stays.

        Raises:
            OSError: it could not be given, or not be brought to the disk.
        """
        try:
            if self._local:
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    return False
                self.sync(os.path.dirname(path))
            elif self._files.get_file_info(path).type != fs.FileType.NotFound:
                return False
            else:
                self._files.move(temporary, path)
        except OSError:
            if self._local or self._files.get_file_info(path).type == fs.FileType.NotFound:
                raise
            return False
        finally:
            self.delete(temporary)
        return True

    def delete(self, path: str) -> None:
        """Remove a file, if it is there."""
        with suppress(OSError):
            self._files.delete_file(path)

    def _list(self, folder: str, *, recursive: bool = False) -> list[Any]:
        with _in_words(f"cannot read the spool in {self.path}"):
            selector = fs.FileSelector(folder, allow_not_found=True, recursive=recursive)
            return list(self._files.get_file_info(selector))

    def _make(self, folder: str) -> None:
        with _in_words(f"cannot make {folder}"):
            if self._files.get_file_info(folder).type == fs.FileType.NotFound:
                self._files.create_dir(folder, recursive=True)
                self.sync(os.path.dirname(folder))

    def _shard(self, shard: str) -> str:
        return f"{self.path}/{quote(shard, safe='')}"

    def _segment(self, shard: str, number: int) -> str:
        return f"{self._shard(shard)}/{number:012d}.arrow"

    def _note(self, shard: str, number: int, taken: int, redelivered: int) -> str:
        return f"{self._shard(shard)}/{number:012d}-{taken}-{redelivered}.filled"

    def _state_path(self, number: int) -> str:
        return f"{self.path}/state-{number:012d}.json"


class Segment:
    """A segment that is being written. It has no name until `commit`."""

    def __init__(self, folder: SharedFolder, path: str, schema: pa.Schema) -> None:
        self._folder = folder
        self._path = path
        self._temporary = folder.temporary(path)
        with _in_words(f"cannot write {path}"):
            self._file = folder.create(self._temporary)
            self._writer = pa.ipc.new_file(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        with _in_words(f"cannot write {self._path}"):
            self._writer.write_batch(batch)

    def commit(self) -> bool:
        """Complete the segment. Returns False if another task has done so before: its rows are valid then."""
        with _in_words(f"cannot write {self._path}"):
            self._writer.close()
            self._file.close()
            self._folder.sync(self._temporary)
            return self._folder.publish(self._temporary, self._path)

    def discard(self) -> None:
        """Remove what was written, unless it is complete."""
        with suppress(*_FAILURES):
            self._writer.close()
            self._file.close()
        self._folder.delete(self._temporary)


@contextmanager
def _in_words(what: str) -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        raise SpoolError(f"{what}: {getattr(error, 'strerror', None) or error}") from None
