"""The parts that AMQP 0-9 leaves to the broker's configuration, which a test registers.

They are handlers of tunnel requests, transports of out-of-band frames, and handlers of trace frames. Without
them the broker refuses tunnel requests and out-of-band transports, and discards trace frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fakeamqp.model.errors import ModelError, NotImplementedHere
from fakeamqp.model.extensions import Extension

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState


@dataclass(frozen=True)
class TunnelRequest:
    """The tunnel.request that a handler receives (tunnel.request/*, tunnel/properties).

    `headers`, `proxy_name`, `data_name`, `durable` and `broadcast` are properties of the content, `body` is
    the data. `connection` and `channel` name the sender.
    """

    meta_data: Mapping[str, Any]
    headers: Mapping[str, Any]
    proxy_name: str
    data_name: str
    durable: bool
    broadcast: bool
    body: bytes
    connection: str
    channel: int
    virtual_host: str
    user: str


class TraceFrame(NamedTuple):
    """The payload of a client's trace frame, and the name of its connection."""

    connection: str
    payload: bytes


class Tunnel(NamedTuple):
    """The handler of requests for matching proxy names: * matches any text, ? any one character."""

    proxy_name: str
    handle: Callable[[TunnelRequest], object]


class OutOfBandTransport(Protocol):
    """Carries the payloads of out-of-band frames; the connection carries the frames without payload."""

    def take(self) -> bytes | None:
        """Return the payload of the client's next frame; None if it has not arrived."""

    def put(self, payload: bytes) -> None:
        """Send the payload of a frame to the client; the frame follows on the connection."""


class MemoryTransport:
    """An `OutOfBandTransport` between a broker and a client in the same process.

    A client passes each payload to `send` before it sends the frame, and calls `receive` after it has
    received a frame.
    """

    def __init__(self) -> None:
        self._to_broker: deque[bytes] = deque()
        self._to_client: deque[bytes] = deque()

    def __repr__(self) -> str:
        return f"<MemoryTransport {len(self._to_broker)} to the broker, {len(self._to_client)} to the client>"

    def send(self, payload: bytes) -> None:
        """For the client: pass the payload of its next frame."""
        self._to_broker.append(bytes(payload))

    def receive(self) -> bytes:
        """For the client: return the payload of the broker's next frame.

        Raises:
            LookupError: the broker has sent no further payload.
        """
        if not self._to_client:
            raise LookupError("the broker has sent no payload; read its out-of-band frame first")
        return self._to_client.popleft()

    def take(self) -> bytes | None:
        """Return the payload of the client's next frame; None if there is none."""
        return self._to_broker.popleft() if self._to_broker else None

    def put(self, payload: bytes) -> None:
        """Keep the payload of a frame for the client."""
        self._to_client.append(payload)


class Registrations(Extension):
    """The registrations of one broker."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__(state)
        self.tunnels: list[Tunnel] = []
        self.transports: dict[str, OutOfBandTransport] = {}
        """The name in channel.open -> out-of-band transport."""
        self.trace_handlers: list[Callable[[TraceFrame], object]] = []

    def tunnel(self, request: TunnelRequest) -> None:
        """Pass a request to the first matching handler, or if broadcast is set to all handlers.

        Raises:
            NotImplementedHere: no handler matches.
            ModelError: a handler failed; all handlers were called.
        """
        if request.broadcast:
            tunnels = list(self.tunnels)
        else:
            tunnels = [each for each in self.tunnels if fnmatchcase(request.proxy_name, each.proxy_name)][:1]
        if not tunnels:
            raise NotImplementedHere(f"no handler of tunnel requests for the proxy '{request.proxy_name}'")
        problem: ModelError | None = None
        for tunnel in tunnels:
            try:
                tunnel.handle(request)
            except ModelError as error:
                problem = problem or error
        if problem is not None:
            raise problem
