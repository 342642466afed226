"""Class access: tickets for realms, and who looks at them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.contents_0_9 import Channel
from compat_tests.scripted.requesting import Requester
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.access import Realms
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

rule = pytest.mark.rule

ALL = ("passive", "active", "write", "read")


def say(client: Client, method: Any) -> None:
    """Send a method: in a request, if it is of class message."""
    if isinstance(method, REQUESTS):
        Requester(client).ask(method)
    elif method.HAS_CONTENT:
        client.send_content(method)
    else:
        client.send(method)


def ticket(client: Client, *rights: str, realm: str = "/data", channel: int = 1, **flags: bool) -> int:
    request = m.AccessRequest(realm=realm, **dict.fromkeys(rights or ALL, True), **flags)
    return client.call(request, shared.AccessRequestOk, channel).ticket


@pytest.fixture
def tickets() -> bool:
    """Clients show those that a test gives them."""
    return False


@pytest.fixture
def strict(spec: Server) -> Client:
    """A client with a queue "q" and an exchange "x" in the realm "/data", and one of each in "/admin"."""
    spec.vhost.extensions[Realms].add("/admin")
    client = spec.client(channels=2)
    for realm, queue, exchange in (("/data", "q", "x"), ("/admin", "admin-q", "admin-x")):
        number = ticket(client, realm=realm, channel=2)
        client.call(m.QueueDeclare(ticket=number, queue=queue), shared.QueueDeclareOk, 2)
        client.call(
            m.ExchangeDeclare(ticket=number, exchange=exchange, type="direct"), shared.ExchangeDeclareOk, 2
        )
    return client.close_channel(2)


# --- where nobody looks ------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [0, 1, 101])
def test_lenient_broker_accepts_any_ticket_number(lenient: Server, number: int) -> None:
    client = lenient.client()
    client.call(m.QueueDeclare(ticket=number, queue="q"), shared.QueueDeclareOk)
    client.send_content(m.BasicPublish(ticket=number, routing_key="q"), body=b"m")
    client.call(m.BasicConsume(ticket=number, queue="q"), shared.BasicConsumeOk)
    assert client.delivery().body == b"m"


def test_lenient_broker_grants_tickets_for_unknown_and_exclusive_realms(lenient: Server) -> None:
    client = lenient.client(channels=2)
    assert ticket(client, realm="nobody knows this", exclusive=True) != 0
    assert ticket(client, realm="nobody knows this", exclusive=True, channel=2) != 0


# --- asking ------------------------------------------------------------------------------------------------
@rule("0-9/access/grammar", "0-9/access.request-ok/ticket", "0-9/access.request/grants")
@rule("0-9/access/ask-first")
def test_a_request_is_answered_with_a_ticket_that_works(client: Client) -> None:
    number = ticket(client)
    assert 0 < number <= 0xFFFF
    for queue in ("one", "two"):
        client.call(m.QueueDeclare(ticket=number, queue=queue), shared.QueueDeclareOk)


@rule("0-9/access.request/realm-validity#known", "0-9/access.request/realm-validity#alike")
def test_unknown_and_forbidden_realms_are_answered_alike(spec: Server) -> None:
    spec.vhost.extensions[Realms].add("/forbidden", ["somebody else"])
    closes = []
    for realm in ("/forbidden", "/unknown"):
        close = spec.client().fails(m.AccessRequest(realm=realm, read=True), 403)
        closes.append((close.reply_text.replace(realm, ""), close.class_id, close.method_id))
    assert closes[0] == closes[1]
    assert closes[0][1:] == (30, 10)
    spec.vhost.extensions[Realms].add("/forbidden", ["somebody else", "guest"])
    assert ticket(spec.client(), realm="/forbidden")


@rule("0-9/access.request/no-rights")
@pytest.mark.parametrize(("right", "action"), [("active", 0), ("write", 1), ("read", 2)])
def test_asking_for_more_than_user_may_do_ends_connection(spec: Server, right: str, action: int) -> None:
    patterns = [".*", ".*", ".*"]
    patterns[action] = ""
    spec.state.access.add(User("limited", "secret", permissions={"/": Permission(*patterns)}))
    client = spec.client(user="limited", password="secret")
    ticket(client, *(each for each in ALL if each != right))
    client.send(m.AccessRequest(realm="/data", **{right: True}))
    assert f"{right} access" in client.expect_connection_close(403).reply_text


@rule("0-9/access.request/replaces")
def test_a_second_request_for_a_realm_destroys_the_first_ticket(strict: Client) -> None:
    first = ticket(strict)
    second = ticket(strict)
    strict.call(m.QueueDeclare(ticket=second, queue="q"), shared.QueueDeclareOk)
    strict.fails(m.QueueDeclare(ticket=first, queue="q"), 403)


def test_tickets_for_two_realms_are_valid_at_the_same_time(strict: Client) -> None:
    data, admin = ticket(strict), ticket(strict, realm="/admin")
    strict.call(m.QueueDeclare(ticket=data, queue="q"), shared.QueueDeclareOk)
    strict.call(m.QueueDeclare(ticket=admin, queue="admin-q"), shared.QueueDeclareOk)


@rule("0-9/access.request/exclusive-validity#others", "0-9/access.request/exclusive-validity#own")
def test_exclusive_access_is_refused_while_others_have_tickets(spec: Server) -> None:
    client = spec.client(channels=2)
    ticket(client, "read")
    client.fails(m.AccessRequest(realm="/data", exclusive=True, read=True), 403, channel=2)
    assert ticket(client, "read", exclusive=True)  # The only ticket there is is this channel's.


@rule("0-9/access.request/exclusive")
def test_exclusive_access_keeps_others_out_until_it_ends(spec: Server) -> None:
    client, other = spec.client(), spec.client()
    ticket(client, exclusive=True)
    other.fails(m.AccessRequest(realm="/data", read=True), 403)
    client.drop()
    other.open_channel()
    assert ticket(other)


# --- showing -----------------------------------------------------------------------------------------------
@rule("0-9/domain.access-ticket/non-zero")
def test_ticket_0_is_refused_with_403(spec: Server) -> None:
    spec.client().fails(m.QueueDeclare(ticket=0, queue="q"), 403)


@rule("0-9/access.request-ok/per-channel", "0-9/domain.access-ticket/per-channel")
def test_a_ticket_of_another_channel_ends_the_connection(spec: Server) -> None:
    client = spec.client(channels=2)
    number = ticket(client)
    client.ends(m.QueueDeclare(ticket=number, queue="q"), 530, channel=2)


@rule("0-9/channel.close/tickets-expire", "0-9/access/expire-on-change#channel")
def test_a_ticket_ends_with_its_channel(spec: Server) -> None:
    client = spec.client()
    number = ticket(client)
    client.close_channel().open_channel().ends(m.QueueDeclare(ticket=number, queue="q"), 530)


@rule("0-9/access/expire-on-change#rules", "0-9/access/always-check")
def test_a_ticket_ends_when_the_access_rules_change(spec: Server) -> None:
    client = spec.client()
    number = ticket(client)
    client.call(m.QueueDeclare(ticket=number, queue="q"), shared.QueueDeclareOk)
    spec.state.access.add(User("newcomer", "secret"))
    client.fails(m.QueueDeclare(ticket=number, queue="q"), 403)


@rule("0-9/access/do-not-trust")
def test_declare_with_valid_ticket_is_refused_without_permission_on_the_name(spec: Server) -> None:
    spec.state.access.add(User("limited", "secret", permissions={"/": Permission("^mine", ".*", ".*")}))
    client = spec.client(user="limited", password="secret")
    number = ticket(client)
    client.call(m.QueueDeclare(ticket=number, queue="mine"), shared.QueueDeclareOk)
    client.fails(m.QueueDeclare(ticket=number, queue="theirs"), 403)


@rule("0-9/access.request/passive#looking", "0-9/access.request/passive#changing")
def test_passive_ticket_allows_passive_declare_and_not_delete(strict: Client) -> None:
    number = ticket(strict, "passive")
    strict.call(m.QueueDeclare(ticket=number, queue="q", passive=True), shared.QueueDeclareOk)
    strict.call(m.ExchangeDeclare(ticket=number, exchange="x", passive=True), shared.ExchangeDeclareOk)
    strict.fails(m.QueueDelete(ticket=number, queue="q"), 403)


@rule("0-9/access.request/active#creating", "0-9/access.request/active#deleting")
def test_declare_and_delete_need_a_ticket_with_active_access(strict: Client) -> None:
    number = ticket(strict, "active")
    strict.call(m.QueueDeclare(ticket=number, queue="new"), shared.QueueDeclareOk)
    strict.call(m.QueueDelete(ticket=number, queue="new"), shared.QueueDeleteOk)
    number = ticket(strict, "passive", "write", "read")
    strict.fails(m.QueueDeclare(ticket=number, queue="new"), 403)


@rule("0-9/access.request/write", "0-9/access.request/read")
def test_publish_needs_a_write_ticket_and_consume_a_read_ticket(strict: Client) -> None:
    number = ticket(strict, "write")
    strict.send_content(m.BasicPublish(ticket=number, routing_key="q"), body=b"m")
    number = ticket(strict, "read")
    strict.call(m.BasicConsume(ticket=number, queue="q"), shared.BasicConsumeOk)
    assert strict.delivery().body == b"m"
    strict.send_content(m.BasicPublish(ticket=number, routing_key="q"), body=b"refused")
    strict.expect_channel_close(403)


@rule("0-9/exchange.declare/ticket-realm", "0-9/queue.declare/ticket-realm")
@rows(
    "again",
    lambda number: m.QueueDeclare(ticket=number, queue="admin-q"),
    lambda number: m.ExchangeDeclare(ticket=number, exchange="admin-x", type="direct"),
    ids=["queue", "exchange"],
)
def test_declared_queue_or_exchange_is_refused_to_ticket_of_another_realm(strict: Client, again: Any) -> None:
    strict.send(again(ticket(strict, realm="/admin"))).take_frame()
    close = strict.fails(again(ticket(strict)), 403)
    assert "'/admin'" in close.reply_text and "'/data'" in close.reply_text


def test_entities_declared_without_a_ticket_belong_to_the_first_realm(strict: Client, spec: Server) -> None:
    spec.vhost.queues.declare("elsewhere")
    number = ticket(strict)
    strict.call(m.QueueDeclare(ticket=number, queue="elsewhere"), shared.QueueDeclareOk)
    for exchange in ("", "amq.direct"):
        strict.send_content(m.BasicPublish(ticket=number, exchange=exchange, routing_key="q"))
    strict.send_content(m.BasicPublish(ticket=ticket(strict, realm="/admin"), routing_key="q"))
    strict.expect_channel_close(403)


# --- every method that carries one --------------------------------------------------------------------------

DECLARE_X = m.ExchangeDeclare(exchange="x", type="direct")
UNBIND = m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="bound")

CHECKED: list[tuple[str, str, str, Any]] = [
    ("exchange.declare/ticket-validity#active", "active", "x", DECLARE_X),
    ("exchange.declare/ticket-validity#passive", "passive", "x", replace(DECLARE_X, passive=True)),
    ("exchange.delete/ticket-validity", "active", "x", m.ExchangeDelete(exchange="x")),
    ("queue.declare/ticket-validity", "active", "q", m.QueueDeclare(queue="q")),
    ("queue.declare/ticket-validity", "passive", "q", m.QueueDeclare(queue="q", passive=True)),
    ("queue.bind/ticket", "active", "q", m.QueueBind(queue="q", exchange="amq.direct", routing_key="k")),
    ("queue.unbind/ticket", "active", "q", UNBIND),
    ("queue.purge/ticket-01", "read", "q", m.QueuePurge(queue="q")),
    ("queue.delete/ticket", "active", "q", m.QueueDelete(queue="q")),
    ("basic.consume/ticket-01", "read", "q", m.BasicConsume(queue="q")),
    ("basic.get/ticket-01", "read", "q", m.BasicGet(queue="q")),
    ("file.consume/ticket-01", "read", "q", m.FileConsume(queue="q")),
    ("stream.consume/ticket-01", "read", "q", m.StreamConsume(queue="q")),
    ("basic.publish/ticket-01", "write", "amq.direct", m.BasicPublish(exchange="amq.direct")),
    ("file.publish/ticket-01", "write", "amq.direct", m.FilePublish(exchange="amq.direct", identifier="f")),
    ("stream.publish/ticket-01", "write", "amq.direct", m.StreamPublish(exchange="amq.direct")),
    ("message.transfer/ticket-01", "write", "amq.direct", m.MessageTransfer(destination="amq.direct")),
    ("message.consume/ticket-01", "read", "q", m.MessageConsume(queue="q", destination="d")),
    ("message.get/ticket-01", "read", "q", m.MessageGet(queue="q", destination="d")),
]
"""The rule, the right that is needed, the exchange or queue it is about, and the method."""


REQUESTS = (m.MessageConsume, m.MessageGet, m.MessageTransfer)


@pytest.mark.parametrize(
    ("right", "name", "method"),
    [pytest.param(*row, marks=rule(f"0-9/{id_}"), id=f"{id_}-{row[0]}") for id_, *row in CHECKED],
)
def test_a_method_needs_its_right_to_the_realm(strict: Client, right: str, name: str, method: Any) -> None:
    strict.call(
        m.QueueBind(ticket=ticket(strict), queue="q", exchange="amq.direct", routing_key="bound"),
        shared.QueueBindOk,
    )
    others = [each for each in ALL if each != right]
    say(strict, replace(method, ticket=ticket(strict, *others)))
    close = strict.expect_channel_close(403)
    assert f"no {right} access" in close.reply_text

    strict.open_channel()
    say(strict, replace(method, ticket=ticket(strict, *ALL, realm="/admin")))
    close = strict.expect_channel_close(403)
    assert f"'{name}' is in realm '/data'" in close.reply_text

    strict.open_channel()
    if isinstance(method, m.FilePublish):
        Channel(strict, "file").stage_file(b"")
    say(strict, replace(method, ticket=ticket(strict, right)))
    closes = [each for each in strict.inbox if getattr(each.method, "NAME", "").endswith(".close")]
    assert closes == []


@rows(
    "method",
    m.ExchangeDeclare(exchange="theirs", type="direct"),
    m.QueueBind(queue="theirs", exchange="amq.direct", routing_key="k"),
    m.QueueUnbind(queue="theirs", exchange="amq.direct", routing_key="k"),
    ids=lambda method: method.NAME,
)
def test_entities_of_others_need_permission(lenient: Server, method: Any) -> None:
    lenient.client().declare("theirs")
    lenient.state.access.add(User("ann", "pw", (), {"/": Permission("^mine", "^mine", ".*")}))
    lenient.client(user="ann", password="pw").fails(method, 403)
