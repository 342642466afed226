"""Exchanges that route each message to a random binding; all bindings are equally likely.

They use the broker's random numbers, so that a broker with a seed repeats its choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.binding import Binding, Destination
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.messages.message import Message

__all__ = ["LocalRandomExchange", "RandomExchange"]


class RandomExchange(Exchange):
    """Routes a message to one of its bindings at random; keys select nothing (RabbitMQ: documented)."""

    type_name = "x-random"
    by_key_alone = False
    chooses = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._destinations: tuple[Destination, ...] | None = None
        """The destinations in the order of their bindings; None if bindings have changed since."""

    @property
    def candidates(self) -> Sequence[Destination]:
        """The possible destinations, once for each binding."""
        if self._destinations is None:
            self._destinations = tuple(each.destination for each in self.bindings.values())
        return self._destinations

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        among = self.candidates
        if len(among) < 2:
            return among
        return (self.virtual_host.state.random.choice(among),)

    def _added(self, binding: Binding) -> None:
        self._destinations = None

    def _removed(self, binding: Binding) -> None:
        self._destinations = None


class LocalRandomExchange(RandomExchange):
    """A random exchange for classic queues on the publisher's node; here all queues are on it.

    Source: RabbitMQ, documented, since 4.0.
    """

    type_name = "x-local-random"

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a key."""
        if routing_key:
            raise PreconditionFailed(f"Non empty binding '{routing_key}' key not permitted")

    def check_destination(self, destination: Destination) -> None:
        """Refuse destinations that are not classic queues."""
        if destination.kind != "queue":
            raise PreconditionFailed("Destination not found")
        if destination.type_name != "classic":
            raise PreconditionFailed(
                f"Queue type rabbit_{destination.type_name}_queue not valid for this exchange type"
            )
