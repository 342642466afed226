"""Consumers and prefetch limits."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

# --- consumers

last("consume/nowait-empty-tag", queue(), consume(tag="", no_wait=1))


each(
    "consume/client-sends-cancel-ok",
    [queue()],
    consume(),
    call("queue.delete", queue="@q", on="b"),
    arrivals(),
    call("basic.cancel-ok", consumer_tag="c"),
)
each(
    "consume/qos-global",
    [queue()],
    [shared(2)],
    consume(tag="1"),
    consume(tag="2"),
    *one_by_one("0", "1", "2", "3"),
    ack(1, settle=0.2),
)
each(
    "consume/qos-global-raised-later",
    [queue()],
    [shared(1)],
    consume(tag="1"),
    *one_by_one("0", "1", "2"),
    shared(2, settle=0.2),
    shared(0, settle=0.2),
)
each(
    "consume/qos-global-set-after-consume", [queue()], consume(tag="1"), shared(1), *one_by_one("0", "1", "2")
)
each(
    "consume/qos-global-set-with-unacked",
    [queue()],
    consume(tag="1"),
    *one_by_one("0", "1"),
    shared(1),
    publish("@q", "2", settle=0.2),
    ack(1, settle=0.2),
    ack(2, settle=0.2),
)
each(
    "consume/qos-global-and-get",
    [queue()],
    [shared(1)],
    *[[publish("@q", str(i))] for i in range(3)],
    get(no_ack=0),
    consume(settle=0.2),
    ack(1, settle=0.2),
)
each(
    "consume/cancel-frees-global-qos",
    [queue()],
    [shared(1)],
    consume(tag="1"),
    consume(tag="2"),
    *one_by_one("0", "1"),
    call("basic.cancel", consumer_tag="1", settle=0.2),
)
each(
    "consume/qos-both",
    [queue()],
    [shared(3)],
    [call("basic.qos", prefetch_count=2)],
    consume(tag="1"),
    consume(tag="2"),
    *one_by_one("0", "1", "2", "3", "4"),
)
# --- a shared limit holds consumers without acknowledgements while it is full


def _with_two_queues(case_id: str, *steps: Step | list[Step], **declared: Any) -> None:
    """Prefetch limits and consumers of two queues: @a for consumers that acknowledge, @n for the others."""
    each(
        f"consume/no-ack-and-shared-limit-{case_id}",
        [queue("@a", **declared), queue("@n", **declared)],
        *steps,
    )


_ACKING = consume("@a", "a")
_NO_ACK = consume("@n", "n", no_ack=1)
A1, A2 = (publish("@a", body, settle=0.3) for body in ("a1", "a2"))
N1, N2, N3, N4 = (publish("@n", body, settle=0.2) for body in ("n1", "n2", "n3", "n4"))
ACK_1, ACK_2 = (ack(tag, settle=0.3) for tag in (1, 2))
CANCEL_A = call("basic.cancel", consumer_tag="a")
_PUBLISHED = [A1, A2, N1, N2, N3]
_QUORUM = {"durable": 1, "arguments": {"x-queue-type": "quorum"}}

# Which of several queues is first when there is room again is random in RabbitMQ: only one has messages then.
_with_two_queues("first", [shared(), _ACKING, _NO_ACK], *_PUBLISHED, get("@n"), get("@a"), ACK_1)
_with_two_queues("after-consumers", [_ACKING, _NO_ACK, shared()], *_PUBLISHED, get("@n"), get("@a"), ACK_1)
_with_two_queues("set-while-full", [_ACKING, _NO_ACK], A1, shared(), N1, ACK_1)
_with_two_queues("cancelled", [shared(), _ACKING, _NO_ACK], A1, CANCEL_A, N1, ACK_1)
_with_two_queues(
    "raised",
    [shared(), _ACKING, _NO_ACK],
    A1,
    N1,
    shared(2, settle=0.2),
    A2,
    N2,
    shared(0, settle=0.2),
)
_with_two_queues(
    "lifted-by-a-limit-per-consumer",
    [shared(), _ACKING, _NO_ACK],
    A1,
    N1,
    call("basic.qos", prefetch_count=5, settle=0.2),
)
_with_two_queues("set-again", [_ACKING, _NO_ACK], A1, A2, shared(), shared(0), shared(), N1, ACK_1, ACK_2)
_with_two_queues(
    "lifted-and-settled-meanwhile",
    [shared(), _ACKING, _NO_ACK],
    A1,
    shared(0),
    A2,
    ACK_1,
    shared(),
    N1,
    ACK_2,
)
_with_two_queues("only-no-ack", [shared(), _NO_ACK, consume("@a", "m", no_ack=1)], N1, N2, N3, A1)
_with_two_queues("got", [shared(), _NO_ACK, publish("@a", "a1")], get("@a", no_ack=0), N1)
_with_two_queues("got-before", [publish("@a", "a1"), _NO_ACK], get("@a", no_ack=0), shared(), N1, ACK_1, N2)
_with_two_queues(
    "got-before-and-lifted",
    [publish("@a", "a1"), _NO_ACK, get("@a", no_ack=0), shared()],
    N1,
    shared(2, settle=0.2),
    N2,
    shared(1),
    N3,
    shared(0, settle=0.2),
    ack(1),
    shared(1),
    N4,
)
_with_two_queues(
    "got-while-lifted",
    [shared(), _NO_ACK, shared(0)],
    publish("@a", "a1"),
    get("@a", no_ack=0),
    shared(),
    N1,
    ACK_1,
)
_with_two_queues(
    "same-tag-without-acknowledgements",
    [shared(), _ACKING, _NO_ACK],
    A1,
    CANCEL_A,
    consume("@a", "a", no_ack=1),
    A2,
    ACK_1,
    N1,
)
_with_two_queues(
    "other-channel", [open_channel(2), shared(), _ACKING, consume("@n", "n", no_ack=1, ch=2)], A1, N1
)
_with_two_queues(
    "one-queue",
    [shared(), _ACKING, consume("@a", "n", no_ack=1)],
    *[publish("@a", f"a{i}", settle=0.1) for i in (1, 2, 3, 4)],
    ACK_1,
)
_with_two_queues(
    "other-consumer-of-the-queue",
    [open_channel(2), shared(), _ACKING, _NO_ACK],
    A1,
    N1,
    consume("@n", "other", ch=2, no_ack=1, settle=0.2),
    ACK_1,
)
_with_two_queues("requeued", [shared(), _ACKING, _NO_ACK], A1, N1, CANCEL_A, reject(1, 1, settle=0.2))
_with_two_queues(
    "recovered",
    [shared(), _ACKING, _NO_ACK],
    A1,
    N1,
    CANCEL_A,
    call("basic.recover", requeue=True, settle=0.2),
)
_with_two_queues(
    "priority",
    [
        shared(),
        _ACKING,
        consume("@n", "low", no_ack=1),
        consume("@n", "high", no_ack=1, arguments={"x-priority": 9}),
    ],
    A1,
    N1,
    N2,
    ACK_1,
)
_with_two_queues("quorum", [shared()], _ACKING, _NO_ACK, *_PUBLISHED, **_QUORUM)
each(
    "consume/no-ack-and-shared-limit-quorum-beside-classic",
    [queue("@a"), queue("@n", **_QUORUM)],
    [_ACKING, _NO_ACK],
    shared(),
    *_PUBLISHED,
    ACK_1,
)
each(
    "consume/no-ack-and-shared-limit-quorum-acking",
    [queue("@a", **_QUORUM), queue("@n")],
    [_ACKING, _NO_ACK],
    shared(),
    *_PUBLISHED,
    ACK_1,
)
each(
    "consume/no-ack-and-shared-limit-quorum-held-before",
    [queue("@a", **_QUORUM), queue("@n")],
    [_ACKING, _NO_ACK],
    A1,
    shared(),
    N1,
    ACK_1,
    N2,
)
each(
    "consume/no-ack-and-shared-limit-quorum-held-later",
    [queue("@a"), queue("@n"), queue("@qq", **_QUORUM)],
    [_ACKING, _NO_ACK, consume("@qq", "qq")],
    shared(),
    A1,
    publish("@qq", "q1", settle=0.2),
    N1,
    ACK_2,
    N2,
)
each(
    "consume/no-ack-and-shared-limit-stream-held-before",
    [
        queue("@a", durable=1, arguments={"x-queue-type": "stream"}),
        queue("@n"),
        call("basic.qos", prefetch_count=5),
    ],
    [_ACKING, _NO_ACK],
    A1,
    shared(),
    N1,
    ACK_1,
    N2,
)
_with_two_queues(
    "reply-to",
    [shared(), _ACKING, consume("amq.rabbitmq.reply-to", "r", no_ack=1)],
    publish("@a", "a1", settle=0.2, props={"reply_to": "amq.rabbitmq.reply-to"}),
)


# --- counts


@case("count/get-empty-bytes")
def _(scene: Scene) -> list[str]:
    queue()(scene)
    scene.a.tell(1, "basic.get", queue=scene.named("@q"))
    return [scene.a.octets().hex()]


# --- a consumer with the tag of one that was cancelled

for _id, _tag in (("same-tag", "c"), ("other-tag", "d")):
    each(
        f"consume/{_id}-settles-for-the-cancelled-one",
        [*filled(4), call("basic.qos", prefetch_count=2), consume(), arrivals(2)],
        [call("basic.cancel", consumer_tag="c"), call("basic.qos", prefetch_count=1)],
        consume(tag=_tag),
        arrivals(),
        reject(1, settle=0.5),
    )


def succeeded(name: str, first: int, second: int, *steps: Step | list[Step], kind: str = "classic") -> None:
    """A consumer holds so many messages and is cancelled; one with its tag and this limit follows it."""
    declared = queue(durable=1, arguments={"x-queue-type": kind})
    each(
        f"consume/successor-{kind}-{name}",
        [declared, *(publish(body=str(number + 1)) for number in range(8))],
        [call("basic.qos", prefetch_count=first), consume(), arrivals(first)],
        [call("basic.cancel", consumer_tag="c"), call("basic.qos", prefetch_count=second)],
        consume(settle=0.3),
        *steps,
    )


for _type in ("classic", "quorum"):
    succeeded("acks-one", 2, 1, call("basic.ack", delivery_tag=1, settle=0.3), kind=_type)
    succeeded("acks-both", 2, 1, call("basic.ack", delivery_tag=2, multiple=1, settle=0.3), kind=_type)
    succeeded("smaller-window", 3, 1, call("basic.ack", delivery_tag=3, multiple=1, settle=0.3), kind=_type)
    succeeded(
        "keeps-what-it-gained",
        1,
        1,
        call("basic.ack", delivery_tag=1, settle=0.3),
        call("basic.ack", delivery_tag=2, settle=0.3),
        call("basic.ack", delivery_tag=3, settle=0.3),
        kind=_type,
    )
    succeeded("nacks", 1, 1, call("basic.nack", delivery_tag=1, requeue=1, settle=0.3), kind=_type)
    succeeded("recovers", 2, 1, call("basic.recover", requeue=1, settle=0.3), kind=_type)
