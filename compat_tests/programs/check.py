"""Plays a program on the broker and on the reference, and says where they part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from compat_tests.differential.raw_client import Address
from compat_tests.differential.script import Call, Pause, Scene, get, queue
from compat_tests.programs.program import Program, in_order, listing
from compat_tests.programs.reference import Reference, Tie
from compat_tests.scripted.amqp_0_9_1 import Server

__all__ = ["first_difference", "play", "run_program"]

_CLOSE = re.compile(r"(channel\.close\(\d+), .*\)")
"""Of which the reference only foretells the code."""


def play(program: Iterable[Call | Pause], server: Server) -> Iterator[list[str]]:
    """Take the steps of a program on a broker without sockets: what comes of each, by channel."""
    scene = Scene(Address("", 0, server=server), "")
    scene.client(capabilities={"consumer_cancel_notify": True})
    for step in program:
        yield in_order(step(scene) + scene.a.quiet(0))
    scene.close()


def first_difference(
    program: Program, expected: Iterable[list[str]], came: Iterable[list[str]], *sides: str
) -> str:
    """Where what came of a program is not what is expected; empty where it is. `sides` name the two."""
    for number, both in enumerate(zip(expected, came, strict=True), start=1):
        if both[0] != both[1]:
            done = program[:number]
            told = [
                "\n    ".join((f"  {side}:", *(each or "-"))) for side, each in zip(sides, both, strict=True)
            ]
            return "\n".join((f"{done[-1]!r}, the last of these:", listing(done), *told))
    return ""


def run_program(program: Sequence[Call | Pause], personality: str = "rabbitmq-4.2") -> bool:
    """Take a program's steps on the broker; each must bring about what the reference foretells.

    In the end all that is left in queues is got out of them and compared as well.

    Returns:
        False where the program was left because what it asks is nobody's promise.

    Raises:
        AssertionError: something else came; the text has the program, to be run again.
    """
    server = Server(personality)
    reference = Reference(int(server.clock.time()))
    steps: Program = []
    expected: list[list[str]] = []
    robust = True
    try:
        for step in chain(program, _inventory(reference)):
            expected.append(reference.perform(step))
            steps.append(step)
    except Tie:
        robust = False
    came = ([_CLOSE.sub(r"\1)", text) for text in told] for told in play(steps, server))
    assert not (found := first_difference(steps, expected, came, "expected", f"came, as {personality}")), (
        found
    )
    return robust


def _inventory(reference: Reference) -> Iterator[Call]:
    """Count what is in the queues, and get it out."""
    for each in list(reference.queues.values()):
        yield queue(f"@{each.name}", passive=1)
        while each.ready:
            yield get(f"@{each.name}")
