"""The samples that a request asks for with `msg_rates_age` and `msg_rates_incr`, and others of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.management.counters import History
from fakeamqp.management.errors import bad_request

if TYPE_CHECKING:
    from fakeamqp.management.resource import Call

__all__ = ["history_of"]

_LONGEST = 3600
_MOST_SAMPLES = 500
"""Samples of one count, as in RabbitMQ."""
_MOST_IN_ALL = 200_000
"""Samples of one count, over all rows of a list."""


def history_of(call: Call, kind: str) -> History | None:
    """Which samples are asked for; None if none are.

    Args:
        call: the request.
        kind: of the parameters, such as "msg_rates" or "data_rates".

    Raises:
        Refused: 400: these would be too many samples.
    """
    try:
        age, step = int(call.query[f"{kind}_age"]), int(call.query[f"{kind}_incr"])
    except (KeyError, ValueError):
        return None
    if not 0 < step <= age <= _LONGEST:
        return None
    samples = age // step
    call.samples += samples
    if samples > _MOST_SAMPLES or call.samples > _MOST_IN_ALL:
        raise bad_request(
            f"Too many samples: at most {_MOST_SAMPLES} of one count, and {_MOST_IN_ALL} of all rows."
        )
    return History(age, step)
