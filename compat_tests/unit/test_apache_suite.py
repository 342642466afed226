"""Each test of Apache's suite for AMQP 0-10 that is about the protocol alone has one of ours."""

from __future__ import annotations

import re
from pathlib import Path

from compat_tests.clients.qpid.suite import TESTS
from compat_tests.tools.conformance import marked_rules, read_catalogue

HERE = Path(__file__).parents[1]


def test_each_protocol_test_of_apaches_suite_names_a_rule_or_test_of_ours() -> None:
    named = {test.id: test.held_by for test in TESTS if test.held_by}
    assert set(named) == {test.id for test in TESTS if test.needs == ("spec",)}
    assert len(named) == 124
    shown = marked_rules(HERE / "protocol", read_catalogue("0-10"))
    tests = {
        name
        for folder in ("clients", "protocol", "unit")
        for path in (HERE / folder).rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE)
    }
    assert {each.partition("#")[0] for each in named.values()} - {*shown, *tests} == set()
