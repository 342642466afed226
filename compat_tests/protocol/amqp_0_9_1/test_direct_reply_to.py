"""Direct reply-to: the pseudo-queue amq.rabbitmq.reply-to (RabbitMQ: documented extension; measured)."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.messages.message import Message, plain_properties
from fakeamqp.model.routing import ReplyAddress
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

PSEUDO_QUEUE = "amq.rabbitmq.reply-to"


def ask(client: Client, tag: str = "rt") -> str:
    """Consume replies, publish a question, and return the address that came with it."""
    client.declare("questions")
    if tag:
        client.consume(PSEUDO_QUEUE, tag, no_ack=True)
    client.publish(b"?", routing_key="questions", reply_to=PSEUDO_QUEUE, correlation_id="1")
    question = client.fetch("questions", no_ack=True)
    assert question.properties.correlation_id == "1"
    assert question.properties.reply_to is not None
    return question.properties.reply_to


@pytest.fixture
def asker(rabbitmq: Server) -> Client:
    return rabbitmq.client()


@pytest.fixture
def answerer(rabbitmq: Server) -> Client:
    return rabbitmq.client()


# --- the round trip ----------------------------------------------------------------------------------
def test_reply_is_delivered_to_the_channel_of_the_reply_consumer(asker: Client, answerer: Client) -> None:
    address = ask(asker)
    answerer.publish(b"!", routing_key=address, correlation_id="1")
    answer = asker.delivery()
    assert (answer.body, answer.properties.correlation_id) == (b"!", "1")
    assert (answer.method.consumer_tag, answer.method.redelivered) == ("rt", False)
    assert (answer.method.exchange, answer.method.routing_key) == ("", address)


def test_reply_address_is_the_pseudo_queue_name_with_two_suffixes(asker: Client) -> None:
    assert re.fullmatch(r"amq\.rabbitmq\.reply-to\.[A-Za-z0-9+/=_-]+\.[A-Za-z0-9+/=_-]+", ask(asker))


def test_reply_address_of_a_channel_is_the_same_for_every_request(asker: Client) -> None:
    assert ask(asker) == ask(asker, tag="")


def test_reply_addresses_of_two_channels_differ(rabbitmq: Server) -> None:
    assert ask(rabbitmq.client()) != ask(rabbitmq.client())


@pytest.mark.needs("personality rabbitmq-4.3")
def test_replies_use_the_delivery_tags_of_the_channel(asker: Client, answerer: Client) -> None:
    address = ask(asker)  # Which took tag 1 for its get.
    answerer.fill(address, b"1", b"2")
    assert [asker.delivery().method.delivery_tag for _ in range(2)] == [2, 3]


def test_other_reply_to_value_is_delivered_unchanged(asker: Client) -> None:
    asker.declare("q").publish(routing_key="q", reply_to="my own queue")
    assert asker.fetch("q").properties.reply_to == "my own queue"


@pytest.mark.needs("personality rabbitmq-4.3")
def test_mandatory_reply_to_live_address_is_confirmed(asker: Client, answerer: Client) -> None:
    address = ask(asker)
    answerer.perform(m.ConfirmSelect())
    assert answerer.publish(b"!", routing_key=address, mandatory=True).expect(m.BasicAck).delivery_tag == 1
    answerer.expect_nothing()
    assert asker.delivery().body == b"!"


@pytest.mark.parametrize("end", ["cancel", "channel", "connection"])
@rows("name", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
def test_mandatory_reply_to_ended_address_is_returned_until_4_1(name: str, end: str) -> None:
    # Measured on 4.0.5 and 4.3.6; 4.2.9 by its tagged source.
    server = Server(name)
    asker, answerer = server.client(), server.client()
    address = ask(asker)
    if end == "cancel":
        asker.perform(m.BasicCancel(consumer_tag="rt"))
    elif end == "channel":
        asker.close_channel()
    else:
        asker.drop()
    answerer.publish(b"!", routing_key=address, mandatory=True)
    if name in ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1"):
        returned = answerer.expect_content(m.BasicReturn)
        assert (returned.method.reply_code, returned.method.routing_key) == (312, address)
    answerer.expect_nothing()
    asker.expect_nothing()


def test_transacted_reply_to_address_ended_before_commit_is_dropped(asker: Client, answerer: Client) -> None:
    address = ask(asker)
    answerer.perform(m.TxSelect()).publish(b"!", routing_key=address)
    asker.perform(m.BasicCancel(consumer_tag="rt"))
    answerer.perform(m.TxCommit())
    asker.expect_nothing()


@pytest.mark.parametrize("routing_key", [PSEUDO_QUEUE, f"{PSEUDO_QUEUE}.bogus", f"{PSEUDO_QUEUE}.a.b"])
def test_reply_to_unknown_address_is_unroutable(answerer: Client, routing_key: str) -> None:
    answerer.publish(routing_key=routing_key, mandatory=True)
    assert answerer.expect_content(m.BasicReturn).method.reply_code == 312


def test_reply_address_is_unroutable_through_other_exchanges(asker: Client, answerer: Client) -> None:
    answerer.publish(exchange="amq.direct", routing_key=ask(asker), mandatory=True)
    assert answerer.expect_content(m.BasicReturn).method.reply_code == 312
    asker.expect_nothing()


# --- consuming replies -------------------------------------------------------------------------------
def test_reply_consumer_with_acknowledgement_is_refused(asker: Client) -> None:
    asker.fails(
        m.BasicConsume(queue=PSEUDO_QUEUE),
        406,
        text="PRECONDITION_FAILED - reply consumer cannot acknowledge",
    )


def test_second_reply_consumer_on_a_channel_is_refused(asker: Client) -> None:
    asker.consume(PSEUDO_QUEUE, "1", no_ack=True)
    assert asker.fails(m.BasicConsume(queue=PSEUDO_QUEUE, consumer_tag="2", no_ack=True), 406).reply_text == (
        "PRECONDITION_FAILED - reply consumer already set"
    )


def test_new_reply_consumer_after_cancel_has_a_new_address(asker: Client, answerer: Client) -> None:
    old = ask(asker, "1")
    asker.perform(m.BasicCancel(consumer_tag="1"))
    new = ask(asker, "2")
    assert old != new
    answerer.fill(new, b"!")
    assert asker.delivery().method.consumer_tag == "2"


def test_reply_consumer_with_empty_tag_receives_generated_tag(asker: Client) -> None:
    assert asker.consume_ok(PSEUDO_QUEUE, "", no_ack=True).consumer_tag.startswith("amq.ctag-")


def test_exclusive_reply_consumer_is_accepted(asker: Client) -> None:
    assert asker.consume_ok(PSEUDO_QUEUE, "t", no_ack=True, exclusive=True).consumer_tag == "t"


def test_reply_consumer_with_tag_in_use_closes_the_connection_with_530(asker: Client) -> None:
    asker.declare("q").consume("q", "t")
    asker.ends(m.BasicConsume(queue=PSEUDO_QUEUE, consumer_tag="t", no_ack=True), 530)


def test_request_without_reply_consumer_on_its_channel_is_refused(asker: Client) -> None:
    asker.open_channel(2).consume(PSEUDO_QUEUE, no_ack=True, channel=2)
    asker.publish(routing_key="q", reply_to=PSEUDO_QUEUE)
    asker.expect_channel_close(
        406, text="PRECONDITION_FAILED - fast reply consumer does not exist", at=(60, 40)
    )


# --- the name as that of a queue ---------------------------------------------------------------------
@pytest.mark.parametrize("passive", [False, True])
def test_declare_of_the_pseudo_queue_succeeds_without_reply_consumer(asker: Client, passive: bool) -> None:
    ok = asker.declare_ok(PSEUDO_QUEUE, passive=passive)
    assert (ok.queue, ok.message_count, ok.consumer_count) == (PSEUDO_QUEUE, 0, 1)


@pytest.mark.parametrize("passive", [False, True])
def test_declare_of_reply_address_succeeds_only_while_its_consumer_exists(
    asker: Client, answerer: Client, passive: bool
) -> None:
    address = ask(asker)
    ok = answerer.declare_ok(address, passive=passive)
    assert (ok.queue, ok.message_count, ok.consumer_count) == (address, 0, 1)
    asker.perform(m.BasicCancel(consumer_tag="rt"))
    assert answerer.fails(m.QueueDeclare(queue=address, passive=passive), 404).reply_text == (
        f"NOT_FOUND - no queue '{address}' in vhost '/'"
    )


@pytest.mark.parametrize("method", [m.QueuePurge, m.BasicGet], ids=lambda each: each.NAME)
def test_purge_and_get_on_the_pseudo_queue_fail_with_404(asker: Client, method: type[m.Method]) -> None:
    assert asker.fails(method(queue=PSEUDO_QUEUE), 404).reply_text == (
        "NOT_FOUND - no queue 'amq.rabbitmq.reply-to' in vhost '/'"
    )


def test_declare_of_the_pseudo_queue_makes_it_the_last_declared_queue(asker: Client) -> None:
    asker.declare(PSEUDO_QUEUE).send(m.BasicGet(queue=""))
    assert f"no queue '{PSEUDO_QUEUE}'" in asker.expect_channel_close(404).reply_text


def test_delete_of_pseudo_queue_or_address_does_not_stop_replies(asker: Client, answerer: Client) -> None:
    address = ask(asker)
    for name in (PSEUDO_QUEUE, address):
        assert answerer.call(m.QueueDelete(queue=name), m.QueueDeleteOk).message_count == 0
    answerer.fill(address, b"!")
    assert asker.delivery().body == b"!"


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.parametrize("method", [m.QueueBind, m.QueueUnbind], ids=lambda each: each.NAME)
def test_binding_of_reply_address_is_refused(asker: Client, answerer: Client, method: type[m.Method]) -> None:
    close = answerer.fails(method(queue=ask(asker), exchange="amq.direct"), 403)
    assert close.reply_text == (
        "ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue"
    )
    assert (close.class_id, close.method_id) == (method.CLASS_ID, method.METHOD_ID)


def test_spec_personality_does_not_implement_direct_reply_to(spec: Server) -> None:
    client = spec.client()
    client.fails(m.BasicConsume(queue=PSEUDO_QUEUE, no_ack=True), 404)
    client.open_channel().declare("q").publish(routing_key="q", reply_to=PSEUDO_QUEUE)
    assert client.fetch("q").properties.reply_to == PSEUDO_QUEUE


@pytest.mark.needs("own broker")
def test_dead_letter_to_reply_address_is_delivered_without_redelivered_flag() -> None:
    told: list[tuple[object, bool, object]] = []

    class Requester:
        def deliver(self, _: object, message: object, redelivered: bool, delivery: object) -> None:
            told.append((message, redelivered, delivery))

    address = ReplyAddress("a", SimpleNamespace(admits=lambda _: True, subscriber=Requester()))  # type: ignore[arg-type]
    message = Message("", "a", plain_properties(), b"reply")
    assert address.enqueue(message, True) is True
    assert told == [(message, False, None)]
