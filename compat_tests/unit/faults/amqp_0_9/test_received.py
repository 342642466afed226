"""Methods that come, also in requests and responses: what rules see of them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Child, Client
from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from compat_tests.unit.faults.server import seen
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, FileProperties, StreamProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body

# --- what a rule is about -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "wanted"),
    [
        (("queue.declare",), {"queue": "new", "ticket": 0}),
        (("queue.*",), {"queue": "new", "durable": True}),
        (("message.consume",), {"queue": "q", "destination": "d"}),
        (("message.cancel",), {"queue": "q"}),
        (("message.ok",), {"queue": "q", "body": b"two apples", "routing_key": "q", "exchange": ""}),
        (("message.reject",), {"body": b"three", "code": 0}),
        (("tx.*",), {}),
        (("channel.ping",), {}),
    ],
    ids=str,
)
def test_rule_fires_on_other_methods_that_meet_its_conditions(
    requester: Requester, faults: Faults, methods: tuple[str, ...], wanted: dict[str, Any]
) -> None:
    rule = faults.on(*methods, direction="received", **wanted)
    requester.client.call(m.QueueDeclare(queue="new", durable=True), m.QueueDeclareOk)
    requester.publish("q", b"two apples", b"three")
    requester.consume("q")
    one, other = requester.transfer(), requester.transfer()
    requester.answer(one.number)
    requester.answer(other.number, m.MessageReject(0, "no"))
    requester.call(m.MessageCancel(destination="d"), m.MessageOk)
    requester.call(m.ChannelPing(), m.ChannelOk)
    requester.request(m.ChannelPong)
    requester.client.call(m.TxSelect(), m.TxSelectOk)
    assert rule.hits == 1


def test_rule_about_one_protocol_does_not_fire_on_connections_of_another(server: FaultServer) -> None:
    of_0_9_1 = server.faults.on("basic.publish", protocol="0-9-1", optional=True)
    of_0_9 = server.faults.on("basic.publish", protocol="0-9")
    of_0_8 = server.faults.on("basic.publish", protocol="0-8", optional=True)
    shared = server.faults.on("basic.publish")
    client = server.client()
    client.declare("q")
    client.publish(b"x", routing_key="q")
    assert (of_0_9_1.hits, of_0_9.hits, of_0_8.hits, shared.hits) == (0, 1, 0, 1)


@pytest.mark.parametrize(
    ("method", "properties", "wanted"),
    [
        (m.BasicPublish(routing_key="q"), BasicProperties(message_id="1"), {"message_id": "1"}),
        (
            m.StreamPublish(routing_key="q"),
            StreamProperties(content_type="a/b", headers={"n": 1}),
            {"content_type": "a/b", "headers": {"n": 1}, "queue": "q"},
        ),
    ],
    ids=["basic", "stream"],
)
def test_rule_fires_on_contents_of_classes_basic_and_stream(
    client: Client, faults: Faults, method: Any, properties: Any, wanted: dict[str, Any]
) -> None:
    groups = seen(faults.on(method.NAME, exchange="", routing_key="q", body=b"two apples", **wanted))
    client.send_content(method, properties, b"two apples")
    client.send_content(method, type(properties)(), b"two apples")
    client.send_content(method, properties, b"two")
    assert [group.properties for group in groups] == [properties]


def test_rule_fires_on_a_staged_file_with_the_given_filename(client: Client, faults: Faults) -> None:
    groups = seen(faults.on("file.stage", filename="report", body=b"abc"))
    client.call(m.FileOpen(identifier="f", content_size=3), m.FileOpenOk)
    client.send_content(m.FileStage(), FileProperties(filename="report"), b"abc")
    assert [group.name for group in groups] == ["file.stage"]


def test_contents_inside_a_content_pass_a_rule_unchanged(client: Client, faults: Faults) -> None:
    groups = seen(faults.on("basic.publish", body=b"outer"))
    children = [Child(60, b"\0\0", b"inner", (Child(80, b"\0\0"),)), Child(70, b"\0\0", b"other")]
    client.send_content(m.BasicPublish(routing_key="q"), None, b"outer", children=children, frame_size=2)
    client.send_content(m.BasicPublish(routing_key="q"), None, b"outer")
    assert [group.body for group in groups] == [b"outer", b"outer"]
    client.send(m.BasicGet(queue="q", no_ack=True))
    got = client.expect_content(m.BasicGetOk)
    assert (got.body, got.children) == (b"outer", tuple(children))


def test_content_with_replaced_body_keeps_the_contents_inside_it(client: Client, faults: Faults) -> None:
    faults.on("basic.publish").replace(body=b"changed", priority=3)
    children = [Child(60, b"\0\0", b"inner")]
    client.send_content(m.BasicPublish(routing_key="q"), BasicProperties(type="t"), b"x", children=children)
    client.send(m.BasicGet(queue="q", no_ack=True))
    got = client.expect_content(m.BasicGetOk)
    assert (got.body, got.children) == (b"changed", tuple(children))
    assert got.properties == BasicProperties(type="t", priority=3)


def test_publish_without_content_closes_the_connection_and_is_no_hit(client: Client, faults: Faults) -> None:
    rule = faults.on("basic.publish").drop()
    client.send(m.BasicPublish(routing_key="q"))
    client.ends(m.BasicGet(queue="q"), 505)
    assert rule.hits == 0


def test_rule_fires_on_the_ack_of_a_file_that_meets_its_conditions(client: Client, faults: Faults) -> None:
    acked = faults.on("file.ack", queue="q", body=b"abc", routing_key="q", filename="report")
    client.call(m.FileConsume(queue="q", consumer_tag="t"), m.FileConsumeOk)
    client.call(m.FileOpen(identifier="f", content_size=3), m.FileOpenOk)
    client.send_content(m.FileStage(), FileProperties(filename="report"), b"abc")
    client.send(m.FilePublish(routing_key="q", identifier="f"))
    client.expect(m.FileOpen)
    client.send(m.FileOpenOk(staged_size=0))
    client.expect_content(m.FileStage)
    tag = client.expect(m.FileDeliver).delivery_tag
    client.send(m.FileAck(delivery_tag=tag, multiple=True))
    assert acked.hits == 1


@pytest.mark.parametrize("multiple", [False, True])
def test_rule_about_a_file_ack_considers_every_file_that_its_tag_covers(
    client: Client, faults: Faults, multiple: bool
) -> None:
    acked = [faults.on("file.ack", filename=name) for name in ("first", "second")]
    client.call(m.FileConsume(queue="q", consumer_tag="t"), m.FileConsumeOk)
    tags = []
    for name in ("first", "second"):
        client.call(m.FileOpen(identifier=name, content_size=3), m.FileOpenOk)
        client.send_content(m.FileStage(), FileProperties(filename=name), b"abc")
        client.send(m.FilePublish(routing_key="q", identifier=name))
        client.expect(m.FileOpen)
        client.send(m.FileOpenOk(staged_size=0))
        client.expect_content(m.FileStage)
        tags.append(client.expect(m.FileDeliver).delivery_tag)
    client.send(m.FileAck(delivery_tag=tags[1], multiple=multiple))
    assert [rule.hits for rule in acked] == [int(multiple), 1]


def test_near_miss_of_a_0_9_rule_names_the_field_that_differs(requester: Requester, faults: Faults) -> None:
    rule = faults.on("message.transfer", routing_key="orders.#").drop()
    requester.publish("q", b"one")
    assert list(rule.near_misses()) == [
        "message.transfer exchange='' routing_key='q' destination='': routing_key is 'q', not 'orders.#'"
    ]


# --- what becomes of it -------------------------------------------------------------------------------


def test_dropped_request_keeps_its_number(server: FaultServer, requester: Requester) -> None:
    server.faults.on("message.transfer", body=b"two").drop()
    for body in (b"one", b"two", b"three"):
        requester.ask(m.MessageTransfer(routing_key="q", body=Body(body)))
    assert [requester.response(m.MessageOk).first for _ in range(2)] == [1, 3]
    assert not requester.client.inbox
    assert server.bodies() == [b"one", b"three"]


def test_dropped_message_ok_leaves_its_message_unsettled(server: FaultServer, requester: Requester) -> None:
    requester.publish("q", b"one", b"two")
    requester.consume("q")
    one, two = requester.transfer(), requester.transfer()
    rule = server.faults.on("message.ok", direction="received").drop().once()
    requester.answer(one.number)
    requester.answer(two.number)
    assert rule.hits == 1
    requester.client.drop()
    assert server.bodies() == [b"one"]


@pytest.mark.parametrize(("offset", "hits"), [(0, [1, 0]), (1, [1, 1])])
def test_rule_about_a_response_considers_every_message_that_it_covers(
    requester: Requester, faults: Faults, offset: int, hits: list[int]
) -> None:
    requester.publish("q", b"one", b"two")
    requester.consume("q")
    one, _ = requester.transfer(), requester.transfer()
    rules = [faults.on("message.ok", direction="received", body=body) for body in (b"one", b"two")]
    requester.answer(one.number, offset=offset)
    assert [rule.hits for rule in rules] == hits


def test_refused_transfer_is_answered_with_message_reject(server: FaultServer, requester: Requester) -> None:
    server.faults.on("message.transfer", routing_key="q").nack().once()
    reply = requester.call(m.MessageTransfer(routing_key="q", body=Body(b"no")), m.MessageReject)
    assert reply.code == 0
    requester.publish("q", b"yes")
    assert server.bodies() == [b"yes"]


def test_refused_malformed_transfer_is_lost_without_an_answer(server: FaultServer, client: Client) -> None:
    rule = server.faults.on("message.transfer", direction="received").nack().once()
    client.send_frame(1, 1, b"\x00\x78\x00\x0a\x00")  # Class 120, method 10, and one octet of its fields.
    assert (rule.hits, rule.error) == (1, None)
    assert "no confirms on this channel: the message is lost without an answer" in server.said


def test_replaced_property_is_computed_from_the_received_value(requester: Requester, faults: Faults) -> None:
    faults.on("message.transfer").replace(priority=lambda known: known + 1, app_id=lambda known: known * 2)
    requester.call(m.MessageTransfer(routing_key="q", body=Body(b"x"), app_id="a", priority=3), m.MessageOk)
    faults.clear()
    got = requester.get("q")
    assert got is not None
    assert (got.method.priority, got.method.app_id) == (4, "aa")


def test_broker_receives_the_replaced_values_of_a_transfer(requester: Requester, faults: Faults) -> None:
    headers = {"x": 5, "tag": 1.5}
    faults.on("message.transfer").replace(
        body=lambda body: body + b"!", headers=headers, priority=7, routing_key="q", type="t", user_id="guest"
    )
    requester.call(m.MessageTransfer(routing_key="nowhere", body=Body(b"x"), app_id="a"), m.MessageOk)
    faults.clear()
    got = requester.get("q")
    assert got is not None
    assert got.method.body == Body(b"x!")
    assert (got.method.priority, got.method.app_id, got.method.user_id) == (7, "a", "guest")
    assert got.method.application_headers.items() >= headers.items()


def test_duplicated_transfer_is_answered_twice_and_stored_once(
    server: FaultServer, requester: Requester
) -> None:
    server.faults.on("message.transfer").duplicate()
    number = requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"x")))
    assert [requester.response(m.MessageOk)[:2] for _ in range(2)] == [(1, number), (1, number)]
    assert server.bodies() == [b"x"]


def test_transfer_behind_a_held_transfer_waits_for_it(server: FaultServer, requester: Requester) -> None:
    rule = server.faults.on("message.transfer", body=b"one").hold().once()
    requester.ask(
        m.MessageTransfer(routing_key="q", body=Body(b"one")),
        m.MessageTransfer(routing_key="q", body=Body(b"two")),
    )
    assert server.bodies() == []
    rule.release()
    told = [requester.response(m.MessageOk) for _ in range(len(requester.client.inbox))]
    assert [(each.first, each.offset) for each in told] in ([(1, 0), (2, 0)], [(1, 1)])
    assert server.bodies() == [b"one", b"two"]


def test_close_channel_on_a_request_names_its_class_and_method(requester: Requester, faults: Faults) -> None:
    faults.on("message.transfer").close_channel(404).once()
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"x")))
    close = requester.client.expect(m.ChannelClose)
    assert (close.reply_code, close.class_id, close.method_id) == (404, 120, 10)
