"""What was measured about reliability: one JSON file for each kind of measurement, beside this module.

Each has the command that made it, the commit, the version of Python, the number of processors and the day,
and what its own command found. `docs/reliability.md` is made from them (`compat_tests/reliability/page.py`).
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

__all__ = ["commit", "laid_out", "load", "path", "write"]

HERE = Path(__file__).parent
_WIDTH = 110


def path(name: str, folder: Path | None = None) -> Path:
    """Where the results of this name are: in this folder, or in another one."""
    return (folder or HERE) / f"{name}.json"


def load(name: str, folder: Path | None = None) -> dict[str, Any] | None:
    """The results of this name, or None if nothing was measured."""
    file = path(name, folder)
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def write(name: str, command: str, found: dict[str, Any], folder: Path | None = None) -> None:
    """Keep what a command found, with where and when it ran."""
    head = {
        "command": command,
        "commit": commit(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "day": datetime.now(timezone.utc).date().isoformat(),
    }
    path(name, folder).write_text(f"{laid_out({**head, **found})}\n", encoding="utf-8")


def laid_out(value: Any, indent: str = "", before: str = "") -> str:
    """JSON with a line for each record, and for what has room in one. `before` is in front of the value."""
    line = json.dumps(value, ensure_ascii=False)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(indent + before + line) < _WIDTH or not any(isinstance(each, (dict, list)) for each in parts):
        return before + line
    deeper = indent + " "
    if isinstance(value, dict):
        keys = (json.dumps(str(key), ensure_ascii=False) for key in value)
        items = [laid_out(item, deeper, f"{key}: ") for key, item in zip(keys, value.values(), strict=True)]
    else:
        items = [laid_out(item, deeper) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inside = ",\n".join(deeper + item for item in items)
    return f"{before}{opening}\n{inside}\n{indent}{closing}"


def commit() -> str:
    """The first digits of the commit that is checked out, or "unknown" outside a clone."""
    asked = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(asked, cwd=HERE, capture_output=True, text=True).stdout.strip() or "unknown"
