"""Streams: where consumers begin, what filters let through, what retention keeps, and how credit returns."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.differential.cases.streams import brings, holding, prefetch, reads, stream, written
from compat_tests.differential.script import *

PERSISTENT = {"delivery_mode": 2}

# --- offsets

for _value in ("5s", "30m", "1h", "1D", "1M", "1Y", "7D", "100Y", "0s"):
    each(f"offset/age-{_value}", holding(2), prefetch(10), brings(2, reads(_value)), pause())
for _value in ("1w", "5", "bad", "", "First", "LAST", "-1h", "1.5h", "1h ", " 1h", "1d", "1ms", "NEXT", "0"):
    last(f"offset/bad-{_value!r}", stream(), prefetch(1), reads(_value))
for _tag, _number in (("b", 1), ("B", 1), ("s", 1), ("u", 1), ("I", 1), ("i", 1), ("l", 1)):
    each(f"offset/width-{_tag}", holding(3), prefetch(10), brings(2, reads(Tagged(_tag, _number))))
for _number in (2**31, 2**62, -(2**62)):
    each(
        f"offset/number-{_number}",
        [*holding(2), prefetch(10)],
        reads(Tagged("l", _number)),
        pause(0.4),
    )
for _value in ("first", "last", "next", 0, 3, "1h", Tagged("T", 5)):
    each(
        f"offset/empty-stream-{_value!r}",
        [stream(), prefetch(10), reads(_value), open_channel(2)],
        publish(body="1", ch=2, props=PERSISTENT, settle=0.5),
        publish(body="2", ch=2, props=PERSISTENT, settle=0.5),
    )
each(
    "offset/none",
    [*holding(2), prefetch(10), open_channel(2), consume()],
    brings(1, publish(body="3", ch=2, props=PERSISTENT)),
    pause(),
)


@case("offset/between-two-seconds")
def _(scene: Scene) -> list[str]:
    for step in (stream(), CONFIRMS, written("1"), written("2")):
        step(scene)
    scene.a.quiet(1.2 / scene.address.patience)
    border = int(time.time())
    scene.a.quiet(1.2 / scene.address.patience)
    for step in (written("3"), written("4"), prefetch(10)):
        step(scene)
    told = brings(2, reads(Tagged("T", border)))(scene) + pause()(scene)
    return [*told, *brings(4, reads(Tagged("T", border - 60), "d"))(scene)]


# --- filters


def marked(body: str, value: Any = None, **headers: Any) -> Step:
    """A message with this filter value."""
    if value is not None:
        headers["x-stream-filter-value"] = value
    return written(body, headers=headers)


MARKED = [
    stream(),
    CONFIRMS,
    marked("1", "red"),
    marked("2", "blue"),
    marked("3"),
    marked("4", "red"),
    marked("5", "green"),
    prefetch(20),
]


def filtered(name: str, value: Any, **more: Any) -> None:
    arguments = {"x-stream-filter": value, **{key.replace("_", "-"): more[key] for key in more}}
    each(f"filter/{name}", MARKED, reads("first", **arguments), pause(0.5))


filtered("one", "red")
filtered("two", ["red", "green"])
filtered("unknown", "yellow")
filtered("and-unfiltered", "blue", x_stream_match_unfiltered=True)
filtered("not-unfiltered", "blue", x_stream_match_unfiltered=False)
filtered("unfiltered-as-text", "blue", x_stream_match_unfiltered="true")
filtered("empty-text", "")
filtered("empty-list", [])
filtered("number", 5)
filtered("numbers", [5, "red"])
filtered("bytes", b"red")
filtered("table", {"a": "red"})
filtered("case-matters", "RED")
filtered("unknown-and-unfiltered", "yellow", x_stream_match_unfiltered=True)
each("filter/only-unfiltered", MARKED, reads("first", **{"x-stream-match-unfiltered": True}), pause(0.5))
each("filter/from-an-offset", MARKED, reads(2, **{"x-stream-filter": "red"}), pause(0.5))
each("filter/from-the-last", MARKED, reads("last", **{"x-stream-filter": "red"}), pause(0.5))
each(
    "filter/new-ones",
    [*MARKED, reads("next", **{"x-stream-filter": "red"})],
    brings(1, marked("6", "red")),
    marked("7", "blue"),
    pause(0.3),
)
each(
    "filter/credit-is-for-what-passes",
    [*MARKED[:-1], prefetch(1)],
    reads("first", **{"x-stream-filter": "red"}),
    pause(0.4),
    brings(1, ack(1)),
)
for _value in (5, b"red", True, ["red"], ""):
    each(
        f"filter/value-{_value!r}",
        [stream(), CONFIRMS, marked("1", _value), marked("2", "red"), prefetch(5)],
        reads("first", **{"x-stream-filter": "red"}),
        pause(0.4),
    )
each(
    "filter/of-a-long-value",
    [stream(), CONFIRMS, marked("1", "x" * 300), marked("2", "y"), prefetch(5)],
    reads("first", **{"x-stream-filter": "x" * 300}),
    pause(0.4),
)
each(
    "filter/size-of-the-bloom-filter",
    [stream(**{"x-stream-filter-size-bytes": 255}), CONFIRMS, marked("1", "red"), marked("2", "blue")],
    [prefetch(5)],
    reads("first", **{"x-stream-filter": "blue"}),
    pause(0.4),
)
for _value in (15, 16, 255, 256, "16"):
    last(f"filter/declare-size-{_value!r}", stream(**{"x-stream-filter-size-bytes": _value}))
last("filter/classic-queue", queue(), consume(arguments={"x-stream-filter": "red"}))

# --- retention


def kept(
    name: str, count: int, *between: Step, size: int = 500, queue_name: str = "@q", **asked: Any
) -> None:
    """The offsets that are left of so many messages, written one after the other."""

    @case(f"retention/{name}")
    def _(scene: Scene) -> list[str]:
        arguments = {"x-queue-type": "stream", **{key.replace("_", "-"): asked[key] for key in asked}}
        queue(queue_name, durable=1, arguments=arguments)(scene)
        CONFIRMS(scene)
        for number in range(count):
            if number == count // 2:
                for step in between:
                    step(scene)
            if "silence" in (told := written(str(number) + "." * size, key=queue_name)(scene)):
                return told
        # RabbitMQ looks at the segments beside writing to them.
        scene.a.quiet(0.3)
        prefetch(200)(scene)
        told = consume(queue_name, arguments={"x-stream-offset": "first"})(scene)
        told += pause(0.5)(scene)
        found = [text.partition("x-stream-offset=l:")[2].partition("}")[0] for text in told]
        return [" ".join(offset for offset in found if offset) or "nothing"]


SEGMENT = {"x_stream_max_segment_size_bytes": 2000}
kept("without-limits", 12, **SEGMENT)
kept("by-size", 20, **SEGMENT, x_max_length_bytes=6000)
kept("by-size-in-large-segments", 12, x_max_length_bytes=1000)
kept("of-large-messages", 8, size=2500, **SEGMENT, x_max_length_bytes=6000)
kept("of-exactly-full-segments", 12, size=900, **SEGMENT, x_max_length_bytes=5000)
kept("by-age", 12, pause(1.5), **SEGMENT, x_max_age="1s")
kept("by-age-nothing-old", 12, **SEGMENT, x_max_age="1h")
kept("by-both", 12, pause(1.5), **SEGMENT, x_max_age="1s", x_max_length_bytes=50_000)
kept("of-a-policy", 20, queue_name="@q-short-stream", **SEGMENT)
kept("of-a-policy-and-an-argument", 20, queue_name="@q-short-stream", **SEGMENT, x_max_length_bytes=9000)

# --- credit and settlement

each("credit/prefetch-1", holding(3), prefetch(1), brings(1, reads()), pause(), brings(1, ack(1)))
each("credit/nack", holding(2), prefetch(1), brings(1, reads()), nack(1, requeue=0, settle=0.4))
each("credit/nack-requeued", holding(2), prefetch(1), brings(1, reads()), nack(1, requeue=1, settle=0.4))
each("credit/reject", holding(2), prefetch(1), brings(1, reads()), reject(1, settle=0.4))
each("credit/reject-requeued", holding(2), prefetch(1), brings(1, reads()), reject(1, 1, settle=0.4))
each("credit/recover", holding(2), prefetch(1), brings(1, reads()), RECOVER, pause(0.4))
each("credit/all-at-once", holding(4), prefetch(2), brings(2, reads()), brings(2, ack(0, multiple=1)))
each("credit/out-of-order", holding(5), prefetch(3), brings(3, reads()), brings(1, ack(3)), brings(1, ack(1)))
each(
    "credit/half-of-a-large-window",
    holding(12),
    prefetch(8),
    brings(8, reads()),
    *(ack(tag, settle=0.2) for tag in range(1, 5)),
)
each(
    "credit/reopened-reads-again",
    [*holding(2), prefetch(2), brings(2, reads()), *REOPENED, prefetch(2)],
    brings(2, reads()),
)
each(
    "credit/raised-for-the-next",
    [*holding(4), prefetch(1), brings(1, reads()), prefetch(3)],
    brings(3, reads("first", "d")),
    pause(0.3),
)
each(
    "credit/two-streams-on-a-channel",
    [*holding(2), queue("@r", durable=1, arguments={"x-queue-type": "stream"}), prefetch(1)],
    [exchange("@x", "fanout"), bind(), bind("@r")],
    brings(1, reads()),
    [consume("@r", "d", arguments={"x-stream-offset": "first"})],
    [publish("", "both", exchange="@x", props=PERSISTENT), pause(0.5)],
    brings(1, ack(1)),
)
each("credit/counts-of-a-declare", [*holding(3), prefetch(1), brings(1, reads())], queue(passive=1))
each("credit/delete-count", [*holding(3)], call("queue.delete", queue="@q"))
each(
    "credit/consumer-told-of-deletion",
    [*holding(1), prefetch(1), brings(1, reads())],
    call("queue.delete", queue="@q", on="other"),
    pause(0.4),
)
each(
    "credit/transient-message",
    [stream(), CONFIRMS, publish(body="t"), pause(0.3), prefetch(1)],
    brings(1, reads()),
)
each(
    "credit/dead-letters-arrive",
    [stream(), queue("@d", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "@q"})],
    [publish("@d", "m"), call("basic.get", queue="@d", no_ack=0), reject(1), prefetch(1)],
    brings(1, reads()),
)
each(
    "credit/expiration-is-kept",
    [stream(), CONFIRMS, written("m", expiration="50"), pause(0.2), prefetch(1)],
    brings(1, reads()),
)
