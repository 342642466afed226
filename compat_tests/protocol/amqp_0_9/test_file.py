"""Class file: what it is about, consumers, windows."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9.files import (
    bodies,
    consume,
    open_file,
    publish,
    publish_file,
    speaking_0_9_1,
    stage,
    take,
)
from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

rule = pytest.mark.rule

PROPERTIES: dict[str, Any] = {
    "content_type": "a/b",
    "content_encoding": "gzip",
    "headers": {"n": 5, "s": "text"},
    "priority": 6,
    "reply_to": "answers",
    "message_id": "id",
    "filename": "file.txt",
    "timestamp": 1 << 33,
    "cluster_id": "x",
}


@rule("0-9/file/grammar", "0-9/file/properties")
def test_published_file_is_delivered_with_body_and_properties_and_is_acked(
    client: Client, server: Server
) -> None:
    client.declare("q")
    client.call(m.FileQos(prefetch_count=10), m.FileQosOk)
    assert open_file(client, 4) == 0
    stage(client, b"body", **PROPERTIES)
    publish(client)
    client.expect_nothing()
    other = server.client()
    consume(other)
    file = take(other)
    assert file.body == b"body"
    assert {name: getattr(file.properties, name) for name in PROPERTIES} == PROPERTIES
    other.send(m.FileAck(delivery_tag=file.tag))
    other.expect_nothing()
    other.call(m.FileCancel(consumer_tag="t"), m.FileCancelOk)
    other.drop()
    assert client.count("q") == 0


@rule("0-9/file.open/identifier-unique")
def test_each_file_keeps_its_own_unique_identifier(server: Server) -> None:
    client = server.client()
    for queue in ("q", "other"):
        client.declare(queue)
    for queue in ("q", "q", "other"):
        publish_file(client, b"the same body", queue)

    def identifiers() -> list[str]:
        consumer = server.client()
        consume(consumer)
        taken = [take(consumer).opened.identifier for _ in range(2)]
        consume(consumer, "other", "o")
        taken.append(take(consumer).opened.identifier)
        consumer.drop()  # Its files return to their queues.
        return taken

    first = identifiers()
    assert len(set(first)) == 3
    assert identifiers() == first


@rule("0-9/file/properties")
def test_properties_go_out_in_the_octets_they_came_in(client: Client) -> None:
    octets = FileProperties(**PROPERTIES).encode()
    assert octets[:2] == b"\xff\x80"
    client.declare("q")
    publish_file(client, b"body", **PROPERTIES)
    consume(client)
    client.expect(m.FileOpen)
    client.send(m.FileOpenOk())
    client.expect(m.FileStage)
    assert client.take_frame().payload[12:] == octets


@rule("0-9/file/01")
def test_files_outlast_a_restart_and_a_crash(client: Client, server: Server) -> None:
    for crash in (False, True):
        client.declare("q", durable=True)
        publish_file(client, b"body", filename="f")
        server.restart(crash=crash)
        client = server.client()
        consume(client)
        file = take(client)
        assert (file.body, file.properties.filename) == (b"body", "f")
        client.send(m.FileAck(delivery_tag=file.tag))


@rule("0-9/file/03")
@pytest.mark.letter
def test_files_of_higher_priority_go_first(client: Client) -> None:
    client.declare("q")
    for body, priority in ((b"low", 1), (b"high", 7), (b"higher", 9), (b"low too", 1)):
        publish_file(client, body, priority=priority)
    consume(client)
    assert bodies(client) == [b"higher", b"high", b"low", b"low too"]


@rule("0-9/file/no-browsing")
def test_basic_get_gets_no_file(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"file")
    client.call(m.BasicGet(queue="q"), m.BasicGetEmpty)
    client.fill("q", b"basic")
    got = client.get("q")
    assert got is not None and got.body == b"basic"
    assert client.count("q") == 1


@rule("0-9/queue/any-content#independent", "0-9/content/mixed-classes")
def test_consumers_of_other_classes_get_no_files_and_are_not_held_up(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"1")
    client.fill("q", b"basic")
    client.consume("q", "basic")
    assert client.delivery().body == b"basic"
    client.call(m.StreamConsume(queue="q", consumer_tag="stream"), m.StreamConsumeOk)
    publish_file(client, b"2")
    client.expect_nothing()
    consume(client)
    assert bodies(client) == [b"1", b"2"]


def test_a_client_of_0_9_1_gets_files_as_messages(server: Server) -> None:
    client = server.client()
    client.declare("q")
    publish_file(client, b"body", **PROPERTIES)
    other = speaking_0_9_1(server).client()
    content = other.get("q")
    assert content is not None
    assert (content.body, content.properties.content_type) == (b"body", "a/b")
    assert (content.properties.headers, content.properties.delivery_mode) == ({"n": 5, "s": "text"}, 2)


# --- consumers ---------------------------------------------------------------------------------------


@rule("0-9/file.consume-ok/tag", "0-9/file.consume/tag-scope#empty")
def test_an_empty_tag_is_replaced_and_told(client: Client) -> None:
    client.declare("q")
    tag = consume(client, tag="")
    assert tag
    publish_file(client, b"body")
    assert take(client).deliver.consumer_tag == tag


@rule("0-9/file.consume/queue-01")
def test_file_consume_with_blank_queue_uses_the_last_declared_queue(server: Server) -> None:
    client = server.client()
    client.declare("q")
    consume(client, "")
    publish_file(client, b"body")
    assert take(client).body == b"body"
    other = server.client()
    other.send(m.FileConsume())
    other.expect_connection_close(530)


@rule("0-9/file.consume/consumer-tag-01", "0-9/file.consume/tag-scope#connection")
@pytest.mark.parametrize("channel", [1, 2])
def test_a_tag_in_use_on_the_connection_ends_it(server: Server, channel: int) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.consume("q", "t")
    client.send(m.FileConsume(queue="q", consumer_tag="t"), channel)
    client.expect_connection_close(530)


@rule("0-9/file.consume/tag-scope#connection")
def test_another_connection_may_use_the_same_tag(server: Server) -> None:
    client, other = server.client(), server.client()
    for each, queue in ((client, "q"), (other, "r")):
        each.declare(queue)
        assert consume(each, queue) == "t"
    publish_file(client, b"2", "r")
    publish_file(client, b"1", "q")
    assert (bodies(client), bodies(other)) == ([b"1"], [b"2"])


@rule("0-9/file.consume/exclusive-01")
def test_file_consumer_is_refused_with_405_beside_an_exclusive_consumer(client: Client) -> None:
    client.declare("q")
    client.consume("q", "t")
    client.send(m.FileConsume(queue="q", exclusive=True))
    client.expect_channel_close(405)
    client.open_channel()
    consume(client, exclusive=True)
    client.send(m.FileConsume(queue="q"))
    client.expect_channel_close(405)


def test_file_consume_from_a_missing_queue_closes_the_channel_with_404(client: Client) -> None:
    client.send(m.FileConsume(queue="missing"))
    client.expect_channel_close(404)


@rule("0-9/file.consume/no-local")
def test_file_consumer_with_no_local_gets_no_files_of_its_own_connection(server: Server) -> None:
    client, other = server.client(channels=2), server.client()
    client.declare("q")
    consume(client, no_local=True)
    publish_file(client, b"own", channel=2)
    publish_file(other, b"other's")
    assert bodies(client) == [b"other's"]


@rule("0-9/file.consume/nowait")
def test_file_consume_and_cancel_with_nowait_have_no_answer(client: Client) -> None:
    client.declare("q")
    client.send(m.FileConsume(queue="q", consumer_tag="t", no_wait=True))
    client.expect_nothing()
    publish_file(client, b"body")
    assert take(client).body == b"body"
    client.send(m.FileCancel(consumer_tag="t", no_wait=True))
    client.expect_nothing()


@rule("0-9/file.consume/01")
def test_files_are_delivered_to_16_consumers_in_turn(server: Server) -> None:
    client = server.client(channels=16)
    client.declare("q")
    for number in range(1, 17):
        consume(client, tag=str(number), channel=number)
    other = server.client()
    for number in range(1, 17):
        publish_file(other, b"%d" % number)
        assert take(client, channel=number).body == b"%d" % number


@rule("0-9/file.cancel/stops#stops", "0-9/file.cancel/stops#delivered", "0-9/file.cancel-ok/tag")
def test_file_cancel_stops_deliveries_and_delivered_files_can_still_be_acked(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"1")
    consume(client)
    file = take(client)
    assert client.call(m.FileCancel(consumer_tag="t"), m.FileCancelOk).consumer_tag == "t"
    publish_file(client, b"2")
    client.expect_nothing()
    assert client.count("q") == 1
    client.send(m.FileAck(delivery_tag=file.tag))
    client.close_channel()
    client.open_channel()
    assert client.count("q") == 1


@rule("0-9/file.cancel/stops#stops")
def test_file_in_staging_is_requeued_when_its_consumer_is_cancelled(client: Client) -> None:
    client.declare("q")
    for body in (b"1", b"2"):
        publish_file(client, body)
    consume(client)
    opened = client.expect(m.FileOpen)
    client.call(m.FileCancel(consumer_tag="t"), m.FileCancelOk)
    assert client.count("q") == 2
    client.send(m.FileOpenOk())
    # The client waits for what was opened.
    assert client.expect_content(m.FileStage).body == b"1"
    client.expect_nothing()
    consume(client)
    file = take(client)
    assert (file.body, file.deliver.redelivered, file.opened.identifier) == (b"1", False, opened.identifier)


def test_file_cancel_of_a_tag_of_another_class_is_confirmed_without_effect(client: Client) -> None:
    client.declare("q")
    client.consume("q", "t")
    client.call(m.StreamConsume(queue="q", consumer_tag="s"), m.StreamConsumeOk)
    for tag in ("t", "s", "unknown"):
        assert client.call(m.FileCancel(consumer_tag=tag), m.FileCancelOk).consumer_tag == tag
    client.fill("q", b"body")
    assert client.delivery().body == b"body"
    client.send_content(m.StreamPublish(routing_key="q"), body=b"body")
    client.expect_content(m.StreamDeliver)


def test_file_in_staging_is_not_delivered_after_its_queue_is_deleted(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"1")
    consume(client)
    client.expect(m.FileOpen)
    client.call(shared.QueueDelete(queue="q"), shared.QueueDeleteOk)
    client.send(m.FileOpenOk())
    client.expect_content(m.FileStage)
    client.expect_nothing()
    client.declare("q")
    consume(client)  # The tag is free again.


# --- windows -----------------------------------------------------------------------------------------


@rule("0-9/file.qos/prefetch-count-01", "0-9/file.qos-ok/confirm#confirms")
def test_no_more_files_are_sent_than_the_window_allows(client: Client) -> None:
    client.declare("q")
    client.call(m.FileQos(prefetch_count=2), m.FileQosOk)
    consume(client)
    for body in (b"1", b"2", b"3", b"4"):
        publish_file(client, body)
    first, second = take(client), take(client)
    client.expect_nothing()
    client.send(m.FileAck(delivery_tag=first.tag))
    assert take(client).body == b"3"
    client.send(m.FileReject(delivery_tag=second.tag))
    assert take(client).body == b"4"
    client.expect_nothing()


@rule("0-9/file.qos-ok/confirm#confirms", "0-9/file.qos-ok/confirm#holds")
def test_new_file_prefetch_applies_to_existing_consumers_and_their_unacked_files(client: Client) -> None:
    client.declare("q")
    consume(client)
    for body in (b"1", b"2"):
        publish_file(client, body)
    first = take(client)
    client.expect(m.FileOpen)
    client.call(m.FileQos(prefetch_count=2), m.FileQosOk)
    publish_file(client, b"3")
    client.send(m.FileOpenOk())
    client.expect_content(m.FileStage)
    second = client.expect(m.FileDeliver)
    client.expect_nothing()
    client.send(m.FileAck(delivery_tag=second.delivery_tag))
    assert take(client).body == b"3"
    publish_file(client, b"4")
    client.expect_nothing()
    client.send(m.FileQos(prefetch_count=0))
    client.expect(m.FileQosOk)
    assert take(client).body == b"4"
    client.send(m.FileAck(delivery_tag=first.tag))


@rule("0-9/file.qos/prefetch-size#fits")
def test_file_prefetch_size_limits_octets_except_for_a_first_large_file(client: Client) -> None:
    client.declare("q")
    client.call(m.FileQos(prefetch_size=5), m.FileQosOk)
    consume(client)
    for body in (b"a large one", b"1234", b"5"):
        publish_file(client, body)
    large = take(client)
    assert large.body == b"a large one"
    client.expect_nothing()
    client.send(m.FileAck(delivery_tag=large.tag))
    assert bodies(client) == [b"1234", b"5"]
    publish_file(client, b"6")
    client.expect_nothing()


@rule("0-9/file/04#automatic")
@rule("0-9/file.qos/prefetch-size#zero")
def test_a_window_of_zero_octets_is_no_limit(client: Client) -> None:
    client.declare("q")
    client.call(m.FileQos(prefetch_size=1), m.FileQosOk)
    client.call(m.FileQos(prefetch_size=0), m.FileQosOk)
    consume(client)
    for body in (b"11", b"22", b"33"):
        publish_file(client, body)
    assert bodies(client) == [b"11", b"22", b"33"]


@rule("0-9/file.qos/prefetch-size#no-ack", "0-9/file.consume/no-ack")
def test_without_acknowledgements_there_is_no_window_and_files_are_gone(client: Client) -> None:
    client.declare("q")
    client.call(m.FileQos(prefetch_size=1, prefetch_count=1), m.FileQosOk)
    consume(client, no_ack=True)
    for body in (b"11", b"22"):
        publish_file(client, body)
    assert not len(client.server.vhost.queues["q"].ready)  # Both are on their way.
    assert bodies(client) == [b"11", b"22"]
    client.close_channel()
    client.open_channel()
    assert client.count("q") == 0


@rule("0-9/file.consume/no-ack")
def test_a_file_without_acknowledgement_returns_if_its_staging_breaks_off(client: Client) -> None:
    client.declare("q")
    consume(client, no_ack=True)
    publish_file(client, b"body")
    client.expect(m.FileOpen)
    client.close_channel()
    client.open_channel()
    assert client.count("q") == 1


@rule("0-9/file.qos/global")
def test_a_global_window_is_for_the_whole_connection(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.declare("r")
    consume(client, "q", "1")
    client.call(m.FileQos(prefetch_count=1, global_=True), m.FileQosOk, 2)
    consume(client, "r", "2", channel=2)
    publish_file(client, b"1")
    file = take(client)
    publish_file(client, b"2", "r")
    client.expect_nothing()
    client.send(m.FileAck(delivery_tag=file.tag))
    assert take(client, channel=2).body == b"2"


@rule("0-9/file.qos/global")
def test_a_global_window_stands_beside_that_of_a_channel(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.declare("r")
    client.call(m.FileQos(prefetch_count=2), m.FileQosOk)
    client.call(m.FileQos(prefetch_count=1, global_=True), m.FileQosOk)
    consume(client, "q", "1")
    consume(client, "r", "2", channel=2)
    publish_file(client, b"1")
    take(client)
    publish_file(client, b"2", "r")
    client.expect_nothing()


@rule("0-9/file.qos/global")
def test_closed_channel_frees_its_share_of_the_global_file_prefetch(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.declare("r")
    client.call(m.FileQos(prefetch_count=2, global_=True), m.FileQosOk)
    consume(client, "q", "1")
    consume(client, "r", "2", channel=2)
    for body in (b"1", b"2"):
        publish_file(client, body)
    take(client)
    client.expect(m.FileOpen)  # One is held, and one is under way.
    for body in (b"3", b"4"):
        publish_file(client, body, "r", channel=2)
    client.expect_nothing()
    client.call(shared.ChannelClose(reply_code=200), shared.ChannelCloseOk)
    client.expect(m.FileOpen, 2)
    client.send(m.FileOpenOk(), 2)
    assert client.expect_content(m.FileStage, 2).body == b"3"
    client.expect(m.FileDeliver, 2)
    assert take(client, channel=2).body == b"4"


@pytest.mark.letter
def test_files_are_not_delivered_while_channel_flow_is_off(client: Client) -> None:
    client.declare("q")
    consume(client)
    client.call(shared.ChannelFlow(active=False), shared.ChannelFlowOk)
    publish_file(client, b"body")
    client.expect_nothing()
    client.call(shared.ChannelFlow(active=True), shared.ChannelFlowOk)
    assert take(client).body == b"body"


def test_a_window_of_a_channel_is_no_other_channels(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.call(m.FileQos(prefetch_count=1), m.FileQosOk)
    consume(client, channel=2)
    for body in (b"1", b"2"):
        publish_file(client, body)
    assert bodies(client, channel=2) == [b"1", b"2"]


def test_prefetch_of_basic_or_stream_class_does_not_limit_files(client: Client) -> None:
    client.declare("q")
    client.call(m.BasicQos(prefetch_count=1), m.BasicQosOk)
    client.call(m.StreamQos(prefetch_count=1), m.StreamQosOk)
    consume(client)
    for body in (b"1", b"2"):
        publish_file(client, body)
    assert bodies(client) == [b"1", b"2"]


@rule("0-9/file.deliver/fields")
def test_file_deliver_has_consumer_tag_delivery_tag_source_and_redelivered_flag(client: Client) -> None:
    client.declare("q")
    client.bind("q", "amq.direct", "k")
    for body in (b"1", b"2"):
        publish_file(client, body, "k", exchange="amq.direct")
    consume(client)
    files = [take(client), take(client)]
    for number, file in enumerate(files, start=1):
        deliver = file.deliver
        assert (deliver.consumer_tag, deliver.delivery_tag, deliver.redelivered) == ("t", number, False)
        assert (deliver.exchange, deliver.routing_key) == ("amq.direct", "k")
        assert deliver.identifier == file.opened.identifier
    assert files[0].deliver.identifier != files[1].deliver.identifier
    client.close_channel()
    client.open_channel()
    consume(client, tag="again")
    deliver = take(client).deliver
    assert (deliver.consumer_tag, deliver.redelivered) == ("again", True)
