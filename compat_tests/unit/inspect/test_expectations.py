from __future__ import annotations

import re
from unittest.mock import ANY

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.errors import FakeAMQPError
from fakeamqp.inspect import BadExpectation, Expectation, NoHistory, NotPublished
from fakeamqp.inspect.messages import published_views


@pytest.fixture
def shop(server: Server, client: Client) -> Server:
    """A broker to which five messages were published."""
    client.declare("orders")
    client.bind("orders", "amq.topic", "order.#")
    topic = {"exchange": "amq.topic"}
    client.publish(
        b'{"id": 1, "fruit": "apple"}',
        routing_key="order.placed",
        headers={"shop": "north", "count": 2},
        content_type="application/json",
        delivery_mode=2,
        priority=3,
        **topic,
    )
    client.publish(b'{"id": 2}', routing_key="order.placed", headers={"shop": "south"}, **topic)
    client.publish("drei Äpfel".encode(), routing_key="order.paid.eu", message_id="m-3", **topic)
    client.publish(b"\xff\xfe", routing_key="orders")
    client.publish(b"", routing_key="nowhere")
    return server


def found(server: Server, **wanted: object) -> list[int]:
    """The positions of the messages that fit."""
    every = list(published_views(server.state))
    try:
        matching = Expectation(**wanted).check_now(server.state)
    except NotPublished:
        return []
    return [every.index(view) for view in matching]


def misses(server: Server, **wanted: object) -> str:
    with pytest.raises(NotPublished) as failure:
        Expectation(**wanted).check_now(server.state)
    return str(failure.value)


# --- what fits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "positions"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"exchange": "amq.topic"}, [0, 1, 2]),
        ({"exchange": ""}, [3, 4]),
        ({"routing_key": "order.placed"}, [0, 1]),
        ({"routing_key": "order.*"}, [0, 1]),
        ({"routing_key": "order.#"}, [0, 1, 2]),
        ({"routing_key": "*"}, [3, 4]),
        ({"routing_key": "#"}, [0, 1, 2, 3, 4]),
        ({"routing_key": "order*"}, []),
        ({"routing_key": re.compile("pla")}, [0, 1]),
        ({"routing_key": re.compile("^pla")}, []),
        ({"routing_key": lambda key: key.endswith(("eu", "where"))}, [2, 4]),
        ({"body": b'{"id": 2}'}, [1]),
        ({"body": "drei Äpfel"}, [2]),
        ({"body": {"fruit": "apple", "id": 1}}, [0]),
        ({"body": {"id": 1}}, []),
        ({"body": re.compile("Ä")}, [2]),
        ({"body": re.compile(b"\xff")}, [3]),
        ({"body": lambda body: len(body) == 2}, [3]),
        ({"body": b""}, [4]),
        ({"headers": {"shop": "north"}}, [0]),
        ({"headers": {"shop": re.compile("th$")}}, [0, 1]),
        ({"headers": {"shop": "north", "count": lambda count: count > 1}}, [0]),
        ({"headers": {"shop": "north", "absent": 1}}, []),
        ({"headers": {"absent": lambda value: True}}, []),
        ({"headers": {}}, [0, 1, 2, 3, 4]),
        ({"content_type": "application/json"}, [0]),
        ({"content_type": re.compile("json")}, [0]),
        ({"delivery_mode": 2}, [0]),
        ({"priority": lambda priority: priority is None}, [1, 2, 3, 4]),
        ({"message_id": "m-3"}, [2]),
        ({"virtual_host": "/"}, [0, 1, 2, 3, 4]),
        ({"virtual_host": "other"}, []),
        ({"exchange": "amq.topic", "routing_key": "order.placed", "headers": {"shop": "south"}}, [1]),
        ({"exchange": None, "body": None, "headers": None, "count": None}, [0, 1, 2, 3, 4]),
    ],
)
def test_expectation_finds_messages_by_fields_patterns_and_predicates(
    shop: Server, wanted: dict[str, object], positions: list[int]
):
    assert found(shop, **wanted) == positions


def test_expected_list_is_compared_with_a_json_body(server: Server, client: Client):
    client.publish(b"[1, 2]", routing_key="x")
    assert found(server, body=[1, 2]) == [0]
    assert found(server, body=[2, 1]) == []


def test_expected_value_matches_by_its_own_equality(shop: Server):
    class Anything:
        def __eq__(self, other: object) -> bool:
            return other is not None

        __hash__ = None  # type: ignore[assignment]

    assert found(shop, message_id=Anything()) == [2]


