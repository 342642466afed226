"""Fixtures of the raw client, and the protocols that tests run over.

0-9 has half of its rules from 0-9-1, with the same bytes. A test that is marked with a rule that both have
runs over both; one that says `@pytest.mark.protocols("0-9-1")` does not, because that is about RabbitMQ, or
because the text of 0-9 wants something else, which has a test in `amqp_0_9/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.conformance import MARKS, PROTOCOL_0_9_1, SHARING, catalogue_of
from fakeamqp.dialects import protocol_names

PERSONALITIES = ("rabbitmq-4.3", "spec")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test over each protocol that has one of its rules."""
    if metafunc.definition.path.parent.name != "amqp_0_9_1":
        return
    ids = [id_ for name in MARKS for mark in _marks(metafunc.definition, name) for id_ in mark.args]
    protocols = [
        protocol
        for protocol in SHARING
        if protocol in protocol_names()
        and _may_speak(metafunc.definition, protocol)
        and any(catalogue_of(protocol).same(id_) for id_ in ids)
    ]
    if protocols not in ([], [PROTOCOL_0_9_1]):
        metafunc.parametrize("protocol", protocols, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the parameters that are for another protocol."""
    items[:] = [
        item
        for item in items
        if not (callspec := getattr(item, "callspec", None))
        or _may_speak(item, callspec.params.get("protocol", ""))
    ]


def pytest_cases(items: list[pytest.Item]) -> None:
    """The same for cases of a folded test."""
    pytest_collection_modifyitems(items)


def _may_speak(node: pytest.Item, protocol: str) -> bool:
    return not protocol or all(protocol in mark.args for mark in node.iter_markers("protocols"))


def _marks(node: pytest.Item, name: str) -> Iterator[pytest.Mark]:
    """The marks of a test and of its parameters."""
    yield from node.iter_markers(name)
    for parametrize in node.iter_markers("parametrize"):
        for values in parametrize.args[1]:
            yield from (mark for mark in _marks_of(values) if mark.name == name)


def _marks_of(values: Any) -> list[pytest.Mark]:
    """The marks of one of the values of a parameter: bare, or with their decorators."""
    return [getattr(mark, "mark", mark) for mark in getattr(values, "marks", ())]


@pytest.fixture
def protocol(request: pytest.FixtureRequest) -> str:
    """What the clients of this test speak: 0-9-1 but for tests that run over both."""
    return getattr(request, "param", PROTOCOL_0_9_1)


@pytest.fixture(params=PERSONALITIES)
def server(request: pytest.FixtureRequest, protocol: str) -> Server:
    """A broker of each personality in turn, or the node: for rules where all agree."""
    return Server(protocol=protocol) if Server.on_node else Server(request.param, protocol=protocol)


@pytest.fixture
def rabbitmq(protocol: str) -> Server:
    """A broker that behaves like RabbitMQ 4.3, or the node."""
    return Server(protocol=protocol)


@pytest.fixture
def rabbitmq_4_2(protocol: str) -> Server:
    """A broker that behaves like RabbitMQ 4.2: the last one with global prefetch limits, among others."""
    return Server("rabbitmq-4.2", protocol=protocol)


@pytest.fixture
def spec(protocol: str) -> Server:
    """A broker that follows the documents to the letter."""
    return Server("spec", protocol=protocol)


@pytest.fixture
def client(server: Server) -> Client:
    """An open connection with channel 1 open, on each personality in turn."""
    return server.client()


@pytest.fixture
def connect(server: Server) -> Callable[..., Client]:
    """Makes open connections to `server`."""
    return server.client
