"""`python -m compat_tests.differential.amqp_1_0 PERSONALITY [PORT] [--once] [NAME...]`: compare with a node.

Without a port, a node is started, and the scenarios of operators are played too. With `--once`, scenarios
that differ are not played again.
"""

from __future__ import annotations

import contextlib
import difflib
import sys

from compat_tests.differential.accounts import ACCOUNTS
from compat_tests.differential.amqp_1_0.compare import LOOKS, Compared, compare
from compat_tests.differential.amqp_1_0.scenarios import SCENARIOS
from compat_tests.differential.rabbitmq_node import RabbitMQNode


def main(personality: str, *arguments: str) -> None:
    numbers = [int(each) for each in arguments if each.isdecimal()]
    looks = LOOKS[:1] if "--once" in arguments else LOOKS
    prefixes = [each for each in arguments if not each.isdecimal() and each != "--once"]
    chosen = [name for name in SCENARIOS if not prefixes or any(name.startswith(each) for each in prefixes)]
    with contextlib.ExitStack() as stack:
        node = None
        if not numbers:
            node = stack.enter_context(RabbitMQNode(personality.removeprefix("rabbitmq-")))
            node.import_definitions(ACCOUNTS)
        found = compare(chosen, personality, numbers[0] if node is None else node.port, node, looks)
    differ = {name: each for name, each in found.items() if each.differs}
    for name, each in differ.items():
        print(f"--- {name}")
        show(each)
    print(f"{len(found) - len(differ)} of {len(found)} equal")


def show(compared: Compared) -> None:
    """Print the lines that differ, without what they have in common."""
    said = difflib.unified_diff(compared.fake, compared.node, "fake", "node", lineterm="", n=0)
    lines = [line for line in said if not line.startswith(("---", "+++", "@@"))]
    common = _common([line[1:] for line in lines])
    for line in lines:
        skipped = "..." if len(common) > 60 else ""
        print("   ", line[0], line[1:50], skipped, line[max(1, len(common) - 20) :][:400])


def _common(lines: list[str]) -> str:
    """What all lines begin with."""
    first, last = min(lines, default=""), max(lines, default="")
    pairs = enumerate(zip(first, last, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(first), len(last)))
    return first[:same] if len(lines) > 1 else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
