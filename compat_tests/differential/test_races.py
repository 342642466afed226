"""A broker with races shows only orders that RabbitMQ was seen to show, and each of them under some draw."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from compat_tests.differential.comparison import SERIES, Series
from compat_tests.differential.conftest import Nodes
from compat_tests.differential.races import SCENES, Scene, orders
from compat_tests.differential.raw_client import Address
from fakeamqp import Broker

ROUNDS = 4000
"""An order that RabbitMQ shows in one of 400 rounds is missed once in 20 000 runs of a test."""
SEEDS = 60
ROUNDS_OF_A_SEED = 25
MEASURED = [SERIES["4.0"], SERIES["4.3"]]


def shown_by_nodes(scene: Scene, nodes: Nodes) -> Iterable[str]:
    """The orders of a scene on nodes of both series, until all are shown that the list has."""
    missing = set(scene.orders)
    for series in MEASURED:
        port = nodes.beside(series.name).node.port
        shown = orders(scene, Address("127.0.0.1", port), ROUNDS, until=missing)
        yield from shown
        missing -= shown.keys()
        if not missing:
            return


@pytest.mark.parametrize("name", SCENES)
def test_rabbitmq_shows_exactly_the_listed_orders_of_each_scene(name: str, nodes: Nodes) -> None:
    assert set(shown_by_nodes(SCENES[name], nodes)) == SCENES[name].orders


@pytest.mark.parametrize("series", MEASURED, ids=str)
@pytest.mark.parametrize("name", SCENES)
def test_broker_with_races_shows_exactly_the_listed_orders_of_each_scene(name: str, series: Series) -> None:
    scene = SCENES[name]
    shown: set[str] = set()
    for seed in range(1, SEEDS + 1):
        with Broker(personality=series.personality, races=seed) as broker:
            shown |= orders(scene, Address("127.0.0.1", broker.port), ROUNDS_OF_A_SEED).keys()
        if shown == scene.orders and seed >= 3:
            break
    assert shown == scene.orders


@pytest.mark.parametrize("name", SCENES)
def test_broker_without_races_shows_exactly_1_order_of_each_scene(name: str) -> None:
    with Broker() as broker:
        assert len(orders(SCENES[name], Address("127.0.0.1", broker.port), ROUNDS_OF_A_SEED)) == 1
