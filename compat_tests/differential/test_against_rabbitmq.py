"""Every case on RabbitMQ and on the broker: the outcomes are equal, or the difference is a listed one."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from compat_tests.differential.comparison import SERIES, Outcome, Series, all_cases, fits
from compat_tests.differential.differences import FOLDER, KINDS, UNEXPLAINED, Difference, Lists, problem
from compat_tests.differential.script import Case

if TYPE_CHECKING:
    from compat_tests.differential.conftest import Nodes

pytestmark = pytest.mark.timeout(1800)
"""All cases are played in the set-up of the first test."""

CASES = all_cases()


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, nodes: Nodes) -> Mapping[str, Mapping[str, Outcome] | str]:
    """What came of the cases that were selected, or why there is no node; all of them are run at once."""
    chosen: dict[str, list[Case]] = {}
    for item in request.session.items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if isinstance(parameters.get("case"), Case):
            chosen.setdefault(parameters["series"].name, []).append(parameters["case"])

    def compare(series: str) -> dict[str, Outcome] | str:
        both = nodes.start(series).result()
        if isinstance(both, str):
            return both
        return both.compare_all(chosen[series], lambda case, outcome: problem(series, case.id, outcome))

    with ThreadPoolExecutor(len(SERIES)) as pool:
        return dict(zip(chosen, pool.map(compare, chosen), strict=True))


@pytest.mark.parametrize("case", CASES.values(), ids=str)
@pytest.mark.parametrize("series", SERIES.values(), ids=str)
def test_case_has_same_outcome_on_rabbitmq_or_is_known_difference(
    series: Series, case: Case, outcomes: Mapping[str, Mapping[str, Outcome] | str]
) -> None:
    found = outcomes[series.name]
    if isinstance(found, str):
        pytest.skip(found)
    assert not (told := problem(series.name, case.id, found[case.id])), told


@pytest.mark.parametrize("entry", Lists.read().entries, ids=lambda entry: f"{entry.file}-{entry.cases[0]}")
def test_known_differences_name_existing_cases_once_per_series(entry: Difference) -> None:
    for pattern in entry.cases:
        named = [case_id for case_id in CASES if fits(pattern, case_id)]
        assert named, f"there is no case {pattern}"
        for series in entry.versions:
            covered = [Lists.read().entry(series, case_id) is entry for case_id in named]
            assert all(covered), f"{pattern} is covered by two entries of {series}"


def test_known_differences_have_kind_outcomes_and_reason() -> None:
    for entry in Lists.read().entries:
        assert entry.kind in KINDS, entry
        assert entry.kind != "3.13" or entry.versions == ("3.10",), entry
        assert entry.rabbitmq, entry
        assert entry.fakeamqp, entry
        assert entry.reason not in ("", UNEXPLAINED), f"{entry.cases[0]}: why does it differ?"


def test_known_difference_files_have_format_of_command() -> None:
    for name, text in Lists.read().texts().items():
        assert (FOLDER / f"{name}.toml").read_text(encoding="utf-8") == text