def test_expected_class_is_compared_and_not_called(shop: Server):
    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            return isinstance(other, int)

        __hash__ = type.__hash__

    class AnyNumber(metaclass=Meta):
        pass

    assert found(shop, priority=AnyNumber) == [0]


def test_predicate_that_raises_on_a_message_counts_as_a_mismatch(shop: Server):
    import json

    assert found(shop, body=lambda body: json.loads(body)["id"] == 2) == [1]


def test_expectation_covers_all_virtual_hosts_or_a_given_virtual_host(server: Server, client: Client):
    server.state.add_virtual_host("other")
    users = server.state.access.users
    users["guest"].permissions["other"] = users["guest"].permissions["/"]
    client.publish(b"here", routing_key="x")
    server.client(virtual_host="other").publish(b"there", routing_key="x")
    assert found(server, routing_key="x") == [0, 1]
    assert found(server, virtual_host="other") == [1]


# --- how many -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, (1, 2), (2, None), (0, 5)])
def test_expected_count_of_matching_messages_is_found(shop: Server, count: object):
    assert found(shop, routing_key="order.placed", count=count) == [0, 1]


@pytest.mark.parametrize("count", [0, 1, 3, (3, None), (0, 1)])
def test_wrong_count_of_matching_messages_fails(shop: Server, count: object):
    text = misses(shop, routing_key="order.placed", count=count)
    assert 'but 2 of 5 published fit:\n    <published b\'{"id": 1' in text


def test_count_0_is_satisfied_when_no_message_matches(shop: Server):
    assert Expectation(routing_key="order.lost", count=0).check_now(shop.state) == ()


# --- what is said where nothing fits --------------------------------------------------------------------


def test_not_published_error_shows_expected_fields_and_nearest_misses(server: Server, client: Client):
    client.publish(b"two apples", exchange="amq.topic", routing_key="order.placed", headers={"shop": "south"})
    client.publish(b"x", routing_key="jobs")
    assert misses(server, exchange="amq.topic", routing_key="order.paid", headers={"shop": "north"}) == (
        "expected at least 1 published message with\n"
        "    routing_key      'order.paid'\n"
        "    exchange         'amq.topic'\n"
        "    headers['shop']  'north'\n"
        "but none of 2 published fit\n"
        "\n"
        "The nearest misses:\n"
        "  <published b'two apples' exchange='amq.topic' routing_key='order.placed' "
        "headers={'shop': 'south'}: unroutable>\n"
        "    routing_key      expected 'order.paid', was 'order.placed'\n"
        "    headers['shop']  expected 'north', was 'south'\n"
        "  <published b'x' exchange='' routing_key='jobs': unroutable>\n"
        "    routing_key      expected 'order.paid', was 'jobs'\n"
        "    exchange         expected 'amq.topic', was ''\n"
        "    headers['shop']  expected 'north', was not there"
    )


def test_not_published_is_an_assertion_error_and_a_fakeamqp_error(shop: Server):
    with pytest.raises(AssertionError):
        Expectation(routing_key="order.lost").check_now(shop.state)
    with pytest.raises(FakeAMQPError):
        Expectation(routing_key="order.lost").check_now(shop.state)


def test_not_published_error_mentions_an_empty_history(server: Server):
    text = misses(server, routing_key="x", count=2)
    assert (
        text == "expected exactly 2 published messages with\n    routing_key  'x'\nbut nothing was published"
    )


def test_error_for_a_single_mismatch_shows_the_message_as_nearest_miss(server: Server, client: Client):
    client.publish(routing_key="x")
    text = misses(server, routing_key="y")
    assert "but the only one published does not fit\n\nThe nearest miss:\n" in text


def test_messages_with_fewer_wrong_fields_are_nearer_misses(shop: Server):
    text = misses(shop, exchange="amq.topic", routing_key="order.placed", headers={"shop": "west"})
    first, second, third = re.findall(r"<published (b'.*?') exchange", text)
    assert {first, second} == {'b\'{"id": 1, "fruit": "apple"}\'', "b'{\"id\": 2}'"}
    assert "pfel" in third


def test_among_equally_many_wrong_fields_the_most_similar_message_is_nearest(server: Server, client: Client):
    for key in ("zzz", "order.payd", "yyy"):
        client.publish(routing_key=key)
    keys = re.findall(r"routing_key='(.*?)'", misses(server, routing_key="order.paid"))
    assert keys[0] == "order.payd"


