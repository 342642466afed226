"""Exchanges that spread messages by a hash: x-consistent-hash and x-modulus-hash (RabbitMQ: documented).

Which bucket a value falls into comes from Erlang (see unit/model/exchanges/test_hashing.py); which queue gets
a routing key was compared with RabbitMQ (see differential/cases/hashing.py). Rings here are bound in order,
so that the bucket of a key is the number of its queue where each has weight 1.
"""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.erlang import Atom
from fakeamqp.model.exchanges.hashing import jump, phash2
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

KEYS = ("a", "k1", "hello", "order.42", "")
OF_TEN = {"a": 6, "k1": 7, "hello": 9, "order.42": 3, "": 9}
OF_FIVE = {"a": 1, "k1": 3, "hello": 3, "order.42": 3, "": 0}


class Ring:
    """An exchange and the queues that are bound to it."""

    def __init__(
        self,
        server: Server,
        *weights: str,
        kind: str = "x-consistent-hash",
        durable: bool = False,
        **arguments: Any,
    ) -> None:
        self.client = server.client()
        self.queues: list[str] = []
        names = {name.replace("_", "-"): value for name, value in arguments.items()}
        declare = m.ExchangeDeclare(exchange="x", type=kind, durable=durable, arguments=names)
        self.client.call(declare, m.ExchangeDeclareOk)
        for weight in weights:
            self.add(weight)

    def add(self, weight: str) -> None:
        self.queues.append(f"q{len(self.queues)}")
        self.client.declare(self.queues[-1], durable=True)
        self.client.bind(self.queues[-1], "x", weight)

    def where(self, routing_key: str = "", **properties: Any) -> str | None:
        """Publishes, and says which queue got it: None where none did, and several with a plus between."""
        self.client.publish(exchange="x", routing_key=routing_key, **properties)
        got = [queue for queue in self.queues if self.client.empty(queue)]
        return "+".join(got) or None

    def spread(self, keys: Any = KEYS) -> dict[str, str | None]:
        return {key: self.where(key) for key in keys}

    def unbind(self, queue: str, key: str) -> None:
        self.client.call(m.QueueUnbind(queue=queue, exchange="x", routing_key=key), m.QueueUnbindOk)


def named(numbers: dict[str, int]) -> dict[str, str]:
    return {key: f"q{number}" for key, number in numbers.items()}


# --- consistent hash -------------------------------------------------------------------------------
def test_consistent_hash_routes_routing_keys_to_the_same_queues_as_rabbitmq(rabbitmq: Server) -> None:
    assert Ring(rabbitmq, *("1",) * 10).spread() == named(OF_TEN)
    assert Ring(Server(), *("1",) * 5).spread() == named(OF_FIVE)


def test_consistent_hash_routes_equal_keys_to_one_queue(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "3", "3", "3")
    assert len({ring.where("customer-7") for _ in range(10)}) == 1


def test_binding_weight_appends_that_many_buckets_to_the_hash_ring(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "4", "3", "2", "1")  # Buckets 0 to 3, 4 to 6, 7 and 8, 9.
    assert ring.spread() == named({"a": 1, "k1": 2, "hello": 3, "order.42": 0, "": 3})


def test_consistent_hash_distributes_messages_in_proportion_to_weights(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "1", "3")
    for number in range(2000):
        ring.client.publish(exchange="x", routing_key=f"key-{number}")
    first, second = (ring.client.count(queue) for queue in ring.queues)
    assert first + second == 2000
    assert 0.2 < first / 2000 < 0.3


def test_new_queue_on_the_hash_ring_moves_keys_only_to_itself(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "1", "1", "1")
    keys = [f"key-{number}" for number in range(300)]
    before = ring.spread(keys)
    ring.add("1")
    after = ring.spread(keys)
    moved = {key for key in keys if before[key] != after[key]}
    assert {after[key] for key in moved} == {"q3"}
    assert 300 / 4 * 0.6 < len(moved) < 300 / 4 * 1.4


@pytest.mark.needs("inspection")
def test_second_binding_of_a_queue_does_not_change_the_hash_ring(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, *("1",) * 5)
    ring.client.bind("q0", "x", "100")
    assert ring.spread() == named(OF_FIVE)
    assert len(rabbitmq.vhost.exchanges["x"].bindings) == 6


