"""The Spark home of links in the cache: the archive fits Java only with the same paths."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fakeamqp.spark.session.home import link_home

if TYPE_CHECKING:
    from fakeamqp.spark.session.installation import Installation


def the_home(installation: Installation, folder: Path) -> Path:
    """The Spark home in the cache, created if it is missing.

    Raises:
        UnknownLayout: the folder of PySpark does not look as expected.
        OSError: the cache cannot be written.
    """
    home = folder / "home"
    if home.is_dir():
        return home
    making = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
    try:
        link_home(installation.home, making)
        making.chmod(0o755)
        os.rename(making, home)
    except OSError:
        if not home.is_dir():  # Otherwise another process has created it meanwhile.
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return home
