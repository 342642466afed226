"""Runs tests that use the client in processes with a broker each, and says how every test went."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9.choices import letter_of

__all__ = ["MODULES", "PROFILE", "PROFILE_0_8", "Outcome", "failures", "run", "run_all"]

SUITE = "txamqp.test"

PROFILE, PROFILE_0_8 = "OPENAMQ", "QPID"
"""The suite knows three brokers. These two speak AMQP as it was published: one 0-9, the other 0-8."""

MODULES = {
    "test_basic": 15,
    "test_broker": 9,
    "test_endpoint": 4,
    "test_event": 3,
    "test_example": 1,
    "test_exchange": 14,
    "test_factory": 3,
    "test_heartbeat": 1,
    "test_protocol": 12,
    "test_queue": 9,
    "test_testing": 1,
    "test_testlib": 3,
    "test_tx": 4,
}
"""The modules of the suite, and how many tests each has."""

LOTS = (
    ("test_basic", "test_endpoint"),
    ("test_tx", "test_event", "test_testlib"),
    ("test_exchange", "test_factory", "test_protocol", "test_testing"),
    ("test_broker", "test_example", "test_heartbeat", "test_queue"),
)
"""Which of them a process runs: most of the time they wait for a second to see that nothing comes."""

_DEFINITIONS = (
    "standard/amqp0-9.stripped.xml",
    "qpid/amqp.0-8.xml",
    "rabbitmq/amqp0-8.stripped.rabbitmq.xml",
)
"""Where the suite looks for definitions, by the broker it talks to."""

LIMIT = 120
"""How many seconds a process may take."""


@dataclass(frozen=True)
class Outcome:
    """How a test went, "pass", "skip" or "fail", and what was said about it."""

    status: str
    report: str = ""


def failures(outcomes: Mapping[str, Outcome]) -> str:
    """What was said about the tests that failed."""
    return "\n".join(
        f"{name}:\n{outcome.report}" for name, outcome in outcomes.items() if outcome.status == "fail"
    )


def run_all(definition: Path, profile: str = PROFILE) -> dict[str, Outcome]:
    """Run the client's own suite; outcomes by the names of tests without the suite's."""
    with ThreadPoolExecutor(len(LOTS)) as pool:
        outcomes: dict[str, Outcome] = {}
        for each in pool.map(lambda lot: _run_on_own_broker(definition, profile, lot), LOTS):
            outcomes |= each
    return {name.removeprefix(f"{SUITE}."): outcome for name, outcome in outcomes.items()}


def _run_on_own_broker(definition: Path, profile: str, modules: Sequence[str]) -> dict[str, Outcome]:
    with Broker(seed=1, personality=letter_of("rabbitmq-4.2")) as broker:
        outcomes = run(broker, definition, profile, [f"{SUITE}.{module}" for module in modules])
        failures = broker.admin.failures
    if failures:
        return dict.fromkeys(outcomes, Outcome("fail", f"the broker failed: {failures}"))
    return outcomes


def run(broker: Broker, definition: Path, profile: str, names: Sequence[str]) -> dict[str, Outcome]:
    """Run tests by their names or those of modules, one after another in one process; outcomes by name."""
    with tempfile.TemporaryDirectory(prefix="txamqp-") as folder:
        for place in _DEFINITIONS:
            link = Path(folder, "specs", place)
            link.parent.mkdir(parents=True)
            link.symlink_to(definition)
        inside = Path(folder, "run")
        inside.mkdir()
        script = str(Path(__file__).with_name("trial_run.py"))
        done = subprocess.run(
            [sys.executable, script, broker.host, str(broker.port), profile, *names],
            cwd=inside,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"test": ')]
    assert found and done.returncode == 0, done.stdout
    return {each["test"]: Outcome(each["status"], each["report"]) for each in found}
