"""The tables of docs/spark.md, made from the options and columns: `python -m compat_tests.spark_page`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from fakeamqp.spark.columns import SOURCE_COLUMNS
from fakeamqp.spark.option_table import OPTIONS, READ, WRITE, Option
from fakeamqp.spark.sink.columns import SINK_COLUMNS

__all__ = ["PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[1] / "docs" / "spark.md"


def with_tables(page: str) -> str:
    """The page with its tables as they should be. Raises ValueError where it has no place for one."""
    for name, made in _TABLES.items():
        page, count = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda found, made=made: f"{found[1]}\n{made()}\n{found[2]}",
            page,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"there is no place for the table of {name}")
    return page


def _options(*uses: str) -> Callable[[], str]:
    def made() -> str:
        rows = ([f"`{each.key}`", each.meaning, _default(each)] for each in OPTIONS if each.uses == uses)
        return _table(["Option", "What it says", "Default"], rows)

    return made


def _default(option: Option) -> str:
    if option.key == "amqp.url":
        return "has to be said"
    shown = option.shown_default or ("" if option.default in (None, ()) else str(option.default))
    return "empty" if shown == "``" else shown


def _source_columns() -> str:
    rows = ([f"`{each.name}`", _broken(each.ddl), each.meaning] for each in SOURCE_COLUMNS)
    return _table(["Column", "Type", "What is in it"], rows)


def _sink_columns() -> str:
    rows = ([f"`{each.name}`", each.spelled, each.meaning] for each in SINK_COLUMNS)
    return _table(["Column", "Type", "What becomes of it"], rows)


def _broken(ddl: str) -> str:
    """A struct would make the table very wide: its fields are told beside it."""
    return "STRUCT" if ddl.startswith("STRUCT") else ddl


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


_TABLES: dict[str, Callable[[], str]] = {
    "options of the connection": _options(READ, WRITE),
    "options of the source": _options(READ),
    "options of the sink": _options(WRITE),
    "columns of the source": _source_columns,
    "columns of the sink": _sink_columns,
}


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main()
