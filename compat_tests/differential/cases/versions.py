"""What versions of RabbitMQ part at: flags of dead letters, denied features, answers to nobody, details."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

# --- redelivered dead letters

QUORUM = {"x-queue-type": "quorum"}


def dying(**arguments: Any) -> Step:
    """A queue whose dead letters go to @dl."""
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "@dl", **given}
    return queue(durable=int("x-queue-type" in given), arguments=to_dead)


def flagged(case_id: str, *deed: Step, to: dict[str, Any] | None = None, **arguments: Any) -> None:
    """Whether a dead letter has the flag redelivered after a deed in @q, which has these arguments."""
    target = queue("@dl", durable=int(to is not None), arguments=to or {})
    each(f"redelivered/{case_id}", [target, dying(**arguments)], list(deed), until("get-ok", get("@dl")))


OTHER = open_channel(2)
HELD = [OTHER, until("get-ok", get(no_ack=0, ch=2))]
LOST = call("channel.close", ch=2, reply_code=200, settle=0.2)
flagged("nacked", publish(), *HELD, nack(1, requeue=0, ch=2))
flagged("consumed", publish(), consume(), arrivals(), reject(1))
flagged("returned-then-expired", publish(), *HELD, nack(1, requeue=1, ch=2), x_message_ttl=500)
flagged("lost-then-expired", publish(), *HELD, LOST, x_message_ttl=500)
flagged(
    "returned-then-too-long", publish(), *HELD, nack(1, requeue=1, ch=2), publish(body="2"), x_max_length=1
)
flagged("lost-then-too-long", publish(), *HELD, LOST, publish(body="2"), x_max_length=1)
flagged("to-quorum", publish(), *HELD, reject(1, ch=2), to=QUORUM)
flagged("to-priority", publish(), *HELD, reject(1, ch=2), to={"x-max-priority": 3})
flagged("from-priority", publish(), *HELD, reject(1, ch=2), x_max_priority=3)
TO_SECOND = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "@dl2"}
for _type, _asked in (("classic", {}), ("quorum", {"x_queue_type": "quorum"})):
    each(
        f"redelivered/{_type}-to-a-consumer",
        [queue("@dl"), dying(**_asked), consume("@dl", "dead"), publish()],
        HELD,
        reject(1, ch=2, settle=0.5),
    )
    each(
        f"redelivered/{_type}-passed-on-twice",
        [queue("@dl2"), queue("@dl", arguments={**TO_SECOND, "x-message-ttl": 50})],
        [dying(**_asked), publish(), *HELD, reject(1, ch=2)],
        until("get-ok", get("@dl2")),
    )
for _name, _deed in (
    ("nacked", nack(1, requeue=0, ch=2)),
    ("rejected", reject(1, ch=2)),
):
    for _to, _target in (("classic", None), ("quorum", QUORUM)):
        flagged(f"quorum-{_name}-to-{_to}", publish(), *HELD, _deed, to=_target, x_queue_type="quorum")
flagged("requeued-then-expired", publish(), *HELD, reject(1, requeue=1, ch=2), x_message_ttl=500)
flagged(
    "quorum-returned-then-expired",
    publish(),
    *HELD,
    nack(1, requeue=1, ch=2),
    x_queue_type="quorum",
    x_message_ttl=500,
)
flagged(
    "quorum-lost-then-expired",
    publish(),
    *HELD,
    LOST,
    x_queue_type="quorum",
    x_message_ttl=500,
)
flagged(
    "quorum-at-least-once",
    publish(),
    *HELD,
    reject(1, ch=2),
    to=QUORUM,
    x_queue_type="quorum",
    x_dead_letter_strategy="at-least-once",
    x_overflow="reject-publish",
)

# --- basic.cancel-ok from a client

last("cancel-ok/known-tag", queue(), consume(), call("basic.cancel-ok", consumer_tag="c", settle=0.3))
last("cancel-ok/unknown-tag", call("basic.cancel-ok", consumer_tag="c", settle=0.3))
each(
    "cancel-ok/the-consumer-before-it",
    [queue(), consume(), call("basic.cancel-ok", consumer_tag="c", settle=0.2)],
    call("queue.declare", queue="@q", passive=1, on="b"),
)

# --- global prefetch


each(
    "qos/global-after-local",
    [queue(), call("basic.qos", prefetch_count=2), shared(1)],
    consume(),
    publish(settle=0.3),
    *one_by_one("2", "3"),
)
each(
    "qos/global-zero",
    [queue(), shared(1), shared(0)],
    consume(),
    publish(settle=0.3),
    publish(body="2", settle=0.3),
)
for _type, _durable in (("quorum", 1), ("stream", 1)):
    each(
        f"qos/global-{_type}",
        [queue(durable=_durable, arguments={"x-queue-type": _type}), shared(1)],
        consume(),
        publish(settle=0.5),
        publish(body="2", settle=0.5),
    )
each(
    "qos/global-zero-stream",
    [queue(durable=1, arguments={"x-queue-type": "stream"}), shared(0)],
    consume(),
)

# --- the version and mode of classic queues

for _mode in ("lazy", "default"):
    each(f"mode/redeclared-{_mode}", [queue_with(x_queue_mode=_mode)], queue_with(x_queue_mode=_mode))
each("mode/added", [queue()], queue_with(x_queue_mode="lazy"))
each("mode/quorum", queue(durable=1, arguments={"x-queue-type": "quorum", "x-queue-mode": "lazy"}))

# --- deprecated arguments

for _value in ("min-masters", "nonsense", 5):
    last(f"locator/{_value}", queue_with(x_queue_master_locator=_value))
last("locator/quorum", queue(durable=1, arguments={**QUORUM, "x-queue-master-locator": "min-masters"}))
last("transient/plain", queue())
last("transient/auto-delete", queue(auto_delete=1))

# --- commits to queues that went away

for _type in ("classic", "quorum"):
    _durable = int(_type == "quorum")
    each(
        f"tx/{_type}-deleted-before-commit-by-another",
        [queue(durable=_durable, arguments={"x-queue-type": _type}), TX, publish()],
        call("queue.delete", queue="@q", on="b"),
        call("tx.commit"),
    )
each(
    "tx/one-of-two-deleted-before-commit",
    [queue(), queue("@q2"), exchange("@x", "fanout"), bind(), bind("@q2"), TX, publish("", exchange="@x")],
    call("queue.delete", queue="@q", on="b"),
    call("tx.commit", settle=0.2),
    get("@q2", on="b"),
)
each(
    "tx/deleted-and-another-published",
    [queue(), queue("@q2"), TX, publish(), publish("@q2")],
    call("queue.delete", queue="@q", on="b"),
    call("tx.commit", settle=0.2),
    get("@q2", on="b"),
)
each(
    "tx/deleted-and-redeclared",
    [queue(), TX, publish()],
    call("queue.delete", queue="@q", on="b"),
    call("queue.declare", queue="@q", on="b"),
    call("tx.commit", settle=0.2),
    get(on="b"),
)
each(
    "tx/deleted-before-commit-mandatory",
    [queue(), TX, publish(mandatory=1)],
    call("queue.delete", queue="@q", on="b"),
    call("tx.commit", settle=0.2),
)

# --- values

for _value in (1000.0, 0.1, 1.5, 1e22, 1e-7, 123456.789, -2.0, 1e5, 1e6, 12345678901234567890.0):
    last(f"float/{_value!r}", queue_with(x_message_ttl=1000), queue_with(x_message_ttl=_value))
for _value in (
    "-5",
    "5x",
    "",
    "12345678901234567890123456789",
    "99999999999999999999999999999999999999",
    "315360000001",
    "x" * 40,
    "5" + "x" * 60,
    "5 and some words behind it",
    "-315360000001000000",
):
    last(f"expiration/{_value!r}", queue(), publish(props={"expiration": _value}))
for _type, _first, _again in (
    ("stream", "1h", "60m"),
    ("stream", "1h", "61m"),
    ("stream", "1Y", "365D"),
    ("stream", "1M", "30D"),
):
    last(
        f"age/{_first}-{_again}",
        queue(durable=1, arguments={"x-queue-type": _type, "x-max-age": _first}),
        queue(durable=1, arguments={"x-queue-type": _type, "x-max-age": _again}),
    )
for _name, _body in (
    ("queue", {"queue": b"\xff"}),
    ("consumer-tag", {"queue": "@q", "consumer_tag": b"\xc3"}),
):
    last(
        f"utf-8/{_name}",
        queue(),
        call("basic.consume" if _name == "consumer-tag" else "queue.declare", settle=0.3, **_body),
    )
last("utf-8/routing-key", queue(), publish(b"\xff\xfe", settle=0.3))
last("utf-8/correlation-id", queue(), publish(props={"correlation_id": b"\xff"}, settle=0.3), get())
last("utf-8/header-text", queue(), publish(props={"headers": {"a": Tagged("S", b"\xff")}}, settle=0.3), get())
last("utf-8/argument-name", queue(arguments={"\udcff": 1}, settle=0.3))
last("utf-8/argument-text", queue(arguments={"a": Tagged("S", b"\xff")}, settle=0.3))
last("utf-8/surrogate", queue(b"\xed\xa0\x80", settle=0.3))
last("utf-8/overlong", queue(b"\xc0\x80", settle=0.3))
last("utf-8/nul", queue("@a\0b", settle=0.3))

# --- tables

DOUBLE = Tagged("F", [("k", 1), ("k", 2)])
each("tables/double-nested", [queue()], publish(props={"headers": {"t": DOUBLE}}), get())
each(
    "tables/sorted-nested",
    [queue()],
    publish(props={"headers": {"b": {"z": 1, "a": 2}, "a": [{"y": 1, "x": 2}], "B": 1, "aa": 1}}),
    get(),
)
each(
    "tables/sorted-return",
    publish("@nowhere", mandatory=1, props={"headers": {"b": 1, "a": 2}}, settle=0.3),
)
each(
    "tables/double-return",
    publish("@nowhere", mandatory=1, props={"headers": [("k", 1), ("k", 2)]}, settle=0.3),
)
each(
    "tables/double-argument",
    queue(arguments=[("x-max-length", 1), ("x-max-length", 2)]),
    queue(arguments={"x-max-length": 1}),
    queue(arguments={"x-max-length": 2}),
)
each(
    "tables/double-priority",
    [queue()],
    consume(arguments=[("x-priority", 5), ("x-priority", 7)]),
)
for _tag in "bBsuIil":
    each(
        f"tables/binding-width-{_tag}",
        [queue(), exchange("@x", "headers"), bind(arguments={"a": Tagged("I", 1)})],
        [unbind(arguments={"a": Tagged(_tag, 1)})],
        publish("", exchange="@x", mandatory=1, props={"headers": {"a": 1}}, settle=0.3),
    )
each(
    "tables/binding-order",
    [queue(), exchange("@x", "headers"), bind(arguments={"a": 1, "b": 2})],
    [unbind(arguments={"b": 2, "a": 1})],
    publish("", exchange="@x", mandatory=1, props={"headers": {"a": 1, "b": 2}}, settle=0.3),
)
each(
    "tables/binding-nested-order",
    [queue(), exchange("@x", "headers"), bind(arguments={"t": {"a": 1, "b": 2}})],
    [unbind(arguments={"t": {"b": 2, "a": 1}})],
    publish("", exchange="@x", mandatory=1, props={"headers": {"t": {"a": 1, "b": 2}}}, settle=0.3),
)
each(
    "tables/binding-text-or-bytes",
    [queue(), exchange("@x", "headers"), bind(arguments={"a": "s"})],
    [unbind(arguments={"a": Tagged("x", b"s")})],
    publish("", exchange="@x", mandatory=1, props={"headers": {"a": "s"}}, settle=0.3),
)
each(
    "tables/argument-width",
    queue(arguments={"x-max-length": Tagged("b", 1)}),
    queue(arguments={"x-max-length": Tagged("l", 1)}),
)

# --- confirms

for _count in (1, 2, 10):
    each(
        f"confirms/unroutable-{_count}",
        [CONFIRMS],
        *[publish("@nowhere") for _ in range(_count - 1)],
        publish("@nowhere", settle=0.5),
    )
