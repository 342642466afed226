"""Alternate exchanges of queues and exchanges that were declared beside the arguments."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.readers import Reader, publish, waiting
from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import NotAllowed, NotFound
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.operations import carry_out
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.model.queues import Queue, QueueDeclaration

KINDS = ("classic", "quorum")


@pytest.fixture
def dead(bench: Bench) -> Queue:
    """Where everything ends that goes to exchange `alt`."""
    queue = bench.queue("dead")
    bench.host.bindings.bind(bench.host.exchanges.declare("alt", "fanout", durable=True).name, queue, "")
    return queue


def with_alternate(bench: Bench, kind: str = "classic", name: str = "q", **arguments: object) -> Queue:
    spelled = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return bench.host.queues.declare(
        name,
        QueueDeclaration(durable=True, alternate_exchange="alt", arguments={"x-queue-type": kind, **spelled}),
    )


def passed_on(bench: Bench) -> list[Any]:
    assert bench.state.outcome_histories is not None
    return list(bench.state.outcome_histories.dead_lettered)


# --- rejected messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rejected_message_goes_unchanged_to_alternate_exchange(bench: Bench, dead: Queue, kind: str) -> None:
    queue = with_alternate(bench, kind)
    publish(queue, "ab", headers={"k": 1}, expiration="60000")
    reader = Reader(queue)
    original = reader.deliveries[0].queued.message
    reject_all(reader.deliveries)
    assert waiting(dead) == "ab"
    arrived = next(iter(dead.ready))
    assert arrived.message is original
    assert not arrived.redelivered
    first = passed_on(bench)[0]
    assert (first.queue, first.reason, first.exchange, first.routing_key) == ("q", "rejected", "alt", "q")
    assert bench.dropped() == []


def test_dead_letter_exchange_takes_precedence_over_alternate_exchange(bench: Bench, dead: Queue) -> None:
    other = bench.queue("other")
    queue = with_alternate(bench, dead_letter_exchange="", dead_letter_routing_key="other")
    publish(queue, "a")
    reject_all(Reader(queue).deliveries)
    assert (waiting(other), waiting(dead)) == ("a", "")
    assert "x-death" in next(iter(other.ready)).message.headers


def test_alternate_exchange_is_used_when_dead_letter_exchange_is_missing(bench: Bench, dead: Queue) -> None:
    queue = with_alternate(bench, dead_letter_exchange="nowhere")
    publish(queue, "a")
    reject_all(Reader(queue).deliveries)
    assert waiting(dead) == "a"


def test_expired_overflowing_and_purged_messages_do_not_go_to_alternate_exchange(
    bench: Bench, dead: Queue
) -> None:
    queue = with_alternate(bench, max_length=2)
    queue.virtual_host.publish(Message("", "q", PlainProperties(), b"a", expiry=1.0))
    bench.advance(2)
    publish(queue, "bcd")
    queue.purge()
    assert waiting(dead) == ""
    assert [reason for _, _, reason in bench.dropped()] == ["expired", "maxlen", "purged", "purged"]


def test_message_unroutable_by_alternate_goes_to_alternate_of_that_exchange(bench: Bench) -> None:
    last = bench.queue("last")
    bench.host.exchanges.declare("behind", "fanout")
    bench.host.bindings.bind("behind", last, "")
    bench.host.exchanges.declare("alt", "direct", alternate_exchange="behind")
    queue = with_alternate(bench)
    publish(queue, "ab")
    reader = Reader(queue, messages=1)
    reject_all(reader.deliveries)
    bench.host.queues.delete("q", None)
    assert waiting(last) == "ab"


def test_rejected_message_unroutable_by_alternate_is_dropped_with_detail(bench: Bench) -> None:
    bench.host.exchanges.declare("alt", "direct")
    queue = with_alternate(bench)
    publish(queue, "a")
    reject_all(Reader(queue).deliveries)
    assert bench.state.outcome_histories is not None
    (end,) = bench.state.outcome_histories.dropped
    assert (end.queue, end.reason) == ("q", "rejected")
    assert end.detail == "alternate exchange 'alt' found no queue for routing key 'q'"


def test_drop_detail_names_deleted_alternate_exchange(bench: Bench, dead: Queue) -> None:
    queue = with_alternate(bench)
    publish(queue, "a")
    bench.host.exchanges.delete("alt")
    reject_all(Reader(queue).deliveries)
    assert bench.state.outcome_histories is not None
    assert [each.detail for each in bench.state.outcome_histories.dropped] == [
        "alternate exchange 'alt' does not exist"
    ]


def test_rejected_message_does_not_return_to_queue_bound_to_its_own_alternate(
    bench: Bench, dead: Queue
) -> None:
    queue = with_alternate(bench)
    bench.host.bindings.bind("alt", queue, "")
    publish(queue, "a")
    reader = Reader(queue)
    reject_all(reader.deliveries)
    assert reader.seen == "a"
    assert (waiting(queue), waiting(dead)) == ("", "a")
    assert bench.dropped() == [(b"a", "q", "cycle")]
    bench.host.queues.delete("dead", None)
    publish(queue, "b")
    reject_all(reader.deliveries[1:])
    assert reader.seen == "ab"


def test_message_of_queues_with_mutual_alternates_is_dropped_when_both_are_deleted(bench: Bench) -> None:
    for name in ("alt", "back"):
        bench.host.exchanges.declare(name, "fanout")
    q = with_alternate(bench)
    other = bench.host.queues.declare("other", QueueDeclaration(durable=True, alternate_exchange="back"))
    bench.host.bindings.bind("alt", other, "")
    bench.host.bindings.bind("back", q, "")
    publish(q, "a")
    reject_all(Reader(q).deliveries)
    assert waiting(other) == "a"
    bench.host.queues.delete("q", None)
    bench.host.queues.delete("other", None)
    assert bench.dropped() == [(b"a", "other", "deleted")]


def test_publish_after_rejection_to_alternate_still_routes_to_queue(bench: Bench, dead: Queue) -> None:
    queue = with_alternate(bench)
    publish(queue, "a")
    reject_all(Reader(queue, messages=1).deliveries)
    publish(queue, "b")
    assert (waiting(queue), waiting(dead)) == ("b", "a")


# --- deleted queues ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_deleted_queue_go_to_alternate_in_order(bench: Bench, dead: Queue, kind: str) -> None:
    queue = with_alternate(bench, kind)
    publish(queue, "abc")
    told: list[int] = []
    bench.host.queues.delete("q", None, confirm=told.append)
    assert waiting(dead) == "abc"
    assert told == [3]
    assert {(each.queue, each.reason, each.exchange) for each in passed_on(bench)} == {
        ("q", "deleted", "alt")
    }
    assert bench.dropped() == []


def test_messages_of_deleted_priority_queue_go_to_alternate_highest_priority_first(
    bench: Bench, dead: Queue
) -> None:
    queue = with_alternate(bench, max_priority=5)
    publish(queue, "ab", priority=1)
    publish(queue, "c", priority=5)
    Reader(queue, messages=1)
    bench.host.queues.delete("q", None)
    assert waiting(dead) == "cab"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settle", [accept_all, reject_all, release_all])
def test_unacked_messages_of_deleted_queue_go_to_alternate_exactly_once(
    bench: Bench, dead: Queue, kind: str, settle: object
) -> None:
    queue = with_alternate(bench, kind)
    publish(queue, "abcde")
    one, other = Reader(queue, "1", messages=1), Reader(queue, "2", messages=2)
    bench.host.queues.delete("q", None)
    assert waiting(dead) == "abcde"
    assert not queue.unacked
    for reader in (one, other):
        assert reader.was_cancelled
        settle(reader.deliveries)  # type: ignore[operator]
    assert waiting(dead) == "abcde"
    assert bench.dropped() == []


def test_accepting_deliveries_of_deleted_queue_returns_credit(bench: Bench, dead: Queue) -> None:
    from fakeamqp.model.deliveries.subscription import Credit

    queue = with_alternate(bench)
    publish(queue, "a")
    credit = Credit(1)
    reader = Reader(queue, credits=(credit,), limits=(credit,))
    assert not credit.open
    bench.host.queues.delete("q", None)
    accept_all(reader.deliveries)
    assert credit.open


def test_deleted_queue_bound_to_its_own_alternate_still_passes_on_messages(bench: Bench, dead: Queue) -> None:
    queue = with_alternate(bench)
    bench.host.bindings.bind("alt", queue, "")
    publish(queue, "abc")
    bench.host.queues.delete("q", None)
    assert waiting(dead) == "abc"
    assert bench.dropped() == []


@pytest.mark.parametrize("released_first", [True, False])
def test_auto_deleted_queue_passes_all_messages_to_alternate(
    bench: Bench, dead: Queue, released_first: bool
) -> None:
    queue = bench.host.queues.declare("q", QueueDeclaration(auto_delete=True, alternate_exchange="alt"))
    publish(queue, "abc")
    reader = Reader(queue, messages=1)
    if released_first:
        release_all(reader.deliveries)
        reader.cancel()
    else:
        reader.cancel()
        release_all(reader.deliveries)
    assert queue.deleted
    assert waiting(dead) == "abc"


def test_expired_queue_passes_messages_to_alternate(bench: Bench, dead: Queue) -> None:
    publish(with_alternate(bench, expires=1000), "a")
    bench.advance(2)
    assert waiting(dead) == "a"


def test_transient_queue_lost_at_restart_passes_no_message_to_alternate(bench: Bench, dead: Queue) -> None:
    queue = bench.host.queues.declare("q", QueueDeclaration(alternate_exchange="alt"))
    publish(queue, "a", delivery_mode=2)
    bench.state.restart()
    assert waiting(dead) == ""
    assert bench.dropped() == [(b"a", "q", "restart")]


def test_durable_queue_keeps_alternate_exchange_over_restart(bench: Bench, dead: Queue) -> None:
    queue = with_alternate(bench)
    publish(queue, "a", delivery_mode=2)
    bench.state.restart()
    bench.host.queues.delete("q", None)
    assert waiting(dead) == "a"


def test_alternate_takes_precedence_over_dead_letter_exchange_of_deleted_queue() -> None:
    bench = Bench(PERSONALITIES["spec"])
    target = bench.queue("dead")
    bench.host.exchanges.declare("alt", "fanout")
    bench.host.bindings.bind("alt", target, "")
    queue = with_alternate(bench, dead_letter_exchange="amq.fanout")
    publish(queue, "ab")
    Reader(queue, messages=1)
    bench.host.queues.delete("q", None)
    assert waiting(target) == "ab"


def test_messages_of_deleted_stream_do_not_go_to_alternate(bench: Bench, dead: Queue) -> None:
    publish(with_alternate(bench, "stream"), "a")
    bench.host.queues.delete("q", None)
    assert waiting(dead) == ""
    assert bench.dropped() == [(b"a", "q", "deleted")]


def test_messages_parked_for_delayed_retry_go_to_alternate_of_deleted_queue() -> None:
    from fakeamqp.model.personality import PERSONALITIES

    bench = Bench(PERSONALITIES["rabbitmq-4.3"])
    target = bench.queue("dead")
    bench.host.exchanges.declare("alt", "fanout")
    bench.host.bindings.bind("alt", target, "")
    queue = with_alternate(bench, "quorum", delayed_retry_type="all", delayed_retry_min=60_000)
    publish(queue, "a")
    reader = Reader(queue, messages=1)
    release_all(reader.deliveries)
    assert queue.parked_count == 1
    publish(queue, "b")
    bench.host.queues.delete("q", None)
    assert waiting(target) == "ba"
    assert bench.dropped() == []


def test_message_of_deleted_queue_stays_with_prepared_branch_until_rollback(
    bench: Bench, dead: Queue
) -> None:
    """A message that the branch accepts is gone after the commit; one it gives back goes to the alternate."""
    from compat_tests.unit.model.bench import xid

    queue = with_alternate(bench)
    publish(queue, "abc")
    committed = bench.prepared(1, accept="q")
    rolled_back = bench.prepared(2, accept="q")
    assert committed == xid(1)
    bench.host.queues.delete("q", None)
    assert waiting(dead) == "c"
    bench.branches.commit(committed)
    assert waiting(dead) == "c"
    bench.branches.rollback(rolled_back)
    assert waiting(dead) == "cb"


# --- declaring --------------------------------------------------------------------------------------------


def test_declaring_with_missing_alternate_exchange_is_refused(bench: Bench) -> None:
    with pytest.raises(NotFound, match="no exchange 'missing'"):
        bench.host.queues.declare("q", QueueDeclaration(durable=True, alternate_exchange="missing"))
    with pytest.raises(NotFound, match="no exchange 'missing'"):
        bench.host.exchanges.declare("e", "direct", alternate_exchange="missing")
    assert "q" not in bench.host.queues and "e" not in bench.host.exchanges


@pytest.mark.parametrize("kind", ["queue", "exchange"])
def test_redeclaring_with_different_alternate_exchange_is_refused(bench: Bench, kind: str) -> None:
    def declare(name: str, alternate: str | None) -> object:
        if kind == "queue":
            return bench.host.queues.declare(
                name, QueueDeclaration(durable=True, alternate_exchange=alternate)
            )
        return bench.host.exchanges.declare(name, "direct", alternate_exchange=alternate)

    first = declare("with", "amq.fanout")
    assert declare("with", "amq.fanout") is first
    assert declare("with", None) is first
    with pytest.raises(NotAllowed, match=r"has alternate exchange 'amq\.fanout', not 'amq\.topic'"):
        declare("with", "amq.topic")
    declare("without", None)
    with pytest.raises(NotAllowed, match=r"has no alternate exchange, not 'amq\.topic'"):
        declare("without", "amq.topic")


def test_exchange_is_used_as_alternate_until_last_user_is_deleted(bench: Bench) -> None:
    host = bench.host
    assert not host.exchanges.used_as_alternate("amq.fanout")
    host.queues.declare("q", QueueDeclaration(durable=True, alternate_exchange="amq.fanout"))
    assert host.exchanges.used_as_alternate("amq.fanout")
    host.queues.delete("q", None)
    assert not host.exchanges.used_as_alternate("amq.fanout")
    host.exchanges.declare("e", "direct", alternate_exchange="amq.fanout")
    host.exchanges.declare("f", "direct", arguments={"alternate-exchange": "amq.topic"})
    assert host.exchanges.used_as_alternate("amq.fanout") and host.exchanges.used_as_alternate("amq.topic")
    host.exchanges.delete("e")
    assert not host.exchanges.used_as_alternate("amq.fanout")


def test_policy_does_not_override_declared_alternate_exchange(bench: Bench) -> None:
    exchange = bench.host.exchanges.declare("e", "direct", alternate_exchange="amq.fanout")
    plain = bench.host.exchanges.declare("plain", "direct")
    definition = {"alternate-exchange": "amq.topic"}
    policy = {"pattern": ".*", "definition": definition, "priority": 0, "apply-to": "exchanges"}
    carry_out(bench.host.policies.setting("p", policy))
    assert (exchange.alternate_exchange, plain.alternate_exchange) == ("amq.fanout", "amq.topic")
    carry_out(bench.host.policies.clearing("p"))
    assert (exchange.alternate_exchange, plain.alternate_exchange) == ("amq.fanout", None)


# --- exchanges --------------------------------------------------------------------------------------------


def test_message_follows_declared_alternate_exchanges_for_one_step_only(bench: Bench) -> None:
    last = bench.queue("last")
    bench.host.exchanges.declare("third", "fanout")
    bench.host.bindings.bind("third", last, "")
    bench.host.exchanges.declare("second", "direct", alternate_exchange="third")
    bench.host.exchanges.declare("first", "direct", alternate_exchange="second")
    for exchange, expected in (("first", ""), ("second", "a")):
        bench.host.publish(Message(exchange, "k", PlainProperties(), b"a"))
        assert waiting(last) == expected


def test_message_follows_alternate_exchanges_set_by_argument_to_the_end(bench: Bench) -> None:
    last = bench.queue("last")
    bench.host.exchanges.declare("third", "fanout")
    bench.host.bindings.bind("third", last, "")
    bench.host.exchanges.declare("second", "direct", arguments={"alternate-exchange": "third"})
    bench.host.exchanges.declare("first", "direct", arguments={"alternate-exchange": "second"})
    bench.host.publish(Message("first", "k", PlainProperties(), b"a"))
    assert waiting(last) == "a"


# --- the end of an owner ----------------------------------------------------------------------------------


def owned(bench: Bench, owner: object, **flags: bool) -> Queue:
    return bench.host.queues.declare(
        "q", QueueDeclaration(owner=owner, exclusive=True, alternate_exchange="alt", **flags)
    )


def test_exclusive_queue_passes_messages_to_alternate_when_owner_ends(bench: Bench, dead: Queue) -> None:
    session = object()
    queue = owned(bench, session)
    publish(queue, "abc")
    Reader(queue, messages=1)
    bench.host.queues.release_owner(session)
    assert queue.deleted
    assert waiting(dead) == "abc"


def test_freeable_auto_delete_queue_is_deleted_only_when_owner_ends(bench: Bench, dead: Queue) -> None:
    session = object()
    queue = owned(bench, session, freeable=True, auto_delete=True)
    Reader(queue).cancel()
    assert not queue.deleted
    publish(queue, "a")
    bench.host.queues.release_owner(session)
    assert queue.deleted
    assert waiting(dead) == "a"


def test_freeable_has_no_effect_on_non_exclusive_queue(bench: Bench) -> None:
    queue = bench.host.queues.declare("q", QueueDeclaration(owner=object(), auto_delete=True, freeable=True))
    Reader(queue).cancel()
    assert queue.deleted
