"""Streams: declaring them, and consuming what was published with a confirm each."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *


def stream(**arguments: Any) -> Call:
    """Declare @q; x_max_age is x-max-age."""
    table = {key.replace("_", "-"): value for key, value in arguments.items()}
    return queue(durable=1, arguments={"x-queue-type": "stream", **table})


def reads(offset: Any = "first", tag: str = "c", **arguments: Any) -> Call:
    return consume(tag=tag, arguments={"x-stream-offset": offset, **arguments})


def prefetch(count: int) -> Call:
    return call("basic.qos", prefetch_count=count)


def written(body: str = "m", ch: int = 1, key: str = "@q", **props: Any) -> Step:
    """Publish to a queue on a channel with confirms, and wait for the ack, which may come at any moment."""

    def write(scene: Scene) -> list[str]:
        came = publish(key, body, ch=ch, props={"delivery_mode": 2, **props})(scene)
        while not any(text.startswith("basic.ack") for text in came):
            came += arrivals()(scene)
            if "silence" in came or "closed" in came:
                return [*came, "silence"]
        return [text for text in came if not text.startswith(("basic.ack", "-"))]

    return write


def holding(count: int) -> list[Step]:
    """A stream with messages 1, 2, …, each in a chunk of its own."""
    return [stream(), CONFIRMS, *(written(str(number + 1)) for number in range(count))]


def brings(count: int, step: Step) -> Step:
    """Take a step and wait for so many deliveries; they may come before the broker says that it is done."""

    def take(scene: Scene) -> list[str]:
        came = step(scene)
        while sum(text.startswith("basic.deliver") for text in came) < count:
            came += arrivals()(scene)
            if "silence" in came:
                break
        return [text for text in came if text != "-"]

    return take


# --- declaring

ARGUMENTS: dict[str, list[Any]] = {
    "x-max-length-bytes": ["5", -1, 0],
    "x-max-age": [5, True, "3600", "0s", "1w", "1s ", "1.5h", "1h", "bad", ""],
    "x-stream-max-segment-size-bytes": ["5", -1, 0, Tagged("l", 3_000_000_000), Tagged("l", 3_000_000_001)],
    "x-initial-cluster-size": ["1", 0, -1, 5],
    "x-queue-leader-locator": ["bogus", 5, "client-local", "balanced", "random", "least-leaders"],
    "x-dead-letter-exchange": [5, "amq.direct"],
    "x-unknown": [5],
}
for _key, _values in ARGUMENTS.items():
    for _value in _values:
        last(f"stream/declare-{_key}={_value!r}", stream(**{_key: _value}))
for _key in (
    "x-max-length",
    "x-message-ttl",
    "x-expires",
    "x-dead-letter-routing-key",
    "x-overflow",
    "x-max-priority",
    "x-queue-mode",
    "x-single-active-consumer",
    "x-delivery-limit",
    "x-queue-master-locator",
):
    last(f"stream/declare-{_key}", stream(**{_key: "bad"}))
for _name, _flags in {
    "transient": {"durable": 0},
    "exclusive": {"durable": 1, "exclusive": 1},
    "auto-delete": {"durable": 1, "auto_delete": 1},
    "all-flags": {"durable": 0, "exclusive": 1, "auto_delete": 1},
}.items():
    last(f"stream/declare-{_name}", queue(arguments={"x-queue-type": "stream"}, **_flags))
last(
    "stream/declare-server-named", queue("", durable=1, arguments={"x-queue-type": "stream", "x-max-age": 5})
)
last("stream/again", stream(), stream())
last("stream/again-age-as-text", stream(x_max_age="1h"), stream(x_max_age="60m"))
last("stream/again-without-age", stream(x_max_age="1h"), stream())
last("stream/again-with-age", stream(), stream(x_max_age="1h"))
last("stream/again-transient", stream(), queue(durable=0, arguments={"x-queue-type": "stream"}))
last("stream/again-others-arguments", stream(), stream(x_max_length=5))
last("stream/again-without-type", stream(), queue(durable=1))
last("stream/again-order", stream(), stream(x_queue_leader_locator="balanced", x_max_length_bytes=5))

# --- what does not go

last("stream/get", stream(), get())
last("stream/get-ack", stream(), get(no_ack=0))
last("stream/purge", stream(), call("queue.purge", queue="@q"))
last("stream/consume-without-prefetch", stream(), reads())
last("stream/consume-without-prefetch-no-ack", stream(), consume(no_ack=1))
last("stream/consume-no-ack", stream(), prefetch(5), consume(no_ack=1))
last("stream/consume-global-only", stream(), shared(5), reads())
last("stream/consume-global", stream(), prefetch(5), shared(5), reads())
last("stream/consume-priority", stream(), prefetch(5), reads(**{"x-priority": 5}))
for _value in ("1w", "5", "0s", "bad", "", "First"):
    last(f"stream/consume-offset={_value!r}", stream(), reads(_value))
for _value in (True, None, Tagged("d", 1.5), {"a": 1}, [1]):
    last(f"stream/consume-offset={_value!r}", stream(), prefetch(5), reads(_value))
last("stream/consume-classic-offset", queue(), prefetch(5), reads())
last("stream/recover-false", stream(), call("basic.recover", requeue=0))

# --- consuming

for _value, _count in (
    ("first", 3),
    ("last", 1),
    (b"first", 3),
    (0, 3),
    (1, 2),
    (-5, 3),
    ("1h", 3),
    (Tagged("T", 0), 3),
    (Tagged("B", 2), 1),
):
    each(f"stream/from-{_value!r}", holding(3), prefetch(10), brings(_count, reads(_value)), pause())
for _value in ("next", 3, Tagged("T", 2**32)):
    each(
        f"stream/from-{_value!r}",
        [*holding(3), prefetch(10), reads(_value), open_channel(2)],
        brings(1, publish(body="new", ch=2, props={"delivery_mode": 2})),
        pause(),
    )
each(
    "stream/from-beyond",
    [*holding(2), prefetch(1), reads(3), open_channel(2)],
    publish(body="3", ch=2, props={"delivery_mode": 2}),
    pause(),
    brings(1, publish(body="4", ch=2, props={"delivery_mode": 2})),
)
each(
    "stream/credit",
    holding(5),
    prefetch(2),
    brings(2, reads()),
    pause(),
    brings(1, ack(1)),
    brings(2, ack(3, multiple=1)),
    pause(),
)
each(
    "stream/two-consumers",
    holding(2),
    prefetch(5),
    brings(2, reads("first", "a")),
    brings(2, reads("first", "b")),
)
each(
    "stream/exclusive",
    holding(1),
    prefetch(5),
    brings(1, consume(tag="a", exclusive=1, arguments={"x-stream-offset": "first"})),
    brings(1, consume(tag="b", exclusive=1, arguments={"x-stream-offset": "first"})),
)
each(
    "stream/cancelled",
    [*holding(3), prefetch(2), brings(2, reads())],
    call("basic.cancel", consumer_tag="c"),
    ack(2, multiple=1),
    pause(),
    brings(1, reads(2)),
)
each("stream/unknown-tag", [*holding(1), prefetch(1), brings(1, reads())], ack(1), ack(1))
each(
    "stream/headers-in-order",
    [stream(), CONFIRMS, written(headers={"z": 1, "a": "t", "b": b"x", "array": [1]}), prefetch(1)],
    brings(1, reads()),
)
each("stream/delete", holding(2), call("queue.delete", queue="@q", if_empty=1), queue(passive=1))
each("stream/nack", [*holding(1), prefetch(1), brings(1, reads())], call("basic.nack", delivery_tag=1))
