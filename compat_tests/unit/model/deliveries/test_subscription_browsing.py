"""Subscriptions that only look."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.fakes import queued
from compat_tests.unit.model.readers import Reader, publish, text, waiting
from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.deliveries.subscription import Subscription
from fakeamqp.model.errors import AccessRefused, NotImplementedHere
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.model.queues import ClassicQueue, Queue, QueueDeclaration
from fakeamqp.model.queues.waiting import Fifo, IndexedFifo, PriorityFifo


def browser(queue: Queue, tag: str = "b", **terms: object) -> Reader:
    return Reader(queue, tag, acquires=False, **terms)  # type: ignore[arg-type]


@pytest.fixture
def queue(bench: Bench) -> Queue:
    return bench.queue("q")


def test_each_browser_sees_every_message_once_and_messages_stay_ready(queue: Queue) -> None:
    publish(queue, "abc")
    first = browser(queue, "1")
    second = browser(queue, "2")
    publish(queue, "de")
    assert first.seen == second.seen == waiting(queue) == "abcde"
    assert not queue.unacked
    queue.dispatch()
    assert first.seen == "abcde"


def test_browser_sees_only_messages_within_credit_and_continues_after_new_credit(queue: Queue) -> None:
    publish(queue, "abc")
    reader = browser(queue, messages=2)
    assert reader.seen == "ab"
    publish(queue, "d")
    reader.allow(1)
    assert reader.seen == "abc"
    reader.allow()
    assert reader.seen == "abcd"


def test_new_message_is_shown_to_browser_before_consumer_takes_it(queue: Queue) -> None:
    order: list[str] = []
    taker, looker = Reader(queue, "taker"), browser(queue, "looker")
    for each in (taker, looker):
        each.got = order  # Both write to one list.
    publish(queue, "a")
    assert order == ["a", "a"]
    assert [delivery.holder for delivery in taker.deliveries] == [taker.subscription]
    assert looker.deliveries[0].queued is taker.deliveries[0].queued
    assert not waiting(queue)
    assert list(queue.unacked) == taker.deliveries


def test_new_message_is_shown_to_browser_first_in_selecting_queue(queue: Queue) -> None:
    order: list[str] = []
    Reader(queue, "files", content_class="file")
    taker, looker = Reader(queue, "taker"), browser(queue, "looker")
    for each in (taker, looker):
        each.got = order  # Both write to one list.
    assert queue.selects
    publish(queue, "ab")
    assert order == ["a", "a", "b", "b"]
    assert not waiting(queue)


@pytest.mark.parametrize("selects", [False, True])
def test_browser_continues_once_message_beyond_its_credit_is_taken(queue: Queue, selects: bool) -> None:
    if selects:
        Reader(queue, "files", content_class="file")
    assert queue.selects == selects
    looker = browser(queue, octets=1)
    queue.virtual_host.publish(Message("", "q", PlainProperties(), b"large"))
    publish(queue, "a")
    assert looker.seen == ""
    Reader(queue, "taker", messages=1)
    assert (looker.seen, waiting(queue)) == ("a", "a")


def test_browser_does_not_see_message_taken_before_its_turn(queue: Queue) -> None:
    looker = browser(queue, messages=0)
    publish(queue, "abc")
    Reader(queue, "taker", messages=2)
    looker.allow()
    assert looker.seen == "c"


def test_browser_without_credit_does_not_disturb_round_robin_of_consumers(queue: Queue) -> None:
    browser(queue, messages=0)
    one, other = Reader(queue, "1"), Reader(queue, "2", no_ack=True)
    publish(queue, "abcd")
    assert (one.seen, other.seen) == ("ac", "bd")
    assert not waiting(queue)


def test_message_with_zero_ttl_goes_to_consumer_despite_browser_without_credit(queue: Queue) -> None:
    browser(queue, messages=0)
    taker = Reader(queue, "taker")
    queue.virtual_host.publish(Message("", "q", PlainProperties(expiration="0"), b"a", expiry=0.0))
    assert taker.seen == "a"


def test_requeued_message_is_seen_only_by_browser_still_behind_it(queue: Queue) -> None:
    publish(queue, "abcd")
    taker = Reader(queue, "taker", messages=2)
    ahead, behind = browser(queue, "ahead"), browser(queue, "behind", messages=0)
    assert ahead.seen == "cd"
    taker.grant.stop()
    release_all(taker.deliveries)
    behind.allow()
    assert (ahead.seen, "".join(behind.got)) == ("cd", "a*b*cd")
    assert waiting(queue) == "abcd"


def test_browser_does_not_see_requeued_message_twice(queue: Queue) -> None:
    looker = browser(queue)
    publish(queue, "ab")
    taker = Reader(queue, "taker", messages=2)
    taker.grant.stop()
    release_all(taker.deliveries)
    assert waiting(queue) == "ab"
    assert looker.seen == "ab"


def test_browser_sees_messages_in_priority_order(bench: Bench) -> None:
    queue = bench.queue("q", max_priority=9)
    looker = browser(queue, messages=0)
    publish(queue, "ab", priority=1)
    publish(queue, "c", priority=5)
    looker.allow(1)
    publish(queue, "d", priority=9)
    looker.allow()
    assert looker.seen == "cdab"


def test_no_local_browser_does_not_see_messages_of_its_own_connection(queue: Queue) -> None:
    me = object()
    looker = browser(queue, owner=me, no_local=True)
    publish(queue, "a", publisher=me)
    publish(queue, "b")
    assert looker.seen == "b"
    taker = Reader(queue, "taker")
    assert taker.seen == "ab", "nobody else is picky for it"


def test_no_ack_browser_receives_message_without_delivery(queue: Queue) -> None:
    publish(queue, "a")
    looker = browser(queue, no_ack=True)
    assert (looker.seen, looker.deliveries) == ("a", [])


# --- acquiring --------------------------------------------------------------------------------------------


def test_acquired_message_moves_from_ready_to_unacked(bench: Bench, queue: Queue) -> None:
    publish(queue, "abc")
    looker = browser(queue)
    delivery = looker.deliveries[1]
    assert not delivery.acquired
    bench.advance(5)
    assert queue.acquire(delivery)
    assert delivery.acquired
    assert delivery.delivered_at == bench.clock.now(), "from now on it is held"
    assert (waiting(queue), list(queue.unacked)) == ("ac", [delivery])
    accept_all([delivery])
    assert (waiting(queue), list(queue.unacked)) == ("ac", [])


def test_message_taken_purged_expired_released_or_deleted_cannot_be_acquired(
    bench: Bench, queue: Queue
) -> None:
    publish(queue, "ab")
    queue.virtual_host.publish(Message("", "q", PlainProperties(), b"c", expiry=5.0))
    publish(queue, "d")
    looker = browser(queue)
    taken, purged, expired, settled = looker.deliveries
    assert queue.get("client", no_ack=True) is not None
    assert not queue.acquire(taken)
    bench.advance(6)
    assert not queue.acquire(expired), "it expires behind the head, and nobody gets it all the same"
    release_all([settled])
    assert not queue.acquire(settled), "it was settled as not acquired"
    queue.purge()
    assert not queue.acquire(purged)
    publish(queue, "e")
    late = looker.deliveries[-1]
    queue.virtual_host.queues.delete("q", None)
    assert not queue.acquire(late)


def test_seen_message_can_be_acquired_after_browser_is_cancelled(queue: Queue) -> None:
    publish(queue, "abc")
    looker = browser(queue)
    looker.cancel()
    assert queue.acquire(looker.deliveries[1])
    assert waiting(queue) == "ac"
    assert queue.get("client", no_ack=True) is not None
    assert not queue.acquire(looker.deliveries[0])


def test_acquired_message_returns_to_its_old_position_when_released(queue: Queue) -> None:
    publish(queue, "abc")
    looker = browser(queue)
    delivery = looker.deliveries[1]
    queue.acquire(delivery)
    release_all([delivery])
    assert waiting(queue) == "abc"
    assert [each.redelivered for each in queue.ready] == [False, True, False]


def test_consumer_does_not_receive_message_acquired_by_browser(queue: Queue) -> None:
    publish(queue, "ab")
    looker = browser(queue)
    queue.acquire(looker.deliveries[0])
    assert Reader(queue, "taker").seen == "b"


def test_settling_delivery_not_acquired_calls_no_queue_method(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    for method in ("forget", "reject", "taking_back"):
        monkeypatch.setattr(ClassicQueue, method, lambda *_, name=method, **__: heard.append(name))
    publish(queue, "a")
    for settle in (accept_all, reject_all, release_all):
        settle(browser(queue).deliveries)
    assert heard == []


# --- what subscriptions have in common --------------------------------------------------------------------


def test_browser_counts_in_consumer_count(queue: Queue) -> None:
    looker = browser(queue)
    assert queue.consumer_count == 1
    looker.cancel()
    assert queue.consumer_count == 0


def test_auto_delete_queue_is_deleted_when_last_browser_is_cancelled(bench: Bench) -> None:
    queue = bench.host.queues.declare("q", QueueDeclaration(auto_delete=True))
    taker, looker = Reader(queue, "taker"), browser(queue)
    taker.cancel()
    assert not queue.deleted
    looker.cancel()
    assert queue.deleted


def test_exclusive_access_conflicts_with_browser_in_both_directions(queue: Queue) -> None:
    looker = browser(queue)
    with pytest.raises(AccessRefused):
        Reader(queue, "x", exclusive=True)
    looker.cancel()
    Reader(queue, "x", exclusive=True)
    with pytest.raises(AccessRefused):
        browser(queue)


def test_browser_never_becomes_single_active_consumer(bench: Bench) -> None:
    queue = bench.queue("q", single_active_consumer=True)
    looker, first = browser(queue), Reader(queue, "1")
    second, third = Reader(queue, "2"), browser(queue, "late", priority=9)
    publish(queue, "a")
    assert (looker.seen, first.seen, second.seen, third.seen) == ("a", "a", "", "a")
    first.cancel()
    publish(queue, "b")
    assert (looker.seen, second.seen) == ("ab", "b")
    second.cancel()
    publish(queue, "c")
    assert (looker.seen, waiting(queue)) == ("abc", "c")


def test_browser_is_cancelled_when_queue_is_deleted(bench: Bench, queue: Queue) -> None:
    looker = browser(queue)
    bench.host.queues.delete("q", None)
    assert looker.was_cancelled
    looker.allow()
    queue.dispatch()


def test_queue_with_only_browsers_has_no_taker_for_immediate_message(queue: Queue) -> None:
    browser(queue)
    assert not queue.could_take(queued(1).message)
    assert queue.next_taker(queued(1).message) is None


def test_ready_list_gets_its_plain_type_back_after_last_browser_is_cancelled(queue: Queue) -> None:
    before = type(queue.ready)
    looker, other = browser(queue), browser(queue, "2")
    publish(queue, "ab")
    looker.cancel()
    other.cancel()
    assert type(queue.ready) is before
    publish(queue, "c")
    assert waiting(queue) == "abc"
    assert Reader(queue, "taker").seen == "abc"
    assert looker.seen == "ab"


def test_max_length_drops_from_head_despite_browsers(bench: Bench) -> None:
    queue = bench.queue("q", max_length=2)
    looker, slow = browser(queue), browser(queue, "slow", messages=0)
    publish(queue, "abcd")
    assert looker.seen == "abcd"
    slow.allow()
    assert slow.seen == waiting(queue) == "cd"


def test_browser_does_not_see_expired_message(bench: Bench) -> None:
    queue = bench.queue("q", message_ttl=5000)
    slow = browser(queue, messages=0)
    publish(queue, "a")
    bench.advance(3)
    publish(queue, "b")
    bench.advance(3)
    slow.allow()
    assert slow.seen == "b"


def test_persistent_message_acquired_by_browser_survives_restart(bench: Bench, queue: Queue) -> None:
    looker = browser(queue)
    publish(queue, "a", delivery_mode=2)
    publish(queue, "b")
    queue.acquire(looker.deliveries[0])
    looker.cancel()
    bench.state.restart()
    assert [text(each.message) for each in queue.ready] == ["a"]


def test_browsing_quorum_queue_is_refused(bench: Bench) -> None:
    queue = bench.queue("q", "quorum")
    with pytest.raises(NotImplementedHere, match="cannot be browsed"):
        browser(queue)
    assert not queue.subscriptions


def test_stream_browser_sees_all_messages_from_first_and_cannot_acquire(bench: Bench) -> None:
    queue = bench.queue("q", "stream")
    publish(queue, "ab")
    looker = browser(queue, messages=3)
    publish(queue, "cd")
    assert looker.seen == "abc"
    looker.allow()
    assert looker.seen == "abcd"
    assert not queue.unacked
    assert not queue.acquire(looker.deliveries[0]), "what is in a stream belongs to nobody"
    release_all(looker.deliveries)
    assert len(queue.ready) == 4


def test_stream_consumer_receives_messages_within_granted_credit(bench: Bench) -> None:
    queue = bench.queue("q", "stream")
    taker = Reader(queue, messages=1)
    publish(queue, "ab")
    assert taker.seen == "a"
    accept_all(taker.deliveries)
    taker.allow()
    assert taker.seen == "ab"


# --- cost and consistency ---------------------------------------------------------------------------------


class Counted(Fifo):
    """Counts how often its items are walked through."""

    def __init__(self) -> None:
        super().__init__()
        self.walks = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        self.walks += 1
        return super().__iter__()


def test_publishing_to_browsed_queue_does_not_iterate_ready_messages(queue: Queue) -> None:
    """A browser keeps its place; the queue is not searched for it."""
    publish(queue, "a" * 500)
    looker, idle = browser(queue), browser(queue, "idle", messages=0)
    assert isinstance(queue.ready, IndexedFifo)
    counted = Counted()
    counted.put_back(queue.ready.clear())
    queue.ready = IndexedFifo(counted)  # type: ignore[attr-defined]
    walks = counted.walks
    publish(queue, "b" * 500)
    assert len(looker.got) == 1000 and not idle.got
    assert counted.walks == walks


def test_idle_browser_does_not_keep_messages_already_consumed(queue: Queue) -> None:
    idle = browser(queue, messages=0)
    taker = Reader(queue, "taker", no_ack=True)
    publish(queue, "a" * 2000)
    assert len(taker.got) == 2000
    kept = queue._browsing._browsers[idle.subscription]._ahead  # type: ignore[attr-defined]
    assert len(kept) < 200
    taker.cancel()
    publish(queue, "bc")
    idle.allow()
    assert idle.seen == "bc"


def test_idle_browser_keeps_all_messages_still_in_queue(bench: Bench) -> None:
    queue = bench.queue("q", max_priority=9)
    idle = browser(queue, messages=0)
    taker = Reader(queue, "taker", messages=3)
    publish(queue, "abcdef", priority=1)
    for _ in range(500):
        publish(queue, "x", priority=2)
        taken = queue.get("client", no_ack=True)
        assert taken is not None and text(taken[0].message) == "x"
    assert len(queue._browsing._browsers[idle.subscription]._ahead) < 200  # type: ignore[attr-defined]
    taker.cancel()
    release_all(taker.deliveries)
    idle.allow()
    assert idle.seen == "a*b*c*def"


@pytest.mark.parametrize("plain", [Fifo, lambda: PriorityFifo(3)], ids=["plain", "priority"])
@given(st.data())
def test_indexed_fifo_knows_which_messages_it_contains(plain: object, data: st.DataObject) -> None:
    ready = IndexedFifo(plain())  # type: ignore[operator]
    known = []
    out = []
    for position in range(data.draw(st.integers(0, 12))):
        known.append(queued(position, data.draw(st.integers(0, 5))))
        ready.append(known[-1])
    for _ in range(data.draw(st.integers(0, 12))):
        what = data.draw(st.sampled_from(["pop", "pop_lowest", "remove", "put_back"]))
        if what == "put_back":
            ready.put_back(iter(out))
            out = []
        elif len(ready):
            if what == "remove":
                out.append(data.draw(st.sampled_from(list(ready))))
                ready.remove(out[-1])
            else:
                out.append(getattr(ready, what)())
        for each in known:
            assert (each in ready) == (each not in out)
        assert len(ready) == len(list(ready)) == len(known) - len(out)
    ready.clear()
    assert not ready and not any(each in ready for each in known)


ACTIONS = ("publish", "look", "take", "get", "release", "accept", "allow", "acquire", "go", "purge")


@pytest.mark.parametrize("arguments", [{}, {"max_priority": 2}], ids=["plain", "priority"])
@pytest.mark.parametrize("personality", [None, PERSONALITIES["spec"]], ids=["rabbitmq", "spec"])
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 7)), max_size=60))
def test_browser_sees_every_ready_message_at_most_once_in_random_programs(
    arguments: dict[str, int], personality: object, actions: list[tuple[str, int]]
) -> None:
    """Each browser has seen every message that is ready at the end, except requeued ones."""
    bench = Bench() if personality is None else Bench(PERSONALITIES["spec"])
    queue = bench.queue("q", **arguments)
    lookers: list[Reader] = []
    takers: list[Reader] = []
    came_back: set[str] = set()
    number = 0
    for action, choice in actions:
        if action == "publish":
            number += 1
            body = chr(0x4E00 + number)
            publish(queue, body, priority=choice % 3)
        elif action == "look":
            lookers.append(browser(queue, f"l{len(lookers)}", messages=choice))
        elif action == "take":
            takers.append(Reader(queue, f"t{len(takers)}", messages=choice))
        elif action == "get":
            queue.get("client", no_ack=True)
        elif action == "purge" and choice == 0:
            queue.purge()
        elif action == "allow" and lookers:
            lookers[choice % len(lookers)].allow(choice)
        elif action == "go" and lookers:
            lookers.pop(choice % len(lookers)).cancel()
        elif action == "acquire" and lookers:
            looker = lookers[choice % len(lookers)]
            for delivery in looker.deliveries[:choice]:
                queue.acquire(delivery)
        elif action in ("release", "accept"):
            held = [each for each in queue.unacked if not each.settled][: choice + 1]
            if action == "accept":
                accept_all(held)
            else:
                came_back |= {text(each.queued.message) for each in held}
                release_all(held)
    for looker in lookers:
        looker.allow()
        seen = [each.rstrip("*") for each in looker.got]
        assert len(seen) == len(set(seen))
        left = set(waiting(queue)) - came_back
        assert left <= set(seen), "something waits that was never shown"
    assert len(queue.ready) == len(waiting(queue))


def test_subscription_acquires_messages_by_default(queue: Queue) -> None:
    subscription = Subscription("t", queue, Reader(queue), owner=None, group=None)
    assert subscription.acquires
