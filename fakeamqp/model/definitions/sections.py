"""The format of definitions: their sections, and the keys of each section's entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.names import LONGEST_NAME, octets_of
from fakeamqp.model.parameters import hint

__all__ = ["METADATA_KEYS", "DefinitionsError", "check_metadata", "checking", "shown"]

_INFORMATION = frozenset(
    (
        "rabbit_version",
        "rabbitmq_version",
        "product_name",
        "product_version",
        "rabbitmq_definition_format",
        "original_vhost_name",
        "original_cluster_name",
        "explanation",
        "description",
        "metadata",
        "limits",
    )
)
"""Keys that describe the definitions, or the single virtual host that they are for."""


class SectionKind(NamedTuple):
    """What the value of a key has to be."""

    expected: str
    """For texts, such as "a string"."""
    fits: Callable[[Any], bool]


_TEXT = SectionKind("a string", lambda value: isinstance(value, str))
_SHOWN_OF_LONG = 40
_NAME = SectionKind("a string", _TEXT.fits)
"""A short string of the protocols. (RabbitMQ loads longer names, which no client can then use: measured.)"""
_TEXT_OR_NULL = SectionKind("a string or null", lambda value: value is None or isinstance(value, str))
_FLAG = SectionKind("true or false", lambda value: isinstance(value, bool))
_FLAG_OR_NULL = SectionKind("true, false or null", lambda value: value is None or isinstance(value, bool))
_OBJECT_OR_NULL = SectionKind("an object or null", lambda value: value is None or isinstance(value, Mapping))
_ARGUMENTS = SectionKind(
    "an object", lambda value: value is None or value == [] or isinstance(value, Mapping)
)
"""RabbitMQ exports an empty list where there are no arguments (measured)."""
_TAGS = SectionKind(
    "a list of strings, or one string", lambda value: isinstance(value, str) or _is_texts(value)
)
_LIMITS = SectionKind(
    "an object", lambda value: value is None or isinstance(value, Mapping) or _is_list(value)
)
"""Or a list of pairs, as some versions of RabbitMQ export (measured)."""
_ANY = SectionKind("any value", lambda _: True)
"""Whoever uses it checks it."""

_METADATA: dict[str, SectionKind] = {
    "description": _TEXT,
    "tags": _TAGS,
    "default_queue_type": _TEXT_OR_NULL,
    "protected_from_deletion": _FLAG_OR_NULL,
}
METADATA_KEYS = tuple(_METADATA)

_SECTIONS: dict[str, tuple[dict[str, SectionKind], dict[str, SectionKind]]] = {
    # section: (required keys, further keys)
    "vhosts": (
        {"name": _NAME},
        {**_METADATA, "metadata": _OBJECT_OR_NULL, "limits": _LIMITS, "tracing": _FLAG},
    ),
    "users": (
        {"name": _NAME},
        {
            "password": _TEXT_OR_NULL,
            "password_hash": _TEXT_OR_NULL,
            "hashing_algorithm": _TEXT_OR_NULL,
            "tags": _TAGS,
            "limits": _LIMITS,
        },
    ),
    "permissions": (
        {"user": _NAME, "vhost": _NAME},
        {"configure": _TEXT, "write": _TEXT, "read": _TEXT},
    ),
    "topic_permissions": (
        {"user": _NAME, "vhost": _NAME, "exchange": _NAME},
        {"write": _TEXT, "read": _TEXT},
    ),
    "parameters": ({"component": _NAME, "name": _NAME, "value": _ANY}, {"vhost": _NAME}),
    "global_parameters": ({"name": _NAME, "value": _ANY}, {}),
    "policies": (
        {"name": _NAME, "pattern": _ANY, "definition": _ANY},
        {"vhost": _NAME, "apply-to": _ANY, "priority": _ANY},
    ),
    "exchanges": (
        {"name": _NAME, "type": _NAME},
        {
            "vhost": _NAME,
            "durable": _FLAG,
            "auto_delete": _FLAG,
            "internal": _FLAG,
            "arguments": _ARGUMENTS,
            "policy": _ANY,
        },
    ),
    "queues": (
        {"name": _NAME},
        {
            "vhost": _NAME,
            "durable": _FLAG,
            "auto_delete": _FLAG,
            "arguments": _ARGUMENTS,
            "type": _NAME,
            "policy": _ANY,
            "exclusive": _FLAG,
        },
    ),
    "bindings": (
        {"source": _NAME, "destination": _NAME},
        {
            "vhost": _NAME,
            "destination_type": _TEXT,
            "routing_key": _NAME,
            "arguments": _ARGUMENTS,
            "properties_key": _ANY,
        },
    ),
}


class DefinitionsError(FakeAMQPError):
    """The definitions cannot be loaded; the text says which entry and why."""

    __module__ = "fakeamqp"


_DEEPEST = 100
"""Levels of an entry: views and exports of deeper values would exceed Python's recursion limit."""


