"""Expecting that messages are returned, dead-lettered, dropped; and that nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.unit.inspect.conftest import Outside
from fakeamqp.blocking import blocking
from fakeamqp.inspect import (
    BadExpectation,
    Inspection,
    NotAsExpected,
    NotDeadLettered,
    NotDropped,
    NotPublished,
    NotReturned,
)
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


class Inspected(Inspection):
    """A broker that runs its steps while a test waits, or waits for it to be idle."""

    def __init__(self, server: Server, *steps: Callable[[], object]) -> None:
        self._reader = self.outside = Outside(server, *steps)

    @blocking
    def wait_until_idle(self, timeout: float = 5.0) -> None:
        while self.outside.steps:
            self.outside.steps.pop(0)()

    @wait_until_idle.coroutine
    async def _wait_until_idle_coroutine(self, timeout: float = 5.0) -> None:
        self.wait_until_idle(timeout)


def capable(server: Server) -> Client:
    """A client that understands basic.cancel."""
    return server.client(client_properties={"capabilities": {"consumer_cancel_notify": True}})


def lose_one(client: Client, **arguments: Any) -> None:
    """A message is rejected in queue "q"."""
    client.declare("q", arguments={key.replace("_", "-"): value for key, value in arguments.items()})
    client.publish(b"1", routing_key="q", message_id="m1")
    got = client.get("q")
    assert got is not None
    client.reject(got.method.delivery_tag)


def test_expect_returned_finds_a_returned_message(server: Server, client: Client):
    broker = Inspected(server, lambda: client.publish(b"1", routing_key="lost", mandatory=True))
    [returned] = broker.expect_returned(routing_key="lost", reply_code=312, reply_text="NO_ROUTE", count=1)
    assert returned.body == b"1"
    with pytest.raises(NotReturned, match=r"reply_code +expected 313, was 312"):
        broker.expect_returned(reply_code=313)


def test_expect_dead_lettered_finds_a_dead_lettered_message(server: Server, client: Client):
    client.declare("grave")
    arguments = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "grave"}
    broker = Inspected(server, lambda: lose_one(client, **arguments))
    [dead] = broker.expect_dead_lettered(
        queue="q",
        reason="rejected",
        dead_letter_exchange="",
        dead_letter_routing_key="grave",
        message_id="m1",
    )
    assert dead.queues == ("grave",)
    with pytest.raises(NotDeadLettered) as failure:
        broker.expect_dead_lettered(queue="q", reason="expired")
    assert "expected at least 1 dead-lettered message with" in str(failure.value)
    assert "but the only one dead-lettered does not fit" in str(failure.value)
    assert "reason  expected 'expired', was 'rejected'" in str(failure.value)


def test_expect_dropped_finds_a_dropped_message(server: Server, client: Client):
    broker = Inspected(server, lambda: lose_one(client))
    [dropped] = broker.expect_dropped(
        queue="q", reason="rejected", detail="the queue has no dead-letter exchange"
    )
    assert dropped.body == b"1"
    with pytest.raises(NotDropped, match="but 1 of 1 dropped fits:"):
        broker.expect_dropped(count=2)


def test_expect_dead_lettered_error_mentions_a_drop_of_the_message(server: Server, client: Client):
    lose_one(client, x_dead_letter_exchange="missing")
    with pytest.raises(NotDeadLettered) as failure:
        Inspected(server).expect_dead_lettered(queue="q", message_id="m1")
    assert "but nothing was dead-lettered" in str(failure.value)
    assert "But once such a message was dropped:\n  <dropped b'1'" in str(failure.value)
    assert "because dead-letter exchange 'missing' does not exist>" in str(failure.value)
    with pytest.raises(NotDeadLettered) as failure:
        Inspected(server).expect_dead_lettered(message_id="another")
    assert "such a message" not in str(failure.value)


def test_all_expectation_errors_are_assertion_errors():
    for each in (NotPublished, NotReturned, NotDeadLettered, NotDropped):
        assert issubclass(each, NotAsExpected)
        assert issubclass(each, AssertionError)


@pytest.mark.parametrize(
    ("expect", "wanted", "text"),
    [
        ("expect_published", {"reason": "x"}, "expect_published knows no keyword 'reason'"),
        ("expect_returned", {"queue": "q"}, "expect_returned knows no keyword 'queue'"),
        (
            "expect_dead_lettered",
            {"reson": "x"},
            "expect_dead_lettered knows no keyword 'reson'; did you mean 'reason'",
        ),
        (
            "expect_dropped",
            {"detial": "x"},
            "expect_dropped knows no keyword 'detial'; did you mean 'detail'",
        ),
        ("expect_nothing_published", {"count": 1}, "has no count"),
    ],
)
def test_a_misspelled_keyword_is_an_error(server: Server, expect: str, wanted: dict[str, Any], text: str):
    with pytest.raises(BadExpectation, match=text):
        getattr(Inspected(server), expect)(**wanted)


def test_expectation_of_no_publish_is_decided_once_the_broker_is_idle(server: Server, client: Client):
    Inspected(server).expect_nothing_published()
    broker = Inspected(server, lambda: client.publish(b"1", routing_key="order.paid"))
    with pytest.raises(NotPublished) as failure:
        broker.expect_nothing_published(routing_key="order.*")
    assert "expected exactly 0 published messages with" in str(failure.value)
    assert "but 1 of 1 published fits:\n    <published b'1'" in str(failure.value)
    Inspected(server).expect_nothing_published(routing_key="invoice.*")


def test_async_expectations_have_the_results_of_the_blocking_calls(server: Server, client: Client):
    async def body() -> None:
        client.publish(b"1", routing_key="lost", mandatory=True)
        client.expect_content(m.BasicReturn)
        broker = Inspected(server)
        assert len(await broker.expect_published.aio(routing_key="lost")) == 1
        assert len(await broker.expect_returned.aio(reply_code=312)) == 1
        lose_one(client)
        assert len(await broker.expect_dropped.aio(queue="q")) == 1
        with pytest.raises(NotDeadLettered):
            await broker.expect_dead_lettered.aio(queue="q", timeout=0)
        await broker.expect_nothing_published.aio(routing_key="another")
        with pytest.raises(NotPublished):
            await broker.expect_nothing_published.aio()
        await broker.wait_for.aio(lambda: broker.published)
        await broker.wait_until_idle.aio()

    asyncio.run(body())


def test_inspection_lists_entities_channels_and_outcomes(server: Server, client: Client):
    server.state.add_virtual_host("other")
    client.declare("q")
    client.consume("q", "tag")
    broker = Inspected(server)
    assert [each.name for each in broker.exchanges][:3] == ["", "amq.direct", "amq.fanout"]
    assert [each.name for each in broker.queues] == ["q"]
    assert [each.tag for each in broker.consumers] == ["tag"]
    assert (broker.queues.of("other"), broker.consumers.of("other"), broker.policies.of("other")) == (
        (),
        (),
        (),
    )
    [channel] = broker.channels
    assert (channel.number, [each.tag for each in channel.consumers]) == (1, ["tag"])
    assert (len(broker.published), len(broker.returned), len(broker.dead_lettered), len(broker.dropped)) == (
        0,
        0,
        0,
        0,
    )


# --- what a test does to a queue ------------------------------------------------------------------------


def test_deleting_a_queue_cancels_its_consumers_and_drops_ready_messages(server: Server):
    client = capable(server)
    client.declare("q", exclusive=True)
    client.fill("q", b"1", b"2")
    client.qos(1)
    client.consume("q", "tag")
    broker = Inspected(server)
    client.delivery()
    assert broker.queue("q").delete() == 1
    assert client.expect(m.BasicCancel).consumer_tag == "tag"
    assert not broker.queue("q").exists
    assert [(each.body, each.reason) for each in broker.dropped] == [(b"2", "deleted")]


def test_queue_purge_removes_ready_but_not_unacked_messages(server: Server, client: Client):
    client.declare("q")
    client.fill("q", b"1", b"2", b"3")
    assert client.get("q") is not None
    queue = Inspected(server).queue("q")
    assert queue.purge() == 2
    assert (queue.ready, queue.unacked) == (0, 1)


def test_cancel_consumers_keeps_ready_and_unacked_messages(server: Server):
    client = capable(server)
    client.declare("q", arguments={"x-single-active-consumer": True})
    client.qos(1)
    client.consume("q", "first")
    client.consume("q", "second")
    client.publish(b"1", routing_key="q")
    client.publish(b"2", routing_key="q")
    client.delivery()
    queue = Inspected(server).queue("q")
    assert queue.cancel_consumers() == 2
    assert {client.expect(m.BasicCancel).consumer_tag for _ in range(2)} == {"first", "second"}
    assert (queue.consumers, queue.unacked, queue.ready) == ((), 1, 1)
    client.expect_nothing()
    assert queue.cancel_consumers() == 0
    client.ack(1)
    assert [each.body for each in queue.messages] == [b"2"]


def test_message_fetched_with_get_shows_its_channel_and_holding_time(server: Server):
    client = server.client(channels=2)
    client.declare("q")
    client.fill("q", b"1")
    assert client.get("q", channel=2) is not None
    server.advance(90)
    [message] = Inspected(server).queue("q").messages
    assert (message.connection, message.channel, message.consumer_tag) == (client.connection.name, 2, None)
    assert message.held_for == 90
    assert message.held_since is not None
    assert message.held_since.timestamp() == 1_700_000_000
