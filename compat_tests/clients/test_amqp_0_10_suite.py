"""Each test of Apache's suite that needs no more than the protocol has one here that checks the same.

Those tests carry the mark `suite` with its id.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compat_tests.clients.qpid.suite import TESTS


def marks(marked: Any) -> Iterator[str]:
    """The ids that a test names, for itself or for one of its parameters."""
    for mark in getattr(marked, "pytestmark", []) or getattr(marked, "marks", []):
        if mark.name == "suite":
            yield mark.args[0]
        elif mark.name == "parametrize":
            for each in mark.args[1]:
                yield from marks(each)


def test_all_of_the_suite_is_covered() -> None:
    covered = {
        id_
        for path in sorted(Path(__file__).parent.glob("test_amqp_0_10_*.py"))
        for test in vars(importlib.import_module(f"compat_tests.clients.{path.stem}")).values()
        for id_ in marks(test)
    }
    assert len(covered) == 124
    assert covered == {test.id for test in TESTS if test.needs == ("spec",)}
