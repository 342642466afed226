"""txAMQP, unmodified, over AMQP 0-9 and 0-8: its own suite, and tests of ours of what that leaves out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compat_tests.clients.txamqp import specification, suite
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9.public import TunnelRequest

spec = pytest.importorskip("txamqp.spec")

FOR_RABBITMQ = {
    "test_basic.BasicTests.test_consume_queue_unspecified_rabbit",
    "test_exchange.MiscellaneousErrorsTests.test_different_declared_type_rabbit",
}
"""Of two tests of the suite there is one for RabbitMQ and one for all other brokers."""

OURS = "compat_tests.clients.txamqp.optional_classes"


@pytest.fixture(scope="module")
def definition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the client reads about AMQP 0-9."""
    path = tmp_path_factory.mktemp("txamqp") / "amqp0-9.xml"
    specification.write(path)
    return path


def needs(published: Path) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not published.exists(), reason="needs the published XML: Debian package amqp-specs"
    )


@pytest.fixture(scope="module", params=["0-9", pytest.param("0-8", marks=needs(specification.PUBLISHED_0_8))])
def outcomes(request: pytest.FixtureRequest, definition: Path) -> dict[str, suite.Outcome]:
    """How each test of the suite went, by its name."""
    if request.param == "0-8":
        return suite.run_all(specification.PUBLISHED_0_8, suite.PROFILE_0_8)
    return suite.run_all(definition)


@needs(specification.PUBLISHED)
def test_txamqp_definition_equals_the_published_specification(definition: Path) -> None:
    assert read(definition) == read(specification.PUBLISHED)


def read(path: Path) -> tuple[Any, ...]:
    known = spec.load(str(path))
    return (
        (known.major, known.minor),
        {(each.name, each.id, each.klass) for each in known.constants},
        [
            (of_class.name, of_class.id, of_class.handler, fields(of_class), methods(of_class))
            for of_class in known.classes
        ],
    )


def fields(of: Any) -> list[tuple[str, str]]:
    return [(field.name, field.type) for field in of.fields]


def methods(of_class: Any) -> list[tuple[Any, ...]]:
    return [
        (
            *(method.name, method.id, method.content, method.synchronous, method.response),
            [response.name for response in method.responses],
            fields(method),
        )
        for method in of_class.methods
    ]


@pytest.mark.parametrize("module", suite.MODULES)
def test_suite(module: str, outcomes: dict[str, suite.Outcome]) -> None:
    found = {name: outcome for name, outcome in outcomes.items() if name.startswith(f"{module}.")}
    failures = suite.failures(found)
    assert not failures, failures
    assert {name for name, outcome in found.items() if outcome.status == "skip"} <= FOR_RABBITMQ
    assert len(found) == suite.MODULES[module]


def test_the_whole_suite_was_run(outcomes: dict[str, suite.Outcome]) -> None:
    assert Counter(outcome.status for outcome in outcomes.values()) == {"pass": 77, "skip": 2}


def run(broker: Broker, definition: Path, of_class: str, *, tests: int) -> None:
    found = suite.run(broker, definition, suite.PROFILE, [f"{OURS}.{of_class}"])
    failures = suite.failures(found)
    assert not failures, failures
    assert Counter(outcome.status for outcome in found.values()) == {"pass": tests}


@pytest.mark.parametrize(
    ("of_class", "tests"),
    [
        ("AccessTests", 1),
        ("DtxTests", 1),
        ("FileTests", 4),
        ("StreamTests", 2),
        ("StructuredContentTests", 1),
    ],
)
def test_other_classes(of_class: str, tests: int, broker: Broker, definition: Path) -> None:
    run(broker, definition, of_class, tests=tests)


def test_txamqp_works_with_checked_access_tickets(definition: Path) -> None:
    with Broker(seed=1, personality="spec") as broker:
        run(broker, definition, "AccessTests", tests=1)


def test_tunnels(broker: Broker, definition: Path) -> None:
    requests: list[TunnelRequest] = []
    with broker.admin.amqp_0_9.tunnel("proxy", requests.append):
        run(broker, definition, "TunnelTests", tests=1)
    assert [request.body for request in requests] == [b"", b"0123456789" * 20_000]
    for request in requests:
        assert request.meta_data == {"name": "value", "number": 5}
        assert request.headers == {"number": 5}
        assert (request.proxy_name, request.data_name) == ("proxy", "data")
        assert (request.durable, request.broadcast) == (True, False)
        assert (request.user, request.virtual_host, request.channel) == ("guest", "/", 1)
