from __future__ import annotations

from importlib.util import find_spec

pytest_plugins = ["pytester"]

# Adds the option --conformance and writes the report from the marks @rule(...).
if find_spec("compat_tests.conformance_plugin") is not None:
    pytest_plugins.append("compat_tests.conformance_plugin")
