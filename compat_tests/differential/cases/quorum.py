"""Quorum queues."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *


def quorum(name: str = "@q", **asked: Any) -> Call:
    """Declare a quorum queue; x_max_length is x-max-length."""
    arguments = {"x-queue-type": "quorum", **{key.replace("_", "-"): asked[key] for key in asked}}
    return queue(name, durable=1, arguments=arguments)


def counted(wanted: str) -> Step:
    """A passive declare, once it tells of so many messages."""
    return until(f"message_count={wanted}", queue(passive=1))


def loaded(*bodies: str, **asked: Any) -> list[Step]:
    """@q with these messages."""
    return [quorum(**asked), *(publish(body=body) for body in bodies), counted(str(len(bodies)))]


def holding(*bodies: str, **asked: Any) -> list[Step]:
    """@q with these messages, of which all have been got."""
    taken: list[Step] = [get(no_ack=0) for _ in bodies]
    return [*loaded(*bodies, **asked), *taken]


GONE = call("queue.delete", queue="@q")
LIMIT = {"x_delivery_limit": 5}

# --- declaration

each("quorum/declare", quorum(), quorum(), queue(passive=1), GONE)
for _flags in (
    {"durable": 0},
    {"durable": 1, "auto_delete": 1},
    {"durable": 1, "exclusive": 1},
    {"durable": 0, "auto_delete": 1},
    {"durable": 0, "exclusive": 1},
    {"durable": 0, "auto_delete": 1, "exclusive": 1},
):
    last(
        f"quorum/declare-{'-'.join(name for name, on in _flags.items() if on) or 'transient'}",
        queue(arguments={"x-queue-type": "quorum"}, **_flags),
    )
last("quorum/declare-server-named", quorum(name=""))
for _name, _value in (
    ("x_delivery_limit", -1),
    ("x_delivery_limit", "abc"),
    ("x_dead_letter_strategy", "bogus"),
    ("x_dead_letter_strategy", 5),
    ("x_dead_letter_strategy", "at-least-once"),
    ("x_overflow", "reject-publish-dlx"),
    ("x_overflow", "bogus"),
    ("x_max_length", -1),
    ("x_max_length", "5"),
    ("x_max_in_memory_length", -1),
    ("x_max_in_memory_bytes", 100),
    ("x_quorum_initial_group_size", 0),
    ("x_quorum_initial_group_size", 3),
    ("x_queue_leader_locator", "bogus"),
    ("x_queue_leader_locator", "balanced"),
    ("x_expires", 0),
    ("x_max_priority", 5),
    ("x_queue_mode", "lazy"),
    ("x_max_age", "1h"),
    ("x_single_active_consumer", "yes"),
    ("x_nonsense", 5),
):
    last(f"quorum/declare-{_name}={_value}", quorum(**{_name: _value}))
    last(f"quorum/redeclare-{_name}={_value}", quorum(), quorum(**{_name: _value}))
last("quorum/declare-two-bad-values", quorum(x_max_length=-1, x_expires=0))
last(
    "quorum/declare-bad-value-and-flag",
    queue(auto_delete=1, arguments={"x-queue-type": "quorum", "x-expires": 0}),
)
last("quorum/redeclare-two-differences", quorum(), quorum(x_delivery_limit=1, x_expires=5000))
last("quorum/redeclare-without-type", quorum(), queue(durable=1))
last("quorum/redeclare-as-classic", quorum(), queue(durable=1, arguments={"x-queue-type": "classic"}))
last("quorum/redeclare-classic-as-quorum", queue(durable=1), quorum())
last("quorum/redeclare-transient", quorum(), queue(arguments={"x-queue-type": "quorum"}))

# --- deletion and purge

for _flags in ({"if_unused": 1}, {"if_empty": 1}, {"if_unused": 1, "if_empty": 1}):
    last(f"quorum/delete-{'-'.join(_flags)}", quorum(), call("queue.delete", queue="@q", **_flags))
each(
    "quorum/delete-with-messages",
    holding("a", "b"),
    [publish(body="c"), publish(body="d"), counted("2")],
    GONE,
)
each("quorum/purge", [*loaded("a", "b", "c"), get(no_ack=0)], call("queue.purge", queue="@q"))
each(
    "quorum/purge-what-came-back",
    holding("a", "b", **LIMIT),
    [publish(body="c"), counted("1"), nack(1, requeue=1)],
    counted("2"),
    call("queue.purge", queue="@q"),
    [nack(2, requeue=1)],
    counted("1"),
)

# --- consumers

last("quorum/consume-global-qos", quorum(), shared(5), consume())
last("quorum/consume-global-qos-0", quorum(), shared(0), consume())
each("quorum/consume-exclusive-twice", [quorum()], consume(exclusive=1), consume(tag="d", exclusive=1))
last("quorum/consume-priority-text", quorum(), consume(arguments={"x-priority": "high"}))
last("quorum/consume-stream-offset", quorum(), consume(arguments={"x-stream-offset": "first"}))
each("quorum/consume-no-ack", loaded("a"), consume(no_ack=1), arrivals(), counted("0"))
each("quorum/count-get", holding("a"), queue(passive=1))
each(
    "quorum/count-cancelled",
    [*loaded("a"), consume(), arrivals()],
    call("basic.cancel", consumer_tag="c"),
    until("consumer_count=1", queue(passive=1)),
    [ack(1)],
    until("consumer_count=0", queue(passive=1)),
)
each("quorum/round-robin", [quorum(), consume(tag="a"), consume(tag="b")], *one_by_one("1", "2", "3"))
each(
    "quorum/line-by-credit",
    [quorum(), call("basic.qos", prefetch_count=1), consume(tag="a"), consume(tag="b"), consume(tag="c")],
    *one_by_one("1", "2", "3"),
    call("basic.ack", delivery_tag=3, settle=0.2),
    call("basic.ack", delivery_tag=1, settle=0.2),
    *one_by_one("4", "5"),
)
each(
    "quorum/priority-of-consumers",
    [
        quorum(),
        call("basic.qos", prefetch_count=2),
        consume(tag="a"),
        consume(tag="b", arguments={"x-priority": 5}),
    ],
    *one_by_one("1", "2", "3"),
)

# --- single active consumer

SINGLE = {"x_single_active_consumer": True}
last("quorum/single-get", quorum(**SINGLE), get())
each("quorum/single-count", [quorum(**SINGLE), consume(tag="a"), consume(tag="b")], queue(passive=1))
each(
    "quorum/single-fails-over",
    [quorum(**SINGLE), consume(tag="a"), consume(tag="b")],
    publish(body="1", settle=0.3),
    call("basic.cancel", consumer_tag="a"),
    publish(body="2", settle=0.3),
)
each(
    "quorum/single-gets-what-was-held-first",
    [quorum(**SINGLE), consume(tag="a"), consume(tag="b", on="b")],
    *one_by_one("1", "2"),
    [call("channel.close")],
    arrivals(2, on="b"),
)

# --- what comes back

for _name, _back in (
    ("nack", [nack(3, multiple=1, requeue=1)]),
    ("reject", [reject(2, requeue=1), reject(1, requeue=1), reject(3, requeue=1)]),
    ("recover", [RECOVER]),
    ("close", REOPENED),
):
    for _kind, _asked in (("limit", LIMIT), ("plain", {})):
        each(
            f"quorum/{_name}-{_kind}",
            [*holding("a", "b", "c", **_asked), publish(body="d"), counted("1"), *_back],
            counted("4"),
            contents(),
        )
for _limit in (0, 1, 2):
    each(
        f"quorum/limit-{_limit}",
        holding("a", x_delivery_limit=_limit),
        *(
            step
            for tag in range(1, _limit + 2)
            for step in (reject(tag, requeue=1, settle=0.2), get(no_ack=0))
        ),
    )
each(
    "quorum/nack-by-tag",
    [quorum(**LIMIT), call("basic.qos", prefetch_count=2), consume(tag="z"), consume(tag="y")],
    [*(publish(body=body, settle=0.3) for body in "abcd")],
    [call("basic.cancel", consumer_tag="z"), call("basic.cancel", consumer_tag="y")],
    [nack(4, multiple=1, requeue=1)],
    counted("4"),
    contents(),
)
each(
    "quorum/redelivered-to-consumer",
    [quorum(**LIMIT), consume()],
    publish(body="1", settle=0.3),
    call("basic.nack", delivery_tag=1, requeue=1, settle=0.3),
    call("basic.nack", delivery_tag=2, requeue=1, settle=0.3),
)

# --- limits

each(
    "quorum/drop-head",
    loaded("a", "b", "c", x_max_length=2)[:-1],
    counted("2"),
    pause(0.2),
    contents(),
)
each(
    "quorum/drop-head-bytes",
    [quorum(x_max_length_bytes=3), publish(body="a"), publish(body="b"), publish(body="ccc")],
    pause(0.3),
    queue(passive=1),
    contents(),
)
each(
    "quorum/drop-what-came-back",
    [*holding("a", x_max_length=2, **LIMIT), publish(body="b"), publish(body="c"), counted("2")],
    [nack(1, requeue=1)],
    pause(0.3),
    contents(),
)
each("quorum/length-0", [quorum(x_max_length=0), CONFIRMS], publish(body="a", settle=0.3), queue(passive=1))
each(
    "quorum/reject-publish",
    [quorum(x_max_length=2, x_overflow="reject-publish"), CONFIRMS],
    *(publish(settle=0.3) for _ in range(5)),
    [get()],
    publish(settle=0.3),
    [get(), pause(0.3)],
    publish(settle=0.3),
)
each(
    "quorum/reject-publish-tx",
    [quorum(x_max_length=0, x_overflow="reject-publish"), CONFIRMS, publish(settle=0.3)],
    [open_channel(2), call("tx.select", ch=2), publish(ch=2)],
    call("tx.commit", ch=2),
    queue(passive=1),
)
each("quorum/tx", [quorum(), TX, publish(body="a")], queue(passive=1), call("tx.commit"), counted("1"))

# --- time

each("quorum/ttl", loaded("a", x_message_ttl=500), queue(passive=1), counted("0"))
each(
    "quorum/ttl-behind-another",
    [quorum(), publish(body="a"), publish(body="b", props={"expiration": "100"})],
    pause(0.4),
    queue(passive=1),
    get(),
    get(),
)
each(
    "quorum/ttl-of-what-is-held",
    holding("a", x_message_ttl=500, **LIMIT),
    pause(0.7),
    [nack(1, requeue=1)],
    pause(0.3),
    queue(passive=1),
)

# --- dead letters

TO_DEAD = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "@dead"}
for _strategy, _asked in (
    ("at-most-once", {}),
    ("at-least-once", {"x_dead_letter_strategy": "at-least-once", "x_overflow": "reject-publish"}),
):
    for _name, _back in (("reject", reject(1)), ("limit", reject(1, requeue=1))):
        each(
            f"quorum/dead-letter-{_strategy}-{_name}",
            [queue("@dead"), *holding("a", x_delivery_limit=0, **TO_DEAD, **_asked)],
            [_back],
            until("get-ok", get("@dead")),
        )
    each(
        f"quorum/dead-letter-{_strategy}-expired",
        [queue("@dead"), quorum(**TO_DEAD, **_asked), publish(body="a", props={"expiration": "100"})],
        until("get-ok", get("@dead")),
    )
    each(
        f"quorum/dead-letter-{_strategy}-nowhere",
        [*holding("a", **TO_DEAD, **_asked)],
        [reject(1), pause(0.4)],
        queue("@dead"),
        pause(0.4),
        get("@dead"),
        queue(passive=1),
    )
each(
    "quorum/held-dead-letters-count",
    holding(
        "a",
        "b",
        x_max_length=2,
        x_dead_letter_strategy="at-least-once",
        x_overflow="reject-publish",
        **TO_DEAD,
    ),
    [CONFIRMS, reject(1), reject(2), pause(0.3)],
    *(publish(settle=0.3) for _ in range(3)),
)
each(
    "quorum/dead-letter-maxlen-order",
    [queue("@dead"), quorum(x_max_length=1, **TO_DEAD), *(publish(body=body) for body in "abc")],
    until("message_count=2", queue("@dead", passive=1)),
    contents("@dead"),
)
each(
    "quorum/fanout-to-both-types",
    [exchange(type="fanout"), quorum(), queue("@c"), bind(), bind("@c"), CONFIRMS],
    publish(key="", exchange="@x", settle=0.3),
    contents(),
    contents("@c"),
)
