"""The output on docs/upgrading.md is that of the app on the page."""

from __future__ import annotations

import re

import pytest

from compat_tests.docs.pages import QUIET, ROOT, Page, pages
from compat_tests.plugin import conftest  # noqa: F401 - It imports what inner runs must not import anew.

PAGE = ROOT / "docs" / "upgrading.md"
OUTPUT = re.compile(
    r"^```text\n\$ pytest (?P<option>--amqp-compare=\S+)\n…\n(?P<section>.*?)^```$", re.M | re.S
)


@pytest.fixture
def page() -> Page:
    (found,) = [each for each in pages() if each.path == PAGE]
    return found


def stable(text: str) -> list[str]:
    """Lines without the time of the run, and without the number of runs, which each new choice may change."""
    return re.sub(r"Timestamp\(\d+\)|\d+ more runs", "…", text).splitlines()


def test_comparison_output_equals_upgrading_page(page: Page, pytester: pytest.Pytester) -> None:
    shown = OUTPUT.search(PAGE.read_text())
    assert shown is not None
    index = next(number for number, block in enumerate(page.blocks) if block.is_test_file)
    page.write_files(index, pytester.path)
    result = pytester.runpytest_inprocess(shown["option"], *QUIET)
    result.assert_outcomes(passed=1, failed=1)
    lines = result.outlines
    start = next(number for number, line in enumerate(lines) if "AMQP comparison" in line)
    end = next(number for number, line in enumerate(lines) if "short test summary" in line)
    said = "\n".join(lines[start:end])
    assert stable(said) == stable(shown["section"])


def test_fixed_app_of_upgrading_page_passes_on_both_versions(page: Page, pytester: pytest.Pytester) -> None:
    index = len(page.blocks) - 1
    page.write_files(index, pytester.path)
    result = pytester.runpytest_inprocess("-v", *QUIET)
    result.assert_outcomes(passed=2)
    for line in re.findall(r"^test_both_versions\.py::.*$", PAGE.read_text(), re.M):
        result.stdout.fnmatch_lines([line.replace("[", "[[]") + "*"])
