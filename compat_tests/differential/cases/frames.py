"""Frames, methods, tables and contents that are not as they should be, and some that only look odd."""

from __future__ import annotations

import functools
import struct
from typing import Any

from compat_tests.differential.codec import (
    content_header,
    encode_method,
    encode_table,
    frame,
    method_frame,
)
from compat_tests.differential.script import *

QUEUE_DECLARE = encode_method("queue.declare", exclusive=1)
TUNE = {"channel_max": 10, "frame_max": 8192, "heartbeat": 0}


def sent(name: str, *octets: bytes) -> None:
    """What comes of these bytes on an open connection with channel 1 open."""
    last(f"frame/{name}", raw(*octets))


# --- framing -----------------------------------------------------------------------------------------------

sent("bad-end", frame(1, 1, QUEUE_DECLARE, end=0))
sent("bad-end-channel-0", frame(1, 0, encode_method("connection.close"), end=0))
sent("bad-end-heartbeat", frame(8, 0, b"", end=1))
sent("bad-end-206-missing", struct.pack(">BHI", 1, 1, 4) + b"\0\x0a\0\x0bX")
for _type in (0, 4, 5, 6, 7, 9, 10, 255):
    sent(f"type-{_type}", frame(_type, 1, b""))
sent("type-7-channel-0", frame(7, 0, b""))
sent("type-4-channel-0", frame(4, 0, b""))
sent("type-5-payload", frame(5, 1, b"abc"))
sent("heartbeat", frame(8, 0, b""))
sent("heartbeat-payload", frame(8, 0, b"x"))
sent("heartbeat-channel-1", frame(8, 1, b""))
sent("heartbeat-channel-9-not-open", frame(8, 9, b""))
sent("size-at-frame-max", frame(3, 1, bytes(131064)))
sent("size-huge-announced", struct.pack(">BHI", 3, 1, 0xFFFFFFFF))
sent("size-over-header-only", struct.pack(">BHI", 1, 1, 131073))
sent("size-over-channel-0", struct.pack(">BHI", 1, 0, 131073))

PUBLISH = method_frame("basic.publish", routing_key="of nobody")


def body_frame(size: int) -> bytes:
    """A publish with its whole body in one frame."""
    return PUBLISH + frame(2, 1, content_header(size)) + frame(3, 1, bytes(size))


sent("size-payload-frame-max", body_frame(131072))
sent("size-payload-frame-max-minus-8", body_frame(131064))
sent("size-payload-frame-max-plus-1", body_frame(131073))


last("frame/size-over-negotiated-8192", raw(body_frame(8193), tune=TUNE))
# A content header that the publisher could send, and the receiver did not agree to.
last(
    "frame/header-over-negotiated-8192",
    connect("a", tune=TUNE),
    queue(),
    publish(props={"headers": {"h": "x" * 20_000}}),
    got_in_frames(),
)


def agreed_on(frame_max: int) -> Step:
    """Connect with this limit; the case ends where it is refused."""
    return lambda scene: scene.client("a", tune={**TUNE, "frame_max": frame_max}) and []


for _name, _frame_max, _size in (("split-8192", 8192, 20_000), ("unlimited", 0, 100_000)):
    last(
        f"frame/delivery-{_name}",
        agreed_on(_frame_max),
        queue(),
        publish(body="z" * _size),
        got_in_frames(),
    )


@case("frame/split-octet-by-octet")
def _(scene: Scene) -> list[str]:
    arguments = encode_method("basic.publish", routing_key=scene.named("@no"), mandatory=1)
    for octet in frame(1, 1, arguments) + frame(2, 1, content_header(3)) + frame(3, 1, b"abc"):
        scene.a.send_bytes(bytes((octet,)))
    return scene.a.barrier(1)


@case("frame/interleaved-channels")
def _(scene: Scene) -> list[str]:
    call("channel.open", ch=2)(scene)
    method = encode_method("basic.publish", routing_key=scene.named("@no"), mandatory=1)
    first, second = ([frame(1, n, method), frame(2, n, content_header(1)), frame(3, n, b"x")] for n in (1, 2))
    scene.a.send_bytes(b"".join((first[0], second[0], first[1], second[1], second[2], first[2])))
    return sorted(scene.a.quiet(0.4))


# --- methods -----------------------------------------------------------------------------------------------


