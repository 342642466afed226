"""What the arguments of `Broker` may be, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, TypeAlias

from fakeamqp.errors import BrokerError
from fakeamqp.model.limits import Bounds

_Row: TypeAlias = "tuple[Callable[[Any], bool], str]"
"""Whether a value fits, and what fits, in words."""

_LARGEST_PORT = 65_535
_LONGEST_NAME = 255
_LONGEST = 100
"""Characters of a wrong value in a text."""


def _whole(value: object, least: int = 0, most: float = inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_port(value: object) -> bool:
    return _whole(value, most=_LARGEST_PORT)


def _is_host(value: object) -> bool:
    # IPv6 addresses have several colons.
    return isinstance(value, str) and bool(value) and value.count(":") != 1


def _is_tls(value: object) -> bool:
    if isinstance(value, bool):
        return True
    from fakeamqp.runtime.tls import ServerTLS

    return isinstance(value, ServerTLS)


def is_name(value: object) -> bool:
    """Whether a value can be the name of a virtual host, which is a short string in AMQP."""
    return isinstance(value, str) and 0 < len(value.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME


def _are_names(value: object) -> bool:
    """Whether a value is a list of names, or any other iterable of them that can be read again."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return False
    return iter(value) is value or all(map(is_name, value))


def _are_features(value: object) -> bool:
    return isinstance(value, str) or _are_names(value)


_PORT = "a number from 0 to 65535, where 0 takes a free port"
_COUNT: _Row = (_whole, "a number of entries to keep, 0 or more")
_FEATURES: _Row = (_are_features, 'a list of deprecated features, such as ["global_qos"]')

_ROWS: dict[str, _Row] = {
    "host": (_is_host, 'an address or a name without a port, such as "127.0.0.1"'),
    "port": (_is_port, _PORT),
    "tls": (_is_tls, "True, False, or a ServerTLS, such as ServerTLS.from_files(certificate, key)"),
    "users": (
        lambda value: value is None or (isinstance(value, Iterable) and not isinstance(value, (str, bytes))),
        'a mapping of names to passwords, such as {"alice": "secret"}, or a list of User(...)',
    ),
    "virtual_hosts": (_are_names, 'a list of names, such as ["shop"]'),
    "seed": (
        lambda value: value is None or (isinstance(value, (int, str)) and not isinstance(value, bool)),
        "a whole number or a text",
    ),
    "races": (
        lambda value: value is None or isinstance(value, int),
        "True, False or a seed, which is a whole number",
    ),
    "permit": _FEATURES,
    "deny": _FEATURES,
    "history": _COUNT,
    "trace": _COUNT,
    "memory_limit": (
        lambda value: value is None or value == "auto" or _whole(value, 1),
        'a number of bytes above 0, "auto", or None for no limit',
    ),
    "bounds": (
        lambda value: value is None or isinstance(value, Bounds),
        "a Bounds, such as Bounds(consumers_per_channel=100)",
    ),
    "management": (lambda value: isinstance(value, bool), "True or False"),
    "management_port": (lambda value: value is None or _is_port(value), _PORT),
    "management_hosts": (_are_names, 'a list of names, such as ["broker.local"]'),
    "control": (lambda value: isinstance(value, bool), "True or False"),
    "control_port": (lambda value: value is None or _is_port(value), _PORT),
}


_HTTP = ("management", "management_port", "control", "control_port")
"""Each of these asks for the HTTP server."""


def check_arguments(given: Mapping[str, Any]) -> None:
    """Check the arguments of `Broker`, except those that name a personality, a clock or a runtime.

    Raises BrokerError if one has a wrong type or value, or contradicts another one.
    """
    for name, (fits, expected) in _ROWS.items():
        value = given[name]
        if not fits(value):
            raise BrokerError(f"{name} must be {expected}, not {_shown(value)}")
    # A port may be 0, which equals False.
    asked = any(given[name] is not False and given[name] is not None for name in _HTTP)
    if given["management_hosts"] and not asked:
        raise BrokerError("management_hosts is about HTTP: add management=True, or control=True")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
