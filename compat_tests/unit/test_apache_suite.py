"""Each test of Apache's suite for AMQP 0-10 that is about the protocol alone has one of ours."""

from __future__ import annotations

import re
from pathlib import Path

from compat_tests.clients.qpid.suite import TESTS

HERE = Path(__file__).parents[1]


def test_each_protocol_test_of_apaches_suite_names_a_test_of_ours() -> None:
    named = {test.id: test.held_by for test in TESTS if test.held_by}
    assert set(named) == {test.id for test in TESTS if test.needs == ("spec",)}
    assert len(named) == 124
    ours = {
        name
        for folder in ("clients", "protocol", "unit")
        for path in (HERE / folder).rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE)
    }
    assert set(named.values()) - ours == set()
