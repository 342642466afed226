"""What a broker or a proxy starts and stops: the HTTP server with its app."""

from __future__ import annotations

import logging
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from fakeamqp.errors import ManagementUnavailable

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from fakeamqp.broker import Broker
    from fakeamqp.management.context import Management
    from fakeamqp.management.control.control import Control
    from fakeamqp.management.inspector import Inspector
    from fakeamqp.management.server import HttpServer
    from fakeamqp.model.tap import Tap
    from fakeamqp.proxy import Proxy
    from fakeamqp.trace.failure import FailedTest

_log = logging.getLogger("fakeamqp.management")
_NEEDED = ("starlette", "uvicorn")


class ManagementCompanion:
    """The control interface, the inspector page and RabbitMQ's HTTP API, on one port.

    The broker finds it by its name, since it imports no outer package, and calls `start` and `stop` without
    the lock of the engine.

    Args:
        endpoint: the broker or the proxy.
        port: the port to listen on; 0 takes a free one.
        hosts: names by which it may be asked, besides those of this machine.
        api: whether it serves RabbitMQ's HTTP API, which a proxy does not have.

    Attributes:
        serves_api: whether it serves RabbitMQ's HTTP API.

    Raises:
        ManagementUnavailable: Starlette or uvicorn is not installed.
    """

    def __init__(
        self, endpoint: Broker | Proxy, *, port: int = 0, hosts: Iterable[str] = (), api: bool = True
    ) -> None:
        missing = [name for name in _NEEDED if find_spec(name) is None]
        if missing:
            raise ManagementUnavailable(
                f"HTTP needs the package{'s' if len(missing) > 1 else ''} "
                f"{' and '.join(missing)}: pip install 'fakeamqp[management]'"
            )
        self._endpoint = endpoint
        self.serves_api = api
        self._asked_port = port
        self._hosts = tuple(hosts)
        self._address: tuple[str, int] | None = None
        self._server: HttpServer | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """The numeric host and the port; None before the first start."""
        return self._address

    def hold_open(
        self, title: str, released: threading.Event | None, failure: FailedTest | None = None
    ) -> None:
        """Tell the page that a failed test is held open until `released` is set; None ends this."""
        self.inspector.title = title
        self.inspector.failure = failure
        self.inspector.held = released

    @cached_property
    def control(self) -> Control:
        """What requests of the control interface work with."""
        from fakeamqp.management.control.control import Control

        return Control(self._endpoint)

    @cached_property
    def inspector(self) -> Inspector:
        """What the inspector page works with."""
        from fakeamqp.management.inspector import Inspector

        return Inspector(self.control)

    @cached_property
    def management(self) -> Management:
        """What requests of RabbitMQ's API work with."""
        from fakeamqp.management.context import Management

        return Management(cast("Broker", self._endpoint))

    def observe(self, recorder: Tap | None) -> Tap | None:
        """The tap that counts for the API, in front of the recorder."""
        from fakeamqp.management.tap import CountingTap

        clock = self._endpoint._state.clock
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
                make_app(self, (host, *self._hosts)),
                self._endpoint._state.bounds.http_connections,
            )
        port = self._asked_port or (self._address[1] if self._address else 0)
        self._address = self._server.start(host, port)
        if self.serves_api:
            self.management.http_address = self._address
        from fakeamqp.management.origins import is_loopback

        if not is_loopback(self._address[0]):
            _log.warning(
                "the control interface and the inspector page on %s port %d can be reached from other "
                "machines: their token, or the login of an administrator, gives full access to this broker",
                *self._address,
            )

    def stop(self) -> None:
        """Close the port and every connection, and end the thread. Idempotent.

        A request may wait for the engine meanwhile, so the thread of the engine does not wait for its end.
        """
        if self._server is not None:
            engine = self._endpoint._engine
            with engine.released():
                self._server.stop(wait=not engine.in_turn())

    def cleared(self) -> None:
        """The broker was reset or restarted."""
        if "management" in vars(self):
            self.management.cleared()