@pytest.mark.parametrize("key", ["1", "100"])
def test_unbind_of_any_binding_removes_the_queue_from_the_hash_ring(rabbitmq: Server, key: str) -> None:
    ring = Ring(rabbitmq, "1", *("1",) * 5)
    ring.client.bind("q0", "x", "100")
    ring.unbind("q0", key)
    moved_up = {key: f"q{number + 1}" for key, number in OF_FIVE.items()}
    assert ring.spread() == moved_up
    ring.unbind("q0", "100" if key == "1" else "1")
    assert ring.spread() == moved_up
    ring.client.bind("q0", "x", "1")  # It comes back at the end.
    assert ring.where("hello") == f"q{(jump(phash2(b'hello'), 6) + 1) % 6}"


def test_deleted_queue_is_removed_from_the_hash_ring(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "7", *("1",) * 5)
    ring.client.call(m.QueueDelete(queue="q0"), m.QueueDeleteOk)
    ring.queues.remove("q0")
    assert ring.spread() == {key: f"q{number + 1}" for key, number in OF_FIVE.items()}


def test_mandatory_message_to_an_empty_hash_ring_is_returned(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "1")
    ring.unbind("q0", "1")
    ring.client.publish(exchange="x", mandatory=True)
    assert ring.client.expect_content(m.BasicReturn).method.reply_code == 312


def test_alternate_exchange_receives_messages_of_an_empty_hash_ring(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, alternate_exchange="amq.fanout")
    ring.client.declare("spare")
    ring.client.bind("spare", "amq.fanout")
    ring.client.publish(exchange="x", mandatory=True)
    assert ring.client.empty("spare") == [b"body"]
    ring.client.expect_nothing()


def test_consistent_hash_distributes_to_bound_exchanges_like_queues(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq)
    for number in range(5):
        ring.queues.append(f"q{number}")
        ring.client.declare(f"q{number}")
        ring.client.call(m.ExchangeDeclare(exchange=f"x{number}", type="fanout"), m.ExchangeDeclareOk)
        ring.client.bind(f"q{number}", f"x{number}")
        bind = m.ExchangeBind(source="x", destination=f"x{number}", routing_key="1")
        ring.client.call(bind, m.ExchangeBindOk)
    assert ring.spread() == named(OF_FIVE)


def test_consistent_hash_ignores_cc_and_bcc_keys(rabbitmq: Server) -> None:
    assert Ring(rabbitmq, *("1",) * 5).where("a", headers={"CC": ["k1"], "BCC": [""]}) == "q1"


def test_changes_of_the_hash_ring_apply_to_keys_routed_before(rabbitmq: Server) -> None:
    """What is remembered of a key must not outlive the ring."""
    ring = Ring(rabbitmq, "1")
    assert ring.where("hello") == "q0"
    ring.add("1")
    assert ring.where("hello") == "q1"
    ring.unbind("q1", "1")
    assert ring.where("hello") == "q0"


# --- what is hashed --------------------------------------------------------------------------------
def by_header(value: Any, name: str = "rabbitmq-4.2") -> str | None:
    return Ring(Server(name), *("1",) * 10, hash_header="h").where("ignored", headers={"h": value})


def bucket(term: Any, of: int = 10) -> str:
    return f"q{jump(term if type(term) is int else phash2(term), of)}"


def test_hash_header_argument_selects_the_queue_by_header_value(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, *("1",) * 10, hash_header="customer")
    found = {key: ring.where("whatever", headers={"customer": key}) for key in KEYS}
    assert found == named(OF_TEN)
    assert ring.where("a", headers={"customer": "hello"}) == ring.where("b", headers={"customer": "hello"})


