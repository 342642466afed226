"""What the header of 0-9 gives in RabbitMQ, 0-9-1 with its extensions, and the rest of 0-9 beside it.

RabbitMQ 4.0.5 and 4.3.6 answer all raw cases of `compat_tests/differential` alike over both headers.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted import amqp_0_9_1
from compat_tests.scripted.amqp_0_9 import Child, Client, Server
from compat_tests.scripted.contents import speaking
from compat_tests.scripted.contents_0_9 import Channel
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.matrix import rows
from fakeamqp.model.personality import personality as personality_named
from fakeamqp.protocols.amqp_0_9.choices import letter_of
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

ALL_CAPABILITIES = {
    "capabilities": dict.fromkeys(
        ("consumer_cancel_notify", "connection.blocked", "authentication_failure_close"), True
    )
}


@pytest.fixture
def server(lenient: Server) -> Server:
    return lenient


@pytest.fixture
def client(server: Server) -> Client:
    return server.client(client_properties=ALL_CAPABILITIES)


# --- what 0-9-1 has ------------------------------------------------------------------------------------
@rows("name", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
def test_connection_start_has_the_same_bytes_as_in_0_9_1(name: str) -> None:
    started = []
    for client in (Server(name).connect(), amqp_0_9_1.Server(name).connect()):
        client.send_bytes(client.protocol_header)
        started.append(client.take_bytes())
    assert started[0] == started[1]
    assert b"publisher_confirms" in started[0]


@pytest.mark.parametrize("name", ["0", "unknown"])
def test_channel_open_ignores_an_unknown_out_of_band_transport(client: Client, name: str) -> None:
    client.perform(m.ChannelOpen(out_of_band=name), channel=3)
    client.publish(b"in band", routing_key="q", channel=3).expect_nothing()


def test_publishes_are_confirmed(client: Client) -> None:
    client.declare("q").perform(shared.ConfirmSelect()).fill("q", b"1", b"2")
    assert [client.expect(shared.BasicAck).delivery_tag for _ in range(2)] == [1, 2]


def test_confirms_and_transfers_share_a_channel(client: Client) -> None:
    client.declare("q").perform(shared.ConfirmSelect())
    Requester(client).publish("q", b"a transfer")
    assert client.publish(b"a publish", routing_key="q").expect(shared.BasicAck).delivery_tag == 1
    assert client.empty("q") == [b"a transfer", b"a publish"]


def test_deliveries_are_refused_with_nack(client: Client) -> None:
    client.declare("q").fill("q", b"1", b"2")
    for _ in range(2):
        client.get("q")
    client.send(shared.BasicNack(delivery_tag=2, multiple=True, requeue=True))
    assert client.empty("q") == [b"1", b"2"]


def test_exchanges_are_bound_to_exchanges(client: Client) -> None:
    client.declare_exchange("e", "fanout").declare("q").bind("q", "e")
    bind = {"destination": "e", "source": "amq.direct", "routing_key": "k"}
    client.perform(shared.ExchangeBind(**bind))
    client.publish(b"x", exchange="amq.direct", routing_key="k").perform(shared.ExchangeUnbind(**bind))
    assert client.publish(b"y", exchange="amq.direct", routing_key="k").empty("q") == [b"x"]


def test_a_client_learns_that_its_queue_is_deleted(client: Client, server: Server) -> None:
    client.declare("q").consume("q", "tag")
    server.client().send(m.QueueDelete(queue="q"))
    assert client.expect(m.BasicCancel).consumer_tag == "tag"


def test_blocked_client_gets_connection_blocked_with_the_reason(client: Client) -> None:
    client.connection.set_blocked("low on memory")  # type: ignore[union-attr]
    assert client.publish(b"x").expect(shared.ConnectionBlocked, 0).reason == "low on memory"
    client.connection.set_blocked(None)  # type: ignore[union-attr]
    client.expect(shared.ConnectionUnblocked, 0)


def test_direct_reply_to_delivers_the_answer(client: Client) -> None:
    client.declare("q")
    consumer = m.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True)
    client.call(consumer, m.BasicConsumeOk)
    client.publish(b"ask", routing_key="q", reply_to="amq.rabbitmq.reply-to")
    address = client.get("q").properties.reply_to
    assert address.startswith("amq.rabbitmq.reply-to.")
    assert client.publish(b"answer", routing_key=address).delivery().body == b"answer"


def test_update_secret_is_answered_with_update_secret_ok(client: Client) -> None:
    client.perform(shared.ConnectionUpdateSecret(new_secret=b"s"), channel=0)


def test_recover_of_0_9_1_is_answered_and_that_of_0_9_is_not(client: Client) -> None:
    client.declare("q").fill("q", b"x").get("q")
    client.perform(shared.BasicRecover(requeue=True)).get("q")
    client.send(m.BasicRecover(requeue=True)).expect_nothing()
    assert client.empty("q") == [b"x"]


@rows(
    "method, code, text",
    (m.QueueDeclare(queue="no", passive=True), 404, "NOT_FOUND - no queue 'no' in vhost '/'"),
    pytest.param(
        m.BasicConsume(),
        404,
        "NOT_FOUND - no previously declared queue",
        marks=pytest.mark.deviates("0-9/basic.consume/queue-01"),
    ),
    pytest.param(
        m.ExchangeDeclare(exchange="amq.direct", type="fanout"),
        406,
        "PRECONDITION_FAILED - inequivalent",
        marks=pytest.mark.deviates("0-9/exchange.declare/type-typed#refused"),
    ),
    (m.QueueBind(queue="q", exchange=""), 403, "ACCESS_REFUSED - operation not permitted on the default"),
)
def test_channel_errors_have_texts_of_rabbitmq(server: Server, method: Any, code: int, text: str) -> None:
    server.client().declare("q")
    close = server.client().send(method).expect(m.ChannelClose)
    assert close.reply_code == code
    assert close.reply_text.startswith(text)


# --- and what only 0-9 has -----------------------------------------------------------------------------
def test_consumers_of_class_basic_get_messages_of_class_basic_only(client: Client) -> None:
    client.declare("q")
    Channel(client, "file").publish(b"a file")
    assert client.fill("q", b"a message").consume("q", "tag").bodies() == [b"a message"]


def test_cancel_is_for_consumers_of_class_basic(client: Client) -> None:
    client.declare("q").perform(m.FileConsume(queue="q", consumer_tag="f"))
    client.perform(m.BasicCancel(consumer_tag="f"))
    assert list(client.connection.channels[1].consumers) == ["f"]  # type: ignore[union-attr]


def test_a_method_in_a_request_is_that_of_0_9(client: Client) -> None:
    """RabbitMQ has no requests: who sends one speaks 0-9."""
    requester = Requester(client)
    requester.call(m.ExchangeDeclare(exchange="e", type="direct"), m.ExchangeDeclareOk)
    requester.call(m.ExchangeDeclare(exchange="e", type="direct", durable=True), m.ExchangeDeclareOk)
    client.send(m.ExchangeDeclare(exchange="e", type="direct", durable=True))
    assert client.expect(m.ChannelClose).reply_code == 406


def test_methods_that_0_9_does_not_have_go_in_requests_too(client: Client) -> None:
    Requester(client).call(shared.ConfirmSelect(), shared.ConfirmSelectOk)


def test_message_with_child_contents_is_returned_whole_by_get(client: Client) -> None:
    client.declare("q")
    child = Child(60, b"\0\0", b"inner")
    client.send_content(m.BasicPublish(routing_key="q"), BasicProperties(), b"outer", children=[child])
    got = client.get("q")
    assert (got.body, got.children) == (b"outer", (child,))


def test_a_confirmed_content_has_no_children(client: Client) -> None:
    client.perform(shared.ConfirmSelect())
    child = Child(60, b"\0\0", b"inner")
    client.send_content(m.BasicPublish(), BasicProperties(), b"outer", children=[child])
    client.expect_connection_close(505)


@rows(
    "first, then, text",
    (m.DtxSelect(), shared.ConfirmSelect(), "cannot switch from dtx to confirm mode"),
    (m.DtxSelect(), m.TxSelect(), "cannot switch from dtx to tx mode"),
    (shared.ConfirmSelect(), m.DtxSelect(), "the channel is in confirm mode"),
)
def test_channel_refuses_second_transaction_mode(client: Client, first: Any, then: Any, text: str) -> None:
    client.send(first).take_bytes()
    assert client.send(then).expect(m.ChannelClose).reply_text == f"PRECONDITION_FAILED - {text}"


def test_dtx_start_after_a_publish_is_refused_with_406(client: Client) -> None:
    client.publish(b"x").perform(m.DtxSelect())
    assert client.send(m.DtxStart(dtx_identifier="x")).expect(m.ChannelClose).reply_code == 406


def test_a_transfer_of_a_rolled_back_transaction_comes_again_after_the_answer(client: Client) -> None:
    client.declare("q").fill("q", b"x")
    requester = Requester(client)
    client.perform(m.TxSelect())
    requester.consume("q").answer(requester.transfer().number)
    client.send(m.TxRollback()).expect(m.TxRollbackOk)
    assert requester.bodies() == [b"x"]


def test_a_resumed_consumer_keeps_its_prefetch(server: Server) -> None:
    client = server.client(channels=0)
    channel_id = client.send(m.ChannelOpen()).expect(m.ChannelOpenOk).channel_id
    client.declare("q").qos(1).consume("q", "tag").drop()
    client = server.client(channels=0)
    client.call(m.ChannelResume(channel_id), m.ChannelOk)
    assert client.fill("q", b"1", b"2").bodies() == [b"1"]


# --- the letter ----------------------------------------------------------------------------------------
def test_letter_of_the_spec_personality_is_the_spec_personality() -> None:
    assert letter_of("spec") is personality_named("spec")


@pytest.mark.parametrize("personality", ["spec", letter_of("rabbitmq-4.2")], ids=["spec", "letter"])
@pytest.mark.parametrize(
    "method",
    [shared.ConfirmSelect(), shared.ExchangeBind(), shared.BasicNack(), shared.BasicRecover()],
    ids=lambda each: each.NAME,
)
def test_rabbitmq_extensions_are_refused_with_540_to_the_letter(personality: Any, method: Any) -> None:
    Server(personality).client().ends(method, 540)
    assert "capabilities" not in _properties(Server(personality))


def _properties(server: Server) -> Any:
    client = server.connect()
    client.send_bytes(client.protocol_header)
    return client.expect(m.ConnectionStart, 0).server_properties


def test_messages_go_back_and_forth_between_both_headers(server: Server) -> None:
    server.client().declare("q").publish(b"x", routing_key="q", headers={"n": 1}, type="t")
    got = speaking(server, "0-9-1").client().get("q")
    assert got is not None
    assert (got.body, got.properties.headers, got.properties.type) == (b"x", {"n": 1}, "t")


@pytest.mark.parametrize("how", ["got", "delivered"])
def test_content_header_larger_than_the_clients_frame_max_is_sent(server: Server, how: str) -> None:
    publisher, reader = server.client(), server.client(frame_max=8192)
    publisher.declare("q").publish(routing_key="q", headers={"long": "x" * 20_000})
    if how == "got":
        content = reader.send(m.BasicGet(queue="q")).expect_content(m.BasicGetOk)
    else:
        content = reader.consume("q").expect_content(m.BasicDeliver)
    assert len(content.properties.headers["long"]) == 20_000
