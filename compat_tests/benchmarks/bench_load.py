"""Raw load from another process, as in docs/benchmarks.md but shorter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compat_tests.benchmarks import load
from compat_tests.differential import rabbitmq_node

MESSAGES = 20_000


@pytest.fixture(scope="module", params=["fakeamqp", "RabbitMQ", "bare loop"])
def address(request: pytest.FixtureRequest) -> Iterator[load.Address]:
    if request.param == "RabbitMQ" and (reason := rabbitmq_node.available()) is not None:
        pytest.skip(reason)
    servers = {
        "fakeamqp": load.fakeamqp_serving,
        "RabbitMQ": load.rabbitmq_serving,
        "bare loop": load.sink_serving,
    }
    with servers[request.param]() as address:
        yield address


@pytest.mark.benchmark(group=f"{MESSAGES} messages from publisher to consumer")
def bench_load(benchmark: BenchmarkFixture, address: load.Address) -> None:
    benchmark.pedantic(load.measure, args=(address, MESSAGES), rounds=5, warmup_rounds=1)
