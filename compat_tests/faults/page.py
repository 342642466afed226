"""The tables of docs/faults.md, made from what the clients are expected to do."""

from __future__ import annotations

from pathlib import Path

from compat_tests.faults.catalogue import GROUPS
from compat_tests.faults.drivers import TITLES
from compat_tests.faults.expected import Expected, read
from compat_tests.faults.scenario import SCENARIOS
from compat_tests.tools import tables

__all__ = ["PAGE", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def with_tables(page: str) -> str:
    """The page with its tables as they should be. Raises ValueError where it has no place for them."""
    return tables.with_tables(page, {"clients": _clients, "scenarios": _scenarios, "faults": _faults})


def _clients() -> str:
    rows = [[title, read(client).versions] for client, title in TITLES.items()]
    return tables.table(["Client", "Seen with"], rows)


def _scenarios() -> str:
    return tables.table(
        ["Scenario", "What the client does"], [[each.name, each.words] for each in SCENARIOS.values()]
    )


def _faults() -> str:
    columns = {client: read(client) for client in TITLES}
    parts = []
    for heading, faults in GROUPS.items():
        rows = [
            [f"{fault.words} ({fault.scenario})", *[_cell(column, fault.id) for column in columns.values()]]
            for fault in faults
        ]
        parts += [f"### {heading}", "", tables.table(["Fault", *TITLES.values()], rows)]
    return "\n".join(parts)


def _cell(column: Expected, fault: str) -> str:
    cells = column.cells.get(fault, ["not run"])
    said = " *or* ".join(cells)
    return f"{said} ({column.reasons[fault]})" if fault in column.reasons else said
