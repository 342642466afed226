from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def clients_that_close_what_they_open(request: pytest.FixtureRequest) -> None:
    """aiormq 6, the latest for Python 3.10, leaves the sockets open of connections that end on it."""
    asked = request.node.callspec.params.values() if hasattr(request.node, "callspec") else ()
    names = [value if isinstance(value, str) else getattr(value, "__name__", "") for value in asked]
    if sys.version_info < (3, 11) and any(name.lower().startswith("aio") for name in names):
        pytest.skip("aiormq 6 leaves sockets open, which would fail some other test")
