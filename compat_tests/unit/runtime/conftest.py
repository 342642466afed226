from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat_tests.unit.runtime.fakes import EchoConnection, Echoes, PortEngine, real_engine

Started = Callable[..., tuple[PortEngine, Echoes]]


@pytest.fixture
def echoes() -> Echoes:
    return Echoes()


@pytest.fixture
def engine(echoes: Echoes) -> Iterator[PortEngine]:
    engine = real_engine(echoes)
    engine.start()
    yield engine
    engine.stop()
    assert [str(failure) for failure in engine.failures] == []


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts an engine whose connections are of some kind; what fails in it is for the test to look at."""
    engines: list[PortEngine] = []

    def start(kind: type[EchoConnection] = EchoConnection) -> tuple[PortEngine, Echoes]:
        accept = Echoes(kind)
        engines.append(real_engine(accept))
        engines[-1].start()
        return engines[-1], accept

    yield start
    for engine in engines:
        engine.stop()
