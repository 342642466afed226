"""What tshark makes of a recording."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["needs_tshark", "tshark"]

TSHARK = shutil.which("tshark")
needs_tshark = pytest.mark.skipif(
    TSHARK is None, reason="tshark is not installed (Debian: apt-get install tshark)"
)


def tshark(path: Path, *arguments: str) -> list[str]:
    """The lines that it prints about a file, checksums checked. Two passes, as in the window of Wireshark."""
    assert TSHARK is not None
    checks = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    done = subprocess.run(
        [TSHARK, "-2", "-r", str(path), *checks, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
