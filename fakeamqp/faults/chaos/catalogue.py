"""The faults that chaos can draw, and how probable each of them is in a profile.

Most are the actions of rules, whose classes say how they are drawn. Those that act on the whole broker, or
last for a while, are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, cast

from fakeamqp.errors import near_match
from fakeamqp.faults.actions.action import PUBLISHES, WORK, Action, Drawn
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.lasting import Alarm, Flow
from fakeamqp.faults.rule import ACTIONS

if TYPE_CHECKING:
    from fakeamqp.faults.chaos.chaos import Chaos, ChaosRule
    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.frame_group import FrameGroup

__all__ = ["FAULTS", "PROFILES", "actions_of", "probabilities_of"]


class Deferred(Action):
    """Acts on the broker once the current dispatch has returned.

    Args:
        words: what it does.
        act: acts on the broker because of a frame group. A handle that it returns is removed later.
        seconds: how long the handle stays in force, or 0.
    """

    def __init__(self, words: str, act: Callable[[Chaos, FrameGroup], object], seconds: float = 0.0) -> None:
        self.words: str = f"{words} for {seconds:g} s" if seconds else words
        self._act = act
        self._seconds = seconds

    def apply(self, interception: Interception) -> None:
        rule, group = _chaos_rule(interception), interception.group

        def act() -> None:
            if not rule.removed and group.port.open:
                made = self._act(rule.chaos, group)
                if isinstance(made, Handle):
                    rule.chaos.remove_later(made, self._seconds)

        interception.executor.defer(interception, act, f"fault: {self.words}")


class Restart(Action):
    """Restarts the broker in order."""

    words = "restart the broker"

    def apply(self, interception: Interception) -> None:
        executor, rule = interception.executor, interception.rule

        def restart() -> None:
            if not rule.removed:
                executor.context.restart(crash=False, durable=True)

        executor.defer(interception, restart, f"fault: {self.words}")


class _PendingReset(Handle):
    """Resets a connection when it is removed."""

    sentence = "a connection on which something was lost ends soon"

    def __init__(self, interception: Interception) -> None:
        super().__init__(interception.executor.context)
        self._port = interception.group.port

    def _withdraw(self) -> None:
        if self._port.open:
            self._port.disconnect(reset=True)


class ResetLater(Action):
    """Resets the connection after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.words: str = f"reset its connection {seconds:g} s later"
        self._seconds = seconds

    def apply(self, interception: Interception) -> None:
        _chaos_rule(interception).chaos.remove_later(_PendingReset(interception), self._seconds)


class CancelConsumers(Deferred):
    """Cancels the consumers of the queue that an acknowledged delivery came from."""

    def __init__(self) -> None:
        super().__init__("cancel the consumers of its queue", lambda chaos, group: None)

    def apply(self, interception: Interception) -> None:
        """The queue is looked up before the delivery is settled."""
        group = interception.group
        held = group.port.held_messages(group.channel, group.method)
        virtual_host = group.port.virtual_host
        if held and virtual_host is not None:
            queue = held[-1][0]
            self._act = lambda chaos, group: chaos.executor.context.cancel_consumers(queue, virtual_host)
            super().apply(interception)


def _chaos_rule(interception: Interception) -> ChaosRule:
    return cast("ChaosRule", interception.rule)


def _for_a_while(words: str, begin: Callable[[Chaos, FrameGroup], object]) -> Callable[[Random], Action]:
    """A fault that is removed again after a drawn time."""
    return lambda draw: Deferred(words, begin, round(draw.uniform(0.02, 0.5), 3))


def _slow(draw: Random) -> Action:
    seconds = round(draw.uniform(0.001, 0.02), 4)

    def begin(chaos: Chaos, group: FrameGroup) -> object:
        return chaos.network.on(group.port.name).latency(seconds)

    return _for_a_while(f"delay its bytes by {seconds:g} s", begin)(draw)


def _slices(draw: Random) -> Action:
    octets = draw.randrange(1, 64)

    def begin(chaos: Chaos, group: FrameGroup) -> object:
        return chaos.network.on(group.port.name).slice(octets)

    return _for_a_while(f"slice its bytes into pieces of {octets}", begin)(draw)


