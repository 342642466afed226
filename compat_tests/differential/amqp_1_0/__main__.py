"""`python -m compat_tests.differential.amqp_1_0 PERSONALITY PORT [NAME...]`: compare with a node."""

from __future__ import annotations

import difflib
import sys

from compat_tests.differential.amqp_1_0.compare import on_fake, on_node
from compat_tests.differential.amqp_1_0.scenarios import SCENARIOS


def main(personality: str, port: int, names: list[str]) -> None:
    chosen = [name for name in SCENARIOS if not names or any(name.startswith(each) for each in names)]
    differ = 0
    for name in chosen:
        fake, node = on_fake(name, personality), on_node(name, port)
        if fake != node:
            differ += 1
            print(f"--- {name}")
            said = difflib.unified_diff(fake, node, "fake", "node", lineterm="", n=0)
            lines = [line for line in said if not line.startswith(("---", "+++", "@@"))]
            common = _common([line[1:] for line in lines])
            for line in lines:
                print(
                    "   ",
                    line[0],
                    line[1:50],
                    "..." if len(common) > 60 else "",
                    line[max(1, len(common) - 20) :][:400],
                )
    print(f"{len(chosen) - differ} of {len(chosen)} equal")


def _common(lines: list[str]) -> str:
    """What all lines begin with."""
    first, last = min(lines, default=""), max(lines, default="")
    pairs = enumerate(zip(first, last, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(first), len(last)))
    return first[:same] if len(lines) > 1 else ""


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
