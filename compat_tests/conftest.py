from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compat_tests.sharing import Scheduler

# The first adds the option --conformance and knows the marker `rule`, the second adds --record-faults.
pytest_plugins = ["compat_tests.conformance_plugin", "compat_tests.faults_plugin", "pytester"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler | None:
    """Where processes share the suite, one of them does all that needs Spark."""
    if config.getoption("dist") != "loadgroup":
        return None
    from compat_tests.sharing import Scheduler

    return Scheduler(config, log)
