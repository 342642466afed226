"""Bodies of requests: how large they may be, and their JSON, with bounds on what it takes to decode it.

JSON is decoded on the thread of the HTTP server, outside of the engine. Python's decoder keeps the
interpreter from the other threads meanwhile, and needs up to thirty times the memory of the text. So the size
of a body, the number of its values and their depth have bounds.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect

from fakeamqp.management.errors import Refused, bad_request

if TYPE_CHECKING:
    from starlette.requests import Request

LARGEST_BODY = 10_000_000
"""Bytes, as in RabbitMQ (measured on 4.3.6)."""
_ALL_BODIES = 4 * LARGEST_BODY
"""Bytes of all bodies that come in at the same time."""
_MOST_TOKENS = 500_000
"""Brackets, commas and colons. 10 000 queues in definitions have some 200 000."""
_DEEPEST = 100
_MOST_DIGITS = 308
"""Digits of an integer; a longer one may be too large for a float."""

_STRING = re.compile(rb'"[^"]*"')
_BRACKET = re.compile(rb"[\[\]{}]")
_MAYBE_LONE = re.compile(r"\\u[dD][89a-fA-F]")


async def read_body(request: Request, most: int = LARGEST_BODY) -> bytes:
    """The body of a request.

    Raises:
        Refused: 400: it is too large; 503: too much comes in at the same time.
    """
    state = request.app.state
    too_large = bad_request("Exceeded HTTP request body size limit")  # Measured.
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most:
        raise too_large
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            state.body_octets += len(piece)
            if size > most:
                raise too_large
            if state.body_octets > _ALL_BODIES:
                raise Refused(503, "service_unavailable", "Too many large requests at the same time.")
            pieces.append(piece)
    except ClientDisconnect:
        raise bad_request("The client has gone.") from None
    finally:
        state.body_octets -= size
    return b"".join(pieces)


def decoded(body: bytes) -> Any:
    """The value of a body that is JSON in UTF-8, as RabbitMQ takes it (measured on 4.3.6).

    Raises:
        ValueError: it is no JSON, or has NaN, a number that no float can hold, or half a surrogate pair.
        Refused: 400: it has too many values, or they are too deep.
    """
    text = body.decode("utf-8")
    _check_extent(body)
    value = json.loads(
        text, parse_float=_number, parse_int=_integer, parse_constant=_no_constant, object_hook=_same
    )
    if _MAYBE_LONE.search(text):
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _check_extent(body: bytes) -> None:
    # Without escapes every quote begins or ends a string.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * _MOST_TOKENS + 2:
        raise _too_much()
    outside = _STRING.sub(b"", plain)
    if sum(map(outside.count, (b"[", b"{", b",", b":"))) > _MOST_TOKENS:
        raise _too_much()
    depth = 0
    for bracket in _BRACKET.findall(outside):
        depth += 1 if bracket in b"[{" else -1
        if depth > _DEEPEST:
            raise bad_request(f"The JSON is nested deeper than {_DEEPEST} levels.")


def _too_much() -> Refused:
    return bad_request(f"The JSON has too many values: more than {_MOST_TOKENS} brackets, commas and colons.")


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"no float is as large as {text[:20]}")
    return value


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError("an integer has too many digits")
    return int(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _same(value: dict[str, Any]) -> dict[str, Any]:
    """A Python function, so that other threads can run between two objects."""
    return value
