"""Frames right behind one that causes an error, and methods on channels that are closing or not open."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.codec import content_header, encode_method, frame
from compat_tests.differential.script import *


def method(name: str, channel: int = 1, **arguments: Any) -> bytes:
    return frame(1, channel, encode_method(name, **arguments))


MISSING = method("queue.declare", queue="nope", passive=1)
PUBLISH = method("basic.publish", routing_key="of nobody", mandatory=1)
WHOLE = PUBLISH + frame(2, 1, content_header(1)) + frame(3, 1, b"x")
TO_NO_EXCHANGE = (
    method("basic.publish", exchange="nope", routing_key="k")
    + frame(2, 1, content_header(1))
    + frame(3, 1, b"x")
)


def behind(name: str, *octets: bytes) -> None:
    """What comes of frames in one packet, of which the first causes an error of the channel."""

    @case(f"behind/{name}")
    def _(scene: Scene) -> list[str]:
        scene.a.send_bytes(b"".join(octets))
        return scene.a.drain(1.0)


behind("declare", MISSING, method("queue.declare", exclusive=1))
behind("publish", MISSING, WHOLE)
behind("two-publishes", TO_NO_EXCHANGE, WHOLE)
behind("two-publishes-of-which-both-fail", TO_NO_EXCHANGE, TO_NO_EXCHANGE)
behind("channel.close", MISSING, method("channel.close", reply_code=200))
behind("channel.close-ok", MISSING, method("channel.close-ok"))
behind("connection.close", MISSING, method("connection.close", 0, reply_code=200))
behind("same-error-twice", MISSING, MISSING)
behind("ack", MISSING, method("basic.ack", delivery_tag=9))
behind("unknown-ack-twice", method("basic.ack", delivery_tag=9), method("basic.ack", delivery_tag=9))
behind("connection-error", MISSING, method("basic.qos", prefetch_size=1))
behind("heartbeat", MISSING, frame(8, 0, b""))
behind("consume", MISSING, method("basic.consume", queue="nope"))


@case("behind/another-channel")
def _(scene: Scene) -> list[str]:
    """Two channels of RabbitMQ work at the same time."""
    scene.a.send_bytes(MISSING + method("channel.open", 2))
    return sorted(scene.a.drain(1.0))


# --- a method that needs no open channel, and ids of the closes that come of it -----------------------------

BLANK = {
    "queue.bind": {"queue": "", "exchange": "amq.direct"},
    "queue.purge": {"queue": ""},
    "queue.delete": {"queue": ""},
    "queue.unbind": {"queue": "", "exchange": "amq.direct"},
    "queue.declare": {"queue": "", "passive": 1},
    "basic.consume": {"queue": ""},
    "basic.get": {"queue": ""},
}
for _name, _arguments in BLANK.items():
    _octets = method(_name, **_arguments)

    @case(f"blank-queue/{_name}-on-an-open-channel")
    def _(scene: Scene, octets: bytes = _octets) -> list[str]:
        scene.a.send_bytes(octets)
        return scene.a.drain(0.7)

    @case(f"blank-queue/{_name}-on-an-unopened-channel")
    def _(scene: Scene, octets: bytes = _octets) -> list[str]:
        client = scene.client(channels=())
        client.send_bytes(octets)
        return client.drain(0.7)

    @case(f"blank-queue/{_name}-on-a-closing-channel")
    def _(scene: Scene, octets: bytes = _octets) -> list[str]:
        client = scene.client(answers=False)
        client.send_bytes(MISSING)
        client.until("channel.close")
        client.send_bytes(octets)
        return client.drain(0.7)


def by_ids(name: str, class_id: int, method_id: int, payload: bytes, channel: int = 1) -> None:
    """What comes of a method by its ids, with these octets as its fields."""

    @case(f"ids/{name}")
    def _(scene: Scene) -> list[str]:
        octets = class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big") + payload
        scene.a.send_bytes(frame(1, channel, octets))
        return scene.a.drain(0.7)


TAG = b"\1c"
for _method, _fields in (
    (200, TAG + b"\0\0\0\1\0"),
    (201, b"\0\0\0\1"),
    (202, TAG + b"\0\0\0\1"),
    (203, b""),
):
    by_ids(f"60-{_method}", 60, _method, _fields)
    by_ids(f"60-{_method}-empty", 60, _method, b"")
for _method in (100, 110, 111, 120):
    by_ids(f"60-{_method}-fields", 60, _method, b"\1")

# --- AMQP 1.0 -----------------------------------------------------------------------------------------------

SASL_INIT = bytes.fromhex("00000019 02010000 005341c0 0c 02 a309 414e4f4e594d4f5553 40".replace(" ", ""))
for _name, _header, _more in (
    ("sasl-and-init", b"AMQP\3\1\0\0", SASL_INIT),
    ("plain-and-open", b"AMQP\0\1\0\0", bytes(16)),
):

    @case(f"amqp-1.0/{_name}")
    def _(scene: Scene, header: bytes = _header, more: bytes = _more) -> list[str]:
        client = scene.client(handshake=False, header=header)
        first = client.octets(0.5)
        client.send_bytes(more)
        rest = client.octets(0.5)
        return [first[:8].hex() or "-", rest[:4].hex() or "-", client.end or "still-open"]
