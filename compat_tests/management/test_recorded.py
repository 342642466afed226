"""The broker answers the requests of the scenario as RabbitMQ has: measured, and compared without a node."""

from __future__ import annotations

import pytest

from compat_tests.management.comparison import compared, measured
from compat_tests.management.recording import record
from compat_tests.management.scenario import Target, requests
from fakeamqp import Broker


@pytest.mark.parametrize("version", ["4.3", "4.0"])
def test_status_keys_types_and_values_equal_those_of_rabbitmq(version):
    real = measured(version)
    assert len(real) == len(requests()) > 400
    with Broker(management=True, personality=f"rabbitmq-{version}") as broker:
        ours = record(Target(broker.port, broker.admin.management_url))
        assert broker.admin.failures == ()
    new, unused = compared(version, real, ours)
    assert new == []
    assert unused == []
