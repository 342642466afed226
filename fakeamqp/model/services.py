"""Services: what system exchanges hand messages to, in place of a queue (exchange-type.system/*)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import ContentRefused

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Service"]


class Service:
    """A service of one virtual host. It stores no messages.

    Args:
        virtual_host: the virtual host.
        key: the routing key that names the service.
        handle: called with each message, at the instant of its arrival but after all that happens in this
            turn, so that it may change the broker.
        contents: the AMQP classes of the contents that the service takes; None for all.
    """

    __slots__ = ("_contents", "_handle", "_virtual_host", "deleted", "key", "name")

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
        self._contents = contents

    def check_content(self, exchange: str, content_class: str) -> None:
        """Refuse contents of a class that the service does not take.

        Sources: basic.publish/exchange-03, file.publish/exchange-03, stream.publish/exchange-03,
        message.transfer/destination-03.

        Raises:
            ContentRefused: it does not take them.
        """
        if not self.takes(content_class):
            raise ContentRefused(
                f"exchange '{exchange}' takes no contents of class {content_class} for {self.name}"
            )

    def takes(self, content_class: str) -> bool:
        """Whether the service takes contents of a class."""
        return self._contents is None or content_class in self._contents

    def could_take(self, message: Message) -> bool:
        """A service takes every message at once."""
        return True

    def enqueue(self, message: Message) -> bool:
        """Hand over a message."""
        self._virtual_host.call_later(
            0.0, lambda: self._hand_over(message), lambda: f"{self.name} gets a message"
        )
        return True

    def accept(self, message: Message) -> bool:
        """Hand over a dead letter."""
        return self.enqueue(message)

    def _hand_over(self, message: Message) -> None:
        if not self.deleted:
            self._handle(message)
