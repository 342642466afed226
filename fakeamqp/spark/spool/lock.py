"""One source per spool: a lock that the system releases when its process ends in any way."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from fakeamqp.spark.errors import SpoolError
from fakeamqp.spark.spool.files import open_regular

# A query that is stopping still flushes and closes its connection.
_PATIENCE = 10.0
_BETWEEN = 0.02


class FolderLock:
    """A lock on a folder, held until `release` or until the process ends.

    Args:
        folder: the folder, which exists.
        patience: the seconds to wait for a holder that is just ending.

    Raises:
        SpoolError: if another source holds it all that time, with its process id; or if it cannot be locked.
    """

    def __init__(self, folder: Path, patience: float = _PATIENCE) -> None:
        path = folder / "lock"
        try:
            self._file = open_regular(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise SpoolError(f"cannot lock the spool: {path}: {error.strerror}") from None
        try:
            self._acquire(folder, time.monotonic() + patience)
        except BaseException:
            os.close(self._file)
            raise

    def release(self) -> None:
        """Release the lock. May be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _acquire(self, folder: Path, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(self._file, 300, 0).decode("utf-8", "replace").strip()
                    raise SpoolError(
                        f"the spool in {folder} is in use by another query, or by another source of this one "
                        f"({holder or 'unknown'}): stop that query, or give this source its own spoolDir. "
                        "Sources on one queue share its messages: to use them twice, as in a self-join, "
                        "write them to a table first, or use foreachBatch"
                    ) from None
                time.sleep(_BETWEEN)
            except OSError as error:
                raise SpoolError(f"cannot lock the spool in {folder}: {error.strerror}") from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
