"""The results of the queries about traces, as one self-contained page without scripts.

The results are plain rows: `fakeamqp.spark.traces` has them from Spark. Text from a peer reaches the page as
text only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from fakeamqp.trace.pages import fill
from fakeamqp.trace.report.queries import QUERIES, Query
from fakeamqp.trace.truncation import one_line

__all__ = ["QUERIES", "Query", "Totals", "page"]

Rows: TypeAlias = Sequence[Mapping[str, Any]]

_METERED = ("p99", "rate", "high_water")
"""The columns with a bar beside the number; the largest number has the longest bar."""


class Totals(NamedTuple):
    """The size of the traces.

    Args:
        events: how many there are.
        runs: how many recordings.
        connections: how many there are in all runs.
        seconds: the length of the longest run.
        damaged: how many lines of files could not be read.
    """

    events: int
    runs: int
    connections: int
    seconds: float
    damaged: int


def page(answers: Mapping[str, Rows], totals: Totals, title: str, most: int) -> str:
    """The whole page.

    Args:
        answers: the rows of each query, by its name.
        totals: shown at the top.
        title: of the page; "" for a general one.
        most: how many rows of a query are shown; the page says so if there are more.
    """
    from html import escape

    return fill(
        __package__,
        title=escape(title or "AMQP traces"),
        stats="".join(_stats(answers, totals, most)),
        links="".join(f'<a href="#{name}">{name}</a>' for name in QUERIES),
        sections="\n".join(_section(name, answers[name], most) for name in QUERIES),
    )


def _stats(answers: Mapping[str, Rows], totals: Totals, most: int) -> list[str]:
    numbers: dict[str, tuple[str, bool]] = {
        "Events": (f"{totals.events:,}", False),
        "Runs": (f"{totals.runs:,}", False),
        "Connections": (f"{totals.connections:,}", False),
        "Longest run": (f"{totals.seconds:,.3f} s", False),
    }
    if totals.damaged:
        numbers["Damaged lines"] = (f"{totals.damaged:,}", True)
    for name, query in QUERIES.items():
        if query.expects_nothing:
            found = len(answers[name])
            numbers[query.title] = (f"over {most:,}" if found > most else f"{found:,}", found > 0)
    beyond = sum(_is_bad("unacked_high_water", row) for row in answers["unacked_high_water"])
    numbers["Beyond their prefetch"] = (f"{beyond:,}", beyond > 0)
    return [
        f"<div{' class=bad' * bad}><dt>{label}</dt><dd>{number}</dd></div>"
        for label, (number, bad) in numbers.items()
    ]


def _section(name: str, rows: Rows, most: int) -> str:
    import re
    from html import escape

    query = QUERIES[name]
    about = re.sub("`(.+?)`", r"<code>\1</code>", escape(query.description))
    parts = [f'<section id="{name}"><h2>{query.title}</h2>', f'<p class="about">{about}</p>']
    if rows:
        parts.append(_table(name, rows[:most]))
        more = f"The first {most:,} rows; there are more." if len(rows) > most else f"Rows: {len(rows):,}."
        parts.append(f'<p class="count">{more}</p>')
    else:
        parts.append(f'<p class="{"none" if query.expects_nothing else "count"}">None.</p>')
    return "".join((*parts, "</section>"))


def _table(name: str, rows: Rows) -> str:
    from html import escape

    columns = list(rows[0])
    numeric = {
        column
        for column in columns
        if all(row[column] is None or isinstance(row[column], (int, float)) for row in rows)
    }
    most = {column: max(row[column] or 0 for row in rows) for column in _METERED if column in columns}
    head = "".join(
        f'<th scope="col"{" class=number" * (column in numeric)}>{escape(column)}</th>' for column in columns
    )
    body = []
    for row in rows:
        cells = []
        for column in columns:
            value = row[column]
            shown = cell = escape(_shown(value))
            if most.get(column) and value is not None:
                cell += f'<meter max="{most[column]}" value="{value}" aria-hidden="true"></meter>'
            cells.append(f'<td{" class=number" * (column in numeric)} title="{shown}">{cell}</td>')
        body.append(f"<tr{' class=bad' * _is_bad(name, row)}>{''.join(cells)}</tr>")
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def _is_bad(name: str, row: Mapping[str, Any]) -> bool:
    return QUERIES[name].expects_nothing or bool(row.get("exceedances"))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1000 else f"{value:,.1f}"
    return one_line(str(value))
