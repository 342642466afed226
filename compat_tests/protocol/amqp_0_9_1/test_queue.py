"""Class queue: declare, purge, delete. Binding is in test_queue_bind, arguments in test_queue_arguments."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import (
    QueueDeclare as Declare,
    QueueDeclareOk as DeclareOk,
    QueueDelete as Delete,
    QueueDeleteOk as DeleteOk,
    QueuePurge as Purge,
    QueuePurgeOk as PurgeOk,
)

NO_QUEUE = "NOT_FOUND - no queue '{}' in vhost '/'"
NO_CURRENT_QUEUE = "NOT_FOUND - no previously declared queue"
LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{}' in vhost '/'. It could be "
    "originally declared on another connection or the exclusive property value does not match that of the "
    "original declaration."
)


def exists(client: Client, queue: str) -> bool:
    """Asks by passive declare; the channel is open again afterwards."""
    frame = client.send(Declare(queue=queue, passive=True)).take_frame()
    if isinstance(frame.method, DeclareOk):
        return True
    assert isinstance(frame.method, m.ChannelClose)
    assert frame.method.reply_code == 404
    client.send(m.ChannelCloseOk()).open_channel()
    return False


def inequivalent(flag: str, received: object, current: object) -> str:
    text = f"PRECONDITION_FAILED - inequivalent arg '{flag}' for queue 'q' in vhost '/': "
    return text + f"received '{str(received).lower()}' but current is '{str(current).lower()}'"


@pytest.mark.rule("0-9/queue/grammar", "0-9-1/queue/grammar")
def test_every_method_is_answered_once_by_its_ok(client: Client) -> None:
    for method, reply in (
        (Declare(queue="q"), DeclareOk),
        (m.QueueBind(queue="q", exchange="amq.direct"), m.QueueBindOk),
        (m.QueueUnbind(queue="q", exchange="amq.direct"), m.QueueUnbindOk),
        (Purge(queue="q"), PurgeOk),
        (Delete(queue="q"), DeleteOk),
    ):
        client.call(method, reply)
        client.expect_nothing()


@pytest.mark.rule("0-9-1/queue/needs-binding")
def test_queue_without_bindings_gets_only_messages_of_the_default_exchange(client: Client) -> None:
    client.declare("q")
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.match"):
        client.publish(exchange=exchange, routing_key="q")
    assert client.count("q") == 0
    assert client.publish(exchange="", routing_key="q").count("q") == 1


@pytest.mark.rule("0-9-1/queue/auto-delete-delay")
def test_auto_delete_queue_is_deleted_at_once_when_its_consumer_is_cancelled(client: Client) -> None:
    tag = client.declare("q", auto_delete=True).consume_ok("q").consumer_tag
    client.perform(m.BasicCancel(consumer_tag=tag))
    assert not exists(client, "q")


# --- declare: names --------------------------------------------------------------------------------
@pytest.mark.rule("0-9/exchange-type.direct/auto-binding", "0-9-1/queue.declare/default-binding")
def test_a_new_queue_is_bound_to_the_default_exchange_by_its_name(client: Client) -> None:
    client.declare("q").publish(b"for q", routing_key="q")
    assert client.publish(routing_key="Q").fetch("q").body == b"for q"
    assert client.get("q") is None


@pytest.mark.rule("0-9-1/queue.declare/minimum-queues")
def test_three_hundred_queues_fit_into_a_virtual_host(client: Client) -> None:
    for number in range(300):
        client.declare(f"q{number}")
    client.publish(routing_key="q0").publish(routing_key="q299")
    assert [client.count("q0"), client.count("q150"), client.count("q299")] == [1, 0, 1]


@pytest.mark.rule("0-9-1/queue.declare/queue-default-name#unique")
@pytest.mark.rule("0-9-1/queue.declare/queue-default-name#told")
def test_queue_declared_without_name_gets_unique_amq_gen_name(server: Server) -> None:
    client, other = server.client(), server.client()
    names = [client.declare_ok("").queue, client.declare_ok("").queue, other.declare_ok("").queue]
    assert len(set(names)) == 3
    for name in names:
        assert name.startswith("amq.gen-")
        assert len(name) == len("amq.gen-") + 22
        assert exists(client, name)


@pytest.mark.rule("0-9-1/queue.declare/queue-reserved#new")
def test_queue_with_reserved_prefix_amq_is_refused(client: Client) -> None:
    text = "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"
    refused(client, Declare(queue="amq.mine"), 403, text)
    refused(client, Declare(queue="amq.mine", passive=True), 404, NO_QUEUE.format("amq.mine"))
    assert client.declare_ok("amq").queue == "amq"


@pytest.mark.rule("0-9-1/queue.declare/queue-reserved#passive", "0-9-1/queue.declare/queue-reserved#existing")
def test_spec_personality_accepts_redeclare_of_existing_queue_with_reserved_name(spec: Server) -> None:
    client = spec.client()
    name = client.declare_ok("", exclusive=True).queue
    assert client.declare_ok(name, passive=True).queue == name
    assert client.declare_ok(name, exclusive=True).queue == name


@pytest.mark.rule("0-9-1/queue.declare/queue-reserved#passive")
@pytest.mark.deviates("0-9-1/queue.declare/queue-reserved#existing")
def test_rabbitmq_accepts_only_passive_redeclare_of_queue_with_reserved_name(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    name = client.declare_ok("", exclusive=True).queue
    assert client.declare_ok(name, passive=True).queue == name
    text = f"ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'"
    refused(client, Declare(queue=name, exclusive=True), 403, text)


@pytest.mark.rule("0-9-1/queue.declare/queue-syntax")
@pytest.mark.parametrize("name", ["a/b", "a b", "é", "it's", "a\t"])
def test_spec_personality_refuses_queue_name_with_other_than_letters_digits_and_four_signs(
    spec: Server, name: str
) -> None:
    client = spec.client()
    client.fails(Declare(queue=name), 406)
    assert client.open_channel().declare_ok("aZ09-_.:").queue == "aZ09-_.:"


@pytest.mark.deviates("0-9-1/queue.declare/queue-syntax")
@pytest.mark.parametrize("name", ["a/b", "a b", "é", "it's", "a\0b"])
def test_rabbitmq_accepts_queue_name_of_any_characters(rabbitmq: Server, name: str) -> None:
    client = rabbitmq.client()
    assert client.declare_ok(name).queue == name
    assert client.publish(routing_key=name).count(name) == 1


def test_line_ends_are_removed_from_queue_names_except_in_get(rabbitmq: Server) -> None:
    # RabbitMQ: measured. Where a queue is used its name is taken as it comes.
    client = rabbitmq.client()
    assert client.declare_ok("a\r\nb").queue == "ab"
    assert client.declare_ok("\nab", passive=True).queue == "ab"
    assert client.bind("a\nb", "amq.fanout").publish(exchange="amq.fanout").count("ab") == 1
    client.fails(m.BasicGet(queue="a\nb"), 404)
    assert client.open_channel().call(Delete(queue="a\rb"), DeleteOk).message_count == 1
    assert client.declare_ok("\r\n").queue.startswith("amq.gen-")


# --- declare: passive ------------------------------------------------------------------------------
@pytest.mark.rule("0-9/queue.declare/passive#creates-nothing")
@pytest.mark.rule("0-9-1/queue.declare/passive-passive#exists", "0-9-1/queue.declare/passive-passive#missing")
def test_passive_declare_succeeds_for_existing_queue_and_fails_with_404_for_missing(client: Client) -> None:
    assert client.declare("here").declare_ok("here", passive=True).queue == "here"
    refused(client, Declare(queue="missing", passive=True), 404, NO_QUEUE.format("missing"))
    refused(client, Declare(queue="missing", passive=True), 404, NO_QUEUE.format("missing"))


def test_a_passive_declare_needs_a_name(client: Client) -> None:
    # RabbitMQ: measured. A blank name is not that of the current queue here.
    client.declare("q")
    refused(client, Declare(queue="", passive=True), 404, NO_QUEUE.format(""))


@pytest.mark.rule("0-9/queue.declare/passive#arguments", "0-9-1/queue.declare/passive-ignores-fields")
def test_passive_declare_ignores_all_fields_except_the_name(client: Client) -> None:
    client.declare("q")
    flipped: dict[str, Any] = {
        "durable": True,
        "exclusive": True,
        "auto_delete": True,
        "arguments": {"x-expires": 0},
    }
    assert client.declare_ok("q", passive=True, **flipped).queue == "q"
    client.send(Declare(queue="q", passive=True, no_wait=True)).expect_nothing()
    client.declare("q")  # As it was declared at first.


@pytest.mark.rule("0-9-1/queue.declare/passive-no-wait")
def test_passive_declare_of_missing_queue_with_no_wait_is_ignored_by_spec_personality(spec: Server) -> None:
    client = spec.client()
    client.send(Declare(queue="missing", passive=True, no_wait=True)).expect_nothing()
    assert not exists(client, "missing")


@pytest.mark.deviates("0-9-1/queue.declare/passive-no-wait")
def test_rabbitmq_refuses_passive_declare_of_missing_queue_even_with_no_wait(rabbitmq: Server) -> None:
    method = Declare(queue="missing", passive=True, no_wait=True)
    refused(rabbitmq.client(), method, 404, NO_QUEUE.format("missing"))


@pytest.mark.rule("0-9-1/queue.declare/passive-sets-current")
def test_a_passive_declare_sets_the_current_queue(server: Server) -> None:
    client = server.client(channels=2).declare("q", channel=1)
    client.publish(b"current", routing_key="q", channel=1)
    assert client.declare("q", passive=True, channel=2).fetch("", channel=2).body == b"current"


@pytest.mark.rule("0-9-1/queue.declare/no-wait-silent")
def test_a_declare_with_no_wait_is_not_answered(client: Client) -> None:
    client.send(Declare(queue="q", no_wait=True)).expect_nothing()
    client.declare("q", passive=True).expect_nothing()


# --- declare: equivalence --------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/queue.declare/passive-equivalent#same")
@pytest.mark.rule("0-9-1/queue.declare/passive-equivalent#durable")
@pytest.mark.parametrize("durable", [True, False])
def test_a_redeclare_must_repeat_durability(client: Client, durable: bool) -> None:
    client.declare("q", durable=durable)
    assert client.publish(routing_key="q").declare_ok("q", durable=durable).message_count == 1
    text = inequivalent("durable", not durable, durable)
    refused(client, Declare(queue="q", durable=not durable), 406, text)
    refused(client, Declare(queue="q", durable=not durable, arguments={"x-expires": 9}), 406, text)


@pytest.mark.rule("0-9-1/queue.declare/passive-equivalent#same")
@pytest.mark.rule("0-9-1/queue.declare/passive-equivalent#exclusive")
@pytest.mark.parametrize("exclusive", [True, False])
def test_a_redeclare_must_repeat_exclusivity(client: Client, exclusive: bool) -> None:
    client.declare("q", exclusive=exclusive).declare("q", exclusive=exclusive)
    refused(client, Declare(queue="q", exclusive=not exclusive), 405, LOCKED.format("q"))


@pytest.mark.rule("0-9-1/queue.declare/passive-equivalent#same")
@pytest.mark.rule("0-9-1/queue.declare/passive-equivalent#auto-delete")
@pytest.mark.parametrize("auto_delete", [True, False])
def test_a_redeclare_must_repeat_auto_delete_with_rabbitmq(rabbitmq: Server, auto_delete: bool) -> None:
    client = rabbitmq.client().declare("q", auto_delete=auto_delete).declare("q", auto_delete=auto_delete)
    text = inequivalent("auto_delete", not auto_delete, auto_delete)
    refused(client, Declare(queue="q", auto_delete=not auto_delete), 406, text)


def test_an_exclusive_queue_is_never_durable(client: Client) -> None:
    # RabbitMQ: measured.
    client.declare("q", exclusive=True, durable=True).declare("q", exclusive=True, durable=False)
    client.declare("p", exclusive=True, durable=False).declare("p", exclusive=True, durable=True)


@pytest.mark.rule("0-9-1/queue.declare/auto-delete-pre-existence")
@pytest.mark.deviates("0-9-1/queue.declare/passive-equivalent#auto-delete")  # The two contradict each other.
def test_spec_personality_ignores_auto_delete_in_redeclare_of_existing_queue(spec: Server) -> None:
    client = spec.client().declare("stays", auto_delete=False).declare("goes", auto_delete=True)
    client.declare("stays", auto_delete=True).declare("goes", auto_delete=False)
    for queue in ("stays", "goes"):
        tag = client.consume_ok(queue).consumer_tag
        client.perform(m.BasicCancel(consumer_tag=tag))
    assert exists(client, "stays")
    assert not exists(client, "goes")


@pytest.mark.deviates("0-9-1/queue.declare/auto-delete-pre-existence")
def test_auto_delete_is_compared_by_rabbitmq_and_the_setting_stays(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q", auto_delete=True)
    refused(client, Declare(queue="q"), 406, inequivalent("auto_delete", False, True))
    tag = client.consume_ok("q").consumer_tag
    client.perform(m.BasicCancel(consumer_tag=tag))
    assert not exists(client, "q")


# --- declare: durable ------------------------------------------------------------------------------
@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/queue.declare/durable-persistence")
def test_durable_queue_survives_a_restart(server: Server) -> None:
    server.client().declare("q", durable=True).drop()
    server.state.restart()
    again = server.client().declare("q", durable=True)
    assert again.publish(b"new", routing_key="q").fetch("q").body == b"new"


@pytest.mark.rule("0-9-1/queue.declare/durable-types#durable", "0-9-1/queue.declare/durable-types#transient")
def test_durable_and_transient_queues_can_be_declared(client: Client) -> None:
    for name, durable in (("durable", True), ("transient", False)):
        assert client.declare(name, durable=durable).publish(routing_key=name).count(name) == 1


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/queue.declare/durable-transient-gone")
def test_a_transient_queue_is_gone_after_a_restart(server: Server) -> None:
    server.client().declare("q").publish(routing_key="q", delivery_mode=2).drop()
    server.state.restart()
    again = server.client()
    refused(again, Declare(queue="q", passive=True), 404, NO_QUEUE.format("q"))
    assert again.declare_ok("q").message_count == 0


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/queue.declare/durable-nonpersistent-content")
def test_a_durable_queue_does_not_make_its_messages_persistent(server: Server) -> None:
    client = server.client().declare("q", durable=True)
    client.publish(b"transient", routing_key="q", delivery_mode=1)
    client.publish(b"persistent", routing_key="q", delivery_mode=2)
    client.publish(b"not said", routing_key="q").drop()
    server.state.restart()
    again = server.client()
    assert again.fetch("q").body == b"persistent"
    assert again.get("q") is None


# --- declare: exclusive ----------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/queue.declare/exclusive-types#exclusive")
@pytest.mark.rule("0-9-1/queue.declare/exclusive-types#shared")
def test_exclusive_and_shared_queues_can_be_declared(server: Server) -> None:
    client, other = server.client(), server.client()
    client.declare("mine", exclusive=True).declare("ours", exclusive=False)
    other.declare("ours", exclusive=False)
    for name in ("mine", "ours"):
        assert client.publish(routing_key=name).count(name) == 1


USES = [
    Declare(queue="q"),
    Declare(queue="q", exclusive=True),
    Declare(queue="q", passive=True),
    m.QueueBind(queue="q", exchange="amq.direct", routing_key="new"),
    m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="k"),
    m.BasicConsume(queue="q"),
    m.BasicGet(queue="q"),
    Purge(queue="q"),
    Delete(queue="q"),
]


@pytest.mark.rule("0-9-1/queue.declare/exclusive-exclusive")
@pytest.mark.parametrize("method", USES, ids=[f"{number}-{each.NAME}" for number, each in enumerate(USES)])
def test_an_exclusive_queue_is_locked_for_other_connections(server: Server, method: m.Method) -> None:
    owner, other = server.client(), server.client()
    owner.declare("q", exclusive=True).bind("q", "amq.direct", "k")
    refused(other, method, 405, LOCKED.format("q"))
    other.publish(exchange="amq.direct", routing_key="k")
    assert owner.count("q") == 1, "publishing to it is no use of the queue"


def test_rabbitmq_confirms_unbinding_of_missing_binding_on_others_exclusive_queue(rabbitmq: Server) -> None:
    owner, other = rabbitmq.client(), rabbitmq.client()
    owner.declare("q", exclusive=True)
    other.perform(m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="k"))


@pytest.mark.rule("0-9-1/queue.declare/exclusive-same-connection")
def test_all_channels_of_the_owner_may_use_an_exclusive_queue(server: Server) -> None:
    client = server.client(channels=2).declare("q", exclusive=True, channel=1)
    client.consume("q", channel=2).publish(routing_key="q", channel=1).delivery(channel=2)
    assert client.declare_ok("q", exclusive=True, channel=2).consumer_count == 1


@pytest.mark.rule("0-9-1/queue.declare/exclusive-deleted-on-close")
@pytest.mark.parametrize("how", ["closed", "dropped", "failed"])
def test_exclusive_queue_is_deleted_when_its_connection_ends(server: Server, how: str) -> None:
    owner, other = server.client(), server.client()
    owner.declare("q", exclusive=True).declare("durable", exclusive=True, durable=True)
    owner.bind("q", "amq.fanout").close_channel().open_channel()
    assert exists(owner, "q"), "a channel does not own it"
    if how == "closed":
        owner.perform(m.ConnectionClose(reply_code=200), channel=0)
    elif how == "dropped":
        owner.drop()
    else:
        owner.send(m.ChannelOpen()).expect(m.ConnectionClose, 0)
    assert not exists(other, "q")
    assert not exists(other, "durable")
    other.publish(exchange="amq.fanout", mandatory=True).expect_content(m.BasicReturn)


# --- declare: auto-delete --------------------------------------------------------------------------
@rows(
    "how",
    pytest.param("cancel", marks=pytest.mark.rule("0-9-1/queue.declare/auto-delete-last-consumer#cancel")),
    pytest.param(
        "channel.close", marks=pytest.mark.rule("0-9-1/queue.declare/auto-delete-last-consumer#channel")
    ),
    pytest.param(
        "lost socket", marks=pytest.mark.rule("0-9-1/queue.declare/auto-delete-last-consumer#channel")
    ),
)
def test_auto_delete_queue_is_deleted_with_its_last_consumer(server: Server, how: str) -> None:
    client, other = server.client(channels=2), server.client()
    first = client.declare("q", auto_delete=True).consume_ok("q", channel=1).consumer_tag
    last = client.consume_ok("q", channel=2).consumer_tag
    client.perform(m.BasicCancel(consumer_tag=first), channel=1)
    assert exists(other, "q")
    if how == "cancel":
        client.perform(m.BasicCancel(consumer_tag=last), channel=2)
    elif how == "channel.close":
        client.close_channel(2)
    else:
        client.drop()
    assert not exists(other, "q")


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/queue.declare/auto-delete-never-consumed")
def test_auto_delete_queue_is_not_deleted_if_it_never_had_a_consumer(server: Server) -> None:
    client = server.client()
    assert client.declare("q", auto_delete=True).get("q") is None
    client.after(3600).drop()
    assert exists(server.client(), "q")


@pytest.mark.rule("0-9-1/queue.declare/auto-delete-explicit")
def test_an_auto_delete_queue_may_be_deleted_like_any_other(client: Client) -> None:
    client.declare("q", auto_delete=True)
    assert client.publish(routing_key="q").call(Delete(queue="q"), DeleteOk).message_count == 1
    assert not exists(client, "q")


# --- declare-ok ------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/queue.declare-ok/queue-name")
def test_declare_ok_names_the_queue(client: Client) -> None:
    assert client.declare_ok("q").queue == "q"
    made = client.declare_ok("").queue
    assert client.declare_ok(made, passive=True).queue == made


@pytest.mark.rule("0-9-1/queue.declare-ok/consumer-count")
def test_declare_ok_counts_active_consumers(spec: Server) -> None:
    client = spec.client(channels=2).declare("q").consume("q", channel=1)
    assert client.consume("q", channel=2).declare_ok("q").consumer_count == 2
    assert client.perform(m.ChannelFlow(active=False), channel=2).declare_ok("q").consumer_count == 1


@pytest.mark.deviates("0-9-1/queue.declare-ok/consumer-count")
def test_declare_ok_counts_all_consumers_with_rabbitmq(rabbitmq: Server) -> None:
    client = rabbitmq.client(channels=2).declare("q").perform(m.BasicQos(prefetch_count=1))
    client.consume("q", "c", channel=1).publish(routing_key="q").delivery()
    assert client.consume("q", channel=2).declare_ok("q").consumer_count == 2
    assert client.perform(m.BasicCancel(consumer_tag="c")).declare_ok("q").consumer_count == 1


# --- purge -----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/queue.purge/02")
def test_purge_keeps_unacknowledged_messages(server: Server) -> None:
    client, other = server.client(), server.client()
    client.declare("q").publish(b"held", routing_key="q")
    assert client.publish(b"waits", routing_key="q").get("q") is not None
    other.perform(Purge(queue="q"))
    client.close_channel()
    got = other.fetch("q")
    assert (got.body, got.method.redelivered) == (b"held", True)
    assert other.get("q") is None


@pytest.mark.rule("0-9-1/queue.purge/queue-queue-known#current", "0-9-1/queue.purge/queue-queue-known#none")
def test_purge_without_queue_name_purges_current_queue_and_fails_without_one(client: Client) -> None:
    refused(client, Purge(queue=""), 404, NO_CURRENT_QUEUE)
    assert client.declare("q").publish(routing_key="q").call(Purge(queue=""), PurgeOk).message_count == 1


@pytest.mark.rule("0-9-1/queue.purge/queue-must-exist")
def test_purging_a_missing_queue_is_refused(client: Client) -> None:
    refused(client, Purge(queue="missing"), 404, NO_QUEUE.format("missing"))
    refused(client, Purge(queue="missing", no_wait=True), 404, NO_QUEUE.format("missing"))


@pytest.mark.rule("0-9-1/queue.purge/empties")
def test_purge_empties_the_queue(client: Client) -> None:
    client.declare("q").declare("other")
    for _ in range(5):
        client.publish(routing_key="q")
    assert client.publish(routing_key="other").perform(Purge(queue="q")).get("q") is None
    assert client.count("other") == 1


@pytest.mark.rule("0-9-1/queue.purge/keeps-consumers")
def test_purge_keeps_consumers(client: Client) -> None:
    client.declare("q").consume("q").perform(Purge(queue="q"))
    assert client.publish(b"after", routing_key="q").delivery().body == b"after"


@pytest.mark.rule("0-9-1/queue.purge/no-wait-silent")
def test_a_purge_with_no_wait_is_not_answered(client: Client) -> None:
    client.declare("q").publish(routing_key="q").send(Purge(queue="q", no_wait=True))
    client.send(m.BasicGet(queue="q")).expect(m.BasicGetEmpty)
    client.expect_nothing()


@pytest.mark.rule("0-9-1/queue.purge-ok/message-count")
def test_purge_ok_counts_purged_messages(client: Client) -> None:
    client.declare("q")
    for _ in range(5):
        client.publish(routing_key="q")
    assert client.get("q") is not None
    assert client.call(Purge(queue="q"), PurgeOk).message_count == 4
    assert client.call(Purge(queue="q"), PurgeOk).message_count == 0


def test_purged_messages_are_not_dead_lettered(client: Client) -> None:
    # RabbitMQ: measured.
    client.declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    assert client.publish(routing_key="q").call(Purge(queue="q"), PurgeOk).message_count == 1
    assert client.count("dead") == 0


# --- delete ----------------------------------------------------------------------------------------
def _queue_with_dead_letters(client: Client) -> None:
    client.declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    client.publish(b"1", routing_key="q", delivery_mode=2).publish(b"2", routing_key="q")
    assert client.call(Delete(queue="q"), DeleteOk).message_count == 2


@pytest.mark.rule("0-9-1/queue.delete/01")
def test_spec_personality_dead_letters_messages_of_deleted_queue(spec: Server) -> None:
    client = spec.client()
    _queue_with_dead_letters(client)
    first, second = client.get("dead"), client.get("dead")
    assert first is not None
    assert second is not None
    assert [first.body, second.body] == [b"1", b"2"]


@pytest.mark.deviates("0-9-1/queue.delete/01")
def test_rabbitmq_discards_messages_of_deleted_queue(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    _queue_with_dead_letters(client)
    assert client.count("dead") == 0


@pytest.mark.rule("0-9-1/queue.delete/queue-queue-known#current", "0-9-1/queue.delete/queue-queue-known#none")
def test_delete_without_queue_name_deletes_current_queue_and_fails_without_one(client: Client) -> None:
    refused(client, Delete(queue=""), 404, NO_CURRENT_QUEUE)
    client.declare("q").perform(Delete(queue=""))
    assert not exists(client, "q")


@pytest.mark.rule("0-9-1/queue.delete/queue-must-exist")
@pytest.mark.parametrize("flags", [{}, {"if_unused": True, "if_empty": True}], ids=["plain", "if"])
def test_spec_personality_refuses_deletion_of_missing_queue(spec: Server, flags: dict[str, Any]) -> None:
    refused(spec.client(), Delete(queue="missing", **flags), 404, NO_QUEUE.format("missing"))


@pytest.mark.deviates("0-9-1/queue.delete/queue-must-exist")
@pytest.mark.parametrize("name", ["missing", "amq.missing"])
@pytest.mark.parametrize("flags", [{}, {"if_unused": True, "if_empty": True}], ids=["plain", "if"])
def test_rabbitmq_confirms_missing_queues_delete(rabbitmq: Server, name: str, flags: dict[str, Any]) -> None:
    assert rabbitmq.client().call(Delete(queue=name, **flags), DeleteOk).message_count == 0


@pytest.mark.rule("0-9/queue.delete/if-unused-01#kept", "0-9/queue.delete/if-unused-01#refused")
@pytest.mark.rule("0-9-1/queue.delete/if-unused-in-use#kept", "0-9-1/queue.delete/if-unused-in-use#refused")
def test_delete_if_unused_of_queue_with_consumers_is_refused(client: Client) -> None:
    tag = client.declare("q").consume_ok("q").consumer_tag
    text = "PRECONDITION_FAILED - queue 'q' in vhost '/' in use"
    other = client.server.client()
    refused(other, Delete(queue="q", if_unused=True), 406, text)
    refused(other, Delete(queue="q", if_unused=True, if_empty=True), 406, text)
    client.publish(routing_key="q").delivery()
    client.perform(m.BasicCancel(consumer_tag=tag)).perform(Delete(queue="q", if_unused=True))


@pytest.mark.rule("0-9/queue.delete/if-empty-01#kept", "0-9/queue.delete/if-empty-01#refused")
@pytest.mark.rule("0-9-1/queue.delete/if-empty-not-empty#kept")
@pytest.mark.rule("0-9-1/queue.delete/if-empty-not-empty#refused")
def test_delete_if_empty_of_queue_with_ready_messages_is_refused(client: Client) -> None:
    client.declare("q").publish(routing_key="q")
    text = "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"
    refused(client, Delete(queue="q", if_empty=True), 406, text)
    assert client.count("q") == 1
    assert client.get("q") is not None
    # What somebody holds is not in the queue (RabbitMQ: measured).
    assert client.call(Delete(queue="q", if_empty=True), DeleteOk).message_count == 0


@pytest.mark.rule("0-9-1/queue.delete/cancels-consumers")
def test_delete_ends_consumers(client: Client) -> None:
    client.declare("q").consume("q", "t").perform(Delete(queue="q"))
    client.declare("q").publish(routing_key="q").expect_nothing()
    client.consume("q", "t").delivery()


@pytest.mark.rule("0-9-1/queue.delete/cancels-consumers")
@pytest.mark.protocols("0-9-1")
def test_clients_with_consumer_cancel_notify_get_basic_cancel_when_queue_is_deleted(server: Server) -> None:
    wishes = {"capabilities": {"consumer_cancel_notify": True}}
    told = server.client(channels=2, client_properties=wishes)
    other = server.client()
    told.declare("q").consume("q", "1", channel=1).consume("q", "2", channel=2)
    other.consume("q", "3").perform(Delete(queue="q"))
    cancels = {}
    for _ in range(2):
        frame = told.take_frame()
        assert isinstance(frame.method, m.BasicCancel)
        cancels[frame.channel] = (frame.method.consumer_tag, frame.method.no_wait)
    assert cancels == {1: ("1", True), 2: ("2", True)}, "channels of RabbitMQ are processes: in any order"
    told.expect_nothing()
    other.expect_nothing()


@pytest.mark.rule("0-9-1/queue.delete/removes-bindings")
def test_delete_removes_bindings(client: Client) -> None:
    client.declare("q").bind("q", "amq.direct", "k").perform(Delete(queue="q"))
    client.declare("q").publish(exchange="amq.direct", routing_key="k", mandatory=True)
    client.expect_content(m.BasicReturn)
    assert client.count("q") == 0


@pytest.mark.rule("0-9-1/queue.delete/no-wait-silent")
def test_a_delete_with_no_wait_is_not_answered(client: Client) -> None:
    client.declare("q").send(Delete(queue="q", no_wait=True)).expect_nothing()
    refused(client, Declare(queue="q", passive=True), 404, NO_QUEUE.format("q"))


@pytest.mark.rule("0-9-1/queue.delete/acks-after-delete")
@rows(
    "settle",
    m.BasicAck(delivery_tag=1),
    m.BasicReject(delivery_tag=1, requeue=True),
    m.BasicReject(delivery_tag=1, requeue=False),
    m.BasicNack(delivery_tag=0, multiple=True, requeue=True),
    ids=["ack", "requeue", "reject", "nack"],
)
def test_settling_deliveries_of_deleted_queue_leaves_new_one_alone(client: Client, settle: m.Method) -> None:
    assert client.declare("q").publish(routing_key="q").get("q") is not None
    client.perform(Delete(queue="q")).declare("q")
    assert client.send(settle).count("q") == 0, "the new queue has nothing to do with the old one"


@pytest.mark.rule("0-9-1/queue.delete-ok/message-count")
def test_delete_ok_counts_deleted_ready_messages(client: Client) -> None:
    client.declare("q")
    for _ in range(4):
        client.publish(routing_key="q")
    assert client.get("q") is not None
    assert client.call(Delete(queue="q"), DeleteOk).message_count == 3
