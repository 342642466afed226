"""Reads pages of traces: what elements there are, and what rows they hold."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

__all__ = ["Elements", "Row", "data_of", "elements_of", "rows_of"]


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text in scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[int, str] = {}
        self.comments: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            at = len(self.found) - 1
            self.texts[at] = self.texts.get(at, "") + data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        """Attributes and text of every element of this name."""
        return [
            (attributes, self.texts.get(at, ""))
            for at, (name, attributes) in enumerate(self.found)
            if name == tag
        ]


@dataclass(frozen=True)
class Row:
    """One row with what it refers to."""

    events: list[int]
    time: float
    connection: str
    kind: str
    direction: int
    channel: int
    name: str
    text: str
    queues: list[str]
    problem: bool
    fields: list[tuple[int, str, str, str]]
    properties: list[tuple[int, str, str, str]] | None
    body: str | bytes | None
    size: int

    def field(self, name: str) -> str:
        return next(value for _, field, value, _ in self.fields if field == name)


def elements_of(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    parser.close()
    return parser


def data_of(page: str) -> dict[str, Any]:
    """The data in the page, as a browser would find it."""
    [text] = [text for attributes, text in elements_of(page).all("script") if attributes.get("id") == "data"]
    return dict(json.loads(text))


def rows_of(page: str) -> list[Row]:
    data = data_of(page)
    pool = data["pool"]

    def pooled(place: int) -> Any:
        return None if place < 0 else pool[place]

    def body(place: int) -> str | bytes | None:
        if place < 0:
            return None
        encoding, text = pool[place]
        return base64.b64decode(text) if encoding == "base64" else text

    def fields(place: int) -> Any:
        return None if place < 0 else [tuple(field) for field in pool[place]]

    return [
        Row(
            row[0],
            row[1],
            data["connections"][row[2]]["alias"] if row[2] >= 0 else "",
            data["kinds"][row[3]],
            row[4],
            row[5],
            pooled(row[6]),
            pooled(row[7]),
            [pool[name] for name in row[8]],
            bool(row[9]),
            fields(row[10]),
            fields(row[11]),
            body(row[12]),
            row[13],
        )
        for row in data["rows"]
    ]
