"""What a broker starts and stops: the HTTP server with its app."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fakeamqp.errors import ManagementUnavailable

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from fakeamqp.broker import Broker
    from fakeamqp.management.context import Management
    from fakeamqp.management.server import HttpServer
    from fakeamqp.model.tap import Tap

_log = logging.getLogger("fakeamqp.management")
_NEEDED = ("starlette", "uvicorn")


class ManagementCompanion:
    """The management API of one broker, on its host and on one port.

    The broker finds it by its name, since it imports no outer package, and calls `start` and `stop` without
    the lock of the engine.

    Args:
        broker: the broker.
        port: the port to listen on; 0 takes a free one.
        hosts: names by which the API may be asked, besides those of this machine.

    Raises:
        ManagementUnavailable: Starlette or uvicorn is not installed.
    """

    def __init__(self, broker: Broker, *, port: int = 0, hosts: Iterable[str] = ()) -> None:
        missing = [name for name in _NEEDED if find_spec(name) is None]
        if missing:
            raise ManagementUnavailable(
                f"the management API needs the package{'s' if len(missing) > 1 else ''} "
                f"{' and '.join(missing)}: pip install 'fakeamqp[management]'"
            )
        self._broker = broker
        self._asked_port = port
        self._hosts = tuple(hosts)
        self._address: tuple[str, int] | None = None
        self._server: HttpServer | None = None
        self._management: Management | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """The numeric host and the port; None before the first start."""
        return self._address

    def inspector_address(self, url: str) -> str:
        """The address of the inspector page on the server of this URL."""
        return self.management.inspector.address(url)

    def hold_open(self, title: str, released: threading.Event | None) -> None:
        """Tell the page that a failed test is held open until `released` is set; None ends this."""
        self.management.inspector.title = title
        self.management.inspector.held = released

    @property
    def management(self) -> Management:
        """What the requests work with."""
        if self._management is None:
            from fakeamqp.management.context import Management

            self._management = Management(self._broker)
        return self._management

    def observe(self, recorder: Tap | None) -> Tap | None:
        """The tap that counts for the API, in front of the recorder."""
        from fakeamqp.management.tap import CountingTap

        clock = self._broker._state.clock
        return CountingTap(self.management.statistics, clock.time, recorder)

    def start(self, host: str) -> None:
        """Listen on the port, after a stop on the same one as before.

        Raises:
            PortInUse: another socket uses the port.
        """
        if self._server is None:
            from fakeamqp.management.app import make_app
            from fakeamqp.management.server import HttpServer

            self._server = HttpServer(
                make_app(self.management, (host, *self._hosts)),
                self._broker._state.bounds.http_connections,
            )
        port = self._asked_port or (self._address[1] if self._address else 0)
        self._address = self._server.start(host, port)
        self.management.http_address = self._address
        from fakeamqp.management.origins import is_loopback

        if not is_loopback(self._address[0]):
            _log.warning(
                "the management API and the inspector page on %s port %d can be reached from other machines: "
                "the login of an administrator, or the token of the page, gives full access to this broker",
                *self._address,
            )

    def stop(self) -> None:
        """Close the port and every connection, and end the thread. Idempotent.

        A request may wait for the engine meanwhile, so the thread of the engine does not wait for its end.
        """
        if self._server is not None:
            engine = self._broker._engine
            with engine.released():
                self._server.stop(wait=not engine.in_turn())

    def cleared(self) -> None:
        """The broker was reset or restarted."""
        if self._management is not None:
            self._management.cleared()
