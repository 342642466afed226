"""The page of a report, made of plain rows."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from compat_tests.unit.trace.pages import elements_of
from compat_tests.unit.trace.test_html import HOSTILE
from fakeamqp.errors import printable
from fakeamqp.trace.report import QUERIES, Totals, page

TOTALS = Totals(events=12345, runs=2, connections=3, seconds=1234.5678, damaged=0)
FINDING = {"number": 7, "rule": "settles-nothing"}


def report(most: int = 200, title: str = "", totals: Totals = TOTALS, **answers: Any) -> str:
    return page({name: answers.get(name, []) for name in QUERIES}, totals, title, most)


def statistics(text: str) -> dict[str | None, tuple[str | None, bool]]:
    """The numbers at the top by their labels, and whether each is marked as bad."""
    found = elements_of(text)
    classes = [attributes.get("class") for attributes, _ in found.all("div")]
    marks = [each == "bad" for each in classes if each not in ("name", "wide")]
    labels, numbers = ([text for _, text in found.all(tag)] for tag in ("dt", "dd"))
    return {label: (number, marked) for label, number, marked in zip(labels, numbers, marks, strict=True)}


def test_report_has_a_section_and_a_link_for_each_query():
    found = elements_of(report())
    assert [attributes["id"] for attributes, _ in found.all("section")] == list(QUERIES)
    assert [attributes["href"] for attributes, _ in found.all("a")] == [f"#{name}" for name in QUERIES]
    assert [text for _, text in found.all("h2")] == [query.title for query in QUERIES.values()]
    assert "<code>exceedances</code> counts deliveries beyond the limit" in report()


def test_numbers_at_the_top_mark_findings_and_damaged_lines():
    assert statistics(report()) == {
        "Events": ("12,345", False),
        "Runs": ("2", False),
        "Connections": ("3", False),
        "Longest run": ("1,234.568 s", False),
        "Deliveries out of order": ("0", False),
        "Violations of the protocol": ("0", False),
        "Beyond their prefetch": ("0", False),
    }
    levels = [{"high_water": 3, "exceedances": exceedances} for exceedances in (2, 0)]
    found = statistics(
        report(
            most=2, totals=TOTALS._replace(damaged=1), conformance=[FINDING] * 3, unacked_high_water=levels
        )
    )
    assert found["Violations of the protocol"] == ("over 2", True)
    assert found["Beyond their prefetch"] == ("1", True)
    assert found["Damaged lines"] == ("1", True)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_reaches_the_report_as_text_only(hostile):
    plain, found = (
        elements_of(report(conformance=[FINDING])),
        elements_of(report(title=hostile, conformance=[{**FINDING, "rule": hostile, hostile: hostile}])),
    )
    assert {tag for tag, _ in found.found} <= {tag for tag, _ in plain.found}
    assert found.comments == []
    [(_, heading)] = found.all("h1")
    assert heading == hostile
    cells = [(attributes["title"], text) for attributes, text in found.all("td")]
    assert cells == [("7", "7"), (printable(hostile),) * 2, (printable(hostile),) * 2]


def test_values_are_shown_in_the_form_of_their_type():
    row = {"none": None, "bit": True, "small": 0.123456789, "large": 1234.56, "text": "a\nb", "count": 1000}
    found = elements_of(report(latency_by_queue=[row]))
    cells = {name: text for (_, name), (_, text) in zip(found.all("th"), found.all("td"), strict=True)}
    assert cells == {
        "none": "",
        "bit": "true",
        "small": "0.123457",
        "large": "1,234.6",
        "text": "a\\nb",
        "count": "1000",
    }
    numeric = [name for attributes, name in found.all("th") if attributes.get("class") == "number"]
    assert numeric == ["none", "bit", "small", "large", "count"]


def test_a_bar_shows_the_share_of_the_largest_number():
    rows = [{"queue": queue, "p99": seconds} for queue, seconds in (("a", 2.0), ("b", 0.5), ("c", None))]
    bars = [attributes for attributes, _ in elements_of(report(latency_by_queue=rows)).all("meter")]
    assert [(bar["max"], bar["value"]) for bar in bars] == [("2.0", "2.0"), ("2.0", "0.5")]
    assert "meter" not in {tag for tag, _ in elements_of(report(latency_by_queue=[{"p99": 0}])).found}


def test_rows_beyond_the_limit_are_left_out_and_said_to_exist():
    rows = [{"queue": f"q{number}"} for number in range(3)]
    assert "<td" in report(latency_by_queue=rows) and "Rows: 3." in report(latency_by_queue=rows)
    found = elements_of(report(most=2, latency_by_queue=rows))
    assert [text for _, text in found.all("td")] == ["q0", "q1"]
    assert "The first 2 rows; there are more." in [text for _, text in found.all("p")]


def test_rows_of_violations_are_marked_and_so_is_their_absence():
    def marked(**answers: Any) -> list[bool]:
        rows = elements_of(report(**answers)).all("tr")[1:]
        return [attributes.get("class") == "bad" for attributes, _ in rows]

    assert marked(conformance=[FINDING]) == [True]
    assert marked(latency_by_queue=[{"queue": "q"}]) == [False]
    assert marked(unacked_high_water=[{"exceedances": 1}, {"exceedances": 0}]) == [True, False]
    classes = [attributes["class"] for attributes, text in elements_of(report()).all("p") if text == "None."]
    assert classes == ["none" if query.expects_nothing else "count" for query in QUERIES.values()]


def test_content_security_policy_of_the_report_allows_its_style_and_nothing_else():
    found = elements_of(report())
    [policy] = [
        str(attributes["content"])
        for attributes, _ in found.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    [(_, style)] = found.all("style")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
    assert not {"script", "img", "link"} & {tag for tag, _ in found.found}
