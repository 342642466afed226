"""`Inspector`: what the page asks about one broker."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from fakeamqp.management.inspector.flows import Flows
from fakeamqp.management.inspector.snapshot import Snapshot, take
from fakeamqp.management.inspector.timeline import Timeline

if TYPE_CHECKING:
    import threading

    from fakeamqp.broker import Broker
    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime.engine import Engine


class Inspector:
    """The inspector of one broker. It keeps no state of the broker, and costs nothing until a page asks.

    Args:
        broker: the broker.
        engine: its engine.
        state: its model, which is read inside the engine only.

    Attributes:
        token: the secret that a page needs; `address` contains it.
        held: an event that the page may set to let a held test continue, or None.
        title: what the page is about, such as the id of a held test.
    """

    def __init__(self, broker: Broker, engine: Engine, state: BrokerState) -> None:
        self.broker = broker
        self.engine = engine
        self.state = state
        self.token: str = secrets.token_urlsafe(18)
        self.held: threading.Event | None = None
        self.title = ""
        self.flows: Flows = Flows()
        self.timeline: Timeline = Timeline(engine, broker._recorder)

    def address(self, url: str) -> str:
        """The address of the page, with the token that opens it.

        The token is in the fragment: no browser sends it anywhere, and only the page's script reads it.

        Args:
            url: of the HTTP server, such as "http://127.0.0.1:15672/".
        """
        return f"{url.rstrip('/')}/inspector/#token={self.token}"

    def snapshot(self) -> Snapshot:
        """The broker as it is now."""
        return take(self)
