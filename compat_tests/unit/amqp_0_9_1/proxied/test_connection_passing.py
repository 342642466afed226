"""When a proxied connection passes the frames of a content (`proxied.connection`), without sockets."""

from __future__ import annotations

from typing import Any

import pytest

from fakeamqp.connection import PeerAddress
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame, header_frame, method_frame
from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection
from fakeamqp.protocols.base.proxied.legs import MOST_WAITING
from fakeamqp.runtime import RealClock
from fakeamqp.trace.recorder import Recorder


class Legs:
    """A proxied connection, and how often each of its legs has told the runtime of output."""

    def __init__(self) -> None:
        clock = RealClock()
        state = BrokerState(clock)
        self.recorder = state.tap = Recorder(clock.now)
        self.told = {"client": 0, "broker": 0}
        dialed: list[Any] = []
        peer = PeerAddress("127.0.0.1", 1, "127.0.0.1", 2, False, None)
        self.client = ProxiedConnection(state, peer, lambda _: self._tell("client"), dialed.append)
        self.broker = dialed[0]
        self.broker.connected(lambda: self._tell("broker"))
        self.client.receive(b"AMQP\0\0\x09\x01")
        self.take()

    def _tell(self, leg: str) -> None:
        self.told[leg] += 1

    def take(self) -> dict[str, bytes]:
        """What each side gets."""
        taken = {name: b"".join(getattr(self, name).pending()) for name in self.told}
        self.told = dict.fromkeys(self.told, 0)
        return {name: octets for name, octets in taken.items() if octets}


@pytest.fixture
def legs() -> Legs:
    return Legs()


def content(method: m.Method, channel: int, body: bytes, size: int | None = None) -> list[bytes]:
    """The frames of a method with its content: one body frame, of perhaps more to come."""
    return [
        method_frame(channel, method.encode()),
        header_frame(channel, 60, len(body) if size is None else size, b"\0\0"),
        frame(3, channel, body),
    ]


def publish(channel: int = 1, body: bytes = b"body", size: int | None = None) -> list[bytes]:
    return content(m.BasicPublish(routing_key="q"), channel, body, size)


def delivery(channel: int = 1, body: bytes = b"body") -> list[bytes]:
    return content(m.BasicDeliver(consumer_tag="c", delivery_tag=1, routing_key="q"), channel, body)


def test_frames_of_a_publish_leave_together_when_it_is_whole(legs: Legs) -> None:
    *first, last = publish()
    for each in first:
        legs.client.receive(each)
    assert legs.told["broker"] == 0
    legs.client.receive(last)
    assert legs.told["broker"] == 1
    assert legs.take() == {"broker": b"".join([*first, last])}


@pytest.mark.parametrize(
    "other", [frame(8, 0, b""), method_frame(2, m.ChannelOpen().encode())], ids=["heartbeat", "method"]
)
def test_frame_of_another_channel_takes_a_half_publish_with_it(legs: Legs, other: bytes) -> None:
    start = publish()[0]
    legs.client.receive(start)
    legs.client.receive(other)
    assert legs.told["broker"] == 1
    assert legs.take() == {"broker": start + other}


def test_half_publish_of_many_bytes_leaves(legs: Legs) -> None:
    frames = publish(body=bytes(MOST_WAITING), size=2 * MOST_WAITING)
    legs.client.receive(b"".join(frames))
    assert legs.told["broker"] == 1
    assert legs.take() == {"broker": b"".join(frames)}


def test_half_publish_leaves_when_the_client_ends(legs: Legs) -> None:
    start = b"".join(publish()[:2]) + b"\x03\0\x01"
    legs.client.receive(start)
    legs.client.receive_eof()
    assert legs.take() == {"broker": start}


def test_delivery_reaches_the_client_and_the_trace_in_one_piece(legs: Legs) -> None:
    frames = b"".join(delivery())
    before = legs.recorder.count
    legs.broker.receive(frames)
    assert legs.told["client"] == 1
    assert legs.take() == {"client": frames}
    # The event of the delivery, and its frames.
    assert legs.recorder.count - before == 2


def test_part_of_a_delivery_waits_for_no_input(legs: Legs) -> None:
    frames = delivery()
    for each in frames:
        legs.broker.receive(each)
        assert legs.take() == {"client": each}


def test_interleaved_deliveries_of_two_channels_keep_the_order_of_their_frames(legs: Legs) -> None:
    one, two = delivery(1, b"one"), delivery(2, b"two")
    frames = b"".join(each for pair in zip(one, two, strict=True) for each in pair)
    legs.broker.receive(frames)
    assert legs.take() == {"client": frames}


def test_half_delivery_reaches_the_client_when_another_method_follows(legs: Legs) -> None:
    frames = delivery()[0] + method_frame(1, m.ChannelClose(504, "", 0, 0).encode())
    legs.broker.receive(frames)
    assert legs.take() == {"client": frames}


def test_half_delivery_that_waits_for_a_fault_reaches_the_client_when_the_broker_ends(legs: Legs) -> None:
    class Intercepting(Recorder):
        intercepts = True

    legs.client.state.tap = Intercepting(RealClock().now)
    start = b"".join(delivery()[:2])
    legs.broker.receive(start)
    assert legs.take() == {}
    legs.broker.receive_eof()
    assert legs.take() == {"client": start}
