"""`NetworkFault`: the handle of a toxic, and the toxic itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle

if TYPE_CHECKING:
    from fakeamqp.faults.fault_port import Direction
    from fakeamqp.faults.network.interfaces import Shaper
    from fakeamqp.faults.network.proxy import NetworkProxy
    from fakeamqp.faults.network.registry import ProxyRegistry

__all__ = ["NetworkFault"]


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
        self.ends = ends
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
