"""What tune-ok asks for, and how far the limits then reach: sizes of frames, numbers of channels."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.codec import (
    content_header,
    encode_method,
    encode_properties,
    frame,
    method_frame,
)
from compat_tests.differential.raw_client import RawClient
from compat_tests.differential.script import *

TUNE = {"channel_max": 2047, "frame_max": 131072, "heartbeat": 0}
REFUSAL = 5.0
"""Seconds; RabbitMQ ends the transport three seconds after a frame that it cannot find the end of."""


def tuned(scene: Scene, **limits: int) -> RawClient:
    return scene.client(tune={**TUNE, **limits})


def tune(name: str, **limits: int) -> None:
    """What comes of a tune-ok, and then of opening a virtual host and a channel."""

    @case(f"tune/{name}")
    def _(scene: Scene) -> list[str]:
        client = scene.client(handshake=False)
        client.start_ok()
        client.until("connection.tune")
        client.tell(0, "connection.tune-ok", **{**TUNE, **limits})
        client.tell(0, "connection.open", virtual_host="/")
        came = client.until("connection.open-ok", seconds=REFUSAL)
        client.tell(1, "channel.open")
        return came + client.until("channel.open-ok", seconds=1.0)


for _frame_max in (0, 1, 16, 4095, 4096, 4097, 8191, 8192, 65536, 131071, 131072, 131073, 2**31, 2**32 - 1):
    tune(f"frame-max-{_frame_max}", frame_max=_frame_max)
for _channel_max in (0, 1, 2, 2046, 2047, 2048, 32768, 65535):
    tune(f"channel-max-{_channel_max}", channel_max=_channel_max)
tune("both-too-large", channel_max=4000, frame_max=200_000)
tune("frame-max-too-small-and-channel-max-too-large", channel_max=4000, frame_max=100)
tune("all-zero", channel_max=0, frame_max=0)
for _heartbeat in (1, 60, 65535):
    tune(f"heartbeat-{_heartbeat}", heartbeat=_heartbeat)

# --- frames of the size that was agreed --------------------------------------------------------------------

SIZES = {"minus-8": -8, "minus-7": -7, "exactly": 0, "plus-1": 1}
"""Sizes of a payload, beside frame-max."""


def published(case_id: str, frame_max: int, size: int) -> None:
    """What comes of a message whose body is one frame of this size."""
    octets = method_frame("basic.publish", routing_key="of nobody", mandatory=1)
    octets += frame(2, 1, content_header(size)) + frame(3, 1, bytes(size))
    last(f"frame-max/{case_id}", raw(octets, seconds=1.0, tune={**TUNE, "frame_max": frame_max}))


for _frame_max in (4096, 8192, 65536):
    for _name, _more in SIZES.items():
        published(f"body-{_frame_max}-{_name}", _frame_max, _frame_max + _more)
# Above what is offered usually, and below what RabbitMQ takes as one frame.
published("no-limit", 0, 300_000)


def method_of(name: str, frame_max: int, more: int) -> None:
    """What comes of a method whose frame is of this size."""

    @case(f"frame-max/method-{frame_max}-{name}")
    def _(scene: Scene) -> list[str]:
        client = tuned(scene, frame_max=frame_max)
        named = scene.named("@q")
        short = encode_method("queue.declare", queue=named, exclusive=1, arguments={"x": ""})
        padding = "x" * (frame_max + more - len(short))
        client.tell(1, "queue.declare", queue=named, exclusive=1, arguments={"x": padding})
        return client.drain(1.0)


for _name, _more in SIZES.items():
    method_of(_name, 8192, _more)


def header_of(name: str, frame_max: int, more: int) -> None:
    """What comes of a message whose content header is a frame of this size."""

    @case(f"frame-max/header-{frame_max}-{name}")
    def _(scene: Scene) -> list[str]:
        client = tuned(scene, frame_max=frame_max)
        call("queue.declare", queue="@q")(scene)
        short = content_header(0, encode_properties(headers={"x": ""}))
        padding = "x" * (frame_max + more - len(short))
        client.tell(1, "basic.publish", routing_key=scene.named("@q"))
        client.send_bytes(frame(2, 1, content_header(0, encode_properties(headers={"x": padding}))))
        came = client.quiet(0.5)
        return came if client.end else came + client.barrier(1)


for _name, _more in SIZES.items():
    header_of(_name, 8192, _more)


for _size in (8183, 8184, 8185, 8192, 16368, 0):
    last(
        f"frame-max/delivered-8192-{_size}",
        connect("a", tune={**TUNE, "frame_max": 8192}),
        queue(),
        publish(body="z" * _size),
        got_in_frames(),
    )
# A header that was taken with one frame-max, for a client that agreed on a smaller one.
last(
    "frame-max/header-delivered-to-a-smaller-frame-max",
    queue(),
    publish(props={"headers": {"x": "y" * 20_000}}),
    connect("b", tune={**TUNE, "frame_max": 8192}),
    got_in_frames("b"),
)

# --- channels ----------------------------------------------------------------------------------------------


def channels(name: str, channel_max: int, *numbers: int, **other: Any) -> None:
    """What comes of opening channels of these numbers beside channel 1."""

    @case(f"channel-max/{name}")
    def _(scene: Scene) -> list[str]:
        client = tuned(scene, channel_max=channel_max)
        came = []
        for number in numbers:
            client.tell(number, "channel.open", **other)
            came += client.until("channel.open-ok", seconds=1.0)
        return came


channels("number-above-the-count", 5, 6)
channels("number-65535", 5, 65535)
channels("number-3000-of-no-limit", 0, 3000)
channels("as-many-as-allowed", 3, 2, 3)
channels("one-too-many", 3, 2, 3, 4)
channels("one-too-many-with-high-numbers", 3, 100, 200, 300)
channels("channel-1-only", 1, 1)
channels("second-of-one", 1, 2)


@case("channel-max/publish-on-a-channel-above")
def _(scene: Scene) -> list[str]:
    client = tuned(scene, channel_max=1)
    client.publish(2, routing_key="nowhere")
    return client.drain(1.0)


@case("channel-max/closed-channels-make-room")
def _(scene: Scene) -> list[str]:
    client = tuned(scene, channel_max=2)
    came = []
    for number in (2, 3, 4, 5):
        client.tell(number, "channel.open")
        came += client.until("channel.open-ok")
        client.tell(number, "channel.close", reply_code=200)
        came += client.until("channel.close-ok")
    return came


@case("channel-max/channel-that-the-broker-closed-makes-no-room-yet")
def _(scene: Scene) -> list[str]:
    client = scene.client(tune={**TUNE, "channel_max": 1}, answers=False)
    client.tell(1, "queue.declare", queue="nope", passive=1)
    came = client.until("channel.close")
    client.tell(2, "channel.open")
    return came + client.drain(1.0)


@case("channel-max/channel-that-the-broker-closed-makes-room-when-confirmed")
def _(scene: Scene) -> list[str]:
    client = tuned(scene, channel_max=1)
    came = call("queue.declare", queue="nope", passive=1)(scene)
    client.tell(2, "channel.open")
    return came + client.drain(1.0)
