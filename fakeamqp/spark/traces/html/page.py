"""Puts the page together: template, style, and a table for each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.traces.sql import QUERIES, Query, text_of
from fakeamqp.trace.truncation import one_line

if TYPE_CHECKING:
    from fakeamqp.spark.traces.analysis import Traces

_METERED = ("p99", "rate", "high_water")
"""Columns with a bar beside the number, as long as it is of the largest."""


def page(traces: Traces, title: str, rows: int) -> str:
    """The whole page; see `Traces.html`."""
    from html import escape
    from string import Template

    asked = {name: getattr(traces, name)().limit(rows + 1).collect() for name in QUERIES}
    answers = {name: [row.asDict() for row in found] for name, found in asked.items()}
    title = title or "AMQP traces"
    style = _asset("page.css")
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=style,
        style_hash=_hash(style),
        stats="".join(_stats(traces, answers, rows)),
        links="".join(f'<a href="#{name}">{name}</a>' for name in QUERIES),
        sections="\n".join(_section(name, QUERIES[name], answers[name], rows) for name in QUERIES),
    )


def _stats(traces: Traces, answers: Mapping[str, Sequence[Mapping[str, Any]]], rows: int) -> list[str]:
    """The numbers at the top: events, runs, connections, and violations."""
    (all_of_it,) = traces.sql(
        "SELECT count(*) AS events, count(DISTINCT run) AS runs, count(DISTINCT run, alias) "
        "FILTER (WHERE kind = 'connection') AS connections, max(time) AS seconds FROM trace"
    ).collect()
    numbers: dict[str, tuple[str, bool]] = {
        "Events": (f"{all_of_it['events']:,}", False),
        "Runs": (f"{all_of_it['runs']:,}", False),
        "Connections": (f"{all_of_it['connections']:,}", False),
        "Longest run": (f"{all_of_it['seconds'] or 0:,.3f} s", False),
    }
    damaged = traces.damaged.count()
    if damaged:
        numbers["Damaged lines"] = (f"{damaged:,}", True)
    for name, query in QUERIES.items():
        if query.expects_nothing:
            found = len(answers[name])
            numbers[query.title] = (f"over {rows:,}" if found > rows else f"{found:,}", found > 0)
    beyond = sum(_is_bad("unacked_high_water", row) for row in answers["unacked_high_water"])
    numbers["Beyond their prefetch"] = (f"{beyond:,}", beyond > 0)
    return [
        f"<div{' class=bad' * bad}><dt>{label}</dt><dd>{number}</dd></div>"
        for label, (number, bad) in numbers.items()
    ]


def _section(name: str, query: Query, rows: Sequence[Mapping[str, Any]], most: int) -> str:
    parts = [
        f'<section id="{name}"><h2>{query.title}</h2>',
        f'<p class="about">{_description(name, query)}</p>',
    ]
    if rows:
        parts.append(_table(name, rows[:most]))
        more = f"The first {most:,} rows; there are more." if len(rows) > most else f"Rows: {len(rows):,}."
        parts.append(f'<p class="count">{more}</p>')
    else:
        parts.append(f'<p class="{"none" if query.expects_nothing else "count"}">None.</p>')
    return "".join((*parts, "</section>"))


def _description(name: str, query: Query) -> str:
    """The description of a query, or the comment at the start of its file, without the name."""
    import re
    from html import escape
    from itertools import takewhile

    text = query.description
    if not text:
        comment = takewhile(lambda line: line.startswith("--"), text_of(name).splitlines())
        text = " ".join(line[2:].strip() for line in comment).partition(": ")[2]
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(text[:1].upper() + text[1:]))


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    from html import escape

    columns = list(rows[0])
    numeric = {
        column
        for column in columns
        if all(row[column] is None or isinstance(row[column], (int, float)) for row in rows)
    }
    most = {
        column: max((row[column] or 0 for row in rows), default=0) for column in _METERED if column in columns
    }
    head = "".join(
        f'<th scope="col"{" class=number" * (column in numeric)}>{escape(column)}</th>' for column in columns
    )
    body = []
    for row in rows:
        cells = []
        for column in columns:
            value = row[column]
            shown = escape(_shown(value))
            if most.get(column) and value is not None:
                shown += f'<meter max="{most[column]}" value="{value}" aria-hidden="true"></meter>'
            cells.append(
                f'<td{" class=number" * (column in numeric)} title="{escape(_shown(value))}">{shown}</td>'
            )
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


def _asset(name: str) -> str:
    from importlib.resources import files

    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What names `text` in a content security policy."""
    from base64 import b64encode
    from hashlib import sha256

    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
