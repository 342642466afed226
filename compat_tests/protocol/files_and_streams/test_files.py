"""Class file: storage, windows, acknowledgements, transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.protocol.files_and_streams.conftest import Server
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.scripted.contents import Peer
from compat_tests.tools.matrix import rows
from compat_tests.unit.inspect.views import connection_views
from fakeamqp.inspect.messages import queued_view, unacked_view
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x

rule = pytest.mark.rule

Connect = Callable[..., Peer]


@pytest.fixture
def content_class() -> str:
    return "file"


@pytest.fixture
def four(peer: Peer) -> list[int]:
    """The delivery tags of four files that the peer was sent."""
    peer.declare()
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish(body)
    peer.consume()
    return [each.tag for each in peer.take_all()]


# --- storage -----------------------------------------------------------------------------------------
@rule("0-9/file.open/identifier-unique", "0-10/file.open/identifier")
def test_each_file_keeps_an_identifier_of_its_own(peer: Peer, connect: Connect) -> None:
    for queue in ("q", "other"):
        peer.declare(queue)
    for queue in ("q", "q", "other"):
        peer.publish(b"the same body", queue)

    def identifiers() -> list[str]:
        consumer = connect()
        consumer.consume()
        taken = consumer.take_all()
        consumer.consume("other", "o")
        taken += consumer.take_all()
        consumer.drop()  # Its files return to their queues.
        return [each.method.identifier for each in taken]

    first = identifiers()
    assert len(set(first)) == 3
    assert identifiers() == first


@rule("0-9/file/01", "0-10/file/reliable-storage")
@pytest.mark.parametrize("crash", [False, True])
def test_file_in_a_durable_queue_survives_restart_and_crash(
    server: Server, peer: Peer, connect: Connect, crash: bool
) -> None:
    peer.declare(durable=True)
    peer.publish(b"kept", filename="kept.txt")
    server.restart(crash=crash)
    peer = connect()
    peer.consume()
    file = peer.take()
    assert (file.body, file.properties.filename) == (b"kept", "kept.txt")


@rule("0-9/file/02", "0-10/file/no-discard#kept", "0-10/file.return/content", "0-10/file/return-codes#311")
@pytest.mark.parametrize(
    "limit",
    [{"x-max-length": 2}, {"x-max-length-bytes": 4}, {"x-max-length": 2, "x-overflow": "reject-publish"}],
)
def test_file_for_full_queue_is_returned_and_earlier_files_remain(peer: Peer, limit: dict[str, Any]) -> None:
    peer.declare(arguments=limit)
    for body in (b"f1", b"f2", b"f3"):
        peer.publish(body)
    returned = peer.expect_content("Return")
    assert (returned.method.reply_code, returned.body) == (311, b"f3")
    assert peer.consume().bodies() == [b"f1", b"f2"]
    assert peer.publish(b"f3").bodies() == [b"f3"]


@rule("0-10/file/no-discard#kept")
def test_file_is_delivered_to_a_waiting_consumer_when_max_length_is_zero(peer: Peer) -> None:
    assert peer.declare(arguments={"x-max-length": 0}).consume().publish(b"file").bodies() == [b"file"]


@rule("0-10/file/no-discard#kept")
@pytest.mark.parametrize("server", ["rabbitmq-4.3"], indirect=True)
def test_file_is_returned_and_queued_nowhere_when_a_quorum_queue_is_full(peer: Peer) -> None:
    limit = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}
    peer.declare(durable=True, arguments=limit)
    while peer.count() < 2:  # It refuses from one above its limit on.
        peer.publish(b"kept")
    peer.declare("roomy")
    for queue in ("q", "roomy"):
        peer.bind(queue, "amq.fanout", "")
    returned = peer.publish(b"returned", exchange="amq.fanout").expect_content("Return")
    assert (returned.method.reply_code, returned.body) == (311, b"returned")
    assert [peer.count(queue) for queue in ("q", "roomy")] == [2, 0]


@rule("0-10/file/no-discard#slowed")
@pytest.mark.protocols("0-10")
def test_file_publisher_is_not_read_from_while_broker_is_blocked(server: Server, peer: Any) -> None:
    peer.declare()
    connection = peer.session.client.connection
    for identifier in ("one", "two"):
        peer.stage_file(identifier.encode(), identifier)
    server.state.block("memory")
    assert connection.reading
    for identifier in ("one", "two"):
        peer.session.send(x.FilePublish(routing_key="q", identifier=identifier))
    assert not connection.reading
    assert waiting(server) == [b"one"]
    server.state.unblock()
    assert connection.reading
    assert waiting(server) == [b"one", b"two"]


def waiting(server: Server) -> list[bytes]:
    """What waits in the queue "q"."""
    return [each.message.body for each in server.vhost.queues["q"].ready]


@rule("0-9/file/no-browsing")
@pytest.mark.protocols("0-9")
def test_basic_get_gets_no_file(peer: Any) -> None:
    peer.declare()
    peer.publish(b"file")
    assert peer.client.get("q") is None
    peer.fill("q", b"basic")
    assert peer.client.get("q").body == b"basic"
    assert peer.count() == 1


# --- windows -----------------------------------------------------------------------------------------
@rule("0-9/file.qos/prefetch-count-01", "0-9/file.qos-ok/confirm#confirms", "0-10/file.qos-ok/confirm")
@rule("0-10/file.qos/prefetch-count-prefetch-discretion")
def test_file_prefetch_count_limits_unsettled_files(peer: Peer) -> None:
    peer.declare().qos(prefetch_count=2)
    for body in (b"1", b"2", b"3", b"4", b"5", b"6"):
        peer.publish(body)
    first, second = peer.consume().take_all()
    (third,) = peer.ack(second.tag).take_all()
    (fourth,) = peer.reject(third.tag).take_all()
    assert [each.body for each in (first, second, third, fourth)] == [b"1", b"2", b"3", b"4"]
    assert peer.ack(fourth.tag, multiple=True).bodies() == [b"5", b"6"]


@rule("0-9/file.qos-ok/confirm#confirms", "0-9/file.qos-ok/confirm#holds")
@rule("0-10/file.qos/prefetch-count-prefetch-discretion")
def test_new_file_prefetch_counts_files_delivered_or_in_staging_before_it(peer: Peer) -> None:
    peer.declare().consume()
    for body in (b"1", b"2"):
        peer.publish(body)
    first = peer.take()
    peer.expect("Open")
    peer.qos(prefetch_count=2).publish(b"3").do("OpenOk", staged_size=0).expect_content("Stage")
    second = peer.expect("Deliver")
    peer.expect_nothing()
    assert peer.ack(second.delivery_tag).take().body == b"3"
    peer.publish(b"4").expect_nothing()
    assert peer.qos(prefetch_count=0).take().body == b"4"
    peer.ack(first.tag)


@rule("0-9/file.qos/prefetch-size#fits", "0-10/file.qos/prefetch-size#limits")
def test_file_prefetch_size_limits_octets_but_for_a_first_large_file(peer: Peer) -> None:
    peer.declare().qos(prefetch_size=5).consume()
    for body in (b"a large one", b"1234", b"5"):
        peer.publish(body)
    large = peer.take()
    assert large.body == b"a large one"
    peer.expect_nothing()
    assert peer.ack(large.tag).bodies() == [b"1234", b"5"]
    peer.publish(b"6").expect_nothing()


@rule("0-9/file/04#automatic", "0-9/file.qos/prefetch-size#zero")
def test_file_prefetch_size_of_zero_is_no_limit(peer: Peer) -> None:
    peer.declare().qos(prefetch_size=1)
    peer.qos(prefetch_size=0).consume()
    for body in (b"11", b"22", b"33"):
        peer.publish(body)
    assert peer.bodies() == [b"11", b"22", b"33"]


@rule("0-9/file.qos/prefetch-size#no-ack", "0-9/file.consume/no-ack", "0-10/file.qos/prefetch-size#no-ack")
@rule("0-10/file.consume/no-ack", "0-10/file/acknowledgement-support#automatic")
def test_no_ack_consumer_has_no_prefetch_and_its_files_are_not_requeued(server: Server, peer: Peer) -> None:
    peer.declare().qos(prefetch_size=1, prefetch_count=1).consume(no_ack=True)
    for body in (b"11", b"22"):
        peer.publish(body)
    assert len(server.vhost.queues["q"].ready) == 0, "both are on their way"
    assert peer.bodies() == [b"11", b"22"]
    assert peer.end().count() == 0


@rule("0-9/file.consume/no-ack", "0-10/file.consume/no-ack")
def test_no_ack_file_is_requeued_when_its_staging_breaks_off(peer: Peer) -> None:
    peer.declare().publish(b"body").consume(no_ack=True).expect("Open")
    assert peer.end().count() == 1


@rule("0-9/file.qos/global", "0-10/file.qos/global")
@pytest.mark.parametrize("limited", ["first", "second"])
def test_global_file_prefetch_is_shared_by_all_channels_of_the_connection(peer: Peer, limited: str) -> None:
    other = peer.sibling()
    for queue in ("q", "r"):
        peer.declare(queue)
    (peer if limited == "first" else other).qos(prefetch_count=1, global_=True)
    peer.qos(prefetch_count=2)  # It stands beside the global one.
    peer.consume("q", "1")
    other.consume("r", "2")
    file = peer.publish(b"1").take()
    peer.publish(b"2", "r")
    other.expect_nothing()
    peer.ack(file.tag)
    assert other.take().body == b"2"


@rule("0-9/file.qos/global")
def test_closed_channel_frees_its_share_of_the_global_file_prefetch(peer: Peer) -> None:
    other = peer.sibling()
    for queue in ("q", "r"):
        peer.declare(queue)
    peer.qos(prefetch_count=2, global_=True).consume("q", "1")
    other.consume("r", "2")
    for body in (b"1", b"2"):
        peer.publish(body)
    peer.take()
    peer.expect("Open")  # One is held, and one is under way.
    for body in (b"3", b"4"):
        other.publish(body, "r")
    other.expect_nothing()
    peer.close()
    assert other.bodies() == [b"3", b"4"]


@rule("0-10/file.qos/global")
def test_file_prefetch_of_one_channel_does_not_limit_another(peer: Peer) -> None:
    other = peer.sibling()
    peer.declare().qos(prefetch_count=1)
    for body in (b"1", b"2", b"3"):
        other.publish(body)
    assert peer.consume("q", "1").take().body == b"1"
    peer.expect_nothing()
    assert other.consume("q", "2").bodies() == [b"2", b"3"]


@pytest.mark.protocols("0-9")
@pytest.mark.letter
def test_files_are_not_delivered_while_channel_flow_is_off(peer: Any) -> None:
    peer.declare()
    peer.consume()
    peer.client.call(m.ChannelFlow(active=False), m.ChannelFlowOk)
    peer.publish(b"body")
    peer.expect_nothing()
    peer.client.call(m.ChannelFlow(active=True), m.ChannelFlowOk)
    assert peer.take().body == b"body"


@pytest.mark.protocols("0-9")
def test_prefetch_of_basic_or_stream_class_does_not_limit_files(peer: Any) -> None:
    peer.declare()
    peer.client.qos(1)
    peer.client.call(m.StreamQos(prefetch_count=1), m.StreamQosOk)
    peer.consume()
    for body in (b"1", b"2"):
        peer.publish(body)
    assert peer.bodies() == [b"1", b"2"]


# --- settlement --------------------------------------------------------------------------------------
@rule("0-9/file.ack/semantics#single", "0-9/file/04#explicit", "0-9/file.ack/semantics#multiple")
@rule("0-9/file.ack/semantics#zero", "0-10/file/acknowledgement-support#explicit")
@rule("0-10/file.ack/semantics#single", "0-10/file.ack/semantics#multiple", "0-10/file.ack/semantics#zero")
@pytest.mark.parametrize(
    ("covered", "multiple", "left"),
    [(2, False, [b"1", b"3", b"4"]), (2, True, [b"3", b"4"]), (3, True, [b"4"]), (0, True, [])],
    ids=["single", "multiple", "most", "all"],
)
def test_file_ack_removes_the_files_that_its_tag_covers(
    peer: Peer, four: list[int], covered: int, multiple: bool, left: list[bytes]
) -> None:
    tag = four[covered - 1] if covered else 0
    for _ in range(2 if covered == 0 else 1):  # Tag 0 covers nothing, too.
        peer.ack(tag, multiple=multiple)
    peer.expect_nothing()
    peer.end().consume()
    assert [(each.body, each.method.redelivered) for each in peer.take_all()] == [
        (body, True) for body in left
    ]


@rule("0-9/file.ack/multiple-01", "0-10/file.ack/multiple-validation")
@rows(
    "name, fields",
    ("Ack", {"delivery_tag": 99}),
    ("Ack", {"delivery_tag": 99, "multiple": True}),
    ("Ack", {"delivery_tag": 0}),
    ("Reject", {"delivery_tag": 0}),
)
def test_settlement_of_an_unknown_file_fails_with_406(
    peer: Peer, four: list[int], name: str, fields: dict[str, Any]
) -> None:
    with peer.fails(406):
        peer.do(name, **fields)
    assert peer.count() == 4


@rule("0-10/file.ack/delivery-tag-session-local", "0-10/file.reject/delivery-tag-session-local")
@pytest.mark.parametrize("name", ["Ack", "Reject"])
def test_settlement_of_file_of_another_channel_fails_with_406(peer: Peer, four: list[int], name: str) -> None:
    other = peer.sibling()
    with other.fails(406):
        other.do(name, delivery_tag=four[0])
    peer.do(name, delivery_tag=four[0])


@rule("0-10/file.consume/no-ack", "0-10/file.ack/multiple-validation")
def test_file_ack_for_a_no_ack_consumer_fails_with_406(peer: Peer) -> None:
    tag = peer.declare().publish(b"file").consume(no_ack=True).take().tag
    with peer.fails(406):
        peer.ack(tag)


@rule("0-9/file.deliver/staged-first", "0-9/file.ack/multiple-01")
@rule("0-10/file.deliver/staged", "0-10/file.ack/multiple-validation")
def test_multiple_ack_does_not_cover_a_file_in_staging(peer: Peer) -> None:
    peer.declare()
    for body in (b"1", b"2"):
        peer.publish(body)
    tag = peer.consume().take().tag
    peer.expect("Open")
    peer.ack(0, multiple=True).do("OpenOk", staged_size=0).expect_content("Stage")
    second = peer.expect("Deliver")
    assert second.delivery_tag != tag
    peer.ack(second.delivery_tag).expect_nothing()


@rule("0-10/file.ack/multiple-validation", "0-10/file.deliver/staged")
def test_file_ack_before_its_delivery_fails_with_406(peer: Peer) -> None:
    peer.declare().publish(b"file").consume().expect("Open")
    with peer.fails(406):
        peer.ack(1)


@rule("0-9/file.reject/02#discarded", "0-10/file.reject/not-selection")
def test_rejected_file_is_discarded(peer: Peer) -> None:
    peer.declare().publish(b"body").consume()
    assert peer.reject(peer.take().tag).end().count() == 0


@rule("0-9/file.reject/01", "0-9/file.reject/02#dead-lettered", "0-10/file.reject/server-interpretation")
def test_rejected_file_is_dead_lettered_with_its_properties(peer: Peer) -> None:
    peer.declare("dead")
    peer.declare(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.publish(b"body", filename="f").consume().reject(peer.take().tag)
    assert (peer.count("q"), peer.count("dead")) == (0, 1)
    file = peer.consume("dead", "d").take()
    assert (file.body, file.properties.filename) == (b"body", "f")
    assert file.properties.headers["x-first-death-queue"] == "q"


@rule("0-10/file.reject/not-selection")
@pytest.mark.protocols("0-10")
def test_rejected_file_goes_to_the_alternate_exchange_of_its_queue(peer: Peer) -> None:
    peer.declare("dead").bind("dead", "amq.fanout", "")
    peer.declare("q", alternate_exchange="amq.fanout").publish(b"file", filename="name").consume()
    file = peer.reject(peer.take().tag).consume("dead", "undertaker").take()
    assert (file.body, file.properties.filename) == (b"file", "name")


@rule("0-9/file.reject/requeue-01", "0-10/file.reject/requeue-requeue-strategy")
@rule("0-10/file.reject/server-interpretation")
def test_file_rejected_with_requeue_is_redelivered_to_another_channel_only(peer: Peer) -> None:
    peer.declare().publish(b"body").consume()
    peer.reject(peer.take().tag, requeue=True).consume("q", "another")
    assert peer.publish(b"next").bodies() == [b"next"]
    assert peer.count() == 1
    file = peer.sibling().consume("q", "other").take()
    assert (file.body, file.method.redelivered) == (b"body", True)


@rule("0-9/file.publish/immediate-01")
def test_immediate_file_is_delivered_beside_a_file_that_its_channel_has_rejected(peer: Peer) -> None:
    peer.declare().consume().publish(b"refused")
    peer.reject(peer.take().tag, requeue=True)
    assert peer.publish(b"at once", immediate=True).take().body == b"at once"


@rule("0-9/file.deliver/01", "0-10/file.deliver/redelivery-tracking")
@pytest.mark.parametrize("server", ["spec"], indirect=True)
@pytest.mark.parametrize("how", ["end", "reject"])
def test_file_is_dead_lettered_after_the_largest_number_of_deliveries(peer: Peer, how: str) -> None:
    peer.declare("dead")
    peer.declare(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.publish(b"hopeless")
    for _ in range(peer.server.state.personality.most_deliveries):
        assert peer.count("dead") == 0
        file = peer.consume().take()
        if how == "reject":
            peer.reject(file.tag, requeue=True)
        peer.end()
    assert (peer.count(), peer.count("dead")) == (0, 1)


@rule("0-10/file.deliver/staged")
def test_files_of_ended_channel_are_requeued_in_order_for_others_only(peer: Peer, connect: Connect) -> None:
    peer.declare()
    for body in (b"1", b"2"):
        peer.publish(body)
    peer.consume("q", "1").take()
    peer.expect("Open")
    peer.consume("q", "2").end().expect_nothing()
    assert peer.count() == 2
    other = connect()
    other.consume()
    taken = [(each.body, bool(each.method.redelivered)) for each in other.take_all()]
    assert taken == [(b"1", True), (b"2", False)]


@pytest.mark.protocols("0-9")
def test_basic_ack_does_not_settle_files(peer: Any) -> None:
    peer.declare()
    peer.publish(b"file")
    peer.fill("q", b"basic")
    peer.consume("q", "f")
    file = peer.take()
    peer.client.consume("q", "b")
    assert peer.client.delivery().method.delivery_tag != file.tag
    peer.client.ack(0, multiple=True)
    peer.end()
    assert peer.count() == 1
    peer.consume()
    tag = peer.take().tag
    with peer.fails(406):
        peer.client.ack(tag)


@pytest.mark.protocols("0-10")
@rule("0-10/file.ack/semantics#zero")
def test_multiple_file_ack_with_tag_zero_covers_no_transfers(peer: Any) -> None:
    peer.declare()
    peer.session.subscribe("q", credit=3)
    peer.fill("q", b"a transfer", b"a transfer")
    assert len(peer.session.transfers()) == 2
    peer.session.call(x.MessageCancel(destination="d"))
    peer.publish(b"file")
    peer.consume()
    assert peer.bodies() == [b"file"]
    peer.ack(0, multiple=True)
    peer.end()
    peer.consume()
    assert peer.bodies() == [b"a transfer"] * 2


# --- transactions ------------------------------------------------------------------------------------
@rule("0-9/file/transactional#messages", "0-10/file/transactions#published")
def test_file_publish_in_a_transaction_takes_effect_at_commit(peer: Peer) -> None:
    peer.declare().consume().select()
    peer.publish(b"undone").rollback().publish(b"done").expect_nothing()
    assert peer.commit().bodies() == [b"done"]


@rule("0-9/file/transactional#messages", "0-9/file.publish/asynchronous")
@rule("0-10/file/transactions#published", "0-10/file.publish/staged")
def test_committed_file_publish_waits_for_its_content(peer: Peer) -> None:
    peer.declare().consume().select().open(4)
    peer.publish_staged().commit().expect_nothing()
    assert peer.stage(b"late").bodies() == [b"late"]


@rule("0-10/file.publish/immediate-implementation", "0-10/file.publish/mandatory-implementation")
def test_mandatory_and_immediate_files_of_a_transaction_are_returned_at_commit(peer: Peer) -> None:
    peer.declare().select().publish(b"1", "nowhere", mandatory=True)
    peer.publish(b"2", immediate=True).expect_nothing()
    peer.commit()
    returned = [peer.expect_content("Return") for _ in range(2)]
    assert [(each.method.reply_code, each.body) for each in returned] == [(312, b"1"), (313, b"2")]


@rule("0-9/file/transactional#acks", "0-10/file/transactions#acked")
@pytest.mark.parametrize("committed", [False, True])
def test_file_ack_takes_effect_at_commit_and_can_be_repeated_after_rollback(
    peer: Peer, connect: Connect, committed: bool
) -> None:
    file = peer.declare().publish(b"file").consume().take()
    peer.select().ack(file.tag).rollback()
    if peer.has_inbox():  # Like RabbitMQ, 0-9 sends it again at once.
        file = peer.take()
        assert file.method.redelivered
    peer.ack(file.tag)
    if committed:
        peer.commit()
    peer.drop()
    other = connect()
    other.consume()
    taken = [(each.body, each.method.redelivered) for each in other.take_all()]
    assert taken == ([] if committed else [(b"file", True)])


# --- views and events --------------------------------------------------------------------------------
def test_views_of_queued_and_unacked_messages_show_content_class_file(peer: Peer, four: list[int]) -> None:
    queue = peer.cancel().fill("q", b"another class").server.vhost.queues["q"]
    (message,) = [queued_view(each, 0) for each in queue.ready]
    assert message.content_class == "basic"
    assert "content_class" not in repr(message)
    held = [unacked_view(each, 0, 0) for each in queue.unacked]
    assert [each.content_class for each in held] == ["file"] * 4
    assert "content_class='file'" in repr(held[0])


@pytest.mark.protocols("0-9")
def test_channel_view_counts_unacked_files_and_messages(server: Server, peer: Any, four: list[int]) -> None:
    peer.fill("q", b"basic")
    peer.client.consume("q", "b")

    def held() -> int:
        (connection,) = connection_views(server.state)
        return connection.channels[0].unacked

    assert held() == 5
    peer.ack(four[0])
    assert held() == 4


class _Settled(QuietTap):
    """Remembers what it is told of deliveries and how they end."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def happened(self, event: str, **facts: Any) -> None:
        if event == "delivered":
            names = ("queue", "consumer", "channel", "delivery_tag", "redelivered")
            self.told.append((event, *(facts[name] for name in names)))
        elif event in ("acked", "rejected", "requeued"):
            self.told.append((event, facts["delivery_tag"]))


def test_tap_is_given_delivery_tags_of_files_delivered_and_settled(server: Server, peer: Any) -> None:
    peer.declare()
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish(body)
    tap = server.state.tap = _Settled()
    peer.consume()
    assert tap.told == [], "it is delivered once it is staged"
    first, second, *_ = peer.take_all()
    peer.ack(first.tag)
    peer.reject(second.tag)
    with peer.fails(404):
        peer.do("Consume", queue="missing", consumer_tag="u")
    delivered = [("delivered", "q", "t", peer.number, tag, False) for tag in (1, 2, 3, 4)]
    assert tap.told == [*delivered, ("acked", 1), ("rejected", 2), ("requeued", 3), ("requeued", 4)]
