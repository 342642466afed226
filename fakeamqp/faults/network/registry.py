"""The network proxies of one broker, and the toxics in force."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Literal

from fakeamqp.faults.network.proxy import NetworkProxy

if TYPE_CHECKING:
    from fakeamqp.faults.context import Cancellable, NetworkContext
    from fakeamqp.faults.handle import Handles
    from fakeamqp.faults.network.interfaces import InnerConnection, Toxic
    from fakeamqp.faults.network.toxic import NetworkFault

__all__ = ["ProxyRegistry"]


class ProxyRegistry:
    """Puts a proxy around every connection while a toxic is in force. It is the `ProxyContext` of proxies."""

    def __init__(self, context: NetworkContext, handles: Handles) -> None:
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

    def _wrap(self, inner: InnerConnection, notify: Callable[[], object]) -> NetworkProxy:
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

    def toxics(self, proxy: NetworkProxy) -> list[Toxic]:
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
