"""Each test of Apache's suite for AMQP 0-10 that is about the protocol alone has one of ours."""

from __future__ import annotations

import re
from pathlib import Path

from compat_tests.clients.qpid.suite import TESTS

HERE = Path(__file__).parents[1]


def test_each_protocol_test_of_apaches_suite_names_a_test_of_ours() -> None:
    named = {test.id: test.held_by.partition("::") for test in TESTS if test.held_by}
    assert set(named) == {test.id for test in TESTS if test.needs == ("spec",)}
    assert len(named) == 124
    missing = {
        (path, name)
        for path, _, name in named.values()
        if not re.search(rf"^def {name}\(", (HERE / path).read_text(), re.MULTILINE)
    }
    assert missing == set()
