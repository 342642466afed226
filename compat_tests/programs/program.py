"""What random programs are: lists of steps of cases (`differential/script.py`).

Queues, bindings and most publishes go over channel 1, some publishes over `CONFIRMS`, on which they are
confirmed. Bodies are given when a program is whole: the third publish carries `m3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from compat_tests.differential.script import Call, Pause

__all__ = [
    "CONFIRMS",
    "UNKNOWN_TAG",
    "Program",
    "in_order",
    "listing",
    "numbered",
    "publishes",
    "scaled",
    "with_body",
]

CONFIRMS = 9
UNKNOWN_TAG = 999
"""A delivery tag that no program comes to."""
_TIMES = ("x-message-ttl", "x-expires")
Program: TypeAlias = "list[Call | Pause]"


def with_body(step: Call | Pause, number: int) -> Call | Pause:
    """The publish of this number, counted from 1, with a body of its own, at least as long as it was."""
    if not isinstance(step, Call) or step.method != "publish":
        return step
    return step.with_(body=f"m{number}".ljust(len(step.arguments["body"]), "."))


def numbered(*steps: Call | Pause) -> Program:
    """Steps in which each publish has a body of its own."""
    program: Program = []
    for step in steps:
        program.append(with_body(step, 1 + publishes(program)))
    return program


def publishes(program: Program) -> int:
    """How many there are."""
    return sum(isinstance(step, Call) and step.method == "publish" for step in program)


def listing(program: Iterable[Call | Pause]) -> str:
    """A program as a call that runs it again."""
    return "run_program([\n" + "".join(f"    {step!r},\n" for step in program) + "])"


def in_order(told: Iterable[str]) -> list[str]:
    """What came of a step by channel: the order of channels is nobody's promise."""
    return sorted(told, key=lambda text: int(found[1]) if (found := re.match(r"\[(\d+)\]", text)) else 1)


def scaled(step: Call | Pause, factor: float) -> Call | Pause:
    """The same step where time passes `factor` times as fast."""
    if isinstance(step, Pause):
        return replace(step, seconds=step.seconds * factor)

    def shorter(milliseconds: Any) -> int:
        return max(1, round(int(milliseconds) * factor))

    arguments: dict[str, Any] = step.arguments.get("arguments", {})
    if times := {name: shorter(arguments[name]) for name in _TIMES if arguments.get(name)}:
        return step.with_(arguments={**arguments, **times})
    properties: dict[str, Any] = step.arguments.get("props", {})
    if int(properties.get("expiration", 0)):
        return step.with_(props={**properties, "expiration": str(shorter(properties["expiration"]))})
    return step