@pytest.mark.needs("personality rabbitmq-4.2")
@rows(
    "value, term",
    ("hello", b"hello"),
    (b"hello", b"hello"),
    ("é", "é".encode()),
    (5, 5),
    (-5, -5),
    (2**40, 2**40),
    (True, Atom("true")),
    (False, Atom("false")),
    (1.5, 1.5),
    (None, Atom("undefined")),
    (Timestamp(1_700_000_000), 1_700_000_000_000),
    (datetime.fromtimestamp(1_700_000_000, timezone.utc), 1_700_000_000_000),
    (Decimal("3.14"), (2, 314)),
    (["a", 5], (Atom("longstr"), b"a")),
    ([5], (Atom("signedint"), 5)),
    ([2**40], (Atom("long"), 2**40)),
    ([["a"]], (Atom("array"), [(Atom("longstr"), b"a")])),
    ({"k": "v", "l": 1}, (b"k", Atom("longstr"), b"v")),
    ids=repr,
)
def test_header_value_is_hashed_as_the_erlang_term_of_its_type(value: Any, term: Any) -> None:
    assert by_header(value) == bucket(term)


def test_messages_without_the_hash_header_go_to_one_queue(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, *("1",) * 10, hash_header="h")
    wanted = bucket(Atom("undefined"))
    assert [ring.where("a"), ring.where("b", headers={"g": "x"}), ring.where("c", headers={})] == [wanted] * 3


@pytest.mark.needs("several personalities")
@pytest.mark.parametrize("value", [[], {}], ids=repr)
def test_empty_array_or_table_as_hash_header_closes_the_connection_before_4_3(value: Any) -> None:
    for name in ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"):
        ring = Ring(Server(name), *("1",) * 10, hash_header="h")
        ring.client.publish(exchange="x", headers={"h": value})
        ring.client.expect_connection_close(541)
    assert by_header(value, "rabbitmq-4.3") == bucket([])


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_hash_property_argument_selects_the_queue_by_property_value(rabbitmq: Server, name: str) -> None:
    ring = Ring(rabbitmq, *("1",) * 10, hash_property=name)
    assert {key: ring.where("k", **{name: key}) for key in KEYS} == named(OF_TEN)
    assert ring.where("k") == bucket(Atom("undefined"))


def test_hash_property_timestamp_is_hashed_as_text(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, *("1",) * 10, hash_property="timestamp")
    assert ring.where("k", timestamp=1_700_000_000) == bucket(b"1700000000")
    assert ring.where("k") == bucket(Atom("undefined"))


# --- what is refused -------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
@rows(
    "arguments, text",
    ({"hash-property": "user_id"}, "Unsupported property: user_id"),
    ({"hash-property": ""}, "Unsupported property: "),
    (
        {"hash-header": "h", "hash-property": "user_id"},
        "hash-header and hash-property are mutually exclusive",
    ),
)
def test_consistent_hash_exchange_with_invalid_hash_arguments_is_refused(
    rabbitmq: Server, arguments: dict[str, Any], text: str
) -> None:
    client = rabbitmq.client()
    declare = m.ExchangeDeclare(exchange="x", type="x-consistent-hash", arguments=arguments)
    refused(client, declare, 406, f"PRECONDITION_FAILED - {text}")
    assert "x" not in rabbitmq.vhost.exchanges


@pytest.mark.parametrize("name", ["hash-header", "hash-property"])
@pytest.mark.parametrize("value", [1, True, None, ["h"], b"h"], ids=repr)
def test_non_string_hash_argument_ends_connection_with_541(rabbitmq: Server, name: str, value: Any) -> None:
    client = rabbitmq.client()
    client.send(m.ExchangeDeclare(exchange="x", type="x-consistent-hash", arguments={name: value}))
    close = client.expect_connection_close(541)  # Without an explanation (measured).
    assert (close.reply_text, close.class_id, close.method_id) == ("INTERNAL_ERROR", 0, 0)


def test_redeclaration_with_other_hash_arguments_keeps_the_first_arguments(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, *("1",) * 10, hash_header="h")
    again = m.ExchangeDeclare(
        exchange="x", type="x-consistent-hash", arguments={"hash-property": "nonsense", "hash-header": 1}
    )
    ring.client.call(again, m.ExchangeDeclareOk)
    assert ring.where("k", headers={"h": "hello"}) == "q9"


