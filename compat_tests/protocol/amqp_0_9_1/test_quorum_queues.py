"""Quorum queues: how they are declared and deleted, what they count, and what outlives a restart.

RabbitMQ: documented; the texts are measured. What differs between its versions is told by personality.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.quorum import ALL, RABBITMQ, arguments, client_of, counts, declare
from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import QueueDeclare as Declare

PLACE = "queue 'q' in vhost '/'"


def asking(**flags_and_arguments: Any) -> Declare:
    flags = {name: flags_and_arguments.pop(name, name == "durable") for name in ("durable", "exclusive")}
    auto_delete = flags_and_arguments.pop("auto_delete", False)
    return Declare(queue="q", auto_delete=auto_delete, arguments=arguments(**flags_and_arguments), **flags)


# --- declaration --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_quorum_queue_gets_messages_of_default_exchange_and_of_bindings(name: str) -> None:
    client = client_of(name).fill("q", b"1", b"2").bind("q", "amq.fanout")
    assert client.publish(b"3", exchange="amq.fanout").empty("q") == [b"1", b"2", b"3"]


@pytest.mark.parametrize("name", RABBITMQ)
@rows(
    "flags, wrong",
    ({"auto_delete": True}, "auto-delete"),
    ({"exclusive": True}, "exclusive-owner"),
    ({"auto_delete": True, "exclusive": True}, "auto-delete"),
)
def test_exclusive_or_auto_delete_quorum_queue_fails(name: str, flags: dict[str, bool], wrong: str) -> None:
    client = Server(name).client()
    refused(client, asking(**flags), 406, f"PRECONDITION_FAILED - invalid property '{wrong}' for {PLACE}")


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "spec"])
def test_non_durable_quorum_queue_is_refused_up_to_4_2(name: str) -> None:
    client = Server(name).client()
    text = f"PRECONDITION_FAILED - invalid property 'non-durable' for {PLACE}"
    refused(client, asking(durable=False), 406, text)
    refused(
        client,
        asking(durable=False, auto_delete=True, exclusive=True),
        406,
        text.replace("non-durable", "auto-delete"),
    )


@pytest.mark.parametrize("name", RABBITMQ)
def test_server_named_quorum_queue_is_refused(name: str) -> None:
    client = Server(name).client()
    text = client.fails(Declare(queue="", durable=True, arguments=arguments()), 406).reply_text
    assert text.endswith("Cannot declare a server-named queue for type rabbit_quorum_queue")


ILLEGAL = [
    ("x-dead-letter-strategy", "sometimes", "invalid_dlx_strategy"),
    ("x-dead-letter-strategy", 5, "{unacceptable_type,signedint}"),
    ("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
    ("x-overflow", "bogus", "invalid_overflow"),
    ("x-expires", 0, "{value_zero,0}"),
    ("x-message-ttl", -1, "{value_negative,-1}"),
    ("x-max-length", "5", '"expected integer, got longstr"'),
    ("x-max-in-memory-length", -1, "{value_negative,-1}"),
    ("x-max-in-memory-bytes", "5", '"expected integer, got longstr"'),
    ("x-single-active-consumer", "yes", "{unacceptable_type,longstr}"),
    ("x-quorum-initial-group-size", 0, "{value_zero,0}"),
    ("x-queue-leader-locator", "nowhere", "invalid_queue_locator_arg"),
]


@pytest.mark.parametrize(("argument", "value", "reason"), ILLEGAL, ids=[f"{a}={v!r}" for a, v, _ in ILLEGAL])
@pytest.mark.parametrize("name", RABBITMQ)
def test_invalid_arguments_of_quorum_queue_are_refused_with_406(
    name: str, argument: str, value: Any, reason: str
) -> None:
    method = Declare(queue="q", durable=True, arguments={"x-queue-type": "quorum", argument: value})
    text = f"PRECONDITION_FAILED - invalid arg '{argument}' for {PLACE}: {reason}"
    refused(Server(name).client(), method, 406, text)


@pytest.mark.parametrize("argument", ["x-max-priority", "x-queue-mode", "x-queue-version", "x-max-age"])
@pytest.mark.parametrize("name", RABBITMQ)
def test_arguments_of_other_queue_types_are_refused_whatever_their_value(name: str, argument: str) -> None:
    method = Declare(queue="q", durable=True, arguments={"x-queue-type": "quorum", argument: "?"})
    text = f"PRECONDITION_FAILED - invalid arg '{argument}' for {PLACE} of queue type rabbit_quorum_queue"
    refused(Server(name).client(), method, 406, text)


@pytest.mark.parametrize("name", RABBITMQ)
def test_argument_values_are_validated_before_flags(name: str) -> None:
    text = f"PRECONDITION_FAILED - invalid arg 'x-max-length' for {PLACE}: {{value_negative,-1}}"
    refused(Server(name).client(), asking(auto_delete=True, max_length=-1), 406, text)


@pytest.mark.parametrize("value", [-1, 0, 5, "abc", 2.5, None])
@pytest.mark.parametrize("name", RABBITMQ)
def test_x_delivery_limit_of_any_value_is_accepted(name: str, value: Any) -> None:
    declare(Server(name).client(), delivery_limit=value)


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.parametrize("value", ["always", 5, None])
def test_delayed_retry_arguments_of_any_value_are_accepted(value: Any) -> None:
    client = Server("rabbitmq-4.3").client()
    declare(client, delayed_retry_type=value, delayed_retry_min=value, delayed_retry_max=value)


@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish", "reject-publish-dlx"])
@pytest.mark.parametrize("name", RABBITMQ)
def test_quorum_queue_accepts_all_overflow_values(name: str, overflow: str) -> None:
    declare(Server(name).client(), overflow=overflow, max_length=5)


# --- redeclaration ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_quorum_queue_may_be_declared_again_with_same_arguments(name: str) -> None:
    declare(client_of(name, delivery_limit=3, max_length=5), delivery_limit=3, max_length=5)


@pytest.mark.parametrize("name", RABBITMQ)
@rows(
    "argument, value, shown, kind",
    ("x-delivery-limit", 3, "3", "signedint"),
    ("x-dead-letter-strategy", "at-least-once", "at-least-once", "longstr"),
    ("x-quorum-initial-group-size", 3, "3", "signedint"),
    ("x-queue-leader-locator", "balanced", "balanced", "longstr"),
    ("x-message-ttl", 1000, "1000", "signedint"),
)
def test_redeclare_with_additional_argument_is_refused(
    name: str, argument: str, value: Any, shown: str, kind: str
) -> None:
    client = client_of(name)
    text = f"PRECONDITION_FAILED - inequivalent arg '{argument}' for {PLACE}: received the value "
    text += f"'{shown}' of type '{kind}' but current is none"
    method = Declare(queue="q", durable=True, arguments={"x-queue-type": "quorum", argument: value})
    refused(client, method, 406, text)


@pytest.mark.parametrize("name", RABBITMQ)
def test_first_of_several_different_arguments_in_order_of_rabbitmq_is_named(name: str) -> None:
    client = client_of(name).send(asking(message_ttl=5, delivery_limit=5, max_length=5, expires=5))
    assert "inequivalent arg 'x-expires'" in client.expect_channel_close(406).reply_text


@pytest.mark.parametrize("name", RABBITMQ)
def test_arguments_unknown_to_quorum_queues_are_not_compared_in_redeclare(name: str) -> None:
    client = client_of(name)
    client.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-max-priority": 5, "x-other": 1})


@rows(
    "name, said",
    ("rabbitmq-3.13", "received none but current is the value 'quorum' of type 'longstr'"),
    ("rabbitmq-4.0", "received 'classic' but current is 'quorum'"),
    ("rabbitmq-4.2", "received 'classic' but current is 'quorum'"),
    ("rabbitmq-4.3", "received 'classic' but current is 'quorum'"),
)
def test_redeclare_of_quorum_queue_as_classic_is_refused(name: str, said: str) -> None:
    text = f"PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for {PLACE}: "
    refused(client_of(name), Declare(queue="q", durable=True), 406, text + said)
    explicit = Declare(queue="q", durable=True, arguments={"x-queue-type": "classic"})
    refused(client_of(name), explicit, 406, text + "received 'classic' but current is 'quorum'")


@rows(
    "name, said",
    ("rabbitmq-3.13", "received the value 'quorum' of type 'longstr' but current is none"),
    ("rabbitmq-4.2", "received 'quorum' but current is 'classic'"),
)
def test_redeclare_of_classic_queue_as_quorum_is_refused(name: str, said: str) -> None:
    client = Server(name).client().declare("q", durable=True)
    text = f"PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for {PLACE}: {said}"
    refused(client, asking(), 406, text)


@pytest.mark.parametrize(("name", "compared"), [("rabbitmq-4.2", False), ("rabbitmq-4.3", True)])
def test_x_consumer_timeout_is_compared_in_redeclare_since_4_3(name: str, compared: bool) -> None:
    client = client_of(name, consumer_timeout=1000).send(asking(consumer_timeout=2000))
    if compared:
        assert "'x-consumer-timeout'" in client.expect_channel_close(406).reply_text
    else:
        client.expect(m.QueueDeclareOk)


# --- deletion, purge, counts --------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
@rows(
    "conditions, flag",
    ({"if_unused": True}, "if-unused"),
    ({"if_empty": True}, "if-empty"),
    ({"if_unused": True, "if_empty": True}, "if-unused"),
)
def test_delete_with_if_unused_or_if_empty_closes_connection_with_540(
    name: str, conditions: dict[str, bool], flag: str
) -> None:
    client = client_of(name).send(m.QueueDelete(queue="q", **conditions))
    text = f"NOT_IMPLEMENTED - cannot delete {PLACE}. queue.delete operations with {flag} flag set are not "
    assert client.expect_connection_close(540).reply_text == text + "supported by quorum queues"


@pytest.mark.parametrize("name", ALL)
def test_delete_ok_of_quorum_queue_counts_ready_messages(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1", b"2", b"3").get("q")
    assert client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk).message_count == 2
    client.ack(1)  # What is left of it harms nobody.
    assert declare(client).count("q") == 0


@pytest.mark.parametrize("name", ALL)
def test_purge_of_quorum_queue_drops_ready_and_requeued_messages(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1", b"2", b"3", b"4").get("q")
    client.get("q")
    assert client.nack(2).call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 3
    assert client.count("q") == 0
    assert client.nack(1).empty("q") == [b"1"]


def consumers(client: Client) -> int:
    return client.declare_ok("q", passive=True).consumer_count


@pytest.mark.parametrize("name", RABBITMQ)
def test_channel_or_cancelled_consumer_with_unacknowledged_message_counts_as_consumer(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1", b"2").get("q")
    assert consumers(client) == 1
    client.consume("q", "t").delivery()
    assert consumers(client) == 2
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)
    assert consumers(client) == 2
    client.ack(2)
    assert consumers(client) == 1
    client.ack(1)
    assert consumers(client) == 0


# --- expiry of the queue ------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize("name", RABBITMQ)
def test_unused_quorum_queue_is_deleted_when_x_expires_has_passed(name: str) -> None:
    """RabbitMQ only looks every five seconds, and promises no more than some time after."""
    server = Server(name)
    declare(server.client(), expires=5500)
    server.advance(5.25)
    assert "q" in server.vhost.queues
    server.advance(0.25)
    assert "q" not in server.vhost.queues


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_get_restarts_expiry_of_quorum_queue_and_declare_does_not() -> None:
    server = Server("rabbitmq-4.2")
    client = declare(declare(server.client(), expires=7000), name="got", expires=7000)
    server.advance(4)
    declare(client, expires=7000).count("q")
    assert client.get("got") is None
    server.advance(3)
    assert list(server.vhost.queues) == ["got"]
    server.advance(4)
    assert not server.vhost.queues


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_quorum_queue_with_consumer_or_unacknowledged_message_does_not_expire() -> None:
    server = Server("rabbitmq-4.2")
    client = server.client(channels=2)
    declare(client, expires=1000).fill("q", b"1").get("q")
    client.consume("q", "t", channel=2).after(60).close_channel(2)
    server.advance(60)
    assert "q" in server.vhost.queues
    client.ack(1)
    server.advance(5)
    assert "q" not in server.vhost.queues


# --- restart ------------------------------------------------------------------------------------------------
@pytest.mark.needs("restart", "inspection")
@pytest.mark.parametrize("name", ALL)
def test_messages_of_any_delivery_mode_survive_restart_in_quorum_queue(name: str) -> None:
    server = Server(name)
    client = declare(server.client())
    for mode in (1, 2, None):
        client.publish(b"%d" % (mode or 0), routing_key="q", delivery_mode=mode)
    client = server.restart().client()
    got = [client.get("q", no_ack=True) for _ in range(3)]
    assert [(each.body, each.properties.delivery_mode) for each in got if each] == [
        (b"1", 1),
        (b"2", 2),
        (b"0", None),
    ]


@pytest.mark.needs("restart", "inspection")
@pytest.mark.parametrize("name", RABBITMQ)
def test_messages_unacknowledged_at_restart_are_redelivered_first(name: str) -> None:
    server = Server(name)
    client = declare(server.client())
    client.fill("q", b"1", b"2", b"3").qos(2).consume("q")
    client = server.restart().client()
    got = [client.get("q", no_ack=True) for _ in range(3)]
    assert [(each.body, counts(each)[:2]) for each in got if each] == [
        (b"1", (True, 1)),
        (b"2", (True, 1)),
        (b"3", (False, None)),
    ]


@pytest.mark.needs("restart", "inspection", "personality rabbitmq-4.2")
def test_crash_loses_unconfirmed_messages_and_keeps_confirmed_ones() -> None:
    server = Server("rabbitmq-4.2")
    client = server.client()
    declare(client).fill("q", b"unconfirmed").perform(m.ConfirmSelect())
    client.fill("q", b"confirmed")
    server.restart(crash=True)
    assert server.client().empty("q") == [b"confirmed"]


# --- transactions and confirms ------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_publish_to_quorum_queue_is_confirmed(name: str) -> None:
    client = client_of(name)
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    assert client.fill("q", b"1").expect(m.BasicAck).delivery_tag == 1


@pytest.mark.parametrize("name", ALL)
def test_publish_and_ack_in_transaction_take_effect_at_commit(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1").call(m.TxSelect(), m.TxSelectOk)
    client.fill("q", b"2").get("q")
    assert client.ack(1).count("q") == 0
    client.call(m.TxCommit(), m.TxCommitOk)
    assert client.empty("q") == [b"2"]


@pytest.mark.parametrize("name", ALL)
def test_rolled_back_nack_leaves_message_unacknowledged(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1").call(m.TxSelect(), m.TxSelectOk)
    client.get("q")
    client.nack(1).call(m.TxRollback(), m.TxRollbackOk)
    assert client.count("q") == 0
    got = client.close_channel().open_channel().get("q")
    assert got is not None and counts(got)[0]
