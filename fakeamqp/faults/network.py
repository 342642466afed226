"""`Network`: the network between the broker and its clients, and what can be made to go wrong with it.

Faults here concern bytes and connections, not methods. While a fault is in force, every connection has a
network proxy around it, on which the faults act as toxics. Without a fault there are no proxies, and no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from copy import copy
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.blocking import blocking
from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError, check_count, check_number, checked
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.matching import ConnectionSelector
from fakeamqp.faults.network_proxy import NetworkProxy
from fakeamqp.faults.shapers import Bandwidth, Cut, Latency, SliceShaper

if TYPE_CHECKING:
    from fakeamqp.connection import Connection
    from fakeamqp.dialects import Direction
    from fakeamqp.faults.port import BrokerContext
    from fakeamqp.faults.shapers import Shaper

_DIRECTIONS = {"both": "to and from", "received": "from", "sent": "to"}
_ENDS = {"fin": "closed", "reset": "reset", "silence": "silenced"}
_REFUSALS = {
    "port": "connections are refused by the operating system",
    "close": "connections are accepted, then closed immediately",
    "reset": "connections are accepted, then reset immediately",
}


class Network:
    """The network between the broker and its clients. Get it from `broker.faults.network`.

    Every method that breaks something returns a `NetworkFault` with `hits`, `wait`, `remove` and `optional`;
    as a context manager it is removed at the end of the block. Faults can be combined. All seconds are
    seconds of the broker's clock: on a virtual clock nothing moves until the clock is advanced.

    Bytes of AMQP are counted and cut: under TLS, the bytes inside of it. Directions are seen from the
    broker: "received" is from the client, "sent" is to the client. A fault concerns all connections, open
    and to come; `on` selects one. Faults stay in force when the broker restarts.

    Every method raises `FaultError` for an argument that is misspelled, or a number that makes no sense.
    """

    def __init__(self, context: BrokerContext, handles: list[Handle]) -> None:
        self._registry = ProxyRegistry(context, handles)
        self._target: str | None = None

    def on(self, connection: Any) -> Network:
        """The network of one connection only.

        Args:
            connection: its name, its short name in the trace (such as "c1"), the name that the client gives
                itself (client property `connection_name`), or one of `Broker.connections`. The client's name
                for itself is known from its login on; earlier bytes pass unchanged.

        Raises:
            FaultError: the argument cannot name a connection.
        """
        network = copy(self)
        network._target = ConnectionSelector(connection, self._registry.context.alias).said
        return network

    # --- slow -----------------------------------------------------------------------------------------

    @checked
    def latency(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> NetworkFault:
        """Delay all bytes. They stay in order, and none is lost.

        Its hits are bytes that were delayed, in both directions together.

        Args:
            seconds: the delay one way, on the broker's clock.
            jitter: up to so many seconds more or less, drawn from the broker's seed for each arrival.
            direction: "received", "sent" or "both".
        """
        check_number("latency() takes seconds as a number", seconds)
        check_number("latency() takes jitter as a number", jitter)
        _check_word("direction", direction, _DIRECTIONS)
        about = f", give or take {jitter:g} s" if jitter else ""
        seed = self._registry.context.seed
        return self._install(
            f"bytes {_DIRECTIONS[direction]} {self._clients} take {seconds:g} s{about}",
            lambda proxy, towards: Latency(seconds, jitter, Random(f"{seed}/{proxy.number}/{towards}")),
            direction,
        )

    @checked
    def bandwidth(self, bytes_per_second: float, direction: str = "both") -> NetworkFault:
        """Limit the bytes per second, for each connection and each direction.

        Its hits are bytes that entered the queue, in both directions together.

        Args:
            bytes_per_second: on the broker's clock, above 0.
            direction: "received", "sent" or "both".
        """
        check_number("bandwidth() takes bytes_per_second as a number", bytes_per_second, above=True)
        _check_word("direction", direction, _DIRECTIONS)
        return self._install(
            f"at most {bytes_per_second:g} bytes a second go {_DIRECTIONS[direction]} {self._clients}",
            lambda proxy, towards: Bandwidth(bytes_per_second),
            direction,
        )

    @checked
    def slice(self, octets: int = 1, pause: float = 0.0, direction: str = "both") -> NetworkFault:
        """Split the stream into small pieces. Each piece to the client is a write of its own.

        Its hits are pieces, in both directions together.

        Args:
            octets: the largest size of a piece.
            pause: seconds between one piece and the next, on the broker's clock.
            direction: "received", "sent" or "both".
        """
        check_count("slice() takes octets as", octets)
        check_number("slice() takes pause as a number", pause)
        _check_word("direction", direction, _DIRECTIONS)
        pauses = f", with {pause:g} s between them" if pause else ""
        size = "single bytes" if octets == 1 else f"pieces of {octets} bytes"
        return self._install(
            f"the stream {_DIRECTIONS[direction]} {self._clients} comes in {size}{pauses}",
            lambda proxy, towards: SliceShaper(octets, pause),
            direction,
        )

    # --- closed ---------------------------------------------------------------------------------------

    @checked
    def cut_after(
        self,
        bytes: int | None = None,
        frames: int | None = None,
        how: str = "fin",
        direction: str = "sent",
    ) -> NetworkFault:
        """End each connection after exactly so many bytes or frames, counted from now or from its start.

        Its hits are connections that were cut. Both directions end together: the broker's answer to the
        last received bytes is not sent. Delayed bytes count when they have arrived.

        Args:
            bytes: bytes that still pass; the cut may be inside a frame.
            frames: whole frames that still pass; the protocol header does not count.
            how: "fin" closes in order, "reset" by a TCP reset, "silence" leaves the connection half-open: see
                `silence`.
            direction: "sent" counts bytes to the client, "received" bytes from it.

        Raises:
            FaultError: both counts, or none, are given.
        """
        if (bytes is None) == (frames is None):
            raise FaultError("say where to cut: cut_after(bytes=100), or cut_after(frames=3)")
        count, counted = (bytes, "bytes") if bytes is not None else (frames, "frames")
        check_count(f"cut_after() takes {counted} as", count, 0)
        _check_word("how", how, _ENDS)
        if direction == "both":
            raise FaultError("cut_after() counts one direction: direction='sent', or 'received'")
        _check_word("direction", direction, _DIRECTIONS)
        return self._install(
            f"{self._clients_are} {_ENDS[how]} after {count} {counted} {direction}",
            lambda proxy, towards: Cut(bytes, frames, how, proxy.protocol),  # type: ignore[arg-type]
            direction,
            silences=how == "silence",
            counted=f"{counted} {direction}",
        )

    @checked
    def reset(self) -> NetworkFault:
        """End every connection now by a TCP reset: clients get ECONNRESET.

        A socketpair has no reset: there the client reads an end of file. Its hits are connections that were
        reset. The fault does not stay in force.
        """
        return self._end_now("reset")

    @checked
    def disconnect(self) -> NetworkFault:
        """End every connection now with FIN and without a close method: clients read an end of file.

        Its hits are connections that were ended. The fault does not stay in force.
        """
        return self._end_now("fin")

    @checked
    def silence(self) -> NetworkFault:
        """Stop all bytes in both directions without telling either side: connections are half-open.

        The client does not see what the broker does meanwhile, such as to close the connection for missed
        heartbeats, and the broker does not see that a client has gone. The heartbeat timeout applies to these
        connections from now on, also on a virtual clock. When the handle is removed, all held bytes flow.
        Connections end as usual when the broker stops or restarts.

        Its hits are connections that became silent.
        """
        return self._install(
            f"no bytes pass to or from {self._clients}, and neither side is told", mutes=True, silences=True
        )

    # --- a broker that does not answer ------------------------------------------------------------------

    @checked
    def hang(self) -> NetworkFault:
        """Let the broker hang: it accepts connections, but neither reads nor sends.

        Its hits are connections that hang. When the handle is removed the broker continues where it stopped,
        but closes connections whose timeouts (such as the handshake's) have passed on its clock.
        """
        return self._install(f"the broker hangs: no bytes pass to or from {self._clients}", mutes=True)

    @checked
    def refuse(self, how: str = "port") -> NetworkFault:
        """Refuse new connections; open connections stay open.

        Its hits are connections that were accepted and ended. Connections that the operating system refuses
        cannot be counted or waited for. Sockets of `Broker.connect` do not use the port, so "port" does not
        refuse them.

        Args:
            how: "port" lets the operating system refuse (ECONNREFUSED); "close" and "reset" accept the
                connection and end it immediately (with TLS, after its handshake).

        Raises:
            FaultError: this is the network of one connection.
        """
        _check_word("how", how, _REFUSALS)
        if self._target is not None:
            raise FaultError(
                "a new connection has no name yet, so refuse() cannot select one; "
                "use network.refuse(), or network.on(...).reset() once it is open"
            )
        if how == "port":
            return self._install(_REFUSALS[how], refuses_port=True)
        ends: Literal["fin", "reset"] = "fin" if how == "close" else "reset"
        return self._install(_REFUSALS[how], ends=ends, newcomers_only=True)

    # --- all faults -------------------------------------------------------------------------------------

    @property
    def faults(self) -> tuple[NetworkFault, ...]:
        """The faults in force here, oldest first."""
        return tuple(
            fault for fault in self._registry.faults if self._target is None or fault.target == self._target
        )

    def restore(self) -> None:
        """Remove all faults of the network; held bytes flow."""
        with self._registry.context:
            for fault in reversed(self.faults):
                fault.remove()

    @property
    def _clients(self) -> str:
        return "all clients" if self._target is None else f"connection {self._target!r}"

    @property
    def _clients_are(self) -> str:
        return "every connection is" if self._target is None else f"connection {self._target!r} is"

    def _install(
        self,
        sentence: str,
        shaper: Callable[[NetworkProxy, Direction], Shaper] | None = None,
        direction: str = "both",
        **facts: Any,
    ) -> NetworkFault:
        fault = NetworkFault(self._registry, self._target, sentence, shaper, direction, **facts)
        self._registry.install(fault)
        return fault

    def _end_now(self, how: Literal["fin", "reset"]) -> NetworkFault:
        with self._registry.context:
            fault = self._install(f"{self._clients_are} {_ENDS[how]}", ends=how)
            fault.remove()
        return fault

    def __repr__(self) -> str:
        return f"<Network of {self._clients} faults={len(self.faults)}>"


def _check_word(name: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        words = " or ".join(map(repr, known))
        hint = near_match(value, known)
        raise FaultError(f"{name} is {words}, not {value!r}{hint if 'mean' in hint else ''}")


class NetworkFault(Handle):
    """A fault of the network. What its hits count is documented at the method of `Network` that made it."""

    def __init__(
        self,
        registry: ProxyRegistry,
        target: str | None,
        sentence: str,
        shaper: Callable[[NetworkProxy, Direction], Shaper] | None = None,
        direction: str = "both",
        *,
        mutes: bool = False,
        silences: bool = False,
        ends: Literal["fin", "reset"] | None = None,
        newcomers_only: bool = False,
        refuses_port: bool = False,
        counted: str = "",
    ) -> None:
        super().__init__(registry.context)
        self.target = target
        self.mutes = mutes
        """True if no bytes pass in either direction while it is in force."""
        self.ends = ends
        """How it ends connections at once; None if it does not."""
        self.newcomers_only = newcomers_only
        """True if it concerns only connections that are opened from now on."""
        self.refuses_port = refuses_port
        self.spared = 0
        """It leaves the proxies with this number and below alone."""
        self._registry = registry
        self._sentence = sentence
        self._shaper = shaper
        self._direction = direction
        self._silences = silences
        self._counted = counted
        self._noted: set[int] = set()

    @property
    def sentence(self) -> str:
        return self._sentence

    @property
    def used(self) -> bool:
        """A refused port counts as used: the broker does not see refused connections."""
        return self.refuses_port or super().used

    @blocking
    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """See `Handle.wait`. `FaultError` is also raised where the broker cannot count the connections."""
        self._check_countable()
        super().wait(n, timeout)

    @wait.coroutine
    async def _wait_coroutine(self, n: int = 1, timeout: float = 5.0) -> None:
        self._check_countable()
        await super().wait.aio(n, timeout)

    def _check_countable(self) -> None:
        if self.refuses_port:
            raise FaultError(
                "the operating system refuses these connections, and the broker cannot count them; "
                "use refuse(how='close') to wait for hits"
            )

    def near_misses(self) -> Iterator[str]:
        """The connections, and how far each has come."""
        alias = self._registry.context.alias
        for proxy in self._registry.proxies:
            names = [alias(proxy.name), None if proxy.port is None else proxy.port.client_name]
            known = " or ".join(repr(name) for name in names if name)
            called = f"connection {proxy.name!r}" + (f" ({known})" if known else "")
            if not self._is_meant(proxy):
                yield f"{called} is another connection"
            elif self._counted:
                yield f"{called}: {proxy.passed(self)} {self._counted} so far"

    def concerns(self, proxy: NetworkProxy) -> bool:
        """True if it acts on this proxy, as far as the names of the connection are known by now."""
        return proxy.number > self.spared and self._is_meant(proxy)

    def _is_meant(self, proxy: NetworkProxy) -> bool:
        target = self.target
        if target is None or target == proxy.name:
            return True
        port = proxy.port
        return port is not None and target in (port.client_name, self._registry.context.alias(proxy.name))

    def make_shaper(self, proxy: NetworkProxy, direction: Direction) -> Shaper | None:
        """What it does to the bytes of one direction; None if nothing."""
        if self._shaper is None or self._direction not in ("both", direction):
            return None
        return self._shaper(proxy, direction)

    def hit(self, proxy: NetworkProxy, count: int) -> None:
        """The first hit on a connection is noted in the trace."""
        self._count_hit(count)
        if proxy.number not in self._noted:
            self._noted.add(proxy.number)
            self._registry.note(proxy, self._sentence)
            if self._silences and proxy.port is not None:
                proxy.port.enforce_heartbeats()

    def _withdraw(self) -> None:
        self._registry.withdraw(self)


class ProxyRegistry:
    """Puts a proxy around every connection while a toxic is in force."""

    def __init__(self, context: BrokerContext, handles: list[Handle]) -> None:
        self.context = context
        self.faults: list[NetworkFault] = []
        self.proxies: tuple[NetworkProxy, ...] = ()
        """Oldest first."""
        self._handles = handles
        self._made = 0
        self._wrapping = False

    def install(self, fault: NetworkFault) -> None:
        """Put a fault in force."""
        with self.context:
            self._handles.append(fault)
            if fault.refuses_port:
                self.context.refuse(True)
            if not self._wrapping:
                self._wrapping = True
                self.context.wrap_connections(self._wrap)
            for proxy in self.proxies:
                self.passed_on(proxy)
            if fault.newcomers_only:
                fault.spared = self._made
            self.faults.append(fault)
            self._refresh()

    def withdraw(self, fault: NetworkFault) -> None:
        """Take a fault out of force."""
        if fault in self.faults:
            self.faults.remove(fault)
        if fault.refuses_port and not any(each.refuses_port for each in self.faults):
            self.context.refuse(False)
        self._refresh()
        if self._wrapping and not self.faults:
            self._wrapping = False
            self.context.wrap_connections(None)

    def _wrap(self, inner: Connection, notify: Callable[[], object]) -> NetworkProxy:
        self._made += 1
        proxy = NetworkProxy(inner, notify, self, self._made)
        self.proxies += (proxy,)
        self.passed_on(proxy)
        proxy.refresh()
        return proxy

    def _refresh(self) -> None:
        for proxy in self.proxies:
            proxy.refresh()

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
        self.proxies = tuple(each for each in self.proxies if each is not proxy)

    def note(self, proxy: NetworkProxy, sentence: str) -> None:
        """Note in the trace that a fault acts on a connection, as soon as the trace knows the connection."""
        proxy.notes.append(sentence)
        if proxy.port is not None:
            self._write_notes(proxy)

    def _write_notes(self, proxy: NetworkProxy) -> None:
        notes, proxy.notes = proxy.notes, []
        for sentence in notes:
            self.context.note(proxy.name, "fault", sentence)
