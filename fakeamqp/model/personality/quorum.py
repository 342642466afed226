"""The choices of a personality for quorum queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["QuorumChoices"]


@dataclass(frozen=True)
class QuorumChoices:
    """Named choices; the defaults are those of RabbitMQ 4.2. The outcomes of deliveries are in `delivery`."""

    delivery_limit: int | None = 20
    """The default delivery limit: how often a message may be returned; None means no limit (RabbitMQ: 20
    since 4.0, pull request 11937)."""
    limit_counts: Literal["returns", "failures"] = "returns"
    """What the delivery limit counts: the returns of a message, or its failed deliveries."""
    failures: tuple[str, ...] = ("lost", "rejected", "refused")
    """The outcomes of deliveries that count as failures."""
    back_without_limit: tuple[str, ...] = ("released", "failed")
    """The outcomes of deliveries that move a message to the end of a queue without a delivery limit."""
    negative_limit_is_none: bool = True
    """A negative delivery limit means no limit; otherwise no message may be returned at all."""
    invalid_limit_is_none: bool = True
    """A delivery limit that is not a number is ignored; otherwise it is a limit that is never reached."""
    shows_acquisitions: bool = False
    """Returned messages have the header x-acquired-count, and their x-delivery-count counts failures only."""
    carries_failures: bool = True
    """A dead letter keeps its count of failures in the quorum queue that it is routed to."""
    priorities: Literal["none", "bands", "levels"] = "bands"
    """Messages have no priority; or two, of which the higher does not starve the lower; or 32 strict ones."""
    single_active_by_priority: bool = True
    """The single active consumer is one of the highest priority; otherwise the oldest one."""
    returns_activate: bool = True
    """A returned message may make another consumer the active one; otherwise only a settled one may."""
    losses_by_age: bool = True
    """Deliveries of a closed channel return in the order of its consumers' ages; otherwise of their tags."""
    counts_properties: bool = False
    """Limits in bytes count a message's properties and its body; otherwise its body only."""
    purges_all: bool = False
    """A purge also removes messages that wait for a retry, and held dead letters."""
    consumers_time_out: bool = False
    """The acknowledgement timeout returns the message to the queue; otherwise it closes the channel."""
    counts_on_get: bool = False
    """basic.get shows x-delivery-count even if it is 0 (RabbitMQ: measured on 3.10.8)."""
    refuses_shared_windows: bool = True
    """No consumer may share its prefetch limit with others (basic.qos with global set)."""
    tick: float = 5.0
    """Seconds between two checks of an expired queue that still has unsettled deliveries."""
