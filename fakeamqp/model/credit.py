"""How much a subscription may be sent in advance.

A `Credit` is counted in messages and octets. It is taken from with each delivery and refilled three
ways: by settlement (0-9-x prefetch; one credit per consumer, or one shared by a channel or a
connection), by explicit grants, or by completion of a window (0-10). A subscription may depend on
several credits and takes a message only while all of them admit it (basic.qos/prefetch-both).

A `Gate` is the same idea without counting: open or shut, for paused channels and full connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["Credit", "Gate", "Limit"]


class Limit:
    """Something a subscription depends on: while `open` is False it takes nothing."""

    __slots__ = ("open", "subscriptions")

    def __init__(self) -> None:
        self.open = True
        self.subscriptions: dict[Subscription, None] = {}

    def admits(self, message: Message) -> bool:
        """Whether this message may be sent now."""
        return self.open

    def resume(self) -> None:
        """Let the queues of dependent subscriptions try again while the limit is open.

        Whoever had its turn goes to the end, so that one long queue does not starve the others
        (channels/no-starvation).
        """
        for subscription in list(self.subscriptions):
            if not self.open:
                break
            if subscription in self.subscriptions:  # Not ended by what the others were sent.
                del self.subscriptions[subscription]
                self.subscriptions[subscription] = None
                subscription.queue.dispatch()


class Gate(Limit):
    """Open or shut by hand."""

    __slots__ = ()

    def shut(self) -> None:
        """Stop deliveries to every dependent subscription."""
        self.open = False

    def reopen(self) -> None:
        """Let deliveries go on, beginning with what waits."""
        if not self.open:
            self.open = True
            self.resume()


class Credit(Limit):
    """A window of messages and octets; 0 means that the window does not limit (basic.qos/count-zero)."""

    __slots__ = ("message_limit", "messages", "octet_limit", "octets")

    def __init__(self, message_limit: int = 0, octet_limit: int = 0) -> None:
        super().__init__()
        self.message_limit = message_limit
        self.octet_limit = octet_limit
        self.messages = 0
        self.octets = 0

    def admits(self, message: Message) -> bool:
        """Whether this message fits.

        With nothing outstanding any size does (basic.qos/prefetch-size-01).
        """
        if not self.open:
            return False
        return (
            not self.octet_limit or not self.messages or self.octets + len(message.body) <= self.octet_limit
        )

    @property
    def limits(self) -> bool:
        """Whether the window limits anything at all."""
        return bool(self.message_limit or self.octet_limit)

    def take(self, message: Message) -> None:
        """Count a message as outstanding."""
        self.messages += 1
        self.octets += len(message.body)
        self._update()

    def refill(self, message: Message) -> bool:
        """Count a message as settled. True where the credit limits at all, so that somebody may wait."""
        self.messages -= 1
        self.octets -= len(message.body)
        self._update()
        return self.limits

    def resize(self, message_limit: int, octet_limit: int) -> None:
        """Set new limits, which count at once for what is outstanding."""
        self.message_limit = message_limit
        self.octet_limit = octet_limit
        self._update()

    def _update(self) -> None:
        full_of_messages = self.message_limit and self.messages >= self.message_limit
        full_of_octets = self.octet_limit and self.messages and self.octets >= self.octet_limit
        self.open = not (full_of_messages or full_of_octets)

    def __repr__(self) -> str:
        return f"<Credit {self.messages} of {self.message_limit or 'unlimited'} messages outstanding>"
