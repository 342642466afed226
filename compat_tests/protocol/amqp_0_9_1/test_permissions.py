"""Who may use which queue and exchange (RabbitMQ: documented access control, texts as measured)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

NAMES = ("c", "w", "r", "cwr", "none")


def login(server: Server, **patterns: str) -> Client:
    """As a user who may configure what has a c in its name, write a w, and read an r."""
    granted = {"configure": "c", "write": "w", "read": "r"} | patterns
    server.state.access.add(User("ann", "secret", (), {"/": Permission(**granted)}))
    return server.client(user="ann", password="secret")


@pytest.fixture
def client(server: Server) -> Client:
    """ann, beside queues and direct exchanges of every name."""
    guest = server.client()
    for name in NAMES:
        guest.declare(name).declare_exchange(name)
    return login(server)


def denied(client: Client, method: m.Method, action: str, kind: str, name: str) -> None:
    text = f"ACCESS_REFUSED - {action} access to {kind} '{name}' in vhost '/' refused for user 'ann'"
    refused(client, method, 403, text)


QUEUE_METHODS: list[tuple[m.Method, type[m.Method], str]] = [
    (m.QueueDeclare(), m.QueueDeclareOk, "configure"),
    (m.QueueDelete(), m.QueueDeleteOk, "configure"),
    (m.QueuePurge(), m.QueuePurgeOk, "read"),
    (m.BasicGet(), m.BasicGetEmpty, "read"),
    (m.BasicConsume(), m.BasicConsumeOk, "read"),
]


@pytest.mark.needs("settings")
@pytest.mark.parametrize(
    ("method", "reply", "action"), QUEUE_METHODS, ids=[each[0].NAME for each in QUEUE_METHODS]
)
def test_queue_methods_need_rights(client: Client, method: Any, reply: type[m.Method], action: str) -> None:
    for name in NAMES:
        named = type(method)(queue=name)
        if action[0] in name.replace("none", ""):
            client.call(named, reply)
        else:
            denied(client, named, action, "queue", name)


EXCHANGE_METHODS: list[tuple[Any, type[m.Method]]] = [
    (lambda name: m.ExchangeDeclare(exchange=name, type="direct"), m.ExchangeDeclareOk),
    (lambda name: m.ExchangeDelete(exchange=name), m.ExchangeDeleteOk),
]


@pytest.mark.needs("settings")
@pytest.mark.parametrize(("make", "reply"), EXCHANGE_METHODS, ids=["declare", "delete"])
def test_exchange_methods_need_configure(client: Client, make: Any, reply: type[m.Method]) -> None:
    for name in NAMES:
        if name.startswith("c"):
            client.call(make(name), reply)
        else:
            denied(client, make(name), "configure", "exchange", name)


@pytest.mark.needs("settings")
def test_binding_a_queue_needs_write_on_it_and_read_on_the_exchange(client: Client) -> None:
    for method, reply in ((m.QueueBind, m.QueueBindOk), (m.QueueUnbind, m.QueueUnbindOk)):
        client.call(method(queue="w", exchange="r"), reply)
        denied(client, method(queue="c", exchange="r"), "write", "queue", "c")
        denied(client, method(queue="r", exchange="r"), "write", "queue", "r")
        denied(client, method(queue="w", exchange="w"), "read", "exchange", "w")
        denied(client, method(queue="none", exchange="none"), "write", "queue", "none")


@pytest.mark.needs("settings")
def test_binding_exchanges_needs_write_on_destination_and_read_on_source(client: Client) -> None:
    for method, reply in ((m.ExchangeBind, m.ExchangeBindOk), (m.ExchangeUnbind, m.ExchangeUnbindOk)):
        client.call(method(destination="w", source="r"), reply)
        denied(client, method(destination="r", source="r"), "write", "exchange", "r")
        denied(client, method(destination="w", source="w"), "read", "exchange", "w")


@pytest.mark.needs("settings")
def test_publishing_needs_write_on_the_exchange(client: Client) -> None:
    client.publish(exchange="w", routing_key="k")
    client.publish(exchange="cwr", routing_key="k").publish(exchange="r", routing_key="k")
    client.expect_channel_close(
        403,
        text="ACCESS_REFUSED - write access to exchange 'r' in vhost '/' refused for user 'ann'",
        at=(60, 40),
    )


@pytest.mark.needs("settings")
def test_the_default_exchange_is_called_amq_default(server: Server) -> None:
    client = login(server, write="^ok$").publish(routing_key="q")
    assert client.expect_channel_close(403).reply_text == (
        "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'ann'"
    )
    allowed = login(server, write="^amq.default$")
    allowed.publish(routing_key="q", mandatory=True).expect_content(m.BasicReturn)


@pytest.mark.needs("settings")
@pytest.mark.parametrize(
    "method",
    [m.QueueDelete(queue="x"), m.QueuePurge(queue="x"), m.BasicGet(queue="x"), m.BasicConsume(queue="x")],
    ids=lambda method: method.NAME,
)
def test_permission_is_checked_before_existence_of_queue(client: Client, method: m.Method) -> None:
    denied(client, method, "configure" if isinstance(method, m.QueueDelete) else "read", "queue", "x")


@pytest.mark.needs("settings")
def test_missing_exchange_is_answered_with_403_without_permission(client: Client) -> None:
    denied(client, m.ExchangeDelete(exchange="x"), "configure", "exchange", "x")
    denied(client, m.QueueBind(queue="w", exchange="x"), "read", "exchange", "x")


@pytest.mark.needs("inspection", "settings")
def test_names_made_by_the_server_need_the_same_permissions(server: Server) -> None:
    # RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6.
    for patterns, arguments, text in (
        ({"configure": "^c"}, {}, "configure access to queue 'amq.gen-"),
        ({"configure": "."}, {"x-dead-letter-exchange": "w"}, "read access to queue 'amq.gen-"),
        (
            {"configure": ".", "read": "."},
            {"x-dead-letter-exchange": ""},
            "write access to exchange 'amq.default'",
        ),
    ):
        client = login(server, **patterns)
        assert client.fails(m.QueueDeclare(arguments=arguments), 403).reply_text.startswith(
            f"ACCESS_REFUSED - {text}"
        )
        assert not server.vhost.queues
    assert login(server, configure=r"^amq\.gen-").declare_ok("").queue.startswith("amq.gen-")


@pytest.mark.needs("settings")
def test_reserved_names_and_unknown_types_are_refused_before_permissions(rabbitmq: Server) -> None:
    # RabbitMQ: measured.
    client = login(rabbitmq, configure="^$")
    for method, code, text in (
        (
            m.QueueDeclare(queue="amq.x"),
            403,
            "ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'",
        ),
        (
            m.ExchangeDelete(exchange="amq.direct"),
            403,
            "ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed",
        ),
        (
            m.ExchangeDeclare(exchange="x", type="bogus"),
            406,
            "PRECONDITION_FAILED - unknown exchange type 'bogus'",
        ),
    ):
        refused(client, method, code, text)


@pytest.mark.needs("settings")
def test_dead_lettering_needs_read_on_the_queue_and_write_on_the_exchange(server: Server) -> None:
    client = login(server).declare("cr", arguments={"x-dead-letter-exchange": "w"})
    arguments = {"x-dead-letter-exchange": "r"}
    denied(client, m.QueueDeclare(queue="crr", arguments=arguments), "write", "exchange", "r")
    denied(client, m.QueueDeclare(queue="c", arguments=arguments), "read", "queue", "c")


@pytest.mark.needs("settings")
def test_alternate_exchange_needs_read_on_declared_exchange_and_write_on_alternate(server: Server) -> None:
    client = login(server)
    make = {"type": "direct", "arguments": {"alternate-exchange": "w"}}
    client.perform(m.ExchangeDeclare(exchange="cr", **make))
    denied(client, m.ExchangeDeclare(exchange="c", **make), "read", "exchange", "c")
    make["arguments"] = {"alternate-exchange": "r"}
    denied(client, m.ExchangeDeclare(exchange="crr", **make), "write", "exchange", "r")


@pytest.mark.needs("settings")
def test_a_passive_declare_needs_any_permission_with_rabbitmq(rabbitmq: Server) -> None:
    guest = rabbitmq.client()
    client = login(rabbitmq)
    for name in ("c", "w", "r", "x"):
        guest.declare(name).declare_exchange(name)
    for name in ("c", "w", "r"):
        client.declare(name, passive=True).perform(m.ExchangeDeclare(exchange=name, passive=True))
    denied(client, m.QueueDeclare(queue="x", passive=True), "configure", "queue", "x")
    denied(client, m.ExchangeDeclare(exchange="x", passive=True), "configure", "exchange", "x")


def test_spec_personality_needs_no_permission_for_passive_declare(spec: Server) -> None:
    spec.client().declare("x")
    assert login(spec).declare_ok("x", passive=True).queue == "x"


@pytest.mark.needs("settings")
def test_permissions_are_looked_up_anew_when_they_change(server: Server) -> None:
    client = login(server).declare("c")
    server.state.access.users["ann"].permissions["/"] = Permission(configure="^$")
    server.state.access.changed()
    denied(client, m.QueueDeclare(queue="c"), "configure", "queue", "c")


@pytest.mark.needs("settings")
def test_a_publisher_loses_its_permission_at_once(server: Server) -> None:
    client = login(server, write=".*")
    client.publish(exchange="amq.fanout").expect_nothing()
    server.state.access.users["ann"].permissions["/"] = Permission(write="^$")
    server.state.access.changed()
    client.publish(exchange="amq.fanout").expect_channel_close(403)


# --- topics ----------------------------------------------------------------------------------------
@pytest.fixture
def topics(server: Server) -> Client:
    """ann, who may write under "mine." and read under her own name on amq.topic."""
    permission = TopicPermission(write=r"^mine\.", read=r"^{username}\.")
    server.state.access.add(User("ann", "secret", (), {"/": Permission()}, {("/", "amq.topic"): permission}))
    return server.client(user="ann", password="secret")


def topic_denied(client: Client, method: m.Method, key: str) -> None:
    text = f"ACCESS_REFUSED - read access to topic '{key}' in exchange 'amq.topic' in vhost '/' "
    refused(client, method, 403, text + "refused for user 'ann'")


@pytest.mark.needs("settings")
def test_publishing_to_a_topic_exchange_needs_permission_for_the_key(topics: Client) -> None:
    topics.publish(exchange="amq.topic", routing_key="mine.a").expect_nothing()
    topics.publish(exchange="amq.topic", routing_key="theirs.a")
    assert topics.expect_channel_close(403).reply_text == (
        "ACCESS_REFUSED - write access to topic 'theirs.a' in exchange 'amq.topic' in vhost '/' "
        "refused for user 'ann'"
    )


@pytest.mark.needs("settings")
def test_binding_to_a_topic_exchange_needs_permission_for_the_key(topics: Client) -> None:
    topics.declare("q").bind("q", "amq.topic", "ann.#")
    topic_denied(topics, m.QueueBind(queue="q", exchange="amq.topic", routing_key="#"), "#")
    topic_denied(topics, m.QueueUnbind(queue="q", exchange="amq.topic", routing_key="#"), "#")
    topic_denied(topics, m.ExchangeBind(source="amq.topic", destination="amq.fanout", routing_key="b"), "b")


@pytest.mark.needs("settings")
def test_topic_permissions_hold_for_their_exchange_only(topics: Client) -> None:
    topics.declare("q").declare_exchange("other", "topic")
    topics.bind("q", "other", "#").bind("q", "amq.direct", "theirs")
    topics.publish(exchange="other", routing_key="theirs.a")
    assert topics.publish(exchange="amq.direct", routing_key="theirs").count("q") == 2
