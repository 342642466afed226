"""Apache's Python client for AMQP 0-10, unmodified: its suite for brokers, and its tests of itself."""

from __future__ import annotations

import pytest

from compat_tests.clients.qpid import suite
from compat_tests.clients.qpid.python27 import Python27


@pytest.fixture(scope="module")
def outcomes(python27: Python27) -> dict[str, suite.Outcome]:
    """How each test went that is run, by its name."""
    return suite.run_all(python27)


def test_the_list_is_complete(python27: Python27) -> None:
    assert len(suite.TESTS) == 233
    assert sorted(suite.listed(python27)) == sorted(test.name for test in suite.TESTS)


@pytest.mark.parametrize("test", [pytest.param(test, id=test.id) for test in suite.TESTS])
def test_suite(test: suite.Test, request: pytest.FixtureRequest) -> None:
    if test.reason:
        pytest.skip(test.reason)
    outcome = request.getfixturevalue("outcomes")[test.name]
    # Its runner takes a broker that refuses the protocol for a reason to skip.
    assert outcome.status == "pass", f"{test.checks}\n{outcome.report}"


@pytest.mark.parametrize("tested", suite.FURTHER_TESTS)
def test_qpid_pythons_own_tests_all_pass(tested: str, outcomes: dict[str, suite.Outcome]) -> None:
    found = {name: outcome for name, outcome in outcomes.items() if name.startswith(f"{tested}.")}
    assert {name: outcome for name, outcome in found.items() if outcome.status != "pass"} == {}
    assert len(found) == suite.FURTHER_TESTS[tested]
