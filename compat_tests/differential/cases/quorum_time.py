"""Quorum queues and time: delayed retries, consumer timeouts, expiry."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.cases.quorum import counted, loaded, quorum
from compat_tests.differential.script import *

TO_DEAD = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "@dead"}
LATER = {"x_delayed_retry_type": "all", "x_delayed_retry_min": 600, "x_delayed_retry_max": 900}
PURGE = call("queue.purge", queue="@q")
GONE = call("queue.delete", queue="@q")

# --- delayed retries

for _name, _value in (
    ("x_delayed_retry_type", "bogus"),
    ("x_delayed_retry_type", 5),
    ("x_delayed_retry_type", "disabled"),
    ("x_delayed_retry_min", 0),
    ("x_delayed_retry_min", "5"),
    ("x_delayed_retry_max", -1),
    ("x_consumer_timeout", -1),
    ("x_consumer_timeout", "5"),
    ("x_consumer_timeout", 0),
    ("x_consumer_disconnected_timeout", -1),
):
    last(f"retry/declare-{_name}={_value}", quorum(**{_name: _value}))
last("retry/redeclare", quorum(**LATER), quorum())
last("retry/redeclare-other", quorum(**LATER), quorum(**{**LATER, "x_delayed_retry_min": 700}))
last("retry/classic", queue(arguments={"x-delayed-retry-type": "all"}))
for _type in ("all", "failed", "returned", "disabled"):
    for _name, _back in (("nack", nack(1, requeue=1)), ("reject", reject(1, requeue=1))):
        each(
            f"retry/{_type}-{_name}",
            [*loaded("m", x_delayed_retry_type=_type, x_delayed_retry_min=600), get(no_ack=0)],
            [_back, pause(0.1)],
            get(no_ack=0),
            queue(passive=1),
            until("get-ok", get(no_ack=0), tries=30),
        )
each(
    "retry/channel-closed",
    [
        *loaded("m", **LATER),
        get(no_ack=0, on="other"),
        call("channel.close", on="other"),
        pause(0.1),
    ],
    get(no_ack=0),
    until("get-ok", get(no_ack=0), tries=30),
)
each(
    "retry/without-a-minimum",
    [*loaded("m", x_delayed_retry_type="all"), get(no_ack=0), reject(1, requeue=1), pause(0.2)],
    get(no_ack=0),
)
each(
    "retry/without-a-type",
    [*loaded("m", x_delayed_retry_min=600), get(no_ack=0), reject(1, requeue=1), pause(0.2)],
    get(no_ack=0),
)
each(
    "retry/others-pass-it",
    [*loaded("1", "2", **LATER), consume(), arrivals(2)],
    reject(1, requeue=1, settle=0.2),
    publish(body="3", settle=0.2),
    pause(0.9),
)
each(
    "retry/count-purge-delete",
    [*loaded("m", "n", **LATER), get(no_ack=0), reject(1, requeue=1), pause(0.2)],
    queue(passive=1),
    PURGE,
    queue(passive=1),
    GONE,
)
each(
    "retry/counts-for-the-length",
    [*loaded("m", x_max_length=1, **LATER), get(no_ack=0), reject(1, requeue=1), publish(body="n")],
    pause(0.2),
    contents(),
    pause(0.9),
    contents(),
)
each(
    "retry/limit-kills-at-once",
    [queue("@dead"), *loaded("m", x_delivery_limit=0, **TO_DEAD, **LATER), get(no_ack=0)],
    [reject(1, requeue=1), pause(0.2)],
    queue("@dead", passive=1),
)
each(
    "retry/second-is-later",
    [
        *loaded("m", **LATER),
        get(no_ack=0),
        reject(1, requeue=1),
        until("get-ok", get(no_ack=0), tries=30),
    ],
    [reject(2, requeue=1), pause(0.7)],
    get(no_ack=0),
    until("get-ok", get(no_ack=0), tries=30),
)
each(
    "retry/expires-in-the-meantime",
    [*loaded("m", x_message_ttl=300, **LATER), get(no_ack=0), reject(1, requeue=1), pause(0.4)],
    queue(passive=1),
    pause(0.6),
    queue(passive=1),
)

# --- consumer timeouts


def impatient(name: str, *steps: Any, kind: str = "quorum", **asked: Any) -> None:
    """A case with a queue whose deliveries may be held for half a second."""
    arguments = {"x-queue-type": kind, "x-consumer-timeout": 500}
    arguments |= {key.replace("_", "-"): value for key, value in asked.items()}
    each(f"timeout/{name}", [queue(durable=1, arguments=arguments), publish(body="m")], *steps)


for _type in ("classic", "quorum"):
    impatient(f"{_type}-consumed", [consume(), arrivals()], pause(2.0), kind=_type)
    impatient(f"{_type}-got", [until("get-ok", get(no_ack=0))], pause(2.0), queue(passive=1), kind=_type)
    impatient(
        f"{_type}-acked-late",
        [consume(), arrivals(), pause(1.6)],
        ack(1, settle=0.3),
        queue(passive=1),
        kind=_type,
    )
    impatient(
        f"{_type}-two-consumers",
        [consume(on="other"), arrivals(on="other"), consume()],
        pause(1.3, on="other"),
        arrivals(2),
        [pause(0.3, on="third")],  # A quorum queue takes back a moment later.
        queue(passive=1, on="third"),
        kind=_type,
    )
    impatient(
        f"{_type}-cancelled-before",
        [consume(), arrivals(), call("basic.cancel", consumer_tag="c")],
        pause(2.0),
        queue(passive=1, on="third"),
        kind=_type,
    )
impatient(
    "stream",
    [call("basic.qos", prefetch_count=1), consume(arguments={"x-stream-offset": "first"})],
    pause(2.0),
    kind="stream",
)
impatient(
    "single-active",
    [consume(tag="x", on="other"), arrivals(on="other"), consume(tag="y")],
    pause(1.3, on="other"),
    arrivals(2),
    x_single_active_consumer=True,
)
impatient(
    "limit-reached",
    [queue("@dead"), consume(), arrivals()],
    pause(2.0),
    queue("@dead", passive=1, on="third"),
    x_delivery_limit=0,
    x_dead_letter_exchange="",
    x_dead_letter_routing_key="@dead",
)
each(
    "timeout/of-the-consumer",
    [*loaded("m"), consume(arguments={"x-consumer-timeout": 500}), arrivals()],
    pause(2.0),
    queue(passive=1, on="third"),
)
each(
    "timeout/of-the-consumer-longer",
    [
        *loaded("m", x_consumer_timeout=500),
        consume(arguments={"x-consumer-timeout": 60_000}),
        arrivals(),
    ],
    pause(1.6),
)
# --- expiry

each("brief/ttl-0-without-consumer", [quorum(x_message_ttl=0), publish(), pause(0.3)], queue(passive=1))
each("brief/ttl-0-with-consumer", [quorum(x_message_ttl=0), consume()], publish(settle=0.4))
each(
    "brief/expiration-0-with-consumer",
    [quorum(), consume()],
    publish(props={"expiration": "0"}, settle=0.4),
)
each(
    "brief/shorter-of-two",
    [quorum(x_message_ttl=60_000), publish(props={"expiration": "100"}), pause(0.4)],
    queue(passive=1),
)
each(
    "brief/longer-of-two",
    [quorum(x_message_ttl=100), publish(props={"expiration": "60000"}), pause(0.4)],
    queue(passive=1),
)
each(
    "brief/order-of-dead-letters",
    [queue("@dead"), quorum(x_message_ttl=100, **TO_DEAD), *(publish(body=body) for body in "abcd")],
    until("message_count=4", queue("@dead", passive=1)),
    contents("@dead"),
)
each(
    "brief/returned-after-its-time-is-dead",
    [queue("@dead"), *loaded("m", x_message_ttl=300, **TO_DEAD), get(no_ack=0), pause(0.5)],
    [nack(1, requeue=1)],
    until("get-ok", get("@dead")),
)
each(
    "brief/prefetched-does-not-expire",
    [quorum(x_message_ttl=300), consume(), publish(settle=0.6)],
    queue(passive=1),
    ack(1, settle=0.2),
)
each(
    "brief/get-just-in-time",
    [quorum(), publish(body="a", props={"expiration": "100"}), publish(body="b"), counted("2")],
    [pause(0.3)],
    get(),
    get(),
)

# --- limits in bytes


def sized(name: str, *bodies: Step, **asked: Any) -> None:
    each(f"bytes/{name}", [quorum(**asked), *bodies, pause(0.3)], contents())


sized("exactly", publish(body="aa"), publish(body="bb"), x_max_length_bytes=4)
sized("one-above", publish(body="aa"), publish(body="bbb"), x_max_length_bytes=4)
sized("larger-than-the-limit", publish(body="aa"), publish(body="b" * 9), x_max_length_bytes=4)
sized("zero-and-empty-bodies", publish(body=""), publish(body=""), x_max_length_bytes=0)
sized(
    "with-headers",
    publish(body="aa", props={"headers": {"h": "x" * 30}}),
    publish(body="bb"),
    x_max_length_bytes=20,
)
sized(
    "with-properties",
    publish(body="aa", props={"message_id": "m" * 40, "timestamp": Tagged("T", 1).value}),
    publish(body="bb"),
    x_max_length_bytes=20,
)
sized(
    "and-messages",
    *(publish(body=body) for body in ("a", "b", "cccc")),
    x_max_length_bytes=6,
    x_max_length=2,
)
