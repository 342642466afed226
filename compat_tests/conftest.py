from __future__ import annotations

# The first adds the option --conformance and knows the marker `rule`.
pytest_plugins = ["compat_tests.conformance_plugin", "pytester"]
