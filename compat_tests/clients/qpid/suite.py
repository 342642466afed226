"""Runs the client's own test suite by the client's own runner, and says how each test went.

The tests are dealt out to a few processes, each with a broker of its own: most of their time they wait for a
second to see that nothing comes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.clients.qpid.python27 import Python27
from fakeamqp import Broker

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["TESTS", "Outcome", "Test", "listed", "run", "run_all"]

MODULE = "qpid_tests.broker_0_10"

PROCESSES = 12
"""How many processes run at a time."""
SECONDS_EACH = 12
"""How long the tests of one process may wait by themselves, if there are several."""
LIMIT = 150
"""Seconds after which a process is taken for hanging."""

_STATUS = re.compile(r"^(qpid_tests\.\S+) \.+ (start|pass|skip|fail)$")


@dataclass(frozen=True)
class Test:
    """A test of the suite; `reason` says why it is not run, `waits` how many seconds it takes at least."""

    id: str
    needs: tuple[str, ...]
    checks: str
    reason: str = ""
    waits: float = 0

    @property
    def name(self) -> str:
        """What the runner calls it."""
        return f"{MODULE}.{self.id}"

    @property
    def class_name(self) -> str:
        return self.id.rpartition(".")[0]


@dataclass(frozen=True)
class Outcome:
    """How a test went, "pass", "skip" or "fail", and what was printed about it."""

    status: str
    report: str = ""


def _load() -> tuple[Test, ...]:
    entries: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("suite.toml").read_text())["tests"]
    return tuple(Test(**{**entry, "needs": tuple(entry["needs"])}) for entry in entries)


TESTS = _load()


def listed(client: Python27) -> list[str]:
    """The names of all tests that the runner finds."""
    done = client.run(_runner(client), "-m", MODULE, "--list", f"{MODULE}.*")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def run_all(client: Python27, tests: Sequence[Test]) -> dict[str, Outcome]:
    """Run tests, each class on brokers of its own; the outcomes by id."""
    lots = sorted(_lots(tests), key=_waits, reverse=True)
    with ThreadPoolExecutor(PROCESSES) as pool:
        outcomes: dict[str, Outcome] = {}
        for each in pool.map(lambda lot: _run_on_own_broker(client, lot), lots):
            outcomes |= each
    return outcomes


def _lots(tests: Sequence[Test]) -> list[list[Test]]:
    lots: dict[str, list[list[Test]]] = {}
    for test in sorted(tests, key=lambda test: -test.waits):
        of_class = lots.setdefault(test.class_name, [])
        with_room = [lot for lot in of_class if _waits([*lot, test]) <= SECONDS_EACH]
        if with_room:
            with_room[0].append(test)
        else:
            of_class.append([test])
    return [lot for of_class in lots.values() for lot in of_class]


def _waits(lot: Sequence[Test]) -> float:
    return sum(test.waits for test in lot)


def _run_on_own_broker(client: Python27, lot: Sequence[Test]) -> dict[str, Outcome]:
    with Broker(seed=1) as broker:
        outcomes = run(client, broker.host, broker.port, lot)
        failures = broker.failures
    if failures:
        failed = Outcome("fail", f"the broker failed: {failures}")
        return dict.fromkeys(outcomes, failed)
    return outcomes


def run(client: Python27, host: str, port: int, tests: Sequence[Test]) -> dict[str, Outcome]:
    """Run tests on a broker, one after another in one process; the outcomes by id."""
    command = client.command(_runner(client), "-m", MODULE, "-b", f"guest/guest@{host}:{port}")
    names = [test.name for test in tests]
    try:
        done = subprocess.run(
            [*command, *names],
            env=client.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
        printed = done.stdout
    except subprocess.TimeoutExpired as expired:
        printed = (expired.stdout or b"").decode("utf-8", "replace") if expired.stdout else ""
        printed += f"\nNot done after {LIMIT} seconds."
    found = _outcomes(printed)
    return {test.id: found.get(test.name, Outcome("fail", f"did not end:\n{printed}")) for test in tests}


def _runner(client: Python27) -> str:
    return str(client.packages / "bin" / "qpid-python-test")


def _outcomes(printed: str) -> dict[str, Outcome]:
    """What the runner said. It prints a test's name twice where the test itself prints something."""
    outcomes: dict[str, Outcome] = {}
    name, lines = "", list[str]()
    for line in printed.splitlines():
        found = _STATUS.match(line)
        if line.startswith("Totals:"):
            break
        if found is None:
            lines.append(line)
            if name:
                outcomes[name] = Outcome(outcomes[name].status, "\n".join(lines))
        elif found[2] == "start":
            name, lines = "", []
        else:
            name, lines = found[1], []
            outcomes[name] = Outcome(found[2])
    return outcomes
