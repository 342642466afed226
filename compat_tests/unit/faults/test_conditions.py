"""What a rule can ask of a method, and that it asks exactly that."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.tools.matrix import cases
from compat_tests.unit.faults.server import FaultServer, Publisher, bytes_of, publish_bytes
from fakeamqp.faults import Faults
from fakeamqp.faults.frame_group import ABSENT
from fakeamqp.faults.matching import conditions, subject_of, topic_matches
from fakeamqp.model.exchanges.topic import TopicExchange
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def publish_of_every_kind(client: Client) -> None:
    """One publish to "orders" through an exchange of each type, with body and headers that say which."""
    client.declare("orders")
    client.declare("other")
    ways: dict[str, tuple[str, str, dict[str, Any]]] = {
        "default": ("", "orders", {}),
        "direct": ("direct", "key", {}),
        "fanout": ("fanout", "whatever", {}),
        "topic": ("topic", "orders.new.eu", {}),
        "headers": ("headers", "", {"kind": "order"}),
    }
    for kind in ("direct", "fanout", "topic", "headers"):
        client.call(m.ExchangeDeclare(exchange=kind, type=kind), m.ExchangeDeclareOk)
    client.bind("orders", "direct", "key")
    client.bind("orders", "fanout")
    client.bind("orders", "topic", "orders.#")
    client.bind("orders", "headers", arguments={"x-match": "all", "kind": "order"})
    for name, (exchange, key, headers) in ways.items():
        client.publish(name.encode(), exchange=exchange, routing_key=key, headers=headers or None)
    client.publish(b"astray", routing_key="other")


def seen_by(faults: Faults, **wanted: Any) -> list[bytes]:
    """The bodies of the publishes that a rule fires for."""
    seen: list[bytes] = []
    faults.on("basic.publish", optional=True, **wanted).call(lambda group: seen.append(group.body))
    return seen


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["default", "direct", "fanout", "topic", "headers", "astray"]),
        ({"queue": "orders"}, ["default", "direct", "fanout", "topic", "headers"]),
        ({"queue": "other"}, ["astray"]),
        ({"queue": re.compile("^o")}, ["default", "direct", "fanout", "topic", "headers", "astray"]),
        ({"exchange": ""}, ["default", "astray"]),
        ({"exchange": "fanout"}, ["fanout"]),
        ({"exchange": re.compile("^(direct|topic)$")}, ["direct", "topic"]),
        ({"exchange_type": "direct"}, ["default", "direct", "astray"]),
        ({"exchange_type": "headers"}, ["headers"]),
        ({"routing_key": "orders.#"}, ["default", "topic"]),
        ({"routing_key": "orders.*.eu"}, ["topic"]),
        ({"routing_key": "orders"}, ["default"]),
        ({"routing_key": "*"}, ["default", "direct", "fanout", "astray"]),
        ({"routing_key": re.compile("e")}, ["default", "direct", "fanout", "topic", "astray"]),
        ({"routing_key": lambda key: len(key) == 3}, ["direct"]),
        ({"body": b"topic"}, ["topic"]),
        ({"body": "topic"}, ["topic"]),
        ({"body": re.compile("^(top|dir)")}, ["direct", "topic"]),
        ({"body": re.compile(b"ad")}, ["headers"]),
        ({"body": lambda body: body.endswith(b"t")}, ["default", "direct", "fanout"]),
        ({"headers": {"kind": "order"}}, ["headers"]),
        ({"headers": {"kind": re.compile("^ord")}}, ["headers"]),
        ({"headers": {"kind": lambda value: value == "order"}}, ["headers"]),
        ({"headers": {"kind": "bill"}}, []),
        ({"headers": lambda headers: headers is None}, ["default", "direct", "fanout", "topic", "astray"]),
        ({"channel": 1}, ["default", "direct", "fanout", "topic", "headers", "astray"]),
        ({"channel": 2}, []),
        ({"exchange": "", "queue": "orders"}, ["default"]),
        ({"exchange": None, "body": b"fanout"}, ["fanout"]),
    ],
    # Without the addresses of functions: processes that share the suite must agree on names.
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", str(value)),
)
def test_rule_fires_on_publishes_that_meet_its_conditions(
    server: FaultServer, wanted: dict[str, Any], expected: Iterable[str]
) -> None:
    seen = seen_by(server.faults, **wanted)
    publish_of_every_kind(server.client())
    assert seen == [name.encode() for name in expected]


def test_rule_about_a_property_compares_it_with_a_value_pattern_or_function(server: FaultServer) -> None:
    by_value = seen_by(server.faults, message_id="m-2")
    by_pattern = seen_by(server.faults, message_id=re.compile("m-[13]"))
    by_nothing = seen_by(server.faults, message_id=re.compile("None"))
    by_function = seen_by(server.faults, priority=lambda priority: priority is None)
    client = server.client()
    for number in (1, 2, 3):
        client.publish(b"%d" % number, message_id=f"m-{number}", priority=1)
    client.publish(b"without")
    assert (by_value, by_pattern, by_nothing, by_function) == ([b"2"], [b"1", b"3"], [], [b"without"])


def test_rule_about_a_queue_of_a_random_exchange_knows_the_actual_destination(server: FaultServer) -> None:
    """Asking draws nothing: the message goes where the rule said it would."""
    client = server.client()
    client.call(m.ExchangeDeclare(exchange="any", type="x-random"), m.ExchangeDeclareOk)
    for name in ("one", "two"):
        client.declare(name)
        client.bind(name, "any")
    seen = seen_by(server.faults, queue="one")
    for number in range(20):
        client.publish(b"%d" % number, exchange="any")
    assert seen == client.empty("one")
    assert 0 < len(seen) < 20


def test_rule_about_a_queue_fires_on_a_publish_with_the_queue_in_cc(server: FaultServer) -> None:
    client = server.client_with("orders")
    seen = seen_by(server.faults, queue="orders")
    client.publish(b"copy", routing_key="nowhere", headers={"CC": ["orders"]})
    assert seen == [b"copy"]


def test_rule_about_a_queue_does_not_fire_on_an_unroutable_publish(server: FaultServer) -> None:
    client = server.client()
    seen = seen_by(server.faults, queue=re.compile(""))
    client.publish(b"1", routing_key="nowhere")
    assert seen == []
    client.publish(b"2", exchange="no such exchange")
    client.expect_channel_close(404)
    assert seen == []


@pytest.mark.parametrize(
    "name",
    [
        "queue.declare",
        "queue.bind",
        "queue.purge",
        "queue.delete",
        "queue.unbind",
        "basic.consume",
        "basic.cancel",
        "basic.get",
    ],
)
def test_rule_about_a_queue_fires_on_methods_for_that_queue_only(server: FaultServer, name: str) -> None:
    here = server.faults.on(name, queue="here")
    elsewhere = server.faults.on(name, queue="elsewhere", optional=True)
    client = server.client()
    client.call(m.ExchangeDeclare(exchange="e", type="fanout"), m.ExchangeDeclareOk)
    client.declare("here")
    client.bind("here", "e")
    client.call(m.QueueUnbind(queue="here", exchange="e"), m.QueueUnbindOk)
    client.consume("here", "tag")
    client.call(m.BasicCancel(consumer_tag="tag"), m.BasicCancelOk)
    client.get("here")
    client.call(m.QueuePurge(queue="here"), m.QueuePurgeOk)
    client.call(m.QueueDelete(queue="here"), m.QueueDeleteOk)
    assert (here.hits, elsewhere.hits) == (1, 0)


@pytest.mark.parametrize("no_ack", [False, True])
def test_rule_about_a_queue_fires_on_deliveries_and_answers_of_that_queue_only(
    server: FaultServer, no_ack: bool
) -> None:
    rules = {
        (name, queue): server.faults.on(name, queue=queue, optional=True)
        for name in ("basic.deliver", "basic.get-ok", "basic.consume-ok")
        for queue in ("here", "elsewhere")
    }
    client = server.client()
    for queue in ("here", "elsewhere"):
        client.declare(queue)
    client.fill("here", b"1", b"2")
    client.get("here", no_ack=no_ack)
    client.consume("here", "tag", no_ack=no_ack)
    assert client.bodies() == [b"2"]
    assert {key: rule.hits for key, rule in rules.items()} == {
        (name, queue): int(queue == "here") for name, queue in rules
    }


@pytest.mark.parametrize("settle", ["ack", "nack", "reject"])
def test_rule_about_a_settlement_considers_the_message_that_it_settles(
    server: FaultServer, settle: str
) -> None:
    by_queue = server.faults.on(f"basic.{settle}", queue="here")
    by_body = server.faults.on(f"basic.{settle}", body=b"second")
    by_key = server.faults.on(f"basic.{settle}", routing_key="he*", optional=True)
    by_property = server.faults.on(f"basic.{settle}", message_id="b", exchange="")
    client = server.client_with("here")
    client.declare("there")
    client.fill("here", b"first", message_id="a")
    client.fill("there", b"second", message_id="b")
    client.get("here")
    client.get("there")
    for tag in (1, 2):
        getattr(client, settle)(tag)
    assert [by_queue.hits, by_body.hits, by_key.hits, by_property.hits] == [1, 1, 0, 1]


def test_rule_fires_on_a_multiple_ack_that_covers_a_matching_message(server: FaultServer) -> None:
    rule = server.faults.on("basic.ack", body=b"2", multiple=True)
    client = server.client_with("q")
    client.fill("q", b"1", b"2", b"3")
    for _ in range(3):
        client.get("q")
    client.ack(3, multiple=True)
    assert rule.hits == 1


def test_rule_about_a_confirm_considers_the_confirmed_publish(server: FaultServer) -> None:
    rules = [
        server.faults.on("confirm", body=b"2"),
        server.faults.on("confirm", routing_key="q.*", exchange=""),
        server.faults.on("confirm", queue="q.1"),
        server.faults.on("confirm", queue="other", optional=True),
        server.faults.on("confirm", headers={"n": 2}),
        server.faults.on("confirm", delivery_tag=2),
        server.faults.on("basic.ack", direction="sent", queue="q.1"),
    ]
    publisher = server.publisher("q.1")
    publisher.publish(b"1", headers={"n": 1})
    publisher.publish(b"2", headers={"n": 2})
    assert [rule.hits for rule in rules] == [1, 2, 2, 0, 1, 1, 2]
    assert publisher.confirms == ["ack 1", "ack 2"]


def test_rule_about_a_confirm_uses_the_queue_at_publish_time(server: FaultServer) -> None:
    """Not the queue to which the message would go when the confirm is sent."""
    client = server.client_with("one")
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    late = server.faults.on("confirm", queue="one")
    client.send_bytes(publish_bytes(b"1", "one") + bytes_of(m.QueueDelete(queue="one", no_wait=True)))
    assert late.hits == 1


def test_rule_fires_on_methods_with_the_given_field_values(server: FaultServer) -> None:
    rules = [
        server.faults.on("queue.declare", durable=True),
        server.faults.on("queue.declare", passive=True, optional=True),
        server.faults.on("queue.declare", arguments=lambda arguments: "x-max-length" in arguments),
        server.faults.on("exchange.declare", type="topic"),
        server.faults.on("exchange.declare", exchange_type="topic"),
        server.faults.on("exchange.declare", exchange_type="fanout", optional=True),
        server.faults.on("queue.declare", "exchange.declare", type="topic"),
        server.faults.on("queue.*", queue="q"),
    ]
    client = server.client()
    client.declare("q", durable=True)
    client.declare("p", arguments={"x-max-length": 1})
    client.call(m.ExchangeDeclare(exchange="e", type="topic"), m.ExchangeDeclareOk)
    client.bind("q", "e")
    assert [rule.hits for rule in rules] == [1, 0, 1, 1, 1, 0, 1, 2]


class TestConnections:
    def test_rule_finds_a_connection_by_each_of_its_names(self, server: FaultServer) -> None:
        billing = server.client(client_properties={"connection_name": "billing"})
        shop = server.client(client_properties={"connection_name": "shop"})
        names = [billing.connection.name, "billing", "c1", billing.connection]
        rules = [server.faults.on("queue.declare", connection=name) for name in names]
        others = [server.faults.on("queue.declare", connection=name) for name in ("shop", "c2")]
        billing.declare("q")
        assert [rule.hits for rule in rules] == [1, 1, 1, 1]
        assert [rule.hits for rule in others] == [0, 0]
        shop.declare("q")
        assert [rule.hits for rule in others] == [1, 1]
        assert [rule.hits for rule in rules] == [1, 1, 1, 1]

    def test_rule_about_a_short_connection_name_does_not_fire_without_a_trace(self) -> None:
        server = FaultServer(trace=False)
        client = server.client(client_properties={"connection_name": "billing"})
        short = server.faults.on("queue.declare", connection="c1")
        named = server.faults.on("queue.declare", connection="billing")
        client.declare("q")
        assert (short.hits, named.hits) == (0, 1)


class TestDirections:
    @pytest.mark.parametrize(
        ("name", "direction"),
        [
            ("basic.publish", "received"),
            ("basic.deliver", "sent"),
            ("basic.ack", "received"),
            ("channel.flow", "received"),
            ("connection.close", "received"),
            ("channel.open-ok", "sent"),
            ("confirm", "sent"),
            ("heartbeat", "received"),
            ("*", "received"),
            ("queue.*-ok", "sent"),
        ],
    )
    def test_rule_has_the_default_direction_of_its_method(
        self, faults: Faults, name: str, direction: str
    ) -> None:
        assert faults.on(name)._subject.direction == direction

    def test_rule_about_acks_fires_in_its_own_direction_only(self, publisher: Publisher) -> None:
        received = publisher.faults.on("basic.ack")
        sent = publisher.faults.on("basic.ack", direction="sent")
        publisher.publish(b"1")
        assert (received.hits, sent.hits) == (0, 1)
        publisher.client.take_frame()
        publisher.client.get("q")
        publisher.client.ack(1)
        assert (received.hits, sent.hits) == (1, 1)

    def test_rule_about_all_methods_fires_in_one_direction_only(self, server: FaultServer) -> None:
        received = server.faults.on("*")
        sent = server.faults.on("*", direction="sent")
        server.client().declare("q")
        # start-ok, tune-ok, open, channel.open and queue.declare, and what answers them.
        assert (received.hits, sent.hits) == (5, 5)


_WORDS = st.lists(st.sampled_from(["a", "b", ""]), max_size=5)
_PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#", ""]), max_size=5)


@given(_PATTERNS, _WORDS)
def test_routing_key_pattern_matches_as_in_a_topic_exchange(pattern: list[str], words: list[str]) -> None:
    server = FaultServer(trace=False)
    client = server.client()
    client.call(m.ExchangeDeclare(exchange="t", type="topic"), m.ExchangeDeclareOk)
    client.declare("q")
    client.bind("q", "t", ".".join(pattern))
    assert isinstance(server.vhost.exchanges["t"], TopicExchange)
    client.publish(exchange="t", routing_key=".".join(words))
    assert topic_matches(".".join(pattern), ".".join(words)) == (client.count("q") == 1)


def test_long_routing_key_pattern_is_compared_without_exponential_time() -> None:
    assert not topic_matches(".".join(["#", "a"] * 60), ".".join(["a"] * 59 + ["b"] * 68))


EARLY = {
    **dict.fromkeys(("exchange", "routing_key", "channel", "mandatory", "immediate", "ticket"), True),
    **dict.fromkeys(("queue", "exchange_type", "body", "headers", "priority", "app_id"), False),
}


def test_conditions_on_fields_of_a_publish_are_checked_before_its_content() -> None:
    """A publish that does not meet them need not be kept."""
    subject = subject_of(("basic.publish",), None)
    values: dict[str, Any] = {"channel": 1, "headers": {}, "exchange_type": "direct"}
    for name, early in EARLY.items():
        wanted = values.get(name, "x")
        assert conditions(subject, {name: wanted}, frozenset())[0].early is early, name
        if name not in ("headers", "body"):
            assert conditions(subject, {name: bool}, frozenset())[0].early is False, name


VALUES: list[tuple[str, Any, Any, bool]] = [
    ("app_id", re.compile("b"), "abc", True),
    ("app_id", re.compile("^b"), "abc", False),
    ("app_id", re.compile(b"b"), "abc", True),
    ("app_id", re.compile("1"), 415, True),
    ("app_id", re.compile(b"1"), 415, True),
    ("app_id", re.compile(""), None, False),
    ("app_id", re.compile(""), ABSENT, False),
    ("app_id", bool, "x", True),
    ("app_id", bool, "", False),
    ("app_id", lambda value: True, ABSENT, False),
    ("app_id", "x", "x", True),
    ("app_id", "x", "y", False),
    ("app_id", ABSENT, ABSENT, False),
    ("body", "\xe9", b"\xc3\xa9", True),
    ("body", b"x", b"x", True),
    ("body", re.compile("^\ufffdx$"), b"\xffx", True),
    ("body", re.compile(b"\xff"), b"\xffx", True),
    ("routing_key", "a.*", "a.b", True),
    ("routing_key", "a.*", "a.b.c", False),
    ("routing_key", "#", ABSENT, False),
    ("routing_key", re.compile(r"^a\.\*$"), "a.*", True),
    ("channel", 3, 3, True),
    ("channel", 3, 4, False),
    ("headers", {}, {"a": 1}, True),
    ("headers", {}, None, False),
    ("headers", {"a": 1}, {"a": 1, "b": 2}, True),
    ("headers", {"a": 1}, {"a": 2}, False),
    ("headers", {"a": 1}, {"b": 1}, False),
    ("headers", {"a": re.compile("^x")}, {"a": "xy"}, True),
    ("headers", {"a": lambda value: value > 1}, {"a": 1}, False),
]


def test_condition_accepts_an_equal_value_a_pattern_match_or_a_true_function() -> None:
    subject = subject_of(("basic.publish",), None)
    with cases() as case:
        for name, wanted, value, fits in VALUES:
            with case(name, wanted, value):
                (condition,) = conditions(subject, {name: wanted}, frozenset())
                assert condition.fits(value) is fits


def test_condition_and_its_near_misses_are_described_in_words() -> None:
    def late(_: Any) -> bool:
        return False

    class Group:
        def __init__(self, *values: Any) -> None:
            self.values_of = lambda _: values

    subject = subject_of(("basic.publish",), None)
    for wanted, words in (("x", "'x'"), (re.compile("^x"), "/^x/"), (late, "accepted by late")):
        (condition,) = conditions(subject, {"routing_key": wanted, "queue": None}, frozenset())
        assert str(condition) == f"routing key {words}"
        for values, said in (((), "nothing"), ((ABSENT,), "nothing"), (("a", ABSENT, "b"), "'a' and 'b'")):
            group: Any = Group(*values)
            assert not condition.holds(group)
            assert condition.miss(group) == f"routing_key is {said}, not {words}"
