"""The order in which the tasks of an app go on, and the first difference of two runs."""

from __future__ import annotations

import asyncio
import sysconfig
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fakeamqp.simulation.loop import given_name
from fakeamqp.simulation.waits import frames_of

_PACKAGES = Path(__file__).parents[2]
_NOT_THE_APP = (
    *{f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    *(f"{_PACKAGES / name}/" for name in ("fakeamqp", "pytest_plugin", "pytest_fakeamqp")),
)


class Steps:
    """The names of the app's tasks, in the order of their steps. Tasks of libraries are left out."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def note(self, task: asyncio.Task[Any]) -> None:
        """Note that the next step is one of this task."""
        code = [frame.f_code for frame in frames_of(task.get_coro())]
        own = next((each for each in code if not each.co_filename.startswith(_NOT_THE_APP)), None)
        if own is not None:
            self.order.append(_name(task, "" if own is code[0] else own.co_name))


def _name(task: asyncio.Task[Any], within: str) -> str:
    """The name that the app gave the task, or its label; `within` is what a task of a library runs."""
    label: str = getattr(task, "label", task.get_name())
    return given_name(task) or (f"{within} in {label}" if within else label)


def difference(failing: Sequence[str], passing: Sequence[str]) -> str:
    """In words, which task goes on first where the order of a failing run parts from that of a passing one.

    "" if the orders are the same.
    """
    for here, there in zip_longest(failing, passing):
        if here != there:
            if here is None:
                return f"The task {there} does not go on any more, as it does in the passing schedule."
            if there is None:
                return f"The task {here} goes on once more than in the passing schedule."
            return f"The task {here} goes on before the task {there}; in the passing schedule, {there} does."
    return ""
