"""The queries of a report, and what their rows mean."""

from __future__ import annotations

from typing import NamedTuple


class Query(NamedTuple):
    """A query about traces.

    Args:
        title: what the rows show, as a heading.
        description: what the rows show in detail, and what is left out.
        expects_nothing: whether a correct broker has no rows.
    """

    title: str
    description: str
    expects_nothing: bool = False


QUERIES: dict[str, Query] = {
    "latency_by_queue": Query(
        "Latency by queue: seconds from the queue to the first delivery",
        "How long messages waited in each queue for their first delivery, in seconds. A message counts once "
        "for each time that it entered the queue. A dead letter that is delivered at once has the latency 0.",
    ),
    "redelivery_rate": Query(
        "Deliveries and redeliveries by queue",
        "The share of redeliveries in the deliveries of each queue, and the settlement of deliveries.",
    ),
    "unacked_age": Query(
        "How long clients held messages: seconds from delivery to settlement",
        "The seconds from each delivery to its settlement, by queue. `unsettled` counts deliveries that are "
        "unsettled at the end of the trace, `oldest_unsettled` is the highest age of them.",
    ),
    "unacked_high_water": Query(
        "Most messages held at once, by consumer and by channel",
        "The maximum of unsettled messages of each consumer, and of all consumers of a channel. "
        "`scope` is 'consumer' or 'channel'. The limit of a consumer is its prefetch at the start; the limit "
        "of a channel is that of the latest basic.qos with `global` (0-9-1/basic.qos/prefetch-count-01). "
        "Gets have no limit (0-9-1/basic.qos/get-unaffected). Each delivery is compared with the limit at "
        "its time. `exceedances` counts deliveries beyond the limit, `first_exceedance` is the number of the "
        "first one; a correct broker has 0 and null.",
    ),
    "fifo_violations": Query(
        "Deliveries out of order",
        "First deliveries after the delivery of a message that was enqueued later. Messages of "
        "one priority keep their order from a queue to one channel, unless they are redelivered "
        "(0-9-1/server-model/order-preserved). So each channel (0-9-1/server-model/weak-fifo) and each "
        "priority is checked on its own. Redeliveries, dead letters and delayed messages are skipped. "
        "`overtaken_by` is the latest enqueued message that was delivered before.",
        expects_nothing=True,
    ),
    "conformance": Query(
        "Violations of the protocol",
        "Frames and events that violate a rule of the protocol, each with the rule, the peer "
        "that violated it (`broken_by`), and the rule's id in the specification, if it is in there (`spec`). "
        "Connections of other protocols than 0-9-1 are skipped. If the opening of a channel is not in the "
        "trace, only closes and contents are checked on it. Settlements that a client sends after the broker "
        "has closed are not checked, because they may have been sent before.",
        expects_nothing=True,
    ),
}
"""By name: that of the method of `fakeamqp.spark.traces.Traces`."""
