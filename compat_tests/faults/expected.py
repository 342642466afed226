"""What every client is known to do about every fault: one file for each client.

A cell may have alternatives, where chance decides what the client does; then there is a reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["PACKAGES", "Expected", "installed", "read", "write"]

FOLDER = Path(__file__).parent / "expected"

PACKAGES = {
    "pika-blocking": ("pika",),
    "pika-select": ("pika",),
    "pika-asyncio": ("pika",),
    "aio-pika-plain": ("aio-pika", "aiormq"),
    "aio-pika-robust": ("aio-pika", "aiormq"),
    "aiormq": ("aiormq",),
    "py-amqp": ("amqp",),
    "kombu": ("kombu", "amqp"),
    "celery": ("celery", "kombu", "amqp"),
    "proton-blocking": ("python-qpid-proton",),
}
"""Whose behaviour a column shows."""


@dataclass
class Expected:
    """One client's column.

    Args:
        versions: with which it was recorded.
        cells: by fault; several where it is not always the same.
        reasons: why there are several, by fault.
    """

    versions: str
    cells: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def learn(self, cells: Mapping[str, str]) -> None:
        """Put what has been seen in the place of what was expected; known alternatives stay."""
        for fault, cell in cells.items():
            if cell not in self.cells.get(fault, ()):
                self.cells[fault] = [cell]
                self.reasons.pop(fault, None)


def installed(client: str) -> str:
    """The versions of what a column is about."""
    return ", ".join(f"{package} {version(package)}" for package in PACKAGES[client])


def read(client: str) -> Expected:
    """A client's column; empty where nothing has been recorded."""
    path = FOLDER / f"{client}.toml"
    if not path.exists():
        return Expected(installed(client))
    found = tomllib.loads(path.read_text("utf-8"))
    racy = found.get("racy", {})
    cells = {fault: [cell] for fault, cell in found["cells"].items()}
    cells |= {fault: entry["cells"] for fault, entry in racy.items()}
    return Expected(found["versions"], cells, {fault: entry["reason"] for fault, entry in racy.items()})


def write(client: str, expected: Expected, order: list[str]) -> None:
    """Write a client's column, faults in this order; others are left out."""
    known = [fault for fault in order if fault in expected.cells]
    lines = [f"versions = {_text(expected.versions)}", "", "[cells]"]
    lines += [
        f"{fault} = {_text(expected.cells[fault][0])}" for fault in known if len(expected.cells[fault]) == 1
    ]
    for fault in known:
        if len(expected.cells[fault]) > 1:
            lines += ["", f"[racy.{fault}]", f"reason = {_text(expected.reasons[fault])}", "cells = ["]
            lines += [f"    {_text(cell)}," for cell in expected.cells[fault]]
            lines.append("]")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{client}.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