def test_among_equally_similar_messages_the_latest_is_nearest(server: Server, client: Client):
    for body in (b"1", b"2", b"3", b"4", b"5"):
        client.publish(body, routing_key="same")
    text = misses(server, routing_key="other")
    assert re.findall(r"<published b'(\d)'", text) == ["5", "4", "3"]
    assert "... and 2 more that are further off or older" in text


def test_near_misses_are_shown_for_too_few_matches_but_not_too_many(shop: Server):
    few = misses(shop, routing_key="order.placed", count=3)
    many = misses(shop, routing_key="order.placed", count=1)
    assert "expected 'order.placed', was 'order.paid.eu'" in few
    assert "nearest" not in many


def test_error_for_a_json_body_shows_expected_and_actual_body(server: Server, client: Client):
    client.publish(b"not json", routing_key="x")
    assert "expected JSON {'id': 1}, was b'not json', which is not JSON" in misses(server, body={"id": 1})
    client.publish(b'{"id": 2}', routing_key="x")
    assert "expected JSON {'id': 1}, was b'{\"id\": 2}'\n" in misses(server, body={"id": 1})


ORDER = b'{"id": 7, "paid": true, "note": null, "items": [{"sku": "apple", "n": 2}, {"sku": "pear", "n": 1}]}'


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"id": 7},
        {"paid": True, "note": None},
        {"items": [{"sku": "apple"}, {}]},
        {"items": [{"sku": re.compile("^app")}, {"n": lambda n: n < 2}]},
        {"id": ANY},
        lambda order: len(order["items"]) == 2,
    ],
)
def test_json_expectation_matches_parts_of_the_body(server: Server, client: Client, wanted: object):
    client.publish(ORDER, routing_key="x")
    assert found(server, json=wanted) == [0]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"id": 8}, "json.id  expected 8, was 7"),
        ({"id": "7"}, "json.id  expected '7', was 7 (int, not str)"),
        ({"paid": 1}, "json.paid  expected 1, was True"),
        ({"id": None}, "json.id  expected None, was 7"),
        ({"note": "x"}, "json.note  expected 'x', was None"),
        ({"item": []}, "json.item  expected [], was not there (there is 'items')"),
        ({"no such": 1}, "json['no such']  expected 1, was not there"),
        ({"items": [{}]}, "json.items  expected 1 element, was 2: [{'sku': 'apple', 'n': 2}"),
        ({"items": [{}, {"n": 3}]}, "json.items[1].n  expected 3, was 1"),
        ({"items": {"n": 3}}, "json.items  expected {'n': 3}, was [{'sku': 'apple'"),
        ([ORDER], "json  expected [b"),
        ({"id": lambda n: n > 9}, "json.id  expected what <lambda> accepts, was 7"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_error_names_the_place_where_json_differs(server: Server, client: Client, wanted: object, said: str):
    client.publish(ORDER, routing_key="x")
    assert f"\n    {said}" in misses(server, json=wanted)


def test_all_places_where_json_differs_are_listed_up_to_a_limit(server: Server, client: Client):
    client.publish(ORDER, routing_key="x")
    text = misses(server, json={"id": 8, "paid": False}, routing_key="y")
    assert "    routing_key  expected 'y', was 'x'\n" in text
    assert "    json.id      expected 8, was 7\n    json.paid    expected False, was True" in text
    text = misses(server, json=dict.fromkeys("abcdefgh", 1))
    assert text.count("was not there") == 6
    assert "    json    ... and 2 more places" in text


def test_body_without_valid_json_never_matches_a_json_expectation(server: Server, client: Client):
    client.publish(b"two apples", routing_key="x")
    assert "json  expected {'id': 7}, was not JSON: b'two apples'" in misses(server, json={"id": 7})
    assert found(server, json=lambda value: True) == []
    assert found(server, json=ANY) == []


def test_the_json_with_the_fewest_differences_is_nearest(server: Server, client: Client):
    for body in (b'{"a": 1, "b": 1}', b'{"a": 0, "b": 0}', b"no"):
        client.publish(body, routing_key="x")
    text = misses(server, json={"a": 1, "b": 2})
    assert re.findall(r"<published b'(.*?)'", text)[0] == '{"a": 1, "b": 1}'


def test_error_points_out_a_value_of_another_type(server: Server, client: Client):
    client.publish(routing_key="x", headers={"id": "1"}, expiration="60000")
    assert "expected 1, was '1' (str, not int)" in misses(server, headers={"id": 1})
    assert "expected 60000, was '60000' (str, not int)" in misses(server, expiration=60000)


def test_error_names_predicates_and_patterns(shop: Server):
    def long_enough(body: bytes) -> bool:
        return len(body) > 1000

    text = misses(shop, body=long_enough, routing_key=re.compile("^order"))
    assert "long_enough accepts" in text
    assert "routing_key  something with /^order/" in text


def test_error_shows_the_exception_of_a_predicate(shop: Server):
    text = misses(shop, headers={"count": lambda count: count["x"]})
    assert "raised TypeError(\"'int' object is not subscriptable\")" in text


def test_error_text_cuts_long_values(server: Server, client: Client):
    client.publish(b"x" * 100_000, routing_key="x", headers={"long": "y" * 100_000})
    assert len(misses(server, body=b"z" * 100_000, headers={"long": "w" * 100_000})) < 3000


def test_error_mentions_older_messages_dropped_from_the_history():
    server = Server(history=1)
    client = server.client()
    client.publish(b"1", routing_key="x")
    client.publish(b"2", routing_key="x")
    assert "(1 older ones are no longer kept" in misses(server, body=b"1")


def test_error_text_is_ascii_for_messages_of_any_octets(server: Server, client: Client):
    client.publish(b"\xff\x00\n", routing_key="\udcff\n", headers={"\udcfe\n": "\udcfd"})
    text = misses(server, routing_key="\udcfc", headers={"\udcfe\n": "x"})
    text.encode("ascii")


# --- what cannot be expected ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"routing_kee": "x"}, "no keyword 'routing_kee'; did you mean 'routing_key'"),
        ({"header": {}}, "no keyword 'header'; did you mean 'headers'"),
        ({"zzz": 1}, "no keyword 'zzz'; there are 'exchange'"),
        ({"headers": "shop"}, "headers='shop': give a mapping"),
        ({"count": "2"}, "count='2': give a number"),
        ({"count": (2, 1)}, "nothing is at least 2 and at most 1"),
    ],
)
def test_invalid_expectation_is_an_error_on_construction(wanted: dict[str, object], text: str):
    with pytest.raises(BadExpectation, match=re.escape(text)):
        Expectation(**wanted)


