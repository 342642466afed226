"""A peer that plays a scenario on a broker, sans-I/O or on a socket, and writes down what comes back."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from typing import Any

from compat_tests.differential.amqp_1_0.stages import Stage
from compat_tests.scripted.amqp_1_0 import (
    RECEIVER,
    SENDER,
    WINDOW,
    Arrived,
    Client,
    attach,
    message,
    sections,
)
from fakeamqp.connection import PeerAddress
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME, PROTOCOL_HEADER, SASL_HEADER
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, UInt, ULong, encode_value, read_value

_HIDDEN = ("container_id", "properties")
"""Fields of open that tell the nodes apart."""


class Peer:
    """A connection that notes what comes in `lines`.

    Args:
        stage: the broker.
        lines: the transcript.
        name: what it is called in the transcript.
        reads: how many frames each look found where the scenario was played before; filled where it was not.
    """

    def __init__(self, stage: Stage, lines: list[str], name: str, reads: list[int]) -> None:
        self.stage = stage
        self.transport = Client(stage.server, PeerAddress(port=next(_PORTS)))
        self.transport.checked = False
        self.lines = lines
        self.name = name
        self.deliveries = 0
        self.attached: set[int] = set()
        """The handles of the links that a program has attached."""
        self.first_count = 0
        """The delivery count with which the last link of this receiver began."""
        self._left: list[Arrived] = []
        self._reads = reads
        self._looks = 0

    def raw(self, octets: bytes) -> None:
        self.transport.send_bytes(octets)

    def send(self, body: c.Composite, channel: int = 0, payload: bytes = b"") -> None:
        self.transport.send(body, channel, payload)

    def frames(self) -> list[Arrived]:
        """What has come, after a while without more."""
        look, self._looks = self._looks, self._looks + 1
        known = self._reads[look] if self.stage.live and look < len(self._reads) else None
        found = self._taken()
        while not self.transport.closed:
            expected = None if not known else _count(found) < known
            if not self.stage.wait(self.transport.connection, expected=expected):
                break
            found += self._taken()
        found += self._taken()
        if not self.stage.live:
            self._reads.append(_count(found))
        return found

    def take_some(self) -> list[Arrived]:
        """What has come, or comes next; nothing where nothing does for a while."""
        found = self._taken()
        while not found and not self.transport.closed:
            more = self.stage.wait(self.transport.connection, expected=True)
            found = self._taken()
            if not more:
                break
        return found

    def _taken(self) -> list[Arrived]:
        left, self._left = self._left, []
        return left + [each for each in self.transport.take_all() if each.what != EMPTY_FRAME]

    def note(self, what: str = "") -> list[Arrived]:
        """Write down what has come since the last note."""
        found = self.frames()
        lines = [shown(*each) for frame in found for each in single(*frame)]
        self.lines.append(f"{self.name}{what}:")
        self.lines += sorted(lines)
        if self.transport.closed and not any(isinstance(body, c.Close) for _, body, _ in found):
            self.lines.append("closed")
        return found

    def open(self, **fields: Any) -> Peer:
        self.raw(SASL_HEADER)
        self.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest"))
        self.raw(PROTOCOL_HEADER)
        self.send(c.Open(**{"container_id": "test", **fields}))
        return self

    def begin(self, channel: int = 0, **fields: Any) -> Peer:
        said = {"next_outgoing_id": 0, "incoming_window": WINDOW, "outgoing_window": WINDOW, **fields}
        self.send(c.Begin(**said), channel)
        return self

    def session(self, **fields: Any) -> Peer:
        """Open, begin, and forget what came."""
        self.open(**fields).begin()
        self.wait_for(c.Begin)
        return self

    def wait_for(self, *kinds: type[c.Composite], most: float = 5.0) -> list[Arrived]:
        """Read until a frame of each of these kinds has come, of one named twice two.

        The frames of these kinds are not written down; others are left to the next note.
        """
        found: list[Arrived] = []
        wanted = Counter(kinds)
        ends = time.monotonic() + most * self.stage.patience
        while True:
            found += self._taken()
            if wanted <= Counter(type(body) for _, body, _ in found):
                self._left = [
                    each for each in found if type(each.what) not in wanted and not _opens(each.what)
                ]
                return [each for each in found if type(each.what) in wanted]
            if time.monotonic() > ends or self.transport.closed:
                break
            if not self.stage.wait(self.transport.connection, expected=None) and not self.stage.live:
                break
        raise AssertionError(f"{[kind.NAME for kind in kinds]} did not come: {found}")

    def attach(self, role: bool, address: str | None, handle: int = 0, **fields: Any) -> Peer:
        self.send(attach(role, address, handle, **fields))
        return self

    def sender(self, address: str | None, handle: int = 0, **fields: Any) -> Peer:
        self.attach(SENDER, address, handle, **fields)
        self.wait_for(c.Attach, c.Flow)
        return self

    def receiver(self, address: str, handle: int = 0, credit: int | None = None, **fields: Any) -> Peer:
        self.attach(RECEIVER, address, handle, **fields)
        for _, body, _ in self.wait_for(c.Attach):
            if isinstance(body, c.Attach):
                self.first_count = body.initial_delivery_count
        if credit is not None:
            self.flow(handle, link_credit=credit)
        return self

    def flow(self, handle: int | None = None, **fields: Any) -> Peer:
        said = {
            "next_incoming_id": None,
            "incoming_window": WINDOW,
            "next_outgoing_id": 0,
            "outgoing_window": WINDOW,
            "handle": handle,
        }
        self.send(c.Flow(**{**said, **fields}))
        return self

    def transfer(self, handle: int = 0, payload: bytes | None = None, **fields: Any) -> Peer:
        number = self.deliveries
        said = {
            "handle": handle,
            "delivery_id": number,
            "delivery_tag": str(number).encode(),
            "settled": False,
        }
        octets = message() if payload is None else payload
        self.send(c.Transfer(**{**said, **fields}), payload=octets)
        if not fields.get("more"):
            self.deliveries += 1
        return self

    def settle(self, state: Any, first: int, last: int | None = None, settled: bool = True) -> Peer:
        self.send(c.Disposition(role=RECEIVER, first=first, last=last, settled=settled, state=state))
        return self

    # --- management ------------------------------------------------------------------------------------

    def managed(self) -> Peer:
        """Attach the pair of links of the management node, with handles 100 and 101."""
        said = {"name": "pair", "snd_settle_mode": 1, "properties": {Symbol("paired"): True}}
        self.attach(SENDER, "/management", 100, **said)
        self.attach(RECEIVER, "/management", 101, **said)
        self.wait_for(c.Attach, c.Attach, c.Flow)
        self.flow(101, link_credit=100)
        self._requests = 0
        return self

    def request(self, method: str, path: str, body: Any = None) -> None:
        properties = c.Properties(message_id=f"r{self._requests}", subject=method, to=path, reply_to="$me")
        self._requests += 1
        octets = properties.encode() + encode_value(Described(ULong(0x77), body))
        self.transfer(100, octets, settled=True)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[str, Any]:
        """A management request; returns status and body of the response."""
        self.request(method, path, body)
        for _, _, payload in self.wait_for(c.Transfer):
            if payload:
                said = sections(payload)
                return said["properties"].subject, said["value"]
        raise AssertionError("no response")


_PORTS = itertools.count(50_001)
"""The ports of clients, which tell them apart on a broker without sockets."""


def _opens(body: Any) -> bool:
    """Whether a frame belongs to the opening of a connection."""
    return isinstance(body, (bytes, c.SaslMechanisms, c.SaslOutcome, c.Open))


def _count(found: list[Arrived]) -> int:
    return sum(len(single(*each)) for each in found)


def single(channel: int, body: Any, payload: bytes) -> list[tuple[int, Any, bytes]]:
    """A disposition about several publishes as several: how they are grouped depends on time."""
    if not isinstance(body, c.Disposition) or not body.role or body.last is None:
        return [(channel, body, payload)]
    count = (body.last - body.first + 1) & 0xFFFFFFFF
    numbers = [(body.first + each) & 0xFFFFFFFF for each in range(count)]
    return [
        (channel, c.Disposition(**{**vars(body), "first": UInt(each), "last": None}), b"") for each in numbers
    ]


def shown(channel: int, body: Any, payload: bytes) -> str:
    """A frame as a line, without what differs from node to node."""
    if isinstance(body, bytes):
        return f"header {body!r}"
    fields = []
    for field in body.FIELDS:
        value = getattr(body, field.attribute)
        if value is None or (isinstance(body, c.Open) and field.attribute in _HIDDEN):
            continue
        fields.append(f"{field.attribute}={plain(value)}")
    text = f"{channel} {body.NAME} {' '.join(fields)}"
    if payload:
        text += f" | {shown_message(payload)}"
    return text


def shown_message(payload: bytes) -> str:
    try:
        found = []
        offset = 0
        while offset < len(payload):
            value, offset = read_value(payload, offset)
            found.append(plain(value))
        return " ".join(found)
    except Exception:
        return payload.hex()


def plain(value: Any) -> str:
    """A value with its type, and with the defaults of composites left out."""
    if isinstance(value, Described):
        composite = c.read_composite(value)
        if isinstance(composite, c.Composite):
            return plain(composite)
        return f"{plain(value.descriptor)}:{plain(value.value)}"
    if isinstance(value, c.Error):
        text = str(value.description)
        if value.condition == "amqp:internal-error":
            text = "..."
        text = re.sub(r"\s+", " ", text)
        info = "" if value.info is None else plain(value.info)
        return f"error({value.condition} {text} {info})"
    if isinstance(value, c.Composite):
        inner = " ".join(
            f"{each.attribute}={plain(said)}"
            for each in value.FIELDS
            if (said := getattr(value, each.attribute)) is not None and said != each.default
        )
        return f"{value.NAME}({inner})"
    if isinstance(value, dict):
        if "first-time" in value and "last-time" in value:
            later = value["last-time"] > value["first-time"]
            value = {**value, "first-time": "once", "last-time": "later" if later else "once"}
        return "{" + ", ".join(f"{plain(key)}: {plain(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        name = type(value).__name__
        return f"{name}[" + ", ".join(map(plain, value)) + "]"
    if isinstance(value, bool) or value is None:
        return str(value)
    return f"{type(value).__name__} {value!r}"
