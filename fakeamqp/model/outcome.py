"""The outcome of a publish: one object, from which confirms, returns and the trace are derived."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.model.queues import Queue

__all__ = ["UNROUTABLE", "ExchangeDelay", "Outcome"]


class ExchangeDelay(NamedTuple):
    """An exchange delays the message by so many seconds."""

    exchange: str
    seconds: float

    def __str__(self) -> str:
        return f"delayed for {self.seconds:g} s by exchange {self.exchange!r}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one publish.

    Attributes:
        queues: the queues it was routed to, each once (queue.bind/unique).
        refused: those of `queues` that were full and refused it.
        unconsumed: an immediate message found no ready consumer.
        delays: the exchanges that delay it, beside the queues that it reached at once. A delay is not a route
            to a queue: a mandatory message is returned (RabbitMQ's delayed-message plugin: documented).
        late: those of `queues` that it reaches later; see `fakeamqp.model.races`.
    """

    queues: tuple[Queue, ...] = ()
    refused: tuple[Queue, ...] = field(default=())
    unconsumed: bool = False
    delays: tuple[ExchangeDelay, ...] = ()
    late: tuple[Queue, ...] = ()

    @property
    def routed(self) -> bool:
        """True if it was routed to at least one queue."""
        return bool(self.queues)

    @property
    def accepted(self) -> bool:
        """True if no queue refused it: the publisher gets an ack, otherwise a nack."""
        return not self.refused

    def complete(self, refused: Iterable[Queue]) -> None:
        """Note the queues that refused it, once an operation of several slices has reached all of them."""
        object.__setattr__(self, "refused", tuple(refused))

    def __str__(self) -> str:
        queues = [] if self.delays and not self.queues else [self._queues_text()]
        return "; ".join([*queues, *map(str, self.delays)])

    def _queues_text(self) -> str:
        if self.unconsumed:
            return "no consumer ready"
        if not self.queues:
            return "unroutable"
        if self.refused:
            return "refused by full " + ", ".join(f"queue {queue.name!r}" for queue in self.refused)
        return "routed to " + ", ".join(printable(queue.name) for queue in self.queues)


UNROUTABLE = Outcome()
