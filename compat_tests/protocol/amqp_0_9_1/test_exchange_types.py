"""How each exchange type chooses."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame

NO_HEADERS: Any = None


class Bench:
    """One queue, bound to one exchange of a type."""

    def __init__(self, client: Client, kind: str) -> None:
        self.client = client
        client.declare_exchange("x", kind).declare("q")

    def bind(self, routing_key: str = "", arguments: dict[str, Any] | None = None, queue: str = "q") -> None:
        self.client.declare(queue)
        self.client.bind(queue, "x", routing_key, arguments=arguments or {})

    def arrives(self, routing_key: str = "", headers: Any = NO_HEADERS) -> bool:
        """Publishes one message; True where it came into the queue."""
        self.client.publish(exchange="x", routing_key=routing_key, headers=headers)
        return self.client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 1


@pytest.fixture
def direct(client: Client) -> Bench:
    return Bench(client, "direct")


@pytest.fixture
def fanout(client: Client) -> Bench:
    return Bench(client, "fanout")


@pytest.fixture
def topic(client: Client) -> Bench:
    return Bench(client, "topic")


@pytest.fixture
def headers(client: Client) -> Bench:
    return Bench(client, "headers")


# --- direct ----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/exchange-type.direct/match")
def test_direct_exchange_routes_only_equal_routing_keys(direct: Bench) -> None:
    direct.bind("k")
    assert direct.arrives("k")
    assert not any(map(direct.arrives, ("K", "k.x", "", "kk", "*", "#")))


@pytest.mark.rule("0-9-1/exchange-type.direct/several-queues")
def test_direct_exchange_routes_to_all_queues_bound_with_the_key(direct: Bench) -> None:
    for queue in ("q1", "q2", "q3"):
        direct.bind("k", queue=queue)
    direct.bind("other", queue="q4")
    direct.client.publish(exchange="x", routing_key="k")
    assert [direct.client.count(queue) for queue in ("q1", "q2", "q3", "q4")] == [1, 1, 1, 0]


@pytest.mark.rule("0-9-1/exchange-type.direct/any-key")
@pytest.mark.parametrize("key", ["", "y" * 255, "a b\n", "é中", "*"])
def test_direct_exchange_accepts_any_short_string_as_binding_key(direct: Bench, key: str) -> None:
    direct.bind(key)
    assert direct.arrives(key)
    assert not direct.arrives("z")


# --- fanout ----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/exchange-type.fanout/unconditional")
def test_fanout_exchange_routes_every_message_to_every_bound_queue(fanout: Bench) -> None:
    fanout.bind("1", queue="q1")
    fanout.bind("2", {"x-match": "all", "a": 1}, queue="q2")
    for _ in range(2):
        fanout.client.publish(exchange="x", routing_key="3")
    assert [fanout.client.count("q1"), fanout.client.count("q2")] == [2, 2]
    assert fanout.client.count("q") == 0, "it was not bound"


# --- topic -----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/exchange-type.topic/words")
def test_topic_exchange_matches_routing_keys_word_by_word(topic: Bench) -> None:
    for pattern, fitting in (("", ""), ("a", "a"), ("a.b.c", "a.b.c"), ("A1.b2", "A1.b2")):
        topic.bind(pattern)
        assert topic.arrives(fitting)
        topic.client.call(m.QueueUnbind(queue="q", exchange="x", routing_key=pattern), m.QueueUnbindOk)
    topic.bind("a.b.c")
    for key in ("é.中", "a b.c", "a/b", "\n", "...", "a..", "*.#", "y" * 255, "." * 255):
        assert not topic.arrives(key)
    assert topic.arrives("a.b.c"), "odd keys do no harm"


def table(*cases: tuple[str, str, dict[str, bool]]) -> list[Any]:
    """(rule, pattern, {key: matches}) as parameters."""
    return [
        pytest.param(pattern, keys, marks=pytest.mark.rule(f"0-9-1/exchange-type.topic/{rule}"), id=pattern)
        for rule, pattern, keys in cases
    ]


@pytest.mark.parametrize(
    ("pattern", "keys"),
    table(
        ("star", "a.*.c", {"a.b.c": True, "a..c": True, "a.c": False, "a.b.b.c": False, "a.b.d": False}),
        ("star", "*", {"a": True, "": False, "a.b": False, ".": False}),
        ("hash", "a.#", {"a": True, "a.b": True, "a.b.c": True, "ab": False, "": False, "b.a": False}),
        ("hash", "#", {"": True, "a": True, "a.b": True, "..": True}),
        ("hash-middle", "a.#.z", {"a.z": True, "a.b.c.z": True, "a..z": True, "a.b": False, "a": False}),
        ("hash-middle", "#.z", {"z": True, "a.z": True, ".z": True, "b.a.z": True, "z.a": False}),
        ("hash-middle", "#.a.#.b", {"a.b": True, "x.a.y.b": True, "b.a": False, "x.a.a.b.b": True}),
        ("hash-middle", "#.#", {"": True, "a": True, "a.b": True}),
        ("hash-middle", "#.*", {"": False, "a": True, "a.b": True, ".": True}),
        ("example", "*.stock.#", {"usd.stock": True, "eur.stock.db": True, "stock.nasdaq": False}),
        ("literal", "a.b", {"a.b": True, "A.b": False, "a.b.c": False, "a": False, "a.b.": False}),
        ("partial-word", "a*", {"a*": True, "ab": False, "a": False}),
        ("partial-word", "a#.b", {"a#.b": True, "ax.b": False, "a.b": False}),
        ("empty-words", "a.*.b", {"a..b": True, "a.b": False}),
        ("empty-words", "a..b", {"a..b": True, "a.b": False, "a.x.b": False}),
        ("empty-words", "a.#", {"a.": True}),
        ("empty-words", ".", {".": True, "": False, "a.b": False}),
        ("empty-words", "a.", {"a.": True, "a": False, "a.b": False}),
    ),
)
def test_topic_exchange_matches_keys_by_wildcards(topic: Bench, pattern: str, keys: dict[str, bool]) -> None:
    topic.bind(pattern)
    assert {key: topic.arrives(key) for key in keys} == keys


@pytest.mark.rule("0-9-1/exchange-type.topic/hash-middle")
@pytest.mark.parametrize("name", ["spec", "rabbitmq-4.2"])
def test_topic_pattern_can_have_three_hash_wildcards(name: str, protocol: str) -> None:
    # RabbitMQ 4.3 takes two at most (measured).
    topic = Bench(Server(name, protocol=protocol).client(), "topic")
    topic.bind("#.a.#.b.#")
    keys = {"a.b": True, "x.a.y.b.z": True, "b.a": False, "x.a.a.b.b": True}
    assert {key: topic.arrives(key) for key in keys} == keys


@pytest.mark.rule("0-9-1/exchange-type.topic/wildcards-only-in-pattern")
def test_wildcards_in_the_routing_key_of_a_message_are_literal_words(topic: Bench) -> None:
    topic.bind("a.b")
    assert not topic.arrives("a.*")
    assert not topic.arrives("#")
    topic.bind("*.c")
    assert topic.arrives("*.c")
    assert topic.arrives("#.c")


# --- headers ---------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/exchange-type.headers/all")
def test_x_match_all_requires_every_header(headers: Bench) -> None:
    headers.bind(arguments={"x-match": "all", "a": 1, "b": "2"})
    assert headers.arrives(headers={"a": 1, "b": "2"})
    assert headers.arrives(headers={"a": 1, "b": "2", "c": 3})
    assert not headers.arrives(headers={"a": 1})
    assert not headers.arrives(headers={"a": 2, "b": "2"})
    assert not headers.arrives(headers={})


@pytest.mark.rule("0-9-1/exchange-type.headers/any")
def test_x_match_any_requires_one_header(headers: Bench) -> None:
    headers.bind(arguments={"x-match": "any", "a": 1, "b": "2"})
    assert headers.arrives(headers={"b": "2"})
    assert headers.arrives(headers={"a": 2, "b": "2"})
    assert not headers.arrives(headers={"b": "3"})
    assert not headers.arrives(headers={"c": 1})
    assert not headers.arrives(headers={})


@pytest.mark.rule("0-9-1/exchange-type.headers/void-means-presence")
@pytest.mark.parametrize("match", ["all", "any"])
def test_void_binding_argument_requires_only_presence_of_the_header(headers: Bench, match: str) -> None:
    headers.bind(arguments={"x-match": match, "a": None})
    assert all(headers.arrives(headers={"a": value}) for value in ("x", 1, None, [], False))
    assert not headers.arrives(headers={"b": 1})
    assert not headers.arrives(headers={})


@pytest.mark.rule("0-9-1/exchange-type.headers/value-equality")
@rows(
    "wanted, fitting, others",
    (1, [1], [2, "1", 1.0, True, None]),
    (2**40, [2**40], [2**40 + 1]),
    (1.5, [1.5], [1, 1.25, "1.5"]),
    (True, [True], [False, 1, "true"]),
    ("s", ["s"], ["S", "", "s "]),
    ({"k": 1}, [{"k": 1}], [{"k": 2}, {}, {"k": 1, "l": 1}]),
    ([1, "x"], [[1, "x"]], [["x", 1], [1], []]),
    ids=repr,
)
def test_binding_argument_with_value_requires_an_equal_header_value(
    headers: Bench, wanted: Any, fitting: list[Any], others: list[Any]
) -> None:
    headers.bind(arguments={"x-match": "all", "a": wanted})
    assert [headers.arrives(headers={"a": value}) for value in fitting] == [True] * len(fitting)
    assert [headers.arrives(headers={"a": value}) for value in others] == [False] * len(others)
    assert not headers.arrives(headers={"A": wanted}), "names are compared with their case"


@pytest.mark.rule("0-9-1/exchange-type.headers/value-equality")
@rows("octets", b"b\x01", b"B\x01", b"i\0\0\0\x01", b"I\0\0\0\x01", b"l" + bytes(7) + b"\x01")
def test_headers_exchange_ignores_integer_width_of_header_values(headers: Bench, octets: bytes) -> None:
    headers.bind(arguments={"x-match": "all", "a": 1})
    field = b"\x01a" + octets
    properties = b"\x20\0" + len(field).to_bytes(4, "big") + field
    client = headers.client
    client.send(m.BasicPublish(exchange="x"))
    client.send_frame(2, 1, bytes((0, 60, 0, 0)) + bytes(8) + properties)
    assert client.count("q") == 1


@pytest.mark.deviates("0-9-1/exchange-type.headers/value-equality")
@pytest.mark.parametrize(("wanted", "sent"), [("s", b"s"), (b"s", "s")])
def test_rabbitmq_headers_exchange_treats_string_and_byte_array_as_equal(
    rabbitmq: Server, wanted: Any, sent: Any
) -> None:
    headers = Bench(rabbitmq.client(), "headers")
    headers.bind(arguments={"x-match": "all", "a": wanted})
    assert headers.arrives(headers={"a": sent})
    assert not headers.arrives(headers={"a": b"S"})


@pytest.mark.rule("0-9-1/exchange-type.headers/x-fields-ignored")
def test_x_match_all_ignores_fields_with_x_prefix(headers: Bench) -> None:
    headers.bind(arguments={"x-match": "all", "x-foo": 1, "a": 1})
    assert headers.arrives(headers={"a": 1})
    assert headers.arrives(headers={"a": 1, "x-foo": 2})
    assert not headers.arrives(headers={"x-foo": 1})


@pytest.mark.rule("0-9-1/exchange-type.headers/x-fields-ignored")
def test_x_match_any_ignores_fields_with_x_prefix(headers: Bench) -> None:
    headers.bind(arguments={"x-match": "any", "x-foo": 1, "a": 1})
    assert not headers.arrives(headers={"x-foo": 1})
    assert headers.arrives(headers={"a": 1})


def test_x_match_all_with_x_requires_fields_with_x_prefix(headers: Bench) -> None:
    # RabbitMQ: documented extension.
    headers.bind(arguments={"x-match": "all-with-x", "x-foo": 1, "a": 1})
    assert headers.arrives(headers={"x-foo": 1, "a": 1})
    assert not headers.arrives(headers={"a": 1})
    assert not headers.arrives(headers={"x-foo": 2, "a": 1})


def test_x_match_any_with_x_matches_fields_with_x_prefix(headers: Bench) -> None:
    # RabbitMQ: documented extension.
    headers.bind(arguments={"x-match": "any-with-x", "x-foo": 1, "a": 1})
    assert headers.arrives(headers={"x-foo": 1})
    assert headers.arrives(headers={"a": 1})
    assert not headers.arrives(headers={"x-foo": 2})


@pytest.mark.rule("0-9-1/exchange-type.headers/routing-key-unused")
def test_headers_exchange_ignores_the_routing_key(headers: Bench) -> None:
    headers.bind("k", {"x-match": "all", "a": 1})
    for key in ("", "k", "other"):
        assert headers.arrives(key, {"a": 1})
        assert not headers.arrives(key, {"a": 2})


@pytest.mark.rule("0-9-1/exchange-type.headers/default-match")
def test_headers_binding_without_x_match_requires_all_headers(headers: Bench) -> None:
    headers.bind(arguments={"a": 1, "b": 2})
    assert not headers.arrives(headers={"a": 1})
    assert headers.arrives(headers={"a": 1, "b": 2})


@pytest.mark.rule("0-9-1/exchange-type.headers/invalid-match#refused")
@rows(
    "match, text",
    ("some", 'value <<"some">>; expected all, any, all-with-x, or any-with-x'),
    ("ALL", 'value <<"ALL">>; expected all, any, all-with-x, or any-with-x'),
    ("", "value <<>>; expected all, any, all-with-x, or any-with-x"),
    (5, "type signedint (value 5); expected longstr"),
    (1, "type signedint (value 1); expected longstr"),
    (True, "type bool (value true); expected longstr"),
    (None, "type void (value undefined); expected longstr"),
)
def test_invalid_x_match_value_is_refused(headers: Bench, match: Any, text: str) -> None:
    client = headers.client
    close = client.fails(m.QueueBind(queue="q", exchange="x", arguments={"x-match": match, "a": 1}), 406)
    assert close.reply_text == f"PRECONDITION_FAILED - Invalid x-match field {text}"
    assert (close.class_id, close.method_id) == (50, 20)
    client.open_channel()
    assert not headers.arrives(headers={"a": 1})


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic"])
def test_x_match_is_ignored_by_direct_fanout_and_topic_exchanges(client: Client, kind: str) -> None:
    bench = Bench(client, kind)
    bench.bind("k", {"x-match": "some", "a": 1})
    assert bench.arrives("k")


@pytest.mark.rule("0-9-1/exchange-type.headers/invalid-match#legal")
@pytest.mark.rule("0-9-1/exchange-type.headers/empty-arguments#all")
@pytest.mark.rule("0-9-1/exchange-type.headers/empty-arguments#any")
def test_empty_arguments_match_with_x_match_all_and_not_with_any(headers: Bench) -> None:
    headers.bind(arguments={"x-match": "any"})
    assert not headers.arrives()
    assert not headers.arrives(headers={"a": 1})
    headers.bind(arguments={"x-match": "all"})
    assert headers.arrives()
    assert headers.arrives(headers={"a": 1})


@pytest.mark.rule("0-9-1/exchange-type.headers/no-headers-property")
@pytest.mark.parametrize("match", ["all", "any"])
def test_message_without_headers_does_not_match_a_required_header(headers: Bench, match: str) -> None:
    headers.bind(arguments={"x-match": match, "a": None})
    assert not headers.arrives(headers=NO_HEADERS)
    assert not headers.arrives(headers={})


# --- further types ---------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
@pytest.mark.deviates("0-9-1/exchange-type.system/passes-to-service")
@pytest.mark.protocols("0-9-1")
def test_rabbitmq_refuses_exchange_type_system(rabbitmq: Server) -> None:
    rabbitmq.client().fails(m.ExchangeDeclare(exchange="services", type="system"), 406)
    assert "services" not in rabbitmq.vhost.exchanges
    assert "amq.system" not in rabbitmq.vhost.exchanges


@pytest.mark.rule("0-9-1/exchange-type.custom/x-prefix")
@pytest.mark.parametrize("kind", ["x-unknown", "bogus", "x-delayed-message", "x-consistent-hash"])
def test_spec_personality_refuses_unregistered_exchange_type_with_503(spec: Server, kind: str) -> None:
    client = spec.client()
    assert client.ends(m.ExchangeDeclare(exchange="x", type=kind), 503).reply_text.endswith(
        f"unknown exchange type '{kind}'"
    )


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.rule("0-9-1/exchange-type.custom/x-prefix")
@pytest.mark.parametrize("kind", ["x-unknown", "bogus", "x-jms-topic", "Direct"])
@pytest.mark.protocols("0-9-1")
def test_rabbitmq_refuses_unregistered_exchange_type_with_406(rabbitmq: Server, kind: str) -> None:
    client = rabbitmq.client()
    assert client.fails(m.ExchangeDeclare(exchange="x", type=kind), 406).reply_text.endswith(
        f"unknown exchange type '{kind}'"
    )


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.parametrize("kind", ["", "undefined", "header"])
def test_rabbitmq_refuses_some_type_names_as_invalid_exchange_type(rabbitmq: Server, kind: str) -> None:
    client = rabbitmq.client()
    assert client.fails(m.ExchangeDeclare(exchange="x", type=kind), 406).reply_text.endswith(
        f"invalid exchange type '{kind}'"
    )


needs_plugin = pytest.mark.needs("plugin for delayed messages")
PLUGIN_TYPES = {
    "x-consistent-hash": {},
    "x-delayed-message": {"x-delayed-type": "direct"},
    "x-local-random": {},
    "x-modulus-hash": {},
    "x-random": {},
}


@pytest.mark.rule("0-9-1/exchange/extensions", "0-9-1/exchange-type.custom/x-prefix")
@pytest.mark.protocols("0-9-1")
@rows("personality", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=needs_plugin if kind == "x-delayed-message" else ()) for kind in PLUGIN_TYPES],
)
def test_rabbitmq_implements_the_exchange_types_of_its_plugins(personality: str, kind: str) -> None:
    client = Server(personality).client()
    declare = m.ExchangeDeclare(exchange="x", type=kind, arguments=PLUGIN_TYPES[kind])
    if (personality, kind) == ("rabbitmq-3.13", "x-local-random"):
        assert client.fails(declare, 406).reply_text.endswith("unknown exchange type 'x-local-random'")
        return
    client.call(declare, m.ExchangeDeclareOk)
    client.perform(m.ExchangeDeclare(exchange="x", passive=True))
    close = client.fails(m.ExchangeDeclare(exchange="x", type="direct"), 406)
    assert close.reply_text.endswith(f"received 'direct' but current is ''{kind}''")


@pytest.mark.needs("own broker")
def test_predeclared_exchanges_are_only_of_the_four_standard_types(rabbitmq: Server) -> None:
    kinds = {exchange.type_name for exchange in rabbitmq.vhost.exchanges.values()}
    assert kinds == {"direct", "fanout", "topic", "headers"}


def nested(value: bytes) -> tuple[bytes, bytes]:
    """A table and an array that hold the value."""
    field = b"\x01k" + value
    return b"F" + len(field).to_bytes(4, "big") + field, b"A" + len(value).to_bytes(4, "big") + value


WIDTHS = {"int8": b"b\x01", "int32": b"I\0\0\0\x01", "int64": b"l" + bytes(7) + b"\x01"}


@pytest.mark.parametrize("place", [0, 1], ids=["table", "array"])
@pytest.mark.parametrize("beside", [b"", b"\x01zI\0\0\0\x09"], ids=["alone", "beside"])
@pytest.mark.parametrize("sent", WIDTHS)
def test_rabbitmq_headers_exchange_compares_integer_width_within_tables_and_arrays(
    headers: Bench, server: Server, place: int, beside: bytes, sent: str
) -> None:
    """RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6. By the letter the width never counts."""
    client = headers.client
    wanted = b"\x07x-matchS\0\0\0\x03all" + b"\x01a" + nested(WIDTHS["int32"])[place]
    arguments = len(wanted).to_bytes(4, "big") + wanted
    client.send_bytes(method_frame(1, b"\x00\x32\x00\x14\x00\x00\x01q\x01x\x00\x00" + arguments))
    client.expect(m.QueueBindOk)
    field = b"\x01a" + nested(WIDTHS[sent])[place] + beside
    client.send(m.BasicPublish(exchange="x"))
    client.send_frame(
        2, 1, bytes((0, 60, 0, 0)) + bytes(8) + b"\x20\0" + len(field).to_bytes(4, "big") + field
    )
    fits = sent == "int32" or server.is_spec
    assert client.count("q") == int(fits)
