"""Operations over many messages are cut into slices, between which other connections are served.

A runtime says when a slice is over. Here it is over after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, QuietTap, Server
from fakeamqp.model.history import OutcomeHistories
from fakeamqp.model.operations import STEP
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

pytestmark = pytest.mark.needs("settings")

QUEUE = "q"
DEAD = "dead"
MANY = 2 * STEP + 7
TYPES = ("classic", "quorum")
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}


@pytest.fixture(autouse=True, params=["list", "dict"])
def taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a ledger gives up all deliveries as: a list, or its dict, as it does if they are many."""
    if request.param == "dict":
        monkeypatch.setattr("fakeamqp.model.deliveries.delivery._LONG", 0)


class Events(QuietTap):
    """The events of the model, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes | None]] = []

    def happened(self, event: str, **facts: Any) -> None:
        message = facts.get("message")
        if event not in ("published", "refused", "acked", "rejected", "requeued"):
            self.seen.append((event, None if message is None else message.body))


class Drops(QuietTap):
    """The bodies of the last two messages that were dropped at a time, and all of these messages."""

    latest: list[bytes]
    messages: Sequence[Any]

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        if event == "dropped":
            self.messages = message
            self.latest = [each.body for each in message[-2:]]


@dataclass
class Scene:
    """A broker, the client that asks for the operation, another client, and one that is told of cancels."""

    server: Server
    asker: Client
    other: Client
    consumer: Client

    def declare(self, name: str, type_name: str = "classic", **arguments: Any) -> None:
        method = m.QueueDeclare(queue=name, durable=True, arguments={"x-queue-type": type_name, **arguments})
        self.other.call(method, m.QueueDeclareOk)

    def publish(self, number: int = MANY, **properties: Any) -> None:
        for each in range(number):
            self.other.publish(b"%d" % each, routing_key=QUEUE, **properties)

    def hold(self) -> None:
        """The asker takes all messages."""
        self.asker.call(m.BasicConsume(queue=QUEUE, consumer_tag="c"), m.BasicConsumeOk)
        for each in range(1, MANY // 1000 + 1):
            self.asker.call(m.BasicConsume(queue=QUEUE, consumer_tag=f"c{each}"), m.BasicConsumeOk)
        assert len(self.server.vhost.queues[QUEUE].unacked) == MANY
        self.asker.inbox.clear()

    def advance(self, seconds: float) -> None:
        """Move the clock past all timers, and then run them as the loop does on a real clock."""
        self.server.clock.advance(seconds)
        self.server.state.timers.run_due()

    def count(self, client: Client, name: str) -> int:
        return client.call(m.QueueDeclare(queue=name, passive=True), m.QueueDeclareOk).message_count

    def bodies(self, name: str) -> list[bytes]:
        return [each.message.body for each in self.server.vhost.queues[name].ready]


def scene(type_name: str, **arguments: Any) -> Scene:
    server = Server()
    told = {"capabilities": {"consumer_cancel_notify": True}}
    it = Scene(server, server.client(), server.client(), server.client(client_properties=told))
    it.declare(DEAD)
    it.declare(QUEUE, type_name, **arguments)
    return it


Act = Callable[[], object]
Prepare = Callable[[str], tuple[Scene, Act]]


def requeue(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish()
    it.hold()
    return it, lambda: it.asker.send(m.BasicNack(delivery_tag=0, multiple=True, requeue=True))


def reject(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name, **TO_DEAD)
    it.publish()
    it.hold()
    return it, lambda: it.asker.send(m.BasicNack(delivery_tag=0, multiple=True, requeue=False))


def acknowledge(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish()
    it.hold()
    return it, lambda: it.asker.send(m.BasicAck(delivery_tag=MANY, multiple=True))


def close_channel(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish()
    it.hold()
    return it, lambda: it.asker.send(m.ChannelClose())


def close_connection(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish()
    it.hold()
    return it, lambda: it.asker.send(m.ConnectionClose(), channel=0)


def lose_connection(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish()
    it.hold()
    return it, it.asker.connection.receive_eof


def purge(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish()
    return it, lambda: it.asker.send(m.QueuePurge(queue=QUEUE))


def delete(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish()
    return it, lambda: it.asker.send(m.QueueDelete(queue=QUEUE))


def expire(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.publish(expiration="1000")
    return it, lambda: it.advance(2)


def expire_to_dead(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name, **TO_DEAD)
    it.publish(expiration="1000")
    return it, lambda: it.advance(2)


def delayed(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    late = m.ExchangeDeclare(
        exchange="late", type="x-delayed-message", arguments={"x-delayed-type": "fanout"}
    )
    it.other.call(late, m.ExchangeDeclareOk)
    it.other.call(m.QueueBind(queue=QUEUE, exchange="late"), m.QueueBindOk)
    for each in range(MANY):
        it.other.publish(b"%d" % each, exchange="late", headers={"x-delay": 1000})
    return it, lambda: it.advance(2)


def fanned(type_name: str, **arguments: Any) -> Scene:
    """Many queues are bound to the exchange "many"."""
    it = scene(type_name, **arguments)
    exchange = m.ExchangeDeclare(
        exchange="many", type="x-delayed-message", arguments={"x-delayed-type": "fanout"}
    )
    it.other.call(exchange, m.ExchangeDeclareOk)
    for each in range(MANY):
        it.other.send(m.QueueDeclare(queue=f"many.{each}", no_wait=True))
        it.other.send(m.QueueBind(queue=f"many.{each}", exchange="many", no_wait=True))
    return it


def fan_out(type_name: str) -> tuple[Scene, Act]:
    it = fanned(type_name)
    return it, lambda: it.asker.publish(b"0", exchange="many")


def fan_out_of_a_dead_letter(type_name: str) -> tuple[Scene, Act]:
    it = fanned(type_name, **{"x-dead-letter-exchange": "many"})
    it.publish(1)
    it.asker.call(m.BasicGet(queue=QUEUE), m.BasicGetOk)
    return it, lambda: it.asker.send(m.BasicNack(delivery_tag=0, multiple=True, requeue=False))


def fan_out_of_a_delayed_message(type_name: str) -> tuple[Scene, Act]:
    it = fanned(type_name)
    it.other.publish(b"0", exchange="many", headers={"x-delay": 1000})
    return it, lambda: it.advance(2)


def commit(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.asker.call(m.TxSelect(), m.TxSelectOk)
    for each in range(MANY):
        it.asker.publish(str(each).encode(), routing_key=QUEUE)
    return it, lambda: it.asker.send(m.TxCommit())


def many_consumers(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    for each in range(MANY):
        it.asker.send(m.BasicConsume(queue=QUEUE, consumer_tag=str(each), no_wait=True))
    return it, it.asker.connection.receive_eof


def bindings(type_name: str, exchange: str = "amq.topic") -> Scene:
    it = scene(type_name)
    for each in range(MANY):
        it.other.send(m.QueueBind(queue=QUEUE, exchange=exchange, routing_key=f"{each}.a", no_wait=True))
    return it


def delete_bound(type_name: str) -> tuple[Scene, Act]:
    it = bindings(type_name)
    it.publish()
    return it, lambda: it.asker.send(m.QueueDelete(queue=QUEUE))


def delete_consumed(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    for each in range(MANY):
        it.consumer.send(m.BasicConsume(queue=QUEUE, consumer_tag=str(each), no_wait=True))
    return it, lambda: it.asker.send(m.QueueDelete(queue=QUEUE))


def delete_exchange(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    it.other.call(m.ExchangeDeclare(exchange="x", type="direct"), m.ExchangeDeclareOk)
    it.other.call(m.ExchangeDeclare(exchange="auto", type="direct", auto_delete=True), m.ExchangeDeclareOk)
    for each in range(MANY):
        it.other.send(m.QueueBind(queue=QUEUE, exchange="x", routing_key=str(each), no_wait=True))
        bind = m.ExchangeBind(source="auto", destination="x", routing_key=str(each), no_wait=True)
        it.other.send(bind)
    return it, lambda: it.asker.send(m.ExchangeDelete(exchange="x"))


def exclusive_queues(type_name: str) -> tuple[Scene, Act]:
    it = scene(type_name)
    for each in range(MANY):
        it.asker.send(m.QueueDeclare(queue=f"own.{each}", exclusive=True, no_wait=True))
    return it, it.asker.connection.receive_eof


OF_CLIENTS = (
    requeue,
    reject,
    acknowledge,
    close_channel,
    purge,
    delete,
    delete_bound,
    delete_consumed,
    fan_out,
    fan_out_of_a_dead_letter,
    commit,
)
LOSSES = (close_connection, lose_connection, many_consumers, exclusive_queues)
OF_TIME = (expire, expire_to_dead, delayed, fan_out_of_a_delayed_message)
ALL = (*OF_CLIENTS, delete_exchange, *LOSSES, *OF_TIME)
DELETIONS = (purge, delete, delete_bound, delete_consumed)

every = pytest.mark.parametrize(
    ("prepare", "type_name"),
    [pytest.param(each, kind, id=f"{each.__name__}-{kind}") for each in ALL for kind in TYPES],
)


def in_slices(it: Scene) -> None:
    """From now on each slice has one step."""
    it.server.state.operations.pauses = lambda: True


@every
def test_other_connections_are_served_between_slices(prepare: Prepare, type_name: str) -> None:
    it, act = prepare(type_name)
    in_slices(it)
    act()
    slices = 1
    while it.server.state.operations.pending:
        it.count(it.other, DEAD)
        it.server.state.operations.step()
        slices += 1
    assert slices >= MANY // STEP


@every
def test_slices_do_not_change_the_order_of_events(prepare: Prepare, type_name: str) -> None:
    seen = []
    for sliced in (False, True):
        it, act = prepare(type_name)
        events = it.server.state.tap = Events()
        if sliced:
            in_slices(it)
        act()
        while it.server.state.operations.pending:
            it.server.state.operations.step()
        left = [it.bodies(name) for name in (QUEUE, DEAD) if name in it.server.vhost.queues]
        seen.append((events.seen, left))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("prepare", OF_CLIENTS)
def test_client_gets_no_answer_until_its_sliced_operation_ends(prepare: Prepare, type_name: str) -> None:
    it, act = prepare(type_name)
    in_slices(it)
    act()
    assert not it.asker.connection.reading
    it.asker.send(m.ChannelOpen(), channel=2)
    it.asker.send(m.QueueDeclare(queue=DEAD, passive=True), channel=2)
    while it.server.state.operations.pending:
        assert not any(each.channel == 2 for each in it.asker.inbox)
        it.server.state.operations.step()
    assert it.asker.connection.reading
    answer = it.asker.inbox[-1].method
    assert isinstance(answer, m.QueueDeclareOk)
    assert answer.message_count == (MANY if prepare is reject else 0)


@pytest.mark.parametrize("full", [False, True])
def test_publish_to_many_queues_is_confirmed_after_the_last_queue_has_it(full: bool) -> None:
    it, act = fan_out("classic")
    it.declare("full", **{"x-max-length": 0, "x-overflow": "reject-publish"})
    if full:
        it.other.call(m.QueueBind(queue="full", exchange="many"), m.QueueBindOk)
    it.asker.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    in_slices(it)
    act()
    act()  # Waits for the first one, and its confirm for the confirm of that.
    confirms: list[Any] = []
    while it.server.state.operations.pending:
        it.server.state.operations.step()
        ends = it.server.vhost.queues[f"many.{MANY - 1}"].ready
        confirms = [each.method for each in it.asker.inbox]
        assert len(confirms) <= len(ends)
    assert [type(each) for each in confirms] == 2 * [m.BasicNack if full else m.BasicAck]
    assert [each.delivery_tag for each in confirms] == [1, 2]


@pytest.mark.parametrize("deleted", [0, MANY // 2, MANY - 1])
def test_queue_deleted_between_slices_of_a_fanout_drops_the_message(deleted: int) -> None:
    it, act = fan_out("classic")
    histories = it.server.state.outcome_histories = OutcomeHistories(capacity=5)
    in_slices(it)
    act()
    it.other.call(m.QueueDelete(queue=f"many.{deleted}"), m.QueueDeleteOk)
    it.server.state.operations.finish()
    names = {each for each in it.server.vhost.queues if each.startswith("many")}
    assert all(it.bodies(each) == [b"0"] for each in names)
    assert [(each.queue, each.reason) for each in histories.dropped] == [(f"many.{deleted}", "deleted")]


def test_dead_letter_of_full_queue_follows_message_routed_in_slices() -> None:
    it, _ = fan_out("classic")
    it.declare("first", **{"x-max-length": 0, **TO_DEAD})
    it.other.call(m.ExchangeDeclare(exchange="two", type="fanout"), m.ExchangeDeclareOk)
    for name in ("first", *(f"many.{each}" for each in range(MANY)), DEAD):
        it.other.call(m.QueueBind(queue=name, exchange="two"), m.QueueBindOk)
    in_slices(it)
    it.asker.publish(b"0", exchange="two")
    it.server.state.operations.finish()
    headers = [each.message.headers for each in it.server.vhost.queues[DEAD].ready]
    assert ["x-death" in each for each in headers] == [False, True]


@pytest.mark.parametrize("type_name", TYPES)
def test_channel_close_ok_follows_the_requeue(type_name: str) -> None:
    it, act = close_channel(type_name)
    in_slices(it)
    act()
    while it.server.state.operations.pending:
        assert it.asker.inbox == []
        it.server.state.operations.step()
    it.asker.expect(m.ChannelCloseOk)
    assert it.count(it.other, QUEUE) == MANY


@pytest.mark.deviates("0-9-1/tx/atomic-single-queue#together")
@pytest.mark.rule("0-9-1/tx/atomic-single-queue#together")
@pytest.mark.parametrize("gradually", [False, True])
def test_other_client_sees_part_of_a_commit_only_with_commits_gradually(gradually: bool) -> None:
    server = Server(replace(personality("rabbitmq-4.3"), commits_gradually=gradually))
    asker, other = server.client(), server.client()
    asker.declare(QUEUE).perform(m.TxSelect()).fill(QUEUE, *MANY * [b""])
    server.state.operations.pauses = lambda: True
    asker.send(m.TxCommit())
    assert (other.count(QUEUE) < MANY) is gradually


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("fails", ["full", "deleted"])
def test_commit_that_fails_in_later_slice_keeps_earlier_publishes_and_closes_with_406_or_506(
    fails: str, lost: bool
) -> None:
    """A full queue refuses the last publish, and the ack counts; or its queue is deleted, and it does not."""
    it = scene("classic")
    it.declare("last", **({"x-max-length": 0, "x-overflow": "reject-publish"} if fails == "full" else {}))
    it.publish(1)
    it.asker.call(m.TxSelect(), m.TxSelectOk)
    it.asker.send(m.BasicGet(queue=QUEUE))
    for _ in range(MANY):
        it.asker.publish(b"0", routing_key=DEAD)
    it.asker.publish(b"0", routing_key="last")
    it.asker.send(m.BasicAck(delivery_tag=1))
    it.asker.inbox.clear()
    in_slices(it)
    it.asker.send(m.TxCommit())
    assert 0 < it.count(it.other, DEAD) < MANY
    if fails == "deleted":
        it.other.call(m.QueueDelete(queue="last"), m.QueueDeleteOk)
    if lost:
        it.asker.connection.receive_eof()
    it.server.state.operations.finish()
    if not lost:
        expected = (m.ChannelClose, 1) if fails == "full" else (m.ConnectionClose, 0)
        close = it.asker.expect(*expected)
        code = 406 if fails == "full" else 506
        assert (close.reply_code, close.class_id, close.method_id) == (code, 90, 20)
    assert not it.server.vhost.queues[QUEUE].unacked
    assert (it.count(it.other, DEAD), it.count(it.other, QUEUE)) == (MANY, 0 if fails == "full" else 1)


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("steps", (0, 1, 2, 4, 6))
def test_operation_is_completed_if_its_connection_is_lost_between_slices(type_name: str, steps: int) -> None:
    for prepare, name in ((requeue, QUEUE), (reject, DEAD), (close_channel, QUEUE), (commit, QUEUE)):
        it, act = prepare(type_name)
        in_slices(it)
        act()
        for _ in range(steps):
            it.server.state.operations.step()
        it.asker.connection.receive_eof()
        it.server.state.operations.finish()
        assert it.bodies(name) == [b"%d" % each for each in range(MANY)]
        assert not it.server.vhost.queues[QUEUE].unacked


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("steps", (0, 1, 2, 4, 6))
@pytest.mark.parametrize("prepare", [each for each in ALL if each not in DELETIONS])
def test_queue_deleted_between_slices_stays_deleted_and_no_message_is_dead_lettered_twice(
    prepare: Prepare, type_name: str, steps: int
) -> None:
    it, act = prepare(type_name)
    in_slices(it)
    act()
    for _ in range(steps):
        it.server.state.operations.step()
    it.other.call(m.QueueDelete(queue=QUEUE), m.QueueDeleteOk)
    it.server.state.operations.finish()
    assert QUEUE not in it.server.vhost.queues
    assert len(it.bodies(DEAD)) <= MANY
    assert len(set(it.bodies(DEAD))) == len(it.bodies(DEAD))


@pytest.mark.parametrize("steps", (0, 1, 3, 5, 6, 7))
def test_dead_letter_exchange_deleted_between_slices_leaves_dead_letters_in_order(steps: int) -> None:
    it = scene("classic", **{"x-dead-letter-exchange": "x"})
    it.other.call(m.ExchangeDeclare(exchange="x", type="fanout"), m.ExchangeDeclareOk)
    it.other.call(m.QueueBind(queue=DEAD, exchange="x"), m.QueueBindOk)
    it.publish()
    it.hold()
    in_slices(it)
    it.asker.send(m.BasicNack(delivery_tag=0, multiple=True, requeue=False))
    for _ in range(steps):
        it.server.state.operations.step()
    it.other.call(m.ExchangeDelete(exchange="x"), m.ExchangeDeleteOk)
    it.server.state.operations.finish()
    assert it.bodies(DEAD) == [b"%d" % each for each in range(len(it.bodies(DEAD)))]


@pytest.mark.parametrize("steps", (0, 1, 2, 3, 4, 6))
def test_queue_deleted_between_slices_sends_each_message_once_to_alternate_exchange(steps: int) -> None:
    it, act = requeue("classic")
    it.other.call(m.QueueBind(queue=DEAD, exchange="amq.fanout"), m.QueueBindOk)
    it.server.vhost.queues[QUEUE].alternate_exchange = "amq.fanout"
    in_slices(it)
    act()
    for _ in range(steps):
        it.server.state.operations.step()
    it.other.call(m.QueueDelete(queue=QUEUE), m.QueueDeleteOk)
    it.server.state.operations.finish()
    assert sorted(it.bodies(DEAD)) == sorted(b"%d" % each for each in range(MANY))


@pytest.mark.parametrize("type_name", TYPES)
def test_dead_letter_of_other_queue_follows_dead_letters_of_the_sliced_operation(type_name: str) -> None:
    it, act = reject(type_name)
    it.declare("short", **{"x-max-length": 1, **TO_DEAD})
    in_slices(it)
    act()
    while not it.bodies(DEAD):
        it.server.state.operations.step()
    for each in (b"first", b"second"):
        it.other.publish(each, routing_key="short")
    it.server.state.operations.finish()
    assert it.bodies(DEAD) == [*(b"%d" % each for each in range(MANY)), b"first"]


def test_operations_of_two_connections_take_turns() -> None:
    it = scene("classic")
    it.publish()
    it.hold()
    it.declare("short")
    for each in range(STEP + 1):
        it.other.publish(b"%d" % each, routing_key="short")
    it.other.call(m.BasicConsume(queue="short", consumer_tag="s"), m.BasicConsumeOk)
    it.other.inbox.clear()
    in_slices(it)
    it.asker.send(m.BasicNack(delivery_tag=0, multiple=True, requeue=True))
    it.other.send(m.BasicAck(delivery_tag=0, multiple=True))
    it.server.state.operations.step()
    it.server.state.operations.step()
    assert not it.server.vhost.queues["short"].unacked
    assert it.server.vhost.queues[QUEUE].unacked


def test_operations_without_a_runtime_are_not_sliced() -> None:
    it, act = reject("classic")
    act()
    assert not it.server.state.operations.pending
    assert len(it.bodies(DEAD)) == MANY


@pytest.mark.parametrize(
    ("prepare", "type_name"),
    [(purge, "classic"), (purge, "quorum"), (delete, "classic"), (delete, "quorum"), (delete, "stream")],
)
def test_dropped_messages_are_recorded_and_freed_in_steps(prepare: Prepare, type_name: str) -> None:
    it, act = prepare(type_name)
    histories = it.server.state.outcome_histories = OutcomeHistories(capacity=MANY - 5)
    drops = it.server.state.tap = Drops()
    in_slices(it)
    act()
    recorded, left = [0, len(histories.dropped)], [MANY, len(drops.messages)]
    while it.server.state.operations.pending:
        it.server.state.operations.step()
        recorded.append(len(histories.dropped))
        left.append(len(drops.messages))
    assert drops.latest == [b"%d" % (MANY - 2), b"%d" % (MANY - 1)]
    assert [each.message.body for each in histories.dropped] == [b"%d" % each for each in range(5, MANY)]
    assert histories.dropped.count == MANY
    assert left[-1] == 0
    assert max(after - before for before, after in pairwise(recorded)) <= STEP
    assert max(before - after for before, after in pairwise(left)) <= STEP


def test_operation_of_one_step_of_messages_is_not_sliced() -> None:
    it = scene("classic", **TO_DEAD)
    it.publish(STEP)
    it.asker.call(m.BasicConsume(queue=QUEUE, consumer_tag="c"), m.BasicConsumeOk)
    it.asker.inbox.clear()
    in_slices(it)
    it.asker.send(m.BasicNack(delivery_tag=0, multiple=True, requeue=False))
    assert not it.server.state.operations.pending
    assert len(it.bodies(DEAD)) == STEP


# --- deletions of what has many bindings or consumers -------------------------------------------------
def between(it: Scene, act: Act) -> None:
    """Begin an operation, one step of which has been taken when this returns."""
    in_slices(it)
    act()
    assert it.server.state.operations.pending


@pytest.mark.parametrize(
    ("exchange", "type_name"),
    [("amq.topic", "topic"), ("amq.direct", "direct"), ("amq.fanout", "fanout"), ("hash", "x-modulus-hash")],
)
def test_message_is_not_routed_to_deleted_queue_left_in_bindings(exchange: str, type_name: str) -> None:
    it = scene("classic")
    it.other.call(m.ExchangeDeclare(exchange="none", type="fanout"), m.ExchangeDeclareOk)
    it.other.call(m.QueueBind(queue=DEAD, exchange="none"), m.QueueBindOk)
    if exchange == "hash":
        it.other.call(m.ExchangeDeclare(exchange="hash", type=type_name), m.ExchangeDeclareOk)
    it.server.vhost.exchanges[exchange].alternate_exchange = "none"
    for each in range(MANY):
        it.other.send(m.QueueBind(queue=QUEUE, exchange=exchange, routing_key=str(each), no_wait=True))
        it.other.send(m.QueueBind(queue=QUEUE, exchange="amq.topic", routing_key=f"t{each}", no_wait=True))
    between(it, lambda: it.asker.send(m.QueueDelete(queue=QUEUE)))
    it.other.publish(b"late", exchange=exchange, routing_key=str(MANY - 1))
    assert it.bodies(DEAD) == [b"late"]
    assert it.server.state.operations.pending
    it.server.state.operations.finish()
    assert not it.server.vhost.bindings.count - 1
    assert not it.server.vhost.bindings.loose


def test_queue_redeclared_between_slices_of_its_deletion_keeps_new_bindings() -> None:
    it = bindings("classic")
    between(it, lambda: it.asker.send(m.QueueDelete(queue=QUEUE)))
    it.declare(QUEUE)
    it.other.call(m.QueueBind(queue=QUEUE, exchange="amq.topic", routing_key="0.a"), m.QueueBindOk)
    it.server.state.operations.finish()
    it.other.publish(b"new", exchange="amq.topic", routing_key="0.a")
    assert it.bodies(QUEUE) == [b"new"]
    assert it.server.vhost.bindings.count == 1


def test_auto_delete_exchange_is_deleted_with_the_last_of_many_bindings() -> None:
    it = scene("classic")
    it.other.call(m.ExchangeDeclare(exchange="x", type="direct", auto_delete=True), m.ExchangeDeclareOk)
    for each in range(MANY):
        it.other.send(m.QueueBind(queue=QUEUE, exchange="x", routing_key=str(each), no_wait=True))
    between(it, lambda: it.asker.send(m.QueueDelete(queue=QUEUE)))
    it.server.state.operations.finish()
    assert "x" not in it.server.vhost.exchanges


def test_auto_delete_exchange_redeclared_between_slices_is_not_deleted() -> None:
    it = scene("classic")
    declare = m.ExchangeDeclare(exchange="x", type="direct", auto_delete=True)
    it.other.call(declare, m.ExchangeDeclareOk)
    for each in range(MANY):
        it.other.send(m.QueueBind(queue=QUEUE, exchange="x", routing_key=str(each), no_wait=True))
    between(it, lambda: it.asker.send(m.QueueDelete(queue=QUEUE)))
    it.other.send(m.ExchangeDelete(exchange="x", no_wait=True))
    it.server.client().call(declare, m.ExchangeDeclareOk)
    it.server.state.operations.finish()
    assert "x" in it.server.vhost.exchanges
    assert it.server.vhost.bindings.count == 0


def test_queue_deleted_between_slices_of_deletion_of_its_exchange_leaves_no_binding() -> None:
    it, act = delete_exchange("classic")
    between(it, act)
    it.other.call(m.QueueDelete(queue=QUEUE), m.QueueDeleteOk)
    it.server.state.operations.finish()
    assert it.server.vhost.bindings.count == 0
    assert not it.server.vhost.bindings.loose
    assert "auto" not in it.server.vhost.exchanges


def test_reused_consumer_tag_is_not_cancelled_by_sliced_queue_deletion() -> None:
    it, act = delete_consumed("classic")
    last = str(sorted(map(str, range(MANY)))[-1])
    between(it, act)
    it.consumer.send(m.BasicCancel(consumer_tag=last, no_wait=True))
    it.consumer.send(m.BasicConsume(queue=DEAD, consumer_tag=last, no_wait=True))
    it.server.state.operations.finish()
    cancelled = [each.method.consumer_tag for each in it.consumer.inbox if type(each.method) is m.BasicCancel]
    assert cancelled == sorted(map(str, range(MANY)))[:-1]
    it.consumer.inbox.clear()
    it.other.publish(b"kept", routing_key=DEAD)
    it.consumer.expect(m.BasicDeliver)
