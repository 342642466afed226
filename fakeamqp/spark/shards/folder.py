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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.spools import SHARD_STATE, check_kind, spool_error

_SEGMENT = re.compile(r"([0-9]{12})\.arrow")
_NOTE = re.compile(r"([0-9]{12})-([0-9]+)-([0-9]+)(?:-([0-9]+))?\.filled")
_TEMPORARY = re.compile(r"([0-9]{12})\.arrow\..*\.tmp")
_FORMAT = 1


class Filled(NamedTuple):
    """How many messages were taken from the queue for a segment; redelivered and dropped ones among them."""

    taken: int = 0
    redelivered: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class State:
    """The id of the spool, and the first segment of each shard that Spark has not processed."""

    spool: str
    committed: Mapping[str, int]


@dataclass(frozen=True)
class FolderContents:
    """The files of a shard, by the numbers of segments."""

    sizes: Mapping[int, int]  # Of the complete segments, in bytes.
    filled: Mapping[int, Filled]  # Segments that were complete at some time, also those that are gone.
    temporaries: Mapping[str, int]  # Paths of files that no attempt has completed, or another one has.

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
        with spool_error(f"cannot use spoolDir {said!r}"):
            if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", said):
                self._files, self.path = fs.FileSystem.from_uri(said)
            else:
                self._files, self.path = fs.LocalFileSystem(), os.path.abspath(said)
        self._local = isinstance(self._files, fs.LocalFileSystem)
        self._syncs = sync and self._local  # File systems of others do that when a file is closed.
        self._state_number = -1

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
            elif match := _NOTE.fullmatch(each.base_name):
                filled[int(match[1])] = Filled(int(match[2]), int(match[3]), int(match[4] or 0))
            elif match := _TEMPORARY.fullmatch(each.base_name):
                temporaries[each.path] = int(match[1])
        return FolderContents(sizes, filled, temporaries)

    def write(self, shard: str, number: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bool:
        """Complete a segment. Returns False if another task has done so before: its rows are valid then."""

        def write(file: Any) -> None:
            with pa.ipc.new_file(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)

        self._make(self._shard(shard))
        return self._publish(self._segment(shard, number), write)

    def read(self, shard: str, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a segment."""
        path = self._segment(shard, number)
        with (
            spool_error(f"cannot read {path}"),
            self._files.open_input_file(path) as file,
            pa.ipc.open_file(file) as reader,
        ):
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)

    def note(self, shard: str, number: int, filled: Filled) -> None:
        """Note that a segment is complete, before its messages are acknowledged: `FolderContents.filled`."""
        path = self._note(shard, number, filled)
        with spool_error(f"cannot write {path}"):
            self._files.open_output_stream(path).close()
            self._sync(os.path.dirname(path))

    def tidy(self, shard: str, there: FolderContents, first: int, processed: int) -> FolderContents:
        """Remove segments before `first`, and temporary files of those that are processed or complete.

        A file that cannot be removed stays; that is harmless. Returns what is left.
        """
        for number in there.sizes:
            if number < first:
                self._delete(self._segment(shard, number))
        for number, filled in there.filled.items():
            if number < first:
                self._delete(self._note(shard, number, filled))
        for path, number in there.temporaries.items():
            if number < processed or number in there.sizes:
                self._delete(path)
        return FolderContents(
            {number: size for number, size in there.sizes.items() if number >= first},
            {number: filled for number, filled in there.filled.items() if number >= first},
            {},
        )

    # --- state ----------------------------------------------------------------------------------------

    def state(self) -> State:
        """The state, of a new spool if there is none. Only the driver makes one: see `require`.

        Raises:
            SpoolError: a query without shards has the folder, or it cannot be made.
        """
        self._make(self.path)
        check_kind(self.path, (each.base_name for each in self._list(self.path)), shards=True)
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

    def save(self, state: State) -> None:
        """Write the state, as the next of the files that have it."""
        said = {"format": _FORMAT, "spool": state.spool, "committed": dict(state.committed)}
        number = self._state_number + 1
        saved = self._publish(self._state_path(number), lambda file: file.write(json.dumps(said).encode()))
        if number and not saved:
            raise SpoolError(f"the spool in {self.path} is in use by another query")
        self._delete(self._state_path(number - 1))
        self._state_number = number

    def _read_state(self) -> State | None:
        matches = (SHARD_STATE.fullmatch(each.base_name) for each in self._list(self.path))
        number = max((int(match[1]) for match in matches if match is not None), default=None)
        if number is None:
            return None
        path = self._state_path(number)
        try:
            with self._files.open_input_stream(path) as file:
                said = json.loads(file.read())
            if said["format"] != _FORMAT:
                raise SpoolError(f"{path} has format {said['format']}, this version reads {_FORMAT}")
            state = State(str(said["spool"]), {str(k): int(v) for k, v in said["committed"].items()})
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            if not self._exists(path):  # The driver removes a state when there is a newer one.
                return self._read_state()
            raise SpoolError(f"cannot read {path}: {error!r}") from None
        self._state_number = number
        return state

    # --- files ----------------------------------------------------------------------------------------

    def _publish(self, path: str, write: Callable[[Any], object]) -> bool:
        """Write a file, and give it its name. Returns False if another file has it; that one stays."""
        temporary = f"{path}.{uuid.uuid4()}.tmp"
        with spool_error(f"cannot write {path}"):
            try:
                with self._files.open_output_stream(temporary) as file:
                    write(file)
                self._sync(temporary)
                if self._local:
                    os.link(temporary, path)
                    self._sync(os.path.dirname(path))
                elif self._exists(path):
                    return False
                else:
                    self._files.move(temporary, path)
            except FileExistsError:
                return False
            except OSError:
                if self._local or not self._exists(path):
                    raise
                return False
            finally:
                self._delete(temporary)
        return True

    def _sync(self, path: str) -> None:
        if self._syncs:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _delete(self, path: str) -> None:
        with suppress(OSError):
            self._files.delete_file(path)

    def _exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(path).type != fs.FileType.NotFound)

    def _list(self, folder: str, *, recursive: bool = False) -> list[Any]:
        with spool_error(f"cannot read the spool in {self.path}"):
            selector = fs.FileSelector(folder, allow_not_found=True, recursive=recursive)
            return list(self._files.get_file_info(selector))

    def _make(self, folder: str) -> None:
        with spool_error(f"cannot make {folder}"):
            if not self._exists(folder):
                self._files.create_dir(folder, recursive=True)
                self._sync(os.path.dirname(folder))

    def _shard(self, shard: str) -> str:
        return f"{self.path}/{quote(shard, safe='')}"

    def _segment(self, shard: str, number: int) -> str:
        return f"{self._shard(shard)}/{number:012d}.arrow"

    def _note(self, shard: str, number: int, filled: Filled) -> str:
        counts = "-".join(map(str, filled if filled.dropped else filled[:2]))
        return f"{self._shard(shard)}/{number:012d}-{counts}.filled"

    def _state_path(self, number: int) -> str:
        return f"{self.path}/state-{number:012d}.json"
