"""Where a message goes: from an exchange through bindings and alternate exchanges to queues.

What depends on exchange and routing key alone is remembered until any binding, queue or exchange changes:
programs publish with the same few keys again and again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.carbon_copies import carbon_copies, without_blind_copies
from fakeamqp.model.errors import AccessRefused, InternalError
from fakeamqp.model.exchanges import Exchange
from fakeamqp.model.outcome import UNROUTABLE, Delay, Outcome

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.message import Message
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Ask", "Router"]

Ask: TypeAlias = "Callable[[Exchange, Sequence[str], Message], tuple[float, Iterable[Target]]]"
"""Answers for an exchange: for how many seconds it keeps the message, and where it passes it on at once."""

_MOST_REMEMBERED = 10_000


class Router:
    """The routing of one virtual host."""

    __slots__ = ("_remembered", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._remembered: dict[tuple[str, str], Outcome] = {}

    def forget(self) -> None:
        """Something that routing depends on has changed."""
        self._remembered.clear()

    def plan(self, message: Message, *, alternates: bool = True) -> tuple[Message, Outcome]:
        """Decide where a published message goes, without sending it there.

        `alternates` says whether it may go by alternate exchanges where there is no other way.

        What an exchange keeps for later it has when this returns: also where the message is part of a
        transaction, whatever becomes of that (RabbitMQ's delayed-message plugin: documented).

        Returns:
            The message as the queues are to have it, and the queues.

        Raises:
            NotFound: there is no such exchange.
            AccessRefused: it is internal (basic.publish/exchange-02).
            PreconditionFailed: a header that names further routing keys is no array.
            InternalError: an exchange cannot work with what a header holds.
        """
        headers = message.properties.headers
        if headers and ("CC" in headers or "BCC" in headers) and self._routes_by_cc_headers:
            self.check_publishable(message.exchange)
            message.copies = carbon_copies(headers)
            message = without_blind_copies(message)
            return message, self._walk(
                message, self._virtual_host.exchange(message.exchange), None, alternates
            )
        outcome = self._remembered.get((message.exchange, message.routing_key)) if alternates else None
        if outcome is None:
            self.check_publishable(message.exchange)
            outcome = self._walk(message, self._virtual_host.exchange(message.exchange), None, alternates)
        return message, outcome

    @property
    def _routes_by_cc_headers(self) -> bool:
        return self._virtual_host.state.personality.routes_by_cc_headers

    def check_publishable(self, exchange: str) -> None:
        """May anybody publish to this exchange?

        Raises:
            NotFound: there is none.
            AccessRefused: it is internal.
        """
        if self._virtual_host.exchange(exchange).internal:
            raise AccessRefused(
                f"cannot publish to internal exchange '{exchange}' in vhost '{self._virtual_host.name}'"
            )

    def preview(self, message: Message) -> tuple[str, ...]:
        """The names of the queues a message would go to, at once or after a delay. Nothing changes by asking.

        Raises:
            NotFound, PreconditionFailed, InternalError: see `plan`.
        """
        headers = message.properties.headers
        if headers and ("CC" in headers or "BCC" in headers) and self._routes_by_cc_headers:
            message.copies = carbon_copies(headers)
        random = self._virtual_host.state.random
        drawn = random.getstate()
        try:
            outcome = self._walk(message, self._virtual_host.exchange(message.exchange), _at_once)
        finally:
            random.setstate(drawn)
        return tuple(queue.name for queue in outcome.queues)

    def route(self, message: Message, first: Exchange | None = None, *, alternates: bool = True) -> Outcome:
        """The queues for a message whose headers name no further keys.

        That is a dead letter, a delayed one, one that goes to the alternate exchange of its queue, or one
        that a client of 0-10 publishes.

        The way begins at `first`, or else at the exchange the message was published to; `alternates` is as in
        `plan`. Where an exchange cannot work with what a header holds there is nobody to tell, and no queue.

        Raises:
            NotFound: there is no such exchange.
        """
        if first is None and message.copies is None and alternates:
            known = self._remembered.get((message.exchange, message.routing_key))
            if known is not None:
                return known
        try:
            first = first or self._virtual_host.exchange(message.exchange)
            return self._walk(message, first, None, alternates)
        except InternalError:
            return UNROUTABLE

    def rehearse(self, message: Message, ask: Ask, first: Exchange | None = None) -> tuple[Message, Outcome]:
        """What `plan` would decide, or (given `first`) what `route` would, with nothing changed by it.

        Every exchange on the way is handed to `ask`, which answers in its place.

        Raises:
            NotFound, AccessRefused, PreconditionFailed, InternalError: see `plan`.
        """
        if first is None:
            self.check_publishable(message.exchange)
            first = self._virtual_host.exchange(message.exchange)
            if self._routes_by_cc_headers and not {"CC", "BCC"}.isdisjoint(message.headers):
                message.copies = carbon_copies(message.headers)
                message = without_blind_copies(message)
        return message, self._walk(message, first, ask)

    def _walk(
        self, message: Message, first: Exchange, ask: Ask | None = None, alternates: bool = True
    ) -> Outcome:
        """The queues a message goes to from an exchange on, each once, in the order of their bindings.

        Where there is `ask`, it answers for the exchanges, and nothing is remembered; so it is where no
        alternate exchange is to be tried.
        """
        exchanges = self._virtual_host.exchanges
        keys = [message.routing_key]
        if message.copies is not None:
            keys += message.copies.keys
        queues: dict[Any, None] = {}
        visited = {first}
        pending = deque((first,))
        delays: list[Delay] = []
        last: set[Exchange] = set()
        # What is remembered is the way from the exchange that the message was published to.
        by_key_alone = ask is None and alternates and len(keys) == 1 and first.name == message.exchange
        while pending:
            exchange = pending.popleft()
            by_key_alone = by_key_alone and exchange.by_key_alone
            found: Iterable[Target] = ()
            if ask is not None:
                delay, found = ask(exchange, keys, message)
            else:
                delay = exchange.hold_back(message)
                if not delay:
                    found = exchange.route(keys, message)
            if delay:
                delays.append(Delay(exchange.name, delay))
            other_way = alternates and not found and exchange not in last
            if other_way and exchange.alternate_exchange in exchanges:
                alternate = exchanges[exchange.alternate_exchange]
                found = [alternate]
                if exchange.alternate_is_last and alternate not in visited:
                    last.add(alternate)
            for destination in found:
                if not isinstance(destination, Exchange):
                    queues[destination] = None
                elif destination not in visited:
                    visited.add(destination)
                    pending.append(destination)
        outcome = Outcome(tuple(queues), delays=tuple(delays)) if queues or delays else UNROUTABLE
        if by_key_alone:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[message.exchange, message.routing_key] = outcome
        return outcome


def _at_once(exchange: Exchange, keys: Sequence[str], message: Message) -> tuple[float, Iterable[Target]]:
    """Answers for exchanges as if they kept nothing for later."""
    return 0.0, exchange.route(keys, message)
