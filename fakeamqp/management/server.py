"""The HTTP server: a thread with an event loop of its own, in which uvicorn's protocol runs the ASGI app.

The ports listen when `start` returns. `stop` ends requests in progress, the thread and every socket. Nothing
wakes up the thread while no request comes, and no timer of it depends on a clock that a test may have frozen.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from fakeamqp.management.errors import ManagementError
from fakeamqp.runtime.addresses import listening_socket
from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.localhost import listen_on

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ["HttpServer"]

# A request that does not end within this many real seconds is stuck in its handler; `stop` raises then.
_STOP_SECONDS = 30.0
# Turns of the loop in which accepted connections get their transports, and written answers leave.
_LAST_TURNS = 10

_servers: weakref.WeakSet[HttpServer] = weakref.WeakSet()


class HttpServer:
    """Serves an ASGI app on a thread of its own.

    Args:
        app: the ASGI app. Its handlers run on the thread, one at a time.
        name: of the thread.
    """

    def __init__(self, app: Any, name: str = "fakeamqp-management") -> None:
        self._app = app
        self._name = name
        self._thread: threading.Thread | None = None
        self._loop: _Loop | None = None
        self._uvicorn: _Uvicorn | None = None
        self._ports: tuple[_Port, ...] = ()
        _servers.add(self)

    @property
    def running(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None

    def on_own_thread(self) -> bool:
        """Whether the caller is a handler of the app."""
        return self._thread is threading.current_thread()

    def start(self, host: str, port: int = 0) -> tuple[str, int]:
        """Listen, and start the thread. Returns the numeric address and the port.

        Raises:
            PortInUse: another socket uses the port.
            CannotListen: the address is not one of this machine, or not usable.
        """
        self._ports = listen_on(_Port, host, port)
        self._loop = _Loop(selectors.DefaultSelector())
        self._uvicorn = _Uvicorn(self._app)
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop, self._uvicorn, ready), name=self._name, daemon=True
        )
        try:
            self._thread.start()
        except BaseException:
            self._thread = None
            self._loop.close()
            self._close_ports()
            raise
        ready.wait()
        if self._uvicorn.failure is not None:
            failure = self._uvicorn.failure
            self._uvicorn.failure = None
            self.stop()
            raise ManagementError(f"the HTTP server did not start: {failure}") from failure
        return self._ports[0].address

    def stop(self, wait: bool = True) -> None:
        """End the thread and close every socket. Idempotent.

        Args:
            wait: wait for the end; a handler of the app, for which this would be its own end, does not.
        """
        thread, loop, server = self._thread, self._loop, self._uvicorn
        if thread is None or loop is None or server is None:
            return
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(server.ended.set)
        if not wait or self.on_own_thread():
            return
        thread.join(_STOP_SECONDS)
        if thread.is_alive():
            raise ManagementError(
                f"the thread of the HTTP server did not end within {_STOP_SECONDS:g} s: a request is stuck"
            )
        self._thread = self._loop = self._uvicorn = None
        if server.failure is not None:
            raise ManagementError(f"the HTTP server failed: {server.failure}") from server.failure

    def _run(self, loop: _Loop, server: _Uvicorn, ready: threading.Event) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(server.run([each.socket for each in self._ports], ready.set))
        except BaseException as error:  # `start` raises it
            server.failure = error
        finally:
            try:
                loop.run_until_complete(loop.shutdown_asyncgens())
            finally:
                asyncio.set_event_loop(None)
                loop.close()
                self._close_ports()
                ready.set()

    def _close_ports(self) -> None:
        for port in self._ports:
            port.close()

    def _abandon(self) -> None:
        """In a forked child: the thread does not exist, and the sockets belong to the parent."""
        loop, self._loop, self._thread = self._loop, None, None
        if loop is not None:
            loop.abandon(self._uvicorn)
            self._close_ports()


class _Port:
    """One listening socket."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = listening_socket(host, port)
        self.address: tuple[str, int] = self.socket.getsockname()[:2]

    @property
    def port(self) -> int:
        """The port, also if 0 was asked for."""
        return self.address[1]

    def close(self) -> None:
        """Release the port."""
        self.socket.close()


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose timers run on the machine's clock, even if the code under test has frozen it."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        super().__init__(selector)
        self._own_selector = selector
        # Not even in Python's development mode: a request may have to wait for the engine, which would be
        # logged as a slow callback.
        self.set_debug(False)

    def time(self) -> float:
        """Seconds of the monotonic clock."""
        return RealClock.now()

    def abandon(self, server: _Uvicorn | None) -> None:
        """Close the descriptors that a forked child has inherited.

        The selector first: unregistering the descriptors one by one would change the parent's selector.
        """
        with suppress(OSError):
            self._own_selector.close()
        private: Any = self
        for each in (private._ssock, private._csock):
            each.close()
        for connection in [] if server is None else list(server.server_state.connections):
            transport: Any = connection.transport
            with suppress(AttributeError, OSError):
                transport._sock.close()
        private._thread_id = None
        private._closed = True


class _Config(Config):
    """uvicorn's configuration, which leaves the loggers of the app under test as they are."""

    def configure_logging(self) -> None:
        """Change no logger: they are global, and the code under test may use uvicorn as well."""


class _Protocol(H11Protocol):
    """uvicorn's HTTP protocol without a log of requests."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.access_log = False


class _Uvicorn(Server):
    """uvicorn's server, which waits for an event and not in a loop with a sleep, and which ends at once."""

    def __init__(self, app: Any) -> None:
        super().__init__(
            _Config(
                app,
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                server_header=False,
                date_header=False,
                proxy_headers=False,
            )
        )
        self.ended = asyncio.Event()
        self.failure: BaseException | None = None
        self._is_ready: Callable[[], object] = bool

    async def run(  # type: ignore[override]
        self, sockets: list[socket.socket], is_ready: Callable[[], object]
    ) -> None:
        """Serve until `ended` is set; call `is_ready` once the server accepts connections."""
        self._is_ready = is_ready
        await self.serve(sockets)

    async def main_loop(self) -> None:
        """Wait for the end."""
        self._is_ready()
        await self.ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the ports, end the requests, and close the connections once their answers are written."""
        # A connection that asyncio has accepted, but has not made a transport of, would stay open for ever
        # once its server is closed.
        loop = asyncio.get_running_loop()
        for each in sockets or ():
            loop.remove_reader(each.fileno())
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for turn in range(_LAST_TURNS):
            for connection in list(self.server_state.connections):
                end = connection.transport.close if turn + 1 < _LAST_TURNS else connection.transport.abort
                end()
            await asyncio.sleep(0)
        await asyncio.sleep(0)


def _abandon_all() -> None:
    for server in list(_servers):
        server._abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
