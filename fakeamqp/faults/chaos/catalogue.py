"""The faults that chaos can draw."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.adapters import protocol_named
from fakeamqp.faults import actions
from fakeamqp.faults.chaos.actions import CancelConsumers, Deferred, ResetLater, Restart
from fakeamqp.faults.replies import reply_text
from fakeamqp.faults.subjects import CONFIRM

if TYPE_CHECKING:
    from fakeamqp.faults.actions import Action
    from fakeamqp.faults.api import Faults
    from fakeamqp.faults.frame_group import FrameGroup

__all__ = ["FAULTS", "ChaosFault"]


class ChaosFault(NamedTuple):
    """One fault of the catalogue.

    Args:
        methods: what it can happen to.
        make: draws its actions.
        direction: the direction of the methods, if it matters.
        needs: the capability of the protocols in which it happens; empty for all.
    """

    methods: tuple[str, ...]
    make: Callable[[Random], list[Action]]
    direction: str | None = None
    needs: str = ""

    def happens_in(self, protocol: str) -> bool:
        """True if it can happen on connections of a protocol."""
        return not self.needs or self.needs in protocol_named(protocol).capabilities


def _when(draw: Random) -> actions.When:
    return draw.choice(("instead", "before", "after"))


def _how(draw: Random) -> actions.How:
    return draw.choice(("fin", "reset"))


def _delay(draw: Random) -> list[Action]:
    return [actions.Delay(round(draw.uniform(0.001, 0.05), 4), 0.0, draw)]


def _close_channel(draw: Random) -> list[Action]:
    code = draw.choice((404, 405, 406))
    return [actions.CloseChannel(code, reply_text(code, None), _when(draw))]


def _force_close(draw: Random) -> list[Action]:
    code = draw.choice((320, 501))
    return [actions.CloseConnection(code, reply_text(code, None), _when(draw))]


def _exception(draw: Random) -> list[Action]:
    code = draw.choice(("not-found", "resource-locked", "resource-limit-exceeded"))
    return [actions.CommandException(code, None, None)]


def _close_connection(draw: Random) -> list[Action]:
    code = draw.choice((320, 501, 541))
    return [actions.CloseConnection(code, reply_text(code, None), _when(draw))]


def _drop(draw: Random) -> list[Action]:
    return [actions.Drop(), ResetLater(round(draw.uniform(0.05, 0.5), 3))]


def _for_a_while(
    words: str, begin: Callable[[Faults, FrameGroup], object]
) -> Callable[[Random], list[Action]]:
    """A fault that is removed again after a drawn time."""
    return lambda draw: [Deferred(words, begin, round(draw.uniform(0.02, 0.5), 3))]


def _slow(draw: Random) -> list[Action]:
    seconds = round(draw.uniform(0.001, 0.02), 4)

    def begin(faults: Faults, group: FrameGroup) -> object:
        return faults.network.on(group.port.name).latency(seconds)

    return _for_a_while(f"delay its bytes by {seconds:g} s", begin)(draw)


def _slices(draw: Random) -> list[Action]:
    octets = draw.randrange(1, 64)

    def begin(faults: Faults, group: FrameGroup) -> object:
        return faults.network.on(group.port.name).slice(octets)

    return _for_a_while(f"slice its bytes into pieces of {octets}", begin)(draw)


def _alarm(faults: Any, group: FrameGroup) -> object:
    return faults.memory_alarm().optional()


def _stall(faults: Faults, group: FrameGroup) -> object:
    return faults.network.on(group.port.name).hang()


def _flow(faults: Faults, group: FrameGroup) -> object:
    if not group.port.channel_open(group.channel):
        return None
    return faults.channel_flow(connection=group.port.name, channel=group.channel)


_WORK_0_9_1 = ("basic.publish", "basic.ack", "basic.get", "basic.consume", "queue.declare", "queue.bind")
_WORK_0_9_X = (*_WORK_0_9_1, "message.transfer", "message.consume", "message.get")
_WORK_0_10 = (
    "message.transfer",
    "message.accept",
    "message.subscribe",
    "message.flow",
    "queue.declare",
    "queue.query",
    "exchange.bind",
)
_WORK = (*_WORK_0_9_1, *_WORK_0_10)
_PUBLISHES = ("basic.publish", "message.transfer")
_DELIVERIES = ("basic.deliver", "message.transfer")

FAULTS: dict[str, ChaosFault] = {
    "nack": ChaosFault(("basic.publish",), lambda draw: [actions.Nack()], needs="confirms"),
    "rejected-transfer": ChaosFault(
        ("message.transfer",), lambda draw: [actions.Nack()], "received", needs="requests"
    ),
    "return": ChaosFault(("basic.publish",), lambda draw: [actions.ReturnMessage(312, "NO_ROUTE")]),
    "lost-publish": ChaosFault(_PUBLISHES, _drop, "received"),
    "duplicate-publish": ChaosFault(_PUBLISHES, lambda draw: [actions.Duplicate(1)], "received"),
    "late-publish": ChaosFault(_PUBLISHES, _delay, "received"),
    "late-ack": ChaosFault(
        (
            "basic.ack",
            "basic.nack",
            "basic.reject",
            "message.accept",
            "message.release",
            "message.reject",
            "message.ok",
        ),
        _delay,
        "received",
    ),
    "lost-confirm": ChaosFault((CONFIRM,), _drop),
    "late-confirm": ChaosFault((CONFIRM,), _delay),
    "false-nack": ChaosFault((CONFIRM,), lambda draw: [actions.Nack()]),
    "late-completion": ChaosFault(("session.completed",), _delay, "sent", needs="sessions"),
    "late-delivery": ChaosFault(_DELIVERIES, _delay, "sent"),
    "duplicate-delivery": ChaosFault(_DELIVERIES, lambda draw: [actions.Duplicate(1)], "sent"),
    "cut-delivery": ChaosFault(
        _DELIVERIES,
        lambda draw: [
            actions.CutConnection(draw.choice(("method", "header", draw.randrange(60))), _how(draw))
        ],
        "sent",
    ),
    "disconnect": ChaosFault(_WORK, lambda draw: [actions.Disconnect(_how(draw), _when(draw))], "received"),
    "broken-handshake": ChaosFault(
        ("connection.start-ok", "connection.open", "channel.open", "session.attach"),
        lambda draw: [actions.Disconnect(_how(draw), "instead")],
    ),
    "refused-login": ChaosFault(("connection.start-ok",), lambda draw: [actions.RefuseLogin(None)]),
    "stall": ChaosFault(_WORK, _for_a_while("stall its connection", _stall), "received"),
    "slow": ChaosFault(_WORK, _slow, "received"),
    "slices": ChaosFault(_WORK, _slices, "received"),
    "alarm": ChaosFault(_PUBLISHES, _for_a_while("sound an alarm", _alarm), "received"),
    "flow": ChaosFault(("basic.publish",), _for_a_while("stop its channel", _flow)),
    "cancel-consumers": ChaosFault(("basic.ack",), lambda draw: [CancelConsumers()], "received"),
    "restart": ChaosFault(_PUBLISHES, lambda draw: [Restart()], "received"),
    "close-channel": ChaosFault(_WORK_0_9_X, _close_channel, "received", needs="channels"),
    "close-connection": ChaosFault(_WORK_0_9_X, _close_connection, "received", needs="channels"),
    "failed-command": ChaosFault(_WORK_0_10, _exception, "received", needs="sessions"),
    "forced-close": ChaosFault(_WORK_0_10, _force_close, "received", needs="sessions"),
    "crash": ChaosFault(_PUBLISHES, lambda draw: [actions.CrashBroker(_when(draw), True)], "received"),
    "malformed": ChaosFault(
        ("basic.deliver", "basic.get-ok"),
        lambda draw: [actions.Malform(draw.choice(("bad-frame-end", "unknown-type", "unknown-method")))],
    ),
    "malformed-transfer": ChaosFault(
        ("message.transfer",),
        lambda draw: [actions.Malform(draw.choice(("bad-flags", "unknown-type", "unknown-method")))],
        "sent",
        needs="sessions",
    ),
}
"""The faults by name."""
