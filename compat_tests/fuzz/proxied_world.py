"""A client that does what a program says, behind a proxy whose rules, network and broker go wrong.

The client follows the protocol: it uses a channel once it is open, settles what it holds, answers closes, and
comes back when its connection is lost. What never comes it does not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from compat_tests.differential.script import Call, Pause, ack, get, publish, queue
from compat_tests.fuzz import chaos_world
from compat_tests.fuzz.checks import active_timers
from compat_tests.fuzz.fault_server import Link
from compat_tests.fuzz.proxied_legs import REPLACED, UNKNOWN_TAG, Legs, Malformed, Said
from compat_tests.fuzz.proxied_server import ProxyServer
from compat_tests.programs.program import CONFIRMS, UNKNOWN_TAG as UNKNOWN, Program, listing
from compat_tests.scripted.amqp_0_9_1 import METHODS
from fakeamqp.faults import FaultError, Rule
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["TROUBLES", "Trouble", "World", "run"]

assert chaos_world.REPLACED == REPLACED
assert UNKNOWN == UNKNOWN_TAG

_BY_NAME = {each.NAME: each for each in METHODS.values()}
_CAPABILITIES = {
    "consumer_cancel_notify": True,
    "authentication_failure_close": True,
    "connection.blocked": True,
}
_FRAME_SIZE = 4096


class Trouble(NamedTuple):
    """Something that goes wrong before the step with this number; the others say which."""

    before: int
    kind: str
    pick: int
    more: int


class _NotNow(Exception):
    """The client cannot take a step: it has no open channel."""


class _Noting:
    """`Faults`, with rules that report what they act on."""

    def __init__(self, server: ProxyServer) -> None:
        self._server = server
        self.network = server.faults.network

    def on(self, *methods: str, **wanted: Any) -> Rule:
        rule = self._server.faults.on(*methods, **{**wanted, "optional": True})
        return rule.call(partial(self._acts, rule))

    def _acts(self, rule: Rule, group: Any) -> None:
        actions = rule._actions[1:]
        times = sum(getattr(action, "_times", 0) for action in actions)
        self._server.legs[group.port.name].acted([type(each).__name__ for each in actions], times, group)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server.faults, name)


class Client:
    """See the module."""

    def __init__(self, world: World) -> None:
        self.open: set[int] = set()
        self.held: dict[int, set[int]] = {}
        """Delivery tags by channel."""
        self.consumers: dict[str, int] = {}
        """Their channels."""
        self.world = world
        self.link: Link | None = None
        self.legs: Legs | None = None
        self.ready = False
        self.asked: set[int] = set()
        """Channels with a channel.open, a confirm.select or a channel.close without an answer."""
        self.closing: set[int] = set()
        """Those of them that it closes."""
        self.getting: set[int] = set()
        """Channels with a basic.get without an answer."""
        self.halves = False
        """Whether the next publish is sent in two parts."""
        self.rest: dict[int, bytes] = {}
        """By channel: the second part, which its next method follows."""

    # --- the connection -------------------------------------------------------------------------------

    def connect(self) -> None:
        self.leave()
        self.link = self.world.server.link()
        if self.link is not None:
            self.legs = self.world.server.legs[self.link.connection.name]
            self._send_bytes(PROTOCOL_HEADER)

    def leave(self) -> None:
        """The connection is gone, or is to be."""
        link, self.link = self.link, None
        self.ready = False
        for known in (self.asked, self.closing, self.rest):
            known.clear()
        for channel in {*self.open, *self.held}:
            self.forget(channel)
        if link is not None:
            link.receive_eof()

    def forget(self, channel: int) -> None:
        """A channel has closed."""
        self.open.discard(channel)
        self.held.pop(channel, None)
        for tag in [tag for tag, number in self.consumers.items() if number == channel]:
            del self.consumers[tag]
        self.asked.discard(channel)
        self.getting.discard(channel)

    def _send_bytes(self, octets: bytes) -> None:
        if self.link is not None and self.legs is not None:
            self.legs.client_sends(octets)
            self.link.receive(octets)

    def _send(self, channel: int, method: Any) -> None:
        self._send_bytes(self.rest.pop(channel, b"") + method_frame(channel, method.encode()))

    # --- what a program does --------------------------------------------------------------------------

    def perform(self, step: Call | Pause) -> None:
        if self.link is None:
            self.connect()
            self.world.pump()
        if isinstance(step, Pause):
            self.world.advance(step.seconds)
        else:
            with suppress(_NotNow):
                self._call(step.method, **step.arguments)
        self.world.pump()

    def _channel(self, number: int) -> int:
        if self.ready and number not in self.open and number not in self.asked:
            self.asked.add(number)
            self.held[number] = set()
            self._send(number, m.ChannelOpen())
            self.world.pump()
        if not self.ready or number not in self.open:
            raise _NotNow
        return number

    def _call(self, method: str, ch: int = 1, **arguments: Any) -> None:
        """Take a step, as far as it makes sense: faults have changed what is open, held and consumed."""
        if method in ("channel.open", "confirm.select"):
            return  # `_channel` does, where a channel is needed.
        tag = arguments.get("consumer_tag", "")
        if method == "basic.cancel":
            if tag not in self.consumers:
                return
            ch = self.consumers[tag]
        elif method == "basic.consume" and tag in self.consumers:
            return
        channel = self._channel(ch)
        if method == "basic.consume":
            self.consumers[tag] = channel
        elif method == "basic.get":
            if channel in self.getting:
                return
            self.getting.add(channel)
        elif method == "basic.recover":
            self.held[channel].clear()
        elif method in ("basic.ack", "basic.nack", "basic.reject") and arguments["delivery_tag"] != UNKNOWN:
            tags = sorted(self.held[channel])
            if not tags:
                return
            picked = arguments["delivery_tag"] = tags[arguments["delivery_tag"] % len(tags)]
            all_up_to = arguments.get("multiple", False)
            self.held[channel] -= {each for each in tags if each == picked or (all_up_to and each < picked)}
        if method == "publish":
            self._publish(channel, **arguments)
        elif method == "channel.close":
            self._close_channel(channel)
        else:
            self._send(channel, _BY_NAME[method](**arguments))

    def _publish(self, channel: int, body: str, props: Any = None, **arguments: Any) -> None:
        properties = BasicProperties(**(props or {})).encode()
        content = content_frames(channel, 60, properties, body.encode(), _FRAME_SIZE)
        self._send(channel, m.BasicPublish(**arguments))
        if self.halves:
            self.halves = False
            self._send_bytes(content[0])
            self.rest[channel] = b"".join(content[1:])
        else:
            self._send_bytes(b"".join(content))

    def _close_channel(self, channel: int) -> None:
        self._send(channel, m.ChannelClose(reply_code=200))
        self.forget(channel)
        self.closing.add(channel)
        self.asked.add(channel)

    # --- what comes -----------------------------------------------------------------------------------

    def read(self) -> None:
        """Deal with all that has come."""
        link = self.link
        if link is None:
            return
        assert self.legs is not None
        octets, link.arrived = link.arrived, b""
        try:
            for said in self.legs.client_gets(octets):
                self._take(said)
                if self.link is not link:
                    return
        except Malformed as problem:
            assert self.legs.malformed, f"the client gets {problem}"
            self.leave()
        if self.link is link and link.over:
            self.leave()

    def _take(self, said: Said) -> None:
        number, method = said.channel, said.method
        if isinstance(method, m.ConnectionStart):
            properties = {"connection_name": "a", "capabilities": _CAPABILITIES}
            response = b"\0guest\0guest"
            self._send(0, m.ConnectionStartOk(properties, "PLAIN", response, "en_US"))
        elif isinstance(method, m.ConnectionTune):
            self._send(0, m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=0))
            self._send(0, m.ConnectionOpen(virtual_host="/"))
        elif isinstance(method, m.ConnectionOpenOk):
            self.ready = True
        elif isinstance(method, m.ConnectionClose):
            self._send(0, m.ConnectionCloseOk())
            self.leave()
        elif isinstance(method, m.ConnectionCloseOk):
            self.leave()
        elif isinstance(method, m.ChannelOpenOk):
            if number in self.asked and number == CONFIRMS:
                self._send(number, m.ConfirmSelect())
            elif number in self.asked:
                self.asked.discard(number)
                self.open.add(number)
        elif isinstance(method, m.ConfirmSelectOk):
            self.asked.discard(number)
            self.open.add(number)
        elif isinstance(method, m.ChannelClose):
            self._send(number, m.ChannelCloseOk())
            self.forget(number)
            if number in self.closing:
                self.asked.add(number)
        elif isinstance(method, m.ChannelCloseOk):
            self.closing.discard(number)
            self.asked.discard(number)
        elif isinstance(method, (m.BasicCancel, m.BasicCancelOk)):
            self.consumers.pop(method.consumer_tag, None)
        elif isinstance(method, m.ChannelFlow) and number in self.open:
            self._send(number, m.ChannelFlowOk(active=method.active))
        elif isinstance(method, (m.BasicGetOk, m.BasicGetEmpty)):
            self.getting.discard(number)
        if isinstance(method, (m.BasicDeliver, m.BasicGetOk)) and number in self.open:
            assert self.legs is not None
            if method.delivery_tag in self.legs.at_client[number][-1].held:
                self.held[number].add(method.delivery_tag)


_ENDINGS = chaos_world.ENDINGS[:5]
"""Without crashes, which no proxy can cause."""
_AT_ONCE = tuple(each for each in chaos_world.AT_ONCE if "cancel_consumers" not in each.__code__.co_names)
_MORE_RULES: tuple[Callable[[Any], Any], ...] = (
    lambda f: f.on("basic.deliver").times(2).reorder(),
    lambda f: f.on("confirm").with_probability(0.5).times(3).hold(),
    lambda f: f.on("basic.deliver").with_probability(0.5).times(3).delay(0.2),
    lambda f: f.on("channel.open-ok", "channel.close-ok").times(2).delay(0.1),
    lambda f: f.on("channel.close-ok", "channel.close", direction="received").times(2).delay(0.1),
    lambda f: f.on("basic.publish", part="header").once().close_channel(406),
    lambda f: f.on("basic.publish", part="header").once().close_channel(406, when="after"),
    lambda f: f.on("basic.get-ok").once().duplicate(),
    lambda f: f.on("basic.deliver").with_probability(0.5).times(4).duplicate(),
    lambda f: f.on("basic.deliver").with_probability(0.5).times(4).drop(),
    lambda f: f.on("basic.publish").with_probability(0.5).times(4).duplicate(),
    lambda f: f.on("basic.publish").with_probability(0.5).times(4).nack(),
    lambda f: f.on("basic.deliver").once().close_channel(541, when="after"),
)
RULES = (*chaos_world.RULES, *_MORE_RULES)


class World:
    """See the module."""

    def __init__(self) -> None:
        self.server = ProxyServer()
        self.faults = _Noting(self.server)
        self.client = Client(self)

    # --- troubles -------------------------------------------------------------------------------------

    def make(self, trouble: Trouble) -> None:
        TROUBLES[trouble.kind](self, trouble.pick, trouble.more)
        self.pump()

    def rule(self, pick: int, more: int) -> None:
        RULES[pick % len(RULES)](self.faults)

    def ending(self, pick: int, more: int) -> None:
        where = chaos_world.WHERE[pick % len(chaos_world.WHERE)]
        rule = self.faults.on(where).once()
        if more % 2:
            rule.delay(0.005)
        _ENDINGS[more % len(_ENDINGS)](rule, chaos_world.MOMENTS[pick % 3])

    def network(self, pick: int, more: int) -> None:
        chaos_world.NETWORK[pick % len(chaos_world.NETWORK)](self.faults.network).optional()

    def at_once(self, pick: int, more: int) -> None:
        try:
            _AT_ONCE[pick % len(_AT_ONCE)](self.faults)
        except FaultError as error:
            assert "no open channel" in str(error)

    def heal(self, pick: int, more: int) -> None:
        """Release what a rule holds, remove a fault, or all."""
        handles = self.server.faults.rules
        if more % 4 == 0:
            self.server.faults.clear()
        elif handles:
            handle = handles[pick % len(handles)]
            if more % 4 == 1 and isinstance(handle, Rule) and handle.held:
                multiple = handle._subject.confirms and pick % 3 == 0
                reverse = more % 8 > 3 and not multiple
                handle.release(1 if pick % 2 else None, reverse=reverse, multiple=multiple)
            else:
                handle.remove()

    def stall(self, pick: int, more: int) -> None:
        """The broker is slow, or answers again."""
        for upstream in self.server.upstreams:
            upstream.stalled = bool(more % 2)

    def vanish(self, pick: int, more: int) -> None:
        """The broker, or the client, is gone."""
        if more % 2:
            self.client.leave()
        for upstream in list(self.server.upstreams):
            upstream.end()

    def halve(self, pick: int, more: int) -> None:
        self.client.halves = True

    def finish_half(self, pick: int, more: int) -> None:
        for octets in list(self.client.rest.values()):
            self.client._send_bytes(octets)
        self.client.rest.clear()

    # --- time -----------------------------------------------------------------------------------------

    def pump(self) -> None:
        self.server.pump(self.client.read)

    def advance(self, seconds: float) -> None:
        self.server.advance(seconds, self.client.read)

    # --- the end --------------------------------------------------------------------------------------

    def tear_down(self) -> None:
        """All faults end: what is held passes, both sides agree, and nothing is left of any connection."""
        server, client = self.server, self.client
        for upstream in server.upstreams:
            upstream.stalled = False
        self.pump()
        self.finish_half(0, 0)
        server.faults.clear()
        self.pump()
        self.advance(1.0)
        self._check_faults_are_gone()
        if client.ready:
            assert client.legs is not None
            client.legs.check_complete()
            self._hang_up()
        client.leave()
        self.pump()
        self.advance(31.0)  # A client that does not confirm a close has half a minute.
        assert not server.state.connections, server.state.connections
        assert not server.broker.connections, server.broker.connections
        assert not server.links, server.links
        self._check_faults_are_gone()
        self._check_next_client()
        timers = [
            label for label in active_timers(server.broker) if "connection" in label or "fault" in label
        ]
        assert not timers, timers

    def _check_faults_are_gone(self) -> None:
        server = self.server
        assert server.state.tap is server.recorder, "the faults are still in the way"
        executor = server.faults._executor
        assert not executor.waiting, executor.waiting
        assert not executor._states, [vars(state) for state in executor._states.values()]
        assert server.wrap is None

    def _hang_up(self) -> None:
        """A close is confirmed."""
        client = self.client
        assert client.legs is not None
        client._send(0, m.ConnectionClose(reply_code=200))
        self.pump()
        assert client.link is None or client.legs.malformed, "the close of the connection has no answer"

    def _check_next_client(self) -> None:
        """The next client is served, on connections of its own."""
        client = self.client = Client(self)
        name = "of the next client"
        for step in (queue(name), publish(name, ch=CONFIRMS), get(name, 0), ack(1)):
            client.perform(step)
        assert client.legs is not None
        client.legs.check_complete()
        [life] = client.legs.at_client[1]
        assert life.settled, client.legs.history
        self._hang_up()
        self.pump()
        assert not self.server.links


TROUBLES: dict[str, Callable[[World, int, int], None]] = {
    "rule": World.rule,
    "ending": World.ending,
    "network": World.network,
    "at once": World.at_once,
    "heal": World.heal,
    "stall": World.stall,
    "vanish": World.vanish,
    "halve": World.halve,
    "finish half": World.finish_half,
}


def run(program: Program, troubles: Sequence[Trouble]) -> World:
    """Do a program while things go wrong."""
    world = World()
    number = 0
    try:
        for number, step in enumerate(program):
            for trouble in troubles:
                if trouble.before == number:
                    world.make(trouble)
            world.client.perform(step)
        number += 1
        world.tear_down()
    except AssertionError as error:
        legs = world.client.legs
        history = "" if legs is None else "\n".join(legs.history[-60:])
        again = listing(program).replace("run_program(", "run(").removesuffix(")")
        said = f"at step {number}: {error}\n\n{history}\n\nTo run it again:\n\n"
        raise AssertionError(f"{said}{again}, {list(troubles)})") from error
    return world
