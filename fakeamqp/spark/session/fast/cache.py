"""The cache of fast mode: one folder for each pair of an installed PySpark and a Java."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.spark.session.installation import Installation

_KEEP = 30 * 24 * 3600.0
"""The lifetime of an unused folder, in seconds."""
_USED = "used"


def cache_folder(installation: Installation) -> Path:
    """The folder of this installation, which depends on version, path and time of the installation."""
    java = installation.java.resolve()
    facts = [
        installation.home,
        installation.home.joinpath("jars").stat().st_mtime_ns,
        java,
        java.stat().st_mtime_ns,
    ]
    digest = hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest()[:12]
    return _root() / f"{installation.label}-{digest}"


def note_use(folder: Path) -> None:
    """Note that a session uses this folder, which keeps it for another month."""
    folder.joinpath(_USED).touch()


def forget_the_unused(folder: Path) -> None:
    """Delete the other folders of the cache that were not used for a month."""
    for other in folder.parent.iterdir():
        try:
            unused = time.time() - other.joinpath(_USED).stat().st_mtime > _KEEP
        except OSError:
            continue  # A folder that another process is creating.
        if unused and other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".cache", "fakeamqp", "spark")
