"""The OpenAPI document of the control interface describes each route, request and answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from compat_tests.fuzz.profile import examples
from compat_tests.management.control_client import ControlClient, Refusal
from compat_tests.tools.matrix import cases
from fakeamqp import Broker
from fakeamqp.management.control.app import routes
from fakeamqp.management.control.document import document, request_schema
from fakeamqp.management.control.routes import LONGEST_WAIT, ROUTES, HttpRoute
from fakeamqp.management.control.schemas import fits, schema_of


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(control=True, clock="virtual") as broker:
        yield broker
        assert broker.admin.failures == ()


@pytest.fixture(scope="module")
def control(broker: Broker) -> ControlClient:
    return ControlClient(broker.admin.control_url)


def test_document_is_served_without_a_token(control: ControlClient):
    status, headers, body = control.send("GET", "/openapi.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body) == document()
    assert document()["openapi"] == "3.1.0"


def test_document_and_routes_have_the_same_paths_and_methods():
    served = {route.path for route in routes()}  # type: ignore[attr-defined]
    assert served - {"/control/{rest:path}"} == set(document()["paths"])
    described = {(method, path) for path, item in document()["paths"].items() for method in item}
    rows = {(each.method.lower(), f"/control/v1{each.path}") for each in ROUTES}
    assert described == rows | {("get", "/control/v1/openapi.json")}
    assert len(rows) == len(ROUTES)


def _schemas(part: Any) -> Iterator[Any]:
    """All that stand in a document behind the keys `schema` and `schemas`."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "schema":
                yield value
            elif name == "schemas":
                yield from value.values()
            else:
                yield from _schemas(value)
    elif isinstance(part, list):
        for each in part:
            yield from _schemas(each)


def test_schemas_of_the_document_are_valid_and_their_references_exist():
    components = document()["components"]["schemas"]
    with cases() as case:
        for schema in _schemas(document()):
            with case(json.dumps(schema)[:80]):
                Draft202012Validator.check_schema(schema)
                for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)):
                    assert name in components


def test_operations_of_the_document_have_ids_of_their_own_and_declare_the_variables_of_their_paths():
    found = []
    for path, item in document()["paths"].items():
        for method, route in item.items():
            found.append(route["operationId"])
            assert route["summary"].endswith("."), (method, path)
            declared = [each["name"] for each in route.get("parameters", ()) if each["in"] == "path"]
            assert declared == re.findall(r"\{(\w+)\}", path)
    assert len(found) == len(set(found))


def test_help_of_arguments_is_that_of_the_docstrings():
    advance = document()["paths"]["/control/v1/clock/advance"]["post"]
    assert advance["summary"] == "Move time forward."
    seconds = advance["requestBody"]["content"]["application/json"]["schema"]["properties"]["seconds"]
    assert seconds["description"].startswith("0 or more")


def test_document_bounds_the_timeouts_of_waits():
    waits = [each for each in ROUTES if "timeout" in each.arguments.fields]
    assert len(waits) > 6
    for each in waits:
        timeout = request_schema(each)["properties"]["timeout"]
        assert (timeout["minimum"], timeout["maximum"]) == (0, LONGEST_WAIT)


@pytest.mark.parametrize(
    "annotation", ["Callable[[Any], object]", "timedelta", "tuple[Callable[[], None], ...]"]
)
def test_annotation_without_a_json_value_has_no_schema(annotation: str):
    assert schema_of(annotation, {}) is None


def path_of(route: HttpRoute, fault: int = 1) -> str:
    return route.path.format_map(
        {"fault": fault, "virtual_host": "%2F", "queue": "orders", "connection": "c1"}
    )


def test_field_of_another_type_is_refused_by_each_route(control: ControlClient, broker: Broker):
    broker.load_definitions({"queues": [{"name": "orders"}]})
    values: list[Any] = [None, True, 1.5, "x", [{}], {"a": [1]}]
    with cases() as case:
        for route in ROUTES:
            if route.method != "POST" or route.path.startswith(("/faults/{", "/connections/")):
                continue
            for name, schema in request_schema(route)["properties"].items():
                for value in values:
                    if fits(value, schema) or route.body is not None:
                        continue
                    with (
                        case(route.path, name, value),
                        pytest.raises(Refusal, match=r"^400 BadRequest: "),
                    ):
                        control.call("POST", path_of(route), {name: value})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=9), children, max_size=3)
    ),
    max_leaves=6,
)
WORDS = st.sampled_from(["basic.publish", "orders", "c1", "/", "strict", "*", "lost", "nack", "/amq.topic"])
MARKS = st.dictionaries(
    st.sampled_from(["regex", "base64", "table", "timestamp", "decimal", "uuid", "float"]),
    values | WORDS,
    max_size=2,
)


@examples(300)
@given(data=st.data(), route=st.sampled_from(ROUTES))
def test_answers_to_random_requests_are_those_of_the_document(
    control: ControlClient, broker: Broker, data: st.DataObject, route: HttpRoute
):
    properties = request_schema(route)["properties"]
    names = st.sampled_from([*properties, "unknown"])
    said = data.draw(st.dictionaries(names, values | WORDS | MARKS | st.integers(0, 3), max_size=4))
    if "timeout" in properties:
        said["timeout"] = 0
    fault = control.call("POST", "/faults", {"on": "basic.publish", "hold": True})["id"]
    path = path_of(route, fault)
    try:
        if route.method == "POST":
            control.call("POST", path, said)
        else:
            query = "&".join(f"{name}={data.draw(st.integers(0, 3) | WORDS)}" for name in said)
            control.call(route.method, f"{path}?{query}")
    except Refusal as refusal:
        assert refusal.status < 500, refusal
    broker.faults.clear()
