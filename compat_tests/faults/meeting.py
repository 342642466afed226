"""One client meets one fault, and a plain client comes after it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from compat_tests.faults.bench import Bench
from compat_tests.faults.catalogue import FAULTS
from compat_tests.faults.drivers import DRIVERS, HABITS, LINK_DRIVERS
from compat_tests.faults.links import LINK_FAULTS
from compat_tests.faults.observation import Observation
from compat_tests.faults.proxied_node import ProxiedNode
from compat_tests.faults.scenario import Scenario
from fakeamqp import Broker

__all__ = ["MORE_PATIENCE", "PATIENCE", "meet"]

PATIENCE = 0.8
MORE_PATIENCE = 4.0
"""Where a cell is not as expected, the machine may be busy: then the client gets more time, once."""


def meet(
    where: AbstractContextManager[Broker] | AbstractContextManager[ProxiedNode],
    client: str,
    scenario: Scenario,
    patience: float,
    fault: str | None,
) -> Observation:
    """Have a client go through a scenario on a broker of its own, and a plain one after it."""
    with where as broker:
        bench = Bench(broker, scenario, patience=patience, **HABITS[client])
        if fault is not None:
            {**FAULTS, **LINK_FAULTS}[fault].arrange(bench)
        try:
            seen = {**DRIVERS, **LINK_DRIVERS}[client](bench)
        finally:
            bench.stop()
        bench.finish(seen)
        bench.check(happened=fault is not None)
    return seen
