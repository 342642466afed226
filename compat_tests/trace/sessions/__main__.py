"""Record the sessions of clients anew: `python -m compat_tests.trace.sessions [NAME ...]`.

It starts a RabbitMQ 4.3 and runs each client with it, through a proxy that records.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from compat_tests.trace.sessions import RECORDED, record, sessions
from fakeamqp.replay import replay
from fakeamqp.trace import load

_SERIES = "4.3"


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the sessions, replay each, and print the differences. Returns how many differ."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.trace.sessions", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(sessions())}")
    names = parser.parse_args(arguments).names or list(sessions())
    if why := available(_SERIES):
        print(why, file=sys.stderr)
        return 2
    different = 0
    with RabbitMQNode(_SERIES) as node, tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder, f"{name}.jsonl")
            record(name, node.url, path)
            outcome = replay(load(path))
            different += not outcome.same
            print(f"{name} with RabbitMQ {node.version}:\n{outcome}")
            path.replace(RECORDED / path.name)
    return different


if __name__ == "__main__":
    sys.exit(main())