# --- following the history ------------------------------------------------------------------------------


def test_following_decides_when_enough_messages_have_matched(server: Server, client: Client):
    expectation = Expectation(routing_key="x", count=2)
    decided = expectation.follow()
    assert not decided(server.state)
    client.publish(b"1", routing_key="x")
    client.publish(b"2", routing_key="y")
    assert not decided(server.state)
    client.publish(b"3", routing_key="x")
    assert decided(server.state)
    assert [view.body for view in expectation.check_now(server.state)] == [b"1", b"3"]


def test_following_decides_when_too_many_messages_have_matched(server: Server, client: Client):
    decided = Expectation(routing_key="x", count=1).follow()
    client.publish(routing_key="x")
    client.publish(routing_key="x")
    assert decided(server.state)


def test_following_calls_the_predicate_once_for_each_message(server: Server, client: Client):
    looked_at = []

    def note(body: bytes) -> bool:
        looked_at.append(body)
        return False

    decided = Expectation(body=note).follow()
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="x")
        assert not decided(server.state)
        assert not decided(server.state)
    assert looked_at == [b"1", b"2", b"3"]


def test_following_counts_messages_dropped_from_the_history_meanwhile():
    server = Server(history=2)
    client = server.client()
    decided = Expectation(routing_key="x", count=(3, None)).follow()
    for _ in range(2):
        client.publish(routing_key="x")
        client.publish(routing_key="x")
        done = decided(server.state)
    assert done


def test_following_starts_again_when_the_history_is_cleared(server: Server, client: Client):
    decided = Expectation(routing_key="x", count=2).follow()
    client.publish(routing_key="x")
    client.publish(routing_key="y")
    assert not decided(server.state)
    server.state.published.clear()
    client.publish(routing_key="x")
    assert not decided(server.state)
    client.publish(routing_key="x")
    assert decided(server.state)


def test_following_without_a_history_raises_no_history():
    with pytest.raises(NoHistory):
        Expectation().follow()(Server().state)


def test_str_of_an_expectation_is_a_readable_sentence():
    assert str(Expectation(routing_key="x", count=2)) == "exactly 2 published with routing_key='x'"
    assert str(Expectation()) == "at least 1 published"
