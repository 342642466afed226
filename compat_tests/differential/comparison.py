"""RabbitMQ and the broker side by side: a node of one series, and the personality of its own."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from compat_tests.differential import cases as case_modules
from compat_tests.differential.accounts import ACCOUNTS
from compat_tests.differential.operators import BrokerOperator, NodeOperator
from compat_tests.differential.rabbitmq_node import RabbitMQNode
from compat_tests.differential.raw_client import Address
from compat_tests.differential.script import CASES, Case, begin, finish, run
from fakeamqp import Broker

__all__ = [
    "LOOKS",
    "PLUGINS",
    "SERIES",
    "Outcome",
    "Series",
    "SideBySide",
    "all_cases",
    "fits",
    "is_special",
    "run_special",
    "side_by_side",
]

AT_ONCE = 24
"""Cases wait much more than they work: for RabbitMQ's pauses, and to see that nothing comes."""
LOOKS = ((1.0, AT_ONCE), (2.0, AT_ONCE), (3.0, 4), (5.0, 1))
"""The patience of each look at a case and how many cases run at once then.

A case that surprises is looked at again: RabbitMQ may just have been slow, or the machine busy.
"""

PLUGINS = ("rabbitmq_consistent_hash_exchange", "rabbitmq_random_exchange", "rabbitmq_sharding")
"""What comes with RabbitMQ and is enabled: exchange types that the broker has."""

_VARIABLES = {"channel_tick_interval": "500"}
"""Channels look for deliveries that were held too long this often, in milliseconds, and not every minute."""


@dataclass(frozen=True)
class Series:
    """A series of RabbitMQ that is measured, and the personality beside it."""

    name: str
    personality: str

    def __str__(self) -> str:
        return self.name


SERIES = {
    each.name: each
    for each in (
        Series("3.10", "rabbitmq-3.10"),
        Series("4.0", "rabbitmq-4.0"),
        Series("4.3", "rabbitmq-4.3"),
    )
}


def all_cases() -> dict[str, Case]:
    """The cases of all modules in `cases/`, by id."""
    for module in pkgutil.iter_modules(case_modules.__path__):
        importlib.import_module(f"{case_modules.__name__}.{module.name}")
    return CASES


def fits(pattern: str, text: str) -> bool:
    """Whether a pattern in which `*` stands for anything fits a whole text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


class Outcome(NamedTuple):
    """What came of one case."""

    rabbitmq: str
    fakeamqp: str

    @property
    def differs(self) -> bool:
        return self.rabbitmq != self.fakeamqp

    def __str__(self) -> str:
        return f"  RabbitMQ: {self.rabbitmq}\n  fakeamqp: {self.fakeamqp}"


class SideBySide:
    """A node and a broker that have loaded the same definitions."""

    def __init__(self, node: RabbitMQNode, broker: Broker, personality: str) -> None:
        self.node = node
        self.broker = broker
        self.personality = personality
        self._there, self._here = NodeOperator(node), BrokerOperator(broker)

    def compare(self, case: Case, patience: float = 1.0) -> Outcome:
        """Run a case on both."""
        return Outcome(*(run(case, address) for address in self._addresses(patience)))

    def _addresses(self, patience: float) -> list[Address]:
        sides = ((self.node.port, self._there), (self.broker.port, self._here))
        return [Address("127.0.0.1", port, patience, who) for port, who in sides]

    def compare_all(
        self, cases: Iterable[Case], surprising: Callable[[Case, Outcome], object]
    ) -> dict[str, Outcome]:
        """Run cases on both, again where an outcome surprises (`LOOKS`), and return the last outcomes."""
        chosen = list(cases)
        found: dict[str, Outcome] = {}
        for patience, at_once in LOOKS:
            with ThreadPoolExecutor(at_once) as pool, ThreadPoolExecutor(2) as sides:
                together = [case for case in chosen if not is_special(case)]
                outcomes = pool.map(lambda case, patience=patience: self.compare(case, patience), together)
                found |= zip((case.id for case in together), outcomes, strict=True)
                special = [case for case in chosen if is_special(case)]
                there, here = sides.map(
                    lambda address, special=special: run_special(special, address, pool),
                    self._addresses(patience),
                )
                found |= {case.id: Outcome(there[case.id], here[case.id]) for case in special}
                chosen = [case for case in chosen if surprising(case, found[case.id])]
        return found


def is_special(case: Case) -> bool:
    """Whether a case does something to the whole broker."""
    return case.alone or case.setting is not None or case.before is not None


def run_special(cases: Sequence[Case], address: Address, pool: Executor) -> dict[str, str]:
    """Run cases that do something to a whole broker: those that do the same at once, others by themselves."""
    found: dict[str, str] = {}
    for setting in dict.fromkeys(case.setting for case in cases if case.setting is not None):
        of_one = [case for case in cases if case.setting == setting]
        with setting.applied(address):
            outcomes = pool.map(lambda case: finish(case, *begin(case, address)), of_one)
            found |= zip((case.id for case in of_one), outcomes, strict=True)
    restarted = [case for case in cases if case.before is not None]
    if restarted:
        begun = list(pool.map(lambda case: begin(case, address), restarted))
        assert address.operator is not None
        address.operator.restart()
        outcomes = pool.map(lambda case, scene: finish(case, *scene), restarted, begun)
        found |= zip((case.id for case in restarted), outcomes, strict=True)
    found |= {case.id: run(case, address) for case in cases if case.alone}
    return found


@contextlib.contextmanager
def side_by_side(
    series: str,
    *,
    personality: str | None = None,
    permit: Iterable[str] = (),
    deny: Iterable[str] = (),
) -> Iterator[SideBySide]:
    """Start a node of a series and a broker, both with the accounts that cases need.

    Args:
        personality: the broker's; by default that of the series.
        permit: deprecated features that both permit, such as ``transient_nonexcl_queues``.
        deny: those that both deny.

    Raises:
        RabbitMQError: the node does not start.
    """
    permit, deny = list(permit), list(deny)
    settings = {
        f"deprecated_features.permit.{name}": value
        for names, value in ((permit, "true"), (deny, "false"))
        for name in names
    }
    chosen = personality or SERIES[series].personality
    with (
        RabbitMQNode(series, plugins=PLUGINS, settings=settings, variables=_VARIABLES) as node,
        Broker(personality=chosen, permit=permit, deny=deny, definitions=ACCOUNTS) as broker,
    ):
        node.import_definitions(ACCOUNTS)
        yield SideBySide(node, broker, chosen)
