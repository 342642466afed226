"""Plays the client side of a recording, and compares the answers of the broker with the recorded ones."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakeamqp.dialects import dialect_named, protocol_of
from fakeamqp.errors import FakeAMQPError, Result
from fakeamqp.replay.peer import BasePeer, Names, Peer, RecordedReply
from fakeamqp.replay.target import (
    PROTOCOL,
    PROTOCOL_1_0,
    PROTOCOLS,
    Logins,
    ReplayError,
    ReplayTarget,
    fresh_broker,
    remote_broker,
)
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent, Trace
from fakeamqp.trace.truncation import Truncated, one_line

if TYPE_CHECKING:
    import os


class NotTheSame(FakeAMQPError, AssertionError):
    """Replayed answers differ from the recorded ones; the text is a diff."""

    __module__ = "fakeamqp.replay"


@dataclass(frozen=True)
class Difference:
    """A recorded answer and the replayed one; None stands for no answer."""

    recorded: str | None
    replayed: str | None
    note: str = ""

    def __str__(self) -> str:
        lines = [f"- {one_line(self.recorded)}" if self.recorded else "- (nothing)"]
        lines.append(f"+ {one_line(self.replayed)}" if self.replayed else "+ (nothing)")
        if self.note:
            lines.append(f"  {one_line(self.note)}")
        return "\n".join(lines)


@dataclass
class Comparison:
    """The comparison of one connection.

    `replies` is the number of compared answers. `skipped` is the reason for not replaying it, or "".
    """

    connection: str
    alias: str
    replies: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: str = ""

    def __str__(self) -> str:
        head = one_line(f"{self.alias} {self.connection}")
        if self.skipped:
            return f"{head}: not replayed: {self.skipped}"
        if not self.differences:
            return f"{head}: the same {self.replies} replies"
        count = len(self.differences)
        head += f": {count} difference{'s' if count > 1 else ''} in {self.replies} replies"
        body = "\n".join(map(str, self.differences))
        return head + "\n" + "\n".join(f"  {line}" for line in body.splitlines())


@dataclass(frozen=True)
class Replay(Result):
    """The outcome of a replay. Its text is a diff by connection.

    Differences that nothing reads fail the test: see `fakeamqp.errors.Result`.
    """

    connections: tuple[Comparison, ...]

    @property
    def same(self) -> bool:
        """True if every connection was replayed and all answers were the same."""
        return not any(each.differences or each.skipped for each in self.connections)

    def expect_same(self) -> None:
        """Assert that every connection was replayed and all answers were the same.

        Raises:
            NotTheSame: they were not.
        """
        if not self.same:
            raise NotTheSame(f"the replay differs from the recording:\n{self}")

    def _failure(self) -> str:
        if self.same:
            return ""
        return f"a replay differs from its recording, and nothing has read it: use expect_same()\n{self}"

    def __str__(self) -> str:
        return "\n".join(map(str, self.connections))


# --- the player -------------------------------------------------------------------------------------------

_QUIET = 0.2
"""The silence after which a broker at a URL is assumed to send nothing more, in seconds."""
_ONLY = f"replay supports only {' and '.join(PROTOCOLS)}"


def replay(
    trace: Trace,
    *,
    url: str | None = None,
    personality: str = "rabbitmq-4.3",
    definitions: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    timeout: float = 5.0,
) -> Replay:
    """Send the frames of all clients in the recorded order, and compare the answers.

    The replay waits for all recorded answers before it sends the next frame. These may differ: names that the
    broker generates, delivery tags, instants in headers, the properties of the broker, the number of confirms
    in one basic.ack, and the order between connections, consumers and confirms; in AMQP 1.0 also the ids of
    deliveries and the flows of the broker. Heartbeats are not sent.

    Connections of other protocols than 0-9-1 and 1.0 are not replayed; their comparison has the reason. What
    comes after the last event of an unfinished recording is not compared.

    Args:
        trace: a loaded recording, or `broker.trace`.
        url: of the broker, such as "amqp://guest:guest@localhost/". Every connection logs in with the user of
            the URL and opens its virtual host, if the URL has one. None makes a fresh broker in this process
            that has the users, virtual hosts and time of the recording.
        personality: of the fresh broker.
        definitions: loaded into the fresh broker at the start, in RabbitMQ's format.
        timeout: the time to wait for an answer, in seconds.

    Raises:
        NoBroker: there is no broker at the URL.
        ReplayError: the trace has no connection that can be replayed, or the URL is not valid.
        FakeAMQPError: the personality or the definitions are not valid.
    """
    events = trace.events
    others: dict[str, str] = {}
    starts = set()
    for event in events:
        if isinstance(event, FrameEvent) and event.protocol not in PROTOCOLS:
            others[event.alias] = event.protocol
        elif isinstance(event, ConnectionEvent) and event.event == "connected":
            starts.add(event.alias)
    starts -= others.keys()
    if not starts and others:
        used = " and ".join(sorted(set(others.values())))
        raise ReplayError(f"nothing can be replayed: the clients of the trace use AMQP {used}; {_ONLY}")
    if not starts:
        raise ReplayError("nothing can be replayed: the trace has no connection with its beginning")
    logins = Logins(events)
    with ExitStack() as stack:
        if url is None:
            target = stack.enter_context(fresh_broker(trace, logins, personality, definitions, timeout))
        else:
            target = remote_broker(url, timeout)
        player = stack.enter_context(_Player(target, starts, others, logins.refused, timeout))
        return player.run(events, whole=not trace.unfinished)


class _Player:
    """Plays one recording."""

    def __init__(
        self,
        target: ReplayTarget,
        starts: set[str],
        others: Mapping[str, str],
        refused: set[str],
        timeout: float,
    ) -> None:
        self._target = target
        self._starts = starts
        self._others = others
        self._refused = refused
        self._timeout = timeout
        self._names = Names()
        self._peers: dict[str, BasePeer] = {}
        self._found: dict[str, Comparison] = {}
        self._not_compared: dict[tuple[str, object], None] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> _Player:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._peers.values():
            peer.close()
        self._selector.close()

    def run(self, events: Iterable[Event], *, whole: bool) -> Replay:
        """Play the events. With `whole`, nothing else may come."""
        now = 0.0
        for event in events:
            if event.time > now:
                self._target.advance(event.time - now)
                now = event.time
            if event.alias in self._starts or not event.alias:
                self._play(event)
            elif isinstance(event, FrameEvent) and event.alias not in self._found:
                spoken = self._others.get(event.alias)
                why = f"it uses AMQP {spoken}; {_ONLY}"
                if spoken is None:
                    why = "its beginning is not in the recording"
                self._found[event.alias] = Comparison(event.connection or "", event.alias, skipped=why)
        if whole:
            self._report_unexpected()
        return Replay(tuple(self._found.values()))

    def _play(self, event: Event) -> None:
        if isinstance(event, ConnectionEvent):
            if event.event == "connected":
                self._peer(event)
            elif event.event == "lost" and event.alias in self._peers:
                self._disconnect(event.alias)
        elif isinstance(event, FrameEvent):
            peer = self._peer(event)
            if peer.skips(event.type, event.payload):
                return
            if event.direction == "received":
                self._send(event, peer)
                return
            for reply in peer.recorded.feed(event.type, event.channel, event.payload):
                self._compare(event.alias, peer, reply)

    def _peer(self, event: Event) -> BasePeer:
        if event.alias not in self._peers:
            header = event.protocol_header if isinstance(event, ConnectionEvent) else b""
            header = header or dialect_named(PROTOCOL).protocol_header
            peer = _peer_class(header)(
                self._target.connect(),
                self._target.login,
                self._names,
                header,
                refused=event.alias in self._refused,
            )
            self._peers[event.alias] = peer
            self._selector.register(peer.socket, selectors.EVENT_READ, peer)
            self._found[event.alias] = Comparison(event.connection or "", event.alias)
        return self._peers[event.alias]

    def _disconnect(self, alias: str) -> None:
        peer = self._peers[alias]
        self._listen(0.0)
        if not peer.closed:
            self._selector.unregister(peer.socket)
        peer.close()

    def _send(self, event: FrameEvent, peer: BasePeer) -> None:
        payload = event.payload
        scope = peer.scope(event.type, event.channel, payload)
        if self._is_over(event.alias, scope):
            return
        if isinstance(payload, Truncated):
            filled = peer.filled(event.type, payload)
            if filled is None:
                self._stop_comparing(event.alias, scope)
                text = f"channel {event.channel}: {event.text}"
                self._differs(
                    event.alias, text, None, "the recording has only a part of it, so it cannot be sent"
                )
                return
            payload = filled
        self._listen(0.0)  # A broker stops reading while its output is not read.
        peer.send(event.type, event.channel, payload)

    def _compare(self, alias: str, peer: BasePeer, recorded: RecordedReply) -> None:
        """Wait for the answer in the place of the recorded one, and compare the two."""
        channel = recorded.channel
        if self._is_over(alias, channel):
            return
        order_key = tuple(map(self._names.of, recorded.order_key))
        if (alias, (channel, order_key)) in self._not_compared:
            return
        arrived = peer.arrived[channel, order_key]
        self._wait(lambda: bool(arrived) or peer.closed or self._closed(peer, channel) is not None)
        self._found[alias].replies += 1
        if arrived:
            replayed = arrived.popleft()
            peer.learn(recorded, replayed)
            if peer.same(recorded, replayed):
                return
            note = ""
            if isinstance(replayed.method, peer.CLOSES) and not isinstance(
                recorded.method, type(replayed.method)
            ):
                note = self._stop_comparing(alias, replayed.channel)
            elif order_key == ("answer",) and type(recorded.method) is not type(replayed.method):
                note = self._stop_comparing(alias, channel)
            self._differs(alias, str(recorded), str(replayed), note + _body_difference(recorded, replayed))
            return
        closed = self._closed(peer, channel)
        if closed is not None:
            peer.arrived[closed.channel, closed.order_key].remove(closed)
            self._differs(alias, str(recorded), str(closed), self._stop_comparing(alias, closed.channel))
        elif peer.closed:
            self._differs(
                alias, str(recorded), None, self._stop_comparing(alias, 0, "the connection has ended; ")
            )
        elif order_key == ("answer",):
            self._differs(alias, str(recorded), None, self._stop_comparing(alias, channel))
        else:
            self._not_compared[alias, (channel, order_key)] = None
            self._differs(alias, str(recorded), None)

    def _closed(self, peer: BasePeer, channel: int) -> RecordedReply | None:
        """A close that arrived in place of another answer."""
        for number in (channel, 0):
            for reply in peer.arrived[number, ("answer",)]:
                if isinstance(reply.method, peer.CLOSES):
                    return reply
        return None

    def _is_over(self, alias: str, channel: int) -> bool:
        """Whether answers on the channel are no longer compared."""
        return (alias, channel) in self._not_compared or (alias, 0) in self._not_compared

    def _stop_comparing(self, alias: str, channel: int, why: str = "") -> str:
        """Skip later answers, which would differ for this reason alone; return a note for the difference."""
        self._not_compared[alias, channel] = None
        what = f"channel {channel}" if channel else "this connection"
        return f"{why}later answers on {what} are not compared"

    def _differs(self, alias: str, recorded: str | None, replayed: str | None, note: str = "") -> None:
        self._found[alias].differences.append(Difference(recorded, replayed, note))

    # --- waiting --------------------------------------------------------------------------------------

    def _wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout
        idle = self._target.idle
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            if idle is None:
                self._listen(left)
            elif not self._listen(0.0) and idle() and not self._listen(0.0):
                return

    def _listen(self, seconds: float) -> bool:
        """Read from all connections for at most `seconds`. Returns True if anything arrived."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            key.data.receive()
            if key.data.closed:
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def _report_unexpected(self) -> None:
        """Add differences for answers that were not recorded."""
        if self._target.idle is None:
            while self._listen(_QUIET):
                pass
        else:
            self._wait(lambda: False)
        for alias, peer in self._peers.items():
            for (channel, _), replies in peer.arrived.items():
                if not self._is_over(alias, channel):
                    for reply in replies:
                        self._differs(alias, None, str(reply))


def _peer_class(header: bytes) -> type[BasePeer]:
    """What replays a client with this protocol header."""
    if protocol_of(header) == PROTOCOL_1_0:
        from fakeamqp.replay.links import LinkPeer

        return LinkPeer
    return Peer


def _body_difference(recorded: RecordedReply, replayed: RecordedReply) -> str:
    """A note on bodies that differ behind equal texts."""
    if recorded.text == replayed.text and recorded.body and replayed.body:
        return f"the bodies differ: {bytes(recorded.body[0][:40])!r} and {bytes(replayed.body[0][:40])!r}"
    return ""
