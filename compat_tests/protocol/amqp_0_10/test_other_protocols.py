"""Messages that one client publishes in AMQP 0-9-1 and another receives in 0-10, and the other way."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.timestamps import Timestamp


@pytest.fixture
def session(session: Session) -> Session:
    return session.declare("q")


@pytest.fixture
def older(server: Server) -> Client:
    """A client of 0-9-1 on the same broker as `session`."""
    return server.client()


UUID_TEXT = "00112233-4455-6677-8899-aabbccddeeff"
HEADERS = {
    "text": "\xe9",
    "number": 7,
    "flag": True,
    "nothing": None,
    "list": [1, "a"],
    "table": {"deep": 1.5},
}


# --- properties --------------------------------------------------------------------------------------
def test_properties_of_0_9_1_message_reach_0_10_subscriber(older: Client, session: Session) -> None:
    older.publish(
        b"body",
        routing_key="q",
        content_type="text/plain",
        content_encoding="gzip",
        headers=HEADERS,
        delivery_mode=2,
        priority=5,
        correlation_id="correlation",
        reply_to="answers",
        message_id=UUID_TEXT,
        timestamp=Timestamp(1234),
        user_id="guest",
        app_id="tests",
    )
    (transfer,) = session.subscribe().transfers()
    assert transfer.body == b"body"
    delivery, message = transfer.delivery, transfer.message
    assert (delivery.exchange, delivery.routing_key, transfer.redelivered) == ("", "q", False)
    assert (delivery.delivery_mode, delivery.priority, delivery.timestamp) == (2, 5, 1234)
    assert (message.content_type, message.content_encoding) == ("text/plain", "gzip")
    assert message.application_headers == HEADERS
    assert (message.correlation_id, message.user_id, message.app_id) == (b"correlation", b"guest", b"tests")
    assert message.reply_to == structs.ReplyTo(routing_key="answers")
    assert message.message_id == UUID(UUID_TEXT)


def test_properties_of_0_10_message_reach_0_9_1_client(older: Client, session: Session) -> None:
    session.publish(
        b"body",
        delivery_mode=2,
        priority=5,
        ttl=60_000,
        message=structs.MessageProperties(
            message_id=UUID(UUID_TEXT),
            correlation_id=b"correlation",
            reply_to=structs.ReplyTo("amq.direct", "k"),
            content_type="text/plain",
            content_encoding="gzip",
            user_id=b"guest",
            app_id=b"tests",
            application_headers=HEADERS,
        ),
    )
    content = older.fetch("q", no_ack=True)
    got = content.properties
    assert (content.body, content.method.exchange, content.method.routing_key) == (b"body", "", "q")
    assert (got.delivery_mode, got.priority, got.expiration) == (2, 5, "60000")
    assert (got.message_id, got.correlation_id, got.reply_to) == (UUID_TEXT, "correlation", "amq.direct/k")
    assert (got.content_type, got.content_encoding) == ("text/plain", "gzip")
    assert (got.user_id, got.app_id, got.headers) == ("guest", "tests", HEADERS)


@pytest.mark.parametrize("body", [b"", None])
def test_absent_body_reaches_0_9_1_client_empty(older: Client, session: Session, body: bytes | None) -> None:
    session.publish(body)
    assert older.fetch("q", no_ack=True).body == b""


def test_empty_body_of_0_9_1_message_reaches_0_10_subscriber_empty(older: Client, session: Session) -> None:
    older.publish(b"", routing_key="q")
    assert session.subscribe().bodies() == [b""]


def test_consumers_of_0_9_1_and_0_10_receive_same_headers(older: Client, session: Session) -> None:
    """Nothing that one of them is sent changes what the next one gets."""
    older.declare("other")
    for queue in ("q", "other"):
        session.bind(queue, "amq.fanout")
    sent = [
        lambda: older.publish(exchange="amq.fanout", headers={"n": 1}),
        lambda: session.publish(
            exchange="amq.fanout", message=structs.MessageProperties(application_headers={"n": 1})
        ),
    ]
    older.consume("other", no_ack=True)
    session.subscribe("q", "d", accept_mode=1).subscribe("other", "browser", acquire_mode=1)
    for send in sent:
        send()
        content = older.delivery()
        transfers = session.transfers()
        assert [each.command.destination for each in transfers] in (["d"], ["d", "browser"], ["browser", "d"])
        assert content.properties.headers == {"n": 1}
        assert all(each.message.application_headers == {"n": 1} for each in transfers)


def test_cc_and_bcc_headers_of_0_10_message_are_not_used_for_routing(lenient: Server) -> None:
    """RabbitMQ reads them; to clients of 0-10 they are ordinary headers."""
    session = lenient.session().declare("q").declare("copy")
    headers = {"CC": ["copy"], "BCC": "a text"}
    session.publish(message=structs.MessageProperties(application_headers=headers))
    assert session.query("copy").message_count == 0
    assert session.subscribe().transfer().message.application_headers == headers


def test_cc_copy_of_0_9_1_message_reaches_0_10_subscriber_without_bcc_header(lenient: Server) -> None:
    session = lenient.session().declare("copy")
    lenient.client().publish(routing_key="nobody", headers={"CC": ["copy"], "BCC": ["hidden"]})
    (transfer,) = session.subscribe("copy").transfers()
    assert transfer.message.application_headers == {"CC": ["copy"]}
    assert transfer.delivery.routing_key == "nobody"


# --- redelivery, dead letters, time ------------------------------------------------------------------
def test_message_requeued_by_0_9_1_client_is_redelivered_to_0_10(older: Client, session: Session) -> None:
    session.publish()
    content = older.fetch("q")
    assert not content.method.redelivered
    older.reject(content.method.delivery_tag, requeue=True)
    assert session.subscribe().transfer().redelivered


@pytest.mark.parametrize("marked", [True, False])
def test_message_released_by_0_10_is_redelivered_to_0_9_1_if_marked(
    older: Client, session: Session, marked: bool
) -> None:
    older.publish(routing_key="q")
    (transfer,) = session.subscribe(credit=1).transfers()
    session.release(transfer.id, set_redelivered=marked)
    assert older.fetch("q").method.redelivered is marked


def deaths(transfer: Any) -> Any:
    return transfer.message.application_headers["x-death"]


def test_dead_letter_of_0_9_1_reaches_0_10_with_x_death(older: Client, session: Session) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    older.declare("mortal", arguments=arguments)
    older.publish(b"body", routing_key="mortal", headers={"mine": 1}, content_type="a/b")
    content = older.fetch("mortal")
    older.reject(content.method.delivery_tag)
    (transfer,) = session.subscribe().transfers()
    assert (transfer.body, transfer.message.content_type) == (b"body", "a/b")
    (death,) = deaths(transfer)
    assert (death["queue"], death["reason"], death["count"]) == ("mortal", "rejected", 1)
    assert death["routing-keys"] == ["mortal"]
    assert (transfer.message.application_headers["mine"], transfer.delivery.routing_key) == (1, "q")


def test_message_rejected_by_0_10_is_dead_lettered_as_in_0_9_1(older: Client, session: Session) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    older.declare("mortal", arguments=arguments)
    session.publish(b"body", key="mortal", message=structs.MessageProperties(application_headers={"mine": 1}))
    (transfer,) = session.subscribe("mortal").transfers()
    session.reject(transfer.id)
    headers = older.fetch("q", no_ack=True).properties.headers
    assert (headers["mine"], headers["x-death"][0]["queue"]) == (1, "mortal")
    assert headers["x-death"][0]["reason"] == "rejected"


def test_expiration_of_0_9_1_message_reaches_0_10_as_remaining_ttl(lenient: Server) -> None:
    session = lenient.session().declare("q")
    older = lenient.client()
    for expiration in ("1000", "5000"):
        older.publish(expiration.encode(), routing_key="q", expiration=expiration)
    (transfer,) = session.after(2).subscribe().transfers()
    assert (transfer.body, transfer.delivery.ttl) == (b"5000", 3000)


def test_message_expired_by_0_10_ttl_is_not_delivered_to_0_9_1(server: Server) -> None:
    session = server.session().declare("q")
    for ttl in (1000, 5000):
        session.publish(str(ttl).encode(), ttl=ttl)
    server.advance(2)
    older = server.client()
    assert older.fetch("q", no_ack=True).body == b"5000"
    assert older.get("q") is None


# --- confirms and answers ----------------------------------------------------------------------------
@pytest.mark.parametrize("accept_mode", [0, 1])
def test_publish_of_0_9_1_is_confirmed_when_delivered_to_0_10(lenient: Server, accept_mode: int) -> None:
    session = lenient.session().declare("q").subscribe(accept_mode=accept_mode)
    older = lenient.client()
    assert older.perform(m.ConfirmSelect()).publish(routing_key="q").expect(m.BasicAck).delivery_tag == 1
    assert len(session.transfers()) == 1


def test_mandatory_0_9_1_message_delivered_to_0_10_is_not_returned(older: Client, session: Session) -> None:
    session.subscribe()
    older.publish(routing_key="q", mandatory=True).expect_nothing()
    assert len(session.transfers()) == 1


def test_0_10_client_replies_to_direct_reply_to_address(lenient: Server) -> None:
    session = lenient.session().declare("q").subscribe()
    older = lenient.client().consume("amq.rabbitmq.reply-to", no_ack=True)
    older.publish(b"question", routing_key="q", reply_to="amq.rabbitmq.reply-to", correlation_id="1")
    (question,) = session.transfers()
    address = question.message.reply_to
    assert address is not None
    answer = structs.MessageProperties(correlation_id=question.message.correlation_id)
    session.publish(b"answer", exchange=address.exchange, key=address.routing_key, message=answer)
    content = older.delivery()
    assert (content.body, content.properties.correlation_id) == (b"answer", "1")


def test_0_9_1_client_replies_to_exclusive_queue_of_0_10(older: Client, session: Session) -> None:
    older.declare("questions")
    session.declare("answers", exclusive=True, auto_delete=True).subscribe("answers")
    asked = structs.MessageProperties(reply_to=structs.ReplyTo("", "answers"), correlation_id=b"1")
    session.publish(b"question", key="questions", message=asked)
    content = older.fetch("questions", no_ack=True)
    older.publish(
        b"answer", routing_key=content.properties.reply_to, correlation_id=content.properties.correlation_id
    )
    (answer,) = session.transfers()
    assert (answer.body, answer.message.correlation_id) == (b"answer", b"1")


# --- sharing queues ----------------------------------------------------------------------------------
def test_consumers_of_0_9_1_and_0_10_receive_messages_in_turn(older: Client, session: Session) -> None:
    older.consume("q", no_ack=True)
    session.subscribe(accept_mode=1)
    for number in range(4):
        session.publish(f"{number}".encode())
    assert session.bodies() == [b"1", b"3"]
    assert older.bodies() == [b"0", b"2"]


def test_exclusive_0_9_1_consumer_locks_out_0_10_subscription(server: Server) -> None:
    session, older = server.session(), server.client()
    session.declare("q")
    older.consume("q", exclusive=True)
    session.fails(x.MessageSubscribe(queue="q", destination="d"), 405)


def test_message_of_lost_0_9_1_connection_is_redelivered_to_0_10(older: Client, session: Session) -> None:
    session.publish()
    assert older.consume("q").bodies() == [b"body"]
    session.subscribe().expect_nothing()
    older.drop()
    assert session.transfer().redelivered
