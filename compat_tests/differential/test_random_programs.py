"""Random programs on RabbitMQ and on the broker bring about the same, or the difference is a listed one."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from compat_tests.differential.comparison import SERIES, Series, SideBySide
from compat_tests.differential.differences import KINDS
from compat_tests.differential.programs import (
    DIFFERENCES,
    Comparison,
    Difference,
    ProgramsSideBySide,
    drawn,
)
from compat_tests.fuzz.profile import FACTOR
from compat_tests.programs.races import survey
from compat_tests.programs.seeds import USUAL_SEED, seed_of

if TYPE_CHECKING:
    from compat_tests.differential.conftest import Nodes

pytestmark = pytest.mark.timeout(1800 * max(1, FACTOR))
"""All programs are played in the set-up of the first test."""

USUAL, FRESH = 80, 25
"""Programs for each series: the same at every run, and new ones that `make fuzz` draws, times its factor."""
MOST_UNDECIDED = 0.1
"""The part of the programs that may take too long before the test is no test."""


@pytest.fixture(scope="module")
def comparisons(request: pytest.FixtureRequest, nodes: Nodes) -> Mapping[str, Comparison | str]:
    """What came of the programs by series, or why there is no node; all series at once."""
    chosen_seed = seed_of(request.config)
    chosen = drawn(USUAL_SEED, USUAL)
    # New programs find differences that were always there, so that only `make fuzz` looks for them.
    if chosen_seed != USUAL_SEED and FACTOR > 1:
        chosen += drawn(chosen_seed, int(FRESH * FACTOR))
    wanted = [
        item.callspec.params["series"].name
        for item in request.session.items
        if getattr(item, "originalname", "")
        == test_random_programs_have_same_effects_on_broker_and_rabbitmq.__name__
    ]

    def compare(series: str) -> Comparison | str:
        both = nodes.start(series).result()
        return both if isinstance(both, str) else ProgramsSideBySide(series, both).compare_all(chosen)

    with ThreadPoolExecutor(len(SERIES)) as pool:
        return dict(zip(wanted, pool.map(compare, wanted), strict=True))


@pytest.mark.parametrize("series", SERIES.values(), ids=str)
def test_random_programs_have_same_effects_on_broker_and_rabbitmq(
    series: Series,
    beside: SideBySide,
    comparisons: Mapping[str, Comparison | str],
    request: pytest.FixtureRequest,
) -> None:
    found = comparisons[series.name]
    assert isinstance(found, Comparison)
    if found.parted:
        brokers = ProgramsSideBySide(series.name, beside)
        program, difference = min(found.parted, key=lambda each: len(each[0]))
        shrunk = brokers.compare_all([brokers.shrunk(program)]).parted
        pytest.fail(
            f"{len(found.parted)} of {found.count} programs part "
            f"(--hypothesis-seed={seed_of(request.config)}); "
            f"after {shrunk[0][1] if shrunk else difference}",
            pytrace=False,
        )
    if found.too_slow > found.count * MOST_UNDECIDED:
        pytest.skip(f"this machine is too busy: {found.too_slow} of {found.count} programs say nothing")


@pytest.mark.parametrize(
    ("series", "entry"),
    [
        pytest.param(SERIES[name], entry, id=f"{name}-{entry.reason[:40]}")
        for entry in DIFFERENCES
        for name in entry.versions
    ],
)
def test_each_known_difference_of_programs_still_differs(
    entry: Difference, series: Series, beside: SideBySide
) -> None:
    brokers = ProgramsSideBySide(series.name, beside)
    program = entry.steps
    assert not survey(program).robust, "random programs do this"
    assert brokers.difference(program), "no longer differs; take it off the list"


def test_each_known_difference_of_programs_has_kind_reason_and_versions() -> None:
    assert {entry.kind for entry in DIFFERENCES} <= set(KINDS)
    assert all(entry.reason and entry.versions for entry in DIFFERENCES)
