"""The glossary is in order, and the pages do not use words that the project has given up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat_tests.docs.pages import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
GENERATED = ("conformance.md", "faults.md", "spark-benchmarks.md")
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
_LINK = re.compile(r"glossary\.md#(?P<anchor>[\w-]+)")
_OWN_LINK = re.compile(r"\]\(#(?P<anchor>[\w-]+)\)")
_DROPPED = re.compile(rf"\b(?:{'|'.join(DROPPED)})\b", re.IGNORECASE)


def test_glossary_terms_are_in_alphabetical_order() -> None:
    terms = [term.casefold() for term in _terms()]
    assert terms == sorted(terms)


def test_each_glossary_term_occurs_once() -> None:
    terms = [term.casefold() for term in _terms()]
    assert len(terms) == len(set(terms))


def test_each_glossary_term_has_explanation() -> None:
    texts = _TERM.split(GLOSSARY.read_text())[2::2]
    assert [text for text in texts if not text.strip()] == []


def test_links_to_glossary_lead_to_existing_term() -> None:
    anchors = {term.lower().replace(" ", "-") for term in _terms()}
    linked = set(_OWN_LINK.findall(GLOSSARY.read_text()))
    for page in PAGES:
        linked |= set(_LINK.findall((ROOT / page).read_text()))
    assert linked - anchors == set()


def test_documentation_pages_use_no_word_dropped_from_vocabulary() -> None:
    assert [found for page in PAGES for found in _dropped_words(page)] == []


def _terms() -> list[str]:
    return _TERM.findall(GLOSSARY.read_text())


def _dropped_words(page: str) -> Iterator[str]:
    """The dropped words in the prose of a page, each with the page and the line."""
    prose = _CODE.sub(lambda code: "\n" * code[0].count("\n"), (ROOT / page).read_text())
    for number, line in enumerate(prose.splitlines(), 1):
        yield from (f"{page}:{number}: {word}" for word in _DROPPED.findall(line))
