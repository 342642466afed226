"""The tests that are known to go differently on RabbitMQ and on the broker: `known_differences.toml`.

Together with the counts this is all: a test of ours fails where a test of a suite goes differently without an
entry, and where an entry no longer fits.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compat_tests.client_suites.running import Comparison
from compat_tests.differential.comparison import fits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Difference", "known", "problems", "problems_of_equals"]

_FILE = Path(__file__).with_name("known_differences.toml")


@dataclass(frozen=True)
class Difference:
    """An entry. In `tests`, ids of tests, `*` stands for anything.

    `sometimes` is for tests that go one way or the other on one and the same target.
    """

    suite: str
    versions: tuple[str, ...]
    tests: tuple[str, ...]
    reason: str
    rabbitmq: str = ""
    fakeamqp: str = ""
    sometimes: bool = False

    def covers(self, test: str) -> bool:
        return any(fits(pattern, test) for pattern in self.tests)


@cache
def known() -> tuple[Difference, ...]:
    """All entries."""
    entries = tomllib.loads(_FILE.read_text(encoding="utf-8")).get("difference", [])
    return tuple(
        Difference(**{**entry, "versions": tuple(entry["versions"]), "tests": tuple(entry["tests"])})
        for entry in entries
    )


def problems_of_equals(compared: Comparison) -> list[str]:
    """What goes differently on targets that must be alike, and does not vary on one and the same target.

    They are two runtimes of the broker, or a RabbitMQ with and without a proxy in front.
    """
    varying = [each for each in known() if each.suite == compared.suite.name and each.sometimes]
    return [
        compared.explained(test)
        for test in compared.differing()
        if not any(each.covers(test) for each in varying)
    ]


def problems(version: str, compared: Comparison) -> list[str]:
    """What is not as the list says."""
    entries = [each for each in known() if each.suite == compared.suite.name and version in each.versions]
    found = []
    differing = compared.differing()
    for test in differing:
        entry = next((each for each in entries if each.covers(test)), None)
        if entry is None:
            found.append(compared.explained(test))
        elif not entry.sometimes and (entry.rabbitmq, entry.fakeamqp) != compared.statuses(test):
            found.append(f"differs in another way than the list says: {compared.explained(test)}")
    for entry in entries:
        if not entry.sometimes and not any(entry.covers(test) for test in differing):
            found.append(f"no longer differs; take it off the list: {', '.join(entry.tests)}")
    return found
