"""The command `scaffold`."""

from __future__ import annotations

import argparse
import os
from typing import Any

from fakeamqp.cli.options import recording


def add(commands: Any) -> None:
    """Add the command."""
    scaffold = commands.add_parser(
        "scaffold",
        help="write a pytest file from a recording",
        description="Write a pytest file with the exchanges, queues and bindings of a recording, the "
        "messages that were published, and what the queues hold then. It passes as it is, and is there to be "
        "edited. It needs fakeamqp[pytest,pika].",
    )
    scaffold.add_argument("file", metavar="FILE", help="the recording (JSON Lines)")
    scaffold.add_argument(
        "--output",
        metavar="OUT",
        help="file to write, which must not exist, such as test_orders.py (default: standard output)",
    )
    scaffold.set_defaults(run=_scaffold)


def _scaffold(options: argparse.Namespace) -> int:
    from fakeamqp.replay import scaffold

    text = scaffold(recording(options.file), os.path.basename(options.file))
    if options.output is None:
        print(text, end="")
    else:
        with open(options.output, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        print(f"wrote {options.output}")
    return 0
