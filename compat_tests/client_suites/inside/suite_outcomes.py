"""Pytest plugin: writes how each test of a suite went to the file that FAKEAMQP_SUITE_OUTCOMES names."""

import json
import os

OUTCOMES = {}
SECONDS = {}


def pytest_runtest_logreport(report):
    """Keep the worst of setup, call and teardown; of tests that are run again, the last run."""
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0) + report.duration
    if report.when == "setup":
        OUTCOMES[report.nodeid] = ("passed", "")
    if report.outcome == "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        why = crash.message if crash is not None else str(report.longrepr)
        OUTCOMES[report.nodeid] = ("failed", why[:2000])
    elif report.outcome == "skipped":
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
        OUTCOMES[report.nodeid] = ("skipped", why)


def pytest_sessionfinish(session):
    """Write the file."""
    found = {test: [*outcome, round(SECONDS[test], 3)] for test, outcome in OUTCOMES.items()}
    with open(os.environ["FAKEAMQP_SUITE_OUTCOMES"], "w", encoding="utf-8") as file:
        json.dump(found, file)
