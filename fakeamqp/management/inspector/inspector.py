"""`Inspector`: what the page asks about one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.management.inspector.flows import Flows
from fakeamqp.management.inspector.snapshot import Snapshot, take
from fakeamqp.management.inspector.timeline import Timeline

if TYPE_CHECKING:
    import threading

    from fakeamqp.management.control.control import Control
    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.trace.failure import FailedTest


class Inspector:
    """The inspector of a broker or a proxy. It keeps no state of it, and costs nothing until a page asks.

    Args:
        control: what the buttons of the page use.

    Attributes:
        engine: the engine of the broker.
        state: its model, which is read inside the engine only.
        held: an event that the page may set to let a held test continue, or None.
        title: what the page is about, such as the id of a held test.
        failure: of the held test, or None.
    """

    def __init__(self, control: Control) -> None:
        self.control = control
        self.engine: Engine = control.engine
        self.state: BrokerState = control.state
        self.held: threading.Event | None = None
        self.title = ""
        self.failure: FailedTest | None = None
        self.flows: Flows = Flows()
        self.timeline: Timeline = Timeline(control.engine, control.endpoint._recorder)

    def address(self, url: str) -> str:
        """The address of the page, with the token that opens it.

        The token is in the fragment: no browser sends it anywhere, and only the page's script reads it.

        Args:
            url: of the HTTP server, such as "http://127.0.0.1:15672/".
        """
        return f"{url.rstrip('/')}/inspector/#token={self.control.token}"

    def snapshot(self) -> Snapshot:
        """The broker as it is now."""
        return take(self)
