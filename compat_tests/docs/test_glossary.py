"""The glossaries are in order, and the pages do not use words that the project has given up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.docs.pages import ROOT

GLOSSARIES = tuple(ROOT / "docs" / name for name in ("glossary.md", "glossary-internal.md"))
"""The terms of the pages for users, and those of the code."""
GENERATED = (
    *(f"conformance-{protocol}.md" for protocol in ("0-9-1", "0-9", "0-10", "1-0")),
    *("faults.md", "spark-benchmarks.md"),
)
"""Pages with texts of tests, clients or measurements, in which any word may occur."""
PAGES = (
    "README.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.name not in GENERATED),
)
"""The pages without the words below."""
DROPPED = (
    "anybody", "bend", "bender", "bends", "bent", "buried", "bury", "cable", "cables", "everybody",
    "flight", "flights", "house", "lane", "lanes", "midst", "nobody", "octet", "octets", "remark",
    "remarks", "room", "rooms", "somebody", "soever", "spell", "spells", "twin", "twins", "weather",
    "whoever", "whomever",
)  # fmt: skip
"""Words for which the glossary has another one, and words that are vague or figurative."""

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_TERM = re.compile(r"^## (?P<term>.+)$", re.MULTILINE)
_OWN_LINK = re.compile(r"\]\(#(?P<anchor>[\w-]+)\)")
_DROPPED = re.compile(rf"\b(?:{'|'.join(DROPPED)})\b", re.IGNORECASE)


@pytest.mark.parametrize("glossary", GLOSSARIES, ids=lambda path: path.name)
def test_glossary_terms_are_in_alphabetical_order(glossary: Path) -> None:
    terms = [term.casefold() for term in _terms(glossary)]
    assert terms == sorted(terms)


def test_each_glossary_term_occurs_once_in_both_glossaries() -> None:
    terms = [term.casefold() for glossary in GLOSSARIES for term in _terms(glossary)]
    assert len(terms) == len(set(terms))


@pytest.mark.parametrize("glossary", GLOSSARIES, ids=lambda path: path.name)
def test_each_glossary_term_has_explanation(glossary: Path) -> None:
    texts = _TERM.split(glossary.read_text("utf-8"))[2::2]
    assert [text for text in texts if not text.strip()] == []


def test_links_to_glossaries_lead_to_existing_terms() -> None:
    wrong = []
    for glossary in GLOSSARIES:
        anchors = {term.lower().replace(" ", "-") for term in _terms(glossary)}
        linked = set(_OWN_LINK.findall(glossary.read_text("utf-8")))
        link = re.compile(rf"(?<![\w-]){re.escape(glossary.name)}#([\w-]+)")
        for page in PAGES:
            linked |= set(link.findall((ROOT / page).read_text("utf-8")))
        wrong += [f"{glossary.name}#{each}" for each in linked - anchors]
    assert wrong == []


def test_documentation_pages_use_no_word_dropped_from_vocabulary() -> None:
    assert [found for page in PAGES for found in _dropped_words(page)] == []


def _terms(glossary: Path) -> list[str]:
    return _TERM.findall(glossary.read_text("utf-8"))


def _dropped_words(page: str) -> Iterator[str]:
    """The dropped words in the prose of a page, each with the page and the line."""
    prose = _CODE.sub(lambda code: "\n" * code[0].count("\n"), (ROOT / page).read_text())
    for number, line in enumerate(prose.splitlines(), 1):
        yield from (f"{page}:{number}: {word}" for word in _DROPPED.findall(line))
