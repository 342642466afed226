"""Class exchange: declare and delete, and what every virtual host has. Types are in test_exchange_types."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.methods import (
    ExchangeDeclare as Declare,
    ExchangeDeclareOk as DeclareOk,
    ExchangeDelete as Delete,
)

FOUR_TYPES = ("direct", "fanout", "topic", "headers")


def exists(client: Client, exchange: str) -> bool:
    """Asks by passive declare; the channel is open again afterwards."""
    frame = client.send(Declare(exchange=exchange, passive=True)).take_frame()
    if isinstance(frame.method, DeclareOk):
        return True
    assert isinstance(frame.method, m.ChannelClose)
    assert frame.method.reply_code == 404
    client.send(m.ChannelCloseOk()).open_channel()
    return False


def refused(client: Client, method: m.Method, code: int, text: str) -> None:
    """The method is answered with channel.close in exactly these words; the channel is open again."""
    close = client.fails(method, code, text=text)
    assert (close.class_id << 16 | close.method_id) == method.INDEX
    client.open_channel()


# --- what there is ---------------------------------------------------------------------------------
@rows(
    "kind",
    pytest.param(
        "fanout",
        marks=pytest.mark.rule(
            "0-9-1/exchange/required-types#fanout", "0-9/exchange-type.fanout/instance#type"
        ),
    ),
    pytest.param("direct", marks=pytest.mark.rule("0-9-1/exchange/required-types#direct")),
)
def test_exchange_types_fanout_and_direct_are_implemented(client: Client, kind: str) -> None:
    client.declare_exchange("x", kind)


@rows(
    "kind",
    pytest.param(
        "topic",
        marks=pytest.mark.rule(
            "0-9-1/exchange/recommended-types#topic", "0-9/exchange-type.topic/implement#type"
        ),
    ),
    pytest.param(
        "headers",
        marks=pytest.mark.rule(
            "0-9-1/exchange/recommended-types#headers", "0-9/exchange-type.headers/implement#type"
        ),
    ),
)
def test_exchange_types_topic_and_headers_are_implemented(client: Client, kind: str) -> None:
    client.declare_exchange("x", kind)


@pytest.mark.needs("settings")
@pytest.mark.rule("0-9-1/exchange/required-instances#types", "0-9-1/exchange/required-instances#nameless")
@pytest.mark.parametrize("kind", FOUR_TYPES)
def test_every_virtual_host_has_a_predeclared_exchange_of_every_type(server: Server, kind: str) -> None:
    server.state.add_virtual_host("/other")
    server.state.access.users["guest"].permissions["/other"] = Permission()
    for virtual_host in ("/", "/other"):
        client = server.client(virtual_host=virtual_host)
        client.perform(Declare(exchange=f"amq.{kind}", passive=True))
        client.declare_exchange(f"amq.{kind}", kind, durable=True)
        client.declare("by-name").publish(routing_key="by-name")
        assert client.empty("by-name") == [b"body"], "the nameless one"


@pytest.mark.rule("0-9-1/exchange/required-match")
def test_amq_match_is_a_headers_exchange(client: Client) -> None:
    client.perform(Declare(exchange="amq.match", passive=True))
    client.declare_exchange("amq.match", "headers", durable=True)


@pytest.mark.rule("0-9-1/exchange/default-exchange")
def test_default_exchange_delivers_to_the_queue_named_by_the_routing_key(client: Client) -> None:
    got = client.declare("q").publish(b"to q", exchange="", routing_key="q").fetch("q")
    assert (got.body, got.method.exchange, got.method.routing_key) == (b"to q", "", "q")


DEFAULT_ONLY = "ACCESS_REFUSED - operation not permitted on the default exchange"


@pytest.mark.rule("0-9-1/exchange/default-access#publish", "0-9-1/exchange/default-access#others")
@rows(
    "method",
    pytest.param(Declare(exchange="", type="direct", durable=True), marks=pytest.mark.protocols("0-9-1")),
    pytest.param(Declare(exchange="", passive=True), marks=pytest.mark.protocols("0-9-1")),
    Delete(exchange=""),
    Delete(exchange="", if_unused=True),
    ids=["declare", "declare-passive", "delete", "delete-if-unused"],
)
def test_declare_and_delete_of_the_default_exchange_are_refused(client: Client, method: m.Method) -> None:
    refused(client, method, 403, DEFAULT_ONLY)
    assert client.declare("q").publish(routing_key="q").count("q") == 1


@pytest.mark.deviates("0-9-1/exchange/default-access#bind")
@rows(
    "method",
    m.QueueBind(queue="q", exchange="", routing_key="k"),
    m.QueueUnbind(queue="q", exchange="", routing_key="q"),
    m.ExchangeBind(source="", destination="amq.fanout"),
    m.ExchangeBind(source="amq.fanout", destination=""),
    m.ExchangeUnbind(source="", destination="amq.fanout"),
    ids=["queue.bind", "queue.unbind", "bind-source", "bind-destination", "unbind"],
)
def test_rabbitmq_refuses_bindings_of_the_default_exchange(rabbitmq: Server, method: m.Method) -> None:
    client = rabbitmq.client().declare("q")
    refused(client, method, 403, DEFAULT_ONLY)


@pytest.mark.rule("0-9-1/exchange/grammar#declare", "0-9-1/exchange/grammar#delete")
def test_exchange_declare_and_delete_are_answered_once_each(client: Client) -> None:
    client.declare_exchange("x").expect_nothing()
    client.perform(Delete(exchange="x")).expect_nothing()


@pytest.mark.rule("0-9-1/exchange/predeclared-permanent")
@pytest.mark.parametrize("name", ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"])
def test_predeclared_exchanges_cannot_be_deleted(client: Client, name: str) -> None:
    text = f"ACCESS_REFUSED - deletion of system exchange '{name}' in vhost '/' not allowed"
    refused(client, Delete(exchange=name), 403, text)
    refused(client, Delete(exchange=name, if_unused=True), 403, text)
    assert exists(client, name)


def test_delete_of_missing_exchange_with_amq_prefix_is_refused(client: Client) -> None:
    # RabbitMQ: measured.
    text = "ACCESS_REFUSED - deletion of system exchange 'amq.nothing' in vhost '/' not allowed"
    refused(client, Delete(exchange="amq.nothing"), 403, text)


def test_rabbitmq_has_internal_exchange_amq_rabbitmq_trace(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    assert exists(client, "amq.rabbitmq.trace")
    client.declare("q").bind("q", "amq.rabbitmq.trace", "#").publish(exchange="amq.rabbitmq.trace")
    assert client.expect_channel_close(403).reply_text == (
        "ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"
    )


def test_spec_personality_has_no_exchange_amq_rabbitmq_trace(spec: Server) -> None:
    assert not exists(spec.client(), "amq.rabbitmq.trace")


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/exchange/lifetimes#durable", "0-9-1/exchange/lifetimes#temporary")
@pytest.mark.parametrize("name", ["rabbitmq-4.0", "spec"])
def test_restart_keeps_durable_exchanges_and_deletes_transient_exchanges(name: str, protocol: str) -> None:
    server = Server(name, protocol=protocol)
    client = server.client().declare_exchange("lasts", "topic", durable=True)
    client.declare_exchange("ends", "topic")
    assert exists(client, "ends")
    again = server.restart().client()
    assert exists(again, "lasts")
    assert not exists(again, "ends")
    again.perform(Delete(exchange="lasts"))
    assert not exists(again, "lasts")


@pytest.mark.rule("0-9-1/exchange/many-queues")
def test_fanout_exchange_delivers_one_message_to_fifty_queues(client: Client) -> None:
    client.declare_exchange("x", "fanout")
    for number in range(50):
        client.declare(f"q{number}").bind(f"q{number}", "x")
    client.publish(b"to all", exchange="x")
    for number in range(50):
        assert client.fetch(f"q{number}").body == b"to all"


# --- declare ---------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/exchange.declare/minimum")
def test_virtual_host_accepts_a_hundred_exchanges(client: Client) -> None:
    for number in range(100):
        client.declare_exchange(f"x{number}")
    assert all(exists(client, f"x{number}") for number in range(100))


@pytest.mark.rule("0-9-1/exchange.declare/exchange-reserved#new")
@pytest.mark.rule("0-9-1/exchange.declare/exchange-reserved#existing")
@pytest.mark.rule("0-9-1/exchange.declare/exchange-reserved#passive")
def test_exchange_name_with_amq_prefix_is_refused_unless_predeclared(client: Client) -> None:
    refused(
        client,
        Declare(exchange="amq.mine", type="direct"),
        403,
        "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    )
    client.declare_exchange("amq.direct", durable=True)
    client.perform(Declare(exchange="amq.direct", passive=True))
    assert not exists(client, "amq.mine")


def test_exchange_name_starting_with_amq_without_dot_is_accepted(client: Client) -> None:
    client.declare_exchange("amq").declare_exchange("amqp.events")


@pytest.mark.rule("0-9-1/exchange.declare/exchange-syntax")
@pytest.mark.parametrize("name", ["a b", "a/b", "é", "a\n"])
def test_spec_personality_refuses_exchange_name_outside_the_pattern(spec: Server, name: str) -> None:
    client = spec.client()
    client.fails(Declare(exchange=name + "!", type="direct"), 406)
    client.open_channel().declare_exchange("aZ09-_.:").send(Declare(exchange="", type="direct"))
    client.expect_channel_close(403)  # Also exchange/default-access.


@pytest.mark.deviates("0-9/exchange.declare/name-pattern#exchange")
@pytest.mark.deviates("0-9-1/exchange.declare/exchange-syntax")
@pytest.mark.parametrize("name", ["a b", "a/b", "é", "it's", "a\0b"])
def test_rabbitmq_accepts_any_exchange_name_except_the_empty_name(rabbitmq: Server, name: str) -> None:
    client = rabbitmq.client().declare_exchange(name)
    assert exists(client, name)
    refused(client, Declare(exchange="", type="direct"), 403, DEFAULT_ONLY)


def test_line_ends_are_removed_from_exchange_names(rabbitmq: Server) -> None:
    # RabbitMQ: measured.
    client = rabbitmq.client().declare_exchange("a\r\nb")
    assert exists(client, "ab")
    client.declare("q").bind("q", "a\nb", "k")
    assert client.publish(exchange="ab", routing_key="k").count("q") == 1
    client.perform(Delete(exchange="\nab"))
    assert not exists(client, "ab")


@pytest.mark.rule("0-9-1/exchange.declare/type-typed#refused")
def test_spec_personality_refuses_redeclare_with_another_type_with_530(spec: Server) -> None:
    spec.client().declare_exchange("x").ends(Declare(exchange="x", type="fanout"), 530, at=(40, 10))


@pytest.mark.rule("0-9-1/exchange.declare/passive-equivalent#type")
@pytest.mark.rule("0-9-1/exchange.declare/type-typed#kept")
def test_refused_redeclare_does_not_change_the_exchange_type(server: Server) -> None:
    client = server.client().declare_exchange("x")
    client.declare("q").bind("q", "x", "k")
    server.client().send(Declare(exchange="x", type="fanout"))
    client.publish(b"other key", exchange="x", routing_key="other")
    assert client.publish(b"its key", exchange="x", routing_key="k").empty("q") == [b"its key"]
    client.declare_exchange("x")


@pytest.mark.deviates("0-9-1/exchange.declare/type-typed#refused")
@pytest.mark.parametrize("kind", ["fanout", "topic", "headers"])
def test_rabbitmq_refuses_redeclare_with_another_type_with_406(rabbitmq: Server, kind: str) -> None:
    client = rabbitmq.client().declare_exchange("x")
    refused(
        client,
        Declare(exchange="x", type=kind, durable=True),  # The type is named first of what differs.
        406,
        "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': "
        f"received '{kind}' but current is 'direct'",
    )


@pytest.mark.rule("0-9-1/exchange.declare/type-support")
@pytest.mark.parametrize("kind", ["nosuch", "DIRECT", "System"])
def test_spec_personality_refuses_unknown_exchange_type_with_503(spec: Server, kind: str) -> None:
    client = spec.client()
    client.ends(
        Declare(exchange="x", type=kind), 503, text=f"COMMAND_INVALID - unknown exchange type '{kind}'"
    )


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.deviates("0-9-1/exchange.declare/type-support")
@rows(
    "kind, text",
    ("nosuch", "unknown exchange type 'nosuch'"),
    ("DIRECT", "unknown exchange type 'DIRECT'"),
    ("", "invalid exchange type ''"),
)
def test_rabbitmq_refuses_unknown_exchange_type_with_406_before_other_checks(
    rabbitmq: Server, kind: str, text: str
) -> None:
    client = rabbitmq.client()
    refused(client, Declare(exchange="x", type=kind), 406, f"PRECONDITION_FAILED - {text}")
    # Looked at before everything else, the name included.
    refused(client, Declare(exchange="", type=kind), 406, f"PRECONDITION_FAILED - {text}")
    refused(client, Declare(exchange="amq.direct", type=kind), 406, f"PRECONDITION_FAILED - {text}")
    assert not exists(client, "x")


@pytest.mark.rule("0-9/exchange.declare/passive", "0-9-1/exchange.declare/passive-not-found")
def test_passive_declare_of_missing_exchange_is_refused_with_404(client: Client) -> None:
    text = "NOT_FOUND - no exchange 'missing' in vhost '/'"
    refused(client, Declare(exchange="missing", type="direct", passive=True), 404, text)
    refused(client, Declare(exchange="missing", type="direct", passive=True), 404, text)


@pytest.mark.rule("0-9-1/exchange.declare/passive-equivalent#same")
@pytest.mark.rule("0-9-1/exchange.declare/passive-equivalent#durable")
@pytest.mark.parametrize("durable", [True, False])
def test_redeclare_with_another_durable_flag_is_refused(client: Client, durable: bool) -> None:
    client.declare_exchange("x", durable=durable).declare_exchange("x", durable=durable)
    received, current = str(not durable).lower(), str(durable).lower()
    refused(
        client,
        Declare(exchange="x", type="direct", durable=not durable),
        406,
        "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost '/': "
        f"received '{received}' but current is '{current}'",
    )


@pytest.mark.deviates("0-9-1/exchange.declare/passive-equivalent#same")
@pytest.mark.parametrize("flag", ["auto_delete", "internal"])
@pytest.mark.parametrize("value", [True, False])
def test_rabbitmq_refuses_redeclare_with_another_auto_delete_or_internal_flag(
    rabbitmq: Server, flag: str, value: bool
) -> None:
    client = rabbitmq.client().perform(Declare(exchange="x", type="direct", **{flag: value}))
    received, current = str(not value).lower(), str(value).lower()
    refused(
        client,
        Declare(exchange="x", type="direct", **{flag: not value}),
        406,
        f"PRECONDITION_FAILED - inequivalent arg '{flag}' for exchange 'x' in vhost '/': "
        f"received '{received}' but current is '{current}'",
    )


@pytest.mark.rule("0-9-1/exchange.declare/passive-equivalent#arguments")
@rows(
    "first, second, text",
    ({"alternate-exchange": "a"}, {"alternate-exchange": "b"}, "received 'b' but current is 'a'"),
    ({}, {"alternate-exchange": "a"}, "received the value 'a' of type 'longstr' but current is none"),
    ({"alternate-exchange": "a"}, {}, "received none but current is the value 'a' of type 'longstr'"),
    ids=["changed", "added", "removed"],
)
def test_redeclare_with_another_alternate_exchange_is_refused(
    client: Client, first: dict[str, object], second: dict[str, object], text: str
) -> None:
    client.declare_exchange("x", arguments=first)
    refused(
        client,
        Declare(exchange="x", type="direct", arguments=second),
        406,
        f"PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': {text}",
    )


@pytest.mark.rule("0-9-1/exchange.declare/passive-equivalent#arguments")
def test_spec_personality_refuses_redeclare_with_other_unknown_arguments(spec: Server) -> None:
    client = spec.client().declare_exchange("x", arguments={"colour": "red"})
    client.fails(Declare(exchange="x", type="direct", arguments={"colour": "blue"}), 406)


@pytest.mark.deviates("0-9-1/exchange.declare/passive-equivalent#arguments")
def test_rabbitmq_accepts_redeclare_with_other_unknown_arguments(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare_exchange("x", arguments={"colour": "red"})
    client.declare_exchange("x", arguments={"colour": "blue"})


@pytest.mark.rule("0-9-1/exchange.declare/durable-support#durable")
@pytest.mark.rule("0-9-1/exchange.declare/durable-support#transient")
def test_durable_and_transient_exchanges_can_be_declared(client: Client) -> None:
    client.declare_exchange("durable", durable=True).declare_exchange("transient", durable=False)
    assert exists(client, "durable")
    assert exists(client, "transient")


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/exchange/lifetimes#durable", "0-9-1/exchange.declare/durable-survives#durable")
def test_durable_exchanges_survive_a_restart_with_their_type(server: Server) -> None:
    server.client().declare_exchange("durable", "topic", durable=True)
    again = server.restart().client()
    assert exists(again, "durable")
    again.declare_exchange("durable", "topic", durable=True)
    for kind in FOUR_TYPES:
        assert exists(again, f"amq.{kind}")


@pytest.mark.needs("restart")
@pytest.mark.rule("0-9-1/exchange.declare/durable-default")
@pytest.mark.parametrize("name", ["rabbitmq-4.0", "spec"])
def test_exchange_declared_without_durable_is_deleted_by_restart(name: str) -> None:
    server = Server(name)
    server.client().declare_exchange("x")
    again = server.restart().client()
    refused(again, Declare(exchange="x", passive=True), 404, "NOT_FOUND - no exchange 'x' in vhost '/'")


TRANSIENT_ENDS = pytest.mark.rule(
    "0-9-1/exchange.declare/durable-survives#transient", "0-9-1/exchange/lifetimes#temporary"
)
TRANSIENT_STAYS = pytest.mark.deviates(
    "0-9-1/exchange.declare/durable-survives#transient",
    "0-9-1/exchange.declare/durable-default",
    "0-9-1/exchange/lifetimes#temporary",
)


@pytest.mark.needs("restart", "inspection")
@rows(
    "name, survives",
    pytest.param("rabbitmq-3.13", False, marks=TRANSIENT_ENDS),
    pytest.param("rabbitmq-4.0", False, marks=TRANSIENT_ENDS),
    pytest.param("rabbitmq-4.2", True, marks=TRANSIENT_STAYS),
    pytest.param("rabbitmq-4.3", True, marks=TRANSIENT_STAYS),
    pytest.param("spec", False, marks=TRANSIENT_ENDS),
)
@pytest.mark.protocols("0-9-1")
def test_transient_exchanges_survive_restart_with_their_bindings_since_4_2(name: str, survives: bool) -> None:
    server = Server(name)
    server.client().declare("q", durable=True).declare_exchange("x", "fanout").bind("q", "x")
    again = server.restart().client()
    assert exists(again, "x") == survives
    if survives:
        again = server.client()
        assert again.publish(exchange="x").count("q") == 1


@pytest.mark.needs("restart", "inspection")
@pytest.mark.parametrize(
    ("name", "stays"),
    [("rabbitmq-3.13", True), ("rabbitmq-4.0", True), ("rabbitmq-4.2", False), ("rabbitmq-4.3", False)],
)
def test_restart_deletes_auto_delete_exchange_left_unbound_since_4_2(name: str, stays: bool) -> None:
    server = Server(name)
    client = server.client()
    client.declare("transient").declare_exchange("x", "fanout", durable=True, auto_delete=True)
    client.bind("transient", "x")
    server.restart()
    assert exists(server.client(), "x") == stays


@pytest.mark.rule("0-9/exchange.declare/arguments-passive", "0-9-1/exchange.declare/passive-ignores-fields")
def test_passive_declare_ignores_all_fields_except_the_name(client: Client) -> None:
    client.declare_exchange("x")
    for kind in ("fanout", "nosuch", ""):
        client.perform(
            Declare(
                exchange="x",
                type=kind,
                passive=True,
                durable=True,
                auto_delete=True,
                internal=True,
                arguments={"alternate-exchange": 5},
            )
        )
    client.send(Declare(exchange="x", passive=True, no_wait=True)).expect_nothing()


@pytest.mark.rule("0-9-1/exchange.declare/passive-no-wait")
def test_spec_personality_ignores_passive_declare_of_missing_exchange_with_no_wait(spec: Server) -> None:
    client = spec.client()
    client.send(Declare(exchange="missing", passive=True, no_wait=True)).expect_nothing()
    assert not exists(client, "missing")


@pytest.mark.deviates("0-9-1/exchange.declare/passive-no-wait")
def test_rabbitmq_refuses_passive_declare_of_missing_exchange_with_no_wait(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    method = Declare(exchange="missing", passive=True, no_wait=True)
    refused(client, method, 404, "NOT_FOUND - no exchange 'missing' in vhost '/'")


@pytest.mark.rule("0-9-1/exchange.declare/arguments-equivalence")
def test_redeclare_with_reordered_arguments_of_equal_values_is_accepted(client: Client) -> None:
    first = b"\x01aI\0\0\0\x05" + b"\x12alternate-exchangeS\0\0\0\x01x"
    second = b"\x12alternate-exchangeS\0\0\0\x01x" + b"\x01ai\0\0\0\x05"
    for table in (first, second):
        payload = Declare(exchange="x", type="direct").encode()
        assert payload.endswith(b"\0\0\0\0"), "the empty table is last"
        client.send_frame(1, 1, payload[:-4] + len(table).to_bytes(4, "big") + table).expect(DeclareOk)


@pytest.mark.rule("0-9-1/exchange.declare/no-wait-silent")
def test_exchange_declare_with_no_wait_is_not_answered(client: Client) -> None:
    client.send(Declare(exchange="x", type="direct", no_wait=True)).expect_nothing()
    client.perform(Declare(exchange="x", passive=True)).expect_nothing()


@pytest.mark.rule("0-9-1/exchange.declare/creates")
def test_exchange_declare_creates_a_missing_exchange(client: Client) -> None:
    assert not exists(client, "x")
    client.declare_exchange("x")
    assert exists(client, "x")


@pytest.mark.rule("0-9-1/exchange.declare/reserved-flags#auto-delete")
@pytest.mark.rule("0-9-1/exchange.declare/reserved-flags#internal")
def test_spec_personality_ignores_auto_delete_and_internal_bits(spec: Server) -> None:
    client = spec.client().declare_exchange("x", "fanout", auto_delete=True, internal=True)
    assert client.declare("q").bind("q", "x").publish(exchange="x").count("q") == 1, "it is not internal"
    client.perform(m.QueueUnbind(queue="q", exchange="x"))
    assert exists(client, "x"), "it does not go with its last binding"
    client.declare_exchange("x", "fanout")


@pytest.mark.deviates("0-9-1/exchange.declare/reserved-flags#auto-delete")
@pytest.mark.deviates("0-9-1/exchange.declare/reserved-flags#internal")
def test_rabbitmq_applies_auto_delete_and_internal_bits(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare_exchange("x", "fanout", auto_delete=True, internal=True)
    client.declare("q").bind("q", "x").publish(exchange="x")
    client.expect_channel_close(
        403, text="ACCESS_REFUSED - cannot publish to internal exchange 'x' in vhost '/'"
    )
    client.open_channel().perform(m.QueueUnbind(queue="q", exchange="x"))
    assert not exists(client, "x")


@pytest.mark.rule("0-9-1/exchange.declare-ok/confirm")
def test_exchange_declare_ok_has_no_fields(client: Client) -> None:
    assert client.send(Declare(exchange="x", type="direct")).take_frame().payload == bytes((0, 40, 0, 11))


# --- delete ----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/exchange.delete/exchange-exists")
def test_spec_personality_refuses_delete_of_missing_exchange(spec: Server) -> None:
    client = spec.client()
    refused(client, Delete(exchange="missing"), 404, "NOT_FOUND - no exchange 'missing' in vhost '/'")


@pytest.mark.deviates("0-9-1/exchange.delete/exchange-exists")
@pytest.mark.parametrize("if_unused", [False, True])
def test_rabbitmq_accepts_delete_of_missing_exchange(rabbitmq: Server, if_unused: bool) -> None:
    rabbitmq.client().perform(Delete(exchange="missing", if_unused=if_unused))


@pytest.mark.rule("0-9/exchange.delete/if-unused#kept", "0-9/exchange.delete/if-unused#refused")
@pytest.mark.rule("0-9-1/exchange.delete/if-unused-in-use#kept")
@pytest.mark.rule("0-9-1/exchange.delete/if-unused-in-use#refused")
def test_delete_with_if_unused_of_exchange_with_bindings_is_refused(client: Client) -> None:
    client.declare_exchange("x").declare("q").bind("q", "x", "k")
    refused(
        client,
        Delete(exchange="x", if_unused=True),
        406,
        "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use",
    )
    assert exists(client, "x")
    assert client.publish(exchange="x", routing_key="k").count("q") == 1


@pytest.mark.rule("0-9-1/exchange.delete/cancels-bindings")
def test_delete_of_exchange_removes_its_bindings(client: Client) -> None:
    client.declare("q").declare_exchange("x")
    client.bind("q", "x", "k").publish(exchange="x", routing_key="k").perform(Delete(exchange="x"))
    assert client.declare_exchange("x").publish(exchange="x", routing_key="k").count("q") == 1


@pytest.mark.rule("0-9-1/exchange.delete/if-unused-free")
def test_delete_with_if_unused_deletes_exchange_without_bindings(client: Client) -> None:
    client.declare_exchange("x")
    client.declare("q").bind("q", "x", "k").perform(m.QueueUnbind(queue="q", exchange="x", routing_key="k"))
    client.perform(Delete(exchange="x", if_unused=True))
    assert not exists(client, "x")


@pytest.mark.rule("0-9-1/exchange.delete/no-wait-silent")
def test_exchange_delete_with_no_wait_is_not_answered(client: Client) -> None:
    client.declare_exchange("x").send(Delete(exchange="x", no_wait=True)).expect_nothing()
    refused(client, Declare(exchange="x", passive=True), 404, "NOT_FOUND - no exchange 'x' in vhost '/'")


@pytest.mark.rule("0-9-1/exchange.delete-ok/confirm#empty", "0-9-1/exchange.delete-ok/confirm#follows")
def test_exchange_delete_ok_has_no_fields_and_follows_the_deletion(client: Client) -> None:
    client.declare_exchange("x")
    assert client.send(Delete(exchange="x")).take_frame().payload == bytes((0, 40, 0, 21))
    assert not exists(client, "x")
