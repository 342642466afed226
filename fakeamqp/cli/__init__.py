"""The command `fakeamqp`: run a broker or a proxy, work with recordings, run a demo, check the machine.

The exit code is 0 on success, 1 if an operation failed or a replay differs from its recording, and 2 if the
command line is invalid. Each command is a module, which adds its options and the function that runs it.
"""

from __future__ import annotations

import argparse
import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

from fakeamqp.cli import demo, doctor, migrate, proxy, replay, scaffold, serve, trace
from fakeamqp.cli.options import UsageError
from fakeamqp.errors import FakeAMQPError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIGPIPE = 128 + 13
"""The exit code of a program that a broken pipe has ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of `sys.argv`, and return its exit code; or raise SystemExit."""
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        # Names of queues have characters that the console of Windows may not have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. Without this Python would report an error at exit,
        # when it flushes the rest of the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except UsageError as error:
        print(f"fakeamqp {options.command}: {error}", file=sys.stderr)
        return 2
    except (FakeAMQPError, OSError) as error:
        print(f"fakeamqp {options.command}: {error}", file=sys.stderr)
        return 1


class _Version(argparse.Action):
    """Prints the version. The lookup is done on demand, because it costs more than parsing."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"fakeamqp {doctor.version('fakeamqp')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fakeamqp", description="A real AMQP broker for tests.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (serve, proxy, trace, replay, scaffold, migrate, demo, doctor):
        command.add(commands)
    return parser
