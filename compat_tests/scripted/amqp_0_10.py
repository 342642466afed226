"""A raw 0-10 client on a sans-I/O broker: whole frames in, whole frames out, time by hand.

`Client` is one connection to a `Server` (see `amqp_0_9_1.py`), `Session` a session on one of its channels.
Controls and commands that have come are kept in `Client.inbox` until a test takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from typing_extensions import Self

from compat_tests.scripted.amqp_0_9_1 import Server as _Server, Transport
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER, SegmentType
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    FRAME_HEADER,
    HEADER_SIZE,
    Assembler,
    Assembly,
    control_frame,
    encode_frames,
)
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, successor
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control, Packed, Struct
from fakeamqp.protocols.negotiation import accept

P = TypeVar("P", bound=Packed)
S = TypeVar("S", bound=Struct)

UNLIMITED = 0xFFFFFFFF
BOOKKEEPING = (c.SessionCompleted, c.SessionCommandPoint, c.SessionKnownCompleted)
"""Controls that come at any time and tell how far the broker has got."""


class SessionFailed(Exception):
    """The broker sent execution.exception."""

    def __init__(self, exception: x.ExecutionException) -> None:
        super().__init__(f"{exception.error_code}: {exception.description}")
        self.exception = exception
        self.code = exception.error_code


@dataclass(frozen=True)
class Arrived:
    """A control or command as it came. `id` is that of a command."""

    channel: int
    what: Any
    header: bytes | None = None
    body: bytes | None = None
    sync: bool = False
    id: int | None = None


@dataclass(frozen=True)
class Transfer:
    """A message that was transferred to the client. `cost` is what it takes of the credit in bytes."""

    id: int
    command: x.MessageTransfer
    structs: tuple[Any, ...]
    body: bytes | None
    cost: int

    def find(self, kind: type[S]) -> S | None:
        return next((each for each in self.structs if isinstance(each, kind)), None)

    @property
    def delivery(self) -> structs.DeliveryProperties:
        found = self.find(structs.DeliveryProperties)
        assert found is not None
        return found

    @property
    def message(self) -> structs.MessageProperties:
        return self.find(structs.MessageProperties) or structs.MessageProperties()

    @property
    def redelivered(self) -> bool:
        return bool(self.delivery.redelivered)


class Server(_Server):
    """A broker without sockets, for clients of 0-10; `client` on the base class speaks 0-9-1."""

    def accept(self, peer: PeerAddress, use: Callable[[Connection], None]) -> Connection:
        return accept(self.state, peer, use)

    def dial(self, **peer: Any) -> Client:
        """A client that has sent nothing yet."""
        self._port += 1
        return Client(self, PeerAddress(**{"port": self._port, **peer}))

    def started(self, **peer: Any) -> Client:
        """A client that has yet to log in."""
        client = self.dial(**peer)
        client.begin()
        return client

    def tuned(self, user: str = "guest", password: str = "guest", **tune_ok: int) -> Client:
        """A client that has yet to open a virtual host."""
        client = self.started()
        client.login(user, password)
        client.send(c.ConnectionTuneOk(**tune_ok))
        return client

    def open(self, **handshake: Any) -> Client:
        """A client with an open connection, its inbox empty."""
        client = self.dial()
        client.handshake(**handshake)
        return client

    def session(self, name: bytes = b"s", **handshake: Any) -> Session:
        """A session on a connection of its own."""
        return self.open(**handshake).session(name)

    def received(self, queue: str = "q") -> list[bytes | None]:
        """The bodies that a session of its own gets from a queue."""
        session = self.session(b"looks")
        bodies = session.subscribe(queue, accept_mode=1).bodies()
        session.detach()
        return bodies


def segments_of(
    command: Command,
    header: Iterable[Struct] | bytes | None = None,
    body: bytes | None = None,
    sync: bool = False,
) -> list[tuple[int, bytes]]:
    """The segments of a command and its content."""
    found: list[tuple[int, bytes]] = [(SegmentType.COMMAND, command.encode(sync))]
    if header is not None:
        octets = header if isinstance(header, bytes) else structs.encode_header(header)
        found.append((SegmentType.HEADER, octets))
    if body is not None:
        found.append((SegmentType.BODY, body))
    return found


@dataclass(frozen=True)
class Event:
    """What has come over a transport: a control, or a command with its id."""

    channel: int
    control: Any = None
    id: int = 0
    assembly: Assembly | None = None


@dataclass
class Part:
    """The beginning of a command, which may go on over another transport, or of the next one."""

    id: int
    assembler: Assembler


class Reader:
    """Cuts what comes over one transport. `largest` is the size that frames may have."""

    def __init__(self, largest: int = 65535) -> None:
        self.largest = largest
        self.header = b""
        """Bytes that came before the first frame: the protocol header."""
        self._octets = b""
        self._controls: dict[int, Assembler] = {}
        self._commands: dict[int, Part] = {}
        self._names: dict[int, bytes | None] = {}
        """The session that was attached last, by channel."""

    def resume(self, channel: int, name: bytes, part: Part | None) -> None:
        """A session is about to be attached to a channel; so much of a command has come elsewhere."""
        self._names[channel] = name
        self._commands.pop(channel, None)
        if part is not None:
            self._commands[channel] = part

    def parts(self) -> dict[int, Part]:
        """What has come of commands, by channel."""
        return {channel: part for channel, part in self._commands.items() if part.assembler.received}

    def read(self, octets: bytes) -> Iterator[Event]:
        """What has come with these bytes and those before."""
        self._octets += octets
        if self._octets.startswith(b"AMQP"):
            self.header, self._octets = self._octets[:8], self._octets[8:]
        while len(self._octets) >= HEADER_SIZE:
            flags, kind, size, reserved, track, channel, reserved_2 = FRAME_HEADER.unpack_from(self._octets)
            assert (reserved, reserved_2) == (0, 0) and track == (kind != 0), "a frame is well formed"
            assert size <= self.largest, "a frame is no larger than was agreed"
            if len(self._octets) < size:
                break
            payload, self._octets = self._octets[HEADER_SIZE:size], self._octets[size:]
            if track == 0:
                assembly = self._controls.setdefault(channel, Assembler()).add(flags, kind, payload)
                if assembly is not None:
                    yield Event(channel, self._control(channel, c.decode(assembly.first)))
                continue
            part = self._commands.get(channel)
            assert part is not None, "a command point comes before the first command"
            assembly = part.assembler.add(flags, kind, payload)
            if assembly is not None:
                id_, part.id = part.id, successor(part.id)
                yield Event(channel, None, id_, assembly)

    def _control(self, channel: int, control: Control) -> Control:
        if isinstance(control, c.SessionAttached) and self._names.get(channel) != control.name:
            self._names[channel] = control.name
            self._commands.pop(channel, None)
        elif isinstance(control, c.SessionCommandPoint):
            id_, offset = control.command_id or 0, control.command_offset or 0
            part = self._commands.setdefault(channel, Part(id_, Assembler()))
            if offset:
                assert part.id == id_, "the rest of a command comes whose beginning is here"
                assert offset <= part.assembler.received, "no byte of a command is left out"
                part.assembler.rewind(offset)
            else:
                part.assembler.clear()
                part.id = id_
        return control


class Client(Transport):
    """One raw connection."""

    def __init__(self, server: Server, peer: PeerAddress) -> None:
        super().__init__(server, peer)
        self.max_frame_size = 65535
        self.bytes_in = b""
        """Everything that has come."""
        self._reader = Reader()
        self._inbox: list[Arrived] = []

    # --- out ---------------------------------------------------------------------------------------

    def send_frame(
        self,
        payload: bytes,
        *,
        flags: int = 0x0F,
        kind: int = 0,
        track: int = 0,
        channel: int = 0,
        size: int | None = None,
        reserved: int = 0,
        reserved_2: int = 0,
    ) -> Self:
        """Send one frame, of a control unless said otherwise."""
        length = HEADER_SIZE + len(payload) if size is None else size
        return self.send_bytes(
            FRAME_HEADER.pack(flags, kind, length, reserved, track, channel, reserved_2) + payload
        )

    def send(self, control: Control, channel: int = 0) -> Self:
        return self.send_bytes(control_frame(channel, control.encode(), self.max_frame_size))

    def send_command(self, command: Command, channel: int = 0, **content: Any) -> Self:
        """Send a command with a content as for `segments_of`."""
        return self.send_bytes(self.command_bytes(command, channel, **content))

    def command_bytes(self, command: Command, channel: int = 0, **content: Any) -> bytes:
        """The frames of a command with its header and body segments."""
        return encode_frames(channel, segments_of(command, **content), self.max_frame_size)

    # --- in ----------------------------------------------------------------------------------------

    def take_bytes(self) -> bytes:
        """What has come since the last look, as it came."""
        octets = super().take_bytes()
        self.bytes_in += octets
        return octets

    @property
    def inbox(self) -> list[Arrived]:
        """All that has come and was not taken."""
        self._reader.largest = self.max_frame_size
        for event in self._reader.read(self.take_bytes()):
            if event.assembly is None:
                if isinstance(event.control, c.SessionCommandPoint):
                    assert event.control.command_offset == 0
                self._inbox.append(Arrived(event.channel, event.control))
                continue
            command, sync = x.decode(event.assembly.first)
            content = event.assembly.header, event.assembly.body
            self._inbox.append(Arrived(event.channel, command, *content, sync, event.id))
        return self._inbox

    @property
    def header(self) -> bytes:
        """Bytes that came before the first frame: the protocol header."""
        return self._reader.header

    def take(self) -> Arrived:
        """The next thing that has come."""
        assert self.inbox, "something is expected, nothing has come"
        return self._inbox.pop(0)

    def expect(self, kind: type[P], channel: int = 0) -> P:
        """The next thing that has come, which must be this control or command on this channel."""
        got = self.take()
        assert isinstance(got.what, kind), f"expected {kind.__name__}, got {got}"
        assert got.channel == channel, f"expected channel {channel}, got {got}"
        return got.what

    def call(self, control: Control, reply: type[P], channel: int = 0) -> P:
        """Send a control and take its answer."""
        self.send(control, channel)
        return self.expect(reply, channel)

    def expect_close(self, code: int) -> c.ConnectionClose:
        """The connection is closed with this code; it is answered, and the transport ends."""
        got = self.take()
        assert isinstance(got.what, c.ConnectionClose), f"expected connection.close, got {got}"
        assert got.what.reply_code == code, f"expected {code}, got {got}"
        if not self.closed:
            self.send(c.ConnectionCloseOk())
        assert self.closed
        return got.what

    # --- shortcuts ---------------------------------------------------------------------------------

    def begin(self) -> c.ConnectionStart:
        """Send the protocol header; connection.start comes behind the same header."""
        self.send_bytes(PROTOCOL_HEADER)
        start = self.expect(c.ConnectionStart)
        assert self.header == PROTOCOL_HEADER
        return start

    def login(self, user: str = "guest", password: str = "guest") -> c.ConnectionTune:
        """Log in with PLAIN."""
        response = f"\0{user}\0{password}".encode()
        start_ok = c.ConnectionStartOk(
            client_properties={}, mechanism="PLAIN", response=response, locale="en_US"
        )
        return self.call(start_ok, c.ConnectionTune)

    def handshake(
        self,
        *,
        user: str = "guest",
        password: str = "guest",
        virtual_host: str | None = "/",
        channel_max: int | None = None,
        max_frame_size: int | None = None,
        heartbeat: int | None = None,
    ) -> None:
        """From the protocol header to open-ok."""
        self.begin()
        self.login(user, password)
        self.send(
            c.ConnectionTuneOk(channel_max=channel_max, max_frame_size=max_frame_size, heartbeat=heartbeat)
        )
        if max_frame_size is not None:
            self.max_frame_size = max_frame_size
        self.call(c.ConnectionOpen(virtual_host=virtual_host), c.ConnectionOpenOk)

    def session(
        self,
        name: bytes = b"s",
        channel: int = 0,
        *,
        force: bool = False,
        timeout: int | None = 0,
        at: int = 0,
    ) -> Session:
        """Attach a session; its commands are numbered from `at`. A `timeout` other than 0 is asked for."""
        self.call(c.SessionAttach(name=name, force=force), c.SessionAttached, channel)
        if timeout != 0:
            self.call(c.SessionRequestTimeout(timeout=timeout), c.SessionTimeout, channel)
        session = Session(self, name, channel)
        session.point(at)
        return session


class Session:
    """A session on one channel of a client."""

    def __init__(self, client: Client, name: bytes, channel: int) -> None:
        self.client = client
        self.name = name
        self.channel = channel
        self.next_id = 0

    @property
    def server(self) -> Any:
        return self.client.server

    @property
    def end(self) -> Any:
        """The broker's end of it."""
        return next(each for key, each in self.client.server.state.sessions.items() if key[2] == self.name)

    def after(self, seconds: float) -> Self:
        """Move the broker's time."""
        self.client.after(seconds)
        return self

    def point(self, command_id: int, offset: int = 0) -> Self:
        self.next_id = command_id
        return self.control(c.SessionCommandPoint(command_id=command_id, command_offset=offset))

    def control(self, control: Control) -> Self:
        self.client.send(control, self.channel)
        return self

    def expect(self, kind: type[P]) -> P:
        """The next thing that has come, but for command points, which must be this."""
        self._skip(c.SessionCommandPoint)
        return self.client.expect(kind, self.channel)

    def send(self, command: Command, **content: Any) -> int:
        """Send a command; answers with its id."""
        id_, self.next_id = self.next_id, successor(self.next_id)
        self.client.send_command(command, self.channel, **content)
        return id_

    def call(self, command: Command, **content: Any) -> Any:
        """Have a command done, and forget what comes that tells of it.

        Returns:
            The struct of its result, or None.

        Raises:
            SessionFailed: it failed.
        """
        id_ = self.send(command, sync=True, **content)
        inbox = self.client.inbox
        result = None
        kept = []
        failure = None
        for each in inbox:
            if each.channel != self.channel:
                kept.append(each)
            elif isinstance(each.what, x.ExecutionException):
                failure = SessionFailed(each.what)
            elif isinstance(each.what, x.ExecutionResult) and each.what.command_id == id_:
                result = each.what.value
            elif isinstance(each.what, (c.SessionCompleted, c.SessionCommandPoint, c.SessionDetach)):
                continue
            else:
                kept.append(each)
        inbox[:] = kept
        if failure is not None:
            raise failure
        return result

    def fails(self, command: Command, code: int, **content: Any) -> x.ExecutionException:
        """A command that ends the session with this code; the client detaches, as it was asked to."""
        try:
            self.call(command, **content)
        except SessionFailed as problem:
            assert problem.code == code, f"expected {code}, got {problem}"
            self.client.send(c.SessionDetached(name=self.name, code=0), self.channel)
            return problem.exception
        raise AssertionError(f"{command} was expected to fail with {code}")

    def _skip(self, *kinds: type[Packed]) -> None:
        inbox = self.client.inbox
        inbox[:] = [
            each for each in inbox if not (each.channel == self.channel and isinstance(each.what, kinds))
        ]

    def skip(self) -> None:
        """Forget the bookkeeping of all sessions."""
        inbox = self.client.inbox
        inbox[:] = [each for each in inbox if not isinstance(each.what, BOOKKEEPING)]

    def arrival(self, kind: type[P]) -> Arrived:
        """The next that has come, but for the bookkeeping of all sessions, which must be this command."""
        self.skip()
        got = self.client.take()
        assert isinstance(got.what, kind), f"expected {kind.__name__}, got {got}"
        assert got.channel == self.channel, f"expected channel {self.channel}, got {got}"
        return got

    def expect_nothing(self) -> None:
        """Nothing has come that is more than bookkeeping."""
        self._skip(*BOOKKEEPING)
        self.client.expect_nothing()

    # --- shortcuts ---------------------------------------------------------------------------------

    def perform(self, *commands: Command) -> Self:
        """Have commands done that have no result."""
        for command in commands:
            self.call(command)
        return self

    def declare(self, queue: str = "q", **arguments: Any) -> Self:
        return self.perform(x.QueueDeclare(queue=queue, **arguments))

    def declare_exchange(self, exchange: str, type: str = "direct", **arguments: Any) -> Self:
        return self.perform(x.ExchangeDeclare(exchange=exchange, type=type, **arguments))

    def bind(self, queue: str, exchange: str, key: str = "", **arguments: Any) -> Self:
        return self.perform(x.ExchangeBind(queue=queue, exchange=exchange, binding_key=key, **arguments))

    def query(self, queue: str = "q") -> structs.QueueQueryResult:
        result = self.call(x.QueueQuery(queue=queue))
        assert isinstance(result, structs.QueueQueryResult)
        return result

    def publish(self, body: bytes | None = b"body", **fields: Any) -> Self:
        """Transfer a message; fields as for `transfer_id`."""
        self.transfer_id(body, **fields)
        return self

    def transfer_id(
        self,
        body: bytes | None = b"body",
        *,
        exchange: str | None = None,
        key: str | None = "q",
        accept_mode: int | None = 1,
        message: structs.MessageProperties | None = None,
        **delivery: Any,
    ) -> int:
        """Transfer a message; keywords are delivery properties. Answers with the id of the transfer."""
        header: list[Struct] = [structs.DeliveryProperties(routing_key=key, **delivery)]
        if message is not None:
            header.append(message)
        command = x.MessageTransfer(destination=exchange, accept_mode=accept_mode)
        return self.send(command, header=header, body=body)

    def subscribe(
        self,
        queue: str = "q",
        destination: str = "d",
        *,
        credit: int | None = UNLIMITED,
        octets: int | None = UNLIMITED,
        window: bool = False,
        **arguments: Any,
    ) -> Self:
        """Subscribe, and give credit unless it is None; transfers that follow stay in the inbox."""
        self.perform(x.MessageSubscribe(queue=queue, destination=destination, **arguments))
        self.perform(x.MessageSetFlowMode(destination=destination, flow_mode=1 if window else 0))
        if octets is not None:
            self.flow(octets, destination=destination, unit=1)
        if credit is not None:
            self.flow(credit, destination=destination)
        return self

    def flow(self, value: int | None, *, destination: str = "d", unit: int = 0) -> Self:
        return self.perform(x.MessageFlow(destination=destination, unit=unit, value=value))

    def transfers(self) -> list[Transfer]:
        """All transfers that have come; nothing else may have, but for bookkeeping."""
        self._skip(*BOOKKEEPING)
        inbox = self.client.inbox
        found = [self._transfer(each) for each in inbox]
        inbox.clear()
        return found

    def transfer(self) -> Transfer:
        """The next thing that has come, but for bookkeeping, which must be a transfer."""
        self._skip(*BOOKKEEPING)
        return self._transfer(self.client.take())

    def _transfer(self, got: Arrived) -> Transfer:
        assert isinstance(got.what, x.MessageTransfer), f"expected a transfer, got {got}"
        assert got.channel == self.channel and got.id is not None
        header = got.header or b""
        cost = len(header) + len(got.body or b"")
        return Transfer(got.id, got.what, structs.decode_header(header), got.body, cost)

    def news(self, kind: type[P]) -> P:
        """The next thing that has come, but for bookkeeping, which must be this."""
        self._skip(*BOOKKEEPING)
        return self.client.expect(kind, self.channel)

    def bodies(self) -> list[bytes | None]:
        return [each.body for each in self.transfers()]

    def accept(self, *ids: int) -> Self:
        return self.perform(x.MessageAccept(transfers=SequenceSet.of(*ids)))

    def release(self, *ids: int, set_redelivered: bool = False) -> Self:
        return self.perform(x.MessageRelease(transfers=SequenceSet.of(*ids), set_redelivered=set_redelivered))

    def reject(self, *ids: int) -> Self:
        return self.perform(x.MessageReject(transfers=SequenceSet.of(*ids)))

    def completed(self, *ids: int, timely_reply: bool = False) -> Self:
        return self.control(c.SessionCompleted(commands=SequenceSet.of(*ids), timely_reply=timely_reply))

    def attach_again(self, *, at: int, has: int = 0) -> Session:
        """Attach it on a new transport, since it has lost its own.

        Args:
            at: the command that the client goes on with.
            has: how many commands of the broker's the client has; it gets the others again.
        """
        server = self.client.server
        assert isinstance(server, Server)
        client = server.open(max_frame_size=self.client.max_frame_size)
        client.call(c.SessionAttach(name=self.name), c.SessionAttached)
        client.inbox.clear()
        again = Session(client, self.name, 0)
        again.point(at)
        client.send(c.SessionExpected(commands=SequenceSet.of(has)))
        return again

    def detach(self) -> c.SessionDetached:
        self.client.send(c.SessionDetach(name=self.name), self.channel)
        self._skip(c.SessionCompleted, c.SessionCommandPoint)
        return self.client.expect(c.SessionDetached, self.channel)
