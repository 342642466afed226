"""The HTTP server: a thread with an event loop of its own, in which uvicorn's protocol runs the ASGI app.

The ports listen when `start` returns. `stop` ends requests in progress, the thread and every socket. Nothing
wakes up the thread while no request comes, and no timer of it depends on a clock that a test may have frozen.

A client cannot occupy the server: its connection ends if it takes too long over a request (`_PATIENCE`) or
over reading. Beyond a number of connections, the server ends the one that has waited longest for its client.
"""

from __future__ import annotations

import asyncio
import logging
import os
import selectors
import socket
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from h11 import LocalProtocolError
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from fakeamqp.management.errors import ManagementError
from fakeamqp.runtime.addresses import (
    BACKLOG,
    Reserve,
    bound_socket,
    cannot_listen,
    check_room,
    listen_on,
    resolve,
)
from fakeamqp.runtime.clock import RealClock
from fakeamqp.runtime.errors import SelectorFull
from fakeamqp.runtime.thread.lock import Signal

if TYPE_CHECKING:
    from collections.abc import Callable

# A request that does not end within this many real seconds is stuck in its handler; `stop` raises then.
_STOP_SECONDS = 30.0
# Turns of the loop in which written answers leave.
_LAST_TURNS = 10
_PATIENCE = {"head": 10.0, "body": 60.0}
"""Real seconds for the head of a request, as for a handshake of AMQP, and for its body."""
_SEND_SECONDS = 30.0
"""Real seconds after which a client that takes no output loses its connection, as in AMQP."""
_EXHAUSTED_SECONDS = 0.5
"""Real seconds before accepting again after the process has run out of descriptors."""
_LOG_SECONDS = 10.0
_FEWEST_CONNECTIONS = 8
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _Seldom(logging.Filter):
    """Passes one record of each text per interval, with the number of records that it left out.

    uvicorn's warnings about requests are information: warnings reach stderr where no logging is configured.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno == logging.WARNING and record.module == "h11_impl":
            record.levelno, record.levelname = logging.INFO, "INFO"
            return _log.isEnabledFor(logging.INFO)
        now = RealClock.now()
        ends, left_out = self._seen.get(record.msg, (0.0, 0))
        if now < ends:
            self._seen[record.msg] = ends, left_out + 1
            return False
        self._seen[record.msg] = now + _LOG_SECONDS, 0
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out} more of these warnings were left out)"
            record.args = ()
        return True


_log = logging.getLogger("fakeamqp.management.http")
_log.addFilter(_Seldom())

_servers: weakref.WeakSet[HttpServer] = weakref.WeakSet()


class HttpServer:
    """Serves an ASGI app on a thread of its own.

    Args:
        app: the ASGI app. Its handlers run on the thread, one at a time.
        most_connections: at most so many, and a quarter of the descriptors that the process may have.
        name: of the thread.
    """

    def __init__(self, app: Any, most_connections: int, name: str = "fakeamqp-management") -> None:
        self._app = app
        self._most_connections = most_connections
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
        self._uvicorn = _Uvicorn(self._app, _affordable(self._most_connections))
        ready = Signal()
        self._thread = threading.Thread(
            target=self._run,
            args=(self._loop, self._uvicorn, self._ports, ready),
            name=self._name,
            daemon=True,
        )
        try:
            self._thread.start()
        except BaseException:
            self._thread = None
            self._loop.close()
            _close(self._ports)
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

        Raises:
            ManagementError: a handler is stuck. Its thread is abandoned, and ends once the handler returns;
                the ports are closed, and the clients disconnected.
        """
        thread, loop, server = self._thread, self._loop, self._uvicorn
        if thread is None or loop is None or server is None:
            return
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(server.ended.set)
        if not wait or self.on_own_thread():
            return
        thread.join(_STOP_SECONDS)
        self._thread = self._loop = self._uvicorn = None
        if thread.is_alive():
            _close(self._ports)
            server.disconnect_all()
            raise ManagementError(
                f"the thread {thread.name!r} of the HTTP server did not end within {_STOP_SECONDS:g} s: a "
                f"request is stuck in its handler; the port is closed, the thread is abandoned"
            )
        if server.failure is not None:
            raise ManagementError(f"the HTTP server failed: {server.failure}") from server.failure

    def _run(self, loop: _Loop, server: _Uvicorn, ports: tuple[_Port, ...], ready: Signal) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(server.run([each.socket for each in ports], ready.set))
        except BaseException as error:  # `start` raises it
            server.failure = error
        finally:
            try:
                loop.run_until_complete(loop.shutdown_asyncgens())
            finally:
                asyncio.set_event_loop(None)
                loop.close()
                _close(ports)
                ready.set()

    def _abandon(self) -> None:
        """In a forked child: the thread does not exist, and the sockets belong to the parent."""
        loop, self._loop, self._thread = self._loop, None, None
        if loop is not None:
            loop.abandon(self._uvicorn)
            _close(self._ports)


