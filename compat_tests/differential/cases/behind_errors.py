"""Frames right behind one that causes an error, and methods on channels that are closing or not open."""

from __future__ import annotations

from compat_tests.differential.codec import content_header, frame, method_frame
from compat_tests.differential.script import *

MISSING = method_frame("queue.declare", queue="nope", passive=1)
PUBLISH = method_frame("basic.publish", routing_key="of nobody", mandatory=1)
WHOLE = PUBLISH + frame(2, 1, content_header(1)) + frame(3, 1, b"x")
TO_NO_EXCHANGE = (
    method_frame("basic.publish", exchange="nope", routing_key="k")
    + frame(2, 1, content_header(1))
    + frame(3, 1, b"x")
)
UNKNOWN_ACK = method_frame("basic.ack", delivery_tag=9)


def behind(name: str, *octets: bytes) -> None:
    """What comes of frames in one packet, of which the first causes an error of the channel."""
    last(f"behind/{name}", raw(*octets, seconds=1.0))


behind("declare", MISSING, method_frame("queue.declare", exclusive=1))
behind("publish", MISSING, WHOLE)
behind("two-publishes", TO_NO_EXCHANGE, WHOLE)
behind("two-publishes-of-which-both-fail", TO_NO_EXCHANGE, TO_NO_EXCHANGE)
behind("channel.close", MISSING, method_frame("channel.close", reply_code=200))
behind("channel.close-ok", MISSING, method_frame("channel.close-ok"))
behind("connection.close", MISSING, method_frame("connection.close", 0, reply_code=200))
behind("same-error-twice", MISSING, MISSING)
behind("ack", MISSING, UNKNOWN_ACK)
behind("unknown-ack-twice", UNKNOWN_ACK, UNKNOWN_ACK)
behind("connection-error", MISSING, method_frame("basic.qos", prefetch_size=1))
behind("heartbeat", MISSING, frame(8, 0, b""))
behind("consume", MISSING, method_frame("basic.consume", queue="nope"))


# Two channels of RabbitMQ work at the same time.
last(
    "behind/another-channel",
    lambda scene: sorted(raw(MISSING, method_frame("channel.open", 2), seconds=1.0)(scene)),
)

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
    _octets = method_frame(_name, **_arguments)
    last(f"blank-queue/{_name}-on-an-open-channel", raw(_octets, seconds=0.7))
    last(f"blank-queue/{_name}-on-an-unopened-channel", raw(_octets, seconds=0.7, channels=()))

    @case(f"blank-queue/{_name}-on-a-closing-channel")
    def _(scene: Scene, octets: bytes = _octets) -> list[str]:
        client = scene.client(answers=False)
        client.send_bytes(MISSING)
        client.until("channel.close")
        client.send_bytes(octets)
        return client.drain(0.7)


def by_ids(name: str, class_id: int, method_id: int, payload: bytes, channel: int = 1) -> None:
    """What comes of a method by its ids, with these octets as its fields."""

    octets = class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big") + payload
    last(f"ids/{name}", raw(frame(1, channel, octets), seconds=0.7))


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
