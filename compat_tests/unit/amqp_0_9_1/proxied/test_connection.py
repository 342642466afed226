"""What a proxied connection tells each side when it closes a channel, or adds frames to one."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.fuzz.proxied_server import ProxyServer
from compat_tests.scripted.amqp_0_9_1 import ManualClock, QuietTap
from compat_tests.unit.faults.server import bytes_of
from fakeamqp.connection import PeerAddress
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, FRAME_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection
from fakeamqp.protocols.base.proxied.legs import BrokerLeg, Leg

HEADER = (2, CONTENT_HEADER.pack(60, 0, 4) + b"\0\0")
BODY = (3, b"body")
CLOSE = m.ChannelClose(reply_code=200, reply_text="closed by a proxy")


class Between:
    """A proxied connection with channel 1 open; the test speaks for client and broker."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.state = BrokerState(self.clock)
        self.proxied = ProxiedConnection(self.state, PeerAddress(), lambda _: None, self._dial)
        self.client(m.ChannelOpen(), header=PROTOCOL_HEADER)
        self.broker(m.ChannelOpenOk())
        self.leg.pending()
        self.proxied.pending()

    def _dial(self, leg: BrokerLeg) -> None:
        self.leg = leg
        leg.connected(lambda: None)

    def client(self, *frames: Any, header: bytes = b"") -> list[Any]:
        """Frames of the client; returns what the broker gets."""
        self.proxied.receive(header + bytes_of(*frames))
        return _taken(self.leg)

    def broker(self, *frames: Any) -> list[Any]:
        """Frames of the broker; returns what the client gets."""
        self.leg.receive(bytes_of(*frames))
        return _taken(self.proxied)

    def close_channel(self) -> list[Any]:
        """The proxy closes channel 1; returns what the broker gets."""
        self.proxied.close_channel(1, 406, "PRECONDITION_FAILED")
        return _taken(self.leg)


def _taken(leg: Leg) -> list[Any]:
    """The frames to send: methods, and (type, payload) for others."""
    octets = b"".join(leg.pending()).removeprefix(PROTOCOL_HEADER)
    frames: list[Any] = []
    while octets:
        kind, _, size = FRAME_HEADER.unpack_from(octets)
        payload, octets = octets[7 : 7 + size], octets[8 + size :]
        index = int.from_bytes(payload[:4], "big")
        frames.append(m.METHODS[index].decode(payload, RABBITMQ) if kind == 1 else (kind, payload))
    return frames


@pytest.fixture
def between() -> Between:
    return Between()


def test_broker_gets_the_rest_of_a_publish_before_the_close_of_its_channel(between: Between) -> None:
    publish = m.BasicPublish(routing_key="q")
    assert between.client(publish, HEADER) == [publish, HEADER]
    assert between.close_channel() == []
    assert between.client(BODY) == [BODY, CLOSE]
    assert between.client(m.ChannelCloseOk()) == []
    assert between.broker(m.ChannelCloseOk())[0].reply_code == 406
    assert between.proxied.channels == {}


def test_connection_is_closed_where_a_client_leaves_a_publish_on_a_closed_channel_unfinished(
    between: Between,
) -> None:
    between.client(m.BasicPublish(routing_key="q"), HEADER)
    between.close_channel()
    [close] = between.client(m.ChannelCloseOk())
    assert close.NAME == "connection.close"
    [channel_close, connection_close] = _taken(between.proxied)
    assert channel_close.reply_code == 406
    assert connection_close.reply_code == 320
    assert "channel 1 with a message half sent" in connection_close.reply_text


def test_crossing_closes_of_client_and_proxy_are_both_confirmed_before_the_number_is_free(
    between: Between,
) -> None:
    assert between.close_channel() == [CLOSE]
    between.proxied.pending()
    assert between.client(m.ChannelClose(reply_code=200)) == []
    assert _taken(between.proxied) == [m.ChannelCloseOk()]
    between.broker(m.ChannelCloseOk())
    assert between.client(m.ChannelCloseOk()) == []
    assert between.client(m.ChannelOpen()) == [m.ChannelOpen()]


def test_crossing_closes_of_broker_and_proxy_are_both_confirmed_before_the_number_is_free(
    between: Between,
) -> None:
    between.close_channel()
    between.proxied.pending()
    assert between.broker(m.ChannelClose(reply_code=404, reply_text="NOT_FOUND")) == []
    assert _taken(between.leg) == [m.ChannelCloseOk()]
    assert between.client(m.ChannelCloseOk(), m.ChannelOpen()) == []
    assert between.broker(m.ChannelCloseOk()) == []
    assert _taken(between.leg) == [m.ChannelOpen()]


def test_channel_that_its_client_closes_is_not_closed_again(between: Between) -> None:
    close = m.ChannelClose(reply_code=200)
    assert between.client(close) == [close]
    assert between.close_channel() == []
    assert between.broker(m.ChannelCloseOk()) == [m.ChannelCloseOk()]