@pytest.mark.needs("inspection")
@rows(
    "key, text",
    ("abc", 'The binding key must be an integer: <<"abc">>'),
    ("", "The binding key must be an integer: <<>>"),
    (" 1", 'The binding key must be an integer: <<" 1">>'),
    ("1.0", 'The binding key must be an integer: <<"1.0">>'),
    ("1_000", 'The binding key must be an integer: <<"1_000">>'),
    ("é", 'The binding key must be an integer: <<"é"/utf8>>'),
    ("٣", 'The binding key must be an integer: <<"٣"/utf8>>'),
    ("0", "The binding key must be greater than 0"),
    ("-2", "The binding key must be greater than 0"),
    ("10001", "The binding key must not exceed 10000"),
)
def test_binding_key_invalid_as_weight_is_refused(rabbitmq: Server, key: str, text: str) -> None:
    client = Ring(rabbitmq).client
    client.declare("q")
    refused(
        client, m.QueueBind(queue="q", exchange="x", routing_key=key), 406, f"PRECONDITION_FAILED - {text}"
    )
    bind = m.ExchangeBind(source="x", destination="amq.fanout", routing_key=key)
    refused(client, bind, 406, f"PRECONDITION_FAILED - {text}")
    assert not rabbitmq.vhost.exchanges["x"].bindings


@pytest.mark.parametrize("key", ["+1", "0001", "10000"])
def test_binding_key_with_sign_or_leading_zeros_is_a_valid_weight(rabbitmq: Server, key: str) -> None:
    assert Ring(rabbitmq, key).where("k") == "q0"


endless = pytest.mark.needs("own broker")  # RabbitMQ makes so many buckets, and is busy for minutes.


@pytest.mark.parametrize(
    ("name", "limited"),
    [("3.13", False), pytest.param("4.0", False, marks=endless), ("4.2", True), ("4.3", True)],
)
def test_binding_weight_above_the_limit_is_refused_since_4_2(name: str, limited: bool) -> None:
    client = Ring(Server(f"rabbitmq-{name}")).client
    client.declare("q", durable=True)
    client.send(m.QueueBind(queue="q", exchange="x", routing_key="1000000000"))
    if limited:
        client.expect_channel_close(406)
    else:
        client.expect(m.QueueBindOk)
        client.publish(exchange="x")
        assert client.empty("q") == [b"body"]


def test_unbind_with_non_integer_key_is_accepted(rabbitmq: Server) -> None:
    Ring(rabbitmq, "1").unbind("q0", "abc")


# --- restart ---------------------------------------------------------------------------------------
@pytest.mark.needs("restart", "inspection")
@pytest.mark.parametrize(("name", "anew"), [("3.13", True), ("4.0", True), ("4.2", False), ("4.3", False)])
def test_restart_rebuilds_the_hash_ring_in_key_order_before_4_2(name: str, anew: bool) -> None:
    server = Server(f"rabbitmq-{name}")
    ring = Ring(server, "2", "10", durable=True)  # By key, 10 comes before 2.
    keys = [f"key-{number}" for number in range(40)]
    before = ring.spread(keys)
    server.restart()
    ring.client = server.client()
    sorted_by_key = Ring(Server(), "10", "2").spread(keys)
    swapped = {key: {"q0": "q1", "q1": "q0"}[str(queue)] for key, queue in sorted_by_key.items()}
    assert before != swapped
    assert ring.spread(keys) == (swapped if anew else before)


@pytest.mark.needs("restart", "inspection")
def test_ignored_second_binding_joins_the_hash_ring_after_restart(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "1", durable=True)
    ring.client.bind("q0", "x", "5")
    ring.unbind("q0", "1")
    assert ring.where("k") is None
    rabbitmq.restart()
    ring.client = rabbitmq.client()
    assert ring.where("k") == "q0"


# --- modulus hash ----------------------------------------------------------------------------------

HASHES = {"a": 53691870, "k1": 21317394, "hello": 106084785, "order.42": 28628389, "": 38220213}


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_modulus_hash_selects_queue_by_hash_modulo_number_of_bindings(rabbitmq: Server, count: int) -> None:
    ring = Ring(rabbitmq, *(f"b{number}" for number in range(count)), kind="x-modulus-hash")
    assert ring.spread() == {key: f"q{hashed % count}" for key, hashed in HASHES.items()}


def test_modulus_hash_includes_cc_and_bcc_keys_in_the_hash(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, *(f"b{number}" for number in range(7)), kind="x-modulus-hash")
    assert ring.where("a", headers={"CC": ["b"]}) == f"q{3094894 % 7}"
    assert ring.where("a", headers={"BCC": ["b"]}) == f"q{3094894 % 7}"
    assert ring.where("a") == f"q{53691870 % 7}"


