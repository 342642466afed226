"""Consumers, prefetch, requeueing and counts."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

# --- consumers

last("consume/cancel-unknown", call("basic.cancel", consumer_tag="nope"))
last("consume/cancel-unknown-nowait", call("basic.cancel", consumer_tag="nope", no_wait=1))
last("consume/nowait", queue(), consume(no_wait=1))
last("consume/nowait-empty-tag", queue(), consume(tag="", no_wait=1))
each(
    "consume/cancel-notify-on-delete",
    [queue()],
    consume(),
    call("queue.delete", queue="@q", on="b"),
    arrivals(),
    nothing_more(),
)
each("consume/cancel-notify-same-channel", [queue()], consume(), call("queue.delete", queue="@q", settle=0.3))
each(
    "consume/cancel-notify-two-consumers",
    [queue()],
    consume(tag="1"),
    consume(tag="2"),
    call("queue.delete", queue="@q", on="b"),
    lambda scene: sorted(arrivals(2)(scene)),
)


@case("consume/cancel-notify-without-capability")
def _(scene: Scene) -> list[str]:
    scene.client("a", capabilities={})
    queue()(scene)
    consume()(scene)
    call("queue.delete", queue="@q", on="b")(scene)
    return nothing_more(0.4)(scene) + call("basic.cancel", consumer_tag="c")(scene)


each(
    "consume/cancel-notify-ack-after",
    [queue(), publish()],
    consume(),
    arrivals(),
    [call("queue.delete", queue="@q", on="b")],
    arrivals(),
    ack(1),
    ack(1),
)
each(
    "consume/cancel-notify-exclusive-queue-own-connection",
    [open_channel(2)],
    [queue(exclusive=1)],
    consume(),
    lambda scene: sorted(scene.do("queue.delete", queue="@q", ch=2, settle=0.3)),
)
each(
    "consume/ack-on-deleted-queue",
    [queue()],
    [publish()],
    get(no_ack=0),
    call("queue.delete", queue="@q"),
    ack(1),
    nack(1, requeue=1),
)
each(
    "consume/reject-requeue-on-deleted-queue",
    [queue()],
    [publish()],
    get(no_ack=0),
    call("queue.delete", queue="@q"),
    reject(1, 1),
)
each(
    "consume/client-sends-cancel-ok",
    [queue()],
    consume(),
    call("queue.delete", queue="@q", on="b"),
    arrivals(),
    call("basic.cancel-ok", consumer_tag="c"),
)
each("consume/deliver-shape", [queue()], consume(), publish(settle=0.2), publish("@q", "2", settle=0.2))
each("consume/reply-order", [queue()], [publish()], consume(settle=0.2))
each(
    "consume/cancel-keeps-unacked",
    [queue()],
    [publish()],
    consume(),
    arrivals(),
    call("basic.cancel", consumer_tag="c"),
    queue(passive=1),
    ack(1),
    queue(passive=1),
)
each(
    "consume/round-robin",
    [queue()],
    consume(tag="1", no_ack=1),
    consume(tag="2", no_ack=1),
    consume(tag="3", no_ack=1),
    *[publish("@q", str(i), settle=0.1) for i in range(7)],
)
each(
    "consume/round-robin-prefetch-1",
    [queue()],
    [call("basic.qos", prefetch_count=1)],
    consume(tag="1"),
    consume(tag="2"),
    *[publish("@q", str(i), settle=0.1) for i in range(3)],
    ack(2, settle=0.1),
    ack(1, settle=0.1),
)
each(
    "consume/backlog-prefetch-2",
    [queue()],
    *[[publish("@q", str(i))] for i in range(5)],
    [call("basic.qos", prefetch_count=2)],
    consume(settle=0.2),
    ack(1, settle=0.2),
    ack(3, multiple=1, settle=0.2),
)
each(
    "consume/priority",
    [queue()],
    consume(tag="low"),
    consume(tag="high", arguments={"x-priority": 5}),
    consume(tag="mid", arguments={"x-priority": 1}),
    *[publish("@q", str(i), settle=0.1) for i in range(3)],
)
each(
    "consume/priority-falls-through-when-full",
    [queue()],
    [call("basic.qos", prefetch_count=1)],
    consume(tag="low"),
    consume(tag="high", arguments={"x-priority": 5}),
    *[publish("@q", str(i), settle=0.1) for i in range(3)],
    ack(1, settle=0.1),
)
each(
    "consume/qos-changed-later",
    [queue()],
    [call("basic.qos", prefetch_count=1)],
    consume(tag="1"),
    call("basic.qos", prefetch_count=3),
    *[publish("@q", str(i), settle=0.1) for i in range(3)],
    consume(tag="2", settle=0.2),
)
each(
    "consume/qos-global",
    [queue()],
    [call("basic.qos", prefetch_count=2, **{"global": 1})],
    consume(tag="1"),
    consume(tag="2"),
    *[publish("@q", str(i), settle=0.1) for i in range(4)],
    ack(1, settle=0.2),
)
each(
    "consume/qos-global-raised-later",
    [queue()],
    [call("basic.qos", prefetch_count=1, **{"global": 1})],
    consume(tag="1"),
    *[publish("@q", str(i), settle=0.1) for i in range(3)],
    call("basic.qos", prefetch_count=2, settle=0.2, **{"global": 1}),
    call("basic.qos", prefetch_count=0, settle=0.2, **{"global": 1}),
)
each(
    "consume/qos-global-set-after-consume",
    [queue()],
    consume(tag="1"),
    call("basic.qos", prefetch_count=1, **{"global": 1}),
    *[publish("@q", str(i), settle=0.1) for i in range(3)],
)
each(
    "consume/qos-global-set-with-unacked",
    [queue()],
    consume(tag="1"),
    publish("@q", "0", settle=0.1),
    publish("@q", "1", settle=0.1),
    call("basic.qos", prefetch_count=1, **{"global": 1}),
    publish("@q", "2", settle=0.2),
    ack(1, settle=0.2),
    ack(2, settle=0.2),
)
each(
    "consume/qos-global-and-get",
    [queue()],
    [call("basic.qos", prefetch_count=1, **{"global": 1})],
    *[[publish("@q", str(i))] for i in range(3)],
    get(no_ack=0),
    consume(settle=0.2),
    ack(1, settle=0.2),
)
each(
    "consume/qos-both",
    [queue()],
    [call("basic.qos", prefetch_count=3, **{"global": 1})],
    [call("basic.qos", prefetch_count=2)],
    consume(tag="1"),
    consume(tag="2"),
    *[publish("@q", str(i), settle=0.1) for i in range(5)],
)
each(
    "consume/qos-no-ack-ignores",
    [queue()],
    [call("basic.qos", prefetch_count=1)],
    consume(no_ack=1),
    *[publish("@q", str(i), settle=0.1) for i in range(3)],
)
each(
    "consume/get-does-not-count-in-qos",
    [queue()],
    [call("basic.qos", prefetch_count=1)],
    *[[publish("@q", str(i))] for i in range(3)],
    get(no_ack=0),
    consume(settle=0.2),
)
each(
    "consume/cancel-frees-global-qos",
    [queue()],
    [call("basic.qos", prefetch_count=1, **{"global": 1})],
    consume(tag="1"),
    consume(tag="2"),
    publish("@q", "0", settle=0.1),
    publish("@q", "1", settle=0.1),
    call("basic.cancel", consumer_tag="1", settle=0.2),
)
# --- a shared limit holds consumers without acknowledgements while it is full


def _shared(limit: int = 1, **where: Any) -> Step:
    return call("basic.qos", prefetch_count=limit, **{"global": 1}, **where)


def _with_two_queues(case_id: str, *steps: Step | list[Step], **declared: Any) -> None:
    """Prefetch limits and consumers of two queues: @a for consumers that acknowledge, @n for the others."""
    each(
        f"consume/no-ack-and-shared-limit-{case_id}",
        [queue("@a", **declared), queue("@n", **declared)],
        *steps,
    )


_ACKING = consume("@a", "a")
_NO_ACK = consume("@n", "n", no_ack=1)
_PUBLISHED = [
    publish("@a", "a1", settle=0.2),
    publish("@a", "a2", settle=0.1),
    *[publish("@n", f"n{i}", settle=0.1) for i in (1, 2, 3)],
]
_QUORUM = {"durable": 1, "arguments": {"x-queue-type": "quorum"}}

# Which of several queues is first when there is room again is random in RabbitMQ: only one has messages then.
_with_two_queues(
    "first", [_shared(), _ACKING, _NO_ACK], *_PUBLISHED, get("@n"), get("@a"), ack(1, settle=0.2)
)
_with_two_queues(
    "after-consumers", [_ACKING, _NO_ACK, _shared()], *_PUBLISHED, get("@n"), get("@a"), ack(1, settle=0.2)
)
_with_two_queues(
    "set-while-full",
    [_ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    _shared(),
    publish("@n", "n1", settle=0.2),
    ack(1, settle=0.2),
)
_with_two_queues(
    "cancelled",
    [_shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    call("basic.cancel", consumer_tag="a"),
    publish("@n", "n1", settle=0.2),
    ack(1, settle=0.2),
)
_with_two_queues(
    "raised",
    [_shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    publish("@n", "n1", settle=0.2),
    _shared(2, settle=0.2),
    publish("@a", "a2", settle=0.2),
    publish("@n", "n2", settle=0.2),
    call("basic.qos", prefetch_count=0, settle=0.2, **{"global": 1}),
)
_with_two_queues(
    "lifted-by-a-limit-per-consumer",
    [_shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    publish("@n", "n1", settle=0.2),
    call("basic.qos", prefetch_count=5, settle=0.2),
)
_with_two_queues(
    "set-again",
    [_ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    publish("@a", "a2", settle=0.2),
    _shared(),
    call("basic.qos", prefetch_count=0, **{"global": 1}),
    _shared(),
    publish("@n", "n1", settle=0.2),
    ack(1, settle=0.2),
    ack(2, settle=0.2),
)
_with_two_queues(
    "lifted-and-settled-meanwhile",
    [_shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    call("basic.qos", prefetch_count=0, **{"global": 1}),
    publish("@a", "a2", settle=0.2),
    ack(1, settle=0.2),
    _shared(),
    publish("@n", "n1", settle=0.2),
    ack(2, settle=0.2),
)
_with_two_queues(
    "only-no-ack",
    [_shared(), _NO_ACK, consume("@a", "m", no_ack=1)],
    *[publish("@n", f"n{i}", settle=0.1) for i in (1, 2, 3)],
    publish("@a", "a1", settle=0.1),
)
_with_two_queues(
    "got",
    [_shared(), _NO_ACK, publish("@a", "a1")],
    get("@a", no_ack=0),
    publish("@n", "n1", settle=0.2),
)
_with_two_queues(
    "got-before",
    [publish("@a", "a1"), _NO_ACK],
    get("@a", no_ack=0),
    _shared(),
    publish("@n", "n1", settle=0.2),
    ack(1, settle=0.2),
    publish("@n", "n2", settle=0.2),
)
_with_two_queues(
    "got-before-and-lifted",
    [publish("@a", "a1"), _NO_ACK, get("@a", no_ack=0), _shared()],
    publish("@n", "n1", settle=0.2),
    _shared(2, settle=0.2),
    publish("@n", "n2", settle=0.2),
    _shared(1),
    publish("@n", "n3", settle=0.2),
    call("basic.qos", prefetch_count=0, settle=0.2, **{"global": 1}),
    ack(1),
    _shared(1),
    publish("@n", "n4", settle=0.2),
)
_with_two_queues(
    "got-while-lifted",
    [_shared(), _NO_ACK, call("basic.qos", prefetch_count=0, **{"global": 1})],
    publish("@a", "a1"),
    get("@a", no_ack=0),
    _shared(),
    publish("@n", "n1", settle=0.2),
    ack(1, settle=0.2),
)
_with_two_queues(
    "same-tag-without-acknowledgements",
    [_shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    call("basic.cancel", consumer_tag="a"),
    consume("@a", "a", no_ack=1),
    publish("@a", "a2", settle=0.2),
    ack(1, settle=0.2),
    publish("@n", "n1", settle=0.2),
)
_with_two_queues(
    "other-channel",
    [open_channel(2), _shared(), _ACKING, consume("@n", "n", no_ack=1, ch=2)],
    publish("@a", "a1", settle=0.2),
    publish("@n", "n1", settle=0.2),
)
_with_two_queues(
    "one-queue",
    [_shared(), _ACKING, consume("@a", "n", no_ack=1)],
    *[publish("@a", f"a{i}", settle=0.1) for i in (1, 2, 3, 4)],
    ack(1, settle=0.2),
)
_with_two_queues(
    "other-consumer-of-the-queue",
    [open_channel(2), _shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    publish("@n", "n1", settle=0.2),
    consume("@n", "other", ch=2, no_ack=1, settle=0.2),
    ack(1, settle=0.2),
)
_with_two_queues(
    "requeued",
    [_shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    publish("@n", "n1", settle=0.2),
    call("basic.cancel", consumer_tag="a"),
    reject(1, 1, settle=0.2),
)
_with_two_queues(
    "recovered",
    [_shared(), _ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.2),
    publish("@n", "n1", settle=0.2),
    call("basic.cancel", consumer_tag="a"),
    call("basic.recover", requeue=True, settle=0.2),
)
_with_two_queues(
    "priority",
    [
        _shared(),
        _ACKING,
        consume("@n", "low", no_ack=1),
        consume("@n", "high", no_ack=1, arguments={"x-priority": 9}),
    ],
    publish("@a", "a1", settle=0.2),
    publish("@n", "n1", settle=0.2),
    publish("@n", "n2", settle=0.2),
    ack(1, settle=0.2),
)
_with_two_queues("quorum", [_shared()], _ACKING, _NO_ACK, *_PUBLISHED, **_QUORUM)
each(
    "consume/no-ack-and-shared-limit-quorum-beside-classic",
    [queue("@a"), queue("@n", **_QUORUM)],
    [_ACKING, _NO_ACK],
    _shared(),
    *_PUBLISHED,
    ack(1, settle=0.2),
)
each(
    "consume/no-ack-and-shared-limit-quorum-acking",
    [queue("@a", **_QUORUM), queue("@n")],
    [_ACKING, _NO_ACK],
    _shared(),
    *_PUBLISHED,
    ack(1, settle=0.2),
)
each(
    "consume/no-ack-and-shared-limit-quorum-held-before",
    [queue("@a", **_QUORUM), queue("@n")],
    [_ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.3),
    _shared(),
    publish("@n", "n1", settle=0.2),
    ack(1, settle=0.3),
    publish("@n", "n2", settle=0.2),
)
each(
    "consume/no-ack-and-shared-limit-quorum-held-later",
    [queue("@a"), queue("@n"), queue("@qq", **_QUORUM)],
    [_ACKING, _NO_ACK, consume("@qq", "qq")],
    _shared(),
    publish("@a", "a1", settle=0.2),
    publish("@qq", "q1", settle=0.2),
    publish("@n", "n1", settle=0.2),
    ack(2, settle=0.3),
    publish("@n", "n2", settle=0.2),
)
each(
    "consume/no-ack-and-shared-limit-stream-held-before",
    [
        queue("@a", durable=1, arguments={"x-queue-type": "stream"}),
        queue("@n"),
        call("basic.qos", prefetch_count=5),
    ],
    [_ACKING, _NO_ACK],
    publish("@a", "a1", settle=0.5),
    _shared(),
    publish("@n", "n1", settle=0.2),
    ack(1, settle=0.3),
    publish("@n", "n2", settle=0.2),
)
_with_two_queues(
    "reply-to",
    [_shared(), _ACKING, consume("amq.rabbitmq.reply-to", "r", no_ack=1)],
    publish("@a", "a1", settle=0.2, props={"reply_to": "amq.rabbitmq.reply-to"}),
)
each(
    "consume/single-active",
    [queue(arguments={"x-single-active-consumer": True})],
    consume(tag="1", no_ack=1),
    consume(tag="2", no_ack=1),
    publish("@q", "a", settle=0.1),
    publish("@q", "b", settle=0.1),
    call("basic.cancel", consumer_tag="1"),
    publish("@q", "c", settle=0.1),
)
last(
    "consume/single-active-exclusive",
    queue(arguments={"x-single-active-consumer": True}),
    consume(exclusive=1),
)


# requeue and redelivered


def taken(count: int) -> list[Step]:
    """Messages that are held unacknowledged, by tags 1, 2, …"""
    return [get(no_ack=0) for _ in range(count)]


REST = contents()

each("requeue/nack-multiple", filled(5), taken(3), nack(3, multiple=1, requeue=1), REST)
each("requeue/reject-first", filled(5), taken(3), reject(1, 1), REST)
each("requeue/reject-middle-then-first", filled(5), taken(3), reject(2, 1), reject(1, 1), REST)
each("requeue/reject-last-first-order", filled(5), taken(3), reject(3, 1), reject(1, 1), reject(2, 1), REST)
each("requeue/recover", filled(5), taken(3), RECOVER, REST)
each("requeue/channel-close", filled(5), taken(3), REOPENED, REST)
each(
    "requeue/connection-lost",
    filled(5),
    [get(no_ack=0, on="b"), get(no_ack=0, on="b"), drop("b")],
    until("message_count=5", queue(passive=1)),
    REST,
)
each(
    "requeue/everything-taken",
    filled(3),
    taken(3),
    [nack(2, requeue=1), publish(body="new"), nack(0, multiple=1, requeue=1)],
    REST,
)
each("requeue/behind-later-publish", filled(2), taken(2), [publish(body="3"), reject(1, 1)], REST)
each(
    "requeue/with-consumer-redelivers-at-once",
    filled(2),
    consume(settle=0.2),
    nack(2, multiple=1, requeue=1, settle=0.3),
)
each(
    "requeue/recover-with-consumer",
    filled(2),
    consume(settle=0.2),
    call("basic.recover", requeue=1, settle=0.3),
)
each(
    "requeue/recover-async-with-consumer",
    filled(2),
    consume(settle=0.2),
    call("basic.recover-async", requeue=1, settle=0.3),
)
each("requeue/recover-only-own-channel", filled(2), [get(no_ack=0), get(no_ack=0, on="b"), RECOVER], REST)
each(
    "requeue/two-consumers-other-gets-it",
    [queue(), call("basic.qos", prefetch_count=1), consume(tag="1")],
    publish(settle=0.2),
    consume(tag="2", on="b"),
    nack(1, requeue=1, settle=0.2),
    nothing_more(0.2, on="b"),
)
each(
    "requeue/redelivered-not-set-for-prefetched-undelivered",
    filled(2),
    [open_channel(2), call("basic.qos", prefetch_count=1, ch=2), consume(ch=2, settle=0.2)],
    [call("channel.close", ch=2)],
    until("message_count=2", queue(passive=1)),
    REST,
)
each("requeue/no-ack-lost-with-channel", filled(2), [get()], REOPENED, REST)

# --- counts

each(
    "count/get-ok",
    [queue()],
    *[[publish("@q", str(i))] for i in range(3)],
    get(no_ack=0),
    get(no_ack=0),
    queue(passive=1),
    get(no_ack=0),
    get(),
)
each(
    "count/declare-ok-excludes-unacked", [queue()], [publish()], [publish()], get(no_ack=0), queue(passive=1)
)
each(
    "count/declare-ok-consumers",
    [queue()],
    consume(tag="1"),
    consume(tag="2", on="b"),
    queue(passive=1),
    call("basic.cancel", consumer_tag="1"),
    queue(passive=1),
)
each(
    "count/purge-excludes-unacked",
    [queue()],
    [publish()],
    [publish()],
    [publish()],
    get(no_ack=0),
    call("queue.purge", queue="@q"),
    call("basic.recover", requeue=1, settle=0.1),
    queue(passive=1),
)
last("count/purge-nowait", queue(), publish(), call("queue.purge", queue="@q", no_wait=1))
last("count/get-empty", queue(), get())


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
