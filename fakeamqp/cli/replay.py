"""The command `replay`."""

from __future__ import annotations

import argparse
from typing import Any

from fakeamqp.cli.options import UsageError, rate, recording
from fakeamqp.errors import FakeAMQPError


def add(commands: Any) -> None:
    """Add the command."""
    replay = commands.add_parser(
        "replay",
        help="repeat the client side of a recording and compare the answers",
        description="Send the client side of a recording to a broker, in the recorded order, and compare its "
        "answers with the recorded ones. Prints the differences by connection. The exit code is 0 without "
        "differences and 1 with differences.",
    )
    replay.add_argument("file", metavar="FILE", help="the recording (JSON Lines)")
    replay.add_argument(
        "--url",
        metavar="URL",
        help="broker to replay to, such as amqp://guest:guest@localhost/; every connection logs in with the "
        "credentials of the URL (default: a new broker in this process)",
    )
    replay.add_argument(
        "--personality",
        metavar="NAME",
        help="behaviour of the new broker, such as spec (default: rabbitmq-4.3)",
    )
    replay.add_argument(
        "--definitions",
        metavar="FILE",
        help="RabbitMQ definitions file (JSON) that the new broker loads first",
    )
    replay.add_argument(
        "--timeout",
        type=rate,
        default=5.0,
        metavar="SECONDS",
        help="maximum time to wait for an answer (default: %(default)s)",
    )
    replay.set_defaults(run=_replay)


def _replay(options: argparse.Namespace) -> int:
    from fakeamqp.replay import NoBroker, replay

    for option in ("personality", "definitions"):
        if options.url is not None and getattr(options, option) is not None:
            raise UsageError(f"--{option} configures a new broker and cannot be combined with --url")
    trace = recording(options.file)
    try:
        outcome = replay(
            trace,
            url=options.url,
            personality=options.personality or "rabbitmq-4.3",
            definitions=options.definitions,
            timeout=options.timeout,
        )
    except NoBroker:
        raise
    except FakeAMQPError as error:  # Nothing has been sent yet, so an argument is wrong.
        raise UsageError(str(error)) from error
    print(outcome)
    return 0 if outcome.same else 1
