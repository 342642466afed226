"""Checks the choices of a personality that a user has made: their types, and the words that they know."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fakeamqp.errors import BrokerError, near_match
from fakeamqp.model.personality.choices import Personality
from fakeamqp.model.personality.records import PERSONALITIES

__all__ = ["with_choices"]

_MOST = {"channel_max": 0xFFFF, "heartbeat": 0xFFFF, "frame_max": 0xFFFF_FFFF}
"""The largest numbers that connection.tune can carry."""
_FREE = {
    "capabilities",
    "channel_limit_text",
    "invalid_exchange_types",
    "loopback_users",
    "name",
    "not_implemented",
    "product",
    "single_active_get_refusal",
    "stream_consumer_terms",
    "stream_filter_size_refusal",
    "version",
}
"""Choices that any text fits. Others know only the words that some personality has."""


def with_choices(chosen: Personality, settings: Mapping[str, Any]) -> Personality:
    """A personality with some choices made otherwise. Lists in place of tuples become tuples.

    Raises:
        BrokerError: a choice has a wrong type or value: one of `settings`, or of a personality of the user.
    """
    ours = chosen is PERSONALITIES.get(chosen.name)
    made: Personality = _checked(replace(chosen, **settings), "", set(settings) if ours else None)
    return made


def _checked(record: Any, prefix: str, names: set[str] | None = None) -> Any:
    """A record whose choices (of these names) fit their types and words."""
    changed = {}
    for name, hint in _hints(record.__class__).items():
        if names is not None and name not in names:
            continue
        value = getattr(record, name)
        try:
            fitted = _fitted(value, hint)
        except TypeError:
            raise BrokerError(f"{prefix}{name} must be {_described(hint)}, not {value!r}") from None
        if is_dataclass(fitted):
            fitted = _checked(fitted, f"{prefix}{name}.")
        elif isinstance(fitted, int) and fitted > _MOST.get(name, fitted):
            raise BrokerError(f"{prefix}{name} must be at most {_MOST[name]}, not {value!r}")
        elif not prefix and name not in _FREE:
            known = _words(name)
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
def _words(name: str) -> frozenset[str]:
    """The words that some personality has for a choice."""
    return frozenset(word for each in PERSONALITIES.values() for word in _texts(getattr(each, name)))


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
    """The value as its type has it.

    Raises:
        TypeError: it is not of this type.
    """
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
