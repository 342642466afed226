"""Hashes that are the same in every process, for objects that clients keep in sets.

The order of a set is that of the hashes of its elements, and that of an object is made of its address. aiormq
ends the tasks of a connection or a channel in the order of a set of `TaskWrapper`s, so this order would be
another one in each process.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["make_hashes_stable"]


def make_hashes_stable() -> None:
    """Give wrappers of tasks that run in a simulation the hashes of these, for clients that are imported."""
    module = sys.modules.get("aiormq.abc")
    wrapper: Any = getattr(module, "TaskWrapper", None)
    if wrapper is None or wrapper.__hash__ is not object.__hash__:
        return
    wrapper.__hash__ = _hash_of_task


def _hash_of_task(self: Any) -> int:
    from fakeamqp.simulation.loop import SimulatedTask

    task = self.task
    return hash(task) if isinstance(task, SimulatedTask) else object.__hash__(self)
