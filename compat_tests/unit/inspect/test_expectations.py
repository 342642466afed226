from __future__ import annotations

import re
from unittest.mock import ANY

import pytest

from compat_tests.protocol.driver import Client, Server
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
def test_what_fits(shop: Server, wanted: dict[str, object], positions: list[int]):
    assert found(shop, **wanted) == positions


def test_a_json_list(server: Server, client: Client):
    client.publish(b"[1, 2]", routing_key="x")
    assert found(server, body=[1, 2]) == [0]
    assert found(server, body=[2, 1]) == []


def test_anything_that_equals_the_value_fits(shop: Server):
    class Anything:
        def __eq__(self, other: object) -> bool:
            return other is not None

        __hash__ = None  # type: ignore[assignment]

    assert found(shop, message_id=Anything()) == [2]


def test_a_class_is_compared_with_and_not_called(shop: Server):
    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            return isinstance(other, int)

        __hash__ = type.__hash__

    class AnyNumber(metaclass=Meta):
        pass

    assert found(shop, priority=AnyNumber) == [0]


def test_a_predicate_that_fails_on_a_message_of_another_kind_does_not_fit(shop: Server):
    import json

    assert found(shop, body=lambda body: json.loads(body)["id"] == 2) == [1]


def test_other_virtual_hosts(server: Server, client: Client):
    server.state.add_virtual_host("other")
    users = server.state.access.users
    users["guest"].permissions["other"] = users["guest"].permissions["/"]
    client.publish(b"here", routing_key="x")
    server.client(virtual_host="other").publish(b"there", routing_key="x")
    assert found(server, routing_key="x") == [0, 1]
    assert found(server, virtual_host="other") == [1]


# --- how many -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, (1, 2), (2, None), (0, 5)])
def test_as_many_as_expected(shop: Server, count: object):
    assert found(shop, routing_key="order.placed", count=count) == [0, 1]


@pytest.mark.parametrize("count", [0, 1, 3, (3, None), (0, 1)])
def test_not_as_many_as_expected(shop: Server, count: object):
    text = misses(shop, routing_key="order.placed", count=count)
    assert 'but 2 of 5 published fit:\n    <published b\'{"id": 1' in text


def test_none_is_expected_and_none_was_published(shop: Server):
    assert Expectation(routing_key="order.lost", count=0).check_now(shop.state) == ()


# --- what is said where nothing fits --------------------------------------------------------------------


def test_the_whole_text(server: Server, client: Client):
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


def test_it_is_an_assertion_error_and_one_of_ours(shop: Server):
    with pytest.raises(AssertionError):
        Expectation(routing_key="order.lost").check_now(shop.state)
    with pytest.raises(FakeAMQPError):
        Expectation(routing_key="order.lost").check_now(shop.state)


def test_nothing_was_published(server: Server):
    text = misses(server, routing_key="x", count=2)
    assert (
        text == "expected exactly 2 published messages with\n    routing_key  'x'\nbut nothing was published"
    )


def test_the_only_message_does_not_fit(server: Server, client: Client):
    client.publish(routing_key="x")
    text = misses(server, routing_key="y")
    assert "but the only one published does not fit\n\nThe nearest miss:\n" in text


def test_fewer_wrong_fields_are_nearer(shop: Server):
    text = misses(shop, exchange="amq.topic", routing_key="order.placed", headers={"shop": "west"})
    first, second, third = re.findall(r"<published (b'.*?') exchange", text)
    assert {first, second} == {'b\'{"id": 1, "fruit": "apple"}\'', "b'{\"id\": 2}'"}
    assert "pfel" in third


def test_of_equally_many_the_likest_is_nearest(server: Server, client: Client):
    for key in ("zzz", "order.payd", "yyy"):
        client.publish(routing_key=key)
    keys = re.findall(r"routing_key='(.*?)'", misses(server, routing_key="order.paid"))
    assert keys[0] == "order.payd"


def test_of_equally_like_ones_the_latest_is_nearest(server: Server, client: Client):
    for body in (b"1", b"2", b"3", b"4", b"5"):
        client.publish(body, routing_key="same")
    text = misses(server, routing_key="other")
    assert re.findall(r"<published b'(\d)'", text) == ["5", "4", "3"]
    assert "... and 2 more that are further off or older" in text


def test_near_misses_are_shown_where_too_few_fit_and_not_where_too_many_do(shop: Server):
    few = misses(shop, routing_key="order.placed", count=3)
    many = misses(shop, routing_key="order.placed", count=1)
    assert "expected 'order.placed', was 'order.paid.eu'" in few
    assert "nearest" not in many


