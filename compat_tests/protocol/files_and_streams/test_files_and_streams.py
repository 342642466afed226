"""What the classes file and stream have alike: publishing, returns, consumers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.protocol.files_and_streams.conftest import Server
from compat_tests.scripted.amqp_0_9 import Child, content
from compat_tests.scripted.contents import Peer, speaking
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, StreamProperties, methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule

Connect = Callable[..., Peer]

STREAM_PROPERTIES: dict[str, Any] = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"color": "red", "size": 3},
    "priority": 7,
    "timestamp": 1_600_000_000,
}
FILE_PROPERTIES = {
    **STREAM_PROPERTIES,
    "reply_to": "answers",
    "message_id": "m-1",
    "filename": "notes.txt",
    "cluster_id": "c",
}


@pytest.fixture
def properties(content_class: str) -> dict[str, Any]:
    """A value of each property of the class."""
    return FILE_PROPERTIES if content_class == "file" else STREAM_PROPERTIES


# --- publish and deliver -----------------------------------------------------------------------------
@rule("0-9/file/grammar", "0-9/file/properties", "0-10/file/properties", "0-9/stream/grammar")
@rule("0-9/stream/properties", "0-10/stream/properties", "0-9/stream.publish/exchange-01")
@rule("0-10/file.publish/exchange-default", "0-10/stream.publish/exchange-default")
def test_content_is_delivered_with_its_body_and_all_properties(
    peer: Peer, connect: Connect, properties: dict[str, Any]
) -> None:
    peer.declare()
    other = connect()
    other.qos(prefetch_count=10)
    other.consume()
    peer.publish(b"body", **properties).expect_nothing()
    delivered = other.take()
    assert delivered.body == b"body"
    assert {name: getattr(delivered.properties, name) for name in properties} == properties
    if other.content_class == "file":
        other.ack(delivered.tag)
        other.expect_nothing()
    other.cancel()
    other.drop()
    assert peer.count() == 0


@rule("0-9/file.deliver/fields", "0-9/stream.deliver/fields", "0-10/stream.deliver/fields")
@rule("0-10/file.deliver/delivery-tag-non-zero")
def test_delivery_names_consumer_source_and_a_tag_counted_from_1(peer: Peer) -> None:
    peer.declare().bind("q", "amq.direct", "k")
    for body in (b"1", b"2"):
        peer.publish(body, "k", exchange="amq.direct")
    peer.consume()
    for number, delivered in enumerate([peer.take(), peer.take()], start=1):
        deliver = delivered.method
        assert (deliver.consumer_tag, deliver.delivery_tag) == ("t", number)
        assert deliver.exchange == "amq.direct"
        if peer.content_class == "file":
            assert (deliver.routing_key, bool(deliver.redelivered)) == ("k", False)
        else:
            assert deliver.queue == "q"


@rule("0-9/stream.publish/routes")
@rule("0-10/file.publish/exchange-refusal", "0-10/stream.publish/exchange-refusal")
@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "match"])
def test_exchanges_of_all_types_route_contents(peer: Peer, kind: str) -> None:
    exchange = f"amq.{kind}"
    peer.declare().bind("q", exchange, "k", {"x-match": "all", "h": 1} if kind == "match" else None)
    peer.publish(b"body", "k", exchange=exchange, headers={"h": 1})
    taken = peer.publish(b"other", "l", exchange=exchange, headers={"h": 2}).consume().take_all()
    assert [each.body for each in taken] == ([b"body", b"other"] if kind == "fanout" else [b"body"])
    assert taken[0].method.exchange == exchange


@rule("0-9/file.publish/exchange-missing")
def test_publish_to_a_missing_exchange_fails_with_404(peer: Peer) -> None:
    with peer.fails(404):
        peer.publish(b"body", exchange="missing")


def test_publish_without_write_permission_fails_with_403(server: Server, connect: Connect) -> None:
    server.state.access.add(User("ann", "pw", (), {"/": Permission(".*", "^mine", ".*")}))
    peer = connect(user="ann", password="pw")
    with peer.fails(403):
        peer.publish(b"body", exchange="amq.direct")


@pytest.mark.protocols("0-9")
@pytest.mark.parametrize("server", ["rabbitmq-4.3"], indirect=True)
@rule("0-9/file.publish/exchange-02", "0-9/stream.publish/exchange-02")
def test_publish_to_an_internal_exchange_fails_with_403(server: Server, peer: Peer) -> None:
    server.vhost.exchanges.declare("x", "fanout", internal=True)
    with peer.fails(403):
        peer.publish(b"body", exchange="x")


@rule("0-9/file.publish/mandatory-01", "0-9/file.publish/immediate-01")
@rule("0-9/file.return/content#code", "0-9/file.return/content#source", "0-9/file.return/content#content")
@rule("0-9/stream.publish/mandatory-01", "0-9/stream.publish/immediate-01")
@rule("0-9/stream.return/content#code", "0-9/stream.return/content#source")
@rule("0-9/stream.return/content#content", "0-10/stream.return/content", "0-10/file.return/content")
@rule("0-10/file.publish/mandatory-implementation", "0-10/file.publish/immediate-implementation")
@rule("0-10/file/return-codes#312", "0-10/file/return-codes#313")
@rule("0-10/stream.publish/mandatory-implementation", "0-10/stream.publish/immediate-implementation")
@rule("0-10/stream/return-codes#312", "0-10/stream/return-codes#313")
@pytest.mark.parametrize(("flag", "code"), [("mandatory", 312), ("immediate", 313)])
def test_undeliverable_content_with_flag_is_returned_whole_and_without_flag_is_not(
    peer: Peer, properties: dict[str, Any], flag: str, code: int
) -> None:
    peer.declare().bind("q", "amq.topic", "q")
    key = {"mandatory": "nowhere", "immediate": "q"}[flag]
    peer.publish(b"body", "nowhere", exchange="amq.topic").expect_nothing()
    peer.publish(b"body", key, exchange="amq.topic", **{flag: True}, **properties)
    returned = peer.expect_content("Return")
    method = returned.method
    assert (method.reply_code, method.exchange, method.routing_key) == (code, "amq.topic", key)
    assert method.reply_text
    assert returned.body == b"body"
    assert {name: getattr(returned.properties, name) for name in properties} == properties
    assert peer.count() == 0


@rule("0-10/file.publish/immediate-implementation", "0-10/stream.publish/immediate-implementation")
def test_immediate_content_is_delivered_to_a_waiting_consumer(peer: Peer) -> None:
    assert peer.declare().consume().publish(b"body", immediate=True).bodies() == [b"body"]


@rule("0-9/file/03", "0-9/stream/02", "0-10/file/priority-levels", "0-10/stream/priority-levels")
@pytest.mark.deviates("0-10/file/priority-levels", "0-10/stream/priority-levels")
@pytest.mark.letter
def test_contents_of_higher_priority_are_delivered_first(protocol: str, server: Server, peer: Peer) -> None:
    """RabbitMQ ignores priorities in a queue without `x-max-priority`."""
    peer.declare()
    for body, priority in ((b"low", 0), (b"high", 7), (b"higher", 9), (b"low too", 0)):
        peer.publish(body, priority=priority)
    peer.consume()
    sent = [b"low", b"high", b"higher", b"low too"]
    deviates = (protocol, server.state.personality.name) == ("0-10", "rabbitmq-4.3")
    assert peer.bodies() == (sent if deviates else [b"higher", b"high", b"low", b"low too"])


# --- consumers ---------------------------------------------------------------------------------------
@pytest.mark.protocols("0-9")
@rule("0-9/file.consume-ok/tag", "0-9/file.consume/tag-scope#empty", "0-9/stream.consume-ok/tag")
def test_empty_consumer_tag_is_replaced_by_the_broker(peer: Peer) -> None:
    tag = peer.declare().ask("Consume", queue="q").consumer_tag
    peer.publish(b"body")
    assert tag and peer.take().method.consumer_tag == tag


@pytest.mark.protocols("0-9")
@rule("0-9/file.consume/queue-01", "0-9/stream.consume/queue-01")
def test_consume_with_blank_queue_uses_the_last_declared_queue(peer: Peer, connect: Connect) -> None:
    assert peer.declare().consume("").publish(b"body").take().body == b"body"
    other = connect()
    with other.fails(530, connection=True):
        other.do("Consume")


@rule("0-10/file.consume/consumer-tag-not-existing-consumer")
@rule("0-10/stream.consume/consumer-tag-not-existing-consumer")
def test_consume_with_a_tag_in_use_fails_with_530(peer: Peer) -> None:
    peer.declare().consume()
    with peer.fails(530, connection=True):
        peer.do("Consume", queue="q", consumer_tag="t")


@pytest.mark.protocols("0-9")
@rule("0-9/file.consume/consumer-tag-01", "0-9/file.consume/tag-scope#connection")
@rule("0-9/stream.consume/consumer-tag-01")
@pytest.mark.parametrize("same_channel", [True, False])
def test_tag_of_a_consumer_of_any_class_is_in_use_on_its_whole_connection_and_on_no_other(
    peer: Any, connect: Connect, same_channel: bool
) -> None:
    peer.declare()
    peer.client.consume("q", "t")
    assert connect().ask("Consume", queue="q", consumer_tag="t").consumer_tag == "t"
    asking = peer if same_channel else peer.sibling()
    with asking.fails(530, connection=True):
        asking.do("Consume", queue="q", consumer_tag="t")


@rule("0-9/file.consume/exclusive-01", "0-9/stream.consume/exclusive-01")
@rule("0-10/file.consume/exclusive-in-use", "0-10/stream.consume/exclusive-in-use")
@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True)])
def test_consume_beside_an_exclusive_consumer_or_exclusively_beside_another_fails_with_405(
    peer: Peer, first: bool, second: bool
) -> None:
    peer.declare().consume(exclusive=first)
    other = peer.sibling()
    with other.fails(405):
        other.do("Consume", queue="q", consumer_tag="u", exclusive=second)
    peer.cancel()
    other.consume(tag="u")


def test_consume_from_a_missing_queue_fails_with_404(peer: Peer) -> None:
    with peer.fails(404):
        peer.do("Consume", queue="missing", consumer_tag="t")


@rule("0-9/file.consume/no-local", "0-10/file.consume/no-local")
def test_no_local_consumer_gets_no_content_of_its_own_connection(peer: Peer, connect: Connect) -> None:
    peer.declare().consume(no_local=True)
    other = connect()
    peer.publish(b"own").sibling().publish(b"of another channel")
    other.publish(b"foreign")
    assert peer.bodies() == [b"foreign"]
    other.consume()
    assert other.bodies() == [b"own", b"of another channel"]


@rule("0-9/file.consume/nowait", "0-10/file.consume/nowait")
def test_consume_with_nowait_is_not_answered(peer: Peer) -> None:
    peer.declare().publish(b"body")
    assert peer.do("Consume", queue="q", consumer_tag="t", **{peer.no_wait: True}).bodies() == [b"body"]


@pytest.mark.protocols("0-9")
@rule("0-9/file.consume/nowait")
def test_cancel_with_nowait_is_not_answered(peer: Peer) -> None:
    peer.declare().consume().do("Cancel", consumer_tag="t", no_wait=True)
    peer.publish(b"body").expect_nothing()


@rule("0-9/file.consume/01", "0-9/stream.consume/01")
@rule("0-10/file.consume/min-consumers", "0-10/stream.consume/min-consumers")
def test_twenty_consumers_of_a_queue_take_turns(peer: Peer, connect: Connect) -> None:
    peer.declare()
    tags = [f"t{number}" for number in range(20)]
    for tag in tags:
        peer.consume(tag=tag)
    other = connect()
    for tag in tags:
        other.publish(tag.encode())
    assert [(each.method.consumer_tag, each.body) for each in peer.take_all()] == [
        (tag, tag.encode()) for tag in tags
    ]


@rule("0-9/file.cancel/stops#stops", "0-9/file.cancel-ok/tag", "0-10/file.cancel/stops")
@rule("0-9/stream.cancel/stops-shortly", "0-9/stream.cancel-ok/tag", "0-10/stream.cancel/shortly")
@rule("0-10/file.consume-ok/tag", "0-10/stream.consume-ok/tag")
def test_no_content_is_delivered_after_cancel(peer: Peer) -> None:
    tag = peer.declare().ask("Consume", queue="q", consumer_tag="t").consumer_tag
    assert peer.publish(b"1").bodies() == [b"1"]
    peer.cancel(tag).publish(b"2").expect_nothing()
    assert peer.count() == 1


@pytest.mark.protocols("0-9")
def test_cancel_of_an_unknown_tag_or_one_of_another_class_has_no_effect(peer: Any) -> None:
    peer.declare()
    peer.client.consume("q", "basic")
    for tag in ("basic", "unknown"):
        peer.cancel(tag)
    peer.fill("q", b"body")
    assert peer.client.delivery().body == b"body"


@pytest.mark.protocols("0-10")
def test_cancel_of_an_unknown_tag_fails_with_404(peer: Peer) -> None:
    with peer.fails(404):
        peer.cancel("unknown")


# --- other classes and protocols ---------------------------------------------------------------------
@pytest.mark.protocols("0-9")
@rule("0-9/queue/any-content#independent", "0-9/content/mixed-classes")
@rule("0-9/file.publish/immediate-01", "0-9/stream.publish/immediate-01")
def test_contents_are_not_delivered_to_consumers_of_other_classes(peer: Any) -> None:
    peer.declare()
    peer.publish(b"1")
    peer.fill("q", b"basic")
    peer.client.consume("q", "basic")
    assert peer.client.delivery().body == b"basic"
    other = peer.sibling()
    other.content_class = {"file": "stream", "stream": "file"}[peer.content_class]
    other.consume(tag="other")
    peer.publish(b"2")
    peer.expect_nothing()
    peer.publish(b"3", immediate=True)
    assert peer.expect_content("Return").method.reply_code == 313
    peer.consume()
    assert peer.bodies() == [b"1", b"2"]


@pytest.mark.protocols("0-9")
@rule("0-9/content/child-contents")
def test_child_contents_are_delivered_and_returned_with_their_content(peer: Any) -> None:
    children = (Child(60, b"\0\0", b"inner", (Child(70, b"\0\0", b"innermost"),)),)
    peer.declare()
    for key in ("q", "nowhere"):
        if peer.content_class == "file":
            peer.open(4)
            peer.do_content("Stage", b"body", {}, children=children)
            peer.publish_staged(key, mandatory=True)
        else:
            peer.do_content("Publish", b"body", {}, routing_key=key, mandatory=True, children=children)
    returned = peer.expect_content("Return")
    assert (returned.body, returned.children) == (b"body", children)
    peer.consume()
    delivered = peer.take()
    assert (delivered.body, delivered.children) == (b"body", children)


@pytest.mark.protocols("0-9")
@pytest.mark.parametrize("headers_only", [False, True])
@rule("0-9/file/properties", "0-9/stream/properties")
def test_properties_are_delivered_in_the_octets_that_were_published(
    peer: Any, properties: dict[str, Any], headers_only: bool
) -> None:
    """Among them are headers of types that have no value in Python of their own."""
    is_file = peer.content_class == "file"
    octets = (FileProperties if is_file else StreamProperties)(**properties).encode()
    assert octets[:2] == (b"\xff\x80" if is_file else b"\xf8\x00")
    if headers_only:
        headers = b"\x01b" + b"b\x05" + b"\x01l" + b"l" + bytes(7) + b"\x09"
        octets = b"\x20\x00" + len(headers).to_bytes(4, "big") + headers
    peer.declare()
    peer.consume()
    if is_file:
        peer.open(4)
    method = m.FileStage() if is_file else m.StreamPublish(routing_key="q")
    child = Child(method.CLASS_ID, octets, b"body")
    peer.client.send_bytes(peer.client.method_frame(method) + content(child))
    if is_file:
        peer.publish_staged()
        peer.expect("Open")
        peer.do("OpenOk")
    peer.expect("Stage" if is_file else "Deliver")
    assert peer.client.take_frame().payload[12:] == octets


def test_client_of_0_9_1_gets_contents_with_their_properties(peer: Peer, properties: dict[str, Any]) -> None:
    peer.declare().publish(b"body", **properties)
    content = speaking(peer.server, "0-9-1").client().get("q", no_ack=True)
    assert content is not None and content.body == b"body"
    names = set(properties) - {"filename", "cluster_id"}
    assert {name: getattr(content.properties, name) for name in names} == {
        name: properties[name] for name in names
    }
    assert content.properties.delivery_mode == {"file": 2, "stream": None}[peer.content_class]


def test_contents_reach_clients_of_the_other_protocol_with_their_properties(
    protocol: str, server: Server, peer: Peer, connect: Connect, properties: dict[str, Any]
) -> None:
    other = connect(server=speaking(server, {"0-9": "0-10", "0-10": "0-9"}[protocol]))
    peer.declare().publish(b"body", **properties)
    other.consume()
    delivered = other.take()
    assert delivered.body == b"body"
    kept = {name: getattr(delivered.properties, name) for name in properties if name != "cluster_id"}
    assert kept == {name: value for name, value in properties.items() if name != "cluster_id"}


@pytest.mark.protocols("0-10")
def test_message_of_0_9_1_reaches_consumers_with_its_properties(
    server: Server, peer: Peer, properties: dict[str, Any]
) -> None:
    peer.declare()
    shared = {name: properties[name] for name in properties if name not in ("filename", "cluster_id")}
    speaking(server, "0-9-1").client().publish(b"body", routing_key="q", **shared)
    delivered = peer.consume().take()
    assert delivered.body == b"body"
    assert {name: getattr(delivered.properties, name) for name in shared} == shared


@pytest.mark.protocols("0-10")
@rule("0-10/file/properties", "0-10/stream/properties")
def test_contents_reach_subscriptions_of_class_message_and_transfers_reach_consumers(
    peer: Any, properties: dict[str, Any]
) -> None:
    peer.declare()
    peer.publish(b"there", **properties)
    peer.session.subscribe("q", accept_mode=1)
    transfer = peer.session.transfer()
    assert (transfer.body, transfer.delivery.routing_key) == (b"there", "q")
    mode = {"file": 2, "stream": None}[peer.content_class]
    assert (transfer.delivery.priority, transfer.delivery.delivery_mode) == (7, mode)
    assert (transfer.message.content_type, transfer.message.content_encoding) == ("text/plain", "utf-8")
    headers = transfer.message.application_headers or {}
    assert (headers["color"], headers["size"]) == ("red", 3)
    peer.session.call(x.MessageCancel(destination="d"))
    message = structs.MessageProperties(content_type="text/plain", application_headers={"color": "red"})
    peer.session.publish(b"back", message=message, priority=3)
    peer.consume()
    delivered = peer.take()
    assert delivered.body == b"back"
    back = delivered.properties
    assert (back.content_type, back.headers, back.priority) == ("text/plain", {"color": "red"}, 3)


# --- sessions of 0-10 --------------------------------------------------------------------------------
@pytest.mark.protocols("0-10")
@rule("0-10/file.deliver/staged")
def test_content_stays_queued_while_session_of_consumer_is_detached(connect: Connect) -> None:
    peer: Any = connect(timeout=60)
    peer.declare()
    peer.consume()
    peer.drop()
    other = connect()
    other.publish(b"1")
    assert other.count() == 1
    peer.session = peer.session.attach_again(at=peer.session.next_id, has=1)
    assert peer.bodies() == [b"1"]


@pytest.mark.protocols("0-10")
@rule("0-10/file.consume/no-local")
def test_no_local_applies_to_new_connection_after_session_is_attached_again(connect: Connect) -> None:
    peer: Any = connect(timeout=60)
    peer.declare()
    peer.consume(no_local=True)
    peer.drop()
    peer.session = peer.session.attach_again(at=peer.session.next_id, has=1)
    peer.publish(b"own")
    peer.expect_nothing()
    connect().publish(b"foreign")
    assert peer.bodies() == [b"foreign"]


@pytest.mark.protocols("0-10")
def test_deletion_of_queue_ends_session_of_consumer_with_408(peer: Any) -> None:
    peer.declare()
    peer.consume()
    peer.sibling().session.call(x.QueueDelete(queue="q"))
    assert peer.session.news(x.ExecutionException).error_code == 408


@pytest.mark.protocols("0-10")
def test_publish_without_topic_permission_for_key_fails_with_403(server: Server, connect: Connect) -> None:
    allowed = {("/", "amq.topic"): TopicPermission(write="^a")}
    server.state.access.add(User("ann", "pw", (), {"/": Permission()}, allowed))
    peer = connect(user="ann", password="pw")
    peer.publish(b"body", "a.b", exchange="amq.topic")
    with peer.fails(403):
        peer.publish(b"body", "b.a", exchange="amq.topic")


@pytest.mark.protocols("0-10")
@rule("0-10/file.qos-ok/confirm", "0-10/stream.qos-ok/confirm")
@rule("0-10/file.consume-ok/tag", "0-10/stream.consume-ok/tag")
def test_answers_are_numbered_as_commands_of_the_broker(peer: Any) -> None:
    class_code = {"file": b"\x09", "stream": b"\x0a"}[peer.content_class]
    peer.declare()
    peer.session.send(peer.kind("Qos")(prefetch_count=1))
    got = peer.session.arrival(peer.kind("QosOk"))
    assert (got.what.encode()[:2], got.id) == (class_code + b"\x02", 0)
    peer.session.send(peer.kind("Consume")(queue="q", consumer_tag="mine"))
    got = peer.session.arrival(peer.kind("ConsumeOk"))
    assert (got.what.encode()[:2], got.id) == (class_code + b"\x04", 1)
    peer.cancel(got.what.consumer_tag)
    assert peer.session.query("q").subscriber_count == 0


HEADERS: dict[str, list[structs.Struct] | None] = {
    "no": None,
    "empty": [],
    "other": [structs.MessageProperties()],
}


@pytest.mark.protocols("0-10")
@rule("0-10/file.stage/content#required", "0-10/stream/properties")
@pytest.mark.parametrize("header", HEADERS)
def test_content_without_properties_of_its_class_fails_with_503(peer: Any, header: str) -> None:
    if peer.content_class == "file":
        peer.open(4)
        command, codes = x.FileStage(), (9, 8)
    else:
        command, codes = x.StreamPublish(routing_key="q"), (10, 6)
    exception = peer.session.fails(command, 503, header=HEADERS[header], body=b"body")
    assert (exception.class_code, exception.command_code) == codes


@pytest.mark.protocols("0-10")
@rule("0-10/stream/properties")
def test_stream_publish_without_content_fails_with_503(peer: Any) -> None:
    exception = peer.session.fails(x.StreamPublish(routing_key="q"), 503)
    assert (exception.class_code, exception.command_code) == (10, 6)


@pytest.mark.protocols("0-10")
@pytest.mark.parametrize(
    ("content_class", "command", "code", "place"),
    [
        pytest.param(
            "file",
            x.FileConsume(queue=None, consumer_tag="u"),
            530,
            (9, 3, 0),
            marks=rule("0-10/file.consume/queue-queue-exists-if-empty"),
        ),
        pytest.param(
            "stream",
            x.StreamConsume(queue="", consumer_tag="u"),
            530,
            (10, 3, 0),
            marks=rule("0-10/stream.consume/queue-queue-exists-if-empty"),
        ),
        pytest.param(
            "file",
            x.FileConsume(queue="q", consumer_tag=None),
            530,
            (9, 3, 1),
            marks=rule("0-10/file.consume/consumer-tag-not-empty-consumer-tag"),
        ),
        pytest.param(
            "stream",
            x.StreamConsume(queue="q", consumer_tag=""),
            530,
            (10, 3, 1),
            marks=rule("0-10/stream.consume/consumer-tag-not-empty-consumer-tag"),
        ),
        ("file", x.FileConsume(queue="q", consumer_tag="t"), 530, (9, 3, 1)),
        ("stream", x.StreamConsume(queue="q", consumer_tag="t"), 530, (10, 3, 1)),
        ("file", x.FileOpenOk(staged_size=6), 531, (9, 7, 0)),
        ("file", x.FilePublish(routing_key="q", identifier="no"), 404, (9, 9, 4)),
        ("file", x.FileAck(delivery_tag=99), 406, (9, 12, 0)),
    ],
    indirect=["content_class"],
)
def test_exception_names_class_command_and_field(
    peer: Any, command: Command, code: int, place: tuple[int, int, int]
) -> None:
    peer.declare()
    peer.consume()
    peer.publish(b"body")
    exception = peer.session.fails(command, code)
    assert (exception.class_code, exception.command_code, exception.field_index) == place
