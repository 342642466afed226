"""Personalities made from others: with choices given by name, or taken from another one; and how two differ.

A choice of a nested record has the name of both, as in `quorum.delivery_limit`. Each key of a mapping is a
choice, as in `deprecated_features.global_qos`.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fakeamqp.errors import BrokerError, FakeAMQPError, near_match
from fakeamqp.model.personality.choices import PERSONALITIES, Personality
from fakeamqp.model.personality.features import FEATURES
from fakeamqp.model.versions import NAMES, ChoiceRow, rows_of

_P = TypeVar("_P", bound=Personality)
_R = TypeVar("_R")

_ANNOUNCED = ("product", "version")
"""What brokers only announce: no behaviour depends on it."""
_NAME = "Its choices that concern AMQP 0-9, 0-10 or 1.0 only."
_FEATURES = {str(name): meaning for name, meaning in FEATURES.items()}
_PERMITTED_BY = "RabbitMQ's setting deprecated_features.permit.{}"
_ABSENT = object()
_RULES = re.compile(r"(?P<rules>[\w.*-]+/[\w.*-]+(?:, [\w.*-]+/[\w.*-]+)*)(?:: |\.$)")
_RABBITMQ = re.compile(r" \(RabbitMQ: (?P<source>[^)]*)\)")


class UnknownChoice(FakeAMQPError):
    """A personality has no choice of this name, or it does not differ in it from another one."""

    __module__ = "fakeamqp.errors"


# --- choices given by name ---------------------------------------------------------------------------


def with_choices(chosen: _P, choices: Mapping[str, Any]) -> _P:
    """See `Personality.with_`. Choices of a personality of the user are checked as well."""
    known = rows_of(chosen)
    for name in choices:
        if name not in known:
            raise UnknownChoice(f"a personality has no choice {name!r}{near_match(name, known)}")
    ours = chosen is PERSONALITIES.get(chosen.name)
    made: _P = _checked(replace(chosen, **choices), "", set(choices) if ours else None)
    return made


def _checked(record: Any, prefix: str, names: set[str] | None = None) -> Any:
    """A record whose choices (of these names) fit their types and words."""
    changed = {}
    hints = _hints(record.__class__)
    for name, row in rows_of(record).items():
        if names is not None and name not in names:
            continue
        value, hint = getattr(record, name), hints[name]
        try:
            fitted = _fitted(value, hint)
        except TypeError:
            raise BrokerError(f"{prefix}{name} must be {_described(hint)}, not {value!r}") from None
        if is_dataclass(fitted):
            fitted = _checked(fitted, f"{prefix}{name}.")
        elif row.most is not None and fitted > row.most:
            raise BrokerError(f"{prefix}{name} must be at most {row.most}, not {value!r}")
        elif not prefix and not row.any_text:
            known = _words(row)
            for word in _texts(fitted):
                if word not in known:
                    raise BrokerError(f"{name}: there is no {word!r}{near_match(word, known)}")
        if fitted is not value:
            changed[name] = fitted
    return replace(record, **changed) if changed else record


@cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record)


@cache
def _words(row: ChoiceRow) -> frozenset[str]:
    """The words that some personality has for a choice."""
    return frozenset(word for name in NAMES for word in _texts(row.value(name)))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(key)
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def _fitted(value: Any, hint: Any) -> Any:
    """The value as its type has it; TypeError if it is not of this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        for each in arguments:
            try:
                return _fitted(value, each)
            except TypeError:
                continue
    elif origin is Literal:
        if isinstance(value, str) and value in arguments:
            return value
    elif origin is tuple and isinstance(value, (list, tuple)):
        kinds = (arguments[0],) * len(value) if arguments[-1] is Ellipsis else arguments
        if len(kinds) == len(value):
            fitted = tuple(map(_fitted, value, kinds))
            return value if value == fitted else fitted
    elif origin is not None and isinstance(value, Mapping) and issubclass(origin, Mapping):
        key_kind, kind = arguments
        entries = {_fitted(key, key_kind): _fitted(each, kind) for key, each in value.items()}
        return value if value == entries else entries
    elif hint in (int, float):
        if isinstance(value, (int, hint)) and not isinstance(value, bool) and value >= 0:
            return value
    elif origin is None and isinstance(value, hint):
        return value
    raise TypeError


_PLAIN = {
    bool: "True or False",
    int: "a whole number, 0 or more",
    float: "a number, 0 or more",
    str: "a text",
    bytes: "bytes",
    type(None): "None",
}


def _described(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_described, arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin is tuple:
        return "a list of texts" if arguments[-1] is Ellipsis else f"a list of {len(arguments)} texts"
    if origin is not None:
        return f"a mapping, each value {_described(arguments[1])}"
    return _PLAIN.get(hint, f"a {getattr(hint, '__name__', hint)}")


# --- how two differ ----------------------------------------------------------------------------------


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
    """See `Personality.differences`."""
    return tuple(
        ChoiceDifference(name, _shown(value), _shown(other), *_documented(name, record, field))
        for name, record, field, value, other in _differing(first, second, "")
    )


def adopted(first: Personality, second: Personality, names: Iterable[str]) -> Personality:
    """See `Personality.adopting`."""
    wanted = set(names)
    known = [name for name, *_ in _differing(first, second, "")]
    for name in sorted(wanted.difference(known)):
        hint = near_match(name, known, most=0)
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

    texts = {}
    for each in record.__mro__[-2::-1]:
        try:
            body = ast.parse(inspect.getsource(each)).body[0]
        except OSError:
            continue
        assert isinstance(body, ast.ClassDef)
        texts.update(
            {
                field.target.id: " ".join(str(text.value.value).split())
                for field, text in zip(body.body, body.body[1:], strict=False)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            }
        )
    return texts
