"""The patterns of LIKE: `%` for any characters, `_` for one, an escape character before a literal one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from fakeamqp.protocols.amqp_1_0.filters.fields import IllFormed
from fakeamqp.protocols.base.codec import encoded

Matcher: TypeAlias = "Callable[[bytes], bool | None]"
_ANY, _ONE = "%", "_"
_MOST_STEPS: Final = 1 << 24
"""Beyond this a pattern matches nothing: RabbitMQ's engine has a limit, too."""


def like(pattern: str, escape: str | None) -> Matcher:
    """How a pattern is matched. IllFormed.

    With more than one wildcard, or with `_`, RabbitMQ matches characters by a regular expression: bytes that
    are not UTF-8 make the result unknown, a newline matches no wildcard, and one at the end is not looked at
    (RabbitMQ: measured on 4.3.6). Otherwise it compares bytes.
    """
    if escape is not None and len(escape) != 1:
        raise IllFormed(f"{escape!r} is no single character")
    pieces = _pieces(pattern, escape)
    if len(pieces) <= 2 and None not in pieces[0] + pieces[-1]:
        first, last = _octets(pieces[0]), _octets(pieces[-1])
        if len(pieces) == 1:
            return lambda subject: subject == first
        least = len(first) + len(last)
        return lambda subject: len(subject) >= least and subject.startswith(first) and subject.endswith(last)
    return _by_characters(pieces)


def _pieces(pattern: str, escape: str | None) -> list[list[str | None]]:
    """The characters between the wildcards `%`; None is a wildcard `_`."""
    found: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for each in characters:
        if each == escape:
            literal = next(characters, None)
            if literal is None:
                raise IllFormed("a pattern ends in its escape character")
        elif each == _ANY:
            found.append([])
            continue
        else:
            literal = None if each == _ONE else each
        if literal is not None and (ord(literal) < 32 or ord(literal) == 127):
            raise IllFormed("a pattern has a control character")
        found[-1].append(literal)
    return found


def _octets(piece: list[str | None]) -> bytes:
    return encoded("".join(each or "" for each in piece))


def _by_characters(pieces: list[list[str | None]]) -> Matcher:
    """Each piece is of fixed length, so that the leftmost place of each but the last is the best one."""
    searched = [
        re.compile("".join("." if each is None else re.escape(each) for each in piece)) for piece in pieces
    ]
    first, *between = searched[: len(pieces) - 1] or searched
    last, size = searched[-1], len(pieces[-1])
    longest = max(map(len, pieces)) or 1

    def matches(subject: bytes) -> bool | None:
        try:
            text = subject.decode()
        except UnicodeDecodeError:
            return None
        text = text.removesuffix("\n")
        if "\n" in text or len(text) * longest > _MOST_STEPS:
            return False
        if len(pieces) == 1:
            return last.fullmatch(text) is not None
        found = first.match(text)
        for piece in between:
            found = found and piece.search(text, found.end())
        end = len(text) - size
        return found is not None and found.end() <= end and last.match(text, end) is not None

    return matches
