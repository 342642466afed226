"""Exchanges of type x-delayed-message (RabbitMQ: documented plugin): what waits, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, QuietTap, Server
from compat_tests.tools.matrix import rows
from fakeamqp.inspect.messages import published_views
from fakeamqp.inspect.topology import exchange_view
from fakeamqp.model.exchanges.hashing import jump, phash2
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

pytestmark = pytest.mark.needs("plugin for delayed messages")


def declare(client: Client, exchange: str = "x", inner: Any = "direct", **flags: Any) -> Client:
    arguments = {"x-delayed-type": inner, **flags.pop("arguments", {})}
    method = m.ExchangeDeclare(exchange=exchange, type="x-delayed-message", arguments=arguments, **flags)
    client.call(method, m.ExchangeDeclareOk)
    return client


def later(
    client: Client, body: bytes, delay: Any, exchange: str = "x", key: str = "k", **more: Any
) -> Client:
    headers = {**more.pop("headers", {}), "x-delay": delay}
    return client.publish(body, exchange=exchange, routing_key=key, headers=headers, **more)


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    """x, delayed and direct, passes k to q."""
    return declare(rabbitmq.client()).declare("q").bind("q", "x", "k")


def waiting(server: Server, exchange: str = "x") -> int:
    return exchange_view(server.state, exchange).delayed


# --- when ------------------------------------------------------------------------------------------
def test_delayed_message_is_delivered_when_its_delay_ends(client: Client) -> None:
    client.consume("q", no_ack=True)
    later(client, b"m", 5000).after(4.999).expect_nothing()
    got = client.after(0.001).delivery()
    assert (got.body, got.method.exchange, got.method.routing_key) == (b"m", "x", "k")
    client.after(60).expect_nothing()


def test_delivered_message_has_negative_x_delay_header(client: Client) -> None:
    client.publish(
        b"m",
        exchange="x",
        routing_key="k",
        headers={"x-delay": 1500, "a": 1},
        message_id="i",
        delivery_mode=2,
    )
    got = client.after(1.5).fetch("q")
    assert got.properties.headers == {"a": 1, "x-delay": -1500}
    assert list(got.properties.headers) == ["a", "x-delay"], "in the order of their names"
    assert got.properties.header_tag("x-delay") == "l"
    assert (got.properties.message_id, got.properties.delivery_mode) == ("i", 2)


def test_delayed_messages_are_queued_in_order_of_due_time(client: Client) -> None:
    for body, delay in ((b"3", 3000), (b"1", 1000), (b"2", 2000), (b"1b", 1000)):
        later(client, body, delay)
    assert later(client, b"0", 0).after(10).empty("q") == [b"0", b"1", b"1b", b"2", b"3"]


def test_delayed_messages_are_queued_at_their_exact_due_times(client: Client) -> None:
    client.perform(m.QueueDeclare(queue="short", arguments={"x-message-ttl": 1000})).bind("short", "x", "k")
    later(client, b"1", 1000)
    assert later(client, b"2", 1500).after(2.2).empty("short") == [b"2"]
    assert client.empty("q") == [b"1", b"2"]


def test_messages_due_together_are_ordered_by_exchange_name_and_publish_order(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    for exchange in ("b", "a", "é", "B"):
        declare(client, exchange, "fanout").bind("q", exchange)
    later(client, b"b1", 3000, "b")
    later(client, b"e", 3000, "é")
    rabbitmq.advance(1)
    later(client, b"a1", 2000, "a")
    later(client, b"B", 2000, "B")
    later(client, b"b2", 2000, "b")
    assert later(client, b"a2", 2000, "a").after(2).empty("q") == [b"B", b"a1", b"a2", b"b1", b"b2", b"e"]


# In tenths of a second, which floating point numbers do not hold.
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 30), st.integers(0, 9)), max_size=25)


@settings(deadline=None)
@given(STEPS)
def test_delayed_messages_are_ordered_by_due_time_then_exchange_then_publish_order(
    steps: list[tuple[str, int, int]],
) -> None:
    server = Server()
    client = server.client().declare("q")
    for exchange in "abc":
        declare(client, exchange, "fanout").bind("q", exchange)
    now = 0
    wanted = []
    for number, (exchange, delay, pause) in enumerate(steps):
        later(client, b"%d" % number, delay * 100, exchange)
        wanted.append((now + delay, exchange, number))
        now += pause
        server.advance(pause / 10)
    assert client.after(10).empty("q") == [b"%d" % number for *_, number in sorted(wanted)]


# --- what delays -----------------------------------------------------------------------------------
@rows(
    "value, seconds",
    (1, 0.001),
    (300, 0.3),
    (2**32 - 1, 4294967.295),
    ("1500", 1.5),
    ("+1500", 1.5),
    (b"1500", 1.5),
    (1500.7, 1.5),
    ids=repr,
)
def test_positive_x_delay_values_delay_by_milliseconds(client: Client, value: Any, seconds: float) -> None:
    assert later(client, b"m", value).count("q") == 0
    assert client.after(seconds - 0.0005).count("q") == 0
    assert client.after(0.0005).fetch("q").properties.headers == {"x-delay": -round(seconds * 1000)}


@pytest.mark.parametrize(
    "value",
    [0, -1, -5000, 2**32, 2**40, "0", "-5", 0.9, -3.5, True, Timestamp(5000), [5000], {"a": 5000}],
    ids=repr,
)
def test_zero_negative_too_large_and_non_numeric_x_delay_values_do_not_delay(
    rabbitmq: Server, client: Client, value: Any
) -> None:
    later(client, b"m", value)
    assert client.fetch("q").properties.headers == {"x-delay": value}, "the header is as it was"
    assert waiting(rabbitmq) == 0


def test_message_without_x_delay_header_is_not_delayed(client: Client) -> None:
    client.publish(b"1", exchange="x", routing_key="k")
    client.publish(b"2", exchange="x", routing_key="k", headers={"X-Delay": 5000})
    assert client.empty("q") == [b"1", b"2"]


TAGS: list[tuple[bytes, bool]] = [
    (b"b\x64", False),
    (b"B\x64", True),
    (b"s\0\x64", True),
    (b"u\0\x64", True),
    (b"I\0\0\0\x64", True),
    (b"i\0\0\0\x64", True),
    (b"l" + bytes(7) + b"\x64", True),
    (b"L" + bytes(7) + b"\x64", True),
]


@pytest.mark.parametrize(("value", "delays"), TAGS)
def test_x_delay_of_type_int8_does_not_delay(client: Client, value: bytes, delays: bool) -> None:
    field = b"\x07x-delay" + value
    properties = b"\x20\0" + len(field).to_bytes(4, "big") + field
    assert client.publish_bytes(properties, exchange="x", routing_key="k").count("q") == (not delays)
    assert client.after(0.1).count("q") == 1


@pytest.mark.rule("0-9-1/reply-code/internal-error")
@pytest.mark.parametrize("value", ["soon", "", "1.5", " 1", "1 ", "0x10", b"\xff", None], ids=repr)
def test_invalid_x_delay_value_closes_the_connection_with_541(client: Client, value: Any) -> None:
    later(client, b"m", value)
    assert "x-delay" in client.expect_connection_close(541).reply_text
    assert waiting(client.server) == 0


def test_x_delay_header_does_not_delay_on_other_exchange_types(client: Client) -> None:
    client.bind("q", "amq.direct", "k")
    assert later(client, b"m", 5000, "amq.direct").empty("q") == [b"m"]


# --- what the publisher is told --------------------------------------------------------------------
def test_a_delayed_message_is_confirmed_at_once(client: Client) -> None:
    client.perform(m.ConfirmSelect())
    assert later(client, b"m", 5000).expect(m.BasicAck).delivery_tag == 1
    client.after(5).expect_nothing()
    assert client.count("q") == 1


def test_delayed_mandatory_message_is_returned_at_once_and_delivered_later(client: Client) -> None:
    client.perform(m.ConfirmSelect())
    back = later(client, b"m", 5000, mandatory=True).expect_content(m.BasicReturn)
    assert (back.method.reply_code, back.body, back.properties.headers) == (312, b"m", {"x-delay": 5000})
    client.expect(m.BasicAck)
    assert client.after(5).empty("q") == [b"m"]


def test_delayed_message_unroutable_when_due_is_dropped_silently(rabbitmq: Server, client: Client) -> None:
    later(client, b"m", 5000, key="elsewhere").after(5).expect_nothing()
    assert waiting(rabbitmq) == 0


def test_delayed_message_goes_to_alternate_exchange_at_once_and_to_queues_when_due(rabbitmq: Server) -> None:
    client = declare(rabbitmq.client(), arguments={"alternate-exchange": "amq.fanout"})
    for queue in ("q", "spare"):
        client.declare(queue)
    client.bind("q", "x", "k").bind("spare", "amq.fanout")
    later(client, b"1", 1000, mandatory=True).expect_nothing()
    assert client.empty("spare") == [b"1"]
    later(client, b"2", 1000, key="elsewhere").empty("spare")
    rabbitmq.advance(1)
    assert (client.empty("q"), client.empty("spare")) == ([b"1"], [b"2"])


def test_delay_of_transacted_message_starts_at_publish(rabbitmq: Server, client: Client) -> None:
    client.perform(m.TxSelect())
    later(client, b"1", 5000)
    rabbitmq.advance(3)
    later(client, b"2", 5000).perform(m.TxCommit())
    assert client.after(2).empty("q") == [b"1"]
    assert client.after(3).empty("q") == [b"2"]


def test_rollback_does_not_remove_a_delayed_message(client: Client) -> None:
    client.perform(m.TxSelect())
    later(client, b"m", 5000, mandatory=True).expect_nothing()
    assert client.perform(m.TxRollback()).after(5).empty("q") == [b"m"]


def test_delayed_mandatory_message_of_a_transaction_is_returned_at_commit(client: Client) -> None:
    client.perform(m.TxSelect())
    later(client, b"m", 5000, mandatory=True).expect_nothing()
    assert client.send(m.TxCommit()).expect_content(m.BasicReturn).method.reply_code == 312
    client.expect(m.TxCommitOk)


# --- routing ---------------------------------------------------------------------------------------
@rows(
    "inner, binding, arguments, fits, misses",
    ("direct", "k", {}, {"key": "k"}, {"key": "l"}),
    ("fanout", "", {}, {"key": "any"}, None),
    ("topic", "a.*", {}, {"key": "a.b"}, {"key": "b.b"}),
    ("headers", "", {"h": 1}, {"headers": {"h": 1}}, {"headers": {"h": 2}}),
    ("x-consistent-hash", "1", {}, {"key": "any"}, None),
    ("x-modulus-hash", "", {}, {"key": "any"}, None),
    ("x-random", "", {}, {"key": "any"}, None),
    ("x-local-random", "", {}, {"key": "any"}, None),
)
def test_delayed_exchange_routes_as_its_x_delayed_type(
    rabbitmq: Server, inner: str, binding: str, arguments: Any, fits: Any, misses: Any
) -> None:
    client = declare(rabbitmq.client(), inner=inner)
    client.declare("q").bind("q", "x", binding, arguments=arguments)
    later(client, b"fits", 1000, **fits)
    if misses is not None:
        later(client, b"misses", 1000, **misses)
        later(client, b"misses", 0, **misses)
    assert later(client, b"now", 0, **fits).empty("q") == [b"now"]
    assert client.after(1).empty("q") == [b"fits"]
    client.perform(m.QueueUnbind(queue="q", exchange="x", routing_key=binding, arguments=arguments))
    assert later(client, b"unbound", 0, **fits).count("q") == 0


def test_delayed_consistent_hash_exchange_routes_like_a_plain_one_of_its_type(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare_exchange("plain", "x-consistent-hash")
    declare(client, inner="x-consistent-hash")
    for number in range(4):
        for exchange in ("plain", "x"):
            client.declare(f"{exchange}{number}").bind(f"{exchange}{number}", exchange, "1")
    for number in range(50):
        client.publish(b"%d" % number, exchange="plain", routing_key=f"key-{number}")
        later(client, b"%d" % number, 1000, key=f"key-{number}")
    rabbitmq.advance(1)
    for number in range(4):
        assert client.empty(f"x{number}") == client.empty(f"plain{number}") != []


def test_exchange_arguments_apply_to_the_x_delayed_type(rabbitmq: Server) -> None:
    client = declare(rabbitmq.client(), inner="x-consistent-hash", arguments={"hash-header": "customer"})
    for number in range(4):
        client.declare(f"q{number}").bind(f"q{number}", "x", "1")
    for number in range(20):
        later(client, b"%d" % number, 0, key=f"key-{number}", headers={"customer": "one"})
    assert sorted(client.count(f"q{number}") for number in range(4)) == [0, 0, 0, 20]


def test_delayed_message_is_routed_by_the_bindings_at_due_time(rabbitmq: Server, client: Client) -> None:
    client.declare("new")
    later(client, b"m", 1000).perform(m.QueueUnbind(queue="q", exchange="x", routing_key="k"))
    client.bind("new", "x", "k")
    rabbitmq.advance(1)
    assert (client.count("q"), client.count("new")) == (0, 1)


def test_cc_and_bcc_copies_are_delayed_with_the_message(rabbitmq: Server, client: Client) -> None:
    client.declare("other").bind("other", "x", "b")
    later(client, b"m", 1000, key="elsewhere", headers={"CC": ["k"], "BCC": ["b"]})
    assert client.count("other") == 0
    rabbitmq.advance(1)
    for queue in ("q", "other"):
        assert client.fetch(queue).properties.headers == {"CC": ["k"], "x-delay": -1000}


def test_delayed_message_is_not_delayed_again_by_another_delayed_exchange(client: Client) -> None:
    declare(client, "second", "fanout")
    client.perform(m.ExchangeBind(source="x", destination="second", routing_key="k"))
    client.declare("end").bind("end", "second")
    got = later(client, b"m", 1000).after(1).fetch("end")
    client.publish(b"again", exchange="x", routing_key="k", headers=got.properties.headers)
    assert client.empty("q") == [b"m", b"again"]


def test_delayed_exchange_bound_to_another_exchange_delays_only_its_own_branch(client: Client) -> None:
    client.declare("prompt").bind("prompt", "amq.direct", "k")
    client.perform(m.ExchangeBind(source="amq.direct", destination="x", routing_key="k"))
    later(client, b"m", 1000, "amq.direct", mandatory=True).expect_nothing()
    assert (client.empty("prompt"), client.count("q")) == ([b"m"], 0)
    client.server.advance(1)
    assert (client.fetch("q").method.exchange, client.count("prompt")) == ("amq.direct", 0)


def test_dead_letter_with_x_delay_is_delayed_by_delayed_exchange(client: Client) -> None:
    client.declare("work", arguments={"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "k"})
    got = client.publish(b"m", routing_key="work", headers={"x-delay": 1000}).fetch("work")
    assert client.reject(got.method.delivery_tag).count("q") == 0
    assert client.after(1).empty("q") == [b"m"]


def test_dead_letter_with_invalid_x_delay_is_dropped(rabbitmq: Server, client: Client) -> None:
    client.declare("work", arguments={"x-dead-letter-exchange": "x", "x-message-ttl": 1000})
    client.publish(b"m", routing_key="work", headers={"x-delay": "soon"})
    rabbitmq.advance(1)
    assert (client.count("work"), client.count("q")) == (0, 0)


def test_expiration_of_delayed_message_counts_from_queueing(client: Client) -> None:
    assert later(client, b"m", 5000, expiration="2000").after(6.9).count("q") == 1
    assert client.after(0.2).count("q") == 0


def test_delayed_message_for_full_reject_publish_queue_is_dropped_silently(client: Client) -> None:
    client.declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.bind("full", "x", "k").perform(m.ConfirmSelect())
    later(client, b"1", 1000)
    later(client, b"2", 1000)
    assert [client.expect(m.BasicAck).delivery_tag for _ in range(2)] == [1, 2]
    client.after(1).expect_nothing()
    assert (client.empty("full"), client.empty("q")) == ([b"1"], [b"1", b"2"])


def test_purge_of_queue_does_not_remove_delayed_messages(client: Client) -> None:
    later(client, b"m", 1000).perform(m.QueuePurge(queue="q"))
    assert client.after(1).count("q") == 1


# --- what is refused -------------------------------------------------------------------------------
@rows(
    "arguments, text",
    ({}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
    ({"x-delayed-type": 1}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
    (
        {"x-delayed-type": "x-delayed-message"},
        "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'",
    ),
    ({"x-delayed-type": "bogus"}, "unknown exchange type 'bogus'"),
    ({"x-delayed-type": ""}, "invalid exchange type ''"),
    ({"x-delayed-type": "x-consistent-hash", "hash-property": "user_id"}, "Unsupported property: user_id"),
    (
        {"x-delayed-type": "bogus", "alternate-exchange": 1},
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'",
    ),
)
def test_invalid_delayed_exchange_is_refused(rabbitmq: Server, arguments: dict[str, Any], text: str) -> None:
    client = rabbitmq.client()
    method = m.ExchangeDeclare(exchange="x", type="x-delayed-message", arguments=arguments)
    refused(client, method, 406, f"PRECONDITION_FAILED - {text}")
    assert "x" not in rabbitmq.vhost.exchanges


def test_x_delayed_type_unknown_to_the_personality_is_refused() -> None:
    client = Server("rabbitmq-3.13").client()
    arguments = {"x-delayed-type": "x-local-random"}
    method = m.ExchangeDeclare(exchange="x", type="x-delayed-message", arguments=arguments)
    refused(client, method, 406, "PRECONDITION_FAILED - unknown exchange type 'x-local-random'")


def test_redeclaration_with_another_x_delayed_type_keeps_the_first_type(client: Client) -> None:
    for inner in ("fanout", 5):
        declare(client, inner=inner)
    assert client.publish(exchange="x", routing_key="elsewhere").count("q") == 0, "it is direct still"


@rows(
    "inner, key, arguments, text",
    ("x-consistent-hash", "abc", {}, 'The binding key must be an integer: <<"abc">>'),
    ("x-local-random", "abc", {}, "Non empty binding 'abc' key not permitted"),
    (
        "headers",
        "",
        {"x-match": "some"},
        'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x',
    ),
)
def test_binding_invalid_for_the_x_delayed_type_is_refused(
    rabbitmq: Server, inner: str, key: str, arguments: Any, text: str
) -> None:
    client = declare(rabbitmq.client(), inner=inner).declare("q")
    bind = m.QueueBind(queue="q", exchange="x", routing_key=key, arguments=arguments)
    refused(client, bind, 406, f"PRECONDITION_FAILED - {text}")


def test_exchange_destination_invalid_for_the_x_delayed_type_is_refused(rabbitmq: Server) -> None:
    client = declare(rabbitmq.client(), inner="x-local-random")
    bind = m.ExchangeBind(source="x", destination="amq.fanout")
    refused(client, bind, 406, "PRECONDITION_FAILED - Destination not found")


# --- the exchange goes, the broker restarts --------------------------------------------------------
def delete(client: Client, exchange: str = "x") -> Client:
    return client.perform(m.ExchangeDelete(exchange=exchange))


def test_delayed_message_of_deleted_exchange_is_dropped_when_due(client: Client) -> None:
    later(client, b"m", 1000)
    assert delete(client).after(1).count("q") == 0
    assert declare(client).bind("q", "x", "k").after(60).count("q") == 0


def test_redeclared_exchange_routes_old_delayed_messages_by_their_own_keys(client: Client) -> None:
    later(client, b"old", 1000)
    delete(client)
    declare(client, inner="fanout").bind("q", "x", "other")
    assert waiting(client.server) == 1
    later(client, b"new", 1000, key="any")
    assert client.after(1).empty("q") == [b"new"], "the old one goes by its key still"


def test_redeclared_exchange_of_another_type_routes_delayed_messages_by_its_bindings(client: Client) -> None:
    later(client, b"m", 1000)
    delete(client).declare_exchange("x", "topic")
    assert client.bind("q", "x", "k").after(1).empty("q") == [b"m"]


def test_delayed_message_of_deleted_exchange_goes_to_its_alternate_exchange(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    declare(client, arguments={"alternate-exchange": "amq.fanout"}).declare("spare")
    later(client, b"m", 1000).bind("spare", "amq.fanout")
    assert delete(client).after(1).empty("spare") == [b"m"]


@pytest.fixture
def durable(rabbitmq: Server) -> Client:
    return declare(rabbitmq.client(), durable=True).declare("q", durable=True).bind("q", "x", "k")


def test_restart_keeps_delayed_messages_of_durable_exchange(rabbitmq: Server, durable: Client) -> None:
    later(durable, b"transient", 2000)
    later(durable, b"persistent", 2000, delivery_mode=2)
    rabbitmq.advance(1)
    rabbitmq.restart()
    assert waiting(rabbitmq) == 2
    again = rabbitmq.client()
    assert again.after(0.9).count("q") == 0
    assert again.after(0.1).empty("q") == [b"transient", b"persistent"]


def test_restart_rebuilds_the_hash_ring_of_a_delayed_exchange() -> None:
    server = Server("rabbitmq-3.13")
    client = declare(server.client(), inner="x-consistent-hash", durable=True)
    for queue, weight in (("q", "2"), ("r", "10")):
        client.declare(queue, durable=True).bind(queue, "x", weight)
    keys = [f"key-{number}" for number in range(30)]
    before = [took(client, key) for key in keys]
    server.restart()
    # By key, 10 comes before 2, and the ring is made anew in that order.
    after = [took(server.client(), key) for key in keys]
    buckets = [jump(phash2(key.encode()), 12) for key in keys]
    assert before == ["q" if bucket < 2 else "r" for bucket in buckets]
    assert after == ["r" if bucket < 10 else "q" for bucket in buckets]
    assert before != after


def took(client: Client, key: str) -> str:
    """Which of q and r gets a message that is not delayed."""
    client.publish(exchange="x", routing_key=key)
    [queue] = [queue for queue in "qr" if client.empty(queue)]
    return queue


def test_restart_drops_delayed_messages_of_transient_exchange() -> None:
    rabbitmq = Server("rabbitmq-4.0")
    client = declare(rabbitmq.client()).declare("kept", durable=True).bind("kept", "x", "k")
    later(client, b"m", 1000)
    rabbitmq.restart()
    rabbitmq.advance(1)
    assert rabbitmq.client().count("kept") == 0


def test_crash_drops_unconfirmed_delayed_messages(rabbitmq: Server, durable: Client) -> None:
    later(durable, b"lost", 1000)
    later(durable, b"lost", 3000).perform(m.ConfirmSelect())
    later(durable, b"kept", 3000)
    rabbitmq.restart(crash=True)
    assert waiting(rabbitmq) == rabbitmq.vhost.delays.count("x") == 1
    assert len(list(rabbitmq.state.timers.pending())) == 1
    rabbitmq.advance(3)
    assert rabbitmq.client().empty("q") == [b"kept"]


def test_cleared_broker_has_no_timers_for_delayed_messages(rabbitmq: Server, client: Client) -> None:
    later(client, b"m", 1000).drop()
    rabbitmq.state.clear()
    assert list(rabbitmq.state.timers.pending()) == []


# --- what one can see ------------------------------------------------------------------------------
def words(server: Server) -> list[str]:
    return [timer.words for timer in server.state.timers.pending()]


def test_timers_of_delayed_messages_name_exchange_and_message_count(rabbitmq: Server, client: Client) -> None:
    later(client, b"1", 3000)
    assert words(rabbitmq) == ["exchange 'x' publishes a message"]
    later(client, b"2", 3000)
    later(client, b"3", 2000)
    assert words(rabbitmq) == ["exchange 'x' publishes a message", "exchange 'x' publishes 2 messages"]
    rabbitmq.advance(3)
    assert words(rabbitmq) == []


def test_exchange_view_shows_the_number_of_delayed_messages(rabbitmq: Server, client: Client) -> None:
    declare(client, "y")
    assert waiting(rabbitmq) == 0
    assert "delayed=" not in repr(exchange_view(rabbitmq.state, "x"))
    for delay in (1000, 1000, 2000):
        later(client, b"m", delay)
    assert (waiting(rabbitmq), waiting(rabbitmq, "y")) == (3, 0)
    assert repr(exchange_view(rabbitmq.state, "x")).endswith(" bindings=1 delayed=3>")
    rabbitmq.advance(1)
    assert waiting(rabbitmq) == 1
    rabbitmq.advance(1)
    assert waiting(rabbitmq) == 0


@pytest.fixture
def watched() -> Server:
    return Server("rabbitmq-4.2", history=10)


def test_published_record_of_delayed_message_shows_delay_and_exchange(watched: Server) -> None:
    client = declare(watched.client())
    for queue in ("q", "now"):
        client.declare(queue).bind(queue, "amq.direct", "k")
    client.perform(m.ExchangeBind(source="amq.direct", destination="x", routing_key="k"))
    later(client, b"m", 1500)
    later(client, b"m", 1500, "amq.direct")
    later(client, b"m", 0)
    alone, branch, lost = published_views(watched.state)
    assert alone.outcome == "delayed for 1.5 s by exchange 'x'"
    assert (alone.delayed_for, alone.queues, alone.routed, alone.unroutable) == (1.5, (), False, False)
    assert branch.outcome == "routed to q, now; delayed for 1.5 s by exchange 'x'"
    assert (branch.delayed_for, branch.queues) == (1.5, ("q", "now"))
    assert (lost.outcome, lost.delayed_for, lost.unroutable) == ("unroutable", None, True)
    watched.advance(2)
    assert len(published_views(watched.state)) == 3, "it was published once"


def test_published_record_of_transacted_delayed_message_shows_the_delay(watched: Server) -> None:
    client = watched.client()
    declare(client).perform(m.TxSelect())
    later(client, b"m", 1500).perform(m.TxCommit())
    [record] = published_views(watched.state)
    assert (record.delayed_for, record.unroutable) == (1.5, False)


class Tap(QuietTap):
    """Keeps what happens in the model."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def happened(self, event: str, **facts: Any) -> None:
        self.events.append((event, facts))


