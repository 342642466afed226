"""The command that measures brokers side by side. Nothing is timed here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat_tests.benchmarks import load
from compat_tests.benchmarks.side_by_side import __main__ as command, fixture_costs, page, plots, profile
from compat_tests.benchmarks.side_by_side.cases import CASES, Case
from compat_tests.benchmarks.side_by_side.client import measure
from compat_tests.benchmarks.side_by_side.targets import IN_LOOP, IN_THREAD, RABBITMQ, SERVE, TARGETS
from compat_tests.reliability import results
from fakeamqp import Broker

FEW = 8


@pytest.mark.parametrize(
    ("case", "target"),
    [(case, target) for case in CASES for target in (IN_THREAD, IN_LOOP, SERVE) if case.on(target)],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_side_by_side_case_measures_times_and_leaves_no_queue(case: Case, target: str) -> None:
    with Broker() as broker:  # In the place of `serve`.
        measured = measure(case, target, broker.url if target == SERVE else "", FEW)
        assert measured.time > 0
        assert measured.processor >= 0
        assert broker.queues == ()
        assert broker.admin.failures == ()
        assert len(broker.published) == (FEW if target == SERVE and "declare" not in case.name else 0)


def test_turns_rotate_start_target_in_each_round() -> None:
    assert list(command.turns(["a", "b", "c"], 2)) == [*"abc", *"bca", *"cab"]
    assert list(command.turns([], 2)) == []


def test_clients_in_own_processes_measure_each_round() -> None:
    [case] = [case for case in CASES if case.name == "pika: declare"]
    with load.fakeamqp_serving() as serve:
        found = command.clients(case, {IN_THREAD: None, IN_LOOP: None, SERVE: serve}, 2, 0.01)
        loads = command.loads({IN_THREAD: None, SERVE: serve}, 2, 0.01, same_channel=True)
    assert {target: {name: len(each) for name, each in kinds.items()} for target, kinds in found.items()} == {
        target: {"time": 2, "processor": 2, "switches": 2} for target in (IN_THREAD, SERVE)
    }
    assert {target: len(kinds["time"]) for target, kinds in loads.items()} == {SERVE: 2, "bare loop": 2}


def test_client_of_1_0_is_measured_on_brokers_that_speak_it() -> None:
    pytest.importorskip("proton")
    cases = [case for case in CASES if case.name.startswith("proton")]
    assert [target for target in TARGETS if cases[0].on(target)] == [
        IN_THREAD,
        SERVE,
        "RabbitMQ 4.0",
        "RabbitMQ 4.3",
    ]
    for case in cases:
        [kinds] = command.clients(case, {IN_THREAD: None}, 1, 0.1).values()
        assert len(kinds["time"]) == 1


def test_failed_client_process_raises_runtime_error(capfd: pytest.CaptureFixture[str]) -> None:
    [case] = [case for case in CASES if case.name == "pika: declare"]
    with pytest.raises(RuntimeError, match="'pika: declare' on 'serve' ended"):
        command.clients(case, {SERVE: load.Address("nothing", "127.0.0.1", 1)}, 1, 0.01)
    assert "AMQPConnectionError" in capfd.readouterr().err


def test_fixture_costs_are_positive_for_each_test() -> None:
    costs = fixture_costs.measure(1)
    assert tuple(costs) == fixture_costs.TESTS
    assert all(cost > 0 for cost in costs.values())


def test_fixture_costs_sum_setup_call_and_teardown() -> None:
    stopwatch = fixture_costs.Stopwatch()
    for name, phase, seconds in [
        ("test_1", "setup", 1.0),
        ("test_1", "call", 2.0),
        ("test_2", "setup", 8.0),
        ("test_1", "teardown", 4.0),
    ]:
        stopwatch.pytest_runtest_logreport(
            pytest.TestReport(
                f"test_costs.py::{name}", ("", 0, ""), {}, "passed", None, phase, duration=seconds
            )
        )
    assert stopwatch.seconds == {"test_1": 7.0, "test_2": 8.0}


def test_side_by_side_command_prints_table_and_left_out_targets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "obstacle", {"RabbitMQ 4.3": "it is not here"}.get)
    few = ["aio-pika: get", "--rounds", "1", "--fraction", "0.01", "--targets"]
    command.main([*few, IN_THREAD, IN_LOOP, "RabbitMQ 4.3"])
    printed = capsys.readouterr().out
    assert "Left out: RabbitMQ 4.3, because it is not here\naio-pika: get; in process " in printed
    assert "|  | in process | event loop |\n" in printed
    with pytest.raises(SystemExit):
        command.main(["no such case"])


# --- tables and pictures ---------------------------------------------------------------------------------


@pytest.fixture
def found() -> dict[str, Any]:
    """Results in which the first target takes 1 ms for all, the second 2 ms and so on."""
    names = [*(case.name for case in CASES), *command.OTHERS]
    times = {
        target: {"time": [number * 1000.0] * 3, "processor": [1.0] * 3, "switches": [0.5] * 3}
        for number, target in enumerate(TARGETS, 1)
    }
    versions = {"pika": "1", "aio-pika": "2", "RabbitMQ 4.3": "RabbitMQ 4.3.6"}
    return {"rounds": 3, "versions": versions, "missing": {}, "cases": dict.fromkeys(names, times)}


def test_ratios_compare_rates_or_times_with_other_targets(found: dict[str, Any]) -> None:
    ratios = {(each.case, each.target, each.others): each.of(found) for each in page.RATIOS}
    assert ratios["pika: publish then consume", IN_THREAD, tuple(RABBITMQ)] == 4  # A ratio of rates.
    assert ratios["pika: declare", IN_THREAD, tuple(RABBITMQ)] == 0.25  # A ratio of times.
    assert ratios["pika: publish then consume", IN_THREAD, (SERVE,)] == 3
    assert ratios["load: same channel number", SERVE, ("RabbitMQ 4.3",)] == 2
    cases = {name: {IN_THREAD: each[IN_THREAD]} for name, each in found["cases"].items()}
    assert {each.of({**found, "cases": cases}) for each in page.RATIOS} == {None}
    assert {each.case for each in page.RATIOS} <= set(found["cases"])


def test_figures_show_rate_or_time_with_deviation(found: dict[str, Any]) -> None:
    assert page.figure("pika: publish", {"time": [90.0, 100.0, 110.0]}) == "10,000 ±5%"
    assert page.figure("pika: get", {"time": [100.0]}) == "100 µs"
    assert page.figure("fixtures", {"time": [1234.0, 1234.0]}) == "1.2 ms ±0%"
    printed = page.text(found)
    assert "| pika: publish | 1,000 ±0% | 500 ±0% | 333 ±0% | 250 ±0% | 200 ±0% | 167 ±0% |\n" in printed
    assert "| in process | event loop | serve | RabbitMQ 3.10 | RabbitMQ 4.0 | RabbitMQ 4.3.6 |\n" in printed
    assert "\n| pika: publish | 1 µs, 0.50 |" in printed


def test_plots_are_drawn_with_cases_and_versions(found: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plots.draw(found, tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == set(plots.PLOTS)
    drawn = (tmp_path / "benchmarks-pika.svg").read_text("utf-8")
    assert "publish then consume, 4 threads" in drawn
    assert "RabbitMQ 4.3.6" in drawn


def test_results_file_keeps_numbers_of_list_in_one_line(found: dict[str, Any], tmp_path: Path) -> None:
    results.write("kept", "command", found, tmp_path)
    assert results.load("kept", tmp_path) == {**(results.load("kept", tmp_path) or {}), **found}
    assert '"time": [1000.0, 1000.0, 1000.0]' in results.path("kept", tmp_path).read_text("utf-8")
    assert json.loads(results.path("kept", tmp_path).read_text("utf-8"))["command"] == "command"


# --- profile ---------------------------------------------------------------------------------------------


def test_profile_shares_assign_samples_to_client_and_broker_parts() -> None:
    client = 'process 2:"python -m compat_tests.benchmarks.side_by_side.client get";thread (2): '
    inside = f"{client}MainThread;main (client.py:9);measure (client.py:8)"
    samples = [
        f"{inside};publish (pika_steps.py:1);send (pika/connection.py:7);write (codecs.py:2) 6",
        f"{client}fakeamqp;run (threading.py:1);turn (fakeamqp/runtime/turns.py:3) 1",
        f"{client}fakeamqp;turn (fakeamqp/runtime/turns.py:3);offer (fakeamqp/model/a.py:3);len (b.py:1) 2",
        'process 3:"python -m fakeamqp serve";thread (3): fakeamqp;read (fakeamqp/protocols/a.py:1) 1',
        f"{client}MainThread;<module> (client.py:9);find (<frozen importlib._bootstrap>:7) 50",
    ]
    found = {"client": 60, "broker: transport": 10, "broker: model": 20, "broker: protocol": 10}
    assert profile.shares(samples) == {**dict.fromkeys(profile.PARTS, 0), **found}
    assert profile.shares([]) == dict.fromkeys(profile.PARTS, 0)
