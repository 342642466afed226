"""The samples that a request asks for with `msg_rates_age` and `msg_rates_incr`, and others of that kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.management.counters import SampleHistory
from fakeamqp.management.errors import Refused, bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.management.resource import ApiCall

_LONGEST = 3600
_MOST_SAMPLES = 500
"""Samples of one count, as in RabbitMQ (measured on 4.3.6)."""
_MOST_IN_ALL = 200_000
"""Samples of one count, over all rows of a list."""
_KINDS = ("lengths", "msg_rates", "data_rates", "node_stats")
_SAMPLED = {"exchanges", "queues", "vhosts", "overview", "nodes", "connections", "channels"}
"""What has samples: the last word of a path that is no variable."""
_PAGED = ("/api/exchanges", "/api/exchanges/{vhost}", "/api/queues", "/api/queues/{vhost}", "/api/vhosts")
"""Lists whose refusals have a name of their own (measured on 4.3.6)."""


def check_ranges(path: str, query: Mapping[str, str]) -> None:
    """Check the parameters of samples, also those that the answer has no use for, as RabbitMQ does.

    Parameters that are no integers, or come alone, mean nothing (measured on 4.3.6).

    Args:
        path: of the resource, with variables in braces.
        query: the parameters.

    Raises:
        Refused: 400: a number is not positive, or there would be too many samples.
    """
    words = [each for each in path.split("/") if not each.startswith("{")]
    if words[-1] not in _SAMPLED:
        return
    for kind in _KINDS:
        asked = _range(query, kind)
        if asked is None:
            continue
        age, step = asked
        if age < 1 or step < 1 or age // step > _MOST_SAMPLES:
            error = "invalid_range_parameters" if path in _PAGED else "bad_request"
            raise Refused(400, error, f"Invalid range parameters: age {age}, incr {step}")


def _range(query: Mapping[str, str], kind: str) -> tuple[int, int] | None:
    try:
        return int(query[f"{kind}_age"]), int(query[f"{kind}_incr"])
    except (KeyError, ValueError):
        return None


def history_of(call: ApiCall, kind: str) -> SampleHistory | None:
    """Which samples are asked for; None if none are.

    Args:
        call: the request.
        kind: of the parameters, such as "msg_rates" or "data_rates".

    Raises:
        Refused: 400: these would be too many samples.
    """
    age, step = _range(call.query, kind) or (0, 0)
    if not 0 < step <= age <= _LONGEST:
        return None
    call.samples += age // step
    if call.samples > _MOST_IN_ALL:
        raise bad_request(f"Too many samples: more than {_MOST_IN_ALL} of all rows.")
    return SampleHistory(age, step)
