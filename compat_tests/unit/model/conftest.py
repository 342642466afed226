"""What tests of the model begin with."""

from __future__ import annotations

import pytest

from compat_tests.unit.model.bench import Bench


@pytest.fixture
def bench() -> Bench:
    """A broker without clients."""
    return Bench()
