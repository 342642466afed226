"""RabbitMQ's extensions of exchanges: bindings between them, auto-delete, internal, alternate exchanges.

Bindings between exchanges and alternate exchanges are there in both personalities, the two flags in
RabbitMQ's only.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.test_exchange import exists, refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def declare(client: Client, exchange: str, kind: str = "fanout", **flags: Any) -> Client:
    return client.perform(m.ExchangeDeclare(exchange=exchange, type=kind, **flags))


def bind(client: Client, source: str, destination: str, routing_key: str = "", **arguments: Any) -> Client:
    client.perform(
        m.ExchangeBind(source=source, destination=destination, routing_key=routing_key, **arguments)
    )
    return client


def unbind(client: Client, source: str, destination: str, routing_key: str = "") -> Client:
    return client.perform(m.ExchangeUnbind(source=source, destination=destination, routing_key=routing_key))


def returned(client: Client, exchange: str, routing_key: str = "", **properties: Any) -> bool:
    """Publishes with mandatory; True where the message came back as unroutable."""
    client.publish(exchange=exchange, routing_key=routing_key, mandatory=True, **properties)
    if not client.inbox:
        return False
    assert client.expect_content(m.BasicReturn).method.reply_code == 312
    return True


# --- exchange to exchange --------------------------------------------------------------------------
def test_message_is_routed_through_exchange_binding_with_original_exchange_and_key(client: Client) -> None:
    declare(client, "first")
    declare(client, "second", "direct").declare("q")
    bind(client, "first", "second").bind("q", "second", "k")
    got = client.publish(b"m", exchange="first", routing_key="k").fetch("q")
    assert (got.method.exchange, got.method.routing_key) == ("first", "k"), "it keeps where it was published"
    assert client.publish(exchange="first", routing_key="other").count("q") == 0


def test_exchange_binding_routes_only_messages_matching_its_key(client: Client) -> None:
    declare(client, "second").declare("q")
    bind(client, "amq.topic", "second", "a.*")
    client.bind("q", "second").publish(exchange="amq.topic", routing_key="a.b")
    assert client.publish(exchange="amq.topic", routing_key="b.b").count("q") == 1


def test_message_in_a_cycle_of_exchanges_is_queued_once(client: Client) -> None:
    for name in ("1", "2", "3"):
        declare(client, name)
    for source, destination in (("1", "2"), ("2", "3"), ("3", "1")):
        bind(client, source, destination)
    client.declare("q")
    for name in ("1", "2", "3"):
        client.bind("q", name)
    assert client.publish(exchange="2").count("q") == 1


def test_exchange_bound_to_itself_queues_message_once(client: Client) -> None:
    declare(client, "x")
    assert bind(client, "x", "x").declare("q").bind("q", "x").publish(exchange="x").count("q") == 1


def test_exchange_unbind_of_the_last_binding_stops_routing(client: Client) -> None:
    declare(client, "1")
    declare(client, "2").declare("q").bind("q", "2")
    bind(client, "1", "2", "a")
    bind(client, "1", "2", "b")
    unbind(client, "1", "2", "a")
    assert not returned(client, "1")
    unbind(client, "1", "2", "b")
    assert returned(client, "1")


def test_predeclared_exchange_can_be_an_exchange_binding_destination(client: Client) -> None:
    declare(client, "x").declare("q").bind("q", "amq.direct", "k")
    assert bind(client, "x", "amq.direct").publish(exchange="x", routing_key="k").count("q") == 1


def test_exchange_bind_and_unbind_with_no_wait_are_not_answered(client: Client) -> None:
    declare(client, "1")
    declare(client, "2").declare("q").bind("q", "2")
    client.send(m.ExchangeBind(source="1", destination="2", no_wait=True))
    assert not returned(client, "1")
    client.send(m.ExchangeUnbind(source="1", destination="2", no_wait=True))
    assert returned(client, "1")
    client.expect_nothing()


@pytest.mark.parametrize(
    ("source", "destination", "named"),
    [("nos", "amq.fanout", "nos"), ("amq.fanout", "nod", "nod"), ("nos", "nod", "nos")],
    ids=["source", "destination", "both"],
)
def test_exchange_bind_with_missing_exchange_is_refused(
    client: Client, source: str, destination: str, named: str
) -> None:
    method = m.ExchangeBind(source=source, destination=destination)
    refused(client, method, 404, f"NOT_FOUND - no exchange '{named}' in vhost '/'")


@rows("source, destination", ("nos", "amq.fanout"), ("nos", "nod"), ("amq.fanout", "amq.direct"))
def test_rabbitmq_accepts_unbind_of_missing_binding(rabbitmq: Server, source: str, destination: str) -> None:
    unbind(rabbitmq.client(), source, destination)


@rows("source, destination", ("nos", "amq.fanout"), ("amq.fanout", "nod"), ("amq.fanout", "amq.direct"))
def test_spec_refuses_exchange_unbind_of_missing_binding(spec: Server, source: str, destination: str) -> None:
    spec.client().fails(m.ExchangeUnbind(source=source, destination=destination), 404)


def test_if_unused_refuses_delete_of_source_exchange_but_not_of_destination_exchange(client: Client) -> None:
    declare(client, "s")
    declare(client, "d")
    bind(client, "s", "d")
    method = m.ExchangeDelete(exchange="s", if_unused=True)
    refused(client, method, 406, "PRECONDITION_FAILED - exchange 's' in vhost '/' in use")
    client.perform(m.ExchangeDelete(exchange="d", if_unused=True))
    client.perform(m.ExchangeDelete(exchange="s", if_unused=True))


@pytest.mark.needs("restart")
@pytest.mark.parametrize("name", ["rabbitmq-4.0", "spec"])
def test_bindings_between_durable_exchanges_survive_a_restart(name: str) -> None:
    server = Server(name)
    client = declare(declare(server.client(), "1", durable=True), "2", durable=True)
    declare(client, "transient").declare("q", durable=True)
    bind(client, "1", "2")
    bind(client, "1", "transient").bind("q", "2").drop()
    server.state.restart()
    again = server.client()
    assert again.publish(exchange="1").count("q") == 1
    again.perform(m.ExchangeDelete(exchange="2")).perform(m.ExchangeDelete(exchange="1", if_unused=True))


# --- auto-delete -----------------------------------------------------------------------------------
@pytest.fixture
def rabbit(rabbitmq: Server) -> Client:
    return rabbitmq.client()


def test_auto_delete_exchange_is_deleted_with_its_last_binding(rabbit: Client) -> None:
    declare(rabbit, "x", auto_delete=True).declare("q").bind("q", "x", "1")
    rabbit.bind("q", "x", "2").perform(m.QueueUnbind(queue="q", exchange="x", routing_key="1"))
    assert exists(rabbit, "x")
    rabbit.perform(m.QueueUnbind(queue="q", exchange="x", routing_key="2"))
    assert not exists(rabbit, "x")


def test_auto_delete_exchange_without_any_binding_is_kept(rabbit: Client) -> None:
    declare(rabbit, "x", auto_delete=True).declare("q").perform(m.QueueUnbind(queue="q", exchange="x"))
    rabbit.perform(m.QueueDelete(queue="q"))
    assert exists(rabbit, "x")


def test_auto_delete_exchange_is_deleted_with_its_last_bound_queue(rabbit: Client) -> None:
    declare(rabbit, "x", auto_delete=True).declare("q").bind("q", "x").perform(m.QueueDelete(queue="q"))
    assert not exists(rabbit, "x")


def test_auto_delete_exchange_is_deleted_with_its_last_destination_exchange(rabbit: Client) -> None:
    for how in ("unbind", "delete"):
        declare(rabbit, "s", auto_delete=True)
        declare(rabbit, "d", auto_delete=True)
        bind(rabbit, "s", "d")
        if how == "unbind":
            unbind(rabbit, "s", "d")
            assert exists(rabbit, "d"), "being a destination does not count"
        else:
            rabbit.perform(m.ExchangeDelete(exchange="d"))
        assert not exists(rabbit, "s")


def test_delete_of_source_exchange_keeps_auto_delete_destination(rabbit: Client) -> None:
    declare(rabbit, "s")
    declare(rabbit, "d", auto_delete=True)
    bind(rabbit, "s", "d").perform(m.ExchangeDelete(exchange="s"))
    assert exists(rabbit, "d")


def test_auto_delete_propagates_along_exchange_bindings(rabbit: Client) -> None:
    for name in ("1", "2", "3"):
        declare(rabbit, name, auto_delete=True)
    bind(rabbit, "1", "2")
    bind(rabbit, "2", "3").declare("q").bind("q", "3").perform(m.QueueDelete(queue="q"))
    assert [exists(rabbit, name) for name in ("1", "2", "3")] == [False, False, False]


def test_auto_delete_in_a_cycle_deletes_all_exchanges(rabbit: Client) -> None:
    declare(rabbit, "1", auto_delete=True)
    declare(rabbit, "2", auto_delete=True)
    bind(rabbit, "1", "2")
    bind(rabbit, "2", "1")
    unbind(rabbit, "1", "2")
    assert [exists(rabbit, name) for name in ("1", "2")] == [False, False]


def test_end_of_exclusive_queue_deletes_its_auto_delete_exchange(rabbitmq: Server) -> None:
    owner, other = rabbitmq.client(), rabbitmq.client()
    declare(other, "x", auto_delete=True)
    owner.declare("q", exclusive=True).bind("q", "x")
    assert exists(other, "x")
    owner.drop()
    assert not exists(other, "x")


# --- internal --------------------------------------------------------------------------------------
def test_internal_exchange_accepts_messages_only_from_other_exchanges(rabbit: Client) -> None:
    declare(rabbit, "inner", internal=True)
    declare(rabbit, "outer").declare("q").bind("q", "inner")
    assert bind(rabbit, "outer", "inner").publish(exchange="outer").count("q") == 1
    rabbit.publish(exchange="inner")
    rabbit.expect_channel_close(
        403, text="ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'", at=(60, 40)
    )


def test_internal_exchange_can_be_an_alternate_exchange(rabbit: Client) -> None:
    declare(rabbit, "inner", internal=True)
    declare(rabbit, "outer", "direct", arguments={"alternate-exchange": "inner"})
    rabbit.declare("q").bind("q", "inner")
    assert not returned(rabbit, "outer", "k")
    assert rabbit.count("q") == 1


# --- alternate exchange ----------------------------------------------------------------------------
def test_alternate_exchange_receives_unroutable_messages(client: Client) -> None:
    declare(client, "spare")
    declare(client, "x", "direct", arguments={"alternate-exchange": "spare"})
    client.declare("known").declare("unknown").bind("known", "x", "k")
    client.bind("unknown", "spare").publish(exchange="x", routing_key="k")
    assert (client.count("known"), client.count("unknown")) == (1, 0)
    got = client.publish(b"lost", exchange="x", routing_key="elsewhere").fetch("unknown")
    assert (got.method.exchange, got.method.routing_key) == ("x", "elsewhere")


def test_message_routed_by_alternate_exchange_is_not_returned(client: Client) -> None:
    declare(client, "x", "direct", arguments={"alternate-exchange": "spare"})
    assert returned(client, "x", "k"), "the alternate exchange does not exist yet"
    declare(client, "spare")
    assert returned(client, "x", "k"), "nothing is bound to it"
    client.declare("q").bind("q", "spare")
    assert not returned(client, "x", "k")
    client.perform(m.ExchangeDelete(exchange="spare"))
    assert returned(client, "x", "k")


def test_mutual_alternate_exchanges_return_an_unroutable_message(client: Client) -> None:
    declare(client, "1", "direct", arguments={"alternate-exchange": "2"})
    declare(client, "2", "direct", arguments={"alternate-exchange": "1"})
    assert returned(client, "1", "k")


def test_alternate_exchange_of_an_alternate_exchange_receives_unroutable_messages(client: Client) -> None:
    declare(client, "1", "direct", arguments={"alternate-exchange": "2"})
    declare(client, "2", "topic", arguments={"alternate-exchange": "3"})
    declare(client, "3").declare("q").bind("q", "3")
    assert not returned(client, "1", "k")


def test_alternate_exchange_of_a_bound_exchange_receives_its_unroutable_messages(client: Client) -> None:
    declare(client, "1")
    declare(client, "2", "direct", arguments={"alternate-exchange": "spare"})
    declare(client, "spare")
    bind(client, "1", "2").declare("q").bind("q", "spare")
    assert not returned(client, "1", "nobody")
    assert client.count("q") == 1


@rows("value, kind", (5, "signedint"), (None, "void"), (True, "bool"), (["x"], "array"))
def test_alternate_exchange_of_non_string_type_is_refused(client: Client, value: object, kind: str) -> None:
    method = m.ExchangeDeclare(exchange="x", type="direct", arguments={"alternate-exchange": value})
    about = "for arg 'alternate-exchange' in exchange 'x' in vhost '/'"
    refused(client, method, 406, f"PRECONDITION_FAILED - invalid type '{kind}' {about}")
    assert not exists(client, "x")
