"""The suites of clients: the same tests pass and fail on RabbitMQ, on the broker and through a proxy."""

from __future__ import annotations

import pytest

from compat_tests.client_suites.differences import known, problems, problems_of_equals
from compat_tests.client_suites.running import (
    Comparison,
    measured,
    measured_in_loops,
    measured_through_proxy,
)
from compat_tests.client_suites.sources import Source, Unavailable, source
from compat_tests.client_suites.suites import SUITES, Suite
from compat_tests.client_suites.targets import VERSIONS
from compat_tests.differential.rabbitmq_node import available

pytestmark = pytest.mark.timeout(1800)
"""All suites run in the set-up of the first test."""

SHORT = [each for each in SUITES.values() if each.short]


@pytest.fixture(scope="module")
def unavailable() -> dict[str, str]:
    """Why suites and nodes cannot be had, by their names."""
    return {}


@pytest.fixture(scope="module")
def comparisons(
    request: pytest.FixtureRequest, unavailable: dict[str, str]
) -> dict[tuple[str, str], Comparison]:
    """How the suites went that were chosen and can be had, all at once: they wait more than they work."""
    chosen = [
        item.callspec.params
        for item in request.session.items
        if getattr(item, "originalname", "")
        == test_client_suite_has_same_results_on_rabbitmq_and_broker.__name__
    ]
    sources: dict[Suite, Source] = {}
    for suite in dict.fromkeys(each["suite"] for each in chosen):
        try:
            sources[suite] = source(suite)
        except Unavailable as reason:
            unavailable[suite.name] = str(reason)
    unavailable.update({version: reason for version in VERSIONS if (reason := available(version))})
    wanted = {each["version"] for each in chosen}
    versions = [version for version in VERSIONS if version in wanted and version not in unavailable]
    found = measured(sources, versions, whole=False) if sources else {}
    return {(each.suite.name, version): each for version, all_of in found.items() for each in all_of}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("suite", SHORT, ids=str)
def test_client_suite_has_same_results_on_rabbitmq_and_broker(
    suite: Suite,
    version: str,
    comparisons: dict[tuple[str, str], Comparison],
    unavailable: dict[str, str],
) -> None:
    for name in (suite.name, version):
        if name in unavailable:
            pytest.skip(unavailable[name])
    compared = comparisons[suite.name, version]
    assert problems(version, compared) == []
    _assert_that_most_pass(compared)


def _assert_that_most_pass(compared: Comparison) -> None:
    # A suite that fails everywhere compares nothing.
    passed = sum(each.status == "passed" for each in compared.outcomes[0].values())
    assert passed > 0.9 * len(compared.outcomes[0]) - sum(
        each.status == "skipped" for each in compared.outcomes[0].values()
    )


@pytest.mark.parametrize("suite", [each for each in SHORT if each.in_loops], ids=str)
def test_client_suite_has_same_results_in_event_loops(suite: Suite) -> None:
    try:
        found = source(suite)
    except Unavailable as reason:
        pytest.skip(str(reason))
    (compared,) = measured_in_loops({suite: found}, whole=False)
    assert problems_of_equals(compared) == []
    _assert_that_most_pass(compared)


@pytest.mark.parametrize("suite", SHORT, ids=str)
def test_client_suite_has_same_results_and_bytes_through_proxy(suite: Suite) -> None:
    try:
        found = source(suite)
    except Unavailable as reason:
        pytest.skip(str(reason))
    if reason := available(VERSIONS[-1]):
        pytest.skip(reason)
    ((compared, traffic),) = measured_through_proxy({suite: found}, whole=False)
    assert traffic.problems == ()
    assert problems_of_equals(compared) == []
    _assert_that_most_pass(compared)
    assert traffic.frames > traffic.connections > 0


def test_known_differences_name_existing_suites_and_versions_with_reason() -> None:
    assert {each.suite for each in known()} <= SUITES.keys()
    assert {version for each in known() for version in each.versions} <= set(VERSIONS)
    assert [each.tests for each in known() if not each.reason] == []
