"""The sections of messages of AMQP 1.0: views show them, and a test publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from compat_tests.scripted.amqp_1_0 import Server, message
from fakeamqp import Broker, BrokerError
from fakeamqp.errors import UnknownProperty
from fakeamqp.inspect.messages import content_of
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt
from fakeamqp.protocols.base.codec import FieldError

EVERY = {
    "header": {"durable": True, "priority": 4, "ttl": 5000},
    "annotations": {"x-shard": 1},
    "properties": {"message_id": 7, "subject": "s", "content_type": "text/plain"},
    "application_properties": {"n": UInt(3), "id": UUID(int=1)},
    "value": {"a": [1, None]},
    "footer": {"checked": True},
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    definitions = {"queues": [{"name": "q", "vhost": "/", "durable": True}]}
    with Broker(clock="virtual", definitions=definitions) as broker:
        yield broker


def test_view_has_the_sections_that_a_client_has_sent() -> None:
    server = Server("rabbitmq-4.3")
    queue = server.vhost.queues.create("q")
    sections = {
        "header": c.Header(durable=True),
        "annotations": {Symbol("x-a"): 1},
        "properties": c.Properties(subject="s", message_id=UUID(int=1)),
        "application": {"n": UInt(3)},
        "footer": {"f": 1},
    }
    server.session().sender().publish(message(b"body", **sections))
    assert content_of(next(iter(queue.ready)).message)["sections"] == {
        "header": {"durable": True},
        "annotations": {"x-a": 1},
        "properties": {"subject": "s", "message_id": UUID(int=1)},
        "application_properties": {"n": 3},
        "data": [b"body"],
        "footer": {"f": 1},
    }


def test_sections_that_cannot_be_read_are_shown_as_bytes() -> None:
    server = Server("rabbitmq-4.3")
    queue = server.vhost.queues.create("q")
    unreadable = b"\0\x53\x77\xc0\x02\x01\x3f"  # A list of one item, of an unknown type.
    server.session().sender().publish(unreadable)
    assert content_of(next(iter(queue.ready)).message)["sections"] == {"unreadable": unreadable}


def test_published_sections_are_those_of_the_view(broker: Broker) -> None:
    published = broker.publish(routing_key="q", sections=EVERY)
    [queued] = broker.queue("q").messages
    assert published.sections == queued.sections == EVERY
    assert (queued.expiration, queued.priority, queued.message_id) == ("5000", 4, "7")
    again = broker.publish(routing_key="q", sections=queued.sections)
    assert again.sections == EVERY
    broker.clock.advance(5)
    assert broker.queue("q").ready == 0


def test_body_of_a_publish_with_sections_is_data(broker: Broker) -> None:
    broker.publish("text", routing_key="q", sections={"properties": {"to": "x"}})
    [queued] = broker.queue("q").messages
    assert queued.body == b"text"
    assert queued.sections["data"] == [b"text"] and queued.sections["properties"] == {"to": "x"}


def test_several_sections_of_data_and_of_a_sequence_are_kept(broker: Broker) -> None:
    for body in ({"data": [b"a", b"b"]}, {"sequence": [[1, 2], [3]]}):
        view = broker.publish(routing_key="q", sections=body)
        assert view.sections == {"header": {"durable": False}, **body}
    assert broker.queue("q").messages[0].body == b"ab"


def test_message_of_another_protocol_has_no_sections(broker: Broker) -> None:
    assert broker.publish(b"x", routing_key="q", headers={"a": 1}).sections == {}


@pytest.mark.parametrize(
    ("sections", "error", "text"),
    [
        ({"header": {"durabel": True}}, UnknownProperty, "did you mean 'durable'"),
        ({"propertys": {}}, UnknownProperty, "did you mean 'properties'"),
        ({"properties": {"subjekt": "x"}}, UnknownProperty, "did you mean 'subject'"),
        ({"annotations": {"opt": 1}}, FieldError, "begins with 'x-', unlike 'opt'"),
        ({"application_properties": [1]}, FieldError, "'application_properties' is a dictionary, not"),
        ({"header": {"ttl": -1}}, FieldError, "-1"),
        ({"value": 1}, FieldError, "a body, or one of the sections data, sequence, value"),
    ],
)
def test_wrong_section_is_an_error(
    broker: Broker, sections: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        broker.publish(b"x", routing_key="q", sections=sections)
    assert broker.queue("q").ready == 0


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        ({"data": b"x"}, "'data' is a list of bytes, not b'x'"),
        ({"data": ["x"]}, r"'data' is a list of bytes, not \['x'\]"),
        ({"sequence": [1]}, r"'sequence' is a list of lists, not \[1\]"),
        ({"header": {"durable": True}}, "needs a body"),
        ({"value": 1, "data": [b"x"]}, "and only one"),
    ],
)
def test_wrong_body_of_sections_is_an_error(broker: Broker, sections: dict[str, Any], text: str) -> None:
    with pytest.raises(FieldError, match=text):
        broker.publish(routing_key="q", sections=sections)


def test_sections_exclude_headers_and_properties(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="the place of json, headers and properties"):
        broker.publish(b"x", routing_key="q", sections={}, headers={"a": 1})
