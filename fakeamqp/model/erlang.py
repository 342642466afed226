"""Values in Erlang's notation, as RabbitMQ's texts print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["pairs_term", "term"]


def term(value: Any) -> str:
    """A value from JSON or a field table, as Erlang prints it.

    Text is printed as a binary (`<<"abc">>`), a table as a map.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return f"<<{','.join(str(octet) for octet in value)}>>"
    if isinstance(value, Mapping):
        return "#{" + ",".join(f"{term(key)} => {term(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(term(item) for item in value) + "]"
    return str(value)


def pairs_term(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names with values, as Erlang prints a list of pairs: `[{<<"a">>,1}]`."""
    return "[" + ",".join(f"{{{term(name)},{term(value)}}}" for name, value in pairs) + "]"


def _text(value: str) -> str:
    if not value:
        return "<<>>"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'<<"{quoted}">>' if value.isascii() else f'<<"{quoted}"/utf8>>'
