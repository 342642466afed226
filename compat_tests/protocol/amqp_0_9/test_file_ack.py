"""file.ack and file.reject."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9.files import bodies, consume, publish_file, take
from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from fakeamqp.inspect.messages import queued_view, unacked_view
from fakeamqp.inspect.topology import connection_views
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


def left(client: Client, queue: str = "q") -> int:
    """How many files there still are when the channel has given back what it holds."""
    client.close_channel()
    client.open_channel()
    return client.count(queue)


@pytest.fixture
def three(client: Client) -> list[int]:
    """The delivery tags of three files that the client was sent."""
    client.declare("q")
    for body in (b"1", b"2", b"3"):
        publish_file(client, body)
    consume(client)
    return [take(client).tag for _ in range(3)]


@rule("0-9/file.ack/semantics#single", "0-9/file/04#explicit")
def test_file_ack_without_multiple_removes_exactly_one_file(client: Client, three: list[int]) -> None:
    client.send(m.FileAck(delivery_tag=three[1]))
    assert left(client) == 2


@rule("0-9/file.ack/semantics#multiple")
def test_a_multiple_ack_covers_all_up_to_its_tag(client: Client, three: list[int]) -> None:
    client.send(m.FileAck(delivery_tag=three[1], multiple=True))
    assert left(client) == 1


@rule("0-9/file.ack/semantics#zero")
def test_tag_0_covers_all(client: Client, three: list[int]) -> None:
    client.send(m.FileAck(delivery_tag=0, multiple=True))
    client.send(m.FileAck(delivery_tag=0, multiple=True))
    client.expect_nothing()
    assert left(client) == 0


@rule("0-9/file.ack/multiple-01")
@pytest.mark.parametrize("multiple", [False, True])
def test_file_ack_of_an_unknown_delivery_tag_closes_the_channel_with_406(
    client: Client, three: list[int], multiple: bool
) -> None:
    client.send(m.FileAck(delivery_tag=99, multiple=multiple))
    client.expect_channel_close(406)
    client.open_channel()
    assert client.count("q") == 3


@rule("0-9/file.ack/multiple-01")
@pytest.mark.parametrize("method", [m.FileAck(delivery_tag=0), m.FileReject(delivery_tag=0)])
def test_file_ack_or_reject_of_tag_0_alone_is_refused_with_406(
    client: Client, three: list[int], method: m.FileAck
) -> None:
    client.send(method)
    client.expect_channel_close(406)


@rule("0-9/file.deliver/staged-first", "0-9/file.ack/multiple-01")
def test_multiple_ack_does_not_cover_a_file_in_staging(client: Client) -> None:
    client.declare("q")
    for body in (b"1", b"2"):
        publish_file(client, body)
    consume(client)
    tag = take(client).tag
    client.expect(m.FileOpen)
    client.send(m.FileAck(delivery_tag=0, multiple=True))
    client.send(m.FileOpenOk())
    client.expect_content(m.FileStage)
    second = client.expect(m.FileDeliver)
    assert second.delivery_tag != tag
    client.send(m.FileAck(delivery_tag=second.delivery_tag))
    client.expect_nothing()


def test_basic_ack_does_not_acknowledge_deliveries_of_class_file(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"file")
    client.fill("q", b"basic")
    consume(client, tag="f")
    file = take(client)
    client.consume("q", "b")
    basic = client.delivery().method
    assert basic.delivery_tag != file.tag
    client.ack(0, multiple=True)
    assert left(client) == 1
    consume(client)
    file = take(client)
    client.ack(file.tag)
    client.expect_channel_close(406)


def test_views_of_queued_and_unacked_messages_show_content_class_file(
    client: Client, three: list[int]
) -> None:
    client.fill("q", b"basic")
    virtual_host = client.server.vhost
    (waiting,) = [queued_view(each, 0) for each in virtual_host.queues["q"].ready]
    assert waiting.content_class == "basic"
    assert "content_class" not in repr(waiting)
    held = [unacked_view(each, 0, 0) for each in virtual_host.queues["q"].unacked]
    assert [each.content_class for each in held] == ["file"] * 3
    assert "content_class='file'" in repr(held[0])


def test_channel_view_counts_unacked_files_and_messages(client: Client, three: list[int]) -> None:
    client.fill("q", b"basic")
    client.consume("q", "b")

    def held() -> int:
        (connection,) = connection_views(client.server.state)
        return connection.channels[0].unacked

    assert held() == 4
    client.send(m.FileAck(delivery_tag=three[0]))
    assert held() == 3


@rule("0-9/file.reject/01", "0-9/file.reject/02#dead-lettered")
def test_rejected_file_is_dead_lettered_with_its_properties(client: Client) -> None:
    client.declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    publish_file(client, b"body", filename="f")
    consume(client)
    client.send(m.FileReject(delivery_tag=take(client).tag))
    assert (client.count("q"), client.count("dead")) == (0, 1)
    consume(client, "dead", "d")
    file = take(client)
    assert (file.body, file.properties.filename) == (b"body", "f")
    assert file.properties.headers is not None
    assert file.properties.headers["x-first-death-queue"] == "q"


@rule("0-9/file.reject/02#discarded")
def test_rejected_file_is_discarded_without_a_dead_letter_exchange(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"body")
    consume(client)
    client.send(m.FileReject(delivery_tag=take(client).tag))
    client.close_channel()
    client.open_channel()
    assert client.count("q") == 0


@rule("0-9/file.reject/requeue-01")
def test_file_rejected_with_requeue_is_redelivered_to_another_channel_only(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    publish_file(client, b"body")
    consume(client)
    client.send(m.FileReject(delivery_tag=take(client).tag, requeue=True))
    client.expect_nothing()
    assert client.count("q") == 1
    consume(client, tag="other", channel=2)
    file = take(client, channel=2)
    assert (file.body, file.deliver.redelivered) == (b"body", True)


@rule("0-9/file.deliver/01")
def test_spec_file_is_dropped_after_the_largest_number_of_deliveries(spec: Server) -> None:
    most = spec.state.personality.most_deliveries
    assert most
    client = spec.client()
    client.declare("q")
    publish_file(client, b"body")
    for _ in range(most):
        consume(client)
        take(client)
        client.close_channel()
        client.open_channel()
    assert client.count("q") == 0


def test_unacked_files_are_requeued_in_order_when_their_channel_closes(server: Server) -> None:
    client = server.client()
    client.declare("q")
    for body in (b"1", b"2"):
        publish_file(client, body)
    consume(client)
    take(client)
    client.expect(m.FileOpen)
    other = server.client()
    consume(other)
    client.close_channel()
    first, second = take(other), take(other)
    assert [(each.body, each.deliver.redelivered) for each in (first, second)] == [
        (b"1", True),
        (b"2", False),
    ]


def test_requeued_files_are_not_redelivered_to_the_closing_channel(client: Client) -> None:
    client.declare("q")
    for body in (b"1", b"2"):
        publish_file(client, body)
    consume(client, tag="1")
    take(client)
    client.expect(m.FileOpen)
    consume(client, tag="2")
    client.close_channel()
    client.open_channel()
    client.expect_nothing()
    assert client.count("q") == 2
    consume(client)
    assert bodies(client) == [b"1", b"2"]


def test_tap_reports_each_file_requeued_by_channel_close(
    server: Server, client: Client, three: list[int]
) -> None:
    told: list[tuple[str, int]] = []

    class Onlooker(QuietTap):
        def happened(self, event: str, **facts: Any) -> None:
            if event == "requeued":
                told.append((event, facts["delivery_tag"]))

    server.state.tap = Onlooker()
    client.close_channel()
    assert told == [("requeued", tag) for tag in three]
