"""The benchmarks still measure what they say. Nothing is timed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.benchmarks import expiry, load, tap, trace
from compat_tests.benchmarks.cases import Case
from compat_tests.benchmarks.cases_1_0 import CASES
from compat_tests.benchmarks.first_connection import first_connection_seconds
from compat_tests.benchmarks.imports import import_seconds
from compat_tests.benchmarks.journeys import main as show_journeys
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
def test_import_and_start_of_broker_load_no_heavy_or_optional_module(program: str) -> None:
    program = f"import sys\nbefore = set(sys.modules)\n{program}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert "fakeamqp" in tops
    assert not tops & (HEAVY | OPTIONAL)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.name}")
def test_benchmark_case_runs_twice(case: Case) -> None:
    run = case.make()
    run()
    run()


@pytest.mark.parametrize("dead_lettered", [False, True])
def test_expiry_benchmark_measures_expired_or_dead_lettered_messages(dead_lettered: bool) -> None:
    assert expiry.measure(100, dead_lettered=dead_lettered).messages == 100  # It checks that all are gone.
    waiting, afterwards = expiry.bytes_per_message(100, dead_lettered=dead_lettered)
    assert waiting > 0
    assert (afterwards > waiting) is dead_lettered


def test_load_client_measures_broker_and_leaves_no_queue() -> None:
    with Broker(history=0, trace=0) as broker:
        address = load.Address("here", broker.host, broker.port)
        for same_channel in (True, False):
            assert load.measure(address, 5000, same_channel=same_channel) > 0
            broker._reader.wait_for(lambda state: not state.virtual_hosts["/"].queues)
        assert broker.admin.failures == ()


@pytest.mark.skipif(rabbitmq_node.available() is not None, reason=str(rabbitmq_node.available()))
def test_load_client_measures_rabbitmq() -> None:
    with load.rabbitmq_serving() as address:
        assert load.measure(address, 5000) > 0


def test_load_of_broker_and_bare_loop_has_rate_for_each_round() -> None:
    with load.fakeamqp_serving() as fake, load.sink_serving() as sink:
        rates = load.take_turns([fake, sink], 1000, 2)
    assert {name: len(measured) for name, measured in rates.items()} == {"fakeamqp": 2, "bare loop": 2}


@pytest.mark.parametrize("name", trace.CONVERSATIONS)
def test_conversation_is_measured_with_and_without_trace(name: str) -> None:
    pair = trace.converse(name, 2)
    assert len(pair.off) == len(pair.on) == 2


def test_trace_cost_table_has_row_per_conversation() -> None:
    table = list(trace.rows(1, 1000, 1))
    assert [row.count("|") for row in table] == [5] * (len(trace.CONVERSATIONS) + 1)
    assert trace.Pair([1.0, 2.0, 1.0], [2.0, 4.0, 2.0]).cost == 0.5


def test_tap_cost_table_has_row_per_conversation() -> None:
    table = list(tap.rows(1, 1))
    assert [row.count("|") for row in table] == [tap.HEAD.splitlines()[0].count("|")] * len(
        trace.CONVERSATIONS
    )


def test_package_copy_without_tap_differs_only_in_hot_modules(tmp_path: Path) -> None:
    here, gone = tap.copies(tmp_path)
    changed = {
        str(path.relative_to(gone / "fakeamqp"))
        for path in gone.rglob("*.py")
        if path.read_bytes() != (here / path.relative_to(gone)).read_bytes()
    }
    assert changed == set(tap.HOT)


def test_strip_removes_all_tap_code_of_named_function() -> None:
    source = """
def hot(self, bytes):
    tap = self.state.tap
    if tap is not None and tap.received(bytes):
        return None
    for each in octets:
        if tap is not None:
            tap.sending(each)
    if self.singly or (tap is not None and tap.singly):
        return self.go_on(bytes, self.state.tap)
    return bytes

def cold(tap):
    return tap is not None
"""
    left = """def hot(self, bytes):
    for each in octets:
        pass
    if self.singly:
        return self.go_on(bytes, None)
    return bytes

def cold(tap):
    return tap is not None"""
    assert tap.strip(source, {"hot": 4}) == left


@pytest.mark.parametrize(
    "places", [{"hot": 2}, {"hot": 0}, {"hot": 1, "gone": 1}], ids=["fewer", "more", "no function"]
)
def test_strip_with_wrong_count_of_tap_tests_raises_lookup_error(places: dict[str, int]) -> None:
    source = "def hot(tap):\n    if tap is not None:\n        tap.model('event')\n"
    with pytest.raises(LookupError, match="the tap is looked for in"):
        tap.strip(source, places)


def test_strip_that_would_leave_tap_call_raises_lookup_error() -> None:
    source = "def hot(tap):\n    if tap is not None:\n        pass\n    tap.model('event')\n"
    with pytest.raises(LookupError, match="hot still has to do with the tap"):
        tap.strip(source, {"hot": 1})


def test_import_seconds_has_figure_for_each_run_and_raises_on_failed_import() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        import_seconds("import no_such_module", runs=1)
    assert len(import_seconds("import fakeamqp", compiled=False, runs=2)) == 2


def test_first_connection_seconds_has_a_figure_for_each_run() -> None:
    (seconds,) = first_connection_seconds(runs=1)
    assert seconds > 0


def test_journeys_are_a_table_of_files_functions_and_moves(capsys: pytest.CaptureFixture[str]) -> None:
    show_journeys([])
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [
        "publish to deliver, no tap",
        "publish to deliver, default trace",
        "reject to dead letter",
        "nack() fault firing",
        "0-10 transfer",
    ]


@pytest.mark.parametrize("requeues", [False, True])
def test_counting_client_acks_or_requeues_all_messages(requeues: bool, tmp_path: Path) -> None:
    pytest.importorskip("pika")
    from compat_tests.benchmarks.spark_routes import Bench, counting_client

    with Broker() as broker:
        bench = Bench(None, broker.url, tmp_path)  # type: ignore[arg-type]  # It needs no Spark.
        counting_client(requeues=requeues)(bench, 2000)()
        (queue,) = broker.queues
        assert queue.ready == (2000 if requeues else 0)
        assert all(message.redelivered for message in queue.messages)
        bench.close()


def test_spark_report_with_only_option_replaces_only_that_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark")
    from compat_tests.benchmarks import spark_report

    before = spark_report.OUTPUT.read_text("utf-8")
    page = tmp_path / "page.md"
    page.write_text(before, "utf-8")
    monkeypatch.setattr("sys.argv", ["spark_report", "--only", "suite", "--output", str(page)])
    monkeypatch.setattr(
        spark_report, "suite", lambda runs: iter(["\n## A suite of tests\n", f"runs: {runs}\n"])
    )
    spark_report.main()
    kept, _, after = before.partition("\n## A suite of tests\n")
    assert page.read_text("utf-8") == "".join(
        [kept, "\n## A suite of tests\nruns: 3\n", *after.partition("\n## Traces")[1:]]
    )
