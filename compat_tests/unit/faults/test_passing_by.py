"""What no rule is about passes without being gathered, and rules see no less for that."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.unit.faults.server import FaultServer, bytes_of, publish_bytes
from fakeamqp.faults.frame_group import FrameGroup
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER

BEGUN = bytes_of(m.BasicPublish(routing_key="q"))
HEADER = bytes_of((2, CONTENT_HEADER.pack(60, 0, 1) + b"\0\0"))
BODY = bytes_of((3, b"x"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the groups that are made."""
    names: list[str] = []
    make = FrameGroup.__init__

    def noted(group: FrameGroup, *arguments: Any) -> None:
        make(group, *arguments)
        names.append(group.name)

    monkeypatch.setattr(FrameGroup, "__init__", noted)
    return names


def bodies(server: FaultServer, queue: str = "q") -> list[bytes]:
    return [queued.message.body for queued in server.vhost.queues[queue].ready]


def test_methods_without_a_rule_make_no_frame_group(server: FaultServer, made: list[str]) -> None:
    client = server.client_with("q")
    server.faults.on("queue.delete").drop()
    server.faults.on("queue.delete-ok", direction="sent").drop()
    client.publish(b"one", routing_key="q")
    content = client.get("q", no_ack=True)
    assert content is not None and content.body == b"one"
    assert made == []


def test_publishes_with_a_routing_key_of_no_rule_are_checked_once(
    server: FaultServer, made: list[str]
) -> None:
    client = server.client_with("q")
    rule = server.faults.on("basic.publish", routing_key="elsewhere", body=b"x").drop()
    client.publish(b"x", routing_key="q")
    client.publish(b"y", routing_key="q")
    assert made == ["basic.publish"]
    assert bodies(server) == [b"x", b"y"]
    assert list(rule.near_misses()) == [
        "basic.publish exchange='' routing_key='q': routing_key is 'q', not 'elsewhere'"
    ]
    client.publish(b"x", routing_key="elsewhere")
    assert rule.hits == 1


def test_publish_is_checked_again_for_a_new_rule_and_another_channel(server: FaultServer) -> None:
    client = server.client_with("q", channels=2)
    server.faults.on("basic.publish", routing_key="q", channel=2).drop()
    client.publish(b"one", routing_key="q")
    client.publish(b"two", routing_key="q", channel=2)
    assert bodies(server) == [b"one"]
    with server.faults.on("basic.publish", routing_key="q", channel=1).drop():
        client.publish(b"three", routing_key="q")
    client.publish(b"four", routing_key="q")
    assert bodies(server) == [b"one", b"four"]


def test_publishes_are_checked_on_each_connection_separately(server: FaultServer) -> None:
    first, second = server.client(), server.client()
    first.declare("q")
    rule = server.faults.on("basic.publish", connection=second.connection.name).drop()
    for client in (first, second, first):
        client.publish(b"m", routing_key="q")
    assert (rule.hits, bodies(server)) == (1, [b"m", b"m"])


def test_rule_about_body_headers_or_queue_waits_for_the_content(server: FaultServer) -> None:
    client = server.client_with("q")
    server.faults.on("basic.publish", body=b"x", exchange="").drop()
    server.faults.on("basic.publish", headers={"a": 1}, exchange="").drop()
    server.faults.on("basic.publish", queue="other").drop()
    for body in (b"x", b"y", b"x"):
        client.publish(body, routing_key="q")
    client.publish(b"z", routing_key="q", headers={"a": 1})
    client.publish(b"z", routing_key="q", headers={"a": 2})
    assert bodies(server) == [b"y", b"z"]


def test_function_of_a_condition_is_called_once_for_each_publish(server: FaultServer) -> None:
    client = server.client_with("q")
    asked: list[str] = []

    def wanted(routing_key: str) -> bool:
        asked.append(routing_key)
        return len(asked) == 2

    server.faults.on("basic.publish", routing_key=wanted).drop()
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="q")
    assert asked == ["q", "q", "q"]
    assert bodies(server) == [b"1", b"3"]


def test_rule_made_within_a_publish_applies_to_the_next_publish(server: FaultServer) -> None:
    client = server.client_with("q")
    server.faults.on("basic.publish", routing_key="elsewhere").drop()
    client.connection.receive(BEGUN)
    rule = server.faults.on("basic.publish", routing_key="q").drop()
    client.connection.receive(HEADER + BODY)
    assert (rule.hits, bodies(server)) == (0, [b"x"])
    client.connection.receive(publish_bytes(b"y", "q"))
    assert (rule.hits, bodies(server)) == (1, [b"x"])


def test_body_with_the_bytes_of_a_method_is_not_taken_for_a_method(server: FaultServer) -> None:
    client = server.client_with("q")
    server.faults.on("queue.delete").drop()
    server.faults.on("queue.delete-ok", direction="sent").drop()
    body = m.QueueDelete(queue="q").encode()
    client.publish(body, routing_key="q")
    content = client.get("q", no_ack=True)
    assert content is not None and content.body == body


def test_rule_limited_to_one_hit_drops_the_first_matching_delivery(server: FaultServer) -> None:
    client = server.client_with("q")
    rule = server.faults.on("basic.deliver", routing_key="q").times(1).drop()
    client.publish(b"one", routing_key="q")
    client.publish(b"two", routing_key="q")
    client.consume("q", no_ack=True)
    assert client.bodies() == [b"two"]
    assert rule.hits == 1
