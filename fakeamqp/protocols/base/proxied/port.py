"""What the fault ports of proxied connections have in common; see `fakeamqp.faults.port.FaultPort`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.faults.port import FaultPort

if TYPE_CHECKING:
    from fakeamqp.protocols.base.proxied.client_leg import ClientLeg


class ProxiedPort(FaultPort):
    """The fault port of one connection through a proxy."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        self._connection: Any = connection

    @property
    def _leg(self) -> ClientLeg:
        leg: ClientLeg = self._connection
        return leg

    @property
    def name(self) -> str:
        return self._leg.name

    @property
    def client_name(self) -> str | None:
        name = self._leg.client_properties.get("connection_name")
        return name if isinstance(name, str) else None

    @property
    def virtual_host(self) -> str | None:
        return self._leg.virtual_host_name

    @property
    def open(self) -> bool:
        return not (self._leg.gone or self._leg.over or self._leg.closing)

    @property
    def largest_frame(self) -> int:
        return self._leg.frame_max

    def receive(self, frames: bytes) -> None:
        self._leg.take(frames)

    def receive_duplicate(self, number: int, frames: bytes) -> None:
        self._leg.take(frames, counted=False)

    def receive_unsecured(self, number: int, frames: bytes) -> None:
        self._leg.take(frames)

    def flush_confirms(self) -> None:
        """The proxy sends confirms at once; outcomes of 1.0 come from the broker behind it."""

    def pause(self, paused: bool) -> None:
        self._leg.pause(paused)

    def send(self, octets: bytes) -> None:
        self._leg.add(octets)

    def disconnect(self, *, reset: bool) -> None:
        self._leg.disconnect(reset=reset)

    def drop_heartbeat(self) -> None:
        """The broker behind the proxy does not get it."""

    def enforce_heartbeats(self) -> None:
        """The broker behind the proxy looks after heartbeats itself."""

    def __repr__(self) -> str:
        return f"<fault port of {self.name}>"
