"""Reads which micro-batches a checkpoint knows of.

Spark notes a batch twice: in `offsets/<number>` before it runs, and in `commits/<number>` when its rows are
in the sink. A batch with the first and without the second is run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a query's checkpoint, which may not exist yet."""

    path: Path

    @property
    def committed(self) -> int:
        """Number of the last batch that was finished, or -1."""
        return _last(self.path / "commits")

    def offset(self, batch: int) -> Path:
        """Where Spark notes that the batch was begun."""
        return self.path / "offsets" / str(batch)

    def commit(self, batch: int) -> Path:
        """Where Spark notes that the batch was finished."""
        return self.path / "commits" / str(batch)


def _last(folder: Path) -> int:
    if not folder.is_dir():
        return -1
    # What is no plain file is no note of Spark's: see `crashes`.
    found = (int(path.name) for path in folder.iterdir() if path.name.isdecimal() and not path.is_symlink())
    return max(found, default=-1)
