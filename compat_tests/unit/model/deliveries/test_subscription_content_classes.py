"""Messages of several content classes in one queue: each goes to those who take its class, or any."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.fakes import positions, queued
from compat_tests.unit.model.readers import Reader, waiting
from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.deliveries.subscription import Credit, Subscription
from fakeamqp.model.messages.message import (
    Child,
    FileMessage,
    Message,
    PlainProperties,
    StreamMessage,
    StructuredMessage,
)
from fakeamqp.model.queues import Queue, QueueDeclaration
from fakeamqp.model.queues.qpid import QpidQueue
from fakeamqp.model.queues.quorum.messages import PriorityLevels, ReturnsFirst, SingleQueue, TwoBands
from fakeamqp.model.transactions import PlannedPublish, Transaction

KINDS = {"b": Message, "f": FileMessage, "s": StreamMessage}
CHILDREN = (Child(60, b"\0\0", b"inner", (Child(70, b"\0\0", b"innermost"),)),)

QUEUES: dict[str, dict[str, Any]] = {
    "classic": {},
    "classic with priorities": {"max_priority": 9},
    "quorum": {"kind": "quorum"},
    "qpid": {"arguments": {"qpid.priorities": 10}},
}


def made(kind: str, body: str = "x", **properties: Any) -> Message:
    properties.setdefault("delivery_mode", 2)
    message = KINDS[kind]("", "q", PlainProperties(**properties), body.encode())
    message.secured = True
    return message


def put(queue: Queue, words: str, **properties: Any) -> None:
    """Publish a message for each word: the first letter tells its class, all of it is its body."""
    for word in words.split():
        queue.virtual_host.publish(made(word[0], word, **properties))


def of_class(queue: Queue, content_class: str | None, tag: str = "", **terms: Any) -> Reader:
    return Reader(queue, tag or content_class or "all", content_class=content_class, **terms)


def octets(queue: Queue) -> int:
    """How many bytes of bodies the queue thinks that it holds."""
    counted: int = queue.ready_bytes  # type: ignore[attr-defined]
    return counted


def queue_of(bench: Bench, kind: str) -> Queue:
    terms = dict(QUEUES[kind])
    arguments = terms.pop("arguments", None)
    if arguments is None:
        return bench.queue("q", **terms)
    return bench.host.queues.create(
        "q", QueueDeclaration(durable=True, arguments=arguments), special=QpidQueue
    )


@pytest.fixture(params=QUEUES)
def queue(bench: Bench, request: pytest.FixtureRequest) -> Queue:
    return queue_of(bench, request.param)


# --- the messages --------------------------------------------------------------------------------------


def test_plain_message_has_content_class_basic() -> None:
    assert [KINDS[each]("", "", PlainProperties(), b"").content_class for each in "bfs"] == [
        "basic",
        "file",
        "stream",
    ]
    assert made("b").children == ()


@pytest.mark.parametrize("kind", [StructuredMessage, FileMessage, StreamMessage])
def test_copy_with_other_properties_keeps_content_class_and_children(kind: type[StructuredMessage]) -> None:
    message = kind("x", "k", PlainProperties(), b"body")
    assert message.children == ()
    message.children = CHILDREN
    copy = message.with_properties(PlainProperties(app_id="other"))
    assert (copy.content_class, copy.children, copy.properties.app_id) == (
        message.content_class,
        CHILDREN,
        "other",
    )
    assert isinstance(copy, kind)


def test_copy_of_plain_message_is_plain_message() -> None:
    copy = made("b").with_properties(PlainProperties())
    assert type(copy) is Message
    assert not hasattr(copy, "__dict__")


@pytest.mark.parametrize("word", ["f", "s", "b"])
def test_dead_letter_keeps_content_class_and_children(bench: Bench, word: str) -> None:
    bench.queue("dead")
    queue = bench.queue("q", dead_letter_exchange="", dead_letter_routing_key="dead")
    kind = StructuredMessage if word == "b" else KINDS[word]
    message = kind("", "q", PlainProperties(), b"body")
    message.children = CHILDREN
    queue.virtual_host.publish(message)
    reject_all([bench.take("q")])
    dead = next(iter(bench.host.queues["dead"].ready)).message
    assert (dead.content_class, dead.children, dead.body) == (message.content_class, CHILDREN, b"body")
    again = dead.with_properties(dead.properties)
    assert (again.content_class, again.children) == (message.content_class, CHILDREN)


def test_dead_letter_of_plain_message_has_no_instance_dict(bench: Bench) -> None:
    bench.queue("dead")
    queue = bench.queue("q", dead_letter_exchange="", dead_letter_routing_key="dead")
    put(queue, "b")
    reject_all([bench.take("q")])
    dead = next(iter(bench.host.queues["dead"].ready)).message
    assert not hasattr(dead, "__dict__")
    assert (dead.content_class, dead.children) == ("basic", ())


# --- who gets what -------------------------------------------------------------------------------------


def test_message_goes_to_consumer_of_its_content_class(queue: Queue) -> None:
    put(queue, "b1 f1 s1")
    basic, files, streams = (of_class(queue, each) for each in ("basic", "file", "stream"))
    put(queue, "f2 s2 b2")
    assert (basic.seen, files.seen, streams.seen) == ("b1b2", "f1f2", "s1s2")
    assert not waiting(queue)


def test_message_class_without_consumer_does_not_block_other_classes(queue: Queue) -> None:
    put(queue, "f1 b1 f2 b2")
    basic = of_class(queue, "basic")
    put(queue, "f3 b3")
    assert basic.seen == "b1b2b3"
    assert waiting(queue) == "f1f2f3"
    assert octets(queue) == 6
    files = of_class(queue, "file")
    assert files.seen == "f1f2f3"


def test_consumer_of_all_content_classes_receives_messages_in_order(queue: Queue) -> None:
    put(queue, "f1 b1")
    everything = of_class(queue, None, messages=5)
    put(queue, "s1 b2 f2")
    assert everything.seen == "f1b1s1b2f2"


def test_consumers_of_one_class_and_of_all_classes_share_messages(queue: Queue) -> None:
    everything, files = of_class(queue, None, no_ack=True), of_class(queue, "file", no_ack=True)
    put(queue, "f1 b1 f2 f3 b2")
    assert sorted(everything.got + files.got) == ["b1", "b2", "f1", "f2", "f3"]
    assert {"b1", "b2"} <= set(everything.got)
    assert files.got


def test_consumers_of_one_content_class_are_served_round_robin(bench: Bench) -> None:
    queue = bench.queue("q")
    one, other = of_class(queue, "file", "1"), of_class(queue, "file", "2")
    put(queue, "f1 f2 b1 f3 f4")
    assert (one.seen, other.seen) == ("f1f3", "f2f4")


def test_new_credit_delivers_next_message_of_consumers_content_class(queue: Queue) -> None:
    put(queue, "f1 b1 b2 f2 b3")
    basic = of_class(queue, "basic", messages=1)
    assert basic.seen == "b1"
    basic.allow(1)
    assert basic.seen == "b1b2"
    assert waiting(queue) == "f1f2b3"


def test_requeued_message_goes_to_consumer_of_its_content_class(queue: Queue) -> None:
    put(queue, "f1 b1 f2")
    files = of_class(queue, "file", messages=1)
    other = of_class(queue, "file", "other", messages=0)
    release_all(files.deliveries)
    other.allow()
    assert other.got in (["f1*", "f2"], ["f2", "f1*"])
    assert waiting(queue) == "b1"


def test_get_takes_next_message_of_requested_content_class(queue: Queue) -> None:
    put(queue, "f1 b1 s1 b2")

    def got(content_class: str | None) -> bytes | None:
        taken = queue.get("me", no_ack=True, content_class=content_class)
        return None if taken is None else taken[0].message.body

    assert [got("basic"), got("basic"), got("basic")] == [b"b1", b"b2", None]
    assert [got("stream"), got(None), got("file")] == [b"s1", b"f1", None]
    assert not waiting(queue)
    assert octets(queue) == 0


def test_message_beyond_octet_credit_blocks_only_its_own_content_class(queue: Queue) -> None:
    put(queue, "flarge f2 b2")
    files, basic = of_class(queue, "file", octets=2), of_class(queue, "basic", octets=2)
    put(queue, "f3")
    assert (files.seen, basic.seen) == ("", "b2")
    assert waiting(queue) == "flargef2f3"


def test_expired_message_behind_message_of_other_class_is_not_delivered(bench: Bench) -> None:
    queue = bench.queue("q")
    put(queue, "f1 b1")
    queue.virtual_host.publish(Message("", "q", PlainProperties(), b"b2", expiry=5.0))
    put(queue, "b3")
    bench.advance(6)
    assert of_class(queue, "basic").seen == "b1b3"


def test_message_with_zero_ttl_goes_to_consumer_of_its_content_class(queue: Queue) -> None:
    basic = of_class(queue, "basic", no_ack=True)
    queue.virtual_host.publish(Message("", "q", PlainProperties(expiration="0"), b"a", expiry=0.0))
    assert basic.seen == "a"


def test_message_of_own_connection_does_not_block_no_local_consumer(
    queue: Queue,
) -> None:
    reader = Reader(queue, "r", owner="me", no_local=True)
    queue.virtual_host.publish(Message("", "q", PlainProperties(), b"own", publisher="me"))
    put(queue, "b1")
    assert reader.seen == "b1"
    assert waiting(queue) == "own"


@pytest.mark.parametrize(("word", "taken"), [("b", True), ("f", False)])
def test_next_taker_is_found_only_for_content_class_with_consumer(
    queue: Queue, word: str, taken: bool
) -> None:
    put(queue, "f1")
    basic = of_class(queue, "basic")
    message = made(word)
    assert queue.could_take(message) is taken
    assert queue.next_taker(message) is (basic.subscription if taken else None)
    of_class(queue, "stream")
    put(queue, "b1")
    accept_all(basic.deliveries)
    assert queue.could_take(message) is taken


def test_no_next_taker_while_message_of_same_class_waits(queue: Queue) -> None:
    basic = of_class(queue, "basic", octets=1)
    put(queue, "b1")
    assert waiting(queue) == "b1"
    small = Message("", "q", PlainProperties(), b"")
    assert not queue.could_take(small)
    assert queue.next_taker(small) is None
    assert basic.seen == ""


def test_queue_stays_plain_with_consumer_of_all_content_classes(bench: Bench) -> None:
    queue = bench.queue("q")
    taker = Reader(queue, no_ack=True)
    put(queue, "b1 f1")
    assert taker.seen == "b1f1"
    assert queue._plain  # type: ignore[attr-defined]
    assert not taker.subscription.picks


# --- a queue that looks no further than it must ---------------------------------------------------------


def looks_further(queue: Queue) -> bool:
    return bool(queue.selects)  # type: ignore[attr-defined]


def test_queue_of_basic_messages_does_not_select_for_consumer_of_class_basic(bench: Bench) -> None:
    queue = bench.queue("q")
    put(queue, "b1")
    basic = of_class(queue, "basic")
    put(queue, "b2")
    assert basic.seen == "b1b2"
    release_all(basic.deliveries)
    assert basic.got[2:] == ["b1*", "b2*"]
    assert not looks_further(queue)


@pytest.mark.parametrize("max_priority", [None, 9])
def test_queue_selects_after_message_of_other_class_is_published(
    bench: Bench, max_priority: int | None
) -> None:
    queue = bench.queue("q", **({} if max_priority is None else {"max_priority": max_priority}))
    basic = of_class(queue, "basic", messages=0)
    put(queue, "f1 b1")
    assert looks_further(queue)
    basic.allow()
    assert basic.seen == "b1"


def test_consumer_skips_message_of_other_class_already_in_queue(bench: Bench) -> None:
    queue = bench.queue("q")
    put(queue, "f1 b1")
    assert of_class(queue, "basic").seen == "b1"


def test_consumer_skips_requeued_message_of_other_class(bench: Bench) -> None:
    queue = bench.queue("q")
    everything = Reader(queue, "all")
    put(queue, "f1")
    basic = of_class(queue, "basic")
    assert not looks_further(queue)
    everything.cancel()
    put(queue, "b1")
    assert basic.seen == "b1"
    release_all(everything.deliveries)
    put(queue, "b2")
    assert basic.seen == "b1b2"
    assert waiting(queue) == "f1"


def test_consumer_skips_message_of_other_class_in_browsed_queue(bench: Bench) -> None:
    queue = bench.queue("q")
    looker = Reader(queue, "looker", acquires=False)
    basic = of_class(queue, "basic")
    put(queue, "f1 b1")
    assert (basic.seen, looker.seen) == ("b1", "f1b1")
    looker.cancel()
    put(queue, "b2")
    assert basic.seen == "b1b2"


def test_queue_forgets_selection_at_restart_and_new_consumer_still_skips_other_class(bench: Bench) -> None:
    queue = bench.queue("q")
    of_class(queue, "basic").cancel()
    put(queue, "f1 b1")
    bench.state.restart()
    assert not looks_further(queue)
    assert of_class(queue, "basic").seen == "b1"


# --- all that happens to a queue happens to all classes --------------------------------------------------


def test_purge_removes_messages_of_all_content_classes(queue: Queue) -> None:
    of_class(queue, "basic", messages=0)
    put(queue, "f1 b1 s1")
    assert queue.purge() == 3
    assert not waiting(queue)


def test_max_length_counts_messages_of_all_content_classes(bench: Bench) -> None:
    queue = bench.queue("q", max_length=2)
    of_class(queue, "basic", messages=0)
    put(queue, "f1 b1 s1")
    assert waiting(queue) == "b1s1"


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_restart_and_crash_keep_content_class_and_children(bench: Bench, kind: str) -> None:
    queue = bench.queue("q", kind)
    message = FileMessage("", "q", PlainProperties(delivery_mode=2), b"f")
    message.children = CHILDREN
    message.secured = True
    queue.virtual_host.publish(message)
    put(queue, "b s")
    of_class(queue, "file").cancel()  # It keeps what it was sent.
    for crash in (False, True):
        bench.state.restart(crash=crash)
        kept = [each.message for each in bench.host.queues["q"].ready]
        assert sorted((each.content_class, each.body) for each in kept) == [
            ("basic", b"b"),
            ("file", b"f"),
            ("stream", b"s"),
        ]
        assert [each.children for each in kept if each.content_class == "file"] == [CHILDREN]


def test_transaction_publishes_and_settles_messages_of_any_content_class(bench: Bench) -> None:
    queue = bench.queue("q")
    files = of_class(queue, "file")
    transaction = Transaction()
    for word in ("f1", "b1"):
        transaction.publish(PlannedPublish(bench.host, *bench.host.routing.plan(made(word[0], word))))
    assert files.seen == ""
    transaction.commit()
    assert files.seen == "f1"
    transaction.settle(accept_all, files.deliveries)
    transaction.commit()
    assert not queue.unacked
    assert waiting(queue) == "b1"


def test_consumer_with_replaced_limits_keeps_its_content_class(bench: Bench) -> None:
    queue = bench.queue("q")
    basic = of_class(queue, "basic")
    credit = Credit(1)
    subscription: Subscription = basic.subscription
    subscription.depend_on((*subscription.limits, credit), (credit,))
    subscription.depend_on((credit,), (credit,))
    put(queue, "f1 b1 b2")
    assert basic.seen == "b1"
    assert len(subscription.limits) == 2


# --- streams -------------------------------------------------------------------------------------------


def test_stream_browser_sees_only_messages_of_its_content_class(bench: Bench) -> None:
    queue = bench.queue("q", "stream")
    put(queue, "f1 b1")
    readers = [of_class(queue, each, acquires=False) for each in ("basic", "file", None)]
    put(queue, "f2 s1 b2")
    assert [each.seen for each in readers] == ["b1b2", "f1f2", "f1b1f2s1b2"]
    assert queue.could_take(made("s"))
    readers.pop().cancel()
    assert not queue.could_take(made("s"))
    assert queue.could_take(made("f"))


# --- the containers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SingleQueue, TwoBands, PriorityLevels])
@given(priorities=st.lists(st.none() | st.integers(0, 40), min_size=1, max_size=20), pick=st.integers(0, 19))
def test_removing_one_message_from_quorum_bands_keeps_all_remaining_messages(
    kind: Any, priorities: list[int | None], pick: int
) -> None:
    bands = kind()
    messages = [queued(position, priority) for position, priority in enumerate(priorities)]
    for message, priority in zip(messages, priorities, strict=True):
        bands.append(message, priority)
    taken = messages[pick % len(messages)]
    bands.remove(taken)
    left = positions(bands)
    assert sorted(left) == [each.position for each in messages if each is not taken]
    assert len(bands) == len(left)
    assert sorted(bands.pop().position for _ in left) == sorted(left)
    assert bands.head() is None


def test_requeued_message_can_be_removed_from_returns_first_list() -> None:
    ready = ReturnsFirst()
    first, second, new = queued(1), queued(2), queued(3)
    ready.append(new)
    ready.put_back(first)
    ready.put_back(second)
    ready.remove(second)
    assert positions(ready) == [1, 3]
    ready.remove(new)
    assert positions(ready) == [1]


# --- random programs ------------------------------------------------------------------------------------


CLASSES = {"b": "basic", "f": "file", "s": "stream", "*": None}

steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from("bbfs"), st.integers(0, 9)),
        st.tuples(st.just("subscribe"), st.sampled_from("bbfs*"), st.integers(0, 3)),
        st.tuples(st.just("look"), st.sampled_from("b*"), st.integers(0, 3)),
        st.tuples(st.just("allow"), st.integers(0, 9), st.integers(1, 3)),
        st.tuples(st.just("accept"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("release"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("get"), st.sampled_from("bfs*"), st.just(0)),
    ),
    max_size=40,
)


class World:
    """One queue, those who take from it, and what became of each message."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.readers: list[Reader] = []
        self.published: list[str] = []
        self.done: list[str] = []
        self._names = count()

    def step(self, what: str, one: Any, other: int) -> None:
        if what == "publish":
            body = f"{one}{next(self._names)}"
            self.published.append(body)
            self.queue.virtual_host.publish(made(one, body, priority=other))
        elif what in ("subscribe", "look"):
            if what == "look" and self.queue.type_name == "quorum":
                return
            terms: dict[str, Any] = {"content_class": CLASSES[one], "acquires": what == "subscribe"}
            self.readers.append(Reader(self.queue, f"r{next(self._names)}", messages=other, **terms))
        elif what == "get":
            taken = self.queue.get("me", no_ack=True, content_class=CLASSES[one])
            if taken is not None:
                assert CLASSES[one] in (None, taken[0].message.content_class)
                self.done.append(taken[0].message.body.decode())
        elif self.readers:
            self._settle(what, self.readers[one % len(self.readers)], other)

    def _settle(self, what: str, reader: Reader, number: int) -> None:
        if what == "allow":
            reader.allow(number)
        elif what == "cancel":
            reader.cancel()
        elif self.held(reader):
            held = self.held(reader)
            delivery = held[number % len(held)]
            if what == "accept":
                self.done.append(delivery.queued.message.body.decode())
                accept_all([delivery])
            else:
                release_all([delivery])

    @staticmethod
    def held(reader: Reader) -> list[Any]:
        return [each for each in reader.deliveries if each.acquired and not each.settled]

    def check(self) -> None:
        waiting = [each.message for each in self.queue.ready]
        held = [each.queued.message for reader in self.readers for each in self.held(reader)]
        bodies = [each.body.decode() for each in (*waiting, *held)] + self.done
        assert Counter(bodies) == Counter(self.published)
        assert octets(self.queue) == sum(len(each.body) for each in waiting)
        for reader in self.readers:
            subscription = reader.subscription
            if subscription.active and subscription.acquires and reader.grant.open:
                assert not any(subscription.suits(message) for message in waiting)
            assert all(self._fits(reader, each) for each in reader.deliveries)

    @staticmethod
    def _fits(reader: Reader, delivery: Any) -> bool:
        message: Message = delivery.queued.message
        return reader.subscription.content_class in (None, message.content_class)


@pytest.mark.parametrize("kind", QUEUES)
@examples(100)
@given(program=steps)
def test_random_programs_lose_no_message_and_leave_no_open_consumer_waiting(
    kind: str, program: list[tuple[str, Any, int]]
) -> None:
    world = World(queue_of(Bench(), kind))
    for each in program:
        world.step(*each)
        world.check()
