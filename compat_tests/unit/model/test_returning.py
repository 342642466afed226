"""What comes back to a queue: its place, its mark, and priorities that were asked for without arguments."""

from __future__ import annotations

import pytest

from compat_tests.unit.model.readers import Reader, publish, waiting
from compat_tests.unit.model.transactions.bench import Bench
from fakeamqp.model.deliveries.delivery import release_all
from fakeamqp.model.personality import PERSONALITIES, Personality
from fakeamqp.model.queues import QueueDeclaration

KINDS = ("classic", "quorum")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("redelivered", [True, False, None])
def test_release_sets_redelivered_mark_as_client_asks(kind: str, redelivered: bool | None) -> None:
    queue = Bench().queue("q", kind)
    publish(queue, "ab")
    first = Reader(queue, "1", messages=2)
    release_all(first.deliveries, redelivered=redelivered)
    assert [each.redelivered for each in queue.ready] == [bool(redelivered)] * 2
    assert Reader(queue, "2").got == (["a*", "b*"] if redelivered else ["a", "b"])


@pytest.mark.parametrize("kind", KINDS)
def test_redelivered_mark_is_never_removed(kind: str) -> None:
    queue = Bench().queue("q", kind)
    publish(queue, "a")
    first = Reader(queue, "1", messages=1)
    release_all(first.deliveries)
    second = Reader(queue, "2", messages=1)
    assert second.got == ["a*"]
    release_all(second.deliveries, redelivered=None)
    assert Reader(queue, "3").got == ["a*"]


@pytest.mark.parametrize("redelivered", [True, False])
def test_released_messages_return_to_their_positions(redelivered: bool) -> None:
    queue = Bench().queue("q")
    publish(queue, "abcde")
    reader = Reader(queue, messages=3)
    release_all([reader.deliveries[1], reader.deliveries[0]], redelivered=redelivered)
    assert waiting(queue) == "abde"


def test_release_without_redelivered_mark_does_not_count_as_delivery() -> None:
    most = PERSONALITIES["spec"].most_deliveries
    assert most
    queue = Bench(PERSONALITIES["spec"]).queue("q")
    publish(queue, "a")
    for _ in range(2 * most):
        reader = Reader(queue, messages=1)
        release_all(reader.deliveries, redelivered=False)
        reader.cancel()
    assert waiting(queue) == "a"
    for _ in range(most):
        reader = Reader(queue, messages=1)
        release_all(reader.deliveries)
        reader.cancel()
    assert waiting(queue) == ""


# --- priorities -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("personality", "priorities", "maximum", "expected"),
    [
        (PERSONALITIES["rabbitmq-4.2"], None, None, "abc"),
        (PERSONALITIES["rabbitmq-4.2"], True, None, "cba"),
        (PERSONALITIES["rabbitmq-4.2"], True, 1, "bca"),
        (PERSONALITIES["rabbitmq-4.2"], False, 9, "cba"),
        (PERSONALITIES["spec"], None, None, "cba"),
        (PERSONALITIES["spec"], False, None, "abc"),
    ],
)
def test_declaration_can_request_priorities_without_x_max_priority(
    personality: Personality, priorities: bool | None, maximum: int | None, expected: str
) -> None:
    arguments = {} if maximum is None else {"x-max-priority": maximum}
    queue = Bench(personality).host.queues.declare(
        "q", QueueDeclaration(durable=True, arguments=arguments, priorities=priorities)
    )
    for body, priority in (("a", 0), ("b", 5), ("c", 9)):
        publish(queue, body, priority=priority)
    assert waiting(queue) == expected
    assert queue.arguments.get("x-max-priority") == maximum


def test_requested_priorities_have_ten_levels() -> None:
    queue = Bench().host.queues.declare("q", QueueDeclaration(durable=True, priorities=True))
    for level in range(12):
        publish(queue, chr(ord("a") + level), priority=level)
    assert waiting(queue) == "jklihgfedcba"


@pytest.mark.parametrize("kind", [*KINDS, "stream"])
def test_deleted_queue_keeps_no_reference_to_consumers(kind: str) -> None:
    """Clients may hold deliveries of it for long, and these know the queue."""
    bench = Bench()
    queue = bench.queue("q", kind, **({} if kind == "stream" else {"single_active_consumer": True}))
    for tag in "abc":
        Reader(queue, tag)
    bench.host.queues.delete("q", None)
    assert queue.deleted and not queue.subscriptions
    assert not queue.rotation
    assert not queue.successors
