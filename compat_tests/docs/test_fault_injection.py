from __future__ import annotations

import re

from compat_tests.docs.pages import ROOT
from fakeamqp.faults import MALFORMATIONS, Rule
from fakeamqp.faults.actions import malformations

PAGE = (ROOT / "docs" / "fault-injection.md").read_text()


def test_fault_page_lists_every_malformation() -> None:
    for name, way in MALFORMATIONS.items():
        assert f"| `{name}` | {way.words} |" in PAGE


def test_fault_page_lists_every_malformation_of_0_10() -> None:
    for name, ways in malformations(["0-10"]).items():
        assert f"| `{name}` | {ways['0-10'].words} |" in PAGE


def test_fault_page_names_every_public_rule_method() -> None:
    public = [name for name, value in vars(Rule).items() if callable(value) and not name.startswith("_")]
    inner = {"asks", "fail", "fires", "forget", "enforce_heartbeats", "matches", "may_want", "near_misses"}
    assert [name for name in public if name not in inner and not re.search(rf"\b{name}\(", PAGE)] == []