def test_channel_that_the_broker_closes_is_not_closed_again(between: Between) -> None:
    close = m.ChannelClose(reply_code=404, reply_text="NOT_FOUND")
    assert between.broker(close) == [close]
    assert between.close_channel() == []
    assert _taken(between.proxied) == []
    assert between.client(m.ChannelCloseOk()) == [m.ChannelCloseOk()]


@pytest.mark.parametrize("what", ["confirm", "flow", "close"])
def test_proxy_speaks_on_a_channel_after_the_content_that_the_broker_is_sending(
    between: Between, what: str
) -> None:
    between.client(m.BasicConsume(queue="q", consumer_tag="t"))
    between.broker(m.BasicConsumeOk(consumer_tag="t"))
    deliver = m.BasicDeliver("t", 1, False, "", "q")
    assert between.broker(deliver, HEADER) == [deliver, HEADER]
    if what == "confirm":
        between.proxied.confirm(1, 1, accepted=False)
    elif what == "flow":
        between.proxied.fault_port.set_flow(1, False)
    else:
        between.close_channel()
    assert _taken(between.proxied) == []
    [body, method] = between.broker(BODY)
    assert body == BODY
    names = {"confirm": "basic.nack", "flow": "channel.flow", "close": "channel.close"}
    assert names[what] == method.NAME


def test_client_is_told_that_the_broker_has_not_answered_in_30_seconds() -> None:
    server = ProxyServer()
    link = server.link()
    assert link is not None
    [upstream] = server.upstreams
    upstream.stalled = True
    link.receive(PROTOCOL_HEADER)
    server.advance(29.9)
    assert link.arrived == b""
    server.advance(0.2)
    assert b"the proxy has no broker: it has not answered in 30 s" in link.arrived
    link.receive(bytes_of(m.ConnectionCloseOk(), channel=0))
    server.pump()
    assert not server.state.connections
    assert server.state.timers.next_due() is None


def test_confirm_of_several_publishes_is_split_while_a_tap_asks_for_single_confirms(between: Between) -> None:
    between.client(m.ConfirmSelect())
    between.client(*[m.BasicPublish(routing_key="q"), HEADER, BODY] * 3)
    tap = between.state.tap = QuietTap()
    tap.confirms_singly = True  # type: ignore[misc]
    assert between.broker(m.BasicAck(delivery_tag=2, multiple=True)) == [
        m.BasicAck(delivery_tag=number) for number in (1, 2)
    ]
    tap.confirms_singly = False  # type: ignore[misc]
    last = m.BasicAck(delivery_tag=3, multiple=True)
    assert between.broker(last) == [last]


def test_content_that_the_broker_breaks_off_passes_with_what_follows_it(between: Between) -> None:
    tap = between.state.tap = QuietTap()
    tap.intercepts = True  # type: ignore[misc]
    deliver = m.BasicDeliver("t", 1, False, "", "q")
    assert between.broker(deliver, HEADER) == []
    assert between.broker(m.ChannelFlow(active=False)) == [deliver, HEADER, m.ChannelFlow(active=False)]


def test_close_by_the_proxy_reaches_the_client_where_the_broker_breaks_a_content_off(
    between: Between,
) -> None:
    deliver = m.BasicDeliver("t", 1, False, "", "q")
    between.broker(deliver, HEADER)
    between.close_channel()
    [close] = between.broker(m.ChannelCloseOk())
    assert close.NAME == "channel.close"


def test_delivery_between_cancel_and_cancel_ok_is_from_the_queue_of_its_consumer(
    between: Between,
) -> None:
    between.client(m.BasicConsume(queue="q", consumer_tag="t"))
    between.broker(m.BasicConsumeOk(consumer_tag="t"))
    between.client(m.BasicCancel(consumer_tag="t"))
    between.broker(m.BasicDeliver("t", 1, False, "", "k"), HEADER, BODY)
    assert between.proxied.channels[1].held[1].queue == "q"
    between.broker(m.BasicCancelOk(consumer_tag="t"))
    assert between.proxied.channels[1].consumers == {}


def test_cancel_with_no_wait_ends_the_consumer_at_once(between: Between) -> None:
    between.client(m.BasicConsume(queue="q", consumer_tag="t", no_wait=True))
    between.client(m.BasicCancel(consumer_tag="t", no_wait=True))
    assert between.proxied.channels[1].consumers == {}


def test_tls_hello_at_a_plain_proxy_is_logged_and_the_answer_passes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    legs: list[BrokerLeg] = []
    proxied = ProxiedConnection(BrokerState(ManualClock()), PeerAddress(), lambda _: None, legs.append)
    proxied.receive(b"\x16\x03\x01\x02\0\1\0\1 and more")
    assert "looks like a TLS hello" in caplog.text
    legs[0].receive(PROTOCOL_HEADER)
    assert b"".join(proxied.pending()) == PROTOCOL_HEADER
    assert "malformed" not in caplog.text and "frame" not in caplog.text