def checking(definitions: Mapping[str, Any]) -> Iterator[None]:
    """Check that every section and every key is known, no required key is missing, and every type is right.

    Each step checks one entry.

    Raises:
        DefinitionsError: a section or an entry is invalid; the text names the key, what it should be and what
            it is, or the nearest match.
    """
    for key, value in definitions.items():
        if key in _INFORMATION:
            kind = {"original_vhost_name": _NAME, "limits": _LIMITS}.get(key, _ANY)
            _check_value("definitions", key, value, kind)
            continue
        if key not in _SECTIONS:
            raise DefinitionsError(
                f"definitions: unknown key {key!r}{hint(str(key), (*_SECTIONS, *_INFORMATION))}"
            )
        if not _is_list(value):
            raise DefinitionsError(f"definitions: {key} must be a list of objects, got {value!r}")
        required, further = _SECTIONS[key]
        known = {**required, **further}
        for entry in value:
            _check_depth(key, entry)
            _check_entry(key, entry, required, known)
            yield


def _check_depth(section: str, entry: Any) -> None:
    level = [entry]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, (Mapping, list, tuple))
            for inner in (each.values() if isinstance(each, Mapping) else each)
        ]
        if not level:
            return
    name = entry.get("name") if isinstance(entry, Mapping) else None
    raise DefinitionsError(f"{section}: the values of {name!r} are nested deeper than {_DEEPEST} levels")


def check_metadata(where: str, metadata: Any) -> None:
    """Check the metadata of a virtual host.

    Raises:
        DefinitionsError: a key is unknown or has a wrong type.
    """
    _check_entry(where, metadata, {}, _METADATA)


def shown(entry: Mapping[str, Any]) -> str:
    """An entry for the text of an error, without passwords, and with the beginnings of long names."""
    return repr(
        {
            key: _HIDDEN if key in _SECRET and value else _beginning(value) if _is_long(value) else value
            for key, value in entry.items()
        }
    )


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and octets_of(value) > LONGEST_NAME


def _beginning(name: str) -> str:
    return f"{name[:_SHOWN_OF_LONG]}..."


_SECRET = ("password", "password_hash")
_HIDDEN = "***"


def _check_entry(
    section: str, entry: Any, required: Mapping[str, SectionKind], known: Mapping[str, SectionKind]
) -> None:
    if not isinstance(entry, Mapping):
        raise DefinitionsError(f"{section}: expected an object, got {entry!r}")
    for key in entry:
        if key not in known:
            raise DefinitionsError(f"{section}: unknown key {key!r}{hint(str(key), known)} in {shown(entry)}")
    for key in sorted(set(required) - entry.keys()):
        raise DefinitionsError(f"{section}: {key!r} is missing in {shown(entry)}")
    for key, value in entry.items():
        _check_value(section, key, value, known[key], entry)


def _check_value(
    section: str, key: str, value: Any, kind: SectionKind, entry: Mapping[str, Any] | None = None
) -> None:
    """Check one value; `entry` is shown in the text of an error."""
    too_long = kind is _NAME and _is_long(value)
    if not too_long and kind.fits(value) and not _has_unpaired_surrogate(value):
        return
    where = "" if entry is None else f" in {shown(entry)}"
    if too_long:
        raise DefinitionsError(
            f"{section}: {key!r} must have at most {LONGEST_NAME} bytes in UTF-8, and "
            f"{_beginning(value)!r} has {octets_of(value)}{where}"
        )
    if not kind.fits(value):
        got = _HIDDEN if key in _SECRET else repr(value)
        raise DefinitionsError(f"{section}: {key!r} must be {kind.expected}, got {got}{where}")
    raise DefinitionsError(
        f"{section}: {key!r} has an unpaired surrogate, which has no bytes in UTF-8; take it out{where}"
    )


def _has_unpaired_surrogate(value: Any) -> bool:
    """Whether a text in the value has no bytes. Those that stand for bytes that are not UTF-8 have."""
    if value is None or isinstance(value, int) or (isinstance(value, str) and value.isascii()):
        return False
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, str):
            try:
                each.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                return True
        elif isinstance(each, Mapping):
            rest += [*each, *each.values()]
        elif isinstance(each, (list, tuple)):
            rest += each
    return False


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _is_texts(value: Any) -> bool:
    return _is_list(value) and all(isinstance(each, str) for each in value)
