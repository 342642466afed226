"""Runs the client's own test suites by the client's own runner, and says how each test went.

One suite is for brokers: `qpid_tests.broker_0_10`, with a module that it leaves to brokers with a store.
Another is for the client and needs a broker: parts of `qpid.tests`. The tests are dealt out to a few
processes, each with a broker of its own: most of their time they wait for a second to see that nothing comes.
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

__all__ = ["FURTHER_TESTS", "TESTS", "Outcome", "Test", "listed", "run", "run_all"]

MODULE = "qpid_tests.broker_0_10"
FURTHER_MODULES = ("qpid.tests", "qpid_tests.broker_0_10.persistence")

_ENDPOINTS = "qpid.tests.messaging.endpoints"

FURTHER_TESTS = {
    f"{_ENDPOINTS}.AddressErrorTests": 9,
    f"{_ENDPOINTS}.AddressTests": 21,
    f"{_ENDPOINTS}.ConnectionTests": 6,
    f"{_ENDPOINTS}.ErrorCallbackTests": 4,
    f"{_ENDPOINTS}.ReceiverTests": 22,
    f"{_ENDPOINTS}.SenderTests": 9,
    f"{_ENDPOINTS}.SessionTests": 21,
    f"{_ENDPOINTS}.SetupTests": 9,
    f"{_ENDPOINTS}.TimeoutTests": 8,
    "qpid.tests.messaging.message.MessageEchoTests": 17,
    "qpid_tests.broker_0_10.persistence.PersistenceTests": 3,
}
"""Further classes: tests of the client that talk to a broker, tests of persistence. How many each has."""

PROCESSES = 8
"""How many processes run at a time."""
SECONDS_EACH = 12
"""How long the tests of one process may wait by themselves, if there are several."""
LIMIT = 150
"""Seconds after which a process is taken for hanging."""

_DELAY = "delay=0.25"
"""Seconds that the client's own tests wait wherever something might still come."""

_STATUS = re.compile(r"^(qpid\S+) \.+ (start|pass|skip|fail)$")


@dataclass(frozen=True)
class Test:
    """A test of the suite for brokers.

    `held_by` names a test of ours that checks the same, `reason` says why it is not run, `waits` how many
    seconds it takes at least.
    """

    id: str
    needs: tuple[str, ...]
    checks: str
    held_by: str = ""
    reason: str = ""
    waits: float = 0

    @property
    def name(self) -> str:
        """What the runner calls it."""
        return f"{MODULE}.{self.id}"

    @property
    def module(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Outcome:
    """How a test went, "pass", "skip" or "fail", and what was printed about it."""

    status: str
    report: str = ""


@dataclass(frozen=True)
class _Lot:
    """Tests that one process runs, by names or patterns that the runner knows; for how long at least."""

    modules: tuple[str, ...]
    names: tuple[str, ...]
    waits: float


def _load() -> tuple[Test, ...]:
    entries: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("suite.toml").read_text())["tests"]
    return tuple(Test(**{**entry, "needs": tuple(entry["needs"])}) for entry in entries)


TESTS = _load()


def listed(client: Python27, module: str = MODULE) -> list[str]:
    """The names of all tests for brokers that the runner finds."""
    done = client.run(_runner(client), "-m", module, "--list", f"{module}.*")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def run_all(client: Python27) -> dict[str, Outcome]:
    """Run all tests that nothing speaks against, each module on brokers of its own; outcomes by name."""
    lots = [*_lots([test for test in TESTS if not test.reason]), *_further_lots()]
    lots.sort(key=lambda lot: lot.waits, reverse=True)
    with ThreadPoolExecutor(PROCESSES) as pool:
        outcomes: dict[str, Outcome] = {}
        for each in pool.map(lambda lot: _run_on_own_broker(client, lot), lots):
            outcomes |= each
    return outcomes


def _lots(tests: Sequence[Test]) -> list[_Lot]:
    lots: dict[str, list[list[Test]]] = {}
    for test in sorted(tests, key=lambda test: -test.waits):
        of_module = lots.setdefault(test.module, [])
        with_room = [lot for lot in of_module if _waits([*lot, test]) <= SECONDS_EACH]
        if with_room:
            with_room[0].append(test)
        else:
            of_module.append([test])
    return [
        _Lot((MODULE,), tuple(test.name for test in lot), _waits(lot))
        for of_module in lots.values()
        for lot in of_module
    ]


def _waits(tests: Sequence[Test]) -> float:
    return sum(test.waits for test in tests)


def _further_lots() -> list[_Lot]:
    """One class takes as long as all others together."""
    longest = f"{_ENDPOINTS}.ReceiverTests"
    others = [name for name in FURTHER_TESTS if name != longest]
    return [
        _Lot(FURTHER_MODULES, tuple(f"{name}.*" for name in names), SECONDS_EACH)
        for names in ([longest], others)
    ]


def _run_on_own_broker(client: Python27, lot: _Lot) -> dict[str, Outcome]:
    try:
        return _run_once(client, lot, LIMIT)
    except subprocess.TimeoutExpired:
        # On a busy machine the client may hang: it connects, and never sends its protocol header (one of 16
        # processes, of which eight ran at a time).
        return _run_once(client, lot, None)


def _run_once(client: Python27, lot: _Lot, limit: float | None) -> dict[str, Outcome]:
    with Broker(seed=1) as broker:
        outcomes = run(client, broker.host, broker.port, lot.names, modules=lot.modules, hangs_after=limit)
        failures = broker.admin.failures
    if failures:
        failed = Outcome("fail", f"the broker failed: {failures}")
        return dict.fromkeys(outcomes, failed)
    return outcomes


def run(
    client: Python27,
    host: str,
    port: int,
    names: Sequence[str],
    *,
    modules: Sequence[str] = (MODULE,),
    hangs_after: float | None = None,
) -> dict[str, Outcome]:
    """Run tests on a broker, one after another in one process; the outcomes by name.

    Raises:
        subprocess.TimeoutExpired: they are not done after `hangs_after` seconds. Without that, tests that are
            not done after `LIMIT` seconds have failed.
    """
    options = [*(f"--module={module}" for module in modules), f"--define={_DELAY}"]
    command = client.command(_runner(client), *options, "-b", f"guest/guest@{host}:{port}")
    try:
        done = subprocess.run(
            [*command, *names],
            env=client.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=hangs_after or LIMIT,
            check=False,
        )
        printed = done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as expired:
        if hangs_after is not None:
            raise
        printed = (expired.stdout or b"").decode("utf-8", "replace")
        printed += f"\nNot done after {LIMIT} seconds."
    found = _outcomes(printed)
    missing = [name for name in names if not name.endswith("*") and name not in found]
    return {**dict.fromkeys(missing, Outcome("fail", f"did not end:\n{printed}")), **found}


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
