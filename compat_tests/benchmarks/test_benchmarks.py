"""The benchmarks still measure what they say. Nothing is timed here."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compat_tests.benchmarks import expiry, load, trace
from compat_tests.benchmarks.cases import CASES, Case
from compat_tests.benchmarks.cycle import client_cycle, fresh_broker_cycle
from compat_tests.benchmarks.imports import import_seconds
from compat_tests.differential import rabbitmq_node
from fakeamqp import Broker

HEAVY = {"asyncio", "concurrent", "email", "http", "multiprocessing", "sqlite3", "ssl", "unittest", "xml"}
OPTIONAL = {
    "aio_pika",
    "aiormq",
    "amqp",
    "hypothesis",
    "kombu",
    "pika",
    "pyarrow",
    "pyspark",
    "pytest",
    "trustme",
}


@pytest.mark.parametrize(
    "program",
    ["import fakeamqp", "from fakeamqp import Broker", "from fakeamqp import Broker\nwith Broker(): pass"],
    ids=["import", "Broker", "running"],
)
def test_nothing_heavy_and_nothing_optional_is_imported(program: str) -> None:
    program = f"import sys\nbefore = set(sys.modules)\n{program}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert "fakeamqp" in tops
    assert not tops & (HEAVY | OPTIONAL)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.name}")
def test_case(case: Case) -> None:
    run = case.make()
    run()
    run()


@pytest.mark.parametrize("dead_lettered", [False, True])
def test_everything_expires(dead_lettered: bool) -> None:
    assert expiry.measure(100, dead_lettered=dead_lettered).messages == 100  # It checks that all are gone.
    waiting, afterwards = expiry.octets_per_message(100, dead_lettered=dead_lettered)
    assert waiting > 0
    assert (afterwards > waiting) is dead_lettered


def test_cycles() -> None:
    fresh_broker_cycle()
    with Broker() as broker:
        client_cycle(broker.url)
        assert broker.queues == ()


def test_what_a_broker_delivers_is_what_the_load_client_counts_on() -> None:
    with Broker(history=0, trace=0) as broker:
        address = load.Address("here", broker.host, broker.port)
        for same_channel in (True, False):
            assert load.measure(address, 5000, same_channel=same_channel) > 0
            assert broker.wait_for(lambda state: not state.virtual_hosts["/"].queues)
        assert broker.failures == ()


@pytest.mark.skipif(rabbitmq_node.available() is not None, reason=str(rabbitmq_node.available()))
def test_rabbitmq_delivers_the_same_octets() -> None:
    with load.rabbitmq_serving() as address:
        assert load.measure(address, 5000) > 0


def test_the_load_of_a_broker_and_of_none_in_processes_of_their_own() -> None:
    with load.fakeamqp_serving() as fake, load.sink_serving() as sink:
        rates = load.take_turns([fake, sink], 1000, 2)
    assert {name: len(measured) for name, measured in rates.items()} == {"fakeamqp": 2, "bare loop": 2}


@pytest.mark.parametrize("name", trace.CONVERSATIONS)
def test_a_conversation_with_a_trace_and_without(name: str) -> None:
    pair = trace.converse(name, 2)
    assert len(pair.off) == len(pair.on) == 2


def test_what_a_trace_costs() -> None:
    table = list(trace.rows(1, 1000, 1))
    assert [row.count("|") for row in table] == [5] * (len(trace.CONVERSATIONS) + 1)
    assert trace.Pair([1.0, 2.0, 1.0], [2.0, 4.0, 2.0]).cost == 0.5


def test_import_seconds() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        import_seconds("import no_such_module", runs=1)
    assert isinstance(import_seconds("import fakeamqp", compiled=False, runs=1), float)