@pytest.mark.parametrize(("key", "outcome"), [("k", "routed to q"), ("elsewhere", "unroutable")])
def test_tap_records_publish_and_end_of_delay(client: Client, key: str, outcome: str) -> None:
    tap = client.server.state.tap = Tap()
    later(client, b"m", 1500, key=key)
    [(event, facts)] = tap.events
    assert (event, str(facts["outcome"])) == ("published", "delayed for 1.5 s by exchange 'x'")
    client.server.advance(1.5)
    event, facts = tap.events[1]
    assert (event, facts["exchange"], str(facts["outcome"])) == ("delay over", "x", outcome)
    assert facts["message"].body == b"m"


def test_restart_without_disk_records_delayed_message_as_dropped() -> None:
    server = Server(history=10)
    client = declare(server.client())
    later(client, b"m", 1500).drop()
    server.state.restart(crash=False)
    assert server.state.outcome_histories is not None
    assert list(server.state.outcome_histories.dropped) == []
    server.state.discard("the broker came back without its disk")
    [dropped] = server.state.outcome_histories.dropped
    assert (dropped.message.body, dropped.queue, dropped.reason) == (b"m", None, "crash")
    assert dropped.detail == "exchange 'x' delayed it; the broker came back without its disk"
    assert not [label for label in server.state.timers.pending() if "publishes" in label.words]


@pytest.mark.needs("inspection")
def test_no_delayed_message_is_counted_after_all_were_dropped(rabbitmq: Server) -> None:
    client = later(declare(rabbitmq.client()), b"1", 1000)
    delays = rabbitmq.vhost.delays
    assert delays.count("x") == 1
    delays.clear("the broker was reset")
    assert delays.count("x") == 0
    later(client, b"2", 1000)
    assert delays.count("x") == 1
