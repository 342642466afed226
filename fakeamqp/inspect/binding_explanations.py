"""Explains why a binding matches a message or does not, by exchange type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.model.exchanges import topic_matches

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.exchanges.binding import Binding
    from fakeamqp.model.messages.message import Message

__all__ = ["BindingExplanation", "explain_bindings"]


class BindingExplanation(NamedTuple):
    """Why one binding matches, or what differs; `distance` is 0 if it matches."""

    binding: Binding
    why: str
    distance: float

    @property
    def matches(self) -> bool:
        """Whether the binding matches."""
        return not self.distance


def explain_bindings(exchange: Exchange, keys: Sequence[str], message: Message) -> list[BindingExplanation]:
    """An explanation for each binding of an exchange, in the order they were created.

    It is empty for exchange types that choose a binding by a hash or at random.
    """
    explainer = _EXPLAINERS.get(exchange.type_name)
    if explainer is None:
        return []
    return [
        BindingExplanation(each, *explainer(exchange, each, keys, message))
        for each in exchange.bindings.values()
    ]


def _direct(exchange: Exchange, binding: Binding, keys: Sequence[str], message: Message) -> tuple[str, float]:
    if binding.routing_key in keys:
        return "the binding key is the routing key", 0
    return f"{binding.routing_key!r} is not {_or(keys)}", 1 - _likeness(binding.routing_key, keys[0]) + 0.01


def _fanout(exchange: Exchange, binding: Binding, keys: Sequence[str], message: Message) -> tuple[str, float]:
    return "a fanout exchange routes to every binding", 0


def _topic(exchange: Exchange, binding: Binding, keys: Sequence[str], message: Message) -> tuple[str, float]:
    pattern = binding.routing_key
    for key in keys:
        if topic_matches(pattern, key):
            taken = [
                f"{word} = {'.'.join(found)!r}"
                for word, found in _aligned(pattern, key)
                if word in ("*", "#")
            ]
            said = f" ({', '.join(taken)})" if taken else ""
            return f"{pattern!r} matches {key!r}{said}", 0
    words, wanted = _words(keys[0]), _words(pattern)
    why = ""
    if "#" not in wanted and len(words) != len(wanted):
        why = f"it requires {_words_said(len(wanted))}, and {keys[0]!r} has {len(words)}"
    elif "#" not in wanted:
        wrong = [
            f"word {place} is {word!r}, not {asked!r}"
            for place, (word, asked) in enumerate(zip(words, wanted, strict=True), 1)
            if asked not in ("*", word)
        ]
        why = " and ".join(wrong)
    why = why or f"{keys[0]!r} does not match it"
    return why, _edits(wanted, words) + 1 - _likeness(pattern, keys[0])


def _headers(exchange: Any, binding: Binding, keys: Sequence[str], message: Message) -> tuple[str, float]:
    unmet = exchange.differences(binding, message)
    asked = [name for name in binding.arguments if name != "x-match"]
    said = [_header_said(name, binding.arguments[name], message) for name in unmet]
    if exchange.asks_for_any(binding):
        met = exchange.asked(binding) - len(unmet)
        if met:
            return f"{met} of its headers match, and x-match is any", 0
        return f"x-match is any, but {'; '.join(said) or 'it requires no header'}", 1 + len(unmet)
    if not unmet:
        return ("all its headers match" if asked else "it requires no header"), 0
    return "; ".join(said), float(len(unmet))


_EXPLAINERS: dict[str, Callable[[Any, Binding, Sequence[str], Message], tuple[str, float]]] = {
    "direct": _direct,
    "fanout": _fanout,
    "topic": _topic,
    "headers": _headers,
}


# --- words ------------------------------------------------------------------------------------------------


def _header_said(name: str, wanted: object, message: Message) -> str:
    if name not in message.headers:
        return f"header {name!r} is missing"
    return f"header {name!r} is {message.headers[name]!r}, not {wanted!r}"


def _or(keys: Sequence[str]) -> str:
    return " or ".join(map(repr, keys))


def _words_said(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"


def _likeness(one: str, two: str) -> float:
    """From 0 to 1."""
    return SequenceMatcher(None, one, two).ratio()


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _aligned(pattern: str, key: str) -> list[tuple[str, list[str]]]:
    """Each word of a matching pattern, with the words of the key that it matches."""
    wanted, words = _words(pattern), _words(key)
    fits = [[False] * (len(words) + 1) for _ in range(len(wanted) + 1)]
    fits[-1][-1] = True
    for row in range(len(wanted) - 1, -1, -1):
        for column in range(len(words), -1, -1):
            here = column < len(words)
            if wanted[row] == "#":
                fits[row][column] = fits[row + 1][column] or (here and fits[row][column + 1])
            else:
                fits[row][column] = here and wanted[row] in ("*", words[column]) and fits[row + 1][column + 1]
    aligned = []
    column = 0
    for row, word in enumerate(wanted):
        start = column
        if word != "#":
            column += 1
        else:
            while not fits[row + 1][column]:
                column += 1
        aligned.append((word, words[start:column]))
    return aligned


def _edits(wanted: Sequence[str], words: Sequence[str]) -> float:
    """The number of wrong, missing and additional words of a key, compared with a pattern."""
    above: list[float] = [float(count) for count in range(len(words) + 1)]
    for asked in wanted:
        free = asked == "#"
        row = [above[0] + (0 if free else 1)]
        for column, word in enumerate(words, 1):
            if free:
                row.append(min(above[column], row[-1]))
            else:
                change = above[column - 1] + (0 if asked in ("*", word) else 1)
                row.append(min(change, above[column] + 1, row[-1] + 1))
        above = row
    return above[-1]
