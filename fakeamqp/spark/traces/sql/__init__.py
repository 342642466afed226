"""The shipped queries: files of SQL over the views `trace` and `deliveries`, and checks."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

__all__ = ["QUERIES", "Query", "text_of"]


class Query(NamedTuple):
    """A query: its title, whether a correct broker has no rows, and its description if it has no file."""

    title: str
    expects_nothing: bool = False
    description: str = ""


QUERIES: dict[str, Query] = {
    "latency_by_queue": Query("Latency by queue: seconds from the queue to the first delivery"),
    "redelivery_rate": Query("Deliveries and redeliveries by queue"),
    "unacked_age": Query("How long clients held messages: seconds from delivery to settlement"),
    "unacked_high_water": Query(
        "Most messages held at once, by consumer and by channel",
        description="The maximum of unsettled messages of each consumer, and of all consumers of a channel. "
        "`scope` is 'consumer' or 'channel'. The limit of a consumer is its prefetch at the start; the limit "
        "of a channel is that of the latest basic.qos with `global` (0-9-1/basic.qos/prefetch-count-01). "
        "Gets have no limit (0-9-1/basic.qos/get-unaffected). Each delivery is compared with the limit at "
        "its time. `exceedances` counts deliveries beyond the limit, `first_exceedance` is the number of the "
        "first one; a correct broker has 0 and null.",
    ),
    "fifo_violations": Query(
        "Deliveries out of order",
        expects_nothing=True,
        description="First deliveries after the delivery of a message that was enqueued later. Messages of "
        "one priority keep their order from a queue to one channel, unless they are redelivered "
        "(0-9-1/server-model/order-preserved). So each channel (0-9-1/server-model/weak-fifo) and each "
        "priority is checked on its own. Redeliveries, dead letters and delayed messages are skipped. "
        "`overtaken_by` is the latest enqueued message that was delivered before.",
    ),
    "conformance": Query(
        "Violations of the protocol",
        expects_nothing=True,
        description="Frames and events that violate a rule of the protocol, each with the rule, the peer "
        "that violated it (`broken_by`), and the rule's id in the specification, if it is in there (`spec`). "
        "Connections of other protocols than 0-9-1 are skipped. If the opening of a channel is not in the "
        "trace, only closes and contents are checked on it. Settlements that a client sends after the broker "
        "has closed are not checked, because they may have been sent before.",
    ),
}
"""By name: that of the file if there is one, and of the method of `Traces`."""


@cache
def text_of(name: str) -> str:
    """The SQL of a query or view, by its name."""
    from importlib.resources import files

    return files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
