"""The tap of a broker with faults: frames become frame groups, rules look at them, and the rest passes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.connection_state import ConnectionFaultState
from fakeamqp.faults.interception import Interception
from fakeamqp.faults.next_tap import NullTap
from fakeamqp.faults.received import ReceivedFrames
from fakeamqp.faults.sent import CLOSE_OK, SentGroups
from fakeamqp.faults.watched import WatchedMethods

if TYPE_CHECKING:
    from fakeamqp.faults.alarms import Starvation
    from fakeamqp.faults.context import BrokerContext
    from fakeamqp.faults.fault_port import FaultPort, TappedConnection
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.next_tap import NextTap
    from fakeamqp.faults.rule import Rule

__all__ = ["FaultTap"]

_OVER = frozenset(("closed", "aborted", "lost"))
"""The events after which a connection is gone."""


class FaultTap:
    """The tap of a broker with rules. It is installed while there is something to do.

    Args:
        context: the broker.
        silence: silences the connection of a fault port.
    """

    def __init__(self, context: BrokerContext, silence: Callable[[FaultPort], object]) -> None:
        self.context = context
        self.silence = silence
        self.rules: list[Rule] = []
        self.waiting: dict[Interception, None] = {}
        """The interceptions that are delayed or held, oldest first."""
        self.watched: WatchedMethods = WatchedMethods()
        self.confirms_singly: bool = False
        """True while publishes have to be confirmed one by one. The broker reads it."""
        self.next: NextTap = context.next_tap() or NullTap()
        # Faults do not use these events, so the broker calls the next tap directly.
        self.published: Callable[..., None] = self.next.published
        self.refused: Callable[..., None] = self.next.refused
        self.settled: Callable[..., None] = self.next.settled
        self.expired: Callable[..., None] = self.next.expired
        self.dead_lettered: Callable[..., None] = self.next.dead_lettered
        self.dropped: Callable[..., None] = self.next.dropped
        self.model: Callable[..., None] = self.next.model
        self._received = ReceivedFrames(self)
        self._sent = SentGroups(self)
        self.block: Callable[[ConnectionFaultState, FrameGroup], bool] = self._received.block
        self.unblock: Callable[[ConnectionFaultState, FrameGroup], None] = self._received.unblock
        self.cut: Callable[[ConnectionFaultState, FrameGroup, int], None] = self._sent.cut
        self._starving: list[Starvation] = []
        """The starvations to tell of new subscriptions."""
        self._installed = False
        self._processing: ConnectionFaultState | None = None
        """The connection whose input is being processed: it flushes its confirms by itself afterwards."""
        self._deferred = 0
        """Closes deferred until the current dispatch returns."""
        self._states: dict[TappedConnection, ConnectionFaultState] = {}

    # --- rules ----------------------------------------------------------------------------------------

    def add(self, rule: Rule) -> None:
        """Put a rule in force, behind those in force."""
        self.rules.append(rule)
        self._rules_changed()
        self._install()

    def remove(self, rule: Rule) -> None:
        """Take a rule out of force. Frame groups that it delays or holds pass on."""
        if rule not in self.rules:
            return
        self.rules.remove(rule)
        self._rules_changed()
        for interception in [each for each in self.waiting if each.rule is rule]:
            interception.release()
        for state in list(self._states.values()):
            self._received.release_unwanted(state)

    def watch(self, starvation: Starvation) -> None:
        """Tell a starvation of new subscriptions."""
        self._starving.append(starvation)
        self.model = self._model_event
        self._install()

    def unwatch(self, starvation: Starvation) -> None:
        """End `watch`."""
        if starvation in self._starving:
            self._starving.remove(starvation)
        if not self._starving:
            self.model = self.next.model

    def _model_event(self, event: str, **facts: Any) -> None:
        self.next.model(event, **facts)
        if event == "consumer added":
            for starvation in list(self._starving):
                starvation.subscribed(facts["queue"], facts["consumer"], facts.get("connection", ""))

    def _install(self) -> None:
        if not self._installed:
            self._installed = True
            self.context.install(self)

    def settle(self) -> None:
        """Uninstall the tap if there are no rules and nothing is kept."""
        if self.rules or self.waiting or self._deferred or self._starving or not self._installed:
            return
        if not any(state.busy for state in self._states.values()):
            self._installed = False
            self._states.clear()
            self.context.install(None)

    def _rules_changed(self) -> None:
        self.confirms_singly = self.watched.update(self.rules)
        for state in self._states.values():
            self.watched.set_prefixes(state)

    def _state_of(self, tapped: TappedConnection) -> ConnectionFaultState:
        found = self._states.get(tapped)
        if found is None:
            found = ConnectionFaultState(tapped, self.note, self._sent.send)
            self.watched.set_prefixes(found)
            if self._installed and found.port.open:
                self._states[tapped] = found
        return found

    # --- the tap --------------------------------------------------------------------------------------

    def received(self, connection: TappedConnection, frame_type: int, channel: int, payload: bytes) -> bool:
        self.next.received(connection, frame_type, channel, payload)
        state = self._states.get(connection) or self._state_of(connection)
        kept = state.gathering or state.backlog or state.incomplete or state.deaf
        if not kept and payload[: state.prefix_size] not in state.watched_prefixes["received"]:
            # The frame neither concerns a rule nor continues one that does. With rules about rare methods
            # nearly all frames leave here, so the prefix alone decides. Measured with a rule about
            # queue.delete: 21 % of the throughput from publish to delivery, and 29 % without this test.
            return False
        if state.deaf:
            return True
        before, self._processing = self._processing, state
        try:
            return self._received.receive(state, frame_type, channel, payload)
        finally:
            self._processing = before

    def sending(self, connection: TappedConnection, octets: bytes) -> bytes:
        state = self._states.get(connection) or self._state_of(connection)
        watches = self.watched.names["sent"] or state.published or self.waiting
        if state.muted or (
            watches and state.protocol.has_watched_method(octets, state.watched_prefixes["sent"])
        ):
            octets = self._sent.filter(state, octets)
        return self.next.sending(connection, octets) if octets else octets

    def delivered(
        self,
        message: Any,
        queue: str,
        consumer: str | None,
        connection: Any,
        channel: int,
        tag: int,
        redelivered: bool,
    ) -> None:
        """The frames come next."""
        if consumer is None:
            self._sent.note_get(connection, channel, tag, queue)
        self.next.delivered(message, queue, consumer, connection, channel, tag, redelivered)

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        self.next.connection(connection, event, detail)
        if event == "opened":
            for tapped in self._named(connection):
                for rule in self.rules:
                    rule.enforce_heartbeats(tapped.fault_port)
        if event in _OVER:
            self._sent.forget_get()
            for tapped in self._named(connection):
                self._states.pop(tapped).ended = True
            for interception in [each for each in self.waiting if each.state.ended]:
                if interception.group.name != CLOSE_OK:
                    interception.abandon()
            self.settle()

    def _named(self, connection: str) -> list[TappedConnection]:
        return [tapped for tapped in self._states if tapped.name == connection]

    def note(self, port: FaultPort, sentence: str) -> None:
        """Note in the trace what a fault did."""
        self.next.connection(port.name, "fault", sentence)

    def shown(self, port: FaultPort, octets: bytes) -> bytes:
        """Show the next tap whole frames that rules do not look at, before they are sent."""
        for tapped in self.context.connections():
            if tapped.fault_port is port:
                return self.next.sending(tapped, octets)
        return octets

    # --- frame groups ---------------------------------------------------------------------------------

    def consider(self, state: ConnectionFaultState, group: FrameGroup, part: str | None = None) -> bool:
        """Offer a frame group to the rules; the first that fires takes it. Returns whether one does."""
        for rule in list(self.rules):
            if rule.part == part and rule.matches(group) and rule.fires(group):
                if not rule.actions:
                    continue  # A rule without an action only counts.
                self.note(group.port, f"{rule}: {group}")
                group.intercepted()
                Interception(self, state, rule, group).run()
                return True
        return False

    def pass_on(self, state: ConnectionFaultState, group: FrameGroup, *, secured: bool = True) -> None:
        """Send or process a frame group. A crash loses a publish that is not `secured`."""
        if group.direction == "sent":
            self._sent.send(state, group)
            return
        if group.name in self.watched.confirmed and not group.is_duplicate:
            self._received.remember(state, group)
        group.pass_on(secured=secured)

    def confirm(self, state: ConnectionFaultState) -> None:
        """Flush the confirms of a connection, unless that follows anyway when its input is processed."""
        if state is not self._processing and not state.ended:
            state.port.flush_confirms()

    def outstanding(self, state: ConnectionFaultState, channel: int) -> list[int]:
        """The tags of the publishes that a client waits for, ascending, as far as they are known.

        Of the publishes that are never confirmed only the first is included.
        """
        tags = set(state.published.get(channel, ()))
        if channel in state.unconfirmed:
            tags.add(state.unconfirmed[channel])
        for interception in self.waiting:
            group = interception.group
            here = interception.state is state and group.channel == channel
            if here and group.name in state.protocol.confirms:
                tags.add(group.method.delivery_tag)
        return sorted(tags)

    def defer(self, interception: Interception, callback: Callable[[], object], label: str) -> None:
        """Call `callback` once the current dispatch has returned."""
        self._deferred += 1

        def call() -> None:
            self._deferred -= 1
            try:
                callback()
            except Exception as error:
                interception.rule.fail(error, interception.group)
            self.settle()

        self.context.call_at(self.context.now(), call, label)

    def ports(self) -> Iterable[FaultPort]:
        """The fault ports of the open connections, oldest first."""
        return [tapped.fault_port for tapped in self.context.connections()]
