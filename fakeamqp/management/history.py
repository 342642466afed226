"""The samples that a request asks for with `msg_rates_age` and `msg_rates_incr`, and others of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.management.counters import History

if TYPE_CHECKING:
    from fakeamqp.management.resource import Call

__all__ = ["history_of"]

_LONGEST = 3600


def history_of(call: Call, kind: str) -> History | None:
    """Which samples are asked for; None if none are.

    Args:
        call: the request.
        kind: of the parameters, such as "msg_rates" or "data_rates".
    """
    try:
        age, step = int(call.query[f"{kind}_age"]), int(call.query[f"{kind}_incr"])
    except (KeyError, ValueError):
        return None
    if not 0 < step <= age <= _LONGEST:
        return None
    return History(age, step)
