"""All parameters of a function are one test: what runs, what fails, and what the report says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.tools import folding
from compat_tests.tools.conformance import catalogue_of
from compat_tests.tools.folding import CASE, RULE

SOME_FAIL = """
    import pytest

    @pytest.mark.parametrize("number", range(5))
    def test_even(number):
        print("ran", number)
        assert number % 2 == 0
"""


@pytest.fixture(autouse=True)
def here(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "FOLDED", (pytester.path,))
    pytester.makeini("[pytest]\nmarkers = rule(id)\nasyncio_default_fixture_loop_scope = function")


def run(pytester: pytest.Pytester, source: str, *args: str) -> pytest.RunResult:
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess("-p", "compat_tests.tools.folding", "-p", "no:cacheprovider", *args)


def test_all_cases_of_function_run_as_one_test(pytester: pytest.Pytester) -> None:
    result = run(pytester, SOME_FAIL.replace("range(5)", "[0, 2, 4]"), "-v", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*::test_even ran 0", "ran 2", "ran 4"])


def test_every_failed_case_is_listed(pytester: pytest.Pytester) -> None:
    result = run(pytester, SOME_FAIL)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "--- case [[]1] ---",
            "*assert number % 2 == 0*",
            "--- case [[]3] ---",
            "2 of 5 cases failed:",
            "[[]1] AssertionError: *",
            "[[]3] AssertionError: *",
            "To run one of them: pytest '*::test_even[[]1]'",
        ]
    )
    result.stdout.no_fnmatch_line("--- case [[]2] ---")


def test_failed_cases_after_first_tracebacks_are_single_lines(pytester: pytest.Pytester) -> None:
    result = run(pytester, SOME_FAIL.replace("range(5)", "range(1, 100, 2)"), "-rN")
    result.stdout.fnmatch_lines(["50 of 50 cases failed:", "[[]99] AssertionError: *"])
    assert str(result.stdout).count("--- case") == folding.SHOWN


def test_each_case_option_runs_each_case_as_test(pytester: pytest.Pytester) -> None:
    run(pytester, SOME_FAIL, "--each-case").assert_outcomes(passed=3, failed=2)


def test_function_marked_each_case_is_not_folded(pytester: pytest.Pytester) -> None:
    marked = SOME_FAIL.replace("def test", "@pytest.mark.each_case\n    def test")
    run(pytester, marked).assert_outcomes(passed=3, failed=2)


def test_function_in_other_folder_is_not_folded(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(folding, "FOLDED", (tmp_path / "elsewhere",))
    run(pytester, SOME_FAIL).assert_outcomes(passed=3, failed=2)


def test_single_case_can_be_run_by_its_id(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SOME_FAIL)
    result = pytester.runpytest_inprocess(
        "-p", "compat_tests.tools.folding", "-s", "test_it.py::test_even[2]"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*ran 2*"])
    result.stdout.no_fnmatch_line("*ran 4*")


def test_cases_can_be_selected_by_keyword(pytester: pytest.Pytester) -> None:
    run(pytester, SOME_FAIL, "-k", "2 or 4").assert_outcomes(passed=2, deselected=3)


FIXTURES = """
    import pytest

    log = []

    @pytest.fixture(params=["x", "y"])
    def fresh(request):
        log.append(f"make {request.param}")
        yield [request.param]
        log.append(f"end {request.param}")

    class TestIt:
        seen = None

        @pytest.mark.parametrize("number", [1, 2])
        def test_it(self, fresh, number):
            assert self.seen is None
            self.seen = number
            fresh.append(number)
            assert len(fresh) == 2

    def test_log():
        assert log == ["make x", "end x", "make y", "end y"] * 2 or log == (
            ["make x", "end x"] * 2 + ["make y", "end y"] * 2
        )
