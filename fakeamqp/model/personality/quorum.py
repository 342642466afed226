"""What quorum queues do otherwise from one broker to the next: the part of a personality that is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["QuorumChoices"]


@dataclass(frozen=True)
class QuorumChoices:
    """Named choices; the defaults are those of RabbitMQ 4.2. How deliveries end is said in `delivery`."""

    delivery_limit: int | None = 20
    """How often a message may come back where the queue does not say; None means any number of times."""
    limit_counts: Literal["returns", "failures"] = "returns"
    """What the delivery limit is compared with: how often a message came back, or how often it failed."""
    failures: tuple[str, ...] = ("lost", "rejected", "refused")
    """How deliveries end that have failed."""
    back_without_limit: tuple[str, ...] = ("released", "failed")
    """Deliveries that end so put their message behind all others where there is no delivery limit."""
    negative_limit_is_none: bool = True
    """A negative delivery limit means that there is none; otherwise no message may come back at all."""
    odd_limit_is_none: bool = True
    """A delivery limit that is no number is as good as none given; otherwise it is a limit never reached."""
    shows_acquisitions: bool = False
    """Messages that came back tell of it in x-acquired-count, and in x-delivery-count of failures only."""
    carries_failures: bool = True
    """A dead letter brings along how often it failed, to a quorum queue that it goes to."""
    priorities: Literal["none", "lanes", "levels"] = "lanes"
    """Messages have no priority; or two, of which the higher does not starve the lower; or 32 strict ones."""
    single_active_by_priority: bool = True
    """The single active consumer is one of the highest priority; otherwise the one that came first."""
    returns_activate: bool = True
    """A message that comes back may make another consumer the active one; otherwise only what is settled."""
    losses_by_age: bool = True
    """What a channel held comes back by age of its consumers; otherwise by consumer tag."""
    counts_properties: bool = False
    """The bytes of a message's properties count for limits of bytes, and not just those of its body."""
    purges_all: bool = False
    """A purge takes out messages that wait for a retry or as dead letters, too."""
    consumers_time_out: bool = False
    """The queue takes back what consumers hold too long; otherwise their channel is closed."""
    refuses_shared_windows: bool = True
    """No consumer may share its window with others (basic.qos with global set)."""
    tick: float = 5.0
    """Seconds until a queue is looked at again that has expired, but for what clients hold."""
