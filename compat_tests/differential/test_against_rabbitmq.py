"""Every case on RabbitMQ and on the broker: the outcomes are equal, or the difference is a listed one."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests.differential import cases as case_modules
from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from compat_tests.differential.raw_client import Address
from compat_tests.differential.script import CASES, STUMBLED, Case, run
from fakeamqp import Broker

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

for _module in pkgutil.iter_modules(case_modules.__path__):
    importlib.import_module(f"{case_modules.__name__}.{_module.name}")

LISTED_FOR = "3.10."
"""The RabbitMQ that known_differences.toml was measured with."""
AT_ONCE = 24
"""Cases wait much more than they work: for RabbitMQ's pauses, and to see that nothing comes."""
SECOND_LOOKS = 2
"""How often a surprise is looked at again, with more patience: RabbitMQ may just have been slow."""

PLUGINS = ("rabbitmq_consistent_hash_exchange", "rabbitmq_random_exchange", "rabbitmq_sharding")
"""What comes with RabbitMQ and is enabled: exchange types that the broker has."""

# RabbitMQ's definitions, for both.
ACCOUNTS: dict[str, Any] = {
    "vhosts": [{"name": "/"}, {"name": "probe-empty"}],
    "users": [
        {"name": "probe-limited", "password": "limited", "tags": ""},
        {"name": "probe-topic", "password": "topic", "tags": ""},
        {"name": "probe-novhost", "password": "novhost", "tags": ""},
    ],
    "permissions": [
        {
            "user": "probe-limited",
            "vhost": "/",
            "configure": r"^(.*ok.*|amq\.gen.*)$",
            "write": "^.*(ok|ww).*$",
            "read": "^.*(ok|rr).*$",
        },
        {"user": "probe-topic", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
    ],
    "topic_permissions": [
        {"user": "probe-topic", "vhost": "/", "exchange": "amq.topic", "write": "^ok", "read": "^ok"}
    ],
}


# --- known differences -------------------------------------------------------------------------------------


def fits(pattern: str, text: str) -> bool:
    """Whether a pattern in which `*` stands for anything fits a whole text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


@dataclass(frozen=True)
class Difference:
    """An entry of the list. `cases`, `rabbitmq` and `fakeamqp` are patterns."""

    cases: tuple[str, ...]
    kind: str
    rabbitmq: str
    fakeamqp: str
    reason: str

    def covers(self, case: Case) -> bool:
        return any(fits(pattern, case.id) for pattern in self.cases)


def _known_differences() -> tuple[Difference, ...]:
    path = Path(__file__).with_name("known_differences.toml")
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["difference"]
    return tuple(Difference(**{**entry, "cases": tuple(entry["cases"])}) for entry in entries)


DIFFERENCES = _known_differences()


def listed(case: Case) -> Difference | None:
    """The entry that covers a case."""
    return next((entry for entry in DIFFERENCES if entry.covers(case)), None)


# --- running -----------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What came of one case."""

    rabbitmq: str
    fakeamqp: str

    def problem(self, case: Case) -> str:
        """What is not as it should be; empty where nothing is."""
        told = f"\n  RabbitMQ: {self.rabbitmq}\n  fakeamqp: {self.fakeamqp}"
        entry = listed(case)
        if STUMBLED in told:
            return f"{case.id}: the case cannot tell what happened{told}"
        if entry is None:
            return "" if self.rabbitmq == self.fakeamqp else f"{case.id}: the outcomes differ{told}"
        if self.rabbitmq == self.fakeamqp:
            return f"{case.id}: no longer differs; take it off the list of known differences{told}"
        if not (fits(entry.rabbitmq, self.rabbitmq) and fits(entry.fakeamqp, self.fakeamqp)):
            return f"{case.id}: differs in another way than the list says{told}"
        return ""


class Brokers:
    """RabbitMQ and the broker, side by side."""

    def __init__(self, node: RabbitMQNode, broker: Broker) -> None:
        self._ports = (node.port, broker.port)

    def compare(self, case: Case, patience: float) -> Outcome:
        return Outcome(*(run(case, Address("127.0.0.1", port, patience)) for port in self._ports))

    def compare_all(self, cases: Iterable[Case], patience: float) -> dict[str, Outcome]:
        chosen = list(cases)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda case: self.compare(case, patience), chosen)
            return dict(zip((case.id for case in chosen), found, strict=True))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    reason = available()
    if reason is not None:
        pytest.skip(reason)
    accounts = tmp_path_factory.mktemp("accounts") / "definitions.json"
    accounts.write_text(json.dumps(ACCOUNTS))
    with RabbitMQNode(plugins=PLUGINS) as node, Broker(definitions=accounts) as broker:
        if not node.version.startswith(LISTED_FOR):
            pytest.skip(f"differences are listed for RabbitMQ {LISTED_FOR}*, this is {node.version}")
        node.control("import_definitions", str(accounts))
        yield Brokers(node, broker)


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, brokers: Brokers) -> dict[str, Outcome]:
    """What came of the cases that were selected; all of them are run at once."""
    chosen: list[Case] = []
    for item in request.session.items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if isinstance(parameters.get("case"), Case):
            chosen.append(parameters["case"])
    found = brokers.compare_all(chosen, patience=1.0)
    for attempt in range(SECOND_LOOKS):
        surprises = [case for case in chosen if found[case.id].problem(case)]
        found |= brokers.compare_all(surprises, patience=2.0 + attempt)
    return found


# --- tests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_the_outcome_is_rabbitmqs(case: Case, outcomes: dict[str, Outcome]) -> None:
    problem = outcomes[case.id].problem(case)
    assert not problem, problem


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.cases[0])
def test_known_differences_name_cases_there_are(entry: Difference) -> None:
    for pattern in entry.cases:
        named = [case for case in CASES.values() if fits(pattern, case.id)]
        assert named, f"there is no case {pattern}"
        assert all(listed(case) is entry for case in named), f"{pattern} is covered by two entries"


def test_known_differences_are_explained() -> None:
    assert {entry.kind for entry in DIFFERENCES} <= {"4.2", "deliberate", "not built"}
    assert all(entry.reason and entry.rabbitmq and entry.fakeamqp for entry in DIFFERENCES)
