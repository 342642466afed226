"""Every test is in a tier: what `make test` leaves out, `make test-all` runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat_tests.tools import tiers
from compat_tests.tools.tiers import (
    CORE_OF_SPARK,
    COSTLY,
    DRAWING,
    EXAMPLES,
    HERE,
    LONG,
    LONG_EXAMPLES,
    in_long,
)

ROOT = HERE.parent
SOURCE = """
    from hypothesis import given, strategies as st

    def test_plain():
        pass

    @given(st.booleans())
    def test_drawing(drawn):
        pass
"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of quick tests, one of long ones, of which one file is quick, and one that draws."""
    monkeypatch.setattr(tiers, "HERE", pytester.path)
    monkeypatch.setattr(tiers, "LONG", ("slow", "other/test_slow.py"))
    monkeypatch.setattr(tiers, "CORE_OF_SPARK", ("slow/test_core.py",))
    monkeypatch.setattr(tiers, "DRAWING", ("fuzz",))
    tiers.in_long.cache_clear()
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    for name in ("slow/test_a", "slow/test_core", "other/test_slow", "other/test_quick", "fuzz/test_fuzz"):
        path = pytester.path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        pytester.makepyfile(**{name: SOURCE})
    return pytester


def ran(tests: pytest.Pytester, *args: str) -> set[str]:
    recorder = tests.inline_run("-p", "compat_tests.tools.tiers", *args)
    return {each.nodeid for each in recorder.getreports("pytest_runtest_logreport") if each.when == "call"}


def both(file: str) -> set[str]:
    return {f"{file}.py::test_plain", f"{file}.py::test_drawing"}


def test_quick_tier_runs_quick_core_and_drawing_tests(tests: pytest.Pytester) -> None:
    quick = both("slow/test_core") | both("other/test_quick") | both("fuzz/test_fuzz")
    assert ran(tests, "--tier", "quick") == quick


def test_long_tier_runs_long_and_drawing_tests(tests: pytest.Pytester) -> None:
    drawing = {"slow/test_core.py::test_drawing", "other/test_quick.py::test_drawing"} | both(
        "fuzz/test_fuzz"
    )
    assert ran(tests, "--tier", "long") == both("slow/test_a") | both("other/test_slow") | drawing


def test_example_listed_as_long_runs_only_in_long_tier(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "EXAMPLES", tests.path / "fuzz")
    monkeypatch.setattr(tiers, "LONG_EXAMPLES", ("test_fuzz.py",))
    assert not both("fuzz/test_fuzz") & ran(tests, "--tier", "quick")
    tiers.in_long.cache_clear()
    assert both("fuzz/test_fuzz") <= ran(tests, "--tier", "long")


def test_single_test_marked_long_runs_only_in_long_tier(tests: pytest.Pytester) -> None:
    marked = "import pytest\n@pytest.mark.long\ndef test_it():\n    pass\n"
    (tests.path / "fuzz" / "test_fuzz.py").write_text(marked)
    assert "fuzz/test_fuzz.py::test_it" not in ran(tests, "--tier", "quick")
    assert "fuzz/test_fuzz.py::test_it" in ran(tests, "--tier", "long")


def test_all_tests_run_without_tier_option(tests: pytest.Pytester) -> None:
    assert len(ran(tests)) == 10


def test_quick_tier_does_not_import_long_test_files(tests: pytest.Pytester) -> None:
    (tests.path / "slow" / "test_a.py").write_text("raise RuntimeError")
    assert len(ran(tests, "--tier", "quick")) == 6


def test_one_in_option_draws_sample_of_long_tests_by_seed(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "COSTLY", re.compile("costly/"))
    cases = "import pytest\n@pytest.mark.parametrize('n', range(150))\ndef test_it(n):\n    pass\n"
    for folder in ("costly", "slow"):
        (tests.path / folder).mkdir(exist_ok=True)
        (tests.path / folder / f"test_{folder}.py").write_text(cases)
    monkeypatch.setattr(tiers, "LONG", ("slow", "costly"))
    chosen = ("slow/test_slow.py", "costly/test_costly.py", "--tier", "long")
    everything = ran(tests, *chosen)
    drawn = ran(tests, *chosen, "--one-in", "3", "--hypothesis-seed=1")
    others = ran(tests, *chosen, "--one-in", "3", "--hypothesis-seed=2")
    assert len(everything) == 300
    for folder, least, most in (("slow/", 40, 60), ("costly/", 5, 15)):
        assert least <= len([test for test in drawn if test.startswith(folder)]) <= most
    assert drawn != others
    assert drawn == ran(tests, *chosen, "--one-in", "3", "--hypothesis-seed=1")


def test_one_in_option_draws_sample_of_quick_tests(tests: pytest.Pytester) -> None:
    cases = "import pytest\n@pytest.mark.parametrize('n', range(150))\ndef test_it(n):\n    pass\n"
    (tests.path / "other" / "test_many.py").write_text(cases)
    drawn = ran(tests, "other", "--tier", "quick", "--one-in", "3", "--hypothesis-seed=1")
    assert 40 <= len(drawn) <= 60


def test_one_in_option_without_seed_is_refused(tests: pytest.Pytester) -> None:
    """Processes that share the tests would draw different ones."""
    done = tests.runpytest("-p", "compat_tests.tools.tiers", "--tier", "long", "--one-in", "3")
    done.stderr.fnmatch_lines(["*--one-in draws tests with a seed: --hypothesis-seed=NUMBER is missing*"])


def test_costly_tests_exist_and_are_long() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in HERE.rglob("test_*.py")]
    costly = [file for file in files if COSTLY.match(f"{file}::test[3.10-")]
    assert len(costly) > 10
    # Of each of these one test is marked.
    quick = {f"compat_tests/{file}.py" for file in ("reliability/test_soak", "unit/test_deleted_protocols")}
    drawing = tuple(f"compat_tests/{part}/" for part in DRAWING)
    assert [
        file
        for file in costly
        if not in_long(ROOT / file) and file not in quick and not file.startswith(drawing)
    ] == []


def test_files_named_in_tier_lists_exist() -> None:
    for part in (*LONG, *CORE_OF_SPARK, *DRAWING):
        assert (HERE / part).exists(), part
    for part in LONG_EXAMPLES:
        assert list((EXAMPLES / part).glob("test_*.py")), part
    assert all(_is_in(part, LONG) for part in CORE_OF_SPARK)
    assert not any(_is_in(part, LONG) for part in DRAWING)


def _is_in(part: str, parts: tuple[str, ...]) -> bool:
    return any(Path(part).is_relative_to(other) for other in parts)


def test_tests_that_start_rabbitmq_are_long() -> None:
    """A RabbitMQ takes ten seconds to start, and most machines have none."""
    users = [
        path
        for path in sorted(HERE.rglob("test_*.py"))
        if re.search(r"\bRabbitMQNode\(", path.read_text(encoding="utf-8"))
    ]
    assert users
    assert [path.relative_to(HERE).as_posix() for path in users if not in_long(path)] == []


def test_make_test_and_make_test_all_run_one_tier_each() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--tier quick" in makefile and "--tier long" in makefile
    assert re.search(r"^test-all: test ", makefile, re.MULTILINE)