def test_why_a_body_does_not_fit(server: Server, client: Client):
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
def test_a_part_of_the_json_fits(server: Server, client: Client, wanted: object):
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
def test_where_json_differs(server: Server, client: Client, wanted: object, said: str):
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


def test_what_is_not_json_is_said_to_be_none(server: Server, client: Client):
    client.publish(b"two apples", routing_key="x")
    assert "json  expected {'id': 7}, was not JSON: b'two apples'" in misses(server, json={"id": 7})
    assert found(server, json=lambda value: True) == []
    assert found(server, json=ANY) == []


def test_the_json_with_the_fewest_differences_is_nearest(server: Server, client: Client):
    for body in (b'{"a": 1, "b": 1}', b'{"a": 0, "b": 0}', b"no"):
        client.publish(body, routing_key="x")
    text = misses(server, json={"a": 1, "b": 2})
    assert re.findall(r"<published b'(.*?)'", text)[0] == '{"a": 1, "b": 1}'


def test_a_value_of_another_type_is_pointed_out(server: Server, client: Client):
    client.publish(routing_key="x", headers={"id": "1"}, expiration="60000")
    assert "expected 1, was '1' (str, not int)" in misses(server, headers={"id": 1})
    assert "expected 60000, was '60000' (str, not int)" in misses(server, expiration=60000)


def test_predicates_and_patterns_are_named(shop: Server):
    def long_enough(body: bytes) -> bool:
        return len(body) > 1000

    text = misses(shop, body=long_enough, routing_key=re.compile("^order"))
    assert "long_enough accepts" in text
    assert "routing_key  something with /^order/" in text


def test_what_a_predicate_raised_is_told(shop: Server):
    text = misses(shop, headers={"count": lambda count: count["x"]})
    assert "raised TypeError(\"'int' object is not subscriptable\")" in text


def test_long_values_are_cut(server: Server, client: Client):
    client.publish(b"x" * 100_000, routing_key="x", headers={"long": "y" * 100_000})
    assert len(misses(server, body=b"z" * 100_000, headers={"long": "w" * 100_000})) < 3000


def test_the_older_ones_that_are_gone_are_mentioned():
    server = Server(history=1)
    client = server.client()
    client.publish(b"1", routing_key="x")
    client.publish(b"2", routing_key="x")
    assert "(1 older ones are no longer kept" in misses(server, body=b"1")


def test_the_text_can_be_printed_whatever_was_published(server: Server, client: Client):
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
def test_a_bad_expectation_fails_when_it_is_made(wanted: dict[str, object], text: str):
    with pytest.raises(BadExpectation, match=re.escape(text)):
        Expectation(**wanted)


# --- following the history ------------------------------------------------------------------------------


def test_following_decides_when_enough_have_come(server: Server, client: Client):
    expectation = Expectation(routing_key="x", count=2)
    decided = expectation.follow()
    assert not decided(server.state)
    client.publish(b"1", routing_key="x")
    client.publish(b"2", routing_key="y")
    assert not decided(server.state)
    client.publish(b"3", routing_key="x")
    assert decided(server.state)
    assert [view.body for view in expectation.check_now(server.state)] == [b"1", b"3"]


def test_following_decides_when_too_many_have_come(server: Server, client: Client):
    decided = Expectation(routing_key="x", count=1).follow()
    client.publish(routing_key="x")
    client.publish(routing_key="x")
    assert decided(server.state)


def test_following_looks_at_each_publish_once(server: Server, client: Client):
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


def test_following_counts_what_the_history_dropped_in_between():
    server = Server(history=2)
    client = server.client()
    decided = Expectation(routing_key="x", count=(3, None)).follow()
    for _ in range(2):
        client.publish(routing_key="x")
        client.publish(routing_key="x")
        done = decided(server.state)
    assert done


def test_following_begins_anew_when_the_history_is_cleared(server: Server, client: Client):
    decided = Expectation(routing_key="x", count=2).follow()
    client.publish(routing_key="x")
    client.publish(routing_key="y")
    assert not decided(server.state)
    server.state.published.clear()
    client.publish(routing_key="x")
    assert not decided(server.state)
    client.publish(routing_key="x")
    assert decided(server.state)


def test_following_nothing_is_an_error():
    with pytest.raises(NoHistory):
        Expectation().follow()(Server().state)


def test_an_expectation_reads_as_a_sentence():
    assert str(Expectation(routing_key="x", count=2)) == "exactly 2 published with routing_key='x'"
    assert str(Expectation()) == "at least 1 published"
