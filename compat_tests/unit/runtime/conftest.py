from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.unit.runtime.fakes import Echoes, PortEngine, real_engine


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
