"""The colours of the pages: WCAG 2.1 AA wants a contrast of 4.5 for text, and 3 for borders and marks."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

CSS = files("fakeamqp.trace.pages").joinpath("base.css").read_text("utf-8")
TEXTS = ("ink", "soft", "faint", "to", "from", "note", "bad", "fault")
GROUNDS = ("paper", "wash", "pick")
#: What stands on a ground of its own.
PAIRS = [
    *((text, ground) for text in TEXTS for ground in GROUNDS),
    ("ink", "note-wash"), ("bad", "bad-wash"), ("fault", "fault-wash"), ("soft", "bad-wash"),
    ("soft", "fault-wash"), ("ink", "bad-wash"), ("main-ink", "main"), ("paper", "ink"),
]  # fmt: skip
MARKS = [(mark, ground) for mark in ("focus", "rail", "main") for ground in ("paper", "wash")]


def palettes() -> dict[str, dict[str, str]]:
    """The colours by name: the light ones, and the dark ones of either place that sets them."""
    found = {}
    for name, head in (
        ("light", r":root \{"),
        ("dark", r':root:not\(\[data-theme="light"\]\) \{'),
        ("chosen dark", r':root\[data-theme="dark"\] \{'),
    ):
        match = re.search(head + r"(.*?)\}", CSS, re.DOTALL)
        assert match is not None
        found[name] = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", match[1]))
    return found


def luminance(colour: str) -> float:
    """WCAG's relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_formula_gives_the_values_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("name", palettes())
def test_every_text_and_mark_has_enough_contrast(name: str):
    palette = palettes()[name]
    low = {
        f"{text} on {ground}": round(contrast(palette[text], palette[ground]), 2)
        for pairs, least in ((PAIRS, 4.5), (MARKS, 3.0))
        for text, ground in pairs
        if contrast(palette[text], palette[ground]) < least
    }
    assert not low


def test_chosen_dark_theme_has_the_colours_of_the_automatic_theme():
    found = palettes()
    assert found["dark"] == found["chosen dark"]
    assert found["dark"].keys() == found["light"].keys()
