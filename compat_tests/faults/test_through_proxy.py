"""Every fault that a proxy can cause against every client, with RabbitMQ behind the proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from compat_tests.faults import expected
from compat_tests.faults.catalogue import FAULTS
from compat_tests.faults.drivers import DRIVERS
from compat_tests.faults.meeting import MORE_PATIENCE, PATIENCE, meet
from compat_tests.faults.proxied_node import CANNOT, in_front_of
from compat_tests.faults.scenario import SCENARIOS
from compat_tests.faults.through_proxy import DIFFERENT, RABBITMQ, cells_of

SERIES = RABBITMQ.rpartition(".")[0]


@pytest.fixture(scope="module")
def node() -> Iterator[RabbitMQNode]:
    if reason := available(SERIES):
        pytest.skip(reason)
    with RabbitMQNode(SERIES) as node:
        node.evaluate("ok")  # The first call takes seconds.
        yield node


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in CANNOT])
@pytest.mark.parametrize("client", DRIVERS)
def test_client_behaves_under_each_fault_of_a_proxy_as_recorded(
    client: str, fault: str, node: RabbitMQNode
) -> None:
    known = cells_of(client, fault)
    scenario = SCENARIOS[FAULTS[fault].scenario]
    cell = meet(in_front_of(node), client, scenario, 2 * PATIENCE, fault).words()
    if cell not in known:
        cell = meet(in_front_of(node), client, scenario, MORE_PATIENCE, fault).words()
    versions = expected.read(client).versions, RABBITMQ
    if cell not in known and versions != (expected.installed(client), node.version):
        pytest.skip(f"known of {versions}; {expected.installed(client)} on {node.version} does: {cell}")
    assert cell in known


def test_listed_differences_are_about_known_faults_and_clients_once_each() -> None:
    cells = [(client, each.fault) for each in DIFFERENT for client in each.clients]
    assert len(cells) == len(set(cells))
    assert {client for client, _ in cells} <= set(DRIVERS)
    assert {fault for _, fault in cells} <= FAULTS.keys() - CANNOT.keys()
    assert CANNOT.keys() <= FAULTS.keys()


def test_listed_difference_differs_from_the_first_tables_and_has_a_reason() -> None:
    for each in DIFFERENT:
        assert each.reason
        for client in each.clients:
            assert set(each.cells).isdisjoint(expected.read(client).cells[each.fault]) or len(each.cells) > 1
