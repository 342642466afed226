"""Class stream: messages that are not acknowledged, windows, and the rate at which they are sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.protocol.files_and_streams.conftest import Server
from compat_tests.scripted import amqp_0_9
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.scripted.contents import Peer
from compat_tests.scripted.contents_0_9 import Channel
from compat_tests.scripted.octets import cut
from compat_tests.tools.matrix import rows

rule = pytest.mark.rule

Connect = Callable[..., Peer]


@pytest.fixture
def content_class() -> str:
    return "stream"


@rule("0-9/stream/03", "0-9/stream/unreliable", "0-9/stream.consume/no-no-ack")
@rule("0-10/stream/acknowledgement-support")
def test_delivered_stream_messages_are_not_requeued(peer: Peer, connect: Connect) -> None:
    peer.declare()
    for body in (b"1", b"2"):
        peer.publish(body)
    peer.consume()
    assert peer.bodies() == [b"1", b"2"]
    assert peer.count() == 0
    peer.drop()
    peer = connect()
    peer.consume()
    assert peer.bodies() == []


@rule("0-9/stream/01", "0-10/stream/overflow-discard")
@pytest.mark.letter
@pytest.mark.parametrize(
    ("protocol", "server"), [("0-9", "rabbitmq-4.3"), ("0-9", "spec"), ("0-10", "spec")], indirect=True
)
def test_full_queue_drops_the_stream_messages_of_lowest_priority(peer: Peer) -> None:
    peer.declare(arguments={"x-max-length": 2})
    for priority in (7, 0, 9, 4, 1):
        peer.publish(b"%d" % priority, priority=priority)
    peer.expect_nothing()
    assert peer.consume().bodies() == [b"9", b"7"]


@pytest.mark.protocols("0-10")
@rule("0-10/stream/return-codes#311")
def test_stream_message_that_a_full_queue_refuses_is_returned_with_311(peer: Peer) -> None:
    peer.declare(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    for body in (b"1", b"2"):
        peer.publish(body)
    returned = peer.expect_content("Return")
    assert (returned.method.reply_code, returned.body) == (311, b"2")


@rule("0-10/stream/return-codes#311")
@pytest.mark.parametrize("server", ["rabbitmq-4.3"], indirect=True)
@rows("largest, size, fits", (4, 3, True), (4, 4, True), (4, 5, False), (0, 1, True), (0, 100_000, True))
def test_stream_message_above_the_largest_size_is_refused_or_returned_with_311(
    server: Server, connect: Connect, largest: int, size: int, fits: bool
) -> None:
    limited = type(server)(replace(server.state.personality, largest_message=largest))
    peer = connect(server=limited)
    peer.declare()
    if fits:
        peer.publish(bytes(size))
        assert peer.count() == 1
    elif isinstance(peer, Channel):
        with peer.fails(311):
            peer.publish(bytes(size))
    else:
        peer.publish(bytes(size))
        assert peer.expect("Return").reply_code == 311


@rule("0-9/stream.publish/not-transactional")
def test_stream_publish_is_transactional_in_0_10_only(protocol: str, peer: Peer) -> None:
    peer.declare().select().publish(b"undone")
    peer.rollback().publish(b"done")
    at_once = {"0-9": [b"undone", b"done"], "0-10": []}[protocol]
    assert peer.consume().bodies() == at_once
    assert peer.commit().bodies() == ([] if at_once else [b"done"])


@pytest.mark.protocols("0-9")
@pytest.mark.parametrize("server", ["rabbitmq-4.3"], indirect=True)
def test_stream_consume_from_a_stream_queue_is_refused_with_540(peer: Any) -> None:
    peer.declare(durable=True, arguments={"x-queue-type": "stream"})
    peer.do("Consume", queue="q")
    assert "requires acknowledgements" in peer.client.expect_channel_close(540).reply_text


@pytest.mark.protocols("0-9")
def test_returned_stream_message_is_recorded_with_its_channel(server: Server) -> None:
    kept = amqp_0_9.Server(server.state.personality, tickets=True, history=10)
    peer = Channel(kept.client(channels=2), "stream", 2)
    peer.publish(b"1", "nowhere", mandatory=True).expect_content("Return")
    histories = kept.state.outcome_histories
    assert histories is not None
    [returned] = histories.returned
    assert returned.channel == 2


# --- windows -----------------------------------------------------------------------------------------
def sent(peer: Any) -> list[bytes]:
    """The bodies in what the transport takes now; what that lets through is for another time."""
    return [each.payload for each in cut(peer.client.take_bytes()) if each.type == 3]


@pytest.mark.protocols("0-9")
@rule("0-9/stream.qos/prefetch#count", "0-9/stream.qos/prefetch#size", "0-9/stream.qos/prefetch#zero")
@pytest.mark.parametrize("for_connection", [False, True])
@pytest.mark.parametrize("limit", [{"prefetch_count": 2}, {"prefetch_size": 20}, {}])
def test_stream_prefetch_of_0_9_counts_deliveries_not_yet_taken_by_the_transport(
    peer: Peer, server: Server, connect: Connect, limit: dict[str, int], for_connection: bool
) -> None:
    peer.declare().qos(**limit, global_=for_connection).consume()
    other = connect()
    published = [b"%010d" % number for number in range(5)]
    for body in published:
        other.publish(body)
    waiting = server.vhost.queues["q"].ready
    if not limit:
        assert sent(peer) == published
        return
    assert len(waiting) == 3
    assert sent(peer) == published[:2]
    assert len(waiting) == 1
    assert sent(peer) == published[2:4]
    assert sent(peer) == published[4:]
    assert sent(peer) == []


@pytest.mark.protocols("0-10")
@rule("0-10/stream.qos/consume-rate-ignore-prefetch")
@pytest.mark.parametrize("limit", [{"prefetch_count": 2}, {"prefetch_size": 20}])
def test_stream_prefetch_of_0_10_counts_messages_not_yet_completed(peer: Any, limit: dict[str, int]) -> None:
    peer.declare()
    peer.qos(**limit)
    published = [b"%09d" % number for number in range(5)]
    for body in published:
        peer.publish(body)
    peer.consume()
    first, second = peer.take_all()
    assert [first.body, second.body] == published[:2]
    peer.session.completed(second.id)
    assert peer.bodies() == published[2:3]
    peer.session.completed(first.id, second.id)
    assert peer.bodies() == published[3:4], "what was completed counts once"


@pytest.mark.protocols("0-10")
@rule("0-10/stream.qos/global")
@pytest.mark.parametrize("freed", ["completed", "ended"])
def test_global_stream_prefetch_is_shared_by_all_sessions_of_the_connection(peer: Any, freed: str) -> None:
    other = peer.sibling()
    for queue in ("q", "r"):
        peer.declare(queue)
    peer.qos(prefetch_count=1, global_=True)
    peer.consume("q")
    other.consume("r")
    peer.publish(b"1")
    (delivered,) = peer.take_all()
    peer.publish(b"2", "r")
    other.expect_nothing()
    if freed == "completed":
        peer.session.completed(delivered.id)
    else:
        peer.close()
    assert other.bodies() == [b"2"]


# --- rates -------------------------------------------------------------------------------------------
@rule("0-9/stream.qos/consume-rate", "0-9/stream.qos-ok/confirm", "0-10/stream.qos/consume-rate#limit")
@rule("0-10/stream.qos/consume-rate-ignore-prefetch", "0-10/stream.qos/consume-rate#zero")
def test_stream_consume_rate_spreads_deliveries_over_time_until_it_is_zero(peer: Peer) -> None:
    peer.declare().qos(consume_rate=1000).consume()
    for number in range(5):
        peer.publish(b"%d" % number * 1000)
    assert len(peer.bodies()) == 1
    for _ in range(4):
        peer.after(0.999).expect_nothing()
        assert len(peer.after(0.001).bodies()) == 1
    peer.after(10).expect_nothing()
    for body in (b"at once" * 1000, b"later"):
        peer.publish(body)
    assert peer.bodies() == [b"at once" * 1000]
    assert peer.qos(consume_rate=0).bodies() == [b"later"]


@rule("0-9/stream.qos/consume-rate-01", "0-10/stream.qos/consume-rate-drop-by-priority")
def test_stream_consume_rate_delays_messages_without_loss(server: Server, peer: Peer) -> None:
    peer.declare().qos(consume_rate=1).consume()
    bodies = [b"%d" % priority for priority in (0, 9, 0, 9)]
    for body in bodies:
        peer.publish(body, priority=int(body))
    server.advance(10)
    by_priority = server.is_spec
    assert peer.bodies() == ([b"0", b"9", b"9", b"0"] if by_priority else bodies)


@rule("0-9/stream.qos/global", "0-10/stream.qos/global")
def test_global_stream_consume_rate_is_for_the_whole_connection(peer: Peer) -> None:
    other = peer.sibling()
    for queue in ("q", "r"):
        peer.declare(queue)
    peer.consume("q", "1")
    other.consume("r", "2")
    assert peer.qos(consume_rate=10, global_=True).publish(b"0123456789").bodies() == [b"0123456789"]
    peer.publish(b"1", "r")
    other.expect_nothing()
    assert other.after(1).bodies() == [b"1"]


@pytest.mark.parametrize("ended", ["close", "drop"])
def test_rates_and_windows_end_with_their_channel_or_connection(
    server: Server, peer: Peer, connect: Connect, ended: str
) -> None:
    peer.declare().qos(consume_rate=1)
    if ended == "drop":
        peer.qos(prefetch_count=1, consume_rate=1, global_=True)
    peer.consume()
    other = connect()
    for _ in range(2):
        other.publish(bytes(1000))
    timers = server.state.timers
    assert timers.next_due() is not None
    if ended == "close":
        peer.take()
    getattr(peer, ended)()
    assert other.count() == 1
    assert timers.next_due() is None


# --- deliveries --------------------------------------------------------------------------------------
@pytest.mark.protocols("0-10")
@rule("0-10/stream.deliver/delivery-tag-session-local")
def test_stream_delivery_tags_are_counted_per_session(peer: Any) -> None:
    other = peer.sibling()
    peer.declare()
    peer.consume()
    other.consume()
    for number in range(4):
        peer.publish(b"%d" % number)
    peer.session.skip()
    found = [(each.channel, each.what.delivery_tag) for each in peer.session.client.inbox]
    one, two = peer.number, other.number
    assert found == [(one, 1), (two, 1), (one, 2), (two, 2)]


@pytest.mark.protocols("0-10")
def test_stream_consumer_waits_while_its_connection_is_full(peer: Peer, connect: Connect) -> None:
    peer.declare().consume()
    other = connect()
    for _ in range(3):
        other.publish(bytes(1024 * 1024))
    assert other.count() == 2
    assert len(peer.bodies()) == 3


class _Told(QuietTap):
    """Remembers what it is told of deliveries and consumers."""

    def __init__(self) -> None:
        self.delivered: list[tuple[object, ...]] = []
        self.consumers: list[tuple[object, ...]] = []

    def happened(self, event: str, **facts: Any) -> None:
        if event == "delivered":
            names = ("queue", "consumer", "channel", "delivery_tag", "redelivered")
            self.delivered.append(tuple(facts[name] for name in names))
        elif event == "consumer added":
            self.consumers.append(tuple(facts[name] for name in ("prefetch", "shares_prefetch", "no_ack")))


@pytest.mark.parametrize("shared", [False, True])
def test_tap_is_told_of_stream_deliveries_and_prefetch(server: Server, peer: Any, shared: bool) -> None:
    peer.declare()
    tap = server.state.tap = _Told()
    if shared:
        peer.qos(prefetch_count=2)
    peer.consume()
    for body in (b"1", b"2"):
        peer.publish(body)
    tags = [each.tag for each in peer.take_all()]
    assert tap.delivered == [("q", "t", peer.number, tag, False) for tag in tags]
    assert len(tags) == 2
    assert tap.consumers == [(0, shared, True)]
