"""What channels and sessions of all protocols ask and report alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.model.tap import report_settled
from fakeamqp.model.virtual_host.firehose import PublishSource

if TYPE_CHECKING:
    from fakeamqp.model.access import AccessControl, Action, User
    from fakeamqp.model.deliveries.delivery import Delivery, Ledger
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.tap import Settlement
    from fakeamqp.model.virtual_host import VirtualHost


class ReportingChannel:
    """A channel, or a session, of a server-side connection; a detached session has none."""

    access: AccessControl
    user: User
    virtual_host: VirtualHost
    if TYPE_CHECKING:

        @property
        def connection(self) -> Any:
            """What tells that it is attached."""

        @property
        def number(self) -> int:
            """Its number."""

    @property
    def name(self) -> str:
        """The name of the connection."""
        return str(self.connection.name)

    @property
    def source(self) -> PublishSource:
        """What copies of the firehose say of the channel."""
        return PublishSource(self.name, self.number, self.user.name)

    def authorise(self, action: Action, kind: str, name: str) -> None:
        """Check that the user may do this in the virtual host.

        Raises:
            AccessRefused: the user lacks the permission.
        """
        self.access.check(self.user, self.virtual_host.name, action, kind, name)

    def note_consumer(
        self, event: Literal["consumer added", "consumer ended"], which: Subscription, **facts: object
    ) -> None:
        """Report that a consumer of this channel was added or has ended."""
        place = {"queue": which.queue.name, "consumer": which.tag, "connection": self.name}
        self.virtual_host.report(event, **place, channel=self.number, **facts)

    def note_settled(self, event: Settlement, deliveries: Sequence[Delivery]) -> None:
        """Report that deliveries of this channel are about to be settled, with this event."""
        tap = self.virtual_host.state.tap
        if tap is not None and deliveries and self.connection is not None:
            report_settled(tap, event, deliveries, self.connection, self.number)


class ReportingSession(ReportingChannel):
    """A session on a channel of a connection; consumers have credit of their own."""

    channel: int
    ledger: Ledger
    mode: Literal["tx", "dtx"] | None = None
    prefetch: tuple[int, int] = (0, 0)
    credit: None = None

    @property
    def number(self) -> int:
        """The number of its channel."""
        return self.channel

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """What the client holds."""
        return (self.ledger,)

    @property
    def display_name(self) -> str:
        """What the trace calls it."""
        return str(self.channel)

    def note(self, event: str, **facts: object) -> None:
        """Report an event of the session."""
        place = {"session": self.display_name, "connection": self.name}
        self.virtual_host.report(event, **place, channel=self.channel, **facts)
