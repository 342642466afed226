"""What AMQP 0-9 leaves to who sets up a broker, and what a test therefore hands in.

Handlers behind tunnels, the transports that out-of-band frames travel by, and who wants to see trace frames.
Without any of these the broker refuses what it could not do, or discards it where the protocol says so.
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

__all__ = [
    "MemoryTransport",
    "OutOfBandTransport",
    "Registrations",
    "TraceFrame",
    "Tunnel",
    "TunnelRequest",
]


@dataclass(frozen=True)
class TunnelRequest:
    """A tunnel.request, as its handler gets it (tunnel.request/*, tunnel/properties).

    `headers`, `proxy_name`, `data_name`, `durable` and `broadcast` are properties of the content, `body` is
    the data. `connection` and `channel` say where it came from.
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
    """A trace frame that a client has sent, and the name of its connection."""

    connection: str
    payload: bytes


class Tunnel(NamedTuple):
    """Who deals with requests for the proxies whose names fit: * is any text, ? any one character."""

    proxy_name: str
    handle: Callable[[TunnelRequest], object]


class OutOfBandTransport(Protocol):
    """What carries the payloads of out-of-band frames; on the connection go the frames without them."""

    def take(self) -> bytes | None:
        """The payload of the next frame from the client; None where it has not come."""

    def put(self, payload: bytes) -> None:
        """Carry the payload of a frame to the client, which is about to be sent."""


class MemoryTransport:
    """An `OutOfBandTransport` between a broker and a client in the same process.

    A client hands over each payload with `send` before it sends the frame, and fetches it with `receive` once
    a frame has come.
    """

    def __init__(self) -> None:
        self._to_broker: deque[bytes] = deque()
        self._to_client: deque[bytes] = deque()

    def __repr__(self) -> str:
        return f"<MemoryTransport {len(self._to_broker)} to the broker, {len(self._to_client)} to the client>"

    def send(self, payload: bytes) -> None:
        """For the client: hand over the payload of its next frame."""
        self._to_broker.append(bytes(payload))

    def receive(self) -> bytes:
        """For the client: the payload of the next frame from the broker.

        Raises:
            LookupError: the broker has sent no more frames.
        """
        if not self._to_client:
            raise LookupError("the broker has put nothing here; read its out-of-band frame first")
        return self._to_client.popleft()

    def take(self) -> bytes | None:
        """See `OutOfBandTransport`."""
        return self._to_broker.popleft() if self._to_broker else None

    def put(self, payload: bytes) -> None:
        """See `OutOfBandTransport`."""
        self._to_client.append(payload)


class Registrations(Extension):
    """What a test has registered with one broker."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__(state)
        self.tunnels: list[Tunnel] = []
        self.transports: dict[str, OutOfBandTransport] = {}
        """Out-of-band transports by what channel.open calls them."""
        self.trace_handlers: list[Callable[[TraceFrame], object]] = []

    def tunnel(self, request: TunnelRequest) -> None:
        """Hand a request to who deals with its proxy, or with broadcast set to everybody.

        Where several fit it is the one that came first.

        Raises:
            NotImplementedHere: there is nobody for it.
            ModelError: a handler has failed; the others have had it before.
        """
        if request.broadcast:
            tunnels = list(self.tunnels)
        else:
            tunnels = [each for each in self.tunnels if fnmatchcase(request.proxy_name, each.proxy_name)][:1]
        if not tunnels:
            raise NotImplementedHere(f"nobody handles tunnel requests for the proxy '{request.proxy_name}'")
        problem: ModelError | None = None
        for tunnel in tunnels:
            try:
                tunnel.handle(request)
            except ModelError as error:
                problem = problem or error
        if problem is not None:
            raise problem
