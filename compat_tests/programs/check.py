"""Runs a program on the broker and on the reference, and says where they part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compat_tests.programs.events import shown
from compat_tests.programs.player import Player
from compat_tests.programs.program import Count, Get, Operation, listing
from compat_tests.programs.reference import Reference, Tie
from compat_tests.scripted.amqp_0_9_1 import Server

__all__ = ["run_program"]


def run_program(program: Sequence[Operation], personality: str = "rabbitmq-4.2") -> bool:
    """Do a program's operations on the broker; each must bring about what the reference foretells.

    In the end all that is left in queues is got out of them and compared as well.

    Returns:
        False where the program was left because what it asks is nobody's promise.

    Raises:
        AssertionError: something else came; the text has the program, to be run again.
    """
    server = Server(personality)
    player = Player(server)
    reference = Reference(int(server.clock.time()))
    try:
        for number, operation in enumerate(program, start=1):
            problem = _compared(player, reference, operation)
            if problem:
                where = f"operation {number} of {len(program)}, {operation!r}, as {personality}"
                raise AssertionError(f"{where}:\n{problem}\n\nTo run it again:\n\n{listing(program)}")
        for operation in _inventory(reference):
            problem = _compared(player, reference, operation)
            if problem:
                where = f"after the last operation, {operation!r}, as {personality}"
                raise AssertionError(f"{where}:\n{problem}\n\nTo run it again:\n\n{listing(program)}")
    except Tie:
        return False
    return True


def _compared(player: Player, reference: Reference, operation: Operation) -> str:
    """What is not as it should be when an operation is done."""
    expected = reference.perform(operation)
    try:
        seen = player.perform(operation)
    except AssertionError as surprise:
        return f"expected\n{shown(expected)}\nbut {surprise}"
    return "" if seen == expected else f"expected\n{shown(expected)}\ngot\n{shown(seen)}"


def _inventory(reference: Reference) -> Iterator[Operation]:
    """Count what is in the queues, and get it out."""
    for queue in list(reference.queues.values()):
        yield Count(queue.name)
        while queue.ready:
            yield Get(queue.name, no_ack=True)
