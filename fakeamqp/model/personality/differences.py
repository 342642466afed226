"""How two personalities differ: choice by choice, by name.

A choice of a nested record has the name of both, as in `quorum.delivery_limit`. Each key of a mapping is a
choice, as in `deprecated_features.global_qos`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.personality.features import FEATURES

if TYPE_CHECKING:
    from fakeamqp.model.personality.choices import Personality

__all__ = ["ChoiceDifference", "UnknownChoice", "adopted", "differences", "field_texts"]

_R = TypeVar("_R")

_ANNOUNCED = ("product", "version")
"""What brokers only announce: no behaviour depends on it."""
_NAME = "Its choices that concern AMQP 0-9 or AMQP 0-10 only."
_FEATURES = {str(name): meaning for name, meaning in FEATURES.items()}
_PERMITTED_BY = "RabbitMQ's setting deprecated_features.permit.{}"
_ABSENT = object()
_RULES = re.compile(r"(?P<rules>[\w.*-]+/[\w.*-]+(?:, [\w.*-]+/[\w.*-]+)*)(?:: |\.$)")
_RABBITMQ = re.compile(r" \(RabbitMQ: (?P<source>[^)]*)\)")


class UnknownChoice(FakeAMQPError):
    """Two personalities do not differ in a choice of this name."""


@dataclass(frozen=True)
class ChoiceDifference:
    """A choice that two personalities make differently.

    Args:
        name: of the choice, such as "takes_cancel_ok" or "quorum.delivery_limit".
        value: of the first personality; None as well if its mapping has no such key.
        other: of the second personality.
        text: what the choice decides; "" if that is what the rules in `source` say.
        source: where its values come from: what is known of RabbitMQ's versions, or else the rules of the
            specification that it decides; "" if its documentation names none.
    """

    name: str
    value: object
    other: object
    text: str
    source: str


def differences(first: Personality, second: Personality) -> tuple[ChoiceDifference, ...]:
    """The choices in which two personalities differ, in the order of their documentation."""
    return tuple(
        ChoiceDifference(name, _shown(value), _shown(other), *_documented(name, record, field))
        for name, record, field, value, other in _differing(first, second, "")
    )


def adopted(first: Personality, second: Personality, names: Iterable[str]) -> Personality:
    """`first` with the choices of these names as `second` makes them.

    Raises:
        UnknownChoice: the two do not differ in a choice of this name; the text names the nearest match.
    """
    wanted = set(names)
    known = [name for name, *_ in _differing(first, second, "")]
    for name in sorted(wanted.difference(known)):
        near = nearest(name, known)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownChoice(f"{first.name} and {second.name} do not differ in a choice {name!r}{hint}")
    return _adopted(first, second, wanted, "")


def _differing(first: Any, second: Any, prefix: str) -> Iterator[tuple[str, type, str, Any, Any]]:
    """Name of the choice, its record, its field there, and both values."""
    for field in fields(first):
        name, value, other = prefix + field.name, getattr(first, field.name), getattr(second, field.name)
        if value == other or name in _ANNOUNCED:
            continue
        if is_dataclass(value):
            yield from _differing(value, other, f"{name}.")
        elif isinstance(value, Mapping):
            for key, one, another in _entries(value, other):
                yield f"{name}.{_word(key)}", type(first), field.name, one, another
        else:
            yield name, type(first), field.name, value, other


def _entries(value: Mapping[Any, Any], other: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for key in dict.fromkeys([*value, *other]):
        one, another = value.get(key, _ABSENT), other.get(key, _ABSENT)
        if one != another:
            yield key, one, another


def _adopted(first: _R, second: Any, names: set[str], prefix: str) -> _R:
    changes: dict[str, Any] = {}
    for field in fields(first):  # type: ignore[arg-type]
        name, value, other = prefix + field.name, getattr(first, field.name), getattr(second, field.name)
        if is_dataclass(value):
            changes[field.name] = _adopted(value, other, names, f"{name}.")
        elif isinstance(value, Mapping):
            merged = dict(value)
            for key, _, another in _entries(value, other):
                if f"{name}.{_word(key)}" in names:
                    merged.pop(key, None)
                    if another is not _ABSENT:
                        merged[key] = another
            changes[field.name] = merged
        elif name in names:
            changes[field.name] = other
    return replace(first, **changes)  # type: ignore[type-var]


def _word(key: object) -> str:
    return key.__name__ if isinstance(key, type) else str(key)


def _shown(value: object) -> object:
    return None if value is _ABSENT else value


def _documented(name: str, record: type, field: str) -> tuple[str, str]:
    """What the choice decides, and the source."""
    if field == "name":
        return _NAME, ""
    if field == "deprecated_features":
        feature = name.partition(".")[2]
        return f"Deprecated feature: {_FEATURES.get(feature, feature)}.", _PERMITTED_BY.format(feature)
    text = field_texts(record).get(field, "")
    source = _RABBITMQ.search(text)
    rules = _RULES.match(text)
    said = _RABBITMQ.sub("", text)
    if rules is not None:
        said = said[rules.end() :]
        said = said[:1].upper() + said[1:]
    if source is not None:
        return said, f"RabbitMQ: {source['source']}"
    return said, "" if rules is None else f"rule {rules['rules']}"


@lru_cache
def field_texts(record: type) -> dict[str, str]:
    """The text below each field of a record, in one line. Without the source file there is none."""
    import ast
    import inspect

    try:
        body = ast.parse(inspect.getsource(record)).body[0]
    except OSError:
        return {}
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in zip(body.body, body.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }
