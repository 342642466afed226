"""`--on`: the protocol tests of 0-9-1 run on nodes of RabbitMQ.

A test fails that is neither marked with what it needs nor listed as different. So does one whose mark or
entry is not true.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.differential.comparison import PLUGINS, SERIES
from compat_tests.differential.rabbitmq_node import RabbitMQNode, available

ROOT = Path(__file__).parents[2]
LEAST = {"3.10": 500, "4.0": 900, "4.3": 1100}
"""So many cases run at least: the others are about what a node has not."""


def ran_on(target: str, *tests: str) -> int:
    """Run protocol tests on a node; how many cases ran. None may fail."""
    options = ("--on", target, "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=short")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    found = re.search(r"^(\d+) ran: ", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout[-2000:]
    return int(found[1])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("series", SERIES)
def test_protocol_tests_pass_on_rabbitmq_node_but_for_known_differences(series: str) -> None:
    if (reason := available(series)) is not None:
        pytest.skip(reason)
    assert ran_on(f"rabbitmq-{series}", "compat_tests/protocol/amqp_0_9_1") >= LEAST[series]


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a RabbitMQ that runs already."""
    if (reason := available("4.3")) is not None:
        pytest.skip(reason)
    with RabbitMQNode("4.3", plugins=PLUGINS) as node:
        yield node.url


def test_protocol_tests_pass_on_rabbitmq_that_runs_already(url: str) -> None:
    files = ("test_acknowledgements.py", "test_get.py", "test_recover.py")
    assert ran_on(url, *(f"compat_tests/protocol/amqp_0_9_1/{file}" for file in files)) > 60
