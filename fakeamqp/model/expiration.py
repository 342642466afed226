"""The `expiration` property as a time to live (RabbitMQ: documented)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fakeamqp.model.arguments.reader import LONGEST_TTL
from fakeamqp.model.erlang import Atom, pretty
from fakeamqp.model.errors import PreconditionFailed

if TYPE_CHECKING:
    from fakeamqp.model.erlang import Plain

__all__ = ["time_to_live"]

_INTEGER = re.compile("[+-]?[0-9]+")


def time_to_live(expiration: str) -> float:
    """The time to live in seconds from an `expiration` property in milliseconds.

    Raises:
        PreconditionFailed: it is not a number, negative or beyond ten years; with RabbitMQ's text.
    """
    number = _INTEGER.match(expiration)
    if number is None:
        problem: Atom | tuple[Plain, ...] = Atom("no_integer")
    elif number.end() < len(expiration):
        problem = Atom("leftover_string"), expiration[number.end() :]
    elif int(expiration) < 0:
        problem = Atom("value_negative"), int(expiration)
    elif int(expiration) > LONGEST_TTL:
        problem = Atom("value_too_large"), int(expiration)
    else:
        return int(expiration) / 1000
    text = f"invalid expiration '{expiration}': "
    raise PreconditionFailed(text + pretty(problem, text))
