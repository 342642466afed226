"""Parsers of option values, which Spark passes as text. Each ValueError says what the text has to be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, urlsplit

from fakeamqp.errors import near_match

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond"), 0.001),
    **dict.fromkeys(("", "s", "sec", "second"), 1.0),
    **dict.fromkeys(("m", "min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3600.0),
}
_BYTES = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_WHOLE = re.compile(r"\s*(-?[0-9]{1,18})\s*")
_RANGE = re.compile(r"\{([0-9]{1,9})\.\.([0-9]{1,9})\}")
_LONGEST_RANGE = 1024
# Bytes of a short string of AMQP, which names are.
_SHORT = 255
_ENCODED = (
    "special characters of user, password and virtual host have to be percent-encoded, such as %2F for / and "
    "%40 for @"
)


def short_text(value: str) -> str:
    """The value as it stands, which AMQP sends as a short string."""
    if len(value.encode()) > _SHORT:
        raise ValueError(f"at most {_SHORT} bytes of UTF-8")
    return value


def boolean(value: str) -> bool:
    """True or false, in any case."""
    try:
        return _TRUTH[value.strip().lower()]
    except KeyError:
        raise ValueError("true or false") from None


def whole(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""

    def parse(value: str) -> int:
        match = _WHOLE.fullmatch(value)
        number = int(match[1]) if match else None
        if number is None or number < least or (most is not None and number > most):
            raise ValueError(f"a whole number from {least}" + ("" if most is None else f" to {most}"))
        return number

    return parse


def duration(value: str) -> float:
    """Seconds, of a number with a unit (`500ms`, `30s`, `2 minutes`); a number alone is seconds."""
    return _quantity(value, _SECONDS, "a time such as 500ms, 30s or 2 minutes", plural=True)


def timeout(value: str) -> float:
    """Seconds, as `duration`, more than none."""
    seconds = duration(value)
    if not seconds:
        raise ValueError("a time above 0, such as 500ms, 30s or 2 minutes")
    return seconds


def size(value: str) -> int:
    """Bytes, of a number with a unit (`64k`, `16m`, `1g`); a number alone is bytes."""
    return int(_quantity(value, _BYTES, "a size in bytes, such as 65536, 64k or 16m"))


def folder(value: str) -> str:
    """The path of a folder. Only shells replace a tilde at its beginning."""
    if value.startswith("~"):
        raise ValueError("a path without ~, which would be the name of a folder here")
    return value


def choice(*known: str) -> Callable[[str], str]:
    """One of some words, in any case."""
    spelled = {word.lower(): word for word in known}

    def parse(value: str) -> str:
        try:
            return spelled[value.strip().lower()]
        except KeyError:
            raise ValueError(f"one of {', '.join(known)}{near_match(value, known, most=0)}") from None

    return parse


def switch(on: str, off: str) -> Callable[[str], bool]:
    """True for the first of two words, False for the second, in any case."""
    parse = choice(on, off)
    return lambda value: parse(value) == on


def pattern(value: str) -> str:
    """A regular expression, as text."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression of Python ({error})") from None
    return value


def texts(value: str) -> tuple[str, ...]:
    """Texts with commas between them; or a JSON list, for texts that have commas in them."""
    if value.lstrip().startswith("["):
        given = _json(value)
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise ValueError('names with commas between them, or a JSON list of strings such as ["a", "b"]')
    else:
        given = [name.strip() for name in value.split(",")]
    if not given or not all(given):
        raise ValueError("at least one name, and none of them empty")
    if len(set(given)) < len(given):
        raise ValueError("names that are all different")
    return tuple(given)


def names(value: str) -> tuple[str, ...]:
    """Names of queues, as `texts`."""
    return tuple(short_text(name) for name in texts(value))


def ranged_names(value: str) -> tuple[str, ...]:
    """Names, of which `orders-{0..3}` stands for `orders-0` to `orders-3`. A JSON list is as it stands."""
    found = names(value)
    if not value.lstrip().startswith("["):
        found = tuple(name for each in found for name in _each(each))
    if len(set(found)) < len(found):
        raise ValueError("names that are all different")
    return found


def column_names(value: str) -> tuple[str, ...]:
    """Names of columns, as `texts`; their case does not matter."""
    return texts(value.lower())


def by_stream(value: str) -> str:
    """One value, or JSON with a value for every stream, as text. Kafka's JSON has values for partitions."""
    given = _json(value)
    if isinstance(given, dict) and any(isinstance(each, dict) for each in given.values()):
        example = {name: [*each.values(), 0][0] for name, each in given.items() if isinstance(each, dict)}
        raise ValueError(
            f"one value for every stream, such as {json.dumps(example)}: a stream has no partitions, and "
            "those of a super stream are streams with names of their own"
        )
    return value


def urls(value: str) -> tuple[str, ...]:
    """URLs of brokers, with commas between them. No error shows one: it may have a password."""
    given = texts(value)
    for url in given:
        scheme, found, _ = url.partition("://")
        if not found or scheme not in ("amqp", "amqps"):
            raise ValueError(
                "one or more URLs such as amqp://user:password@host:5672/ or amqps://host:5671/"
                + (
                    f", and not of the {scheme} API for management, which has a port of its own"
                    if scheme in ("http", "https")
                    else f"; {_ENCODED}"
                )
            )
        try:
            parts = urlsplit(url)
            parts.port  # noqa: B018  # Reading it checks it.
        except ValueError:
            raise ValueError(f"a URL with a port from 0 to 65535 and a valid host name; {_ENCODED}") from None
        # Most likely the rest of a password, or the separators of a virtual host's name.
        if parts.fragment or re.search("[/;]", parts.path[1:]) or _has_login_behind_host(parts):
            raise ValueError(
                "a URL with nothing but the name of a virtual host behind host and port, such as "
                f"amqp://host:5672/a%2Fb for a/b; {_ENCODED}"
            )
    return given


def http_url(value: str) -> str:
    """A URL of an HTTP API. No error shows it: it may have a password."""
    with suppress(ValueError):
        parts = urlsplit(value.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        if valid and not (parts.query or parts.fragment or _has_login_behind_host(parts)):
            return value.strip()
    raise ValueError("a URL such as http://host:15672 or https://user:password@host:15671")


def _has_login_behind_host(parts: SplitResult) -> bool:
    """Whether a URL has an @ behind its host: most likely the end of a password with a special character."""
    return "@" in parts.query or ("@" in parts.path and "@" not in parts.netloc)


def _each(name: str) -> list[str]:
    match = _RANGE.search(name)
    if match is None:
        return [name]
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _LONGEST_RANGE:
        raise ValueError(f"a range such as {{0..3}}, of at most {_LONGEST_RANGE} names")
    return [
        f"{name[: match.start()]}{number:0{len(match[1])}d}{rest}"
        for number in range(first, last + 1)
        for rest in _each(name[match.end() :])
    ]


def _json(value: str) -> Any:
    """The value of a text in JSON, None if it is none."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _quantity(
    value: str, units: dict[str, float] | dict[str, int], expected: str, plural: bool = False
) -> float:
    match = _QUANTITY.fullmatch(value)
    unit = match.group(2).lower() if match else ""
    if plural and unit not in units:
        unit = unit.removesuffix("s")
    if match is None or unit not in units:
        raise ValueError(expected)
    return float(match.group(1)) * units[unit]
