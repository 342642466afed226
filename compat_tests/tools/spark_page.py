"""The tables of docs/spark.md, made from options and columns: `python -m compat_tests.tools.spark_page`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.spark.columns import SOURCE_COLUMNS
from fakeamqp.spark.option_table import OPTIONS, READ, WRITE, Option
from fakeamqp.spark.sink.columns import SINK_COLUMNS

__all__ = ["PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def with_tables(page: str) -> str:
    """The page with its tables up to date. Raises ValueError if it has no place for a table."""
    return tables.with_tables(page, _TABLES)


def _options(*uses: str) -> Callable[[], str]:
    def made() -> str:
        rows = [[f"`{each.key}`", each.meaning, _default(each)] for each in OPTIONS if each.uses == uses]
        return tables.table(["Option", "Meaning", "Default"], rows)

    return made


def _default(option: Option) -> str:
    if option.key == "amqp.url":
        return "required"
    shown = option.shown_default or ("" if option.default in (None, ()) else str(option.default))
    return "empty" if shown == "``" else shown


def _source_columns() -> str:
    rows = [[f"`{each.name}`", _broken(each.ddl), each.meaning] for each in SOURCE_COLUMNS]
    return tables.table(["Column", "Type", "Meaning"], rows)


def _sink_columns() -> str:
    rows = [[f"`{each.name}`", each.spelled, each.meaning] for each in SINK_COLUMNS]
    return tables.table(["Column", "Type", "Meaning"], rows)


def _broken(ddl: str) -> str:
    """Without the fields of a struct, which the page lists beside the table."""
    return "STRUCT" if ddl.startswith("STRUCT") else ddl


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
