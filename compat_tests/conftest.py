from __future__ import annotations

import pytest

# The first adds the option --conformance and knows the marker `rule`, the second adds --record-faults.
pytest_plugins = ["compat_tests.conformance_plugin", "compat_tests.faults_plugin", "pytester"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the suite, the tests of a file, or those of one client in it, stay together.

    All that need a Spark session share one. A group that a test has already is its only one: xdist would make
    one of both.
    """
    if config.getoption("dist", "no") == "loadgroup":
        for item in items:
            if item.get_closest_marker("xdist_group") is not None:
                continue
            if "spark_amqp" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("spark"))
                continue
            parameters = getattr(getattr(item, "callspec", None), "params", {})
            client = parameters.get("client", "")
            name = client if isinstance(client, str) else ""
            item.add_marker(pytest.mark.xdist_group(f"{item.nodeid.split('::')[0]} {name}".strip()))
