"""Writes docs/attempts.md from what the attempts have measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compat_tests.attempts.attempt import Attempt
from compat_tests.attempts.every import ATTEMPTS
from compat_tests.attempts.targets import NAMES
from compat_tests.reliability import results

__all__ = ["NAME", "PAGE", "recorded", "text"]

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs" / "attempts.md"
NAME = "attempts"

_HEAD = """# Attempts

This page shows what the broker does with peers and files that attack it, beside RabbitMQ 4.3. Each attempt
is a test. The same client code makes it on both brokers. `python -m compat_tests.attempts` makes all attempts
and writes this page; `python -m compat_tests.attempts tables --only fakeamqp` makes some. The figures are
from one run of each.

The broker runs as `fakeamqp serve` in a process of its own, with the personality rabbitmq-4.3. After each
attempt another client declares a queue, publishes and gets. If it cannot, the attempt fails.

Tests elsewhere cover these attacks:

| Attack | Test |
|---|---|
| A method without its permission, for each method of each protocol | \
`compat_tests/protocol/amqp_0_9_1/test_rights.py` |
| Script in names and bodies on the page of a trace, in a browser | `compat_tests/pages/test_trace_page.py` |
| Escape sequences in names: texts of views, errors, traces, logs and commands | \
`compat_tests/attempts/test_outputs.py` |
| A password in any output: reprs, logs, traces of every format, exports, texts of errors | \
`compat_tests/broker/test_canary.py` |
| A password in the output of commands, in process titles and in chains of exceptions | \
`compat_tests/attempts/test_outputs.py` |
| Random and mutated bytes | `compat_tests/fuzz` |
| Wrong types in recordings and definitions | `compat_tests/unit/trace/test_mutated_recordings.py`, \
`compat_tests/unit/model/test_definitions.py` |
| Endless contents, messages, channels, consumers, heartbeats or detached sessions, to take all memory | \
the tests of the [limits](limits.md) |

`fakeamqp serve` and `Broker.url` print the password of the first user on purpose: it is the URL for clients.
"""


def recorded() -> dict[str, Any]:
    """What was measured: `{attempt: {target: {row: [what happened, figures]}}}`."""
    found: dict[str, Any] = (results.load(NAME) or {"attempts": {}})["attempts"]
    return found


def text() -> str:
    """The page."""
    found = recorded()
    parts = [_HEAD]
    for attempt in ATTEMPTS.values():
        parts.append(_section(attempt, found.get(attempt.name, {})))
    return "\n".join(parts)


def _section(attempt: Attempt, found: dict[str, dict[str, list[str]]]) -> str:
    about = attempt.about
    if attempt.rabbitmq:
        about += f" Not made on RabbitMQ: {attempt.rabbitmq}."
    names = [name for name in NAMES if name in found]
    lines = [f"## {attempt.title}", "", about, "", "|  | " + " | ".join(names) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for row in dict.fromkeys(row for name in names for row in found[name]):
        cells = [_cell(found[name].get(row)) for name in names]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: list[str] | None) -> str:
    if row is None:
        return "not made"
    happened, figures = row
    return f"{happened} ({figures})" if figures else happened
