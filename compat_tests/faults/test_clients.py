"""Every fault against every client: what the client does is what is known of it, and the broker goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.clients.conftest import nothing_is_left
from compat_tests.faults import expected
from compat_tests.faults.catalogue import FAULTS, Fault
from compat_tests.faults.drivers import DRIVERS, LINK_DRIVERS
from compat_tests.faults.links import LINK_FAULTS
from compat_tests.faults.meeting import MORE_PATIENCE, PATIENCE, meet
from compat_tests.faults.page import PAGE, with_tables
from compat_tests.faults.scenario import QUEUE, SCENARIOS, Scenario
from fakeamqp import Broker

__all__ = ["nothing_is_left"]


DEFINITIONS = {"queues": [{"name": QUEUE, "vhost": "/", "durable": True}]}
"""For clients of AMQP 1.0, which declare no queue."""


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("client", DRIVERS)
def test_client_behaves_under_each_fault_as_recorded(
    client: str, fault: str, request: pytest.FixtureRequest
) -> None:
    behaves(client, FAULTS[fault], fault, request, lambda: Broker(seed=1))


@pytest.mark.parametrize("fault", LINK_FAULTS)
@pytest.mark.parametrize("client", LINK_DRIVERS)
def test_client_of_1_0_behaves_under_each_fault_as_recorded(
    client: str, fault: str, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("proton")
    behaves(client, LINK_FAULTS[fault], fault, request, lambda: Broker(seed=1, definitions=DEFINITIONS))


def behaves(
    client: str, about: Fault, fault: str, request: pytest.FixtureRequest, broker: Callable[[], Broker]
) -> None:
    """What the client does is what is known of it."""
    known = expected.read(client)
    scenario = SCENARIOS[about.scenario]
    cell = meet(broker(), client, scenario, PATIENCE, fault).words()
    if request.config.getoption("--record-faults"):
        request.node.user_properties.append(("fault-cell", (client, fault, cell)))
        return
    if cell not in known.cells[fault]:
        cell = meet(broker(), client, scenario, MORE_PATIENCE, fault).words()
    if cell not in known.cells[fault] and known.versions != expected.installed(client):
        pytest.skip(f"known of {known.versions}; {expected.installed(client)} does otherwise: {cell}")
    assert cell in known.cells[fault]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("client", DRIVERS)
def test_client_carries_on_without_a_fault(client: str, scenario: Scenario, nothing_is_left: None) -> None:
    seen = meet(Broker(seed=1), client, scenario, MORE_PATIENCE, None)
    assert seen.words() == "carries on"
    published = ["one", "two", "three"]
    assert sorted(seen.confirmed) == sorted(published)  # Those who publish together are told in any order.
    assert seen.delivered == [*published, "late"] if scenario.waits else published


@pytest.mark.parametrize("scenario", ["work", "wait"])
@pytest.mark.parametrize("client", LINK_DRIVERS)
def test_client_of_1_0_carries_on_without_a_fault(client: str, scenario: str, nothing_is_left: None) -> None:
    pytest.importorskip("proton")
    seen = meet(Broker(seed=1, definitions=DEFINITIONS), client, SCENARIOS[scenario], MORE_PATIENCE, None)
    assert seen.words() == "carries on"


def test_page_of_clients_under_faults_has_the_recorded_behaviour() -> None:
    page = PAGE.read_text("utf-8")
    assert with_tables(page) == page, "run `make faults`"


@pytest.mark.parametrize("client", DRIVERS)
def test_every_fault_has_a_recorded_behaviour_of_each_client(client: str) -> None:
    assert set(expected.read(client).cells) == set(FAULTS)


@pytest.mark.parametrize("client", LINK_DRIVERS)
def test_every_fault_of_links_has_a_recorded_behaviour(client: str) -> None:
    assert set(expected.read(client).cells) == set(LINK_FAULTS)


@pytest.mark.parametrize("client", [*DRIVERS, *LINK_DRIVERS])
def test_recorded_alternatives_have_a_reason(client: str) -> None:
    known = expected.read(client)
    assert {fault for fault, cells in known.cells.items() if len(cells) > 1} == set(known.reasons)
