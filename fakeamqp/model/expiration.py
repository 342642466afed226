"""The `expiration` property where it means a time to live (RabbitMQ: documented)."""

from __future__ import annotations

import re

from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.queues.options import longest_ttl

__all__ = ["time_to_live"]

_INTEGER = re.compile("[+-]?[0-9]+")


def time_to_live(expiration: str) -> float:
    """The seconds that an `expiration` property in milliseconds gives a message.

    Raises:
        PreconditionFailed: it is no number, negative or beyond ten years; told in RabbitMQ's words.
    """
    number = _INTEGER.match(expiration)
    if number is None:
        problem = "no_integer"
    elif number.end() < len(expiration):
        problem = f'{{leftover_string,"{expiration[number.end() :]}"}}'
    elif int(expiration) < 0:
        problem = f"{{value_negative,{int(expiration)}}}"
    elif int(expiration) > longest_ttl:
        problem = f"{{value_too_large,{int(expiration)}}}"
    else:
        return int(expiration) / 1000
    raise PreconditionFailed(f"invalid expiration '{expiration}': {problem}")
