"""Exchanges of type system, which hand messages to services of the test (exchange-type.system/*)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.services import add_service, bodies
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

rule = pytest.mark.rule


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/exchange-type.system/passes-to-service")
def test_a_message_goes_to_the_service_that_its_routing_key_names(server: Server) -> None:
    billing, mail = add_service(server, "billing"), add_service(server, "mail")
    client = server.client().publish(b"1", exchange="amq.system", routing_key="billing", headers={"n": 1})
    client.publish(b"2", exchange="amq.system", routing_key="mail")
    client.publish(b"3", exchange="amq.system", routing_key="billing")
    client.publish(b"elsewhere", exchange="amq.direct", routing_key="billing")
    server.advance(0)
    assert (bodies(billing), bodies(mail)) == ([b"1", b"3"], [b"2"])
    assert billing[0].headers == {"n": 1}


@rule("0-9-1/exchange-type.system/passes-to-service")
def test_spec_personality_lets_clients_declare_system_exchanges(spec: Server) -> None:
    got = add_service(spec, "billing")
    client = spec.client().declare_exchange("services", "system").declare_exchange("services", "system")
    client.publish(b"1", exchange="services", routing_key="billing")
    spec.advance(0)
    assert bodies(got) == [b"1"]


@rule("0-9-1/exchange/required-instances#types")
def test_spec_personality_predeclares_amq_system_in_every_virtual_host(spec: Server) -> None:
    spec.state.add_virtual_host("other")
    for virtual_host in spec.state.virtual_hosts.values():
        assert virtual_host.exchanges["amq.system"].type_name == "system"
    client = spec.client().perform(m.ExchangeDeclare(exchange="amq.system", type="system", passive=True))
    client.fails(m.ExchangeDelete(exchange="amq.system"), 403)


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/exchange-type.system/passes-to-service")
def test_a_message_for_no_service_is_unroutable(server: Server) -> None:
    got = add_service(server, "billing")
    client = server.client().publish(b"lost", exchange="amq.system", routing_key="biling", mandatory=True)
    assert client.expect_content(m.BasicReturn).method.reply_code == 312
    client.publish(b"routed", exchange="amq.system", routing_key="billing", mandatory=True).expect_nothing()
    server.advance(0)
    assert bodies(got) == [b"routed"]


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/exchange-type.system/amq-services-reserved")
def test_message_with_reserved_key_amq_is_given_to_no_service(server: Server) -> None:
    got = [add_service(server, key) for key in ("x", "amq", "", "*", "#")]
    client = server.client()
    client.publish(b"reserved", exchange="amq.system", routing_key="amq.x", mandatory=True)
    assert client.expect_content(m.BasicReturn).method.reply_code == 312
    server.advance(0)
    assert got == [[], [], [], [], []]


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/exchange-type.system/passes-to-service")
def test_a_service_is_called_after_all_that_the_client_has_sent_with_the_message(server: Server) -> None:
    seen: list[Any] = []
    add_service(server, "billing", handle=lambda _: seen.append(list(server.vhost.queues)))
    server.client().publish(exchange="amq.system", routing_key="billing").declare("q")
    server.advance(0)
    assert seen == [["q"]]


@pytest.mark.needs("virtual time", "inspection")
def test_service_removed_before_delivery_is_not_called(server: Server) -> None:
    got = add_service(server, "billing")
    server.client().publish(exchange="amq.system", routing_key="billing")
    server.vhost.services.pop("billing").deleted = True
    server.advance(0)
    assert got == []


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/exchange-type.system/passes-to-service")
def test_messages_of_a_transaction_arrive_with_its_commit(server: Server) -> None:
    got = add_service(server, "billing")
    client = server.client().perform(m.TxSelect())
    client.publish(b"dropped", exchange="amq.system", routing_key="billing").perform(m.TxRollback())
    client.publish(b"committed", exchange="amq.system", routing_key="billing")
    server.advance(0)
    assert got == []
    client.perform(m.TxCommit())
    server.advance(0)
    assert bodies(got) == [b"committed"]


@pytest.mark.needs("virtual time", "inspection")
def test_dead_letter_is_passed_to_service(server: Server) -> None:
    got = add_service(server, "billing")
    client = server.client()
    arguments = {"x-dead-letter-exchange": "amq.system", "x-dead-letter-routing-key": "billing"}
    client.declare("q", arguments={**arguments, "x-message-ttl": 1000}).publish(b"late", routing_key="q")
    server.advance(2)
    assert bodies(got) == [b"late"]


@pytest.mark.needs("inspection")
def test_binding_of_queue_to_system_exchange_is_refused_with_406(server: Server) -> None:
    add_service(server, "billing")
    client = server.client().declare("q")
    client.send(m.QueueBind(queue="q", exchange="amq.system", routing_key="billing"))
    assert "takes no bindings" in client.expect_channel_close(406).reply_text


@pytest.mark.needs("virtual time", "inspection")
def test_message_reaches_service_through_binding_from_topic_exchange(rabbitmq: Server) -> None:
    got = add_service(rabbitmq, "billing")
    client = rabbitmq.client()
    bind = m.ExchangeBind(destination="amq.system", source="amq.topic", routing_key="#")
    client.call(bind, m.ExchangeBindOk)
    client.publish(b"1", exchange="amq.topic", routing_key="billing")
    rabbitmq.advance(0)
    assert bodies(got) == [b"1"]


# --- contents that a service refuses --------------------------------------------------------------------
@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/basic.publish/exchange-03")
def test_message_of_class_basic_to_file_service_closes_channel_with_540(server: Server) -> None:
    got = add_service(server, "archive", "file")
    client = server.client(channels=2).publish(b"refused", exchange="amq.system", routing_key="archive")
    close = client.expect_channel_close(540)
    assert (close.class_id, close.method_id) == (60, 40)
    assert "takes no contents of class basic" in close.reply_text
    client.declare("q", channel=2)  # The connection goes on.
    server.advance(0)
    assert got == []


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/basic.publish/exchange-03")
def test_message_is_accepted_by_service_of_class_basic_beside_file_service(server: Server) -> None:
    got = add_service(server, "mail", "basic")
    add_service(server, "archive", "file")
    server.client().publish(b"taken", exchange="amq.system", routing_key="mail")
    server.advance(0)
    assert bodies(got) == [b"taken"]


@pytest.mark.needs("inspection")
@rule("0-9-1/basic.publish/exchange-03")
def test_refused_message_closes_channel_and_transaction_is_rolled_back(server: Server) -> None:
    add_service(server, "archive", "file")
    client = server.client().declare("q").perform(m.TxSelect())
    client.publish(b"rolled back", routing_key="q")
    client.publish(b"refused", exchange="amq.system", routing_key="archive").expect_channel_close(540)
    assert client.open_channel().count("q") == 0


@pytest.mark.needs("virtual time", "inspection")
def test_dead_letter_refused_by_service_is_dropped(server: Server) -> None:
    got = add_service(server, "archive", "file")
    client: Client = server.client()
    arguments = {"x-dead-letter-exchange": "amq.system", "x-dead-letter-routing-key": "archive"}
    client.declare("q", arguments={**arguments, "x-message-ttl": 1000})
    client.publish(b"late", routing_key="q")
    server.advance(2)
    assert client.count("q") == 0
    assert got == []
