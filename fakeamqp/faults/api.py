"""`Faults`: the API of all faults of one broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.dialects import default_protocol, dialect_named
from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError, UnusedFault, check_channel, check_possible, checked
from fakeamqp.faults.executor import FaultExecutor
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.lasting import Alarm, Flow, Redirection, Starvation
from fakeamqp.faults.matching import ConnectionSelector, conditions, subject_of
from fakeamqp.faults.network import Network
from fakeamqp.faults.rule import Rule

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fakeamqp.dialects import Direction
    from fakeamqp.faults.chaos import Chaos
    from fakeamqp.faults.names import Conditions, MethodName, ProtocolName
    from fakeamqp.faults.port import BrokerContext, TappedConnection

_PARTS = ("header",)


class Faults:
    """The faults of one broker: rules about methods, the network, alarms, chaos. Get it from `Broker.faults`.

    Every fault is a handle: `hits` counts, `wait` waits for hits, `remove` ends the fault, and `str` returns
    a sentence.
    """

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._handles: list[Handle] = []
        """Every fault that was made since the last `clear`, oldest first, removed ones included."""
        self._rules_made = 0
        self.network: Network = Network(context, self._handles)
        self._executor = FaultExecutor(context, self.network)

    def on(
        self,
        *methods: MethodName,
        direction: Direction | None = None,
        connection: Any = None,
        protocol: ProtocolName | None = None,
        part: Literal["header"] | None = None,
        optional: bool = False,
        **wanted: Unpack[Conditions],
    ) -> Rule:
        """Make a rule about methods that pass. It is in force at once; its methods add triggers and actions.

        Args:
            methods: names such as "basic.publish" or "message.transfer", patterns such as "queue.*",
                "heartbeat", or "confirm" for publisher confirms that are about to be sent.
            direction: "received" by the broker, or "sent"; by default the direction of the methods, and
                "received" for methods that go both ways.
            connection: only this one: its name, its short name in the trace, the name the client gave itself,
                or one of `Broker.connections`.
            protocol: only connections that speak this one: "0-9-1", "0-10", "0-9" or "0-8". By default a name
                that several protocols have, such as "queue.declare", stands for all of them.
            part: "header" has the rule act when the content header has arrived, before any body.
            optional: `verify` does not complain if the rule never fires.
            wanted: conditions: `exchange`, `routing_key` (a topic pattern), `queue` (that a publish goes to,
                a delivery comes from, or a method names), `exchange_type`, `body`, `headers` (those that must
                be there), `channel`, `session` (the name of the 0-10 session), any property, any field of the
                methods. A value has to be equal; a compiled regular expression has to match somewhere; a
                function has to return true.

        Raises:
            FaultError: a name is misspelled; the text names the nearest one that exists.
        """
        subject = subject_of(methods, direction, protocol)
        if part is not None and part not in _PARTS:
            raise FaultError(f"there is no part {part!r}{near_match(part, _PARTS)}")
        if part is not None and (not subject.has_content or subject.direction == "sent"):
            raise FaultError(f"part={part!r} is for received methods with a content, not {subject}")
        asked = conditions(subject, wanted, self._context.exchange_types)
        among = None if connection is None else ConnectionSelector(connection, self._context.alias)
        self._rules_made += 1
        random = Random(f"{self._context.seed}:{self._rules_made}")
        rule = Rule(self._executor, subject, asked, among, part, random)
        rule._optional = optional
        with self._context:
            self._handles.append(rule)
            self._executor.add(rule)
        return rule

    @property
    def rules(self) -> tuple[Handle, ...]:
        """The faults in force, oldest first."""
        return tuple(handle for handle in self._handles if not handle.removed)

    def clear(self) -> None:
        """Remove all faults and release the frames that they held. The seed starts again for new rules."""
        with self._context:
            # What passes on meanwhile may meet faults that are still in force, and chaos makes new ones.
            while self._handles:
                self._handles.pop().remove()
            self._rules_made = 0

    def verify(self) -> None:
        """Check that every fault has happened.

        Raises:
            UnusedFault: some have not and are not optional; the text lists them with their near misses.
            Exception: a function of the test raised it in a rule, and no call has raised it yet.
        """
        with self._context:
            self.raise_errors()
            unused = [handle for handle in self._handles if not handle.used]
            if unused:
                number = "a fault was" if len(unused) == 1 else f"{len(unused)} faults were"
                raise UnusedFault(
                    f"{number} installed and never happened (call .optional() on those that need not happen):"
                    + "".join(f"\n  - {handle._complaint()}" for handle in unused)
                )

    def after_restart(self) -> None:
        """Put alarms in force again: they outlast a restart. Called inside the engine."""
        for handle in self.rules:
            if isinstance(handle, Alarm):
                handle.resume()

    def raise_errors(self) -> None:
        """Raise the first error of a function of the test that no call has raised yet."""
        for handle in self._handles:
            handle._raise_error()

    @checked
    def silence(self, connection: Any) -> Handle:
        """Silence a connection: no bytes pass in either direction, though it stays open.

        The heartbeat timeout applies to it from now on, also on a virtual clock. When the handle is removed,
        held bytes flow.
        """
        return self.network.on(connection=connection).silence()

    @checked
    def memory_alarm(self, reason: str = "low on memory") -> Alarm:
        """Block all publishers, as a broker that is low on memory does; `remove` ends it."""
        return Alarm(self._context, reason).start(self._handles)

    @checked
    def disk_alarm(self, reason: str = "low on disk") -> Alarm:
        """Block all publishers, as a broker that is low on disk space does; `remove` ends it."""
        return Alarm(self._context, reason).start(self._handles)

    @checked
    def redirect(self, host: str, *, known_hosts: Iterable[str] = ()) -> Redirection:
        """Redirect clients that open a connection to another broker; `remove` ends it.

        AMQP 0-10, 0-9 and 0-8 have connection.redirect. Clients of 0-9-1 are served as usual.

        Args:
            host: the other broker, such as "other.example:5672".
            known_hosts: further brokers that the client may try.
        """
        check_possible("redirect", self._context.impossible)
        return Redirection(self._context, host, known_hosts, self._handles).start(self._handles)

    @checked
    def channel_flow(
        self, active: bool = False, *, connection: Any = None, channel: int | None = None
    ) -> Flow:
        """Send channel.flow: clients stop publishing on their channels; `remove` sends the opposite.

        Args:
            active: True tells clients to continue.
            connection: only this one.
            channel: only channels with this number.

        Raises:
            FaultError: there is no such channel, or `active` is neither True nor False.
        """
        if not isinstance(active, bool):
            raise FaultError(f"active is True or False, not {active!r}")
        with self._context:
            channels = [
                (tapped.fault_port, number)
                for tapped in self._open(connection)
                for number in tapped.fault_port.channels
                if channel in (None, number)
            ]
            if not channels:
                raise FaultError(f"there is no open channel{self._said(connection, channel)}")
            return Flow(self._context, channels, active).start(self._handles)

    @checked
    def starve(
        self, queue: str | None = None, *, destination: str | None = None, connection: Any = None
    ) -> Starvation:
        """Ignore the credit of AMQP 0-10 subscriptions, so that no message is delivered to them.

        message.flow is completed as usual. The credit that clients give counts once this is removed.

        Args:
            queue: only subscriptions to this queue.
            destination: only subscriptions with this destination.
            connection: only this one.

        Raises:
            FaultError: an argument is not a name.
        """
        check_possible("starve", self._context.impossible)
        among = None if connection is None else ConnectionSelector(connection, self._context.alias)
        return Starvation(self._executor, queue, destination, among).start(self._handles)

    @checked
    def cancel_consumers(self, queue: str, virtual_host: str = "/") -> int:
        """Cancel the consumers of a queue from the broker's side (basic.cancel), as when its node goes down.

        Returns:
            How many consumers there were, at least one.

        Raises:
            FaultError: there was none, so that nothing has happened.
            NoSuchQueue: the queue does not exist.
        """
        check_possible("cancel_consumers", self._context.impossible)
        with self._context:
            cancelled = self._context.cancel_consumers(queue, virtual_host)
        if not cancelled:
            raise FaultError(
                f"cancel_consumers({queue!r}): the queue has no consumer; wait for one with "
                f"broker.queue({queue!r}).wait_for(consumers=1)"
            )
        return cancelled

    def send(
        self,
        what: bytes | Any,
        *,
        connection: Any = None,
        channel: int = 0,
        body: bytes | None = None,
        **properties: Any,
    ) -> int:
        """Send a client bytes, or a method that no broker would send now.

        Args:
            what: bytes, sent unchanged; or a method, command or control of the connection's protocol, from
                `methods`, `commands` or `controls` in its package `fakeamqp.protocols.*.codec`.
            connection: only this one; by default all open ones that speak the method's protocol.
            channel: the channel of the method.
            body: adds a content with this body to the method.
            properties: the properties of the content.

        Returns:
            The number of connections it was sent to.

        Raises:
            FaultError: there is no such connection or property, or `what` cannot be sent.
            FieldError: a value does not fit its field.
        """
        octets = bytes(what) if isinstance(what, bytes | bytearray | memoryview) else None
        here = dict.fromkeys(
            (default_protocol().name, *(tapped.protocol for tapped in self._context.connections()))
        )
        known = (*(name for each in here for name in dialect_named(each).property_names), "headers")
        for name in properties:
            if name not in known:
                raise FaultError(f"there is no property {name!r}{near_match(name, known)}")
        if octets is None and (isinstance(what, str) or not hasattr(what, "encode")):
            raise FaultError(f"send() takes bytes or a method, not {what!r}")
        if body is not None and not isinstance(body, bytes | bytearray | memoryview):
            raise FaultError(f"send() takes body as bytes, not {body!r}")
        check_channel(channel)
        with self._context:
            open_ones = self._open(connection)
            if not open_ones:
                raise FaultError(f"there is no open connection{self._said(connection, None)}")
            output: list[tuple[TappedConnection, bytes]] = []
            for tapped in open_ones:
                protocol = dialect_named(tapped.protocol)
                if octets is not None:
                    output.append((tapped, octets))
                elif protocol.has(what):
                    for name in properties:
                        if name not in (*protocol.property_names, "headers"):
                            raise FaultError(f"{protocol.name} has no property {name!r}")
                    made = protocol.encode(what, tapped.fault_port, channel, body, properties)
                    output.append((tapped, made))
            if not output:
                spoken = " and ".join(sorted({tapped.protocol for tapped in open_ones}))
                raise FaultError(f"send() takes bytes or a method of AMQP {spoken}, not {what!r}")
            shown = self._executor.next_tap.sending
            for tapped, made in output:
                self._executor.note(tapped.fault_port, f"sent {what!r} because the test asked for it")
                tapped.fault_port.send(shown(tapped, made) if octets is None else made)
            return len(output)

    @checked
    def chaos(
        self,
        seed: int | str | None = None,
        profile: str | Mapping[str, float] = "mixed",
        *,
        intensity: float = 1.0,
        plan: str | None = None,
    ) -> Chaos:
        """Let faults happen at random: the same seed, the same faults.

        Args:
            seed: any number or text. By default the seed of the simulation that the broker runs in, if it has
                one, otherwise 0.
            profile: "gentle", "network", "broker", "hostile" or "mixed", or the probability of each fault
                by its name in `fakeamqp.faults.chaos.FAULTS`.
            intensity: multiplies all probabilities.
            plan: the `plan` of an earlier run: exactly its faults happen again. The plan has its own seed.

        Raises:
            FaultError: there is no such profile or fault, the plan cannot be read, or an argument is invalid.
        """
        from fakeamqp.faults.chaos import Chaos

        if seed is None:
            seed = self._context.simulation_seed or 0
        chaos = Chaos(self._executor, self._handles, seed, profile, intensity, plan)
        return chaos.start(self._handles)

    @property
    def plans(self) -> tuple[str, ...]:
        """The `Chaos.plan` of every `chaos` since the last `clear`, oldest first."""
        return tuple(handle.plan for handle in self._handles if hasattr(handle, "plan"))

    def _open(self, connection: Any) -> list[TappedConnection]:
        found = [tapped for tapped in self._context.connections() if tapped.fault_port.open]
        if connection is None:
            return found
        among = ConnectionSelector(connection, self._context.alias)
        return [tapped for tapped in found if among.selects(tapped.fault_port)]

    def _said(self, connection: Any, channel: int | None) -> str:
        if connection is None and channel is None:
            return ""
        names: list[str] = []
        for tapped in self._context.connections():
            others = (tapped.fault_port.client_name, self._context.alias(tapped.name))
            names += (tapped.name, *(name for name in others if name))
        said = getattr(connection, "name", connection)
        return f" on {said!r}{near_match(said, names)}" if connection is not None else f": number {channel}"

    def __repr__(self) -> str:
        return f"<Faults: {len(self.rules)} in force>"

    def __str__(self) -> str:
        """The faults in force, one sentence per line."""
        return "\n".join(str(handle) for handle in self.rules) or "no faults"
