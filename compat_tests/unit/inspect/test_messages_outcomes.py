"""Messages that no client dealt with are found again: returned, dead-lettered, or dropped with a reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.inspect import NoHistory
from fakeamqp.inspect.messages import DeadLettered, Dropped, Returned, published_views, views
from fakeamqp.inspect.topology import exchange_view, queue_view
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

START = datetime.fromtimestamp(1_700_000_000, timezone.utc)
TO_X = {"x-dead-letter-exchange": "x"}
TO_GRAVE = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "grave"}
Scenario = Ending = Callable[[Server, Client], None]
QUORUM = {"x-queue-type": "quorum"}
AT_LEAST_ONCE = {**QUORUM, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}


def drops(server: Server) -> list[tuple[bytes, str | None, str]]:
    return [(each.body, each.queue, each.reason) for each in views(Dropped, server.state)]


def dead_letters(server: Server) -> list[tuple[bytes, str, str, tuple[str, ...]]]:
    return [(each.body, each.queue, each.reason, each.queues) for each in views(DeadLettered, server.state)]


def spelled(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "-"): value for key, value in arguments.items()}


def queue(client: Client, name: str = "q", **arguments: Any) -> None:
    client.declare(name, durable=True, arguments=spelled(arguments))


def exchange(client: Client, name: str, type_name: str, arguments: dict[str, Any] | None = None) -> None:
    method = m.ExchangeDeclare(exchange=name, type=type_name, durable=True, arguments=arguments or {})
    client.call(method, m.ExchangeDeclareOk)


def reject(client: Client, name: str = "q", *, requeue: bool = False) -> None:
    got = client.get(name)
    assert got is not None
    client.send(m.BasicReject(delivery_tag=got.method.delivery_tag, requeue=requeue))


# --- dropped ------------------------------------------------------------------------------------------


def _overflowed(server: Server, client: Client) -> None:
    queue(client, x_max_length=1)
    client.publish(b"1", routing_key="q")
    client.publish(b"2", routing_key="q")


def _refused(server: Server, client: Client) -> None:
    queue(client, x_max_length=1, x_overflow="reject-publish")
    client.publish(b"0", routing_key="q")
    client.publish(b"1", routing_key="q")


def _refused_by_quorum(server: Server, client: Client) -> None:
    queue(client, x_max_length=1, x_overflow="reject-publish", x_queue_type="quorum")
    for body in (b"-1", b"0", b"1"):
        client.publish(body, routing_key="q")


def _delivered_too_often(server: Server, client: Client) -> None:
    queue(client, x_queue_type="quorum", x_delivery_limit=1)
    client.publish(b"1", routing_key="q")
    client.send(m.BasicConsume(queue="q", consumer_tag="c"))
    for tag in (1, 2):
        client.send(m.BasicReject(delivery_tag=tag, requeue=True))


def _unroutable(server: Server, client: Client) -> None:
    client.publish(b"1", routing_key="nowhere")


def _auto_deleted(server: Server, client: Client) -> None:
    client.declare("q", auto_delete=True)
    client.send(m.BasicQos(prefetch_count=1))
    client.send(m.BasicConsume(queue="q", consumer_tag="c"))
    client.publish(b"held", routing_key="q")
    client.publish(b"1", routing_key="q")
    client.send(m.BasicAck(delivery_tag=1))
    client.send(m.BasicReject(delivery_tag=2, requeue=True))
    client.send(m.BasicQos(prefetch_count=1))
    client.send(m.BasicCancel(consumer_tag="c"))
    client.send(m.BasicReject(delivery_tag=3, requeue=True))


def _exclusive(server: Server, client: Client) -> None:
    other = server.client()
    other.declare("q", exclusive=True)
    other.publish(b"1", routing_key="q")
    other.drop()


def _held_while_deleted(server: Server, client: Client) -> None:
    queue(client)
    client.publish(b"1", routing_key="q")
    got = client.get("q")
    assert got is not None
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    assert drops(server) == []  # The client may still ack it.
    client.send(m.BasicReject(delivery_tag=got.method.delivery_tag, requeue=True))


def _held_while_deleted_and_rejected(server: Server, client: Client) -> None:
    queue(client, x_queue_type="quorum", **{"x-dead-letter-exchange": "amq.fanout"})
    client.publish(b"1", routing_key="q")
    got = client.get("q")
    assert got is not None
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    client.send(m.BasicReject(delivery_tag=got.method.delivery_tag))


def _held_when_lost(server: Server, client: Client) -> None:
    queue(client, x_queue_type="quorum")
    client.publish(b"1", routing_key="q")
    assert client.get("q") is not None
    server.client().call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    client.drop()


def _crashed_while_delayed(server: Server, client: Client) -> None:
    arguments = {"x-delayed-type": "fanout"}
    exchange(client, "later", "x-delayed-message", arguments=arguments)
    client.publish(b"1", exchange="later", headers={"x-delay": 5000})
    server.restart(crash=True)


def _nowhere_after_a_delay(server: Server, client: Client) -> None:
    arguments = {"x-delayed-type": "fanout"}
    exchange(client, "later", "x-delayed-message", arguments=arguments)
    client.publish(b"1", exchange="later", headers={"x-delay": 5000})
    assert drops(server) == []
    server.advance(6)


def _refused_after_a_delay(server: Server, client: Client) -> None:
    queue(client, x_max_length=0, x_overflow="reject-publish")
    arguments = {"x-delayed-type": "fanout"}
    exchange(client, "later", "x-delayed-message", arguments=arguments)
    client.bind("q", "later")
    client.publish(b"1", exchange="later", headers={"x-delay": 5000})
    server.advance(6)


def _retired(server: Server, client: Client) -> None:
    queue(client, x_queue_type="stream", x_max_length_bytes=1, x_stream_max_segment_size_bytes=1)
    client.publish(b"1", routing_key="q")
    client.publish(b"2", routing_key="q")


def _dead_letter_refused(server: Server, client: Client) -> None:
    queue(client, "grave", x_max_length=0, x_overflow="reject-publish")
    queue(client, **TO_GRAVE)
    client.publish(b"1", routing_key="q")
    reject(client)


def _dead_letter_no_stream_can_store(server: Server, client: Client) -> None:
    queue(client, "grave", x_queue_type="stream")
    queue(client, **TO_GRAVE)
    client.publish(b"1", routing_key="q", headers={"x-stream-filter-value": 1})
    reject(client)


def _held_dead_letter_deleted(server: Server, client: Client) -> None:
    queue(client, **AT_LEAST_ONCE, **TO_GRAVE)
    client.publish(b"1", routing_key="q")
    reject(client)
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)


def _gone_before_commit(server: Server, client: Client) -> None:
    queue(client)
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(b"1", routing_key="q", mandatory=True)
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    client.send(m.TxCommit())


def published(ending: Ending, *, durable: bool = True, mode: int | None = None, **arguments: Any) -> Scenario:
    """A message is published to a queue with these arguments, and this is its end."""

    def happens(server: Server, client: Client) -> None:
        client.declare("q", durable=durable, arguments=spelled(arguments))
        client.publish(b"1", routing_key="q", delivery_mode=mode)
        ending(server, client)

    return happens


def rejecting(_: Server, client: Client) -> None:
    reject(client)


def purging(_: Server, client: Client) -> None:
    client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk)


def deleting(_: Server, client: Client) -> None:
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)


def waiting(server: Server, _: Client) -> None:
    server.advance(2)


def restarting(server: Server, _: Client) -> None:
    server.restart()


def crashing(server: Server, _: Client) -> None:
    server.restart(crash=True)


NO_EXCHANGE = "no dead-letter exchange"
CAME_BACK = "before the message came back"
NOT_TOLD = "before the publisher was told"
DROPPED: dict[str, tuple[Scenario, str | None, str, str]] = {
    "rejected": (published(rejecting), "q", "rejected", NO_EXCHANGE),
    "expired": (published(waiting, x_message_ttl=1000), "q", "expired", NO_EXCHANGE),
    "overflowed": (_overflowed, "q", "maxlen", NO_EXCHANGE),
    "refused": (_refused, "q", "maxlen", "refused it"),
    "refused_by_quorum": (_refused_by_quorum, "q", "maxlen", "refused it"),
    "delivered_too_often": (_delivered_too_often, "q", "delivery_limit", NO_EXCHANGE),
    "unroutable": (_unroutable, None, "unroutable", "no queue was there"),
    "purged": (published(purging), "q", "purged", "purged"),
    "purged_from_quorum": (published(purging, x_queue_type="quorum"), "q", "purged", "purged"),
    "deleted": (published(deleting), "q", "deleted", "the queue was deleted"),
    "deleted_stream": (published(deleting, x_queue_type="stream"), "q", "deleted", "the queue was deleted"),
    "queue_expired": (published(waiting, x_expires=1000), "q", "deleted", "expired unused"),
    "auto_deleted": (_auto_deleted, "q", "deleted", CAME_BACK),
    "exclusive": (_exclusive, "q", "deleted", "exclusive"),
    "held_while_deleted": (_held_while_deleted, "q", "deleted", CAME_BACK),
    "held_while_deleted_and_rejected": (
        _held_while_deleted_and_rejected,
        "q",
        "rejected",
        CAME_BACK,
    ),
    "held_when_lost": (_held_when_lost, "q", "deleted", CAME_BACK),
    "transient": (published(restarting, mode=1), "q", "restart", "not persistent"),
    "transient_queue": (published(restarting, durable=False, mode=2), "q", "restart", "not durable"),
    "crashed": (published(crashing, mode=2), "q", "crash", NOT_TOLD),
    "crashed_quorum": (published(crashing, mode=2, x_queue_type="quorum"), "q", "crash", NOT_TOLD),
    "crashed_stream": (published(crashing, mode=2, x_queue_type="stream"), "q", "crash", NOT_TOLD),
    "crashed_while_delayed": (_crashed_while_delayed, None, "crash", "exchange 'later' delayed it"),
    "nowhere_after_a_delay": (_nowhere_after_a_delay, None, "unroutable", "after its delay"),
    "refused_after_a_delay": (_refused_after_a_delay, "q", "maxlen", "refused it"),
    "retired": (_retired, "q", "retention", "too large"),
    "dead_letter_cycle": (
        published(waiting, x_message_ttl=1000, **{"x-dead-letter-exchange": ""}),
        "q",
        "cycle",
        "died there before",
    ),
    "dead_letter_refused": (_dead_letter_refused, "grave", "maxlen", "refused it"),
    "dead_letter_without_exchange": (
        published(rejecting, **TO_X),
        "q",
        "rejected",
        "dead-letter exchange 'x' does not exist",
    ),
    "dead_letter_without_queue": (
        published(rejecting, **{"x-dead-letter-exchange": "amq.fanout"}),
        "q",
        "rejected",
        "found no queue for routing key 'q'",
    ),
    "dead_letter_no_stream_can_store": (
        _dead_letter_no_stream_can_store,
        "grave",
        "unstorable",
        "x-stream-filter-value",
    ),
    "held_dead_letter_deleted": (_held_dead_letter_deleted, "q", "deleted", "the queue was deleted"),
    "gone_before_commit": (_gone_before_commit, "q", "deleted", "deleted before the commit"),
}


@pytest.mark.parametrize(("happens", "name", "reason", "detail"), DROPPED.values(), ids=DROPPED)
def test_dropped_message_is_recorded_with_queue_reason_and_detail(
    server: Server,
    client: Client,
    happens: Scenario,
    name: str,
    reason: str,
    detail: str,
) -> None:
    happens(server, client)
    [dropped] = views(Dropped, server.state)
    assert (dropped.body, dropped.queue, dropped.reason) == (b"1", name, reason)
    assert detail in dropped.detail
    assert dropped.when >= START


def test_dropped_message_has_time_connection_and_readable_repr(server: Server, client: Client):
    published(waiting, x_message_ttl=1000)(server, client)
    [dropped] = views(Dropped, server.state)
    assert dropped.when == START + timedelta(seconds=1)
    assert dropped.connection == client.connection.name
    assert repr(dropped) == (
        "<dropped b'1' exchange='' routing_key='q': expired in queue 'q', "
        "because the queue has no dead-letter exchange>"
    )


# --- dead-lettered ------------------------------------------------------------------------------------


def test_dead_lettered_message_names_reason_exchange_and_target_queue(server: Server, client: Client):
    queue(client, "grave")
    queue(client, **TO_GRAVE)
    client.publish(b"1", routing_key="q", headers={"shop": "north"})
    server.advance(3)
    reject(client)
    [dead] = views(DeadLettered, server.state)
    assert (dead.exchange, dead.routing_key, dead.headers) == ("", "q", {"shop": "north"})
    assert (dead.queue, dead.reason, dead.queues) == ("q", "rejected", ("grave",))
    assert (dead.dead_letter_exchange, dead.dead_letter_routing_key) == ("", "grave")
    assert dead.when == START + timedelta(seconds=3)
    assert drops(server) == []
    assert repr(dead).endswith("rejected in queue 'q', passed on by exchange '' to queue 'grave'>")


def test_message_refused_by_a_full_queue_with_reject_publish_dlx_is_dead_lettered(
    server: Server, client: Client
):
    queue(client, "grave")
    queue(client, **TO_GRAVE, x_max_length=0, x_overflow="reject-publish-dlx")
    client.publish(b"1", routing_key="q")
    assert dead_letters(server) == [(b"1", "q", "maxlen", ("grave",))]
    assert drops(server) == []


def test_dead_letter_refused_by_a_full_queue_is_recorded_as_dropped_there(server: Server, client: Client):
    exchange(client, "x", "fanout")
    queue(client, "full", x_max_length=0, x_overflow="reject-publish")
    queue(client, "free")
    queue(client, **TO_X)
    for name in ("full", "free"):
        client.bind(name, "x")
    client.publish(b"1", routing_key="q")
    reject(client)
    assert drops(server) == [(b"1", "full", "maxlen")]
    assert dead_letters(server) == [(b"1", "q", "rejected", ("free",))]


def test_at_least_once_dead_letter_is_recorded_after_its_arrival(server: Server, client: Client):
    queue(client, **AT_LEAST_ONCE, **TO_GRAVE)
    client.publish(b"1", routing_key="q")
    reject(client)
    assert (dead_letters(server), drops(server)) == ([], [])
    [held] = queue_view(server.state, "q").messages
    assert (held.body, held.state) == (b"1", "set aside")
    queue(client, "grave")
    server.advance(200)
    assert dead_letters(server) == [(b"1", "q", "rejected", ("grave",))]
    assert queue_view(server.state, "q").messages == ()


def test_purge_in_rabbitmq_4_3_drops_undelivered_dead_letters():
    server = Server("rabbitmq-4.3", history=100)
    client = server.client()
    queue(client, **AT_LEAST_ONCE, **TO_GRAVE)
    client.publish(b"1", routing_key="q")
    reject(client)
    assert drops(server) == []
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 1
    assert (dead_letters(server), drops(server)) == ([], [(b"1", "q", "purged")])


def test_dead_letter_delayed_by_an_exchange_is_recorded_as_dead_lettered(server: Server, client: Client):
    exchange(client, "x", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    queue(client, **TO_X)
    client.publish(b"1", routing_key="q", headers={"x-delay": 5000})
    reject(client)
    assert (dead_letters(server), drops(server)) == ([(b"1", "q", "rejected", ())], [])
    server.advance(6)
    assert drops(server) == [(b"1", None, "unroutable")]


def test_exchange_view_shows_delayed_messages_in_order_of_due_time(server: Server, client: Client):
    exchange(client, "later", "x-delayed-message", {"x-delayed-type": "fanout"})
    for body, delay in ((b"1", 5000), (b"2", 2000)):
        client.publish(body, exchange="later", headers={"x-delay": delay})
    server.advance(1)
    view = exchange_view(server.state, "later")
    assert view.delayed == 2
    assert [(each.body, each.state, each.due_in) for each in view.messages] == [
        (b"2", "delayed", 1.0),
        (b"1", "delayed", 4.0),
    ]
    assert repr(view.messages[0]).endswith("due_in=1.000 delayed>")


def test_queue_view_shows_messages_set_aside_for_a_delayed_retry(client: Client, server: Server):
    server = Server("rabbitmq-4.3", history=100)
    client = server.client()
    queue(client, **QUORUM, x_delayed_retry_type="all", x_delayed_retry_min=5000)
    client.publish(b"1", routing_key="q")
    reject(client, requeue=True)
    [message] = queue_view(server.state, "q").messages
    assert (message.state, message.body) == ("set aside", b"1")
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    assert drops(server) == [(b"1", "q", "deleted")]


# --- returned -----------------------------------------------------------------------------------------


def test_returned_message_is_recorded_as_returned_and_not_dropped(server: Server, client: Client):
    client.publish(b"1", routing_key="nowhere", mandatory=True)
    [returned] = views(Returned, server.state)
    assert (returned.body, returned.routing_key) == (b"1", "nowhere")
    assert (returned.reply_code, returned.reply_text, returned.reason) == (312, "NO_ROUTE", "312 NO_ROUTE")
    assert (returned.connection, returned.channel) == (client.connection.name, 1)
    assert returned.when == START
    assert drops(server) == []
    assert repr(returned) == "<returned b'1' exchange='' routing_key='nowhere': 312 NO_ROUTE>"


def test_immediate_message_to_a_queue_without_consumers_is_returned():
    server = Server("spec", history=100)
    client = server.client()
    client.declare("q")
    client.publish(b"1", routing_key="q", immediate=True)
    client.publish(b"2", routing_key="nowhere", immediate=True)
    assert [each.reply_text for each in views(Returned, server.state)] == ["NO_CONSUMERS"]
    assert drops(server) == [(b"2", None, "unroutable")]


def test_queue_deletion_under_the_spec_personality_dead_letters_messages():
    server = Server("spec", history=100)
    client = server.client()
    client.declare("grave")
    client.declare("q", arguments=TO_GRAVE)
    client.publish(b"1", routing_key="q")
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    assert (dead_letters(server), drops(server)) == ([(b"1", "q", "deleted", ("grave",))], [])


# --- the history --------------------------------------------------------------------------------------


def test_acknowledged_message_is_neither_dropped_nor_dead_lettered(server: Server, client: Client):
    queue(client)
    client.publish(b"1", routing_key="q")
    got = client.get("q")
    assert got is not None
    client.send(m.BasicAck(delivery_tag=got.method.delivery_tag))
    assert (len(published_views(server.state)), dead_letters(server), drops(server)) == (1, [], [])


def test_history_of_drops_is_bounded_and_counts_missing_entries():
    server = Server(history=2)
    client = server.client()
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="nowhere")
    dropped = views(Dropped, server.state)
    assert ([each.body for each in dropped], dropped.dropped) == ([b"2", b"3"], 1)
    assert repr(dropped[:0]) == "<nothing dropped>"
    assert repr(dropped).startswith("<2 dropped and 1 older:\n  <dropped b'2'")
    server.state.clear()
    assert len(views(Dropped, server.state)) == 0


@pytest.mark.parametrize("kind", [Returned, DeadLettered, Dropped])
def test_outcomes_without_a_history_raise_no_history(kind: type[Any]):
    with pytest.raises(NoHistory, match="history="):
        views(kind, Server().state)


def test_message_stored_in_a_stream_is_not_dropped(server: Server, client: Client):
    queue(client, "s", x_queue_type="stream")
    client.publish(b"1", routing_key="s")
    assert drops(server) == []
