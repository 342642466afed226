"""Fields of messages that a recording leaves out, in frames and in the messages of events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.codec.strategies import values as field_values
from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, FRAME_CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.trace import FrameEvent, ModelEvent
from fakeamqp.trace.json_form import PROPERTIES
from fakeamqp.trace.recording import without
from fakeamqp.trace.truncation import Truncated, full_size

_CHOSEN = st.frozensets(st.sampled_from(["headers.A", "headers.b", "message_id", "timestamp", "priority"]))


def header(payload: bytes) -> FrameEvent:
    return FrameEvent(0.0, "a -> b", "c1", "received", FRAME_CONTENT_HEADER, 1, payload)


def values(properties: Any) -> dict[str, Any]:
    return {name: getattr(properties, name) for name in PROPERTIES}


@given(
    headers=st.dictionaries(st.sampled_from(["a", "B", "c"]), field_values()),
    message_id=st.none() | st.text(max_size=20),
    timestamp=st.none() | st.integers(0, 2**40),
    priority=st.none() | st.integers(0, 255),
    chosen=_CHOSEN | st.just(frozenset(["headers"])),
)
def test_frame_and_message_without_fields_have_the_same_properties_in_the_old_size(
    headers: dict[str, Any], message_id: Any, timestamp: Any, priority: Any, chosen: frozenset[str]
) -> None:
    properties = BasicProperties(
        headers=headers, message_id=message_id, timestamp=timestamp, priority=priority, app_id="shop"
    )
    octets = properties.encode()
    payload = CONTENT_HEADER.pack(60, 0, 3) + octets
    event = without(header(payload), chosen)
    assert isinstance(event, FrameEvent)
    assert len(event.payload) == len(payload)
    # A table cannot tell 0.0 from 0, so both are read from bytes.
    message = SimpleNamespace(
        body=b"one",
        routing_key="k",
        exchange="e",
        properties=BasicProperties.decode(octets, 0, RABBITMQ),
    )
    told = without(ModelEvent(0.0, None, "", "published", {"message": message}), chosen)
    assert isinstance(told, ModelEvent)
    hidden: Any = told.facts["message"]
    assert values(hidden.properties) == values(event.properties)
    assert event.properties.app_id == "shop" and hidden.body == b"one"
    if not chosen:
        assert event.payload == payload


def test_texts_become_asterisks_and_numbers_zeros_also_in_tables_and_arrays() -> None:
    headers = {
        "Token": {"text": "abc", "bytes": b"ab", "list": [1, True, 2.5, None, {"deep": "x"}]},
        "kept": 1,
    }
    payload = CONTENT_HEADER.pack(60, 0, 0) + BasicProperties(headers=headers).encode()
    event = without(header(payload), frozenset(["headers.token"]))
    assert isinstance(event, FrameEvent)
    assert event.properties.headers == {
        "Token": {"text": "***", "bytes": b"**", "list": [0, False, 0.0, None, {"deep": "*"}]},
        "kept": 1,
    }


def test_table_that_is_nested_thousands_of_times_is_hidden() -> None:
    table = b"\x01xS\0\0\0\x03abc"
    for _ in range(2000):
        table = b"\x01xF" + len(table).to_bytes(4, "big") + table
    octets = b"\x20\0" + len(table).to_bytes(4, "big") + table
    event = without(header(CONTENT_HEADER.pack(60, 0, 0) + octets), frozenset(["headers"]))
    assert isinstance(event, FrameEvent)
    assert event.payload.endswith(b"S\0\0\0\x03***")


def test_of_properties_that_cannot_be_decoded_nothing_is_left() -> None:
    payload = CONTENT_HEADER.pack(60, 0, 3) + b"\x20\0\0\0\0\xff secret"
    event = without(header(payload), frozenset(["message_id"]))
    assert isinstance(event, FrameEvent)
    assert event.payload == payload[: CONTENT_HEADER.size] + b"*" * 13


def test_body_of_a_truncated_message_keeps_its_full_size() -> None:
    message = SimpleNamespace(
        body=Truncated.of(b"abc", 5000), routing_key="", exchange="", properties=BasicProperties()
    )
    told = without(ModelEvent(0.0, None, "", "published", {"message": message}), frozenset(["body"]))
    assert isinstance(told, ModelEvent)
    body: Any = told.facts["message"].body  # type: ignore[attr-defined]
    assert (bytes(body), full_size(body)) == (b"***", 5000)


@pytest.mark.parametrize(
    ("fields", "hidden"), [({"body"}, False), ({"message_id"}, True), ({"body", "headers"}, True)]
)
def test_dialect_without_places_of_properties_hides_all_of_them(fields: set[str], hidden: bool) -> None:
    dialect = dialect_named("0-10")
    header_segment = 0x0602
    assert dialect.part(header_segment, b"") == "header"
    assert (dialect.hidden(header_segment, b"secret", fields) == b"******") is hidden
