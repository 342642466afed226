from __future__ import annotations

# The first adds the option --conformance and knows the marker `rule`, the second adds --record-faults.
pytest_plugins = ["compat_tests.conformance_plugin", "compat_tests.faults_plugin", "pytester"]
