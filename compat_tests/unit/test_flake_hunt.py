"""A hunt for tests that fail now and then finds one, and tells which."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat_tests.reliability import flake_hunt, page, results

JUNIT = """<testsuites><testsuite>
<testcase classname="a" name="good"/>
<testcase classname="a" name="left"><skipped/></testcase>
<testcase classname="a" name="bad"><failure/></testcase>
<testcase classname="a" name="worse"><error/></testcase>
</testsuite></testsuites>"""


def test_junit_report_is_read_as_counts_and_failed_names(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(JUNIT)
    found = flake_hunt.read(tmp_path / "report.xml")
    assert found == {"passed": 1, "skipped": 1, "failed": ["a.bad", "a.worse"]}


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds whose runs fail, and no run of a real suite."""
    bad: list[int] = []

    def run(seed: int, processes: int, tests: object) -> dict[str, object]:
        failed = ["t"] if seed in bad else []
        return {"seed": seed, "commit": "c", "seconds": 1, "passed": 2, "skipped": 0, "failed": failed}

    monkeypatch.setattr(flake_hunt, "run", run)
    return bad


def test_half_of_the_seeds_are_fixed_and_runs_are_recorded(
    outcomes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "HERE", tmp_path)
    monkeypatch.setattr(page, "PAGE", Path(shutil.copy(page.PAGE, tmp_path)))
    assert flake_hunt.main(["--runs", "6", "--hogs", "0", "--record"]) == 0
    assert flake_hunt.main(["--seed", "8", "--hogs", "0", "--add"]) == 0
    kept = results.load(flake_hunt.NAME)
    assert kept is not None
    seeds = [each["seed"] for each in kept["runs"]]
    assert seeds[:3] == [1, 2, 3] and seeds[6:] == [8] and len(set(seeds)) == 7
    assert kept["command"] == "make flake-hunt"
    assert "| 7 | 2 | 0 | none | 1 |" in page.PAGE.read_text()


def test_left_returns_seeds_of_runs_still_missing() -> None:
    seeds = flake_hunt.left(6, [1, 3, 2_000_000])
    assert seeds[0] == 2 and len(seeds) == 3 and min(seeds[1:]) >= 6
    assert flake_hunt.left(6, [1, 2, 3, 4, 5, 6]) == []


def test_failed_run_is_printed_and_makes_hunt_fail(
    outcomes: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes.append(2)
    assert flake_hunt.main(["--seed", "1", "--seed", "2", "--hogs", "1"]) == 1
    told = capsys.readouterr().out
    assert "run 2 of 2: seed 2: 2 passed, 0 skipped, 1 failed, 1 s\n    t\n" in told