def _alarm(chaos: Chaos, group: FrameGroup) -> object:
    return Alarm(chaos.executor.context, "low on memory").start(chaos.handles)


def _stall(chaos: Chaos, group: FrameGroup) -> object:
    return chaos.network.on(group.port.name).hang()


def _flow(chaos: Chaos, group: FrameGroup) -> object:
    if not group.port.channel_open(group.channel):
        return None
    flow = Flow(chaos.executor.context, [(group.port, group.channel)], active=False)
    return flow.start(chaos.handles)


FAULTS: dict[str, Drawn] = {
    **{name: drawn for row in ACTIONS.values() for name, drawn in row.action.drawn.items()},
    "stall": Drawn(WORK, _for_a_while("stall its connection", _stall), "received"),
    "slow": Drawn(WORK, _slow, "received"),
    "slices": Drawn(WORK, _slices, "received"),
    "alarm": Drawn(PUBLISHES, _for_a_while("sound an alarm", _alarm), "received"),
    "flow": Drawn(("basic.publish",), _for_a_while("stop its channel", _flow)),
    "cancel-consumers": Drawn(("basic.ack",), lambda draw: CancelConsumers(), "received"),
    "restart": Drawn(PUBLISHES, lambda draw: Restart(), "received"),
}
"""The faults by name."""


def actions_of(fault: str, draw: Random) -> list[Action]:
    """Draw the actions of a fault."""
    drawn = FAULTS[fault]
    actions = [drawn.make(draw)]
    if drawn.loses:
        actions.append(ResetLater(round(draw.uniform(0.05, 0.5), 3)))
    return actions


PROFILES: dict[str, dict[str, float]] = {
    "gentle": {
        "nack": 0.03,
        "rejected-transfer": 0.03,
        "late-publish": 0.03,
        "late-confirm": 0.05,
        "late-completion": 0.02,
        "late-delivery": 0.05,
        "late-ack": 0.03,
        "duplicate-delivery": 0.02,
        "slow": 0.005,
        "slices": 0.005,
    },
    "network": {
        "disconnect": 0.01,
        "broken-handshake": 0.02,
        "cut-delivery": 0.01,
        "late-delivery": 0.05,
        "late-confirm": 0.05,
        "lost-publish": 0.005,
        "lost-confirm": 0.005,
        "stall": 0.005,
        "slow": 0.01,
        "slices": 0.01,
    },
    "broker": {
        "nack": 0.03,
        "rejected-transfer": 0.03,
        "return": 0.01,
        "close-channel": 0.01,
        "close-connection": 0.005,
        "failed-command": 0.02,
        "forced-close": 0.005,
        "refused-login": 0.01,
        "cancel-consumers": 0.005,
        "alarm": 0.005,
        "flow": 0.002,
        "restart": 0.002,
        "crash": 0.005,
        "late-confirm": 0.03,
    },
    "hostile": {
        "malformed": 0.01,
        "malformed-transfer": 0.01,
        "lost-confirm": 0.01,
        "lost-publish": 0.01,
        "false-nack": 0.02,
        "duplicate-publish": 0.02,
        "duplicate-delivery": 0.03,
        "cut-delivery": 0.01,
    },
}
"""By name: the probability of each fault at every method that it can happen to."""
PROFILES["mixed"] = {
    name: min(profile[name] for profile in PROFILES.values() if name in profile)
    for name in FAULTS
    if not name.startswith("malformed")
}


def probabilities_of(profile: str | Mapping[str, float]) -> dict[str, float]:
    """The probabilities by fault of a profile, given by its name or as they are.

    Raises:
        FaultError: there is no such profile or fault, or a value is not a probability.
    """
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise FaultError(f"there is no profile {profile!r}{near_match(profile, PROFILES)}")
        return dict(PROFILES[profile])
    if not isinstance(profile, Mapping):
        raise FaultError(f"a profile is a name or a dict of probabilities, not {profile!r}")
    for name, probability in profile.items():
        if name not in FAULTS:
            raise FaultError(f"chaos has no fault {name!r}{near_match(name, FAULTS)}")
        if not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise FaultError(f"the probability of {name!r} is between 0 and 1, not {probability!r}")
    return dict(profile)
