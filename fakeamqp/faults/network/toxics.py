"""Toxics, and the proxies of one broker on which they act."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Literal

from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.network.proxy import NetworkProxy

if TYPE_CHECKING:
    from fakeamqp.connection import Connection
    from fakeamqp.dialects import Direction
    from fakeamqp.faults.context import BrokerContext, Cancellable
    from fakeamqp.faults.handle import Handles
    from fakeamqp.faults.network.shapers import Shaper

__all__ = ["NetworkFault", "ProxyRegistry"]


class NetworkFault(Handle):
    """A fault of the network. What its hits count is documented at the method of `Network` that made it."""

    def __init__(
        self,
        registry: ProxyRegistry,
        target: str | None,
        sentence: str,
        *,
        make_shaper: Callable[[NetworkProxy, Direction], Shaper | None] = lambda _proxy, _direction: None,
        mutes: bool = False,
        silences: bool = False,
        ends: Literal["fin", "reset"] | None = None,
        refuses_port: bool = False,
        counted: str = "",
    ) -> None:
        super().__init__(registry.context)
        self.target = target
        self.mutes = mutes
        """True if no bytes pass in either direction while it is in force."""
        self.ends = ends
        """How it ends connections at once; None if it does not."""
        self.refuses_port = refuses_port
        self._registry = registry
        self._sentence = sentence
        self._make_shaper = make_shaper
        self._silences = silences
        self._counted = counted
        self._noted: set[int] = set()
        self._first = 0

    @property
    def sentence(self) -> str:
        return self._sentence

    @property
    def used(self) -> bool:
        """A refused port counts as used: the broker does not see refused connections."""
        return self.refuses_port or super().used

    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """See `Handle.wait`.

        Raises:
            FaultNotSeen: it has not happened `n` times.
            FaultError: the operating system refuses the connections, so that the broker cannot count them.
        """
        if self.refuses_port:
            raise FaultError(
                "the operating system refuses these connections, and the broker cannot count them; "
                "use refuse(how='close') to wait for hits"
            )
        super().wait(n, timeout)

    def near_misses(self) -> Iterator[str]:
        """The connections, and how far each has come."""
        for proxy in self._registry.proxies:
            called = self._registry.describe(proxy)
            if not self._is_meant(proxy):
                yield f"{called} is another connection"
            elif self._counted:
                yield f"{called}: {proxy.passed(self)} {self._counted} so far"

    # --- the interface to proxies -----------------------------------------------------------------------

    def concerns(self, proxy: NetworkProxy) -> bool:
        """True if it acts on this proxy, as far as the names of the connection are known by now."""
        return proxy.number > self._first and self._is_meant(proxy)

    def _is_meant(self, proxy: NetworkProxy) -> bool:
        target = self.target
        if target is None or target == proxy.name:
            return True
        port = proxy.port
        return port is not None and target in (port.client_name, self._registry.context.alias(proxy.name))

    def make_shaper(self, proxy: NetworkProxy, direction: Direction) -> Shaper | None:
        return self._make_shaper(proxy, direction)

    def hit(self, proxy: NetworkProxy, count: int) -> None:
        """The first hit on a connection is noted in the trace."""
        self._count_hit(count)
        if proxy.number not in self._noted:
            self._noted.add(proxy.number)
            self._registry.note(proxy, self._sentence)
            if self._silences and proxy.port is not None:
                proxy.port.enforce_heartbeats()

    def spare(self, number: int) -> None:
        """Leave alone the proxies with this number and below."""
        self._first = number

    def finish(self) -> None:
        """Mark it as done: it is not in force any more."""
        self._removed = True

    def _withdraw(self) -> None:
        self._registry.withdraw(self)


class ProxyRegistry:
    """Puts a proxy around every connection while a toxic is in force. Proxies use its clock."""

    def __init__(self, context: BrokerContext, handles: Handles) -> None:
        self.context = context
        self.faults: list[NetworkFault] = []
        self.now: Callable[[], float] = context.now
        self.call_at: Callable[[float, Callable[[], object], str], Cancellable] = context.call_at
        self._handles = handles
        self._proxies: dict[NetworkProxy, list[str]] = {}
        """The proxies, and the notes to add to the trace as soon as the trace knows their connections."""
        self._made = 0
        self._wrapping = False

    @property
    def proxies(self) -> tuple[NetworkProxy, ...]:
        """The proxies, oldest first."""
        return tuple(self._proxies)

    def random(self, proxy: NetworkProxy, direction: str) -> Random:
        """A random source for one direction of one proxy, the same in every run."""
        return Random(f"{self.context.seed}/{proxy.number}/{direction}")

    # --- toxics -----------------------------------------------------------------------------------------

    def install(self, fault: NetworkFault, *, newcomers: bool = False) -> None:
        """Put a fault in force. `newcomers`: only for connections that are opened from now on."""
        with self.context:
            self._handles.add(fault)
            if fault.refuses_port:
                self.context.refuse(True)
            self._wrap_all()
            if newcomers:
                fault.spare(self._made)
            self.faults.append(fault)
            self._refresh()

    def end_now(self, fault: NetworkFault, how: Literal["fin", "reset"]) -> None:
        """End the connections that a fault concerns; after that the fault is done."""
        with self.context:
            self._handles.add(fault)
            self._wrap_all()
            for proxy in self.proxies:
                if fault.concerns(proxy) and not proxy.over:
                    fault.hit(proxy, 1)
                    proxy.end(how)
            fault.finish()
            self._unwrap_idle()

    def withdraw(self, fault: NetworkFault) -> None:
        """Take a fault out of force."""
        if fault in self.faults:
            self.faults.remove(fault)
        if fault.refuses_port and not any(each.refuses_port for each in self.faults):
            self.context.refuse(False)
        self._refresh()
        self._unwrap_idle()

    def _wrap_all(self) -> None:
        if not self._wrapping:
            self._wrapping = True
            self.context.wrap_connections(self._wrap)
        for proxy in self.proxies:
            self.passed_on(proxy)

    def _unwrap_idle(self) -> None:
        """Remove the proxies if no fault is in force."""
        if self._wrapping and not self.faults:
            self._wrapping = False
            self.context.wrap_connections(None)

    def _wrap(self, inner: Connection, notify: Callable[[], object]) -> NetworkProxy:
        self._made += 1
        proxy = NetworkProxy(inner, notify, self, self._made)
        self._proxies[proxy] = []
        self.passed_on(proxy)
        proxy.refresh()
        return proxy

    def _refresh(self) -> None:
        for proxy in self.proxies:
            proxy.refresh()

    # --- the interface to proxies -----------------------------------------------------------------------

    def toxics(self, proxy: NetworkProxy) -> list[NetworkFault]:
        return [fault for fault in self.faults if fault.concerns(proxy)]

    def passed_on(self, proxy: NetworkProxy) -> None:
        if proxy.port is None:
            for tapped in self.context.connections():
                if tapped.name == proxy.name:
                    proxy.port = tapped.fault_port
                    break
        if proxy.port is not None:
            self._write_notes(proxy)

    def gone(self, proxy: NetworkProxy) -> None:
        self._write_notes(proxy)
        self._proxies.pop(proxy, None)

    # --- the trace --------------------------------------------------------------------------------------

    def note(self, proxy: NetworkProxy, sentence: str) -> None:
        """Note in the trace that a fault acts on a connection, as soon as the trace knows the connection."""
        self._proxies.setdefault(proxy, []).append(sentence)
        if proxy.port is not None:
            self._write_notes(proxy)

    def _write_notes(self, proxy: NetworkProxy) -> None:
        notes = self._proxies.get(proxy)
        if notes:
            written = tuple(notes)
            notes.clear()
            for sentence in written:
                self.context.note(proxy.name, "fault", sentence)

    def describe(self, proxy: NetworkProxy) -> str:
        """A connection by all its names."""
        names = [self.context.alias(proxy.name), None if proxy.port is None else proxy.port.client_name]
        known = " or ".join(repr(name) for name in names if name)
        return f"connection {proxy.name!r}" + (f" ({known})" if known else "")
