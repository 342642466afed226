"""Opens the files of a spool: regular files of its folder, never what a link or a pipe leads to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fakeamqp.spark.errors import SpoolError

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path, flags: int) -> int:
    """Open a file; one that is created has the mode 0644. Returns its descriptor.

    A symbolic link is not followed, and a FIFO does not block.

    Raises:
        SpoolError: it is no regular file.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError:
        check_regular(path)
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        check_regular(path)
        raise SpoolError(f"{path} was replaced while it was opened")
    return descriptor


def check_regular(path: Path) -> None:
    """Refuse a file that exists and is no regular file.

    Raises:
        SpoolError: it is none.
    """
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return  # Whoever opens it reports that.
    if kind != stat.S_IFREG:
        raise SpoolError(
            f"{path} is {_KINDS.get(kind, 'a special file')}; a spool has regular files only: remove it, or "
            "choose another spoolDir"
        )
