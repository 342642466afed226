"""Credentials, which the reprs of decoded methods and traces do not show."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["SECRET_FIELDS", "hide_in_urls", "shown_fields"]

SECRET_FIELDS = frozenset(("response", "challenge", "new_secret", "security_token"))
"""Fields of methods of any protocol; no other fields have these names."""
_IN_A_URL = re.compile(r"(?<=://)([^/:@\s]*):[^/\s]+(?=@)")
"""Some clients send the URL that they connect to among their properties."""
# Text in a table stands between bytes that are not text, so a match never runs into the next field.
_IN_THE_BYTES_OF_A_URL = re.compile(rb"(?<=://)([^/:@\x00-\x20]*:)([^/\x00-\x20]+)(?=@)")


def shown_fields(fields: Iterable[tuple[str, object]]) -> str:
    """Fields for a repr; a secret is as many asterisks."""
    return ", ".join(f"{name}={_shown(name, value)}" for name, value in fields)


def _shown(name: str, value: object) -> str:
    if name in SECRET_FIELDS and isinstance(value, bytes):
        return repr(b"*" * len(value))
    text = repr(value)
    return _IN_A_URL.sub(r"\1:***", text) if name == "client_properties" else text


def hide_in_urls(octets: bytes) -> bytes:
    """Replace passwords in URLs by as many asterisks."""
    return _IN_THE_BYTES_OF_A_URL.sub(lambda found: found[1] + b"*" * len(found[2]), octets)
