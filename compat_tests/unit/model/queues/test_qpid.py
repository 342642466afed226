"""What arguments of Apache's brokers make of a queue."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.fakes import positions, queued
from compat_tests.unit.model.readers import Reader, publish, waiting
from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import InvalidArgument
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.queues.qpid import FairShareFifo, QpidOptions, QpidQueue, are_asked_for

# --- arguments ---------------------------------------------------------------------------------------


def test_qpid_arguments_are_read_into_options() -> None:
    asked = QpidOptions(
        {
            "qpid.max_count": "3",
            "qpid.max_size": 0,
            "qpid.policy_type": "ring_strict",
            "qpid.priorities": "4",
            "x-qpid-fairshare": 5,
            "qpid.fairshare-1": 2,
            "qpid.last_value_queue_key": "k",
            "qpid.group_header_key": "g",
            "qpid.shared_msg_group": 1,
            "qpid.queue_msg_sequence": "n",
            "qpid.auto_delete_timeout": 7,
            "no-local": "true",
        }
    )
    assert vars(asked) == {
        "max_count": 3,
        "max_size": None,
        "policy": "ring",
        "levels": 4,
        "shares": (5, 2, 5, 5),
        "last_value_key": "k",
        "group_key": "g",
        "sequence_key": "n",
        "auto_delete_delay": 7,
        "no_local": True,
    }


def test_absent_or_meaningless_qpid_arguments_give_default_options() -> None:
    nothing = QpidOptions({})
    assert not any(asked for name, asked in vars(nothing).items() if name != "policy")
    meaningless = QpidOptions({"no-local": "false", "qpid.group_header_key": "g"})
    assert vars(meaningless) == vars(nothing)


@pytest.mark.parametrize(
    ("arguments", "asks"),
    [
        ({}, False),
        ({"x-max-length": 1}, False),
        ({"qpid.max_count": 1}, True),
        ({"x-qpid-priorities": 1, "x-max-length": 1}, True),
    ],
)
def test_only_qpid_arguments_ask_for_qpid_queue(arguments: dict[str, Any], asks: bool) -> None:
    assert are_asked_for(arguments) is asks


@pytest.mark.parametrize(
    "arguments",
    [
        {"qpid.max_count": -1},
        {"qpid.max_count": 1.0},
        {"qpid.max_count": "1.5"},
        {"qpid.max_size": "-1"},
        {"qpid.max_size": True},
        {"qpid.policy_type": "none"},
        {"x-qpid-priorities": "many"},
        {"qpid.last_value_queue_key": 1},
    ],
    ids=str,
)
def test_invalid_value_of_qpid_argument_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(arguments))):
        QpidOptions(arguments)


# --- levels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "order"),
    [(10, "9 8 7 6 5 4 3 2 1 0"), (5, "6 7 8 9 5 4 3 0 1 2"), (1, "0 1 2 3 4 5 6 7 8 9")],
)
def test_priorities_are_grouped_into_levels_around_the_middle(levels: int, order: str) -> None:
    ready = FairShareFifo(levels)
    for priority in range(10):
        ready.append(queued(priority, priority))
    assert " ".join(str(ready.pop().position) for _ in range(10)) == order


def test_message_without_priority_counts_as_medium_priority() -> None:
    ready = FairShareFifo(10)
    for position, priority in enumerate([3, None, 5]):
        ready.append(queued(position, priority))
    assert positions(ready) == [2, 1, 0]


def test_fair_share_limits_consecutive_messages_of_one_level() -> None:
    ready = FairShareFifo(10, (0, 0, 0, 0, 0, 0, 0, 0, 1, 2))
    for position, priority in enumerate([9, 9, 9, 9, 9, 8, 8, 8, 0, 0, 0]):
        ready.append(queued(position, priority))
    taken = []
    while ready.head() is not None:
        head = ready.head()
        assert ready.pop() is head
        taken.append(head.message.priority if head else None)
    assert taken == [9, 9, 8, 0, 0, 0, 9, 9, 8, 9, 8]


# --- queues ------------------------------------------------------------------------------------------


def queue(arguments: dict[str, Any], **flags: Any) -> QpidQueue:
    host = Bench().host
    flags.setdefault("owner", "owner")
    made = host.queues.create("q", QueueDeclaration(arguments=arguments, **flags), special=QpidQueue)
    assert isinstance(made, QpidQueue)
    return made


def test_declaring_with_invalid_qpid_argument_creates_no_queue() -> None:
    host = Bench().host
    with pytest.raises(InvalidArgument):
        host.queues.create(
            "q", QueueDeclaration(owner="o", arguments={"qpid.max_count": "x"}), special=QpidQueue
        )
    assert "q" not in host.queues


def test_full_ring_queue_drops_oldest_message() -> None:
    ring = queue({"qpid.max_count": 3, "qpid.policy_type": "ring"})
    publish(ring, "abcde")
    assert waiting(ring) == "cde"


def test_full_ring_queue_with_priorities_drops_lowest_priority_message() -> None:
    ring = queue({"qpid.max_count": 2, "qpid.policy_type": "ring", "qpid.priorities": 10})
    publish(ring, "a", priority=3)
    publish(ring, "bc", priority=2)
    publish(ring, "d", priority=9)
    publish(ring, "e", priority=1)
    assert waiting(ring) == "da"


def test_full_queue_without_ring_policy_refuses_messages() -> None:
    full = queue({"qpid.max_size": 2})
    publish(full, "abc")
    assert waiting(full) == "ab"


def test_last_value_queue_keeps_only_latest_message_of_each_key() -> None:
    values = queue({"qpid.last_value_queue_key": "k"})
    looks = Reader(values, acquires=False)
    for body in "aba":
        publish(values, body, headers={"k": body})
    publish(values, "x")
    publish(values, "y")
    assert waiting(values) == "bay"
    assert looks.seen == "abaxy"
    assert Reader(values, acquires=False).seen == "bay"


def test_message_replaced_by_a_newer_value_is_dropped_with_reason_replaced() -> None:
    values = queue({"qpid.last_value_queue_key": "k"})
    publish(values, "ab", headers={"k": 1})
    histories = values.virtual_host.state.outcome_histories
    assert histories is not None
    [dropped] = histories.dropped
    assert (dropped.message.body, dropped.queue, dropped.reason) == (b"a", "q", "replaced")
    assert dropped.detail == "a newer message with the same value has come"


def test_released_older_value_does_not_return_to_last_value_queue() -> None:
    values = queue({"qpid.last_value_queue_key": "k"})
    publish(values, "ab", headers={"k": 1})
    taker = Reader(values, messages=1)
    publish(values, "c", headers={"k": 1})
    publish(values, "d", headers={"k": 2})
    release_all(taker.deliveries)
    assert waiting(values) == "cd"


def test_message_sequence_header_numbers_messages_of_queue() -> None:
    ring = queue({"qpid.queue_msg_sequence": "n", "qpid.policy_type": "ring", "qpid.max_count": 2})
    publish(ring, "abc", headers={"h": 1})
    assert [each.message.headers for each in ring.ready] == [{"h": 1, "n": 2}, {"h": 1, "n": 3}]


class TestGroups:
    """Letters are the messages, g says which group each is in."""

    @pytest.fixture
    def groups(self) -> QpidQueue:
        made = queue({"qpid.group_header_key": "g", "qpid.shared_msg_group": 1})
        for body in "AABBCC":
            publish(made, body, headers={"g": body})
        return made

    def test_message_group_belongs_to_one_consumer_at_a_time(self, groups: QpidQueue) -> None:
        first, second = Reader(groups, "1", messages=1), Reader(groups, "2", messages=1)
        assert (first.seen, second.seen) == ("A", "B")
        accept_all(first.deliveries)
        second.allow(1)
        assert second.seen == "BA"
        first.allow(1)
        assert first.seen == "AC"

    @pytest.mark.parametrize("settle", [accept_all, reject_all])
    def test_settling_all_messages_of_group_frees_group(self, groups: QpidQueue, settle: Any) -> None:
        first, second = Reader(groups, "1", messages=2), Reader(groups, "2")
        assert (first.seen, second.seen) == ("AA", "BBCC")
        publish(groups, "a", headers={"g": "A"})
        settle(first.deliveries[:1])
        assert second.seen == "BBCC"
        settle(first.deliveries[1:])
        assert second.seen == "BBCCa"

    def test_released_message_group_goes_to_other_consumer(self, groups: QpidQueue) -> None:
        first, second = Reader(groups, "1", messages=1), Reader(groups, "2")
        assert (first.seen, second.seen) == ("A", "BBCC")
        release_all(first.deliveries)
        assert second.seen == "BBCCA*A"

    def test_group_stays_with_cancelled_consumer_until_its_messages_are_released(
        self, groups: QpidQueue
    ) -> None:
        first = Reader(groups, "1", messages=1)
        first.cancel()
        second = Reader(groups, "2")
        assert second.seen == "BBCC"
        release_all(first.deliveries)
        assert second.seen == "BBCCA*A"

    def test_browser_sees_all_ready_messages_of_every_group(self, groups: QpidQueue) -> None:
        Reader(groups, "1", messages=1)
        assert Reader(groups, "2", acquires=False).seen == "ABBCC"

    def test_message_acquired_by_browser_blocks_its_group(self, groups: QpidQueue) -> None:
        looks = Reader(groups, "1", acquires=False)
        assert groups.acquire(looks.deliveries[0])
        taker = Reader(groups, "2")
        assert taker.seen == "BBCC"
        accept_all(looks.deliveries[:1])
        assert taker.seen == "BBCCA"

    def test_messages_without_group_header_form_one_group(self, groups: QpidQueue) -> None:
        groups.purge()
        publish(groups, "xy")
        first, second = Reader(groups, "1", messages=1), Reader(groups, "2")
        assert (first.seen, second.seen) == ("x", "")

    def test_restart_clears_owners_of_message_groups(self, groups: QpidQueue) -> None:
        groups.purge()
        publish(groups, "ab", headers={"g": "A"}, delivery_mode=2)
        first = Reader(groups, "1", messages=1)
        groups.detach_all()
        groups.deleted = False
        groups.keep_persistent()
        assert Reader(groups, "2").seen == "a*b"
        assert first.seen == "a"


def test_no_local_exclusive_queue_drops_messages_of_its_own_connection() -> None:
    class Session:
        def __init__(self, name: str) -> None:
            self.name = name

    mine = Session("connection")
    alone = queue({"no-local": True}, owner=mine, exclusive=True)
    publish(alone, "a", publisher=mine)
    publish(alone, "b", publisher=Session("connection"))
    publish(alone, "c", publisher=Session("other"))
    publish(alone, "d")
    assert waiting(alone) == "cd"


def test_no_local_queue_drops_messages_of_connection_of_exclusive_consumer() -> None:
    class Session:
        name = "connection"

    shared = queue({"no-local": True})
    publish(shared, "a", publisher=Session())
    reader = Reader(shared, exclusive=True, owner=Session())
    publish(shared, "b", publisher=Session())
    assert reader.seen == "a"


def test_auto_delete_timeout_delays_deletion_of_unused_queue() -> None:
    bench = Bench()
    owner = object()
    bench.host.queues.create(
        "q",
        QueueDeclaration(
            owner=owner,
            exclusive=True,
            auto_delete=True,
            freeable=True,
            arguments={"qpid.auto_delete_timeout": 3},
        ),
        special=QpidQueue,
    )
    bench.host.queues.release_owner(owner)
    bench.advance(2.9)
    assert "q" in bench.host.queues
    reader = Reader(bench.host.queues["q"])
    bench.advance(1)
    assert "q" in bench.host.queues  # Somebody uses it again.
    reader.cancel()
    bench.advance(2.9)
    assert "q" in bench.host.queues
    bench.advance(0.2)
    assert "q" not in bench.host.queues
