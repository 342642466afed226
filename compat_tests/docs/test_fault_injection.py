from __future__ import annotations

from compat_tests.docs.pages import ROOT
from compat_tests.tools.fault_pages import GROUPS
from fakeamqp.faults import Rule


def test_page_of_actions_has_row_for_every_action() -> None:
    rows = {name for group in GROUPS.values() for name in group}
    public = {name for name, value in vars(Rule).items() if callable(value) and not name.startswith("_")}
    triggers = {"once", "times", "on_call", "after", "with_probability"}
    assert rows == public - triggers


def test_page_of_fault_injection_names_every_trigger() -> None:
    page = (ROOT / "docs" / "fault-injection.md").read_text("utf-8")
    triggers = ("once()", "times(n)", "on_call(n)", "after(n)", "with_probability(p)")
    assert [each for each in triggers if f"`{each}`" not in page] == []
