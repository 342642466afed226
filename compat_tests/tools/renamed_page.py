"""Writes the list of renamed names into docs/upgrading.md: `python -m compat_tests.tools.renamed_page`."""

from __future__ import annotations

from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.renamed import CHANGES, Change

__all__ = ["PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "upgrading.md"


def _row(change: Change) -> list[str]:
    if change.how == "fixture":
        return [f"the fixture `{change.old}`", f"`{change.new}`"]
    if change.how == "import":
        return [f"`{change.owner}.{change.old}`", f"`{change.new}.{change.old}`"]
    called = "()" if change.how in ("property", "exchange") else ""
    new = change.new if change.how == "by hand" else f"`{change.owner}.{change.new}`"
    return [f"`{change.owner}.{change.old}{called}`", new]


def _names() -> str:
    return tables.table(["Before", "Now"], [_row(each) for each in CHANGES])


def with_tables(page: str) -> str:
    """The page with its table as it should be."""
    return tables.with_tables(page, {"renamed": _names})


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
