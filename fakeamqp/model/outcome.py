"""What became of a published message: one object, from which confirms, returns and the trace are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue

__all__ = ["UNROUTABLE", "Delay", "Outcome"]


class Delay(NamedTuple):
    """An exchange keeps the message for so many seconds."""

    exchange: str
    seconds: float

    def __str__(self) -> str:
        return f"delayed for {self.seconds:g} s by exchange {self.exchange!r}"


@dataclass(frozen=True)
class Outcome:
    """Where the message went.

    `queues` are those it was routed to, each once (queue.bind/unique), `refused` those of them that were
    full and would not have it, `unconsumed` is set where an immediate message found no ready consumer.
    `delays` are exchanges that publish it later, beside what became of it at once. They are no route to a
    queue: a mandatory message is returned all the same (RabbitMQ's delayed-message plugin: documented).
    """

    queues: tuple[Queue, ...] = ()
    refused: tuple[Queue, ...] = field(default=())
    unconsumed: bool = False
    delays: tuple[Delay, ...] = ()

    @property
    def routed(self) -> bool:
        """True where at least one queue was chosen."""
        return bool(self.queues)

    @property
    def accepted(self) -> bool:
        """True where no queue refused it: the publisher gets an ack, else a nack."""
        return not self.refused

    def __str__(self) -> str:
        said = [] if self.delays and not self.queues else [self._said_of_queues()]
        return "; ".join([*said, *map(str, self.delays)])

    def _said_of_queues(self) -> str:
        if self.unconsumed:
            return "no consumer ready"
        if not self.queues:
            return "unroutable"
        if self.refused:
            return "refused by full " + ", ".join(f"queue {queue.name!r}" for queue in self.refused)
        return "routed to " + ", ".join(queue.name for queue in self.queues)


UNROUTABLE = Outcome()
