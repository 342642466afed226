"""Exchanges that hand a message to the service that its routing key names (exchange-type.system/*)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.message import Message

__all__ = ["SystemExchange"]


class SystemExchange(Exchange):
    """Hands each message to the service of the virtual host that its routing key names, without bindings.

    A message for no service is unroutable. A service can refuse contents of some AMQP classes: a publish to
    the exchange is then an error, and any other message, such as a dead letter, is unroutable.
    """

    type_name = "system"
    by_key_alone = False

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """See the base class.

        Raises:
            PreconditionFailed: always; the routing keys are the names of services.
        """
        raise PreconditionFailed(
            f"exchange '{self.name}' in vhost '{self.virtual_host.name}' is of type 'system', which hands "
            "messages to services and takes no bindings"
        )

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """See the base class.

        Raises:
            ContentRefused: the message was published to this exchange, and the service refuses its class.
        """
        service = self.virtual_host.services.get(routing_key)
        if service is None:
            return ()
        if message.exchange == self.name and message.history is None:
            service.check_content(self.name, message.content_class)
        return (service,) if service.takes(message.content_class) else ()
