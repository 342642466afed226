"""What a transaction holds once it is prepared, and what restarts leave of it."""

from __future__ import annotations

import pytest

from compat_tests.unit.model.bench import KINDS, TRANSIENT, Bench, xid
from fakeamqp.model.deliveries.delivery import release_all
from fakeamqp.model.deliveries.subscription import Subscription
from fakeamqp.model.errors import PreconditionFailed, ResourceError
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.model.routing import Outcome
from fakeamqp.model.transactions import PlannedPublish, Transaction, XaOutcome

X = xid(1)
OK = XaOutcome.OK


class Reader:
    """A subscriber that notes what it gets."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.late = 0

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: object
    ) -> None:
        self.bodies.append(message.body)

    def held_too_long(self, subscription: Subscription | None) -> None:
        self.late += 1

    def cancelled(self, subscription: Subscription) -> None:
        pass


def subscribe(bench: Bench, name: str) -> Reader:
    reader = Reader()
    queue = bench.host.queues[name]
    queue.subscribe(Subscription("t", queue, reader, owner="reader", group=reader))
    queue.dispatch()
    return reader


# --- preparing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"max_length": 1}, {"max_length_bytes": 5}], ids=["messages", "octets"])
def test_preparing_publishes_beyond_queue_limit_rolls_branch_back(
    bench: Bench, limits: dict[str, int]
) -> None:
    bench.queue("q", overflow="reject-publish", **limits)
    bench.queue("from")
    bench.publish("from", b"old")
    bench.branches.start("a", X)
    bench.accept(bench.work("a"), bench.take("from"))
    for body in (b"one", b"two"):
        bench.plan(bench.work("a"), "q", body)
    bench.branches.end("a", X)
    assert bench.branches.prepare(X) is XaOutcome.ROLLED_BACK
    assert bench.ready("from") == [b"old"]
    assert bench.ready("q") == []
    assert bench.branches.rollback(X) is OK


def test_one_phase_commit_with_publish_to_full_queue_rolls_branch_back(bench: Bench) -> None:
    bench.queue("full", overflow="reject-publish", max_length=0)
    bench.queue("free")
    bench.branches.start("a", X)
    for name in ("free", "full"):
        bench.plan(bench.work("a"), name, b"new")
    bench.branches.end("a", X)
    assert bench.branches.commit(X, one_phase=True) is XaOutcome.ROLLED_BACK
    assert bench.ready("free") == []
    assert len(bench.branches) == 0


def test_max_length_with_drop_head_does_not_refuse_branch(bench: Bench) -> None:
    bench.queue("q", max_length=1)
    bench.prepared(1, publish="q")
    bench.publish("q", b"old")
    assert bench.branches.commit(X) is OK
    assert bench.ready("q") == [b"new"]


@pytest.mark.parametrize("kind", KINDS)
def test_prepared_publish_is_committed_even_if_queue_is_full_meanwhile(bench: Bench, kind: str) -> None:
    bench.queue("q", kind, overflow="reject-publish", max_length=1)
    bench.prepared(1, publish="q")
    for body in (b"1", b"2", b"3"):
        bench.publish("q", body)
    refused = bench.ready("q")
    assert len(refused) < 3
    assert bench.branches.commit(X) is OK
    assert bench.ready("q") == [*refused, b"new"]
    bench.publish("q", b"4")
    assert bench.ready("q") == [*refused, b"new"]


def test_preparing_stream_message_with_too_long_filter_value_rolls_branch_back(bench: Bench) -> None:
    bench.queue("s", "stream")
    for number, value in ((1, "x" * 4096), (2, "x" * 4097)):
        bench.branches.start("a", xid(number))
        properties = PlainProperties(headers={"x-stream-filter-value": value})
        message = Message("", "s", properties, b"new")
        bench.work("a").publish(PlannedPublish(bench.host, *bench.host.routing.plan(message)))
        bench.branches.end("a", xid(number))
    assert bench.branches.prepare(xid(1)) is OK
    assert bench.branches.prepare(xid(2)) is XaOutcome.ROLLED_BACK


def test_preparing_settlement_of_released_delivery_is_refused(bench: Bench) -> None:
    bench.queue("q")
    bench.publish("q", b"old")
    transaction = Transaction()
    delivery = bench.take("q")
    bench.accept(transaction, delivery)
    release_all([delivery])
    with pytest.raises(PreconditionFailed, match="queue 'q' has taken back a message"):
        transaction.prepare()


def test_preparing_publish_to_full_queue_is_refused_with_queue_name(bench: Bench) -> None:
    bench.queue("q", overflow="reject-publish", max_length=0)
    transaction = Transaction()
    bench.plan(transaction, "q", b"new")
    with pytest.raises(ResourceError, match="queue 'q' cannot take all messages of the transaction"):
        transaction.prepare()
    assert transaction.publishes == 1


def test_outcome_of_planned_publish_is_reported_at_commit(bench: Bench) -> None:
    bench.queue("q")
    told: list[Outcome] = []
    message = Message("", "q", PlainProperties(), b"new")
    transaction = Transaction()
    transaction.publish(PlannedPublish(bench.host, *bench.host.routing.plan(message), on_outcome=told.append))
    assert told == []
    transaction.commit()
    assert [queue.name for queue in told[0].queues] == ["q"]


def test_commit_ignores_queues_deleted_after_prepare(bench: Bench) -> None:
    for name in ("gone", "from"):
        bench.queue(name)
    bench.publish("from", b"old")
    bench.prepared(1, publish="gone", accept="from")
    for name in ("gone", "from"):
        bench.host.queues.delete(name, None)
    assert bench.branches.commit(X) is OK
    assert bench.host.queues == {}


def test_rollback_drops_message_of_queue_deleted_after_prepare(bench: Bench) -> None:
    bench.queue("q")
    bench.publish("q", b"old")
    bench.prepared(1, accept="q")
    bench.host.queues.delete("q", None)
    assert bench.branches.rollback(X) is OK
    assert (b"old", "q", "deleted") in bench.dropped()


# --- restarts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_prepared_branch_survives_restart_and_crash(bench: Bench, kind: str, crash: bool) -> None:
    bench.queue("from", kind)
    bench.queue("to", kind)
    # The publisher of the messages was never told that the broker has them; whoever prepared was.
    for body in (b"1", b"2", b"3", b"4"):
        bench.publish("from", body, secured=False)
    for number in (1, 2, 3):
        bench.prepared(number, publish="to", accept="from")
    bench.state.restart(crash=crash)
    assert bench.branches.recover() == [xid(1), xid(2), xid(3)]
    assert bench.ready("from") == ([] if crash else [b"4"])
    assert bench.ready("to") == []
    assert subscribe(bench, "to").bodies == []
    bench.host.queues["to"].unsubscribe(next(iter(bench.host.queues["to"].subscriptions)))
    assert bench.branches.commit(xid(1)) is OK
    bench.state.restart(crash=crash)
    assert bench.branches.rollback(xid(3)) is OK
    assert bench.branches.rollback(xid(2)) is OK
    if kind == "classic":
        assert bench.ready("from") == [b"2", b"3", *([] if crash else [b"4"])]
    assert sorted(bench.ready("from")) == [b"2", b"3", *([] if crash else [b"4"])]
    assert bench.ready("to") == [b"new"]
    assert bench.unacked("from") == []
    assert bench.branches.in_doubt == {}
    # Whoever may count on the outcome may count on it for good.
    bench.state.restart(crash=True)
    assert {b"2", b"3"} <= set(bench.ready("from"))
    assert bench.ready("to") == [b"new"]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_restart_discards_branches_not_prepared(bench: Bench, kind: str, crash: bool) -> None:
    bench.queue("q", kind)
    bench.publish("q", b"old")
    bench.branches.start("a", X)
    bench.plan(bench.work("a"), "q", b"new")
    bench.accept(bench.work("a"), bench.take("q"))
    bench.branches.start("b", xid(2))
    bench.branches.end("b", xid(2), fail=True)
    bench.state.restart(crash=crash)
    assert bench.ready("q") == [b"old"]
    assert len(bench.branches) == 0
    assert len(bench.state.timers) == 0
    assert bench.branches.start("a", X) is OK


@pytest.mark.parametrize("crash", [False, True])
def test_restart_loses_transient_messages_of_prepared_branch(bench: Bench, crash: bool) -> None:
    reason = "crash" if crash else "restart"
    bench.queue("q")
    bench.queue("quorum", "quorum")
    bench.publish("q", b"old", TRANSIENT)
    bench.publish("q", b"other")
    bench.prepared(1, publish="q", accept="q", mode=TRANSIENT)
    bench.prepared(2, publish="quorum", accept="q", mode=TRANSIENT)
    bench.state.restart(crash=crash)
    assert bench.dropped() == [(b"old", "q", reason), (b"new", "q", reason)]
    assert bench.branches.recover() == [X, xid(2)]
    view = bench.branches.views()[0]
    assert (view.publishes, view.settlements) == (0, 0)
    assert bench.branches.commit(X) is OK
    assert bench.branches.commit(xid(2)) is OK
    assert bench.ready("q") == []
    assert bench.unacked("q") == []
    assert bench.ready("quorum") == [b"new"]


def test_rollback_does_not_return_transient_message_lost_at_restart(bench: Bench) -> None:
    bench.queue("q")
    bench.publish("q", b"old", TRANSIENT)
    bench.prepared(1, accept="q")
    bench.state.restart()
    assert bench.branches.rollback(X) is OK
    assert bench.ready("q") == []


def test_prepared_work_on_transient_queue_is_lost_at_restart(bench: Bench) -> None:
    bench.queue("brief", durable=False)
    bench.queue("lasting")
    bench.publish("brief", b"old")
    for number, name in ((1, "brief"), (2, "lasting")):
        bench.prepared(number, publish=name, accept="brief" if number == 1 else "")
    bench.state.restart()
    assert bench.branches.commit(X) is OK
    assert bench.branches.commit(xid(2)) is OK
    assert set(bench.host.queues) == {"lasting"}
    assert bench.ready("lasting") == [b"new"]


def test_transient_message_prepared_for_stream_survives_crash(bench: Bench) -> None:
    bench.queue("s", "stream")
    bench.prepared(1, publish="s", mode=TRANSIENT)
    bench.state.restart(crash=True)
    assert bench.ready("s") == []
    bench.branches.commit(X)
    assert bench.ready("s") == [b"new"]


def test_outcome_of_prepared_publish_is_not_reported_after_restart(bench: Bench) -> None:
    bench.queue("q")
    told: list[Outcome] = []
    message = Message("", "q", PlainProperties(delivery_mode=2), b"new")
    bench.branches.start("a", X)
    publish = PlannedPublish(bench.host, *bench.host.routing.plan(message), on_outcome=told.append)
    bench.work("a").publish(publish)
    bench.branches.end("a", X)
    bench.branches.prepare(X)
    bench.state.restart()
    bench.branches.commit(X)
    assert told == []
    assert bench.ready("q") == [b"new"]


def test_broker_that_loses_its_disk_loses_all_branches(bench: Bench) -> None:
    bench.queue("q")
    bench.publish("q", b"old")
    bench.prepared(1, publish="q", accept="q")
    bench.branches.start("a", xid(2))
    bench.state.discard("the disk is gone")
    assert len(bench.branches) == 0
    assert bench.branches.in_doubt == {}
    assert len(bench.state.timers) == 0
    assert bench.dropped() == [(b"old", "q", "crash")]


def test_message_past_its_ttl_in_prepared_branch_expires_at_rollback(bench: Bench) -> None:
    bench.queue("q", message_ttl=10_000)
    bench.publish("q", b"old")
    bench.prepared(1, publish="q", accept="q")
    bench.advance(20)
    assert bench.dropped() == []
    bench.state.restart()
    bench.branches.rollback(X)
    assert bench.ready("q") == []
    assert bench.dropped() == [(b"old", "q", "expired")]


def test_ttl_of_prepared_publish_begins_at_commit(bench: Bench) -> None:
    bench.queue("q", message_ttl=10_000)
    bench.prepared(1, publish="q")
    bench.advance(20)
    bench.branches.commit(X)
    bench.advance(9)
    assert bench.ready("q") == [b"new"]
    bench.advance(1)
    assert bench.ready("q") == []


def test_message_committed_without_prepare_survives_crash(bench: Bench) -> None:
    bench.queue("q")
    transaction = Transaction()
    bench.plan(transaction, "q", b"new")
    transaction.commit()
    bench.state.restart(crash=True)
    assert bench.ready("q") == [b"new"]


def test_transient_prepared_publish_survives_restart_only_in_quorum_queue(bench: Bench) -> None:
    for name, kind in (("lasting", "quorum"), ("losing", "classic")):
        bench.host.bindings.bind("amq.fanout", bench.queue(name, kind), "")
    bench.branches.start("a", X)
    message = Message("amq.fanout", "", PlainProperties(delivery_mode=TRANSIENT), b"new")
    bench.work("a").publish(PlannedPublish(bench.host, *bench.host.routing.plan(message)))
    bench.branches.end("a", X)
    bench.branches.prepare(X)
    bench.state.restart()
    assert bench.branches.commit(X) is OK
    assert bench.ready("lasting") == [b"new"]
    assert bench.ready("losing") == []
    assert bench.dropped() == [(b"new", "losing", "restart")]


def test_transient_message_lost_at_restart_is_no_longer_in_doubt(bench: Bench) -> None:
    bench.queue("q")
    bench.publish("q", b"old", TRANSIENT)
    bench.prepared(1, accept="q")
    bench.state.restart()
    assert bench.branches.in_doubt == {}


# --- quorum queues ------------------------------------------------------------------------------------------


def test_consumer_timeout_does_not_return_message_of_prepared_branch() -> None:
    bench = Bench(PERSONALITIES["rabbitmq-4.3"])
    bench.queue("q", "quorum", consumer_timeout=60_000)
    for body in (b"1", b"2"):
        bench.publish("q", body)
    bench.branches.start("a", X)
    reader = subscribe(bench, "q")
    first, second = bench.host.queues["q"].unacked
    bench.accept(bench.work("a"), first)
    bench.branches.end("a", X)
    bench.branches.prepare(X)
    bench.advance(60)
    assert reader.late == 1
    assert bench.unacked("q") == [b"1"]
    assert not second.settled
    assert bench.branches.commit(X) is OK
    assert bench.unacked("q") == []


def test_rollback_does_not_release_delivery_already_released() -> None:
    bench = Bench()
    bench.queue("q")
    bench.publish("q", b"old")
    bench.branches.start("a", X)
    delivery = bench.take("q")
    bench.accept(bench.work("a"), delivery)
    bench.branches.end("a", X)
    release_all([delivery])
    assert bench.branches.rollback(X) is OK
    assert bench.ready("q") == [b"old"]


def test_unsubscribed_consumer_of_quorum_queue_counts_until_its_delivery_is_prepared(bench: Bench) -> None:
    bench.queue("q", "quorum")
    bench.publish("q", b"old")
    bench.branches.start("a", X)
    subscribe(bench, "q")
    queue = bench.host.queues["q"]
    bench.accept(bench.work("a"), next(iter(queue.unacked)))
    queue.unsubscribe(next(iter(queue.subscriptions)))
    assert queue.consumer_count == 1
    bench.branches.end("a", X)
    bench.branches.prepare(X)
    assert queue.consumer_count == 0


def test_restart_clears_consumer_of_delivery_in_doubt(bench: Bench) -> None:
    bench.queue("q")
    bench.publish("q", b"old")
    bench.prepared(1, accept="q")
    (delivery,) = bench.branches.in_doubt
    assert delivery.owner == "reader"
    bench.state.restart()
    assert (delivery.owner, delivery.holder, delivery.credits) == (None, None, ())
