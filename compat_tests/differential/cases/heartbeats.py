"""Heartbeats: who sends them, who notices that the other is silent, and how late. Real seconds pass."""

from __future__ import annotations

import time
from collections.abc import Callable

from compat_tests.differential.codec import encode_method, frame
from compat_tests.differential.raw_client import RawClient
from compat_tests.differential.script import *

HEARTBEAT = frame(8, 0, b"")


def client_with(scene: Scene, heartbeat: int) -> RawClient:
    return scene.client(tune={"channel_max": 2047, "frame_max": 131072, "heartbeat": heartbeat})


def _ends_within(
    client: RawClient, seconds: float, every: float, send: Callable[[], None] | None
) -> tuple[float, list[str]]:
    """Send something again and again; when the socket ended, and what came but for heartbeats."""
    began = time.monotonic()
    came: list[str] = []
    while (passed := time.monotonic() - began) < seconds and not client.end:
        if send is not None:
            send()
        came += _heard(client, every)[1]
    return passed, came


def _heard(client: RawClient, seconds: float) -> tuple[int, list[str]]:
    """How many heartbeats come within some seconds, and what else does."""
    until = time.monotonic() + seconds
    count, came = 0, []
    while (left := until - time.monotonic()) > 0 and not client.end:
        event = client.next(left / client.address.patience)
        if event is not None and event.name == "heartbeat":
            count += 1
        elif event is not None and event.name != "closed":
            came.append(event.text)
    return count, came


def silent(name: str, heartbeat: int, earliest: float, latest: float) -> None:
    """Whether and how the connection of a client that says nothing ends between two instants."""

    @case(f"heartbeat/{name}")
    def _(scene: Scene) -> list[str]:
        client = client_with(scene, heartbeat)
        passed, came = _ends_within(client, latest + 1.0, 0.1, None)
        if not client.end:
            return [*came, "still-open"]
        when = "early" if passed < earliest else "in time" if passed < latest else "late"
        return [*came, when]


silent("silent-1", 1, 1.9, 3.6)
silent("silent-2", 2, 3.9, 6.6)
silent("silent-0", 0, 0.0, 4.0)


def kept_alive(name: str, octets: bytes, every: float = 0.5, seconds: float = 4.0) -> None:
    """Whether a connection with a heartbeat of 1 s lives on by these bytes."""

    @case(f"heartbeat/{name}")
    def _(scene: Scene) -> list[str]:
        client = client_with(scene, 1)
        came = _ends_within(client, seconds, every, lambda: client.send_bytes(octets))[1]
        return [*dict.fromkeys(came), client.end or "still-open"]


kept_alive("client-sends-heartbeats", HEARTBEAT)
kept_alive("client-sends-methods", frame(1, 1, encode_method("basic.qos")))
kept_alive("client-sends-a-heartbeat-every-second", HEARTBEAT, every=1.0)


@case("heartbeat/octets-of-a-frame-count")
def _(scene: Scene) -> list[str]:
    """A frame that comes octet by octet is no silence."""
    client = client_with(scene, 1)
    octets = iter(frame(3, 1, b"x" * 100))
    came = _ends_within(client, 4.0, 0.5, lambda: client.send_bytes(bytes([next(octets)])))[1]
    return [*came, client.end or "still-open"]


def sent_by_the_broker(name: str, heartbeat: int, seconds: float, least: int, most: int) -> None:
    """Whether the broker sends so many heartbeats to a client that sends its own."""

    @case(f"heartbeat/{name}")
    def _(scene: Scene) -> list[str]:
        client = client_with(scene, heartbeat)
        began, count = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            client.send_bytes(HEARTBEAT)
            count += _heard(client, 0.4)[0]
        return [f"between {least} and {most}: {least <= count <= most}"]


sent_by_the_broker("broker-sends-1", 1, 3.2, 4, 8)
sent_by_the_broker("broker-sends-2", 2, 4.2, 2, 6)
sent_by_the_broker("broker-sends-none", 0, 3.0, 0, 0)


@case("heartbeat/silent-with-a-closed-channel")
def _(scene: Scene) -> list[str]:
    """The broker waits for close-ok of a channel, and ends the connection for its silence."""
    client = scene.client(tune={"channel_max": 2047, "frame_max": 131072, "heartbeat": 1}, answers=False)
    client.tell(1, "queue.declare", queue="nope", passive=1)
    came = client.until("channel.close")
    return came + _ends_within(client, 4.6, 0.1, None)[1]


@case("heartbeat/silent-while-the-broker-closes")
def _(scene: Scene) -> list[str]:
    """The broker waits for close-ok of a connection; with heartbeats it does not wait for long."""
    client = scene.client(tune={"channel_max": 2047, "frame_max": 131072, "heartbeat": 1}, answers=False)
    client.tell(1, "basic.qos", prefetch_size=1)
    came = client.until("connection.close")
    return came + _ends_within(client, 4.6, 0.1, None)[1] + [client.end or "still-open"]


@case("heartbeat/silent-before-open")
def _(scene: Scene) -> list[str]:
    """Heartbeats begin with tune-ok, before a virtual host is open."""
    client = scene.client(handshake=False)
    client.start_ok()
    client.until("connection.tune")
    client.tell(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=1)
    came = _ends_within(client, 4.6, 0.1, None)[1]
    return [*came, client.end or "still-open"]
