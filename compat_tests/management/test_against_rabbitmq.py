"""The recorded answers are still those of RabbitMQ: the scenario runs on a real node."""

from __future__ import annotations

import pytest

from compat_tests.differential.rabbitmq_node import available
from compat_tests.management.comparison import differences, measured
from compat_tests.management.recording import record_node


@pytest.mark.parametrize("version", ["4.0", "4.3"])
def test_recorded_answers_equal_the_answers_of_the_node(version):
    if (obstacle := available(version)) is not None:
        pytest.skip(obstacle)
    before, now = measured(version), record_node(version)
    assert [f"{name} {found}" for name in before for found in differences(before[name], now[name])] == []
