"""Subscriptions that only look."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.model.fakes import queued
from compat_tests.unit.model.readers import Reader, publish, text, waiting
from compat_tests.unit.model.transactions.bench import Bench
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
def bench() -> Bench:
    return Bench()


@pytest.fixture
def queue(bench: Bench) -> Queue:
    return bench.queue("q")


def test_each_sees_what_waits_and_what_comes_once_and_it_stays(queue: Queue) -> None:
    publish(queue, "abc")
    first = browser(queue, "1")
    second = browser(queue, "2")
    publish(queue, "de")
    assert first.seen == second.seen == waiting(queue) == "abcde"
    assert not queue.unacked
    queue.dispatch()
    assert first.seen == "abcde"


def test_it_sees_as_much_as_its_credit_allows_and_goes_on_later(queue: Queue) -> None:
    publish(queue, "abc")
    reader = browser(queue, messages=2)
    assert reader.seen == "ab"
    publish(queue, "d")
    reader.allow(1)
    assert reader.seen == "abc"
    reader.allow()
    assert reader.seen == "abcd"


def test_a_new_message_is_shown_before_it_is_taken(queue: Queue) -> None:
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


def test_it_is_shown_before_it_is_taken_where_messages_are_selected_too(queue: Queue) -> None:
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
def test_it_goes_on_when_a_message_beyond_its_credit_is_taken(queue: Queue, selects: bool) -> None:
    if selects:
        Reader(queue, "files", content_class="file")
    assert queue.selects == selects
    looker = browser(queue, octets=1)
    queue.virtual_host.publish(Message("", "q", PlainProperties(), b"large"))
    publish(queue, "a")
    assert looker.seen == ""
    Reader(queue, "taker", messages=1)
    assert (looker.seen, waiting(queue)) == ("a", "a")


def test_what_was_taken_before_its_turn_is_not_seen(queue: Queue) -> None:
    looker = browser(queue, messages=0)
    publish(queue, "abc")
    Reader(queue, "taker", messages=2)
    looker.allow()
    assert looker.seen == "c"


def test_consumers_are_served_beside_browsers(queue: Queue) -> None:
    browser(queue, messages=0)
    one, other = Reader(queue, "1"), Reader(queue, "2", no_ack=True)
    publish(queue, "abcd")
    assert (one.seen, other.seen) == ("ac", "bd")
    assert not waiting(queue)


def test_a_message_that_may_not_wait_goes_to_who_is_able(queue: Queue) -> None:
    """Its time to live is 0."""
    browser(queue, messages=0)
    taker = Reader(queue, "taker")
    queue.virtual_host.publish(Message("", "q", PlainProperties(expiration="0"), b"a", expiry=0.0))
    assert taker.seen == "a"


def test_what_comes_back_is_seen_by_who_had_not_come_so_far(queue: Queue) -> None:
    publish(queue, "abcd")
    taker = Reader(queue, "taker", messages=2)
    ahead, behind = browser(queue, "ahead"), browser(queue, "behind", messages=0)
    assert ahead.seen == "cd"
    taker.grant.stop()
    release_all(taker.deliveries)
    behind.allow()
    assert (ahead.seen, "".join(behind.got)) == ("cd", "a*b*cd")
    assert waiting(queue) == "abcd"


def test_nobody_sees_a_message_twice(queue: Queue) -> None:
    looker = browser(queue)
    publish(queue, "ab")
    taker = Reader(queue, "taker", messages=2)
    taker.grant.stop()
    release_all(taker.deliveries)
    assert waiting(queue) == "ab"
    assert looker.seen == "ab"


def test_priorities_are_seen_in_the_order_of_the_queue(bench: Bench) -> None:
    queue = bench.queue("q", max_priority=9)
    looker = browser(queue, messages=0)
    publish(queue, "ab", priority=1)
    publish(queue, "c", priority=5)
    looker.allow(1)
    publish(queue, "d", priority=9)
    looker.allow()
    assert looker.seen == "cdab"


def test_no_local_holds_for_browsers_too(queue: Queue) -> None:
    me = object()
    looker = browser(queue, owner=me, no_local=True)
    publish(queue, "a", publisher=me)
    publish(queue, "b")
    assert looker.seen == "b"
    taker = Reader(queue, "taker")
    assert taker.seen == "ab", "nobody else is picky for it"


def test_who_expects_no_settlement_gets_no_delivery(queue: Queue) -> None:
    publish(queue, "a")
    looker = browser(queue, no_ack=True)
    assert (looker.seen, looker.deliveries) == ("a", [])


# --- acquiring --------------------------------------------------------------------------------------------


def test_what_is_acquired_waits_no_longer(bench: Bench, queue: Queue) -> None:
    publish(queue, "abc")
    looker = browser(queue)
    delivery = looker.deliveries[1]
    assert not delivery.acquired
    bench.advance(5)
    assert queue.acquire(delivery)
    assert delivery.acquired
    assert delivery.delivered_at == bench.clock.instant, "from now on it is held"
    assert (waiting(queue), list(queue.unacked)) == ("ac", [delivery])
    accept_all([delivery])
    assert (waiting(queue), list(queue.unacked)) == ("ac", [])


def test_one_only_acquires_a_message(queue: Queue) -> None:
    publish(queue, "a")
    first, second = browser(queue, "1"), browser(queue, "2")
    assert queue.acquire(first.deliveries[0])
    assert not queue.acquire(second.deliveries[0])
    assert not queue.acquire(first.deliveries[0]), "it has it already"


def test_what_has_gone_cannot_be_acquired(bench: Bench, queue: Queue) -> None:
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


def test_it_can_be_acquired_after_the_subscription_has_ended(queue: Queue) -> None:
    publish(queue, "abc")
    looker = browser(queue)
    looker.cancel()
    assert queue.acquire(looker.deliveries[1])
    assert waiting(queue) == "ac"
    assert queue.get("client", no_ack=True) is not None
    assert not queue.acquire(looker.deliveries[0])


def test_what_was_acquired_and_released_is_in_its_old_place(queue: Queue) -> None:
    publish(queue, "abc")
    looker = browser(queue)
    delivery = looker.deliveries[1]
    queue.acquire(delivery)
    release_all([delivery])
    assert waiting(queue) == "abc"
    assert [each.redelivered for each in queue.ready] == [False, True, False]


def test_a_consumer_that_waits_for_the_next_one_does_not_get_what_was_acquired(queue: Queue) -> None:
    publish(queue, "ab")
    looker = browser(queue)
    queue.acquire(looker.deliveries[0])
    assert Reader(queue, "taker").seen == "b"


@pytest.mark.parametrize("settle", [accept_all, reject_all, release_all])
def test_settling_what_was_only_seen_does_nothing(queue: Queue, settle: object) -> None:
    publish(queue, "ab")
    one, other = browser(queue, "1"), browser(queue, "2")
    for each in (one, other):
        settle(each.deliveries)  # type: ignore[operator]
    assert waiting(queue) == "ab"
    assert [(each.redelivered, each.returns) for each in queue.ready] == [(False, 0), (False, 0)]


def test_the_queue_hears_nothing_of_settling_what_was_only_seen(
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


def test_browsers_count_as_subscriptions(queue: Queue) -> None:
    looker = browser(queue)
    assert queue.consumer_count == 1
    looker.cancel()
    assert queue.consumer_count == 0


def test_an_auto_delete_queue_goes_with_its_last_subscription(bench: Bench) -> None:
    queue = bench.host.queues.declare("q", QueueDeclaration(auto_delete=True))
    taker, looker = Reader(queue, "taker"), browser(queue)
    taker.cancel()
    assert not queue.deleted
    looker.cancel()
    assert queue.deleted


def test_exclusive_access_is_meant_for_browsers_too(queue: Queue) -> None:
    looker = browser(queue)
    with pytest.raises(AccessRefused):
        Reader(queue, "x", exclusive=True)
    looker.cancel()
    Reader(queue, "x", exclusive=True)
    with pytest.raises(AccessRefused):
        browser(queue)


def test_a_browser_is_never_the_single_active_consumer(bench: Bench) -> None:
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


def test_browsers_are_told_when_the_queue_goes(bench: Bench, queue: Queue) -> None:
    looker = browser(queue)
    bench.host.queues.delete("q", None)
    assert looker.was_cancelled
    looker.allow()
    queue.dispatch()


def test_no_browser_keeps_an_immediate_message(queue: Queue) -> None:
    browser(queue)
    assert not queue.could_take(queued(1).message)
    assert queue.next_taker(queued(1).message) is None


def test_when_the_last_browser_has_gone_the_queue_is_as_plain_as_before(queue: Queue) -> None:
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


def test_limits_drop_from_the_head_whoever_looks(bench: Bench) -> None:
    queue = bench.queue("q", max_length=2)
    looker, slow = browser(queue), browser(queue, "slow", messages=0)
    publish(queue, "abcd")
    assert looker.seen == "abcd"
    slow.allow()
    assert slow.seen == waiting(queue) == "cd"


def test_what_has_expired_is_not_seen(bench: Bench) -> None:
    queue = bench.queue("q", message_ttl=5000)
    slow = browser(queue, messages=0)
    publish(queue, "a")
    bench.advance(3)
    publish(queue, "b")
    bench.advance(3)
    slow.allow()
    assert slow.seen == "b"


def test_a_restart_keeps_what_is_persistent(bench: Bench, queue: Queue) -> None:
    looker = browser(queue)
    publish(queue, "a", delivery_mode=2)
    publish(queue, "b")
    queue.acquire(looker.deliveries[0])
    looker.cancel()
    bench.state.restart()
    assert [text(each.message) for each in queue.ready] == ["a"]


def test_quorum_queues_refuse(bench: Bench) -> None:
    queue = bench.queue("q", "quorum")
    with pytest.raises(NotImplementedHere, match="cannot be browsed"):
        browser(queue)
    assert not queue.subscriptions


def test_streams_show_everything_from_the_first_on(bench: Bench) -> None:
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


def test_streams_take_consumers_by_grants(bench: Bench) -> None:
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


def test_publishing_walks_through_nothing(queue: Queue) -> None:
    """Whoever looks has a place; nobody searches the queue for it."""
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


def test_who_does_not_look_does_not_keep_what_has_gone(queue: Queue) -> None:
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


def test_what_is_still_there_is_kept_for_who_does_not_look(bench: Bench) -> None:
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
def test_a_watched_list_knows_what_is_in_it(plain: object, data: st.DataObject) -> None:
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
def test_whatever_happens_everything_is_seen_once(
    arguments: dict[str, int], personality: object, actions: list[tuple[str, int]]
) -> None:
    """Those who look see no message twice; what waits at the end they have all seen, or it came back."""
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


def test_a_subscription_takes_unless_it_says_otherwise(queue: Queue) -> None:
    subscription = Subscription("t", queue, Reader(queue), owner=None, group=None)
    assert subscription.acquires
