from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.unit.runtime.fakes import Echoes, real_engine
from fakeamqp.runtime import ThreadEngine


@pytest.fixture
def echoes() -> Echoes:
    return Echoes()


@pytest.fixture
def engine(echoes: Echoes) -> Iterator[ThreadEngine]:
    engine = real_engine(echoes)
    engine.start()
    yield engine
    engine.stop()
    assert [str(failure) for failure in engine.failures] == []
