"""What a network proxy needs of the connection inside it, of toxics and of their registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from fakeamqp.faults.network.shapers import Bandwidth, Cut, Latency, SliceShaper

if TYPE_CHECKING:
    from fakeamqp.faults.context import Cancellable
    from fakeamqp.faults.fault_port import Direction
    from fakeamqp.faults.network.proxy import NetworkProxy

__all__ = ["InnerConnection", "ProxyContext", "Shaper", "Toxic"]

Shaper: TypeAlias = "Latency | Bandwidth | SliceShaper | Cut"


class InnerConnection(Protocol):
    """The connection inside a proxy: `protocols.Connection`."""

    @property
    def name(self) -> str: ...

    @property
    def finished(self) -> bool: ...

    @property
    def reading(self) -> bool: ...

    @property
    def aborted(self) -> bool: ...

    @property
    def resets(self) -> bool: ...

    def receive(self, data: bytes) -> None: ...

    def receive_eof(self) -> None: ...

    def pending(self) -> list[bytes | memoryview]: ...

    def sent(self, count: int) -> None: ...

    def next_deadline(self) -> float | None: ...


class Toxic(Protocol):
    """A network fault, as far as proxies use it."""

    @property
    def mutes(self) -> bool:
        """True if no bytes pass in either direction while it is in force."""

    @property
    def ends(self) -> Literal["fin", "reset"] | None:
        """How it ends connections at once; None if it does not."""

    def make_shaper(self, proxy: NetworkProxy, direction: Direction) -> Shaper | None:
        """The shaper for one direction of one proxy; None if it leaves that direction alone. Called once."""

    def hit(self, proxy: NetworkProxy, count: int) -> None:
        """The toxic has acted on this proxy."""


class ProxyContext(Protocol):
    """The clock, and the toxics in force."""

    def now(self) -> float:
        """The current instant of the broker's clock, in seconds."""

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Cancellable:
        """Call `callback` at an instant of the broker's clock."""

    def toxics(self, proxy: NetworkProxy) -> list[Toxic]:
        """The toxics in force on this proxy, oldest first."""

    def passed_on(self, proxy: NetworkProxy) -> None:
        """The proxy has passed bytes on: the names of its connection may be known now."""

    def gone(self, proxy: NetworkProxy) -> None:
        """The proxy was removed, or its connection is over."""
