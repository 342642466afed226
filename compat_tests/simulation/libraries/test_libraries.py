"""The findings in real libraries repeat, and few schedules find nothing else."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.simulation.libraries import catalogue, page
from compat_tests.simulation.libraries.running import run
from compat_tests.simulation.libraries.workload import Workload
from fakeamqp import simulation

SCHEDULES = 25

WORKLOADS = {workload.name: workload for workload in catalogue.workloads()}
RESULTS = page.load()
FAILURES = [(name, kind) for name, found in RESULTS.items() for kind in found["failures"]]


def measured(name: str) -> Workload:
    """A workload whose libraries have the versions with which it was measured."""
    if name not in WORKLOADS:
        pytest.skip("its libraries are not installed")
    outcome = run(WORKLOADS[name], [])
    if outcome.versions != RESULTS[name]["versions"]:
        pytest.skip(f"measured with {RESULTS[name]['versions']}, not with {outcome.versions}")
    return outcome.workload


@pytest.mark.each_case
@pytest.mark.parametrize("name", RESULTS)
def test_few_schedules_of_each_library_find_only_known_failures(name):
    workload = measured(name)
    outcome = run(workload, range(SCHEDULES), shrink=False)
    assert outcome.unknown == {}


@pytest.mark.each_case
@pytest.mark.parametrize(("name", "kind"), FAILURES)
def test_a_finding_repeats(name, kind):
    workload = measured(name)
    found = RESULTS[name]["failures"][kind]
    outcome = run(workload, found["seeds"][:2], shrink=False)
    assert outcome.seeds == {kind: found["seeds"][:2]}


def test_every_failure_is_explained():
    for found in RESULTS.values():
        for kind, failure in found["failures"].items():
            assert failure["finding"] in catalogue.FINDINGS, kind


def test_the_page_has_the_results():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_tables(text) == text
    for finding in catalogue.FINDINGS:
        assert f"\n### {finding}\n" in text, finding


@pytest.mark.each_case
@pytest.mark.parametrize(
    "name",
    [
        "robust channels, network",
        "RPC, connections",
        "FastStream request, connections",
        "taskiq worker, network",
    ],
)
def test_a_seed_gives_the_same_run_of_a_library_in_every_process(name):
    if name not in WORKLOADS:
        pytest.skip("its libraries are not installed")
    root = Path(__file__).parents[3]
    outputs = set()
    for hash_seed in ("0", "4711"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, name],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert outputs.pop().count("\n") == 4


def digests(name: str) -> None:
    """Print what came over the wire under some seeds."""
    from fakeamqp import Broker

    brokers: list[Broker] = []
    original = Broker.__init__

    def remember(self: Broker, *arguments: object, **settings: object) -> None:
        original(self, *arguments, **settings)  # type: ignore[arg-type]
        brokers.append(self)

    Broker.__init__ = remember  # type: ignore[method-assign, assignment]
    for seed in range(1, 5):
        # Some libraries write the time of day into their messages.
        simulation.explore(WORKLOADS[name].run, [seed], shrink_runs=0, patch_time=True)
        octets = (
            (event.time, str(event), getattr(event, "payload", b"")) for event in brokers[-1].trace.events
        )
        text = "\n".join(map(repr, octets))
        print(seed, len(text), hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    digests(sys.argv[1])
