"""What became of a published message: one object, from which confirms, returns and the trace are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue

__all__ = ["UNROUTABLE", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """Where the message went.

    `queues` are those it was routed to, each once (queue.bind/unique), `refused` those of them that were
    full and would not have it, `unconsumed` is set where an immediate message found no ready consumer.
    """

    queues: tuple[Queue, ...] = ()
    refused: tuple[Queue, ...] = field(default=())
    unconsumed: bool = False

    @property
    def routed(self) -> bool:
        """True where at least one queue was chosen."""
        return bool(self.queues)

    @property
    def accepted(self) -> bool:
        """True where no queue refused it: the publisher gets an ack, else a nack."""
        return not self.refused

    def __str__(self) -> str:
        if self.unconsumed:
            return "no consumer ready"
        if not self.queues:
            return "unroutable"
        if self.refused:
            return "refused by full " + ", ".join(f"queue {queue.name!r}" for queue in self.refused)
        return "routed to " + ", ".join(queue.name for queue in self.queues)


UNROUTABLE = Outcome()
