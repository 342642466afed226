"""Input that cannot be read: in every state of a connection and of a channel, and garbage."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from compat_tests.differential.codec import (
    content_header,
    encode_method,
    encode_table,
    frame,
    method_frame,
)
from compat_tests.differential.raw_client import RawClient
from compat_tests.differential.script import *

REFUSAL = 5.0
"""Seconds; RabbitMQ ends the transport three seconds after a frame that it cannot find the end of."""
QUEUE_DECLARE = encode_method("queue.declare", exclusive=1)
PUBLISH = method_frame("basic.publish", routing_key="of nobody", mandatory=1)
UNKNOWN_METHOD = struct.pack(">HH", 99, 1)
BAD_PROPERTIES = b"\x80\0\x20ab"
TOO_LARGE = struct.pack(">BHI", 3, 1, 2**31)

Make = Callable[[Scene], RawClient]


def _open(scene: Scene) -> RawClient:
    return scene.a


def _unopened(scene: Scene) -> RawClient:
    return scene.client(channels=())


def _closing_channel(scene: Scene) -> RawClient:
    client = scene.client(answers=False)
    client.tell(1, "queue.declare", queue="nope", passive=1)
    client.until("channel.close")
    return client


def _closing_connection(scene: Scene) -> RawClient:
    client = scene.client(answers=False)
    client.tell(1, "basic.qos", prefetch_size=1)
    client.until("connection.close")
    return client


def _closed_connection(scene: Scene) -> RawClient:
    client = scene.client(answers=False)
    client.tell(0, "connection.close", reply_code=200)
    client.until("connection.close-ok")
    return client


def _before_start_ok(scene: Scene) -> RawClient:
    client = scene.client(handshake=False)
    client.until("connection.start")
    return client


def _before_open(scene: Scene) -> RawClient:
    client = scene.client(handshake=False)
    client.start_ok()
    client.until("connection.tune")
    client.tell(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
    return client


def sent(name: str, make: Make, *octets: bytes, seconds: float = 0.7) -> None:
    """What comes of these bytes in this state, until nothing has come for some seconds."""

    @case(f"malformed/{name}")
    def _(scene: Scene) -> list[str]:
        client = make(scene)
        client.send_bytes(b"".join(octets))
        return client.drain(seconds)


# --- bytes in texts ----------------------------------------------------------------------------------------

PAYLOADS: tuple[bytes, ...] = (
    b"\xe9",
    "zaż".encode(),
    "😀".encode(),
    "€€€€€€".encode(),
    b'q"\\\n\t\r\x1b\x0b\x08\x0c',
    b"\x07",
    b"\xff\xfe",
    b"a" * 16,
    b"a" * 17,
    bytes(range(240, 256)),
    b"\x7f",
    b"\xc2\x80",
    b"\xef\xbf\xbf",
    b"\xc2\xa0\xc3\xa9",
    *(bytes(size) for size in (*range(1, 18), 40)),
    *(b"\1" + bytes([200]) * (size - 1) for size in range(8, 18)),
)
for _payload in PAYLOADS:
    _shown = _payload.hex() if len(_payload) < 18 else f"{_payload[:2].hex()}-{len(_payload)}"
    sent(f"unknown-frame-{_shown}", _open, frame(77, 1, _payload))
    sent(f"frame-end-{_shown}", _open, frame(1, 1, _payload, end=7), seconds=REFUSAL)
for _end in (0, 9, 10, 99, 100, 205, 207, 255):
    sent(f"frame-end-byte-{_end}", _open, frame(200, 0, bytes(11), end=_end), seconds=REFUSAL)
for _size in (131073, 1048576, 2**32 - 1):
    sent(f"frame-size-{_size}", _open, struct.pack(">BHI", 3, 65535, _size), seconds=REFUSAL)
for _size in (0, 1, 16, 17, 50, 51, 52, 53, 54, 255, 4000):
    sent(f"fields-too-long-{_size}", _open, frame(1, 1, QUEUE_DECLARE + b"\xff" * _size))

# --- channels and connections in other states --------------------------------------------------------------

ON_A_CHANNEL: dict[str, bytes] = {
    "body": frame(3, 1, b"x"),
    "empty-body": frame(3, 1, b""),
    "header": frame(2, 1, content_header(1)),
    "heartbeat": frame(8, 1, b""),
    "unknown-frame": frame(5, 1, b"ab"),
    "short-method": frame(1, 1, b"\0\x32"),
    "short-header": frame(2, 1, b"abc"),
    "unknown-method": frame(1, 1, UNKNOWN_METHOD),
    "truncated": frame(1, 1, QUEUE_DECLARE[:7]),
    "trailing": frame(1, 1, QUEUE_DECLARE + b"z"),
    "bad-table": frame(1, 1, QUEUE_DECLARE[:-4] + encode_table(b"\1aZ")),
    "trailing-close-ok": frame(1, 1, encode_method("channel.close-ok") + b"x"),
    "trailing-open": frame(1, 1, encode_method("channel.open") + b"x"),
    "truncated-close": frame(1, 1, encode_method("channel.close")[:6]),
    "connection.close": method_frame("connection.close"),
    "deliver": method_frame("basic.deliver"),
    "deliver-body": method_frame("basic.deliver") + frame(3, 1, b"x"),
    "publish": PUBLISH,
    "publish-body": PUBLISH + frame(3, 1, b"x"),
    "publish-method": PUBLISH + frame(1, 1, QUEUE_DECLARE),
    "publish-unknown-method": PUBLISH + frame(1, 1, UNKNOWN_METHOD),
    "publish-short-header": PUBLISH + frame(2, 1, b"abc"),
    "publish-class": PUBLISH + frame(2, 1, content_header(1, class_id=50)),
    "publish-weight": PUBLISH + frame(2, 1, content_header(1, weight=1)),
    "publish-class-weight": PUBLISH + frame(2, 1, content_header(1, class_id=50, weight=1)),
    "publish-overrun": PUBLISH + frame(2, 1, content_header(1)) + frame(3, 1, b"abc"),
    "publish-huge": PUBLISH + frame(2, 1, content_header(2**40)),
    "publish-headers": PUBLISH + frame(2, 1, content_header(4)) * 2,
    "publish-properties": PUBLISH + frame(2, 1, content_header(0, properties=BAD_PROPERTIES)),
    "publish-whole": PUBLISH + frame(2, 1, content_header(1)) + frame(3, 1, b"x"),
    "publish-close-ok": PUBLISH + method_frame("channel.close-ok"),
}
for _name, _octets in ON_A_CHANNEL.items():
    sent(f"open-channel-{_name}", _open, _octets)
    sent(f"closing-channel-{_name}", _closing_channel, _octets)
    sent(f"unopened-channel-{_name}", _unopened, _octets)

START_OK = encode_method("connection.start-ok", client_properties={}, mechanism="PLAIN", locale="en_US")
CLOSE = encode_method("connection.close", reply_code=200)
ON_CHANNEL_0: dict[str, bytes] = {
    "unknown-frame": frame(5, 0, b"x"),
    "unknown-frame-1": frame(5, 1, b"x"),
    "heartbeat-1": frame(8, 1, b""),
    "heartbeat-payload": frame(8, 0, b"x"),
    "short-method": frame(1, 0, b"\0"),
    "short-header": frame(2, 0, b"x"),
    "header": frame(2, 0, content_header(1)),
    "body": frame(3, 0, b"x" * 17),
    "body-1": frame(3, 1, b"x" * 17),
    "unknown-method": frame(1, 0, UNKNOWN_METHOD),
    "unknown-method-9": frame(1, 9, UNKNOWN_METHOD),
    "truncated-1": frame(1, 1, QUEUE_DECLARE[:7]),
    "queue.declare": frame(1, 0, QUEUE_DECLARE),
    "truncated-start-ok": frame(1, 0, START_OK[:-2]),
    "trailing-start-ok": frame(1, 0, START_OK + b"z"),
    "bad-table-start-ok": frame(1, 0, START_OK[:4] + encode_table(b"\1aZ") + START_OK[8:]),
    "trailing-open": frame(1, 0, encode_method("connection.open", virtual_host="/") + b"x"),
    "truncated-close": frame(1, 0, CLOSE[:6]),
    "close-close-ok": frame(1, 0, CLOSE) + method_frame("connection.close-ok", 0),
    "trailing-close-ok": frame(1, 0, encode_method("connection.close-ok") + b"x"),
    "bad-end": frame(1, 0, encode_method("connection.close-ok"), end=0),
    "too-large": TOO_LARGE,
}
STATES: dict[str, Make] = {
    "before-start-ok": _before_start_ok,
    "before-open": _before_open,
    "open": _open,
    "closing": _closing_connection,
    "closed": _closed_connection,
}
for _state, _make in STATES.items():
    for _name, _octets in ON_CHANNEL_0.items():
        if (_state, _name) == ("open", "close-close-ok"):
            continue  # RabbitMQ ignores close-ok as long as the channels end.
        _ends_late = (
            _state == "before-start-ok" or _state == "before-open" or _name in ("bad-end", "too-large")
        )
        _seconds = REFUSAL if _ends_late else 0.7
        sent(f"{_state}-connection-{_name}", _make, _octets, seconds=_seconds)

# --- tables ------------------------------------------------------------------------------------------------

NOT_A_NUMBER, INFINITE = float("nan"), float("-inf")
TABLES: dict[str, bytes] = {
    "double-nan": b"\1ad" + struct.pack(">d", NOT_A_NUMBER),
    "double-infinite": b"\1ad" + struct.pack(">d", INFINITE),
    "float-nan": b"\1af" + struct.pack(">f", NOT_A_NUMBER),
    "float-infinite": b"\1af" + struct.pack(">f", INFINITE),
    "double-minus-zero": b"\1ad" + struct.pack(">d", -0.0),
    "array-nan": b"\1aA\0\0\0\x09d" + struct.pack(">d", NOT_A_NUMBER),
    "decimal-255": b"\1aD\xff\xff\xff\xff\xff",
    "nested-tag": b"\1aF\0\0\0\3\1aZ",
    "void-in-array": b"\1aA\0\0\0\1V",
}
for _name, _octets in TABLES.items():
    sent(f"table-{_name}", _open, frame(1, 1, QUEUE_DECLARE[:-4] + encode_table(_octets)))
    _properties = b"\x20\0" + encode_table(_octets)
    sent(f"headers-{_name}", _open, PUBLISH, frame(2, 1, content_header(0, properties=_properties)))
sent("table-tag-trailing", _open, frame(1, 1, QUEUE_DECLARE[:-4] + encode_table(b"\1aZ") + b"xx"))

# --- properties are read once a message may be published ----------------------------------------------------


def published(name: str, properties: bytes, size: int, body: bytes, *before: str, exchange: str = "") -> None:
    """What comes of a message with these properties."""
    octets = [frame(1, 1, encode_method(method)) for method in before]
    octets.append(method_frame("basic.publish", exchange=exchange, routing_key="of nobody"))
    octets.append(frame(2, 1, content_header(size, properties=properties)))
    if body:
        octets.append(frame(3, 1, body))
    sent(f"properties-{name}", _open, *octets)


published("missing-exchange", BAD_PROPERTIES, 0, b"", exchange="nope")
published("internal-exchange", BAD_PROPERTIES, 0, b"", exchange="amq.rabbitmq.trace")
published("incomplete", BAD_PROPERTIES, 5, b"ab")
published("complete", BAD_PROPERTIES, 5, b"abcde")
published("tx", BAD_PROPERTIES, 0, b"", "tx.select")
published("confirm", BAD_PROPERTIES, 0, b"", "confirm.select")
published("both-spare-flags", b"\0\3", 0, b"")
published("spare-flags-trailing", b"\0\3\0\0", 0, b"")
published("spare-flag-and-value", b"\x10\2\1", 0, b"")
published("one-byte", b"\0", 0, b"")

# --- garbage -----------------------------------------------------------------------------------------------

METHODS = (
    "basic.ack",
    "basic.nack",
    "basic.publish",
    "basic.qos",
    "basic.reject",
    "channel.close",
    "channel.flow",
    "channel.open",
    "confirm.select",
    "connection.close",
    "connection.open",
    "connection.tune-ok",
    "exchange.bind",
    "exchange.declare",
    "queue.declare",
    "tx.select",
)


def _bytes(chance: random.Random, size: int) -> bytes:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randbytes(size)
    if kind == 1:
        return bytes(chance.randrange(32, 127) for _ in range(size))
    if kind == 2:
        return "".join(chance.choice("é€żA\n\xa0") for _ in range(size)).encode()[:size]
    return bytes(chance.randrange(4) for _ in range(size))


def _damaged(chance: random.Random, octets: bytes) -> bytes:
    place = chance.randrange(len(octets))
    kind = chance.randrange(3)
    if kind == 0:
        return octets[:place]
    if kind == 1:
        return octets + _bytes(chance, chance.randrange(1, 40))
    return octets[:place] + bytes([chance.randrange(256)]) + octets[place + 1 :]


def _garbage(chance: random.Random) -> bytes:
    """A frame, or a publish with its content, that is damaged somewhere.

    Left out, as the channel and the connection work at the same time in RabbitMQ: frames behind an error of
    the channel.
    """
    channel = chance.choice((0, 1, 1, 1, 2))
    kind = chance.randrange(6)
    if kind == 0:
        frame_type = chance.choice((0, 1, 2, 3, 4, 5, 8, 9, 200))
        return frame(frame_type, channel, _bytes(chance, chance.randrange(22)))
    if kind == 1:
        size, end = chance.randrange(22), chance.randrange(206)
        return frame(chance.choice((1, 2, 3, 5, 8)), channel, _bytes(chance, size), end=end)
    if kind == 2:
        ids = struct.pack(">HH", chance.choice((10, 20, 40, 60, 90, 5)), chance.randrange(1, 130))
        return frame(1, channel, ids + b"\xff" * chance.randrange(1, 8))
    if kind == 3:
        return frame(1, channel, _damaged(chance, encode_method(chance.choice(METHODS))))
    if kind == 4:
        fields = encode_table(_bytes(chance, chance.randrange(1, 14)))
        return frame(1, channel, QUEUE_DECLARE[:-4] + fields)
    header = content_header(chance.randrange(1, 4), properties=_bytes(chance, chance.randrange(8)))
    if chance.random() < 0.3:
        header = _damaged(chance, header)
    publish = frame(1, channel, encode_method("basic.publish", routing_key="of nobody"))
    return publish + frame(2, channel, header) + frame(3, channel, _bytes(chance, 1))


WITH_FRAMES_OF_0_9 = set()
"""Ids of cases that send a frame of a type that 0-9 has and 0-9-1 does not."""

for _seed in range(300):
    _random = random.Random(_seed)
    _state = _random.choice((_open, _open, _open, _closing_channel, _unopened))
    _octets = _garbage(_random)
    sent(f"garbage-{_seed}", _state, _octets, seconds=REFUSAL if _seed % 50 == 0 else 0.7)
    if _octets[0] in (4, 5, 6, 7, 9, 10):
        WITH_FRAMES_OF_0_9.add(f"malformed/garbage-{_seed}")
