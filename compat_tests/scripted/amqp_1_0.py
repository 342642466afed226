"""A raw 1.0 client on a sans-I/O broker or a socket: whole frames in, whole frames out, time by hand.

`Client` is one connection; `Link` is one link of it, on channel 0 unless said otherwise. Frames that have
come are kept in `Client.inbox` until a test takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from typing_extensions import Self

from compat_tests.scripted.amqp_0_9_1 import Server as _Server, Transport
from fakeamqp.connection import PeerAddress
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import (
    AMQP,
    EMPTY_FRAME,
    FRAME_HEADER,
    HEADER_SIZE,
    PROTOCOL_HEADER,
    SASL,
    SASL_HEADER,
    frame,
)
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, ULong, encode_value, read_value

C = TypeVar("C", bound=c.Composite)

WINDOW = 2000
SENDER, RECEIVER = False, True
DATA, VALUE, SEQUENCE = 0x75, 0x77, 0x76
SECTIONS = {
    "header": 0x70,
    "delivery_annotations": 0x71,
    "annotations": 0x72,
    "properties": 0x73,
    "application": 0x74,
    "data": 0x75,
    "sequence": 0x76,
    "value": 0x77,
    "footer": 0x78,
}


try:
    from proton import Data
except ImportError:  # It is built from source, which needs a compiler.
    _reader = None
else:
    _reader = Data()
_reading = Lock()
"""Scenarios are played in threads, and proton crashes where two of them read at once."""


def check_by_proton(octets: bytes, end: int) -> None:
    """Have proton's codec read the performative of a frame, and the sections before the bare message.

    AssertionError where it does not, or ends elsewhere. What a publisher has sent is not the broker's.
    """
    if _reader is None:
        return
    offset = _read_by_proton(octets, 0)
    assert offset == end, f"proton reads {offset} of {end} bytes: {octets[:end].hex()}"
    while octets[offset : offset + 2] == b"\0\x53" and 0x70 <= octets[offset + 2] <= 0x72:
        _, end = read_value(octets, offset)
        offset = _read_by_proton(octets, offset)
        assert offset == end, f"proton reads {offset} of {end} bytes: {octets[:end].hex()}"


def _read_by_proton(octets: bytes, offset: int) -> int:
    assert _reader is not None
    with _reading:
        _reader.clear()
        return offset + int(_reader.decode(octets[offset:]))


class Arrived(NamedTuple):
    """A frame as it came; `payload` follows a transfer."""

    channel: int
    what: Any
    payload: bytes = b""


def section(code: int, value: Any) -> bytes:
    """One section of a message."""
    return value.encode() if isinstance(value, c.Composite) else encode_value(Described(ULong(code), value))


def message(body: Any = b"body", **sections: Any) -> bytes:
    """A message of these sections; a body of bytes is data, None is no body, anything else a value."""
    said = [section(SECTIONS[name], value) for name, value in sections.items() if name != "footer"]
    if body is not None:
        said.append(section(DATA if isinstance(body, bytes) else VALUE, body))
    if "footer" in sections:
        said.append(section(0x78, sections["footer"]))
    return b"".join(said)


def sections(payload: bytes) -> dict[str, Any]:
    """The sections of a message by name; several of one name are a list."""
    names = {code: name for name, code in SECTIONS.items()}
    found: dict[str, Any] = {}
    offset = 0
    while offset < len(payload):
        value, offset = read_value(payload, offset)
        said = c.read_composite(value)
        name = names[value.descriptor]
        said = said if isinstance(said, c.Composite) else value.value
        if name not in found:
            found[name] = said
        elif isinstance(found[name], list) and name in ("data", "sequence"):
            found[name].append(said)
        else:
            found[name] = [found[name], said]
    return found


class Server(_Server):
    """A broker without sockets, for clients of 1.0; `client` on the base class speaks 0-9-1."""

    def dial(self, **peer: Any) -> Client:
        """A client that has sent nothing yet."""
        self._port += 1
        return Client(self, PeerAddress(**{"port": self._port, **peer}))

    def greeted(self, **peer: Any) -> Client:
        """A client that has yet to log in."""
        client = self.dial(**peer)
        client.send_bytes(SASL_HEADER).expect_header(SASL_HEADER)
        client.expect(c.SaslMechanisms)
        return client

    def logged_in(self, user: str = "guest", password: str = "guest") -> Client:
        """A client that has yet to open its connection."""
        client = self.greeted()
        client.login(user, password)
        assert client.expect(c.SaslOutcome).code == 0
        client.send_bytes(PROTOCOL_HEADER).expect_header(PROTOCOL_HEADER)
        return client

    def open(self, user: str = "guest", password: str = "guest", **fields: Any) -> Client:
        """A client with an open connection."""
        client = self.logged_in(user, password)
        client.open(**fields)
        return client

    def session(self, **fields: Any) -> Client:
        """A client with an open connection and a session on channel 0."""
        client = self.open(**fields)
        client.begin()
        return client


class Client(Transport):
    """One raw connection."""

    def __init__(self, server: Any, peer: PeerAddress) -> None:
        super().__init__(server, peer)
        self._octets = b""
        self._inbox: list[Arrived] = []
        self.next_outgoing_id = 0
        self.next_delivery_id = 0
        self.checked = True
        """Whether proton reads all that comes, too: in one thread only."""
        self.bytes_in = b""
        """Everything that has come."""

    # --- out ---------------------------------------------------------------------------------------

    def send(self, body: c.Composite, channel: int = 0, payload: bytes = b"") -> Self:
        kind = SASL if body.NAME.startswith("sasl-") else AMQP
        return self.send_bytes(frame(kind, channel, body.encode() + payload))

    def login(self, user: str = "guest", password: str = "guest") -> Self:
        response = b"\0" + user.encode() + b"\0" + password.encode()
        return self.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=response))

    # --- in ----------------------------------------------------------------------------------------

    def take_bytes(self) -> bytes:
        octets = super().take_bytes()
        self.bytes_in += octets
        return octets

    @property
    def inbox(self) -> list[Arrived]:
        """All that has come and was not taken; a protocol header is its bytes."""
        self._octets += self.take_bytes()
        while len(self._octets) >= HEADER_SIZE:
            if self._octets.startswith(b"AMQP"):
                self._inbox.append(Arrived(0, self._octets[:8]))
                self._octets = self._octets[8:]
                continue
            size, offset, _, channel = FRAME_HEADER.unpack_from(self._octets)
            assert offset == 2, "the broker sends no extended header"
            if len(self._octets) < size:
                break
            octets, self._octets = self._octets[HEADER_SIZE:size], self._octets[size:]
            if not octets:
                self._inbox.append(Arrived(channel, EMPTY_FRAME))
                continue
            body, end = c.read_body(octets)
            if self.checked:
                check_by_proton(octets, end)
            self._inbox.append(Arrived(channel, body, octets[end:]))
        return self._inbox

    def take(self) -> Arrived:
        """The next frame that has come."""
        assert self.inbox, "something is expected, nothing has come"
        return self._inbox.pop(0)

    def take_all(self) -> list[Arrived]:
        """All frames that have come."""
        found = list(self.inbox)
        self._inbox.clear()
        return found

    def expect(self, kind: type[C], channel: int = 0) -> C:
        """The next frame that has come, which must be this one on this channel."""
        got = self.take()
        assert isinstance(got.what, kind), f"expected {kind.__name__}, got {got}"
        assert got.channel == channel, f"expected channel {channel}, got {got}"
        return got.what

    def expect_header(self, header: bytes) -> None:
        got = self.take()
        assert got.what == header, f"expected {header!r}, got {got}"

    def expect_end(self, condition: str, text: str | None = None, channel: int = 0) -> c.Error:
        """The session ends with an error."""
        return _checked(self.expect(c.End, channel), condition, text)

    def expect_detach(self, condition: str, text: str | None = None, channel: int = 0) -> c.Error:
        """A link is detached with an error."""
        return _checked(self.expect(c.Detach, channel), condition, text)

    def expect_close(self, condition: str, text: str | None = None) -> c.Error:
        """The connection is closed with an error; it is answered, and the transport ends."""
        error = _checked(self.expect(c.Close), condition, text)
        self.send(c.Close())
        assert self.closed
        return error

    # --- shortcuts ---------------------------------------------------------------------------------

    def open(self, **fields: Any) -> c.Open:
        self.send(c.Open(**{"container_id": "test", **fields}))
        return self.expect(c.Open)

    def begin(self, channel: int = 0, **fields: Any) -> c.Begin:
        said = {"next_outgoing_id": 0, "incoming_window": WINDOW, "outgoing_window": WINDOW, **fields}
        self.send(c.Begin(**said), channel)
        return self.expect(c.Begin, channel)

    def sender(self, address: str | None = "/queues/q", handle: int = 0, **fields: Any) -> Link:
        """A link on which this client sends, with credit."""
        link = Link(self, handle)
        self.send(attach(SENDER, address, handle, **fields))
        link.attached = self.expect(c.Attach)
        link.granted = self.expect(c.Flow)
        return link

    def receiver(
        self, address: str | None = "/queues/q", handle: int = 0, credit: int = 0, **fields: Any
    ) -> Link:
        """A link on which this client receives."""
        link = Link(self, handle)
        self.send(attach(RECEIVER, address, handle, **fields))
        link.attached = self.expect(c.Attach)
        if credit:
            link.flow(link_credit=credit)
        return link

    def refused(self, role: bool, address: str | None, **fields: Any) -> tuple[c.Attach, c.Error]:
        """An attach that is refused: the answer, and the error of the detach that follows."""
        self.send(attach(role, address, **fields))
        answer = self.expect(c.Attach)
        assert (answer.source if role else answer.target) is None
        detach = self.expect(c.Detach)
        assert detach.closed
        return answer, detach.error


def attach(role: bool, address: str | None, handle: int = 0, **fields: Any) -> c.Attach:
    """The attach of a client; `terminus` are further fields of what `address` names."""
    terminus = fields.pop("terminus", {})
    near = c.Source() if role == SENDER else c.Target()
    far = (c.Target if role == SENDER else c.Source)(**{"address": address, **terminus})
    said: dict[str, Any] = {
        "name": f"link {handle}",
        "handle": handle,
        "role": role,
        "source": near if role == SENDER else far,
        "target": far if role == SENDER else near,
        "initial_delivery_count": 0 if role == SENDER else None,
    }
    return c.Attach(**{**said, **fields})


class Link:
    """One link of a client."""

    attached: c.Attach
    granted: c.Flow

    def __init__(self, client: Client, handle: int) -> None:
        self.client = client
        self.handle = handle

    def flow(self, **fields: Any) -> Self:
        """Grant credit, from the beginning of the link unless `delivery_count` says otherwise."""
        said = {
            "next_incoming_id": None,
            "incoming_window": WINDOW,
            "next_outgoing_id": self.client.next_outgoing_id,
            "outgoing_window": WINDOW,
            "handle": self.handle,
        }
        self.client.send(c.Flow(**{**said, **fields}))
        return self

    def transfer(self, payload: bytes | None = None, *, settled: bool | None = None, **fields: Any) -> int:
        """Send a message in one transfer. Returns its delivery id."""
        client = self.client
        number = client.next_delivery_id
        said: dict[str, Any] = {
            "handle": self.handle,
            "delivery_id": number,
            "delivery_tag": str(number).encode(),
            "settled": settled,
        }
        client.send(c.Transfer(**{**said, **fields}), payload=message() if payload is None else payload)
        client.next_outgoing_id += 1
        if not fields.get("more"):
            client.next_delivery_id += 1
        return number

    def outcome(self) -> c.Composite:
        """The state of the next disposition, which settles."""
        got = self.client.expect(c.Disposition)
        assert got.role and got.settled
        state: c.Composite = c.read_composite(got.state)
        return state

    def publish(self, payload: bytes | None = None, **fields: Any) -> c.Composite:
        """Send a message; returns its outcome."""
        self.transfer(payload, **fields)
        return self.outcome()

    def take(self) -> tuple[c.Transfer, dict[str, Any]]:
        """The next message, of one transfer, and its sections."""
        got = self.client.take()
        assert isinstance(got.what, c.Transfer), f"expected a transfer, got {got}"
        return got.what, sections(got.payload)

    def settle(self, state: c.Composite, first: int, last: int | None = None, settled: bool = True) -> Self:
        said = c.Disposition(role=RECEIVER, first=first, last=last, settled=settled, state=state)
        self.client.send(said)
        return self

    def detach(self, **fields: Any) -> c.Detach:
        self.client.send(c.Detach(**{"handle": self.handle, "closed": True, **fields}))
        return self.client.expect(c.Detach)


def _checked(body: Any, condition: str, text: str | None) -> c.Error:
    error: c.Error = body.error
    assert error is not None and error.condition == condition, f"expected {condition}, got {body}"
    if text is not None:
        assert error.description == text
    return error


def filters(**said: Any) -> Mapping[Any, Any]:
    """A set of filters, each described by its name."""
    names = {name: f"rabbitmq:stream-{name.replace('_', '-')}" for name in said}
    return {Symbol(names[name]): Described(Symbol(names[name]), value) for name, value in said.items()}