def test_modulus_hash_counts_each_binding_of_a_queue(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "a", kind="x-modulus-hash")
    ring.client.bind("q0", "x", "b")
    ring.add("c")
    assert ring.spread() == {key: ("q0", "q0", "q1")[hashed % 3] for key, hashed in HASHES.items()}


@rows(
    "name, order",
    ("3.13", "fanout q2 q1 q0"),
    ("4.0", "fanout q2 q1 q0"),
    ("4.2", "q2 fanout q0 q1"),
    ("4.3", "fanout q0 q1 q2"),
)
def test_modulus_hash_order_of_bindings_depends_on_the_rabbitmq_version(name: str, order: str) -> None:
    client = (ring := Ring(Server(f"rabbitmq-{name}"), kind="x-modulus-hash")).client
    for queue in ("q0", "q1", "q2", "fanout"):
        client.declare(queue, durable=True)
    client.bind("fanout", "amq.fanout")
    client.bind("q2", "x", "b")
    client.call(m.ExchangeBind(source="x", destination="amq.fanout", routing_key="b"), m.ExchangeBindOk)
    client.bind("q0", "x", "d")
    client.bind("q1", "x", "c")
    ring.queues = ["q0", "q1", "q2", "fanout"]
    entries = order.split()
    assert ring.spread() == {key: entries[hashed % 4] for key, hashed in HASHES.items()}


def test_modulus_hash_follows_added_and_removed_bindings(rabbitmq: Server) -> None:
    ring = Ring(rabbitmq, "a", "b", "c", kind="x-modulus-hash")
    assert ring.where("hello") == f"q{HASHES['hello'] % 3}"
    ring.unbind("q0", "a")
    assert ring.where("hello") == f"q{1 + HASHES['hello'] % 2}"
    ring.add("d")
    assert ring.where("hello") == f"q{1 + HASHES['hello'] % 3}"


# --- what always holds -----------------------------------------------------------------------------

WEIGHTS = st.lists(st.integers(min_value=1, max_value=20), min_size=1, max_size=5)
BINDS = st.lists(
    st.tuples(st.sampled_from(["bind", "unbind"]), st.integers(0, 4), st.integers(1, 9)), max_size=20
)


@settings(deadline=None)
@given(WEIGHTS, st.text(max_size=20))
def test_consistent_hash_routes_every_key_to_the_owner_of_its_bucket(weights: list[int], key: str) -> None:
    ring = Ring(Server(), *map(str, weights))
    owners = [f"q{number}" for number, weight in enumerate(weights) for _ in range(weight)]
    assert ring.where(key) == owners[jump(phash2(key.encode()), len(owners))]


@settings(deadline=None)
@given(BINDS)
def test_hash_ring_matches_the_sequence_of_bind_and_unbind(steps: list[tuple[str, int, int]]) -> None:
    ring = Ring(Server())
    bound: set[tuple[int, int]] = set()
    weights: dict[int, int] = {}
    ring.queues = [f"q{number}" for number in range(5)]
    for queue in ring.queues:
        ring.client.declare(queue)
    for what, number, weight in steps:
        if what == "bind":
            ring.client.bind(f"q{number}", "x", str(weight))
            if (number, weight) not in bound:
                weights.setdefault(number, weight)
            bound.add((number, weight))
        else:
            ring.unbind(f"q{number}", str(weight))
            if (number, weight) in bound:
                bound.remove((number, weight))
                weights.pop(number, None)
    owners = [f"q{number}" for number, weight in weights.items() for _ in range(weight)]
    for key in KEYS:
        wanted = owners[jump(phash2(key.encode()), len(owners))] if owners else None
        assert ring.where(key) == wanted


def test_inequivalent_type_error_names_the_hash_exchange_types(rabbitmq: Server) -> None:
    client: Client = Ring(rabbitmq).client
    declare = m.ExchangeDeclare(exchange="x", type="x-modulus-hash")
    text = (
        "inequivalent arg 'type' for exchange 'x' in vhost '/': received ''x-modulus-hash'' but current is "
    )
    refused(client, declare, 406, f"PRECONDITION_FAILED - {text}''x-consistent-hash''")
