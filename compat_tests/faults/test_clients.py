"""Every fault against every client: what the client does is what is known of it, and the broker goes on."""

from __future__ import annotations

import pytest

from compat_tests.clients.conftest import nothing_is_left
from compat_tests.faults import expected
from compat_tests.faults.bench import Bench
from compat_tests.faults.catalogue import FAULTS
from compat_tests.faults.drivers import DRIVERS, HABITS
from compat_tests.faults.observation import Observation
from compat_tests.faults.page import PAGE, with_tables
from compat_tests.faults.scenario import SCENARIOS, Scenario
from fakeamqp import Broker

__all__ = ["nothing_is_left"]

PATIENCE = 0.8
MORE_PATIENCE = 4.0
"""Where a cell is not as expected, the machine may be busy: then the client gets more time, once."""


def meet(client: str, scenario: Scenario, patience: float, fault: str | None) -> Observation:
    """Have a client go through a scenario on a broker of its own, and a plain one after it."""
    with Broker(seed=1) as broker:
        bench = Bench(broker, scenario, patience=patience, **HABITS[client])
        if fault is not None:
            FAULTS[fault].arrange(bench)
        try:
            seen = DRIVERS[client](bench)
        finally:
            bench.stop()
        bench.finish(seen)
        bench.check(happened=fault is not None)
    return seen


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("client", DRIVERS)
def test_client_behaves_under_each_fault_as_recorded(
    client: str, fault: str, request: pytest.FixtureRequest
) -> None:
    known = expected.read(client)
    scenario = SCENARIOS[FAULTS[fault].scenario]
    cell = meet(client, scenario, PATIENCE, fault).words()
    if request.config.getoption("--record-faults"):
        request.node.user_properties.append(("fault-cell", (client, fault, cell)))
        return
    if cell not in known.cells[fault]:
        cell = meet(client, scenario, MORE_PATIENCE, fault).words()
    if cell not in known.cells[fault] and known.versions != expected.installed(client):
        pytest.skip(f"known of {known.versions}; {expected.installed(client)} does otherwise: {cell}")
    assert cell in known.cells[fault]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("client", DRIVERS)
def test_client_carries_on_without_a_fault(client: str, scenario: Scenario, nothing_is_left: None) -> None:
    seen = meet(client, scenario, MORE_PATIENCE, None)
    assert seen.words() == "carries on"
    published = ["one", "two", "three"]
    assert sorted(seen.confirmed) == sorted(published)  # Those who publish together are told in any order.
    assert seen.delivered == [*published, "late"] if scenario.waits else published


def test_page_of_clients_under_faults_has_the_recorded_behaviour() -> None:
    page = PAGE.read_text("utf-8")
    assert with_tables(page) == page, "run `make faults`"


@pytest.mark.parametrize("client", DRIVERS)
def test_every_fault_has_a_recorded_behaviour_of_each_client(client: str) -> None:
    assert set(expected.read(client).cells) == set(FAULTS)


@pytest.mark.parametrize("client", DRIVERS)
def test_recorded_alternatives_have_a_reason(client: str) -> None:
    known = expected.read(client)
    assert {fault for fault, cells in known.cells.items() if len(cells) > 1} == set(known.reasons)
