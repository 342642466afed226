"""What importing costs: seconds that a statement adds to the start of an interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fakeamqp

__all__ = ["import_seconds"]


def import_seconds(statement: str, *, compiled: bool = True, runs: int = 7) -> list[float]:
    """How much longer an interpreter runs that does `statement` than one that does nothing, in turn.

    Args:
        statement: such as `import fakeamqp`.
        compiled: False measures with no compiled files of ours, and none written: what a read-only
            installation costs at every start, and any other at the first.
        runs: how often, after one that does not count.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(fakeamqp.__file__).parent
        shutil.copytree(source, Path(folder, "fakeamqp"), ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "" if compiled else "1"}
        # The first run writes the compiled files, where that is wanted, and warms up the disk.
        return [
            _seconds(statement, folder, environment) - _seconds("pass", folder, environment)
            for _ in range(runs + 1)
        ][1:]


def _seconds(statement: str, folder: str, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], cwd=folder, env=environment, check=True)
    return time.perf_counter() - start
