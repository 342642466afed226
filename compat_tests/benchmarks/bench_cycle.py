"""A fresh broker per test: at most 15 ms at the median on the machine in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compat_tests.benchmarks.cycle import client_cycle, fresh_broker_cycle
from compat_tests.differential import rabbitmq_node
from fakeamqp import Broker


@pytest.fixture(scope="module")
def rabbitmq_url() -> Iterator[str]:
    reason = rabbitmq_node.available()
    if reason is not None:
        pytest.skip(reason)
    with rabbitmq_node.RabbitMQNode() as node:
        yield node.url


@pytest.mark.benchmark(group="one conversation of a client")
def bench_fresh_broker(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(fresh_broker_cycle, rounds=100, warmup_rounds=5)


@pytest.mark.benchmark(group="one conversation of a client")
def bench_running_broker(benchmark: BenchmarkFixture) -> None:
    with Broker() as broker:
        benchmark.pedantic(client_cycle, args=(broker.url,), rounds=100, warmup_rounds=5)


@pytest.mark.benchmark(group="one conversation of a client")
def bench_running_rabbitmq(benchmark: BenchmarkFixture, rabbitmq_url: str) -> None:
    benchmark.pedantic(client_cycle, args=(rabbitmq_url,), rounds=100, warmup_rounds=5)
