"""The tables of docs/faults.md, made from what the clients are expected to do."""

from __future__ import annotations

import re
from pathlib import Path

from compat_tests.faults.catalogue import GROUPS
from compat_tests.faults.drivers import TITLES
from compat_tests.faults.expected import Expected, read
from compat_tests.faults.scenario import SCENARIOS

__all__ = ["PAGE", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def with_tables(page: str) -> str:
    """The page with its tables as they should be. Raises ValueError where it has no place for them."""
    for name, made in (("clients", _clients), ("scenarios", _scenarios), ("faults", _faults)):
        page, count = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda found, made=made: f"{found[1]}\n{made()}\n{found[2]}",
            page,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"there is no place for the table of {name}")
    return page


def _clients() -> str:
    rows = [[title, read(client).versions] for client, title in TITLES.items()]
    return _table(["Client", "Seen with"], rows)


def _scenarios() -> str:
    return _table(
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
        parts += [f"### {heading}", "", _table(["Fault", *TITLES.values()], rows)]
    return "\n".join(parts)


def _cell(column: Expected, fault: str) -> str:
    cells = column.cells.get(fault, ["not run"])
    said = " *or* ".join(cells)
    return f"{said} ({column.reasons[fault]})" if fault in column.reasons else said


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
