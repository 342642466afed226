"""A recording step by step: what clients sent is sent again, what they were sent is waited for."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fakeamqp.broker import Broker, BrokerError
from fakeamqp.errors import FakeAMQPError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.framed.codec.frames import FRAME_BODY, FRAME_HEARTBEAT, FRAME_METHOD
from fakeamqp.replay.logins import MECHANISMS, read_login
from fakeamqp.replay.peer import Login, Peer
from fakeamqp.replay.replies import Assembler, Names, Reply, same
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent, Trace
from fakeamqp.trace.parts import Cut

if TYPE_CHECKING:
    import os

__all__ = ["Comparison", "Difference", "NoBroker", "Replay", "ReplayError", "replay"]

_QUIET = 0.2
"""How long a broker elsewhere gets to say more than it should, in seconds."""
_MOMENT = 0.05
"""How long to wait for a broker in this process before reading on, in seconds."""
_ADAPTER = "0-9-1"
_REFUSED = "Login was refused"
"""How the trace tells it of a client that does not care to be told."""
_CLOSES = (m.ConnectionClose, m.ChannelClose)


class ReplayError(FakeAMQPError):
    """A recording cannot be replayed, or not there."""


class NoBroker(ReplayError):
    """There is no broker where one should be."""


@dataclass(frozen=True)
class Difference:
    """Where the brokers differ: what was recorded and what came instead; None is nothing at all."""

    recorded: str | None
    replayed: str | None
    remark: str = ""

    def __str__(self) -> str:
        lines = [f"- {self.recorded}" if self.recorded else "- (nothing)"]
        lines.append(f"+ {self.replayed}" if self.replayed else "+ (nothing)")
        if self.remark:
            lines.append(f"  {self.remark}")
        return "\n".join(lines)


@dataclass
class Comparison:
    """One connection of the recording.

    `replies` is how many answers were compared, `skipped` why it was not replayed, "" if it was.
    """

    connection: str
    alias: str
    replies: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: str = ""

    def __str__(self) -> str:
        head = f"{self.alias} {self.connection}"
        if self.skipped:
            return f"{head}: not replayed: {self.skipped}"
        if not self.differences:
            return f"{head}: the same {self.replies} replies"
        count = len(self.differences)
        head += f": {count} difference{'s' if count > 1 else ''} in {self.replies} replies"
        body = "\n".join(map(str, self.differences))
        return head + "\n" + "\n".join(f"  {line}" for line in body.splitlines())


@dataclass(frozen=True)
class Replay:
    """What came of a replay; as text, a diff by connection."""

    connections: tuple[Comparison, ...]

    @property
    def same(self) -> bool:
        """Whether everything could be replayed and every answer was the same."""
        return not any(each.differences or each.skipped for each in self.connections)

    def __str__(self) -> str:
        return "\n".join(map(str, self.connections))


def replay(
    trace: Trace,
    *,
    url: str | None = None,
    personality: str = "rabbitmq-4.2",
    definitions: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    timeout: float = 5.0,
) -> Replay:
    """Do again what the clients of a trace did, in the same order, and compare the answers.

    Before anything is sent, all that had been answered by then is waited for. Names that the broker makes up,
    delivery tags, instants in headers, what the broker says of itself and how confirms are gathered may
    differ, as may the order between connections, consumers and confirms. Heartbeats are left out.

    Connections of other protocols than 0-9-1 are left out, and the comparison says so.

    Args:
        trace: a recording that has been loaded, or a trace as it is.
        url: of the broker, such as "amqp://guest:guest@localhost/"; every connection logs in with its user,
            and opens its virtual host if it names one. None makes a fresh broker in this process, which knows
            the users and virtual hosts of the recording, and whose time is that of the recording.
        personality: of that fresh broker.
        definitions: what that fresh broker has from the beginning, in RabbitMQ's format.
        timeout: how many seconds an answer may take.

    Raises:
        NoBroker: there is none at the URL.
        ReplayError: there is no client in the trace, or the URL is none.
        FakeAMQPError: the personality or the definitions are not what they should be.
    """
    events = trace.events
    foreign = _of_other_protocols(events)
    starts = _beginnings(events) - foreign.keys()
    if not starts and foreign:
        spoken = " and ".join(sorted(set(foreign.values())))
        raise ReplayError(
            f"nothing can be replayed: the clients in the trace speak AMQP {spoken}, and only 0-9-1 can be"
        )
    if not starts:
        raise ReplayError("nothing can be replayed: the trace has no connection from its beginning on")
    with ExitStack() as stack:
        if url is None:
            trial = stack.enter_context(_inside(trace, personality, definitions, timeout))
        else:
            trial = _Trial(*_elsewhere(url, timeout))
        refused = _refused(events)
        replaying = stack.enter_context(_Replaying(trial, starts, foreign, refused, timeout))
        return replaying.run(events)


@dataclass
class _Trial:
    """The broker under trial.

    Args:
        connect: gives a connected socket.
        login: with what to log in.
        advance: lets time pass.
        settled: whether the broker has said all it is going to say; None where nobody can know.
    """

    connect: Callable[[], socket.socket]
    login: Login
    advance: Callable[[float], None] = lambda seconds: None
    settled: Callable[[], bool] | None = None


@contextmanager
def _inside(trace: Trace, personality: str, definitions: Any, timeout: float) -> Iterator[_Trial]:
    users, virtual_hosts, foreign = _accounts(trace.events)
    more = {} if definitions is None else {"definitions": definitions}
    broker = Broker(
        personality=personality,
        clock="virtual",
        now=trace.wall_time,
        users=users,
        virtual_hosts=[name for name in virtual_hosts if name != "/"],
        history=0,
        trace=0,
        **more,
    )
    user, password = next(iter(users.items()))
    login = Login(user, password, spares=MECHANISMS) if foreign else Login()

    def connect() -> socket.socket:
        line = broker.connect()
        line.settimeout(timeout)
        return line

    def settled() -> bool:
        try:
            broker.wait_until_idle(_MOMENT)
        except BrokerError:  # It has more to send than fits into the socket, say.
            return False
        return True

    with broker:
        yield _Trial(connect, login, broker.clock.advance, settled)


def _elsewhere(url: str, timeout: float) -> tuple[Callable[[], socket.socket], Login]:
    """Raises ReplayError: the URL is none for AMQP."""
    try:
        parts = urlsplit(url)
        tls = parts.scheme == "amqps"
        host, port = parts.hostname, parts.port or (5671 if tls else 5672)
    except ValueError:
        host = None
    if not host or parts.scheme not in ("amqp", "amqps"):
        raise ReplayError(f"{url!r} is no URL of a broker; one is amqp://guest:guest@localhost:5672/")

    def connect() -> socket.socket:
        try:
            line = socket.create_connection((host, port), timeout)
            if tls:
                import ssl

                line = ssl.create_default_context().wrap_socket(line, server_hostname=host)
        except OSError as problem:
            raise NoBroker(f"no broker at {host}:{port}: {problem}") from problem
        return line

    virtual_host = unquote(parts.path[1:]) or None
    return connect, Login(
        unquote(parts.username or "guest"), unquote(parts.password or "guest"), virtual_host
    )


def _beginnings(events: Iterable[Event]) -> set[str]:
    """The connections of which the trace has the beginning."""
    return {
        event.alias for event in events if isinstance(event, ConnectionEvent) and event.event == "connected"
    }


def _of_other_protocols(events: Iterable[Event]) -> dict[str, str]:
    """The connections that do not speak 0-9-1, and what they speak."""
    return {
        event.alias: event.protocol
        for event in events
        if isinstance(event, FrameEvent) and event.protocol != _ADAPTER
    }


def _accounts(events: Iterable[Event]) -> tuple[dict[str, str], list[str], bool]:
    """The users of the recording with their passwords as they are in it, the virtual hosts, and whether some
    client has logged in in a way in which it cannot do so again.
    """
    users: dict[str, str] = {}
    virtual_hosts: list[str] = []
    pending: dict[str, Any] = {}
    foreign = False
    for event in events:
        if not isinstance(event, FrameEvent) or event.channel or event.type != FRAME_METHOD:
            continue
        if event.protocol != _ADAPTER:
            continue
        method = event.method
        if isinstance(method, (m.ConnectionStartOk, m.ConnectionOpen)):
            pending[event.alias] = method
        elif isinstance(method, m.ConnectionTune) and event.alias in pending:
            asked = pending.pop(event.alias)
            login = read_login(asked.mechanism, asked.response)
            if login is None:
                foreign = True
            else:
                users.setdefault(*login)
        elif isinstance(method, m.ConnectionOpenOk) and event.alias in pending:
            virtual_hosts.append(pending.pop(event.alias).virtual_host)
    return users or {"guest": "guest"}, list(dict.fromkeys(virtual_hosts)), foreign


def _refused(events: Iterable[Event]) -> set[str]:
    """The connections that were not let in because of what they logged in with."""
    found = set()
    pending: set[str] = set()
    for event in events:
        if isinstance(event, ConnectionEvent):
            if event.alias in pending and event.event == "closed" and event.detail.startswith(_REFUSED):
                found.add(event.alias)
        elif isinstance(event, FrameEvent) and not event.channel and event.type == FRAME_METHOD:
            method = event.method
            if isinstance(method, m.ConnectionStartOk):
                pending.add(event.alias)
            elif isinstance(method, m.ConnectionTune):
                pending.discard(event.alias)
            elif (
                isinstance(method, m.ConnectionClose) and event.alias in pending and method.reply_code == 403
            ):
                found.add(event.alias)
    return found


class _Replaying:
    """One run through a recording."""

    def __init__(
        self,
        trial: _Trial,
        starts: set[str],
        foreign: Mapping[str, str],
        refused: set[str],
        timeout: float,
    ) -> None:
        self._trial = trial
        self._starts = starts
        self._foreign = foreign
        self._refused = refused
        self._timeout = timeout
        self._names = Names()
        self._peers: dict[str, Peer] = {}
        self._recorded: dict[str, Assembler] = {}
        self._found: dict[str, Comparison] = {}
        self._given_up: dict[tuple[str, object], None] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> _Replaying:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._peers.values():
            peer.close()
        self._selector.close()

    def run(self, events: Iterable[Event]) -> Replay:
        """Go through all events."""
        now = 0.0
        for event in events:
            if event.time > now:
                self._trial.advance(event.time - now)
                now = event.time
            if event.alias in self._starts or not event.alias:
                self._step(event)
            elif isinstance(event, FrameEvent) and event.alias not in self._found:
                spoken = self._foreign.get(event.alias)
                why = (
                    "its beginning is not in the recording"
                    if spoken is None
                    else f"it speaks AMQP {spoken}, and only 0-9-1 can be replayed"
                )
                self._found[event.alias] = Comparison(event.connection or "", event.alias, skipped=why)
        self._look_for_more()
        return Replay(tuple(self._found.values()))

    def _step(self, event: Event) -> None:
        if isinstance(event, ConnectionEvent):
            if event.event == "connected":
                self._peer(event)
            elif event.event == "lost" and event.alias in self._peers:
                self._hang_up(event.alias)
        elif isinstance(event, FrameEvent) and event.type != FRAME_HEARTBEAT:
            peer = self._peer(event)
            if event.direction == "received":
                self._send(event, peer)
                return
            for reply in self._recorded[event.alias].feed(event.type, event.channel, event.payload):
                self._compare(event.alias, peer, reply)

    def _peer(self, event: Event) -> Peer:
        if event.alias not in self._peers:
            header = event.protocol_header if isinstance(event, ConnectionEvent) else b""
            line = self._trial.connect()
            peer = Peer(
                line,
                self._trial.login,
                self._names,
                header or PROTOCOL_HEADER,
                refused=event.alias in self._refused,
            )
            self._peers[event.alias] = peer
            self._selector.register(peer.line, selectors.EVENT_READ, peer)
            self._recorded[event.alias] = Assembler()
            self._found[event.alias] = Comparison(event.connection or "", event.alias)
        return self._peers[event.alias]

    def _hang_up(self, alias: str) -> None:
        peer = self._peers[alias]
        self._listen(0.0)
        if not peer.ended:
            self._selector.unregister(peer.line)
        peer.close()

    def _send(self, event: FrameEvent, peer: Peer) -> None:
        payload = event.payload
        where = (event.alias, event.channel)
        if where in self._given_up or (event.alias, 0) in self._given_up:
            return
        if isinstance(payload, Cut):
            if event.type != FRAME_BODY:
                self._give_up(event.alias, event.channel)
                text = f"channel {event.channel}: {event.text}"
                self._differs(event.alias, text, None, "it was not kept whole, so it cannot be sent again")
                return
            payload = payload + bytes(payload.size - len(payload))
        self._listen(0.0)  # A broker whose words nobody takes stops listening.
        peer.send(event.type, event.channel, payload)

    def _compare(self, alias: str, peer: Peer, recorded: Reply) -> None:
        """Wait for the answer that stands where the recorded one does."""
        channel = recorded.channel
        if (alias, channel) in self._given_up or (alias, 0) in self._given_up:
            return
        strand = tuple(map(self._names.of, recorded.strand))
        if (alias, (channel, strand)) in self._given_up:
            return
        place = peer.arrived[channel, strand]
        self._wait(lambda: bool(place) or peer.ended or self._closed(peer, channel) is not None)
        self._found[alias].replies += 1
        if place:
            replayed = place.popleft()
            if isinstance(recorded.method, (m.BasicDeliver, m.BasicGetOk)) and isinstance(
                replayed.method, (m.BasicDeliver, m.BasicGetOk)
            ):
                tag = recorded.method.delivery_tag
                peer.tags[channel, tag] = replayed.method.delivery_tag
            if same(recorded, replayed, self._names):
                return
            remark = ""
            if isinstance(replayed.method, _CLOSES) and not isinstance(
                recorded.method, type(replayed.method)
            ):
                remark = self._give_up(alias, replayed.channel)
            elif strand == ("answer",) and type(recorded.method) is not type(replayed.method):
                remark = self._give_up(alias, channel)
            self._differs(alias, str(recorded), str(replayed), remark + _in_the_body(recorded, replayed))
            return
        closed = self._closed(peer, channel)
        if closed is not None:
            peer.arrived[closed.channel, closed.strand].remove(closed)
            self._differs(alias, str(recorded), str(closed), self._give_up(alias, closed.channel))
        elif peer.ended:
            self._differs(alias, str(recorded), None, self._give_up(alias, 0, "the connection has ended; "))
        elif strand == ("answer",):
            self._differs(alias, str(recorded), None, self._give_up(alias, channel))
        else:
            self._given_up[alias, (channel, strand)] = None
            self._differs(alias, str(recorded), None)

    def _closed(self, peer: Peer, channel: int) -> Reply | None:
        """The close that has come in the place of something else."""
        for number in (channel, 0):
            for reply in peer.arrived[number, ("answer",)]:
                if isinstance(reply.method, _CLOSES):
                    return reply
        return None

    def _give_up(self, alias: str, channel: int, why: str = "") -> str:
        """Compare no further: what follows would differ for this reason alone."""
        self._given_up[alias, channel] = None
        what = f"channel {channel}" if channel else "this connection"
        return f"{why}what follows on {what} is not compared"

    def _differs(self, alias: str, recorded: str | None, replayed: str | None, remark: str = "") -> None:
        self._found[alias].differences.append(Difference(recorded, replayed, remark))

    # --- waiting --------------------------------------------------------------------------------------

    def _wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout
        settled = self._trial.settled
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            if settled is None:
                self._listen(left)
            elif not self._listen(0.0) and settled() and not self._listen(0.0):
                return

    def _listen(self, seconds: float) -> bool:
        """Take what comes, on whichever connection; whether anything has."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            key.data.receive()
            if key.data.ended:
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def _look_for_more(self) -> None:
        """What has come that was not recorded."""
        if self._trial.settled is None:
            while self._listen(_QUIET):
                pass
        else:
            self._wait(lambda: False)
        for alias, peer in self._peers.items():
            for (channel, _), replies in peer.arrived.items():
                if (alias, channel) in self._given_up or (alias, 0) in self._given_up:
                    continue
                for reply in replies:
                    self._differs(alias, None, str(reply))


def _in_the_body(recorded: Reply, replayed: Reply) -> str:
    """What the texts do not show."""
    if recorded.text == replayed.text and recorded.body and replayed.body:
        return f"the bodies differ: {bytes(recorded.body[0][:40])!r} and {bytes(replayed.body[0][:40])!r}"
    return ""
