"""Class exchange of 0-9, where its text or its clients want something else than 0-9-1."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.tools.matrix import marked, marked_rows, rows
from fakeamqp.model.access import Permission
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


def declare(client: Client, exchange: str = "x", kind: str = "direct", **arguments: object) -> Client:
    return client.perform(m.ExchangeDeclare(exchange=exchange, type=kind, **arguments))


@rows(
    "name",
    pytest.param("amq.direct", marks=rule("0-9/exchange-type.direct/instances#direct")),
    pytest.param("", marks=rule("0-9/exchange-type.direct/instances#nameless")),
    pytest.param("amq.fanout", marks=rule("0-9/exchange-type.fanout/instance#instance")),
    pytest.param("amq.topic", marks=rule("0-9/exchange-type.topic/implement#instance")),
    pytest.param("amq.match", marks=rule("0-9/exchange-type.headers/implement#instance")),
    "amq.headers",
)
@pytest.mark.parametrize("host", ["/", "/other"])
@pytest.mark.letter
def test_every_virtual_host_has_the_exchanges_of_the_text(server: Server, name: str, host: str) -> None:
    server.state.add_virtual_host(host)
    server.state.access.users["guest"].permissions[host] = Permission()
    server.state.access.changed()
    server.client(virtual_host=host).perform(m.ExchangeDeclare(exchange=name, passive=True))


@pytest.mark.parametrize(
    ("fields", "closed", "code"),
    marked(
        (rule("0-9/exchange.declare/exchange-reserved"), {"exchange": "amq.mine"}, "channel", 403),
        # It is the name of the default exchange.
        (rule("0-9/exchange.declare/name-pattern#empty"), {"exchange": ""}, "channel", 403),
        (rule("0-9/exchange.declare/name-pattern#empty"), {"type": ""}, "connection", 503),
        (rule("0-9/exchange.declare/name-pattern#type"), {"type": "a b"}, "connection", 503),
    ),
)
def test_spec_personality_refuses_reserved_and_invalid_names_and_types(
    spec: Server, fields: dict[str, str], closed: str, code: int
) -> None:
    client = spec.client().send(m.ExchangeDeclare(**{"exchange": "ok", "type": "direct", **fields}))
    if closed == "channel":
        client.expect_channel_close(code)
    else:
        client.expect_connection_close(code)


@marked_rows(
    "method, closed, code",
    ((), m.ExchangeDeclare(exchange="amq.direct", type="topic"), "connection", 530),
    *(
        ((), m.ExchangeDeclare(exchange="x", type=kind), "connection", 503)
        for kind in ("nosuch", "DIRECT", "")
    ),
    *(
        (rule("0-9/exchange.delete/exchange-exists"), method, "channel", 404)
        for method in (
            m.ExchangeDelete(exchange="missing"),
            m.ExchangeDelete(exchange="missing", if_unused=True),
        )
    ),
    ids=repr,
)
@pytest.mark.letter
def test_change_of_type_unknown_type_and_missing_exchange_are_refused_unlike_in_rabbitmq(
    client: Client, method: m.Method, closed: str, code: int
) -> None:
    """exchange.declare/type-typed, type-support; RabbitMQ 4 has an exception of the channel for a type."""
    client.send(method)
    if closed == "channel":
        client.expect_channel_close(code)
    else:
        client.expect_connection_close(code)


@pytest.mark.deviates("0-9/exchange.declare/exchange-reserved")
@pytest.mark.letter
def test_lenient_broker_refuses_reserved_names_with_530(lenient: Server) -> None:
    lenient.client().ends(m.ExchangeDeclare(exchange="amq.mine", type="direct"), 530)


@rule("0-9/exchange.declare/name-pattern#exchange")
def test_names_have_a_pattern_to_the_letter(spec: Server) -> None:
    client = spec.client().send(m.ExchangeDeclare(exchange="a b", type="direct"))
    assert " - exchange name 'a b' holds" in client.expect_channel_close(406).reply_text
    client.open_channel()
    declare(client, "a-b_c.d:1")


@rule("0-9/domain.exchange-name/characters")
@pytest.mark.parametrize("name", ["ex_1", "A", "x" * 127])
def test_names_of_exchanges_have_digits_letters_and_underscores(client: Client, name: str) -> None:
    declare(client, name)
    declare(client, name, passive=True)


@rule("0-9/exchange.declare/durable-sticky", "0-9/exchange.declare/auto-delete-sticky")
@rows("again", {"durable": True}, {"auto_delete": True}, {"durable": True, "auto_delete": True})
@pytest.mark.letter
def test_redeclare_of_an_exchange_ignores_durable_and_auto_delete(
    server: Server, client: Client, again: dict[str, bool]
) -> None:
    declare(client)
    declare(client, **again)
    exchange = server.vhost.exchanges["x"]
    assert not exchange.durable and not exchange.auto_delete


@rule("0-9/exchange.declare/auto-delete-sticky")
@pytest.mark.parametrize("auto_delete", [False, True])
@pytest.mark.letter
def test_auto_delete_of_an_exchange_is_set_by_its_first_declare(client: Client, auto_delete: bool) -> None:
    declare(client, auto_delete=auto_delete)
    declare(client, auto_delete=not auto_delete)
    client.declare("q").bind("q", "x", "k").perform(m.QueueDelete(queue="q"))
    client.send(m.ExchangeDeclare(exchange="x", type="direct", passive=True))
    if auto_delete:
        client.expect_channel_close(404)
    else:
        client.expect(m.ExchangeDeclareOk)


@rule("0-9/exchange.declare/durable-sticky", "0-9/exchange.declare/durable-survives#transient")
@pytest.mark.deviates("0-9/exchange.declare/durable-survives#transient")
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.letter
def test_durability_of_exchange_is_set_at_declare(server: Server, client: Client, durable: bool) -> None:
    declare(client, durable=durable)
    declare(client, durable=not durable)
    client = server.restart().client().send(m.ExchangeDeclare(exchange="x", type="direct", passive=True))
    if durable or server.state.personality.transient_exchanges_survive:
        client.expect(m.ExchangeDeclareOk)
    else:
        client.expect_channel_close(404)


@rule("0-9/exchange.declare/auto-delete")
def test_an_exchange_that_no_queue_uses_any_more_is_deleted(client: Client) -> None:
    declare(client, auto_delete=True).declare("q")
    client.bind("q", "x", "k").perform(m.QueueUnbind(queue="q", exchange="x", routing_key="k"))
    client.fails(m.ExchangeDeclare(exchange="x", passive=True), 404)


@rule("0-9/exchange.declare/internal", "0-9/basic.publish/exchange-02")
def test_publish_to_an_internal_exchange_closes_the_channel_with_403(client: Client) -> None:
    declare(client, internal=True).publish(exchange="x").expect_channel_close(403)


@rule("0-9/exchange/extensions")
def test_exchange_type_x_random_routes_messages(lenient: Server) -> None:
    client = declare(lenient.client(), kind="x-random")
    assert client.declare("q").bind("q", "x").publish(exchange="x").count("q") == 1


# --- exchange.bound: Apache's documented extension ----------------------------------------------------------
@rows(
    "asked, code",
    ({}, 0),
    ({"queue": "q"}, 0),
    ({"routing_key": "k"}, 0),
    ({"queue": "q", "routing_key": "k"}, 0),
    ({"exchange": "missing"}, 1),
    ({"exchange": "missing", "queue": "missing", "routing_key": "k"}, 1),
    ({"queue": "missing"}, 2),
    ({"queue": "missing", "routing_key": "k"}, 2),
    ({"exchange": "empty"}, 3),
    ({"queue": "idle"}, 4),
    ({"routing_key": "other"}, 5),
    ({"exchange": "empty", "routing_key": "k"}, 5),
    ({"queue": "q", "routing_key": "other"}, 6),
    ({"queue": "idle", "routing_key": "k"}, 6),
    ({"exchange": "", "queue": "idle"}, 0),
    ({"exchange": "", "routing_key": "idle"}, 0),
    ({"exchange": "", "queue": "idle", "routing_key": "idle"}, 0),
    ({"exchange": "", "queue": "idle", "routing_key": "q"}, 6),
    ({"exchange": "", "routing_key": "other"}, 5),
)
def test_exchange_bound_answers_with_the_code_for_the_missing_part(
    client: Client, asked: dict[str, str], code: int
) -> None:
    declare(client)
    declare(client, "empty")
    client.declare("q").declare("idle").bind("q", "x", "k")
    answer = client.call(m.ExchangeBound(**{"exchange": "x", **asked}), m.ExchangeBoundOk)
    assert answer.reply_code == code
    assert bool(answer.reply_text) == bool(code)
