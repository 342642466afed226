"""Where clients do otherwise if the same faults are those of a proxy in front of RabbitMQ.

`through_proxy.toml` lists every such cell with its reason. All others are those of the first tables.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from compat_tests.faults import expected

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["DIFFERENT", "RABBITMQ", "Different", "cells_of"]


@dataclass(frozen=True)
class Different:
    """One difference.

    Args:
        fault: its id.
        clients: whose cells differ.
        cells: what is there instead; several where it is not always the same.
        reason: why.
    """

    fault: str
    clients: tuple[str, ...]
    cells: tuple[str, ...]
    reason: str


_FOUND = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
RABBITMQ: str = _FOUND["rabbitmq"]
"""The version that the list is about."""
DIFFERENT = tuple(
    Different(each["fault"], tuple(each["clients"]), tuple(each["cells"]), each["reason"])
    for each in _FOUND["different"]
)


def cells_of(client: str, fault: str) -> tuple[str, ...]:
    """What a client does about a fault through a proxy."""
    for each in DIFFERENT:
        if each.fault == fault and client in each.clients:
            return each.cells
    return tuple(expected.read(client).cells[fault])
