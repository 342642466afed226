"""Writes the table of docs/control.md from the code: `python -m compat_tests.tools.control_page`."""

from __future__ import annotations

import inspect
from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.management.control.routes import ROUTES, HttpRoute
from fakeamqp.management.control.schemas import Arguments

__all__ = ["PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "control.md"


def _row(route: HttpRoute) -> list[str]:
    summary = inspect.getdoc(route.function) or ""
    fields = [f"`{name}`" for name in Arguments.of(route.function).fields]
    if route.keywords is not None:
        fields.append(f"those of `{route.keywords.__name__}`")
    if route.body is not None:
        fields = ["see above"]
    return [f"`{route.method} {route.path}`", summary.partition("\n")[0], ", ".join(fields)]


def _routes() -> str:
    return tables.table(["Route", "What it does", "Fields"], [_row(each) for each in ROUTES])


def with_tables(page: str) -> str:
    """The page with its table as it should be."""
    return tables.with_tables(page, {"routes": _routes})


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
