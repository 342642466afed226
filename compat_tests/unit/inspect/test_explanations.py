"""What an explanation says of a message is what a publish then does, and asking changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.inspect import NoSuchVirtualHost
from fakeamqp.inspect.explanations import Explanation, explain
from fakeamqp.model.messages.message import Message, UnknownProperty, plain_properties
from fakeamqp.model.routing import Outcome
from fakeamqp.model.virtual_host import VirtualHost


@pytest.fixture
def host(server: Server) -> VirtualHost:
    found: VirtualHost = server.vhost
    return found


def ask(
    server: Server, exchange: str, key: str = "", headers: dict[str, Any] | None = None, **more: Any
) -> Explanation:
    return explain(server.state, exchange, key, headers, **more)


def lines(explanation: Explanation) -> list[str]:
    return [line.strip() for line in str(explanation).splitlines()]


def bound(
    host: VirtualHost, type_name: str, *bindings: tuple[str, str, dict[str, Any]], **arguments: Any
) -> None:
    """An exchange "x" of a type, and the queues it is bound to."""
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    host.exchanges.declare("x", type_name, arguments=given)
    for queue, key, wanted in bindings:
        host.queues.declare(queue)
        host.bindings.bind("x", host.queues[queue], key, wanted)


# --- exchanges ------------------------------------------------------------------------------------------


def test_topic_explanation_lists_matching_and_mismatching_bindings_with_reasons(
    server: Server, host: VirtualHost
):
    bound(
        host, "topic", ("a", "order.*", {}), ("b", "#.eu", {}), ("c", "order.us", {}), ("d", "order.*.*", {})
    )
    explanation = ask(server, "x", "order.eu")
    assert explanation.queues == ("a", "b")
    assert lines(explanation) == [
        "message for exchange 'x' with routing key 'order.eu'",
        "exchange 'x' (topic): 2 of 4 bindings match",
        "-> queue 'a': 'order.*' matches 'order.eu' (* = 'eu')",
        "-> queue 'b': '#.eu' matches 'order.eu' (# = 'order')",
        "no match: 'order.us' -> queue 'c': word 2 is 'eu', not 'us'",
        "no match: 'order.*.*' -> queue 'd': it requires 3 words, and 'order.eu' has 2",
        "queue 'a': waits first; there is no consumer",
        "queue 'b': waits first; there is no consumer",
        "so it is routed to 'a', 'b'",
    ]


def test_explanation_of_an_unroutable_message_names_the_nearest_binding(server: Server, host: VirtualHost):
    bound(host, "topic", ("far", "invoice.paid.#", {}), ("a", "order.*", {}))
    explanation = ask(server, "x", "orders.eu")
    assert explanation.unroutable
    assert lines(explanation)[1:] == [
        "exchange 'x' (topic): no binding matches 'orders.eu'; nearest: 'order.*' -> queue 'a': "
        "word 1 is 'orders', not 'order'",
        "no match: 'invoice.paid.#' -> queue 'far': 'orders.eu' does not match it",
        "so it is unroutable: dropped silently, but confirmed",
    ]
    back = ask(server, "x", "orders.eu", mandatory=True)
    assert back.returned
    assert lines(back)[-1] == "so it is unroutable: returned to its publisher (312 NO_ROUTE)"


def test_direct_explanation_compares_binding_keys_with_the_routing_key(server: Server, host: VirtualHost):
    bound(host, "direct", ("a", "red", {}), ("b", "blue", {}))
    assert lines(ask(server, "x", "red"))[1:4] == [
        "exchange 'x' (direct): 1 of 2 bindings matches",
        "-> queue 'a': the binding key is the routing key",
        "no match: 'blue' -> queue 'b': 'blue' is not 'red'",
    ]


def test_headers_explanation_names_the_differing_and_missing_headers(server: Server, host: VirtualHost):
    bound(
        host,
        "headers",
        ("a", "", {"shop": "north", "kind": "fruit"}),
        ("b", "", {"x-match": "any", "shop": "south", "size": 1}),
    )
    explanation = ask(server, "x", headers={"shop": "south"})
    assert explanation.queues == ("b",)
    assert lines(explanation)[1:4] == [
        "exchange 'x' (headers): 1 of 2 bindings matches",
        "-> queue 'b': 1 of its headers match, and x-match is any",
        "no match: {'shop': 'north', 'kind': 'fruit'} -> queue 'a': header 'shop' is 'south', not 'north'; "
        "header 'kind' is missing",
    ]
    nothing = ask(server, "x", headers={"shop": "west"})
    assert "no binding matches its headers; nearest: {'shop': 'north'" in str(nothing)
    assert "x-match is any, but header 'shop' is 'west', not 'south'; header 'size' is missing" in str(
        nothing
    )


def test_fanout_explanation_lists_bindings_or_mentions_their_absence(server: Server, host: VirtualHost):
    bound(host, "fanout", ("a", "", {}))
    assert "-> queue 'a': a fanout exchange routes to every binding" in lines(ask(server, "x", "whatever"))
    assert "exchange 'amq.fanout' (fanout): nothing is bound to it" in lines(ask(server, "amq.fanout"))


def test_hash_and_random_explanations_name_the_chosen_or_possible_queues(server: Server, host: VirtualHost):
    bound(host, "x-consistent-hash", ("a", "3", {}), ("b", "7", {}))
    explanation = ask(server, "x", "k")
    [name] = explanation.queues
    bucket = host.exchanges["x"].bucket(["k"], Message("x", "k", plain_properties(), b"")) + 1  # type: ignore[attr-defined]
    said = f"the hash of its routing key falls into bucket {bucket} of 10, which belongs to queue {name!r}"
    assert f"exchange 'x' (x-consistent-hash): {said}" in lines(explanation)
    host.exchanges.declare("r", "x-random")
    for each in ("a", "b"):
        host.bindings.bind("r", host.queues[each], "")
    drawn = server.state.random.getstate()
    chance = ask(server, "r")
    assert server.state.random.getstate() == drawn
    assert (chance.queues, chance.possible_queues, chance.unroutable) == ((), ("a", "b"), False)
    assert "exchange 'r' (x-random): chosen at random: queue 'a', queue 'b'" in lines(chance)
    assert lines(chance)[-1] == "so it is routed to one or more of 'a', 'b'"
    host.exchanges.declare("m", "x-modulus-hash")
    host.bindings.bind("m", host.queues["a"], "")
    assert "the hash of its routing key chooses queue 'a' from 1 bindings" in str(ask(server, "m"))


def test_random_explanation_mentions_a_possible_choice_without_a_queue(server: Server, host: VirtualHost):
    bound(host, "x-random", ("a", "", {}))
    host.bindings.bind("x", host.exchanges["amq.topic"], "")
    assert lines(ask(server, "x"))[-1] == "so it is routed to one or more of 'a', or to none"
    host.bindings.bind("amq.topic", host.queues["a"], "#")
    assert "none" not in lines(ask(server, "x"))[-1]


def test_explanation_follows_alternate_exchanges_and_bindings_between_exchanges(
    server: Server, host: VirtualHost
):
    bound(host, "direct", ("a", "k", {}), alternate_exchange="amq.fanout")
    host.bindings.bind("amq.fanout", host.exchanges["amq.topic"], "")
    host.bindings.bind("amq.topic", host.queues.declare("b"), "#")
    explanation = ask(server, "x", "other")
    assert explanation.queues == ("b",)
    assert [hop.exchange for hop in explanation.hops] == ["x", "amq.fanout", "amq.topic"]
    assert "so it goes to the alternate exchange 'amq.fanout'" in lines(explanation)
    assert "-> exchange 'amq.topic': a fanout exchange routes to every binding" in lines(explanation)
    host.exchanges.declare("y", "direct", arguments={"alternate-exchange": "gone"})
    assert "so it goes to the alternate exchange 'gone', which does not exist" in lines(ask(server, "y"))


def test_alternate_exchange_of_an_alternate_exchange_is_not_tried(server: Server, host: VirtualHost):
    host.exchanges.declare("third", "fanout")
    host.exchanges.declare("second", "direct", alternate_exchange="third")
    host.exchanges.declare("first", "direct", alternate_exchange="second")
    explanation = ask(server, "first")
    assert [hop.exchange for hop in explanation.hops] == ["first", "second"]
    assert "so it goes to the alternate exchange 'second'" in lines(explanation)
    assert "its alternate exchange 'third' is not tried: it is one itself" in lines(explanation)
    assert "so it goes to the alternate exchange 'third'" in lines(ask(server, "second"))


def test_explanation_lists_near_misses_before_the_alternate_exchange(server: Server, host: VirtualHost):
    bound(host, "direct", ("a", "k", {}), ("b", "l", {}), alternate_exchange="amq.fanout")
    assert lines(ask(server, "x", "other"))[1:5] == [
        "exchange 'x' (direct): no binding matches 'other'; nearest: 'k' -> queue 'a': 'k' is not 'other'",
        "no match: 'l' -> queue 'b': 'l' is not 'other'",
        "so it goes to the alternate exchange 'amq.fanout'",
        "exchange 'amq.fanout' (fanout): nothing is bound to it",
    ]


def test_default_exchange_explanation_names_the_queue_or_a_near_match(server: Server, host: VirtualHost):
    host.queues.declare("orders")
    assert "exchange '' (direct): routing key 'orders' is the name of a queue" in lines(
        ask(server, "", "orders")
    )
    missing = ask(server, "", "order")
    assert "exchange '' (direct): there is no queue 'order'; did you mean 'orders'?" in lines(missing)
    assert missing.unroutable


def test_cc_and_bcc_headers_add_queues_to_the_explanation(server: Server, host: VirtualHost):
    bound(host, "direct", ("a", "one", {}), ("b", "two", {}), ("c", "three", {}))
    explanation = ask(server, "x", "one", {"CC": ["two"], "BCC": ["three"]})
    assert explanation.queues == ("a", "b", "c")


def test_explanation_of_a_delayed_message_names_delay_and_later_queues(server: Server, host: VirtualHost):
    bound(host, "x-delayed-message", ("a", "k", {}), x_delayed_type="direct")
    explanation = ask(server, "x", "k", {"x-delay": 5000}, mandatory=True)
    assert (explanation.queues, explanation.later_queues) == ((), ("a",))
    assert (explanation.returned, explanation.unroutable) == (True, False)
    assert host.delays.count("x") == 0
    assert "exchange 'x' (x-delayed-message): keeps it for 5 s" in str(explanation)
    assert "queue 'a', after 5 s: waits first; there is no consumer" in lines(explanation)
    assert lines(explanation)[-1] == (
        "so it is delayed for 5 s by exchange 'x'; returned meanwhile (312 NO_ROUTE)"
    )


@pytest.mark.parametrize(
    ("exchange", "more", "text"),
    [
        ("evnts", {}, "NOT_FOUND: no exchange 'evnts' in vhost '/'; did you mean 'events'?"),
        ("inner", {}, "ACCESS_REFUSED: cannot publish to internal exchange 'inner'"),
        ("events", {"headers": {"CC": 1}}, "PRECONDITION_FAILED: invalid message"),
        ("events", {"expiration": "soon"}, "PRECONDITION_FAILED: invalid expiration 'soon'"),
    ],
)
def test_explanation_of_an_invalid_publish_shows_the_error(
    server: Server, host: VirtualHost, exchange: str, more: Any, text: str
):
    host.exchanges.declare("events", "fanout")
    host.exchanges.declare("inner", "fanout", internal=True)
    explanation = ask(server, exchange, "", **more)
    assert text in str(explanation)
    assert not explanation.unroutable


def test_a_misspelled_property_or_virtual_host_is_an_error(server: Server):
    with pytest.raises(UnknownProperty, match="expiration"):
        ask(server, "", "q", expirations="1")
    with pytest.raises(NoSuchVirtualHost):
        ask(server, "", "q", virtual_host="other")


# --- queues ---------------------------------------------------------------------------------------------


def said(server: Server, **more: Any) -> str:
    [route] = ask(server, "", "q", **more).routes
    return "; ".join(route.says)


def declare(client: Client, name: str = "q", **arguments: Any) -> None:
    client.declare(
        name, durable=True, arguments={key.replace("_", "-"): each for key, each in arguments.items()}
    )


def test_explanation_names_the_consumer_of_the_next_delivery(server: Server, client: Client):
    declare(client)
    client.qos(1)
    client.consume("q", "first")
    client.consume("q", "second")
    for expected in ("first", "second"):
        [route] = ask(server, "", "q").routes
        assert (route.does, route.consumer) == ("deliver", expected)
        assert (
            route.says[0]
            == f"delivered at once to consumer {expected!r} on {client.connection.name} channel 1"
        )
        client.publish(b"1", routing_key="q")
        assert client.delivery().method.consumer_tag == expected
    assert said(server) == "waits first; its 2 consumers have no credit left"


def test_explanation_of_a_full_queue_depends_on_its_overflow_argument(server: Server, client: Client):
    declare(client, x_max_length=1)
    client.fill("q", b"1")
    assert said(server) == (
        "waits behind 1 message; there is no consumer; "
        "the queue is full (1 of at most 1 messages): the message at its head is dropped"
    )
    for name, more in (("reject-publish", ""), ("reject-publish-dlx", "; so it is dropped")):
        declare(client, name, x_max_length=1, x_overflow=name)
        client.fill(name, b"1")
        explanation = ask(server, "", name)
        [route] = explanation.routes
        assert route.does == "refuse"
        assert "; ".join(route.says) == (
            f"refused, because the queue is full (1 of at most 1 messages, overflow {name}){more}"
        )
        assert str(explanation).endswith(
            f"routed to {name!r}; refused by {name!r}, so that a confirm is a nack"
        )


def test_explanation_refuses_a_publish_to_a_quorum_queue_above_its_limit(server: Server, client: Client):
    declare(client, x_queue_type="quorum", x_max_length=1, x_overflow="reject-publish")
    assert ask(server, "", "q").routes[0].does != "refuse"
    client.fill("q", b"1", b"2")
    assert ask(server, "", "q").routes[0].does == "refuse", "two messages are above the limit"
    host = server.vhost
    host.publish(Message("", "q", plain_properties(), b"3"))
    assert ask(server, "", "q").routes[0].does == "refuse"
    queue = host.queues["q"]
    assert len(queue.ready) == 2
    client.get("q", no_ack=True)
    client.get("q", no_ack=True)
    assert ask(server, "", "q").routes[0].does != "refuse"


def test_explanation_names_dead_lettering_after_expiry_or_rejection(server: Server, client: Client):
    declare(client, x_message_ttl=60_000, x_dead_letter_exchange="amq.fanout", x_dead_letter_routing_key="k")
    way = "it is dead-lettered through exchange 'amq.fanout' with routing key 'k'"
    assert said(server, expiration="90000") == (
        f"waits first; there is no consumer; unless delivered within 60 s {way}; if rejected {way}"
    )
    declare(client, "lost", x_dead_letter_exchange="gone")
    [route] = ask(server, "", "lost").routes
    assert route.says[-1] == "if rejected it is dropped, because dead-letter exchange 'gone' does not exist"


def test_explanation_names_appending_to_a_stream_and_direct_reply_consumer(server: Server, client: Client):
    declare(client, x_queue_type="stream")
    assert said(server) == "appended to the stream; consumers that read it: 0"
    client.consume("amq.rabbitmq.reply-to", "tag", no_ack=True)
    [address] = server.vhost.reply_addresses
    [route] = ask(server, "", address).routes
    assert (route.does, route.consumer) == ("answer", "tag")


# --- the same as a publish ------------------------------------------------------------------------------

IF_CHOSEN = ", if chosen at random"
WORDS = st.sampled_from(["a", "b", "*", "#", ""])
#: RabbitMQ 4.3 refuses a binding key with more than two `#`.
KEYS = st.lists(WORDS, max_size=3).map(".".join).filter(lambda key: key.split(".").count("#") <= 2)
TABLES = st.dictionaries(
    st.sampled_from(["h", "x-h", "i"]), st.sampled_from([1, "1", None, True]), max_size=2
)
EXCHANGES = (
    "direct",
    "fanout",
    "topic",
    "headers",
    "x-consistent-hash",
    "x-modulus-hash",
    "x-random",
    "later",
)
QUEUES: tuple[dict[str, Any], ...] = (
    {},
    {"x-max-length": 1},
    {"x-max-length": 1, "x-overflow": "reject-publish"},
    {"x-max-length": 0, "x-overflow": "reject-publish-dlx"},
    {"x-queue-type": "quorum", "x-max-length": 0, "x-overflow": "reject-publish"},
    {"x-queue-type": "stream"},
)


@st.composite
def publishes(draw: st.DrawFn) -> tuple[str, str, dict[str, Any], bool]:
    headers = draw(TABLES)
    if draw(st.booleans()):
        headers["CC"] = draw(st.lists(KEYS, max_size=2))
    if draw(st.booleans()):
        headers["x-delay"] = draw(st.sampled_from([-1, 0, 1000]))
    return (
        draw(st.sampled_from(["", *EXCHANGES])),
        draw(st.one_of(KEYS, st.just("q0"))),
        headers,
        draw(st.booleans()),
    )


@examples(100)
@given(st.data())
def test_any_publish_agrees_with_its_explanation(data: st.DataObject):
    server = Server(history=10)
    client = server.client()
    host: VirtualHost = server.vhost
    for number, arguments in enumerate(QUEUES):
        client.declare(f"q{number}", durable=True, arguments=arguments)
    client.qos(1)
    for name in data.draw(st.lists(st.sampled_from(["q0", "q1", "q4"]), max_size=2), "consumers"):
        client.consume(name)
    for name in EXCHANGES:
        alternate = data.draw(st.sampled_from([None, None, *EXCHANGES, "gone"]), "alternate")
        arguments = {} if alternate is None else {"alternate-exchange": alternate}
        if name == "later":
            arguments["x-delayed-type"] = data.draw(st.sampled_from(["topic", "x-random"]))
        host.exchanges.declare(name, "x-delayed-message" if name == "later" else name, arguments=arguments)
    for _ in range(data.draw(st.integers(0, 12), "bindings")):
        source = data.draw(st.sampled_from(EXCHANGES))
        key = data.draw(st.sampled_from(["1", "5"]) if source == "x-consistent-hash" else KEYS)
        table = data.draw(TABLES)
        if source == "headers":
            table["x-match"] = data.draw(st.sampled_from(["all", "any", "all-with-x", "any-with-x"]))
        end = data.draw(st.sampled_from([*host.queues.values(), *map(host.exchanges.__getitem__, EXCHANGES)]))
        host.bindings.bind(source, end, key, table)
    planned = data.draw(st.lists(publishes(), min_size=1, max_size=4))
    for number, (exchange, key, headers, mandatory) in enumerate(planned):
        properties = plain_properties(headers=headers)
        drawn, kept = server.state.random.getstate(), host.delays.count("later")
        explanation = explain(server.state, exchange, key, headers, mandatory=mandatory)
        assert explain(server.state, exchange, key, headers, mandatory=mandatory) == explanation
        assert (server.state.random.getstate(), host.delays.count("later")) == (drawn, kept)
        assert explanation.error is None
        message = Message(exchange, key, properties, str(number).encode())
        outcome = host.publish(message, mandatory=mandatory)
        check(explanation, outcome, message, mandatory)
        check_words(explanation)


def check(explanation: Explanation, outcome: Outcome, message: Message, mandatory: bool) -> None:
    names = [queue.name for queue in outcome.queues]
    chance = set(explanation.possible_queues)
    assert [name for name in names if name not in chance] == list(explanation.queues)
    assert set(names) <= chance | set(explanation.queues)
    kept = {str(each) for each in outcome.delays}
    certain = {each for each in explanation.delays if not each.endswith(IF_CHOSEN)}
    assert certain <= kept
    assert kept <= {each.removesuffix(IF_CHOSEN) for each in explanation.delays}
    if not chance and certain == set(explanation.delays):
        assert explanation.unroutable == (not names and not outcome.delays)
        assert explanation.returned == (mandatory and not names)
    refusing = {route.queue for route in explanation.routes if route.does == "refuse" and not route.after}
    assert {queue.name for queue in outcome.refused} == refusing & set(names)
    for queue in outcome.queues:
        [route] = [each for each in explanation.routes if each.queue == queue.name and not each.after]
        deliveries = [] if queue.keeps_delivered else list(queue.unacked)
        holders = [each.holder for each in deliveries if each.queued.message.body == message.body]
        assert [each.tag for each in holders if each] == ([] if route.consumer is None else [route.consumer])


def check_words(explanation: Explanation) -> None:
    """What is said of each binding fits what its exchange has done."""
    assert str(explanation).splitlines()[-1].startswith("  so it is ")
    for hop in explanation.hops:
        ways = {line.split("'")[1] for line in hop.says if line.startswith("-> ")}
        if hop.type in ("direct", "topic", "headers", "fanout") and hop.exchange:
            assert ways == set(hop.passes_to), hop