def ids(class_id: int, method_id: int, channel: int = 1) -> bytes:
    return frame(1, channel, struct.pack(">HH", class_id, method_id))


sent("unknown-class", ids(999, 10))
sent("unknown-method", ids(60, 99))
sent("unknown-class-channel-0", ids(999, 10, 0))
sent("unknown-method-channel-0", ids(10, 99, 0))
sent("unknown-class-not-open-channel", ids(999, 10, 7))
sent("class-0", ids(0, 0))
for _class, _method in (
    (20, 50),
    (20, 60),
    (70, 10),
    (80, 10),
    (100, 10),
    (110, 10),
    (120, 10),
    (40, 22),
    (60, 102),
    (10, 42),
):
    sent(f"class-{_class}-{_method}", ids(_class, _method))
sent("empty-method-frame", frame(1, 1, b""))
sent("one-octet-method-frame", frame(1, 1, b"\0"))
sent("three-octet-method-frame", frame(1, 1, b"\0\x32\0"))
sent("empty-method-frame-channel-0", frame(1, 0, b""))
sent("truncated-method", frame(1, 1, QUEUE_DECLARE[:9]))
sent("truncated-method-in-name", frame(1, 1, QUEUE_DECLARE[:6] + b"\x20abc"))
sent("truncated-table", frame(1, 1, QUEUE_DECLARE[:-4] + b"\0\0\0\x09\x01"))
sent("truncated-no-arguments", frame(1, 1, QUEUE_DECLARE[:4]))
sent("truncated-channel-0", frame(1, 0, encode_method("connection.close")[:6]))
sent("truncated-basic.ack", frame(1, 1, encode_method("basic.ack", delivery_tag=1)[:8]))
sent("truncated-basic.publish", frame(1, 1, encode_method("basic.publish")[:6]))
sent("truncated-qos", frame(1, 1, encode_method("basic.qos")[:7]))
sent("trailing-bytes", frame(1, 1, QUEUE_DECLARE + b"\0\0"))
sent("trailing-bytes-qos", frame(1, 1, encode_method("basic.qos") + b"\0"))
sent("trailing-bytes-channel.open", frame(1, 2, encode_method("channel.open") + b"\1\2"))
sent("trailing-bytes-tx.select", frame(1, 1, encode_method("tx.select") + b"z"))
sent("trailing-bytes-publish", frame(1, 1, encode_method("basic.publish") + b"z"))
sent("trailing-bytes-channel-0-close", frame(1, 0, encode_method("connection.close") + b"z"))

last("misc/access.request", call("access.request", realm="/data", active=1))
last("misc/queue-with-ticket", queue(reserved_1=7))
last("misc/nowait-declare", queue(no_wait=1))
last("misc/nowait-declare-error", queue("@no", passive=1, no_wait=1))
last("misc/nowait-declare-server-named", queue("", no_wait=1))
last("misc/nowait-exchange-delete", call("exchange.delete", exchange="@no", no_wait=1))

# --- field tables ------------------------------------------------------------------------------------------


def with_table(octets: bytes) -> bytes:
    """queue.declare whose arguments are these bytes."""
    return frame(1, 1, QUEUE_DECLARE[:-4] + encode_table(octets))


def table(name: str, octets: bytes) -> None:
    """What comes of a declaration with these bytes as its table of arguments."""
    last(f"frame/table-{name}", raw(with_table(octets), seconds=1.0))


for _tag in b"ZUq\0\xffNc":
    table(f"unknown-tag-{_tag}", b"\1a" + bytes((_tag,)) + bytes(8))
table("truncated-value", b"\1aI\0\0")
table("truncated-string", b"\1aS\0\0\0\x09abc")
table("name-overrun", b"\x20abc")
table("name-only", b"\1a")
table("empty-name", b"\0t\1")
table("digit-name", b"\x011t\1")
table("name-255", b"\xff" + b"n" * 255 + b"t\1")
table("bool-2", b"\1at\2")
table("array-truncated", b"\1aA\0\0\0\x09I\0")
table("array-bad-tag", b"\1aA\0\0\0\2Z\0")
table("array-item-overrun", b"\1aA\0\0\0\3I\0\0")
table("nested-truncated", b"\1aF\0\0\0\x09\1b")
table("duplicate-names", b"\1at\1\1at\0")
table("invalid-utf8-name", b"\1\xfft\1")
table("deep-100", functools.reduce(lambda inner, _: b"\1kF" + encode_table(inner), range(100), b""))
sent("table-length-beyond-frame", frame(1, 1, QUEUE_DECLARE[:-4] + b"\0\0\xff\xff"))

