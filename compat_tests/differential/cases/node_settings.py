"""Settings of a node that clients notice: the acknowledgement timeout, and the size of messages."""

from __future__ import annotations

from compat_tests.differential.codec import content_header, frame, method_frame
from compat_tests.differential.raw_client import CAPABILITIES
from compat_tests.differential.script import *

# --- the acknowledgement timeout ---------------------------------------------------------------------------

ONE_SECOND = Setting("set_consumer_timeout", "1")
QUORUM = {"x-queue-type": "quorum"}
STREAM = {"x-queue-type": "stream"}
NO_CANCEL = {name: name != "consumer_cancel_notify" for name in CAPABILITIES}
LATE = 1.7
"""Seconds: the timeout, and some looks at it."""


def timed(case_id: str, *steps: object) -> None:
    """A case with the timeout."""
    each(f"consumer-timeout/{case_id}", *steps, setting=ONE_SECOND)  # type: ignore[arg-type]


def late(on: str = "a") -> Step:
    return pause(LATE, on=on)


timed("consumer", [queue(), consume(), publish(settle=0.2)], late(), get(on="b"))
timed("consumer-and-get", [queue(), publish(), get(no_ack=0)], late(), get(on="b"))
timed("acknowledged", [queue(), consume(), publish(settle=0.2), ack(1)], late())
timed("no-ack", [queue(), consume(no_ack=1), publish(settle=0.2)], late())
timed(
    "other-channel-lives-on",
    [queue(), open_channel(2), consume(), publish(settle=0.2)],
    late(),
    queue(ch=2),
)
timed(
    "one-of-two-consumers",
    [queue(), queue("@q2"), consume(tag="c"), consume("@q2", tag="d"), publish(settle=0.2)],
    late(),
    publish("@q2", on="b"),
    pause(0.3),
)
timed(
    "quorum-consumer",
    [queue(durable=1, arguments=QUORUM), consume(), publish(settle=0.2)],
    late(),
    until("get-ok", get(on="b"), tries=10),
    call("queue.delete", queue="@q", on="b"),
)
timed(
    "quorum-consumer-without-cancel-notify",
    [
        connect("c", capabilities=NO_CANCEL),
        queue(durable=1, arguments=QUORUM, on="c"),
        consume(on="c"),
        publish(on="c", settle=0.2),
    ],
    late("c"),
    call("queue.delete", queue="@q", on="b"),
)
timed(
    "quorum-get",
    [queue(durable=1, arguments=QUORUM), publish(settle=0.3), get(no_ack=0)],
    late(),
    until("get-ok", get(on="b"), tries=10),
    call("queue.delete", queue="@q", on="b"),
)
timed(
    "queue-with-a-longer-timeout",
    [queue(arguments={"x-consumer-timeout": 60_000}), consume(), publish(settle=0.2)],
    late(),
)
timed(
    "in-a-transaction",
    [queue(), TX, consume(), publish(on="b"), pause(0.2), ack(1)],
    late(),
)

# --- the size of messages ----------------------------------------------------------------------------------

LIMIT = 1000
SMALL = Setting("set_largest_message", str(LIMIT))


def sized(case_id: str, *steps: object) -> None:
    """A case with a limit of 1 000 bytes."""
    each(f"message-size/{case_id}", *steps, setting=SMALL)  # type: ignore[arg-type]


sized("at-the-limit", queue(), publish(body="x" * LIMIT), get())
sized("one-above", [queue()], publish(body="x" * (LIMIT + 1)), open_channel(1), get())
sized(
    "in-several-frames",
    [connect("a", tune={"channel_max": 9, "frame_max": 8192, "heartbeat": 0})],
    publish("@q", "x" * 10_000),
)
sized("one-above-to-a-missing-exchange", publish(exchange="@none", body="x" * (LIMIT + 1)))
sized("one-above-mandatory", publish("@none", mandatory=1, body="x" * (LIMIT + 1)))
sized("one-above-confirmed", [queue(), CONFIRMS], publish(body="x" * (LIMIT + 1), settle=0.3))
sized("one-above-in-a-transaction", [queue(), TX], publish(body="x" * (LIMIT + 1)))
sized(
    "headers-do-not-count", [queue()], publish(body="x" * LIMIT, props={"headers": {"x": "y" * 2000}}), get()
)
sized(
    "quorum",
    [queue(durable=1, arguments=QUORUM)],
    publish(body="x" * (LIMIT + 1), settle=0.3),
    call("queue.delete", queue="@q", on="b"),
)
sized("another-channel-lives-on", [queue(), open_channel(2)], publish(body="x" * (LIMIT + 1)), queue(ch=2))
sized("bad-properties-above", [queue()], publish(body="x" * (LIMIT + 1), props={"expiration": "x"}))


def announced(name: str, size: int, *, body: bytes = b"") -> None:
    """What comes of a content header that announces so many bytes."""

    publish = method_frame("basic.publish", routing_key="of nobody", mandatory=1)
    octets = frame(2, 1, content_header(size)) + (frame(3, 1, body) if body else b"")
    last(f"message-size/announced-{name}", raw(publish, octets, seconds=0.7))


MIB = 1024 * 1024
for _mib in (16, 128, 512):
    announced(f"{_mib}-mib", _mib * MIB)
    announced(f"{_mib}-mib-plus-1", _mib * MIB + 1)
announced("512-mib-plus-1-and-a-body", 512 * MIB + 1, body=b"x")


def whole(name: str, size: int) -> None:
    """What comes of a message of this size at the usual limit."""

    @case(f"message-size/whole-{name}")
    def _(scene: Scene) -> list[str]:
        scene.a.publish(1, routing_key=scene.named("@none"), mandatory=0, body=bytes(size))
        return scene.a.drain(1.0)


whole("16-mib", 16 * MIB)
whole("16-mib-plus-1", 16 * MIB + 1)
