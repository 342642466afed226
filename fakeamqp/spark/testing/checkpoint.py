"""Reads the micro-batches of a checkpoint.

Spark writes `offsets/<number>` before it runs a batch, and `commits/<number>` when its rows are in the sink.
A batch without the second file runs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a query's checkpoint, which may not exist yet."""

    path: Path

    @property
    def committed(self) -> int:
        """The number of the last committed batch, or -1."""
        return _last(self.path / "commits")

    def offset(self, batch: int) -> Path:
        """The file that Spark writes before the batch."""
        return self.path / "offsets" / str(batch)

    def commit(self, batch: int) -> Path:
        """The file that Spark writes after the batch."""
        return self.path / "commits" / str(batch)


def _last(folder: Path) -> int:
    if not folder.is_dir():
        return -1
    # Anything but a regular file is not a log entry of Spark: see `crashes`.
    found = (int(path.name) for path in folder.iterdir() if path.name.isdecimal() and not path.is_symlink())
    return max(found, default=-1)