# --- contents ----------------------------------------------------------------------------------------------


def header(size: int, **fields: Any) -> bytes:
    return frame(2, 1, content_header(size, **fields))


def body(octets: bytes) -> bytes:
    return frame(3, 1, octets)


DECLARE = frame(1, 1, QUEUE_DECLARE)
CLOSE_CHANNEL = method_frame("channel.close", reply_code=200)
HEARTBEAT = frame(8, 0, b"")

sent("content-header-class", PUBLISH, header(1, class_id=50))
sent("content-header-class-unknown", PUBLISH, header(1, class_id=999))
sent("content-weight", PUBLISH, header(1, weight=1))
sent("content-header-unexpected", header(1))
sent("content-body-unexpected", body(b"x"))
sent("content-empty-body-unexpected", body(b""))
sent("content-body-instead-of-header", PUBLISH, body(b"x"))
sent("content-method-instead-of-header", PUBLISH, DECLARE)
sent("content-method-instead-of-body", PUBLISH, header(5), DECLARE)
sent("content-header-instead-of-body", PUBLISH, header(5), header(5))
sent("content-method-after-part-of-body", PUBLISH, header(5), body(b"ab"), DECLARE)
sent("content-channel.close-instead-of-header", PUBLISH, CLOSE_CHANNEL)
sent("content-channel.close-instead-of-body", PUBLISH, header(5), CLOSE_CHANNEL)
sent("content-heartbeat-between", PUBLISH, HEARTBEAT, header(1), HEARTBEAT, body(b"x"))
sent("content-method-after-zero-body", PUBLISH, header(0), method_frame("basic.qos"))
sent("content-body-after-zero", PUBLISH, header(0), body(b"x"))
sent("content-body-overrun", PUBLISH, header(2), body(b"abcd"))
sent("content-body-overrun-second-frame", PUBLISH, header(4), body(b"abc"), body(b"defg"))
sent("content-body-overrun-then-method", PUBLISH, header(2), body(b"abcd"), DECLARE)
sent("content-empty-body-frames", PUBLISH, header(2), body(b""), body(b"a"), body(b""), body(b"b"))
for _size in (2**63, 536870913, 134217729, 134217728, 16777217):
    sent(f"content-header-size-{_size}", PUBLISH, header(_size))
sent("content-header-short", PUBLISH, frame(2, 1, b"\0\x3c\0\0\0"))
sent("content-header-empty", PUBLISH, frame(2, 1, b""))
sent("content-header-no-flags", PUBLISH, header(0, properties=b""))
sent("content-header-trailing", PUBLISH, header(0, properties=b"\0\0zz"))


def properties(name: str, octets: bytes) -> None:
    """What comes of these bytes as flags and values, and of a message that has them."""

    @case(f"frame/header-props-{name}")
    def _(scene: Scene) -> list[str]:
        queue()(scene)
        scene.a.tell(1, "basic.publish", routing_key=scene.named("@q"))
        scene.a.send_bytes(header(0, properties=octets))
        came = scene.a.drain(1.0)
        return came if scene.a.end else came + get()(scene)


properties("truncated-string", b"\x80\0\x20ab")
properties("truncated-table", b"\x20\0\0\0\0\x09\1a")
properties("truncated-table-length", b"\x20\0\0\0")
properties("missing-value", b"\x80\0")
properties("timestamp-short", b"\0\x40\0\0")
properties("bad-tag", b"\x20\0" + encode_table(b"\1aZ\0"))
properties("table-name-overrun", b"\x20\0" + encode_table(b"\x20a"))
properties("continuation-empty", b"\0\1\0\0")
properties("continuation-with-flags", b"\0\1\x80\0")
properties("continuation-missing", b"\0\1")
properties("bit-1-set", b"\0\2")
properties("cluster-id", b"\0\4\2hi")
properties("all-trailing", b"\x80\0\1aTRAIL")
properties("bad-utf8-content-type", b"\x80\0\1\xff")
