"""`Faults`: everything that can be made to go wrong in one broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import near_match
from fakeamqp.faults.adapter import adapter_named
from fakeamqp.faults.alarms import Alarm, Flow, Starvation
from fakeamqp.faults.errors import FaultError, check_channel
from fakeamqp.faults.handle import Handle, Handles
from fakeamqp.faults.keywords import checked
from fakeamqp.faults.matching import conditions
from fakeamqp.faults.network import Network
from fakeamqp.faults.redirection import Redirection
from fakeamqp.faults.rule import Connection, Rule
from fakeamqp.faults.subjects import subject_of
from fakeamqp.faults.tap import FaultTap

if TYPE_CHECKING:
    from fakeamqp.faults.chaos import Chaos
    from fakeamqp.faults.line import Direction, FaultPort, Host, Linked

__all__ = ["Faults"]

_PARTS = ("header",)


class Faults:
    """What is to go wrong, and how: rules about methods, the network, alarms.

    Every fault is a handle: `hits` says how often it has happened, `wait` waits for it, `remove` ends it, and
    `str` puts it in a sentence. Get it from `Broker.faults`.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._handles = Handles()
        self._rules_made = 0
        self.network = Network(host, self._handles)
        self._tap = FaultTap(host, self.network.silence_line)

    # --- rules ----------------------------------------------------------------------------------------

    def on(
        self,
        *methods: str,
        direction: Direction | None = None,
        connection: Any = None,
        protocol: str | None = None,
        part: str | None = None,
        optional: bool = False,
        **wanted: Any,
    ) -> Rule:
        """A rule about methods that pass. It is in force at once; say what it does by calling its methods.

        Args:
            methods: names such as "basic.publish" or "message.transfer", patterns such as "queue.*",
                "heartbeat", or "confirm" for publisher confirms that are about to be sent.
            direction: "received" by the broker, or "sent"; by default that in which the methods go, and
                "received" where they go both ways.
            connection: only on this one: its name, its short name in the trace, the name the client gave
                itself, or one of `Broker.connections`.
            protocol: only on connections that speak this one: "0-9-1", "0-10", "0-9" or "0-8". Without it a
                name that is in several, such as "queue.declare", is about all of them.
            part: "header" has the rule look when the content header has come, before any body.
            optional: do not complain if it never fires.
            wanted: what must be so: `exchange`, `routing_key` (a topic pattern), `queue` (that a publish goes
                to, a delivery comes from, a method names), `exchange_type`, `body`, `headers` (those that
                must be there), `channel`, `session` (the name of the 0-10 session), any property, any field
                of the methods. A value is equal, or a
                compiled regular expression that is found in it, or a function that says whether it will do.

        Raises:
            FaultError: a name is misspelled; the text has the nearest that exists.
        """
        subject = subject_of(methods, direction, protocol)
        if part is not None and part not in _PARTS:
            raise FaultError(f"there is no part {part!r} to look at{near_match(part, _PARTS)}")
        if part is not None and (not subject.has_content or subject.direction == "sent"):
            raise FaultError(f"part={part!r} is for methods that bring the broker a content, not {subject}")
        asked = conditions(subject, wanted, self._host.exchange_types)
        among = None if connection is None else Connection(connection, self._host.alias)
        self._rules_made += 1
        random = Random(f"{self._host.seed}:{self._rules_made}")
        rule = Rule(self._tap, subject, asked, among, part, random)
        if optional:
            rule.optional()
        with self._host:
            self._handles.add(rule)
            self._tap.add(rule)
        return rule

    @property
    def rules(self) -> tuple[Handle, ...]:
        """All faults in force, oldest first."""
        return self._handles.in_force

    def clear(self) -> None:
        """Remove all of them; what they held goes on. Rules made from now on draw as in the beginning."""
        with self._host:
            self._handles.clear()
            self._rules_made = 0

    def verify(self) -> None:
        """Complain of faults that never happened.

        Raises:
            UnusedFault: there are some that are not optional; the text has each with its nearest misses.
            Exception: what a function of the test's raised in a rule, if that is not known yet.
        """
        with self._host:
            self._handles.verify()

    def after_restart(self) -> None:
        """Have what outlasts a restart of the broker begin again: alarms. Called inside the engine."""
        alarms = [handle for handle in self._handles.in_force if isinstance(handle, Alarm)]
        if alarms:
            self._host.block(alarms[-1].reason)

    def raise_errors(self) -> None:
        """Raise the first thing that a function of the test's raised in a rule, if that is not known yet."""
        for handle in self._handles:
            handle.raise_error()

    # --- at once --------------------------------------------------------------------------------------

    @checked
    def silence(self, connection: Any) -> Handle:
        """Nothing passes on a connection any more, in either direction, though it stays open.

        Heartbeats count there from now on, whatever clock the broker has. What was held goes on when the
        handle is removed.
        """
        return self.network.on(connection=connection).silence()

    @checked
    def memory_alarm(self, reason: str = "low on memory") -> Alarm:
        """Hold back everybody who publishes, as a broker that is short of memory; `remove` ends it."""
        return self._alarm(reason)

    @checked
    def disk_alarm(self, reason: str = "low on disk") -> Alarm:
        """Hold back everybody who publishes, as a broker that is short of disk space; `remove` ends it."""
        return self._alarm(reason)

    def _alarm(self, reason: str) -> Alarm:
        with self._host:
            alarm = Alarm(self._host, reason, self._handles)
            self._handles.add(alarm)
            alarm.sound()
        return alarm

    @checked
    def redirect(self, host: str, *, known_hosts: Iterable[str] = ()) -> Redirection:
        """Send clients that open a connection to another broker; `remove` ends it.

        AMQP 0-10, 0-9 and 0-8 have words for that (connection.redirect); clients of 0-9-1 are served as ever.

        Args:
            host: where to go, such as "other.example:5672".
            known_hosts: where else they may try.
        """
        with self._host:
            redirection = Redirection(self._host, host, known_hosts, self._handles)
            self._handles.add(redirection)
            redirection.begin()
        return redirection

    @checked
    def channel_flow(
        self, active: bool = False, *, connection: Any = None, channel: int | None = None
    ) -> Flow:
        """Tell clients to stop publishing on their channels (channel.flow); `remove` tells the contrary.

        Args:
            active: True tells them to go on.
            connection: only this one.
            channel: only those of this number.

        Raises:
            FaultError: there is no such channel, or `active` is neither True nor False.
        """
        if not isinstance(active, bool):
            raise FaultError(f"active is True or False, not {active!r}")
        with self._host:
            channels = [
                (line, number)
                for line in self._lines(connection)
                for number in line.channels
                if channel in (None, number)
            ]
            if not channels:
                raise FaultError(f"there is no open channel to be told{self._said(connection, channel)}")
            flow = Flow(self._host, channels, active)
            self._handles.add(flow)
            flow.tell(active)
        return flow

    @checked
    def starve(
        self, queue: str | None = None, *, destination: str | None = None, connection: Any = None
    ) -> Starvation:
        """Let credit of AMQP 0-10 subscriptions count for nothing, so that no message comes.

        Clients are told that message.flow is done, as ever. What they have given counts once this is removed.

        Args:
            queue: only of subscriptions to this queue.
            destination: only of those with this destination.
            connection: only on this one.

        Raises:
            FaultError: a name is none.
        """
        among = None if connection is None else Connection(connection, self._host.alias)
        starvation = Starvation(self._tap, queue, destination, among)
        with self._host:
            self._handles.add(starvation)
            self._tap.watch(starvation)
            starvation.begin()
        return starvation

    @checked
    def cancel_consumers(self, queue: str, virtual_host: str = "/") -> int:
        """End the consumers of a queue from the broker's side, as when its node goes (basic.cancel).

        Returns:
            How many there were.
        """
        with self._host:
            return self._host.cancel_consumers(queue, virtual_host)

    def send(
        self,
        what: bytes | Any,
        *,
        connection: Any = None,
        channel: int = 0,
        body: bytes | None = None,
        **properties: Any,
    ) -> int:
        """Send a client something that no broker would send just now.

        Args:
            what: bytes as they are, or a method of `fakeamqp.protocols.amqp_0_9_1.codec.methods`; for 0-9 one of
                `fakeamqp.protocols.amqp_0_9.codec.methods`, for 0-10 of `fakeamqp.protocols.amqp_0_10.codec.commands` or of
                `controls`.
            connection: which; all open ones that speak this protocol when left out.
            channel: of the method.
            body: makes a content follow the method.
            properties: of the content.

        Returns:
            To how many connections it went.

        Raises:
            FaultError: there is no such connection or property, or this cannot be sent.
            FieldError: a value does not fit its field.
        """
        octets = bytes(what) if isinstance(what, bytes | bytearray | memoryview) else None
        here = dict.fromkeys(("0-9-1", *(linked.protocol for linked in self._host.linked())))
        known = (*(name for each in here for name in adapter_named(each).properties), "headers")
        for name in properties:
            if name not in known:
                raise FaultError(f"there is no property {name!r}{near_match(name, known)}")
        if octets is None and (isinstance(what, str) or not hasattr(what, "encode")):
            raise FaultError(f"what is sent is bytes or a method, not {what!r}")
        if body is not None and not isinstance(body, bytes | bytearray | memoryview):
            raise FaultError(f"the body that is sent is bytes, not {body!r}")
        check_channel(channel)
        with self._host:
            lines = self._lines(connection)
            if not lines:
                raise FaultError(f"there is no open connection to send to{self._said(connection, None)}")
            said: list[tuple[FaultPort, bytes]] = []
            for line in lines:
                protocol = adapter_named(line.protocol)
                if octets is None and not protocol.has(what):
                    continue
                for name in properties:
                    if name not in (*protocol.properties, "headers"):
                        raise FaultError(f"{protocol.name} has no property {name!r}")
                made = protocol.encode(what, line, channel, body, properties) if octets is None else octets
                said.append((line, made))
            if not said:
                spoken = " and ".join(sorted({line.protocol for line in lines}))
                raise FaultError(f"what is sent is bytes or a method of AMQP {spoken}, not {what!r}")
            for line, made in said:
                self._tap.note(line, f"sent {what!r} because the test asked for it")
                line.put(self._tap.shown(line, made) if octets is None else made)
            return len(said)

    @checked
    def chaos(
        self,
        seed: int | str = 0,
        profile: str | Mapping[str, float] = "mixed",
        *,
        intensity: float = 1.0,
        plan: str | None = None,
    ) -> Chaos:
        """Have faults happen at random, by a seed: the same seed, the same faults.

        Args:
            seed: any number or text.
            profile: "gentle", "network", "broker", "hostile" or "mixed", or the probability of each fault
                by its name in `fakeamqp.faults.chaos.FAULTS`.
            intensity: multiplies all probabilities.
            plan: the `plan` of an earlier run, to have exactly that happen again; it says its seed itself.

        Raises:
            FaultError: there is no such profile or fault, the plan cannot be read, or an argument is none.
        """
        from fakeamqp.faults.chaos import Chaos

        chaos = Chaos(self, self._tap, self._handles, seed, profile, intensity=intensity, plan=plan)
        with self._host:
            self._handles.add(chaos)
            chaos.begin()
        return chaos

    @property
    def plans(self) -> tuple[str, ...]:
        """What every `chaos` since the last `clear` has done so far, oldest first: see `Chaos.plan`."""
        return tuple(handle.plan for handle in self._handles if hasattr(handle, "plan"))

    def _lines(self, connection: Any) -> list[FaultPort]:
        lines = [linked.line for linked in self._host.linked() if linked.line.open]
        if connection is None:
            return lines
        among = Connection(connection, self._host.alias)
        return [line for line in lines if among.is_line(line)]

    def _said(self, connection: Any, channel: int | None) -> str:
        if connection is None and channel is None:
            return ""
        names = [name for linked in self._host.linked() for name in _names(linked, self._host)]
        said = getattr(connection, "name", connection)
        return f" on {said!r}{near_match(said, names)}" if connection is not None else f": number {channel}"

    def __repr__(self) -> str:
        return f"<Faults: {len(self.rules)} in force>"

    def __str__(self) -> str:
        """The faults in force, a sentence each."""
        return "\n".join(str(handle) for handle in self.rules) or "no faults"


def _names(linked: Linked, host: Host) -> list[str]:
    line = linked.line
    return [name for name in (line.name, line.client_name, host.alias(line.name)) if name]
