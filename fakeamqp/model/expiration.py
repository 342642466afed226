"""The `expiration` property as a time to live (RabbitMQ: documented)."""

from __future__ import annotations

import re

from fakeamqp.model.arguments.reader import LONGEST_TTL
from fakeamqp.model.errors import PreconditionFailed

__all__ = ["time_to_live"]

_INTEGER = re.compile("[+-]?[0-9]+")


def time_to_live(expiration: str) -> float:
    """The time to live in seconds from an `expiration` property in milliseconds.

    Raises:
        PreconditionFailed: it is not a number, negative or beyond ten years; with RabbitMQ's text.
    """
    number = _INTEGER.match(expiration)
    if number is None:
        problem = "no_integer"
    elif number.end() < len(expiration):
        problem = f'{{leftover_string,"{expiration[number.end() :]}"}}'
    elif int(expiration) < 0:
        problem = f"{{value_negative,{int(expiration)}}}"
    elif int(expiration) > LONGEST_TTL:
        problem = f"{{value_too_large,{int(expiration)}}}"
    else:
        return int(expiration) / 1000
    raise PreconditionFailed(f"invalid expiration '{expiration}': {problem}")
