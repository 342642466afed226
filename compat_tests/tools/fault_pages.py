"""Writes the tables of docs/fault-actions.md from the code: `python -m compat_tests.tools.fault_pages`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from compat_tests.tools import tables
from fakeamqp.faults import MALFORMATIONS, Rule
from fakeamqp.faults.actions import malformations

__all__ = ["GROUPS", "PAGE", "main", "with_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "fault-actions.md"

GROUPS = {
    "Refuse": {
        "nack": "publishes, confirms",
        "return_message": "publishes of 0-9-1, 0-9 and 1.0",
        "refuse_login": "connection.start-ok, sasl-init",
        "exception": "commands of 0-10",
    },
    "Lose, repeat, reorder": {
        "drop": "any method",
        "duplicate": "any method",
        "reorder": "sent deliveries: basic.deliver, message.transfer of 0-10, transfer of 1.0",
    },
    "Wait": {"delay": "any method", "hold": "any method", "release": "rules with `hold` or `reorder`"},
    "End": {
        "close_channel": "methods on a channel",
        "close_connection": "any method",
        "detach": "attach, flow, transfer and detach of 1.0",
        "disconnect": "any method",
        "cut": "sent methods",
        "crash": "any method",
    },
    "Change": {"replace": "any method", "malform": "sent methods", "call": "any method"},
}
"""The actions by their effect, each with the methods that it is for."""


def _actions() -> str:
    head = ["Action", "For", "What it does"]
    return "\n".join(
        f"## {group}\n\n{tables.table(head, [_row(*each) for each in rows.items()])}"
        for group, rows in GROUPS.items()
    )


def _row(name: str, subjects: str) -> list[str]:
    method = getattr(Rule, name)
    text, _, arguments = (inspect.getdoc(method) or "").partition("\n\nArgs:\n")
    said = [" ".join(text.split())]
    said += [
        f"`{each}`: {' '.join(words.split())}"
        for each, words in _ARGUMENT.findall(arguments.partition("\n\n")[0])
    ]
    return [f"`{name}({_signature(method)})`", subjects, "<br>".join(said).replace("|", "\\|")]


_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8,}.*)*)", re.MULTILINE)


def _signature(method: object) -> str:
    """The parameters of a method without their types."""
    parameters = list(inspect.signature(method).parameters.values())[1:]  # type: ignore[arg-type]
    return ", ".join(str(each.replace(annotation=inspect.Parameter.empty)) for each in parameters)


def _malformations() -> str:
    rows = [[f"`{name}`", way.words] for name, way in MALFORMATIONS.items()]
    return tables.table(["`how`", "What is wrong"], rows)


def _malformations_of(protocol: str) -> str:
    rows = [[f"`{name}`", ways[protocol].words] for name, ways in malformations([protocol]).items()]
    return tables.table(["`how`", "What is wrong"], rows)


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    return tables.with_tables(
        page,
        {
            "actions": _actions,
            "malformations": _malformations,
            "malformations of 0-10": lambda: _malformations_of("0-10"),
            "malformations of 1.0": lambda: _malformations_of("1-0"),
        },
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
