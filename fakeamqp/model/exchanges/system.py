"""Exchanges that hand a message to the service that its routing key names (exchange-type.system/*)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import ContentRefused, PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.virtual_host import VirtualHost


class Service:
    """A service of one virtual host, named by the routing key `key`. It stores no messages.

    `handle` is called with each message, at the instant of its arrival but after all that happens in this
    turn, so that it may change the broker. `contents` are the AMQP classes of the contents that the service
    takes; None for all.
    """

    def __init__(
        self,
        virtual_host: VirtualHost,
        key: str,
        handle: Callable[[Message], object],
        contents: frozenset[str] | None = None,
    ) -> None:
        self.key: str = key
        self.name: str = f"service {key!r}"
        self.deleted: bool = False
        self._virtual_host = virtual_host
        self._handle = handle
        self.contents: frozenset[str] | None = contents

    def could_take(self, message: Message) -> bool:
        return True

    def enqueue(self, message: Message, dead_letter: bool = False) -> bool:
        self._virtual_host.call_later(
            0.0, lambda: self._hand_over(message), lambda: f"{self.name} gets a message"
        )
        return True

    def _hand_over(self, message: Message) -> None:
        if not self.deleted:
            self._handle(message)


class SystemExchange(Exchange):
    """Hands each message to the service of the virtual host that its routing key names, without bindings.

    A message for no service is unroutable. A service can refuse contents of some AMQP classes: a publish to
    the exchange is then an error, and any other message, such as a dead letter, is unroutable.
    """

    type_name = "system"
    by_key_alone = False

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Refuse every binding: the routing keys are the names of services."""
        raise PreconditionFailed(
            f"exchange '{self.name}' in vhost '{self.virtual_host.name}' is of type 'system', which hands "
            "messages to services and takes no bindings"
        )

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """The service, if it takes the content (basic.publish/exchange-03, file.publish/exchange-03,
        stream.publish/exchange-03, message.transfer/destination-03).
        """
        service = self.virtual_host.services.get(routing_key)
        if service is None:
            return ()
        if service.contents is None or message.content_class in service.contents:
            return (service,)
        if message.exchange == self.name and message.history is None:
            kind = message.content_class
            raise ContentRefused(
                f"exchange '{self.name}' takes no contents of class {kind} for {service.name}"
            )
        return ()
