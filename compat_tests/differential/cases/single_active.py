"""Single active consumers: which consumer is active, and which one follows it, on both types of queues."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

PREFETCH = call("basic.qos", prefetch_count=10)


def enters(tag: str, priority: int | None = None, **arguments: Any) -> Step:
    """A consumer, of this priority if it has any."""
    given = {} if priority is None else {"x-priority": priority}
    return consume(tag=tag, arguments=given, **arguments)


def leaves(tag: str, **arguments: Any) -> Step:
    return call("basic.cancel", consumer_tag=tag, settle=0.3, **arguments)


def sent(body: str, **arguments: Any) -> Step:
    """Publish, and see who gets it, if that is a consumer on the same connection."""
    return publish(body=body, settle=0.3, **arguments)


for _type in ("classic", "quorum"):
    _single = queue(durable=1, arguments={"x-queue-type": _type, "x-single-active-consumer": True})

    def single(name: str, *steps: Any, kind: str = _type, declared: Step = _single) -> None:
        """A case with such a queue and a client that takes up to ten messages for a consumer."""
        each(f"single/{kind}-{name}", [declared, PREFETCH], *steps)

    single(
        "in-order-of-arrival",
        [enters("a"), enters("b"), enters("c")],
        sent("1"),
        [ack(1), leaves("a")],
        sent("2"),
        [ack(2), leaves("b")],
        sent("3"),
    )
    single(
        "active-leaves-with-unacked",
        [enters("a"), enters("b")],
        sent("1"),
        leaves("a"),
        sent("2"),
        ack(1, settle=0.3),
        sent("3"),
    )
    single(
        "active-leaves-and-returns-its-messages",
        [enters("a"), enters("b")],
        sent("1"),
        leaves("a"),
        nack(1, requeue=1, settle=0.3),
    )
    single("waiting-one-leaves", [enters("a"), enters("b"), enters("c"), leaves("b"), leaves("a")], sent("1"))
    single(
        "active-ones-channel-closes",
        [call("channel.open", ch=2), PREFETCH, enters("a", ch=2), enters("b")],
        sent("1"),
        # Now one comes first on RabbitMQ, and now the other.
        lambda scene: sorted(call("channel.close", ch=2, reply_code=200, settle=0.4)(scene)),
        sent("2"),
    )
    single(
        "active-ones-socket-ends",
        [enters("a", on="other"), enters("b"), publish(body="1"), arrivals(on="other"), drop("other")],
        arrivals(),
        sent("2"),
    )
    single(
        "comes-back-behind-others",
        [enters("a"), enters("b"), leaves("a"), enters("a")],
        sent("1"),
        [ack(1), leaves("b")],
        sent("2"),
    )
    single("higher-priority-later", [enters("a"), enters("b", 5)], sent("1"))
    single(
        "higher-priority-while-unacked",
        [enters("a")],
        sent("1"),
        [enters("b", 5)],
        sent("2"),
        ack(1, multiple=1, settle=0.3),
        sent("3"),
        ack(2, settle=0.3),
        sent("4"),
    )
    single("higher-priority-after-ack", [enters("a")], sent("1"), [enters("b", 5), ack(1)], sent("2"))
    single(
        "next-by-priority",
        [enters("a", 9), enters("b", 1), enters("c", 5), leaves("a")],
        sent("1"),
        [ack(1), leaves("c")],
        sent("2"),
    )
    single("equal-priority-later", [enters("a", 5), enters("b", 5)], sent("1"))
    single("lower-priority-later", [enters("a"), enters("b", -5), leaves("a")], sent("1"))
    single("two-higher-ones", [enters("a"), enters("b", 5), enters("c", 7)], sent("1"))
    single(
        "nacked-while-a-higher-waits",
        [enters("a")],
        sent("1"),
        [enters("b", 5)],
        nack(1, requeue=1, settle=0.4),
    )
    single(
        "counts-while-the-cancelled-holds",
        [enters("a"), enters("b"), sent("1"), leaves("a")],
        queue(passive=1),
        ack(1),
        pause(0.2),
        queue(passive=1),
    )
    single("exclusive", enters("a", exclusive=1))
    single("exclusive-second", [enters("a")], enters("b", exclusive=1))
    single("no-ack", [enters("a", no_ack=1), enters("b")], sent("1"), sent("2"), leaves("a"), sent("3"))
    single(
        "same-channel-prefetch-full",
        [call("basic.qos", prefetch_count=1), enters("a"), enters("b")],
        sent("1"),
        sent("2"),
        ack(1, settle=0.3),
    )
    single(
        "purge-leaves-the-unacked",
        [enters("a"), sent("1")],
        call("queue.purge", queue="@q"),
        ack(1),
        sent("2"),
    )
    single(
        "delete-tells-both",
        [enters("a"), enters("b")],
        call("queue.delete", queue="@q", on="other"),
        pause(0.4),
    )