def _affordable(most: int) -> int:
    """How many connections to accept, so that the descriptors of the process suffice for clients of AMQP."""
    try:
        import resource
    except ImportError:
        return most
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        return most
    return min(most, max(_FEWEST_CONNECTIONS, descriptors // 4))


class _Port:
    """One listening socket."""

    def __init__(self, host: str, port: int) -> None:
        family, sockaddr = resolve(host, port)
        self.socket = bound_socket(family, sockaddr)
        try:
            self.socket.listen(BACKLOG)
        except OSError as error:
            self.socket.close()
            raise cannot_listen(error, sockaddr) from error
        self.address: tuple[str, int] = self.socket.getsockname()[:2]

    @property
    def port(self) -> int:
        """The port, also if 0 was asked for."""
        return self.address[1]

    def close(self) -> None:
        """Release the port."""
        self.socket.close()


def _close(ports: tuple[_Port, ...]) -> None:
    for port in ports:
        port.close()


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose timers run on the machine's clock, even if the code under test has frozen it."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        super().__init__(selector)
        self.own_selector = selector
        # Not even in Python's development mode: a request may have to wait for the engine, which would be
        # logged as a slow callback.
        self.set_debug(False)
        self.set_exception_handler(_failed)

    def time(self) -> float:
        """Seconds of the monotonic clock."""
        return RealClock.now()

    def abandon(self, server: _Uvicorn | None) -> None:
        """Close the descriptors that a forked child has inherited.

        The selector first: unregistering the descriptors one by one would change the parent's selector.
        """
        with suppress(OSError):
            self.own_selector.close()
        private: Any = self
        for each in (private._ssock, private._csock):
            each.close()
        for acceptor in [] if server is None else server.acceptors:
            acceptor.abandon()
        for connection in [] if server is None else list(server.server_state.connections):
            transport: Any = connection.transport
            with suppress(AttributeError, OSError):
                transport._sock.close()
        private._thread_id = None
        private._closed = True


def _failed(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    _log.error(context["message"], exc_info=context.get("exception"))


class _Config(Config):
    """uvicorn's configuration, which leaves the loggers of the app under test as they are."""

    def configure_logging(self) -> None:
        """Change no logger: they are global, and the code under test may use uvicorn as well."""


class _Protocol(H11Protocol):
    """uvicorn's HTTP protocol without a log of requests, for clients that may be slow or hostile."""

    def __init__(self, server: _Uvicorn, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.access_log = False
        self.logger = _log
        self._server = server
        self._stage = ""
        self._timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        #: Since when the client has to do what it does.
        self.since = 0.0

    @property
    def answering(self) -> bool:
        """Whether the client waits for the app."""
        return self._stage == "answer"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)
        self._look()
        if not self._server.has_room_for(self):
            transport.write(_BUSY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all timers."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._timer, self._send_timer):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Go on with the next request."""
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is no HTTP, unless an answer has begun."""
        try:
            super().send_400_response(msg)
        except LocalProtocolError:
            self.transport.abort()

    def shutdown(self) -> None:
        """End after the answer that has begun."""
        try:
            super().shutdown()
        except LocalProtocolError:
            self.transport.abort()

    def _look(self) -> None:
        """Restart the timer if the client has something else to do now."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            stage = "body" if cycle.more_body else "answer"
        else:
            stage = "head" if self.timeout_keep_alive_task is None else "idle"
        if stage == self._stage:
            return
        self._stage, self.since = stage, self.loop.time()
        if self._timer is not None:
            self._timer.cancel()
        seconds = _PATIENCE.get(stage)
        self._timer = (
            None if seconds is None else self.loop.call_later(seconds, self._give_up, stage, seconds)
        )

    def _give_up(self, stage: str, seconds: float) -> None:
        _log.warning("%s: the %s of a request did not end within %g s", self.client, stage, seconds)
        self.transport.abort()

    def pause_writing(self) -> None:
        """Stop writing: the client has not read the output."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """Go on writing: the client has read the output."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()

    def _expect_reading(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(_SEND_SECONDS, self._check_reading, left)

    def _check_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._expect_reading()
            return
        _log.warning("%s: the client took no output for %g s", self.client, _SEND_SECONDS)
        self.transport.abort()


class _Acceptor:
    """Accepts the clients of one listening socket, and rests while there are no descriptors.

    asyncio's own acceptor would log a traceback for each place of the backlog.
    """

    def __init__(self, server: _Uvicorn, sock: socket.socket) -> None:
        self._server = server
        self._socket = sock
        self._reserve = Reserve("the HTTP server")
        self._descriptor = sock.fileno()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._watch()

    def _watch(self) -> None:
        self._loop.add_reader(self._descriptor, self._accept)

    def _accept(self) -> None:
        for _ in range(BACKLOG):
            try:
                accepted = self._reserve.accept(self._socket)
            except BlockingIOError:
                return
            except OSError:
                self._rest()
                return
            if accepted is None:
                continue
            try:
                self._server.welcome(accepted[0])
            except SelectorFull as error:
                accepted[0].close()
                self._reserve.log("refuses", error)

    def _rest(self) -> None:
        self._loop.remove_reader(self._descriptor)
        self._timer = self._loop.call_later(_EXHAUSTED_SECONDS, self._watch)

    def abandon(self) -> None:
        """Close the descriptor that a forked child has inherited."""
        self._reserve.give_up()

    def close(self) -> None:
        """Accept no more clients."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._descriptor)
        self._reserve.give_up()


class _Uvicorn(Server):
    """uvicorn's server, which waits for an event and not in a loop with a sleep, and which ends at once.

    Args:
        app: the ASGI app.
        most_connections: how many connections there are at most.
    """

    def __init__(self, app: Any, most_connections: int) -> None:
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
        self._most_connections = most_connections
        self.ended = asyncio.Event()
        self.failure: BaseException | None = None
        self._is_ready: Callable[[], object] = bool
        self.acceptors: list[_Acceptor] = []
        self._welcomed: set[asyncio.Task[object]] = set()
        self._clients: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def run(  # type: ignore[override]
        self, sockets: list[socket.socket], is_ready: Callable[[], object]
    ) -> None:
        """Serve until `ended` is set; call `is_ready` once the server accepts connections."""
        self._is_ready = is_ready
        await self.serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        self.acceptors = [_Acceptor(self, each) for each in sockets or ()]
        self.started = True

    async def main_loop(self) -> None:
        """Wait for the end."""
        self._is_ready()
        await self.ended.wait()

    # -- connections

    def welcome(self, client: socket.socket) -> None:
        """Serve a client.

        Raises:
            SelectorFull: the event loop cannot watch it.
        """
        loop: Any = asyncio.get_running_loop()
        check_room(loop.own_selector, client, self._clients)
        self._clients.add(client)
        task = loop.create_task(loop.connect_accepted_socket(self._make_protocol, client))
        self._welcomed.add(task)
        task.add_done_callback(self._welcomed.discard)

    def _make_protocol(self) -> _Protocol:
        loop = asyncio.get_running_loop()
        return _Protocol(self, self.config, self.server_state, {}, loop)

    def has_room_for(self, new: _Protocol) -> bool:
        """Whether there is room for a connection, for which the one that waited longest may have to end."""
        if len(self._open()) <= self._most_connections:
            return True
        waiting = [each for each in self._open() if not (each is new or each.answering)]
        if not waiting:
            return False
        longest = min(waiting, key=lambda each: each.since)
        _log.warning(
            "the HTTP server ends a connection that waits, of %s, to accept another one: %d are open",
            longest.client,
            len(self._open()),
        )
        longest.transport.abort()
        return True

    def _open(self) -> list[_Protocol]:
        connections: Any = self.server_state.connections
        return [each for each in connections if not each.transport.is_closing()]

    def disconnect_all(self) -> None:
        """Disconnect the clients, from another thread, since that of the server is stuck."""
        for connection in list(self.server_state.connections):
            with suppress(OSError):
                connection.transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the ports, end the requests, and close the connections once their answers are written."""
        for acceptor in self.acceptors:
            acceptor.close()
        if self._welcomed:
            await asyncio.wait(set(self._welcomed))
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
