"""The tables of docs/faults.md, made from what the clients are expected to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compat_tests.faults.catalogue import FAULTS, GROUPS, Fault
from compat_tests.faults.drivers import LINK_TITLES, TITLES
from compat_tests.faults.expected import Expected, read
from compat_tests.faults.links import LINK_GROUPS
from compat_tests.faults.proxied_node import CANNOT
from compat_tests.faults.scenario import SCENARIOS
from compat_tests.faults.through_proxy import DIFFERENT, RABBITMQ
from compat_tests.tools import tables

__all__ = ["PAGE", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def with_tables(page: str) -> str:
    """The page with its tables as they should be. Raises ValueError where it has no place for them."""
    made = {
        "clients": _clients,
        "scenarios": _scenarios,
        "faults": _faults,
        "faults of links": _faults_of_links,
        "through a proxy": _through_proxy,
    }
    return tables.with_tables(page, made)


def _clients() -> str:
    rows = [[title, read(client).versions] for client, title in {**TITLES, **LINK_TITLES}.items()]
    return tables.table(["Client", "Seen with"], rows)


def _scenarios() -> str:
    return tables.table(
        ["Scenario", "What the client does"], [[each.name, each.words] for each in SCENARIOS.values()]
    )


def _faults() -> str:
    return _of_groups(GROUPS, TITLES, "")


def _faults_of_links() -> str:
    return _of_groups(LINK_GROUPS, LINK_TITLES, "1-0-")


def _of_groups(groups: Mapping[str, list[Fault]], titles: Mapping[str, str], prefix: str) -> str:
    columns = {client: read(client) for client in titles}
    parts = []
    for heading, faults in groups.items():
        rows = [
            [
                f"{fault.words} ({fault.scenario})",
                *[_cell(column, prefix + fault.id) for column in columns.values()],
            ]
            for fault in faults
        ]
        title = f"{heading} (AMQP 1.0)" if prefix else heading
        parts += [f"### {title}", "", tables.table(["Fault", *titles.values()], rows)]
    return "\n".join(parts)


def _cell(column: Expected, fault: str) -> str:
    cells = column.cells.get(fault, ["not run"])
    said = " *or* ".join(cells)
    return f"{said} ({column.reasons[fault]})" if fault in column.reasons else said


def _through_proxy() -> str:
    cells = len(TITLES) * (len(FAULTS) - len(CANNOT))
    others = sum(len(each.clients) for each in DIFFERENT)
    same = f"Of {cells} cells in front of RabbitMQ {RABBITMQ}, {cells - others} are the same. These are not:"
    differences = [
        [
            FAULTS[each.fault].words,
            ", ".join(TITLES[client] for client in each.clients),
            " *or* ".join(each.cells),
            each.reason,
        ]
        for each in DIFFERENT
    ]
    cannot = [[FAULTS[fault].words, reason] for fault, reason in CANNOT.items()]
    return "\n".join(
        (
            same,
            "",
            tables.table(["Fault", "Client", "Through the proxy", "Why"], differences),
            "A proxy cannot cause these faults:",
            "",
            tables.table(["Fault", "Why"], cannot),
        )
    )
