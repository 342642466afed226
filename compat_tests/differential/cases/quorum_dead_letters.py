"""Quorum queues: dead letters at least once, where targets are missing, full or several."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.cases.quorum import counted, holding, quorum
from compat_tests.differential.script import *

AT_LEAST_ONCE = {"x_dead_letter_strategy": "at-least-once", "x_overflow": "reject-publish"}
TO_DEAD = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "@dead"}
TO_EXCHANGE = {"x_dead_letter_exchange": "@dlx"}
FULL = {"x-max-length": 1, "x-overflow": "reject-publish"}
PURGE = call("queue.purge", queue="@q")
GONE = call("queue.delete", queue="@q")


def dying(*bodies: str, **asked: Any) -> list[Step]:
    """@q with messages, all rejected."""
    return [*holding(*bodies, **asked), nack(len(bodies), multiple=1, requeue=0), pause(0.4)]


def arrived(count: int, name: str = "@dead") -> Step:
    return until(f"message_count={count}", queue(name, passive=1))


each(
    "held/order-of-many",
    [queue("@dead"), *dying(*"abcdefgh", **TO_DEAD, **AT_LEAST_ONCE), arrived(8)],
    contents("@dead"),
)
for _type in ("classic", "quorum"):
    _target = queue("@dead", durable=1, arguments={"x-queue-type": _type, **FULL})
    each(
        f"held/full-{_type}-target",
        [_target, *holding(*"abcd", **TO_DEAD, **AT_LEAST_ONCE)],
        [*(step for tag in range(1, 5) for step in (reject(tag), pause(0.3)))],
        queue("@dead", passive=1),
        queue(passive=1),
        PURGE,
        GONE,
    )
each(
    "held/full-drop-head-target",
    [queue("@dead", arguments={"x-max-length": 1}), *dying(*"abc", **TO_DEAD, **AT_LEAST_ONCE)],
    contents("@dead"),
    GONE,
)
each("held/missing-exchange", dying("a", "b", **TO_EXCHANGE, **AT_LEAST_ONCE), queue(passive=1), PURGE, GONE)
each(
    "held/missing-exchange-declared-later",
    [*dying("a", **TO_EXCHANGE, **AT_LEAST_ONCE)],
    [queue("@dead"), exchange("@dlx", "fanout"), bind("@dead", "@dlx"), pause(1.0)],
    queue("@dead", passive=1),
    GONE,
)
each(
    "held/unroutable",
    [exchange("@dlx"), *dying("a", **TO_EXCHANGE, **AT_LEAST_ONCE)],
    queue(passive=1),
    GONE,
)
each(
    "held/unroutable-then-bound",
    [queue("@dead"), exchange("@dlx", "fanout"), *dying("a", **TO_EXCHANGE, **AT_LEAST_ONCE)],
    [bind("@dead", "@dlx"), pause(1.0)],
    queue("@dead", passive=1),
)
each(
    "held/unroutable-and-one-more-dies",
    [queue("@dead"), exchange("@dlx", "fanout"), *dying("a", **TO_EXCHANGE, **AT_LEAST_ONCE)],
    [bind("@dead", "@dlx"), publish(body="b"), until("get-ok", get(no_ack=0)), reject(2), pause(0.6)],
    contents("@dead"),
)
each(
    "held/one-of-two-targets-full",
    [queue("@dead"), queue("@full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})],
    [exchange("@dlx", "fanout"), bind("@dead", "@dlx"), bind("@full", "@dlx")],
    [*dying("a", "b", **TO_EXCHANGE, **AT_LEAST_ONCE)],
    contents("@dead"),
    GONE,
)
each(
    "held/alternate-exchange-of-the-target",
    [queue("@dead"), exchange("@ae", "fanout"), bind("@dead", "@ae")],
    [exchange("@dlx", arguments={"alternate-exchange": "@ae"})],
    [*dying("a", **TO_EXCHANGE, **AT_LEAST_ONCE)],
    until("get-ok", get("@dead")),
)
each(
    "held/to-itself-expired",
    [quorum(x_dead_letter_exchange="", x_dead_letter_routing_key="@q", **AT_LEAST_ONCE)],
    [publish(body="m", props={"expiration": "50"}), pause(0.5)],
    queue(passive=1),
    GONE,
)
each(
    "held/to-itself-rejected",
    [*holding("m", x_dead_letter_exchange="", x_dead_letter_routing_key="@q", **AT_LEAST_ONCE), reject(1)],
    until("get-ok", get()),
)
each(
    "held/to-itself-expired-by-the-queue",
    [quorum(x_dead_letter_exchange="", x_dead_letter_routing_key="@q", x_message_ttl=50, **AT_LEAST_ONCE)],
    [publish(body="m"), pause(0.5)],
    queue(passive=1),
    GONE,
)
for _name, _asked in (
    ("drop-head", {"x_dead_letter_strategy": "at-least-once", "x_overflow": "drop-head"}),
    ("no-overflow", {"x_dead_letter_strategy": "at-least-once"}),
):
    each(f"held/{_name}-nowhere", dying("a", **TO_EXCHANGE, **_asked), queue(passive=1), GONE)
each("held/no-exchange", dying("a", **AT_LEAST_ONCE), queue(passive=1), GONE)
each(
    "held/expired-with-copies",
    [queue("@dead"), queue("@copy"), *[quorum(x_dead_letter_exchange="", **AT_LEAST_ONCE)]],
    [publish(body="m", props={"expiration": "50", "headers": {"CC": ["@copy"]}}), get("@copy")],
    until("get-ok", get("@copy")),
)
each(
    "held/limit-reached-with-many",
    [queue("@dead"), *holding(*"abc", x_delivery_limit=0, **TO_DEAD, **AT_LEAST_ONCE)],
    [nack(3, multiple=1, requeue=1), arrived(3)],
    contents("@dead"),
)
each(
    "held/counts-towards-the-limit-in-bytes",
    [*holding("aaaa", "bbbb", x_max_length_bytes=6, **TO_EXCHANGE, **AT_LEAST_ONCE)],
    [CONFIRMS, reject(1), reject(2), pause(0.3)],
    *(publish(settle=0.3) for _ in range(3)),
    PURGE,
    publish(settle=0.3),
    publish(settle=0.3),
)
each(
    "held/more-than-32",
    [exchange("@dlx"), *dying(*(str(n) for n in range(40)), **TO_EXCHANGE, **AT_LEAST_ONCE)],
    GONE,
)
each(
    "held/dies-in-a-target-too",
    [
        queue("@end"),
        queue(
            "@dead",
            durable=1,
            arguments={
                "x-queue-type": "quorum",
                "x-message-ttl": 50,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": "@end",
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
            },
        ),
    ],
    [*dying("m", **TO_DEAD, **AT_LEAST_ONCE)],
    until("get-ok", get("@end")),
)
each(
    "held/target-deleted",
    [queue("@dead"), *holding("a", "b", **TO_DEAD, **AT_LEAST_ONCE), reject(1), arrived(1)],
    [call("queue.delete", queue="@dead"), reject(2), pause(0.3)],
    GONE,
)
last(
    "held/redeclared-without-strategy",
    quorum(**TO_DEAD, **AT_LEAST_ONCE),
    quorum(**TO_DEAD, x_overflow="reject-publish"),
)
last("held/declared-classic", queue(arguments={"x-dead-letter-strategy": "at-least-once"}))
each(
    "held/purge-of-the-ready",
    [queue("@dead"), *holding("a", "b", **TO_DEAD, **AT_LEAST_ONCE), publish(body="c"), counted("1")],
    PURGE,
    [reject(1), arrived(1)],
    contents("@dead"),
)
