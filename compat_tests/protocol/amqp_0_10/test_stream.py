"""Class stream: messages that nobody acknowledges, published and delivered."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    attach_again,
    bodies,
    consume_stream,
    next_command,
    publish_packet,
    skip,
    stream_properties,
    take_packets,
)
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.scripted.amqp_0_10 import Client, Server, Session
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs

ALL_PROPERTIES = {
    "content_type": "video/mpeg",
    "content_encoding": "gzip",
    "headers": {"color": "red", "size": 3},
    "priority": 7,
    "timestamp": 1_600_000_000,
}


# --- the class ---------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/stream/properties")
def test_stream_consumer_receives_all_properties_unchanged(session: Session) -> None:
    session.declare("q")
    publish_packet(session, b"picture", **ALL_PROPERTIES)
    consume_stream(session)
    (packet,) = take_packets(session)
    assert packet.properties == structs.StreamProperties(**ALL_PROPERTIES)


@pytest.mark.rule("0-10/stream/properties")
def test_stream_properties_reach_subscription_of_class_message(session: Session) -> None:
    session.declare("q")
    publish_packet(session, b"picture", **ALL_PROPERTIES)
    session.subscribe("q")
    transfer = session.transfer()
    assert (transfer.body, transfer.delivery.priority) == (b"picture", 7)
    assert (transfer.message.content_type, transfer.message.content_encoding) == ("video/mpeg", "gzip")
    assert transfer.message.application_headers == {"color": "red", "size": 3}


@pytest.mark.rule("0-10/stream/properties")
def test_transferred_message_reaches_stream_consumer_with_properties(session: Session) -> None:
    session.declare("q")
    session.publish(b"picture", message=structs.MessageProperties(content_type="video/mpeg"), priority=3)
    session.call(x.ExecutionSync())
    consume_stream(session)
    (packet,) = take_packets(session)
    assert (packet.body, packet.properties.content_type, packet.properties.priority) == (
        b"picture",
        "video/mpeg",
        3,
    )


@pytest.mark.rule("0-10/stream/properties")
@pytest.mark.parametrize("header", (None, [], [structs.FileProperties()]), ids=("no", "empty", "other"))
def test_stream_publish_without_stream_properties_fails_with_503(
    session: Session, header: list[structs.Struct] | None
) -> None:
    exception = session.fails(x.StreamPublish(routing_key="q"), 503, header=header, body=b"picture")
    assert (exception.class_code, exception.command_code) == (10, 6)


@pytest.mark.rule("0-10/stream/properties")
def test_stream_publish_without_content_fails_with_503(session: Session) -> None:
    exception = session.fails(x.StreamPublish(routing_key="q"), 503)
    assert (exception.class_code, exception.command_code) == (10, 6)


def test_stream_messages_and_properties_are_exchanged_with_0_9_1_client(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_packet(session, b"there", **ALL_PROPERTIES)
    plain = server.client()
    content = plain.get("q", no_ack=True)
    assert content is not None and content.body == b"there"
    properties = content.properties
    assert (properties.content_type, properties.content_encoding) == ("video/mpeg", "gzip")
    assert (properties.headers, properties.priority) == ({"color": "red", "size": 3}, 7)
    assert (properties.timestamp, properties.delivery_mode) == (1_600_000_000, None)
    plain.publish(b"back", routing_key="q", content_type="video/mpeg", headers={"color": "red"}, timestamp=1)
    consume_stream(session)
    (packet,) = take_packets(session)
    assert packet.body == b"back"
    assert packet.properties == structs.StreamProperties(
        content_type="video/mpeg", headers={"color": "red"}, timestamp=1
    )


@pytest.mark.rule("0-10/stream/overflow-discard")
def test_spec_personality_discards_lowest_priority_stream_messages_above_max_length(spec: Server) -> None:
    session = spec.session()
    session.declare("q", arguments={"x-max-length": 2})
    for priority in (9, 0, 4, 1):
        publish_packet(session, b"%d" % priority, priority=priority)
    consume_stream(session)
    assert bodies(session) == [b"9", b"4"]


@pytest.mark.deviates("0-10/stream/priority-levels")
def test_default_personality_ignores_stream_priority_in_queue_without_priorities(
    lenient: Server,
) -> None:
    session = lenient.session()
    session.declare("q")
    for priority in (0, 9):
        publish_packet(session, b"%d" % priority, priority=priority)
    consume_stream(session)
    assert bodies(session) == [b"0", b"9"]


@pytest.mark.rule("0-10/stream/priority-levels")
def test_spec_personality_delivers_stream_messages_by_descending_priority(spec: Server) -> None:
    session = spec.session()
    session.declare("q")
    for priority in (0, 9, 4):
        publish_packet(session, b"%d" % priority, priority=priority)
    consume_stream(session)
    assert bodies(session) == [b"9", b"4", b"0"]


@pytest.mark.rule("0-10/stream/acknowledgement-support")
def test_delivered_stream_message_is_removed_from_queue(server: Server) -> None:
    session = server.session()
    session.declare("q")
    publish_packet(session, b"1")
    consume_stream(session)
    assert bodies(session) == [b"1"]
    assert session.query("q").message_count == 0
    session.client.drop()
    session = server.session()
    consume_stream(session)
    assert bodies(session) == []


# --- publishing and delivering -----------------------------------------------------------------------


@pytest.mark.rule("0-10/stream.publish/exchange-default")
@pytest.mark.parametrize("exchange", (None, ""))
def test_stream_publish_without_exchange_name_goes_to_default_exchange(
    session: Session, exchange: str | None
) -> None:
    session.declare("q")
    publish_packet(session, b"1", "q", exchange=exchange)
    consume_stream(session)
    assert bodies(session) == [b"1"]


@pytest.mark.rule("0-10/stream.publish/exchange-refusal")
@pytest.mark.parametrize("exchange", ("amq.direct", "amq.fanout", "amq.topic", "amq.match"))
def test_exchanges_of_all_types_accept_stream_messages(session: Session, exchange: str) -> None:
    session.declare("q")
    session.bind("q", exchange, "k", arguments={"x-match": "all"} if exchange == "amq.match" else None)
    publish_packet(session, b"1", "k", exchange=exchange)
    consume_stream(session)
    (packet,) = take_packets(session)
    assert packet.deliver.exchange == exchange


def test_stream_publish_to_missing_exchange_fails_with_not_found(session: Session) -> None:
    header = [structs.StreamProperties()]
    session.fails(x.StreamPublish(exchange="missing", routing_key="q"), 404, header=header, body=b"1")


def test_stream_publish_without_write_permission_fails_with_403(server: Server) -> None:
    server.state.access.add(User("reader", "reader", (), {"/": Permission(write="")}))
    session = server.session(user="reader", password="reader")
    header = [structs.StreamProperties()]
    session.fails(x.StreamPublish(exchange="amq.direct", routing_key="q"), 403, header=header, body=b"1")


@pytest.mark.rule("0-10/stream/return-codes#311")
def test_stream_message_refused_by_queue_is_returned_with_311(session: Session) -> None:
    session.declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    publish_packet(session, b"1")
    publish_packet(session, b"2")
    returned, got = next_command(session, x.StreamReturn)
    assert (returned.reply_code, got.body) == (311, b"2")


@pytest.mark.rule("0-10/stream.publish/mandatory-implementation", "0-10/stream/return-codes#312")
def test_unroutable_mandatory_stream_message_is_returned_with_312(session: Session) -> None:
    publish_packet(session, b"1", "nowhere", mandatory=True)
    returned, _ = next_command(session, x.StreamReturn)
    assert returned.reply_code == 312


@pytest.mark.rule("0-10/stream.publish/immediate-implementation", "0-10/stream/return-codes#313")
def test_immediate_stream_message_without_consumer_is_returned_with_313(session: Session) -> None:
    session.declare("q")
    publish_packet(session, b"1", immediate=True)
    returned, _ = next_command(session, x.StreamReturn)
    assert returned.reply_code == 313
    consume_stream(session)
    publish_packet(session, b"2", immediate=True)
    assert bodies(session) == [b"2"]


@pytest.mark.rule("0-10/stream/return-codes#311")
def test_stream_message_above_largest_message_size_is_returned_with_311(lenient: Server) -> None:
    session = lenient.session()
    publish_packet(session, bytes(lenient.state.personality.largest_message + 1))
    returned, _ = next_command(session, x.StreamReturn)
    assert returned.reply_code == 311


@pytest.mark.rule("0-10/stream.return/content")
def test_returned_stream_message_keeps_exchange_key_properties_and_body(session: Session) -> None:
    publish_packet(session, b"1", "k", exchange="amq.topic", mandatory=True, headers={"a": 1})
    returned, got = next_command(session, x.StreamReturn)
    assert (returned.exchange, returned.routing_key) == ("amq.topic", "k")
    assert returned.reply_text
    assert stream_properties(got.header).headers == {"a": 1}
    assert got.body == b"1"


def test_stream_publish_in_transaction_takes_effect_at_commit(session: Session) -> None:
    session.declare("q")
    consume_stream(session)
    session.call(x.TxSelect())
    publish_packet(session, b"undone")
    session.call(x.TxRollback())
    publish_packet(session, b"done")
    assert bodies(session) == []
    session.call(x.TxCommit())
    assert bodies(session) == [b"done"]


@pytest.mark.rule("0-10/stream.deliver/fields")
def test_stream_deliver_names_consumer_tag_exchange_and_queue(session: Session) -> None:
    session.declare("q")
    session.bind("q", "amq.topic", "k")
    publish_packet(session, b"1", "k", exchange="amq.topic")
    consume_stream(session)
    (packet,) = take_packets(session)
    assert packet.deliver == x.StreamDeliver(
        consumer_tag="t", delivery_tag=1, exchange="amq.topic", queue="q"
    )
    assert packet.body == b"1"


@pytest.mark.rule("0-10/stream.deliver/delivery-tag-session-local")
def test_stream_delivery_tags_are_counted_per_session(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    consume_stream(one)
    consume_stream(two)
    for n in range(4):
        publish_packet(one, b"%d" % n)
    skip(one)
    found = [(each.channel, each.what.delivery_tag) for each in client.inbox]
    assert found == [(1, 1), (2, 1), (1, 2), (2, 2)]


def test_stream_message_stays_queued_while_session_of_consumer_is_detached(server: Server) -> None:
    session = server.open().session(b"s", timeout=60)
    session.declare("q")
    consume_stream(session)
    session.client.drop()
    other = server.session(b"other")
    publish_packet(other, b"1")
    assert other.query("q").message_count == 1
    again = attach_again(server, session, at=session.next_id, has=1)
    assert bodies(again) == [b"1"]


def test_stream_consumer_waits_while_its_connection_is_full(server: Server) -> None:
    session, other = server.session(), server.session(b"other")
    session.declare("q")
    consume_stream(session)
    for _ in range(3):
        publish_packet(other, bytes(1024 * 1024))
    assert other.query("q").message_count == 2
    assert len(take_packets(session)) == 3


class _Told(QuietTap):
    """Remembers what it is told of deliveries."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def happened(self, event: str, **facts: Any) -> None:
        if event == "delivered":
            names = ("queue", "consumer", "channel", "delivery_tag", "redelivered")
            self.told.append(tuple(facts[name] for name in names))


def test_tap_receives_event_of_each_stream_delivery(session: Session) -> None:
    session.declare("q")
    tap = session.client.server.state.tap = _Told()
    consume_stream(session)
    publish_packet(session, b"1")
    publish_packet(session, b"2")
    tags = [each.deliver.delivery_tag for each in take_packets(session)]
    assert tap.told == [("q", "t", 0, tag, False) for tag in tags]
    assert len(tags) == 2
