"""Tables in pages of the documentation that are made, not written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["table", "with_tables"]


def with_tables(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with its tables as they should be: each between its name and "end", both in HTML comments.

    Raises:
        ValueError: the page does not have exactly one place for each table.
    """
    for name, made in tables.items():
        page, count = re.subn(
            rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)",
            lambda found, made=made: f"{found[1]}\n{made()}\n{found[2]}",
            page,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"there are {count} places for the table of {name}, not one")
    return page


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
