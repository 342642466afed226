"""Parsers of option values, which Spark passes as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from fakeamqp.errors import near_match

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SECONDS = {
    "": 1.0,
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
}
_OCTETS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
}
_RANGE = re.compile(r"\{([0-9]{1,9})\.\.([0-9]{1,9})\}")
_LONGEST_RANGE = 1024
# Bytes of a short string of AMQP, which names are.
_SHORT = 255
_ENCODED = (
    "special characters of user, password and virtual host have to be percent-encoded, such as %2F for / and "
    "%40 for @"
)
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def text(value: str) -> str:
    """The value as it stands."""
    return value


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


def count(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""

    def parse(value: str) -> int:
        number = int(value) if value.strip().isdecimal() else None
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


def folder(value: str) -> str:
    """The path of a folder. Only shells replace a tilde at its beginning."""
    if value.startswith("~"):
        raise ValueError("a path without ~, which would be the name of a folder here")
    return text(value)


def octets(value: str) -> int:
    """Bytes, of a number with a unit (`64k`, `16m`, `1g`); a number alone is bytes."""
    return int(_quantity(value, _OCTETS, "a size in bytes, such as 65536, 64k or 16m"))


def choice(*known: str) -> Callable[[str], str]:
    """One of some words, in any case."""
    spelled = {word.lower(): word for word in known}

    def parse(value: str) -> str:
        try:
            return spelled[value.strip().lower()]
        except KeyError:
            raise ValueError(f"one of {', '.join(known)}{near_match(value, known, most=0)}") from None

    return parse


def names(value: str) -> tuple[str, ...]:
    """Names of queues with commas between them; or a JSON list, for names that have commas in them."""
    found = _listed(value)
    for name in found:
        short_text(name)
    return found


def _listed(value: str) -> tuple[str, ...]:
    if value.lstrip().startswith("["):
        try:
            given = json.loads(value)
        except json.JSONDecodeError:
            raise ValueError('names with commas between them, or a JSON list such as ["a", "b"]') from None
        if not all(isinstance(name, str) for name in given):
            raise ValueError("a JSON list of strings")
    else:
        given = [name.strip() for name in value.split(",")]
    if not given or not all(given):
        raise ValueError("at least one name, and none of them empty")
    if len(set(given)) < len(given):
        raise ValueError("names that are all different")
    return tuple(given)


def urls(value: str) -> tuple[str, ...]:
    """URLs of brokers, with commas between them. No error shows one: it may have a password."""
    given = _listed(value)
    for url in given:
        scheme, found, _ = url.partition("://")
        if not found or scheme not in ("amqp", "amqps"):
            management = scheme in ("http", "https")
            raise ValueError(
                "one or more URLs such as amqp://user:password@host:5672/ or amqps://host:5671/"
                + (
                    f", and not of the {scheme} API for management, which has a port of its own"
                    if management
                    else f"; {_ENCODED}"
                )
            )
        try:
            parts = urlsplit(url)
            parts.port  # noqa: B018  # Reading it checks it.
        except ValueError:
            raise ValueError(f"a URL with a port from 0 to 65535 and a valid host name; {_ENCODED}") from None
        # pika would take the first part of the name.
        cut_off = parts.fragment or re.search("[/;]", parts.path[1:])
        if cut_off or _has_login_behind_host(parts):
            raise ValueError(
                "a URL with nothing but the name of a virtual host behind host and port, such as "
                f"amqp://host:5672/a%2Fb for a/b; {_ENCODED}"
            )
    return given


def _has_login_behind_host(parts: SplitResult) -> bool:
    """Whether a URL has an @ behind its host: most likely the end of a password with a special character."""
    return "@" in parts.query or ("@" in parts.path and "@" not in parts.netloc)


def http_url(value: str) -> str:
    """A URL of an HTTP API. No error shows it: it may have a password."""
    try:
        parts = urlsplit(value.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment or _has_login_behind_host(parts):
        raise ValueError("a URL such as http://host:15672 or https://user:password@host:15671")
    return value.strip()


def ranged_names(value: str) -> tuple[str, ...]:
    """Names, of which `orders-{0..3}` stands for `orders-0` to `orders-3`. A JSON list is as it stands."""
    found = names(value)
    if not value.lstrip().startswith("["):
        found = tuple(name for each in found for name in _each(each))
    if len(set(found)) < len(found):
        raise ValueError("names that are all different")
    return found


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


def column_names(value: str) -> tuple[str, ...]:
    """Names of columns, with commas between them; their case does not matter."""
    return _listed(value.lower())


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
