"""Properties of files and streams as a message has them."""

from __future__ import annotations

from typing import Any

import pytest

from fakeamqp.protocols.amqp_0_9.codec.properties import (
    BasicProperties,
    FileMessageProperties,
    FileProperties,
    StreamMessageProperties,
    StreamProperties,
)
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.amqp_0_10.properties import ContentProperties
from fakeamqp.protocols.base.codec import FieldError

KINDS: dict[Any, Any] = {FileMessageProperties: FileProperties, StreamMessageProperties: StreamProperties}


@pytest.mark.parametrize("kind", KINDS)
def test_file_and_stream_message_properties_have_the_bytes_of_the_declared_ones(kind: Any) -> None:
    values = {name: 5 if number in ("octet", "timestamp") else "x" for name, number in kind.LAYOUT}
    values["headers"] = {"n": 1}
    octets = KINDS[kind](**values).encode()
    properties = kind.decode(octets, 0, RABBITMQ)
    assert isinstance(properties, kind)
    assert {name: getattr(properties, name) for name in values} == values
    assert properties.encode() == octets


@pytest.mark.parametrize("kind", KINDS)
def test_properties_unknown_to_a_class_are_absent_and_cannot_be_set(kind: Any) -> None:
    properties = kind(content_type="a/b")
    absent = set(BasicProperties.__slots__) - set(dict(kind.LAYOUT)) - {"_raw_headers", "cluster_id"}
    assert {name: getattr(properties, name) for name in absent - {"delivery_mode"}} == dict.fromkeys(
        absent - {"delivery_mode"}
    )
    changed = properties.replace(expiration=None, type=None, content_type=None)
    assert isinstance(changed, kind)
    assert changed.content_type is None
    with pytest.raises(FieldError):
        properties.replace(expiration="5")
    with pytest.raises(FieldError):
        properties.replace(nonsense=None)


def test_file_messages_are_persistent_and_stream_messages_have_no_delivery_mode() -> None:
    assert FileMessageProperties().delivery_mode == 2
    assert StreamMessageProperties().delivery_mode is None


@pytest.mark.parametrize("kind", KINDS)
def test_headers_can_be_added(kind: Any) -> None:
    properties = kind(content_type="a/b").with_headers({"x": 1})
    assert isinstance(properties, kind)
    assert (properties.headers, properties.content_type) == ({"x": 1}, "a/b")


def test_file_and_stream_properties_take_the_basic_properties_they_know() -> None:
    basic = BasicProperties(content_type="a/b", priority=3, message_id="id", expiration="5", headers={"n": 1})
    file = FileMessageProperties.of(basic)
    assert file == FileMessageProperties(content_type="a/b", priority=3, message_id="id", headers={"n": 1})
    stream = StreamMessageProperties.of(basic)
    assert stream == StreamMessageProperties(content_type="a/b", priority=3, headers={"n": 1})


def test_file_properties_survive_conversion_to_0_10_and_back() -> None:
    properties = FileMessageProperties(
        content_type="a/b",
        filename="f",
        cluster_id="c",
        reply_to="r",
        message_id="id",
        priority=3,
        timestamp=5,
    )
    there = ContentProperties.of("0-10 file", properties)
    assert (there.content.filename, there.content.cluster_id) == ("f", "c")
    read = ContentProperties.decode("0-10 file", there.encode())
    assert FileMessageProperties.of(read) == properties
