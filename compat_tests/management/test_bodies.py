"""JSON of any shape: what it takes is bounded, no request fails with 500, and lists stay valid JSON."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import amqp
import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.management.client import Api
from compat_tests.management.inspector_client import Page
from fakeamqp import Broker, FakeAMQPError
from fakeamqp.management.bodies import decoded
from fakeamqp.management.errors import Refused
from fakeamqp.management.inspector.actions import QUESTIONS
from fakeamqp.management.resources import RESOURCES


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(management=True, clock="virtual") as broker:
        yield broker
        assert broker.admin.failures == ()


@pytest.fixture(scope="module")
def api(broker: Broker) -> Api:
    return Api(broker.admin.management_url)


# --- bounds ---------------------------------------------------------------------------------------------

LEVELS = b'{"a":'
NO_JSON = [
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-1e999",
    b"[1, NaN]",
    b'{"a": 1e999}',
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\xff"',
    b"9" * 400,
    b"9" * 5000,
    b"{",
    b"",
    b"\xef\xbb\xbf{}",
    "{}".encode("utf-16"),
]
"""RabbitMQ 4.3.6 answers all but those with many digits with `not_json` (measured)."""


@pytest.mark.parametrize("body", NO_JSON)
def test_json_that_rabbitmq_refuses_is_refused(body: bytes):
    with pytest.raises(ValueError):
        decoded(body)


@pytest.mark.parametrize(
    "body",
    [b"[" * 101 + b"]" * 101, LEVELS * 101 + b"1" + b"}" * 101, b"[" * 5_000_000, b'["\\"[", ' + b"[" * 200],
)
def test_json_with_too_many_levels_or_values_is_refused(body: bytes):
    with pytest.raises(Refused, match=r"deeper than 100 levels|too many values"):
        decoded(body)


def test_brackets_within_json_strings_are_not_counted():
    text = '[{":,\\"' * 200_000
    assert decoded(json.dumps([text, "\\", '"', "é", "\U0001f600"]).encode()) == [
        text,
        "\\",
        '"',
        "é",
        "\U0001f600",
    ]
    deep = b"[" * 100 + b"]" * 100
    assert json.dumps(decoded(deep)).encode() == deep


@pytest.mark.parametrize("piece", [b"[],", b'"",', b'{"":0},', b"[[0]],", b"1,", b'"a\\"",'])
def test_the_memory_for_a_body_of_many_values_is_bounded(piece: bytes):
    body = b"[" + piece * (9_900_000 // len(piece)) + b"0]"
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match="too many values"):
            decoded(body)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(body)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", ["NaN", "1e999", "[" * 600 + "]" * 600, '{"a":' * 600 + "1" + "}" * 600])
def test_refused_value_leaves_the_broker_unchanged(broker: Broker, api: Api, value: str):
    for method, path, body in (
        ("PUT", "queues/%2F/refused", '{"durable":true,"arguments":{"x-foo":@}}'),
        ("PUT", "exchanges/%2F/refused", '{"type":"direct","arguments":{"x-foo":@}}'),
        ("PUT", "global-parameters/refused", '{"value":@}'),
        ("PUT", "policies/%2F/refused", '{"pattern":"","definition":{"max-length":@}}'),
        ("POST", "definitions", '{"global_parameters":[{"name":"refused","value":@}]}'),
        ("PUT", "vhosts/refused", '{"metadata":@}'),
    ):
        reply = api.request(method, path, body.replace("@", value).encode())
        assert reply.status == 400, (path, reply)
    for path in ("queues", "exchanges", "global-parameters", "policies", "definitions", "vhosts"):
        assert "refused" not in api.request("GET", path).body.decode()


def test_deep_tables_of_amqp_leave_lists_and_topology_intact(broker: Broker, api: Api):
    for depth in (150, 199, 250, 400):
        table: Any = {"end": 1}
        for _ in range(depth):
            table = {"a": table}
        connection = amqp.Connection(f"{broker.host}:{broker.port}")
        connection.connect()
        connection.channel().queue_declare(f"deep{depth}", arguments={"x-deep": table}, auto_delete=False)
        connection.close()
    for path in ("queues", "definitions", "queues/%2F/deep250", "queues/%2F/deep150"):
        json.loads(api.request("GET", path).body)
        assert api.request("GET", path).status == 200
    broker.admin.topology()
    str(broker.admin.topology())
    Page.of(broker).ask("queue", virtual_host="/", name="deep199")


# --- any shape ------------------------------------------------------------------------------------------

NAMES = (
    "%2F",
    "q",
    "amq.direct",
    "guest",
    "amq.default",
    "nothing",
    "x%20y",
    "%ff",
    "rabbit@localhost",
    "0",
    "-1",
)
KEYS = (
    "value", "pattern", "definition", "apply-to", "priority", "type", "durable", "auto_delete", "internal",
    "arguments", "routing_key", "payload", "payload_encoding", "properties", "headers", "ackmode", "count",
    "encoding", "truncate", "password", "password_hash", "hashing_algorithm", "tags", "configure", "write",
    "read", "exchange", "name", "node", "action", "metadata", "description", "default_queue_type", "queues",
    "exchanges", "bindings", "users", "vhosts", "permissions", "parameters", "global_parameters", "policies",
    "topic_permissions", "vhost", "user", "source", "destination", "destination_type", "component", "limits",
    "max-connections", "max-queues", "max-length", "x-max-length", "x-queue-type", "x-expires",
    "x-message-ttl",
    "x-max-priority", "x-overflow", "message-ttl", "ha-mode", "delivery_mode", "timestamp", "expiration",
    "user_id", "cluster_name", "protected_from_deletion", "tracing",
)  # fmt: skip
TEXTS = (
    "", "q", "/", "guest", "direct", "topic", "headers", "quorum", "stream", "string", "base64", "auto",
    "true",
    "ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "all", "classic", "(", ".*", "1", "-1",
    "administrator", "amq.direct", "a" * 300, "\0", "é", "policy", "vhost-limits", "999999999999999999999",
)  # fmt: skip
NUMBERS = (0, 1, -1, 255, 256, 2**31, 2**32, 2**63, 2**64, 2**70, 10**300, 0.5, -1e308, 1e300)

scalars = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=8),
    max_leaves=25,
)
# Well-formed requests with one value of any type get further than those of nothing but noise.
SHAPES: tuple[dict[str, Any], ...] = (
    {"durable": True, "arguments": {}},
    {"type": "direct", "durable": True, "arguments": {}},
    {"routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {}},
    {"routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {"headers": {}}},
    {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 10},
    {"pattern": ".*", "definition": {"max-length": 1}, "priority": 0, "apply-to": "all"},
    {"configure": "", "write": "", "read": ""},
    {"exchange": "amq.topic", "write": "", "read": ""},
    {"password": "p", "tags": ""},
    {"value": 1},
    {"name": "c"},
    {"routing_key": "k", "arguments": {}},
    {"metadata": {"description": "", "tags": []}, "default_queue_type": "classic"},
    {"queues": [{"name": "d", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}]},
    {"exchanges": [{"name": "d", "vhost": "/", "type": "direct", "durable": True, "auto_delete": False}]},
    {"policies": [{"vhost": "/", "name": "d", "pattern": "", "definition": {"max-length": 5}}]},
    {"users": [{"name": "d", "password": "x", "tags": ["management"]}], "vhosts": [{"name": "d"}]},
    {"global_parameters": [{"name": "d", "value": 1}], "parameters": [], "permissions": [], "bindings": []},
)


@st.composite
def changed(draw: st.DrawFn) -> Any:
    """One of the shapes with one of its values replaced."""
    shape = json.loads(json.dumps(draw(st.sampled_from(SHAPES))))
    places: list[tuple[Any, Any]] = []
    rest: list[Any] = [shape]
    while rest:
        each = rest.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        places += [(each, key) for key in keys]
        rest += [each[key] for key in keys if isinstance(each[key], dict | list)]
        if isinstance(each, dict):
            places.append((each, draw(st.sampled_from(KEYS))))
    container, key = draw(st.sampled_from(places))
    container[key] = draw(values)
    return shape


METHODS = [
    (method, each.path.removeprefix("/api/"))
    for each in RESOURCES
    for method in each._handlers
    if method in ("PUT", "POST", "DELETE")
]
LISTS = [
    each.path.removeprefix("/api/") for each in RESOURCES if "GET" in each._handlers and "{" not in each.path
]


def filled(path: str, names: list[str]) -> str:
    left = iter(names)
    return "/".join(
        (next(left) if "bound" not in part else "q") if part.startswith("{") else part
        for part in path.split("/")
    )


@examples(150)
@given(
    request=st.sampled_from(METHODS),
    names=st.lists(st.sampled_from(NAMES), min_size=6, max_size=6),
    body=values | changed(),
    usual=st.booleans(),
)
def test_no_json_of_any_shape_is_answered_with_500(
    broker: Broker, api: Api, request: tuple[str, str], names: list[str], body: Any, usual: bool
):
    method, path = request
    if usual:  # The virtual host comes first in almost all paths.
        names = ["%2F", "q", *names]
    path = filled(path, names)
    reply = api.request(method, path, json.dumps(body).encode())
    assert reply.status < 500, (method, path, body, reply)
    if api.request("GET", "whoami").status != 200:
        broker.reset()  # The request has changed the user of this test.
    assert broker.admin.failures == ()


QUERY = (
    "page", "page_size", "name", "use_regex", "sort", "sort_reverse", "columns", "msg_rates_age",
    "msg_rates_incr", "lengths_age", "lengths_incr", "disable_stats", "enable_queue_totals", "pagination",
    "if-unused", "if-empty", "vhost", "mode",
)  # fmt: skip
QUERY_VALUES = (
    "", "0", "1", "-1", "true", "false", "9" * 400, "1e9", "NaN", "name", "arguments", "name.x", "a.b.c",
    "," * 99,
    "." * 99, "(", "%28a%2B%29%2B%24", "%ff", "%00", "3600", "5", "message_stats.publish_details.rate",
    "%C3%A9",
)  # fmt: skip


@examples(150)
@given(
    path=st.sampled_from([*LISTS, "queues/%2F/q", "vhosts/%2F", "exchanges/%2F/amq.direct"]),
    query=st.dictionaries(st.sampled_from(QUERY), st.sampled_from(QUERY_VALUES), max_size=5),
)
def test_no_query_is_answered_with_500_and_every_answer_is_json(
    broker: Broker, api: Api, path: str, query: dict[str, str]
):
    reply = api.request("GET", f"{path}?{'&'.join(f'{name}={value}' for name, value in query.items())}")
    assert reply.status < 500 or path.startswith("health"), (path, query, reply)
    if reply.body:
        json.loads(reply.body, parse_constant=pytest.fail)


FIELDS = ("queue", "virtual_host", "start", "count", "at", "key", "serial", "place", "name")
OPTIONS = ("queue", "name")
WORDS = ("/", "q", "orders")


@examples(150)
@given(
    name=st.sampled_from(list(QUESTIONS)),
    body=st.dictionaries(
        st.sampled_from(FIELDS),
        values | st.sampled_from(WORDS) | st.dictionaries(st.sampled_from(OPTIONS), values),
        max_size=8,
    ),
)
def test_no_request_of_the_inspector_is_answered_with_500(broker: Broker, name: str, body: dict[str, Any]):
    page = Page.of(broker)
    status, _, answer = page.send("POST", f"ask/{name}", json.dumps(body).encode(), page.headers)
    assert status < 500, (name, body, answer)
    json.loads(answer, parse_constant=pytest.fail)


def test_every_list_is_valid_json_after_hostile_requests(api: Api):
    for path in LISTS:
        json.loads(api.request("GET", path).body, parse_constant=pytest.fail)


def test_time_to_choose_columns_is_limited_by_the_size_of_the_row(broker: Broker, api: Api):
    """However many columns are requested: the parts of a row that are read are counted."""
    from fakeamqp.management import listing

    looked = 0

    class Row(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            nonlocal looked
            looked += 1
            return super().__getitem__(name)

        def items(self) -> Any:
            nonlocal looked
            looked += len(self)
            return super().items()

    columns = listing._columns(",".join(f"c{number}" for number in range(4000)))
    assert listing._chosen(Row(name="q", c7=1), columns) == {"c7": 1}
    assert looked <= 2
    for wanted, chosen in (
        ("a.b,a", {"a": {"b": 1, "c": 2}}),
        ("a,a.b", {"a": {"b": 1, "c": 2}}),
        ("a.b", {"a": {"b": 1}}),
        ("a.b,a.c,x", {"a": {"b": 1, "c": 2}}),
        ("." * 5000, {}),
    ):
        assert listing._chosen({"a": {"b": 1, "c": 2}}, listing._columns(wanted)) == chosen
    assert listing._chosen({"a": {"b": 1}, "b": 2}, listing._columns("a,a.b")) == {"a": {"b": 1}}


def test_slow_name_pattern_is_refused_for_a_list(broker: Broker, api: Api, monkeypatch: pytest.MonkeyPatch):
    from fakeamqp.management import listing

    monkeypatch.setattr(listing, "_MOST_STEPS", 200)
    names = [f"{'a' * 60}{number}" for number in range(20)]
    broker.load_definitions({"queues": [{"name": name, "durable": True} for name in names]})
    reply = api.request("GET", "queues?page=1&use_regex=true&name=%5E(a%2B)%2B%24")
    assert reply.status == 400
    assert reply.json["reason"] == "The search with this pattern takes too long: give a simpler one."


RANGES = {  # Measured on 4.3.6, for each kind of samples.
    ("500", "1"): True,
    ("501", "1"): False,
    ("3600", "1"): False,
    ("100000", "200"): True,
    ("100000", "199"): False,
    ("60", "120"): True,
    ("+60", "5"): True,
    ("9" * 20, "9" * 20): True,
    ("0", "5"): False,
    ("60", "0"): False,
    ("-5", "5"): False,
    ("60", None): True,
    (None, "5"): True,
    ("a", "0"): True,
    ("60.5", "0"): True,
    ("", ""): True,
}
SAMPLED = {
    "invalid_range_parameters": ("exchanges", "exchanges/%2F", "queues", "queues/%2F?page=1", "vhosts"),
    "bad_request": (
        "exchanges/%2F/amq.direct", "queues/%2F/sampled", "vhosts/%2F", "overview", "nodes", "connections",
        "connections/none", "vhosts/%2F/connections", "channels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["lengths", "msg_rates", "data_rates", "node_stats"])
def test_ranges_of_samples_are_checked_as_by_rabbitmq(broker: Broker, api: Api, kind: str):
    api.put("queues/%2F/sampled")
    broker.publish(b"", routing_key="sampled")
    for (age, step), taken in RANGES.items():
        given = {f"{kind}_age": age, f"{kind}_incr": step}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        for error, paths in SAMPLED.items():
            for path in paths:
                reply = api.request("GET", f"{path}{'&' if '?' in path else '?'}{query}")
                if taken:
                    assert reply.status == (404 if path == "connections/none" else 200), (path, query)
                    continue
                reason = f"Invalid range parameters: age {age}, incr {step}"
                assert (reply.status, reply.json) == (400, {"error": error, "reason": reason}), (path, query)
        for path in ("bindings", "users", "consumers"):
            assert api.request("GET", f"{path}?{query}").status == 200


@pytest.mark.parametrize("depth", [101, 250, 600, 20_000])
def test_load_definitions_refuses_values_deeper_than_100_levels(depth: int):
    value: Any = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    with Broker() as broker:
        for definitions in (
            {"queues": [{"name": "deep", "durable": True, "arguments": {"x": value}}]},
            {"global_parameters": [{"name": "deep", "value": value}]},
        ):
            with pytest.raises(FakeAMQPError, match="'deep' are nested deeper than 100 levels"):
                broker.load_definitions(definitions)
        str(broker.admin.topology())
        assert broker.queues == ()
