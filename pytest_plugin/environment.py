"""Environment variables with the address of a broker: the fixture and the ini option `amqp_env`."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fakeamqp.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["USUAL", "problems", "values"]

USUAL = ("AMQP_URL", "RABBITMQ_URL", "CELERY_BROKER_URL")
"""The variables that are set if a project names none."""
_PARTS = ("url", "host", "port", "user", "password", "virtual_host", "ca_file")


def values(entries: Iterable[str], url: str, ca_file: str = "") -> dict[str, str]:
    """The variables with their values.

    Args:
        entries: a name, whose value is the URL; or `NAME=template`, whose fields are parts of the URL, such
            as `BROKER_HOST={host}`.
        url: of the broker.
        ca_file: the file with the certificate authority of a broker with TLS.
    """
    parts = _parts(url, ca_file)
    split = (entry.partition("=") for entry in entries)
    return {
        name.strip(): (template.strip() if sign else "{url}").format_map(parts)
        for name, sign, template in split
    }


def problems(entries: Iterable[object]) -> str:
    """What is wrong with entries, or ""."""
    named: set[str] = set()
    for entry in entries:
        said = _problem(entry)
        if said:
            return said
        name = str(entry).partition("=")[0].strip()
        if name in named:
            return f"{name!r} is there twice"
        named.add(name)
    return ""


def _problem(entry: object) -> str:
    if not isinstance(entry, str) or not entry.partition("=")[0].strip():
        return f"{entry!r} is neither a name nor NAME=template, such as BROKER_HOST={{host}}"
    try:
        fields = [
            field for _, field, _, _ in string.Formatter().parse(entry.partition("=")[2]) if field is not None
        ]
    except ValueError as error:
        return f"{entry!r}: {error}"
    for field in fields:
        if field not in _PARTS:
            near = nearest(field, _PARTS)
            known = (
                f"did you mean {{{near[0]}}}?"
                if near
                else f"there are {', '.join(f'{{{each}}}' for each in _PARTS)}"
            )
            return f"{entry!r}: there is no {{{field}}}; {known}"
    return ""


def _parts(url: str, ca_file: str) -> dict[str, object]:
    split = urlsplit(url)
    return {
        "url": url,
        "host": split.hostname or "",
        "port": split.port or (5671 if split.scheme == "amqps" else 5672),
        "user": unquote(split.username or "guest"),
        "password": unquote(split.password or "guest"),
        "virtual_host": unquote(split.path[1:]) or "/",
        "ca_file": ca_file,
    }