"""


def test_each_case_has_its_own_fixtures_and_instance(pytester: pytest.Pytester) -> None:
    run(pytester, FIXTURES).assert_outcomes(passed=2)


@pytest.mark.parametrize("place", ["1 / 0; yield", "yield; 1 / 0"])
def test_failing_fixture_fails_only_its_case(pytester: pytest.Pytester, place: str) -> None:
    source = f"""
        import pytest

        @pytest.fixture
        def broken(number):
            if number == 2:
                {place}
            else:
                yield

        @pytest.mark.parametrize("number", [1, 2, 3])
        def test_it(number, broken):
            pass
    """
    if place.startswith("yield"):
        source = source.replace("yield; 1 / 0", "yield\n                1 / 0")
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 of 3 cases failed:", "[[]2] ZeroDivisionError: division by zero"])


def test_skipped_case_is_reported_with_reason(pytester: pytest.Pytester) -> None:
    skips = SOME_FAIL.replace("assert number % 2 == 0", "number or pytest.skip('no tool')")
    result = run(pytester, skips, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * 1 of 5 cases: no tool"])


def test_folded_test_with_failed_and_skipped_cases_fails(pytester: pytest.Pytester) -> None:
    run(pytester, SOME_FAIL.replace("print", "number or pytest.skip('no tool'); print")).assert_outcomes(
        failed=1
    )


@pytest.mark.parametrize("mark", ["skip('no tool')", "skipif(True, reason='no tool')"])
def test_function_marked_skip_is_skipped_as_one_test(pytester: pytest.Pytester, mark: str) -> None:
    marked = SOME_FAIL.replace("def test", f"@pytest.mark.{mark}\n    def test")
    result = run(pytester, marked, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * no tool"])


def test_case_with_xfail_mark_requires_each_case_mark_of_function(pytester: pytest.Pytester) -> None:
    source = SOME_FAIL.replace("range(5)", "[0, pytest.param(1, marks=pytest.mark.xfail), 2]")
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_even[[]1] wants the function to be marked with each_case*"])


def test_folded_test_has_marks_of_function_but_not_of_single_cases(
    pytester: pytest.Pytester,
) -> None:
    source = SOME_FAIL.replace("range(5)", "[0, pytest.param(2, marks=pytest.mark.rule('b')), 4]")
    pytester.makepyfile(source.replace("def test", "@pytest.mark.rule('a')\n    def test"))
    recorder = pytester.inline_run("-p", "compat_tests.tools.folding", "--collect-only")
    [item] = recorder.getcall("pytest_collection_finish").session.items
    assert [mark.args for mark in item.iter_markers("rule")] == [("a",)]


FIXTURES_OF_PYTEST = """
    import logging

    import pytest

    @pytest.mark.parametrize("number", range(3))
    def test_it(number, caplog, tmp_path, capsys):
        logging.warning("number %d", number)
        assert caplog.messages == [f"number {number}"]
        (tmp_path / "file").touch(exist_ok=False)
        print(number)
        assert capsys.readouterr().out == f"{number}\\n"
"""


def test_fixtures_of_pytest_are_made_for_each_case(pytester: pytest.Pytester) -> None:
    run(pytester, FIXTURES_OF_PYTEST).assert_outcomes(passed=1)


def test_asynchronous_function_is_folded(pytester: pytest.Pytester) -> None:
    source = SOME_FAIL.replace("def test", "@pytest.mark.asyncio\n    async def test")
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["2 of 5 cases failed:"])


def test_function_without_parameters_fails_with_usual_report(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it():\n    assert 1 == 2")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">   *assert 1 == 2", "E   *assert 1 == 2", "*.py:2: AssertionError"])
    result.stdout.no_fnmatch_line("*cases failed*")


def test_pytest_cases_hook_can_remove_cases(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_cases(items):\n    items[:] = items[::2]")
    run(pytester, SOME_FAIL).assert_outcomes(passed=1)


def test_hypothesis_function_is_not_folded(pytester: pytest.Pytester) -> None:
    source = """
        import pytest
        from hypothesis import given, strategies as st

        @pytest.mark.parametrize("number", [1, 2])
        @given(st.booleans())
        def test_it(number, drawn):
            pass
    """
    run(pytester, source).assert_outcomes(passed=2)


def test_report_has_outcome_and_rules_of_each_case(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_cases(items):
            for item in items:
                item.user_properties.append(("rule", f"rule {item.callspec.params['number']}"))
        """
    )
    pytester.makepyfile(SOME_FAIL)
    recorder = pytester.inline_run("-p", "compat_tests.tools.folding")
    [report] = [each for each in recorder.getreports("pytest_runtest_logreport") if each.when == "call"]
    assert RULE == "rule"
    assert report.user_properties[:2] == [
        (CASE, (outcome, [(RULE, f"rule {number}")])) for number, outcome in enumerate(("passed", "failed"))
    ]
    assert len(report.user_properties) == 5


def test_failed_case_fails_only_its_own_rules(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, broken = list(catalogue_of("0-9-1").rules)[:2]
    pytester.makepyfile(
        f"""
        import pytest
        from compat_tests.scripted.amqp_0_9_1 import Server

        rule = pytest.mark.rule

        @pytest.mark.parametrize(
            "number",
            [pytest.param(0, marks=rule({shown!r})), pytest.param(1, marks=rule({broken!r}))],
        )
        def test_it(number):
            Server("spec").client()
            assert number == 0
        """
    )
    plugins = ("-p", "compat_tests.tools.folding", "-p", "compat_tests.tools.conformance_plugin")
    pytester.runpytest_inprocess(*plugins, "--conformance", "report.md").assert_outcomes(failed=1)
    text = (pytester.path / "report-0-9-1.md").read_text(encoding="utf-8")
    failing = text.partition("## Failing")[2].partition("## Deviating")[0]
    assert broken in failing and shown not in failing
    assert f"| `{shown.split('/', 2)[2]}` | " in text and "| **spec only** |" in text
    pytester.makeconftest(
        "from pathlib import Path\nfrom compat_tests.tools import folding\n"
        "folding.FOLDED = (Path(__file__).parent,)"
    )
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    on_a_mute_broker = pytester.runpytest_subprocess(*plugins, "--conformance", "report.md", "--mute")
    on_a_mute_broker.assert_outcomes(failed=1)
