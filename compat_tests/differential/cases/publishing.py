"""What a publisher is told, and what becomes of what it sends."""

from __future__ import annotations

from compat_tests.differential.script import *

# --- publish checks

last("publish/internal-exchange", exchange(internal=1), publish("k", exchange="@x"))
last("publish/user-id-mismatch", publish("@q", props={"user_id": "someone"}))
last("publish/user-id-ok", queue(), publish("@q", props={"user_id": "guest"}), get())
last("publish/user-id-empty", publish("@q", props={"user_id": ""}))
for _v in (
    "abc",
    "-1",
    "",
    "1.5",
    " 5",
    "5 ",
    "+5",
    "0",
    "4294967295",
    "4294967296",
    "315360000000",
    "315360000001",
    "99999999999999999999",
    "0x10",
    "1e3",
    "\u0665",
):
    last(f"publish/expiration-{_v!a}", queue(), publish("@q", props={"expiration": _v}))
last("publish/user-id-before-expiration", publish("@q", props={"user_id": "zz", "expiration": "abc"}))
last("publish/missing-exchange-before-user-id", publish("@q", exchange="@no", props={"user_id": "zz"}))
last("publish/confirm-user-id-mismatch", CONFIRMS, publish("@q", props={"user_id": "someone"}))
for _n in ("CC", "BCC"):
    last(f"publish/{_n}-string", queue(), publish("@q", props={"headers": {_n: "k"}}))
    last(f"publish/{_n}-int", queue(), publish("@q", props={"headers": {_n: 5}}))
    last(f"publish/{_n}-array-of-int", queue(), publish("@q", props={"headers": {_n: [5]}}))
    last(f"publish/{_n}-array-mixed", queue(), publish("@q", props={"headers": {_n: ["k", 5]}}))
    last(f"publish/{_n}-empty-array", queue(), publish("@q", props={"headers": {_n: []}}))
    last(f"publish/{_n}-void", queue(), publish("@q", props={"headers": {_n: None}}))
    each(
        f"publish/{_n}-delivers",
        [queue()],
        [queue("@r")],
        publish("@q", props={"headers": {_n: ["@r"], "h": 1}}),
        get("@q"),
        get("@r"),
    )
    each(
        f"publish/{_n}-duplicate-target",
        [queue()],
        publish("@q", props={"headers": {_n: ["@q", "@q"]}}),
        queue(passive=1),
    )
    each(
        f"publish/{_n}-mandatory-only-cc-routes",
        [queue()],
        publish("@no", mandatory=1, props={"headers": {_n: ["@q"]}}),
        get(),
    )
    each(f"publish/{_n}-returned", publish("@no", mandatory=1, props={"headers": {_n: ["@no2"], "h": 1}}))
each(
    "publish/properties-round-trip",
    [queue()],
    publish(
        "@q",
        props={
            "content_type": "a",
            "content_encoding": "b",
            "headers": {"k": 1},
            "delivery_mode": 2,
            "priority": 3,
            "correlation_id": "c",
            "reply_to": "d",
            "expiration": "60000",
            "message_id": "e",
            "timestamp": 5,
            "type": "f",
            "user_id": "guest",
            "app_id": "g",
            "reserved": "h",
        },
    ),
    get(),
)
each(
    "publish/header-types-round-trip",
    [queue()],
    publish(
        "@q",
        props={
            "headers": {
                "t": True,
                "b": Tagged("b", -1),
                "B": Tagged("B", 255),
                "s": Tagged("s", -300),
                "u": Tagged("u", 65535),
                "I": Tagged("I", -1),
                "i": Tagged("i", 4294967295),
                "l": Tagged("l", -(2**63)),
                "L": Tagged("L", -5),
                "f": Tagged("f", 0.5),
                "d": Tagged("d", 0.1),
                "D": Tagged("D", (2, 4294967295)),
                "S": "s",
                "A": [1, "x", [2]],
                "T": Tagged("T", 5),
                "F": {"k": {"k": 1}},
                "V": None,
                "x": b"\x00\xff",
            }
        },
    ),
    get(),
)
each(
    "publish/headers-duplicate-keys",
    [queue()],
    publish("@q", props={"headers": [("k", 1), ("k", 2)]}),
    get(),
)
each("publish/empty-headers-table", [queue()], publish("@q", props={"headers": {}}), get())
each("publish/delivery-mode-odd", [queue()], publish("@q", props={"delivery_mode": 7}), get())
each("publish/priority-255", [queue()], publish("@q", props={"priority": 255}), get())
each("publish/empty-body", [queue()], publish("@q", ""), get())
each("publish/large-body", [queue()], publish("@q", "x" * 300000), get())
each(
    "publish/mandatory-return",
    publish("@no", "body", mandatory=1, props={"content_type": "t", "headers": {"a": 1}}),
)
each("publish/mandatory-return-exchange", [exchange()], publish("kk", "body", exchange="@x", mandatory=1))
each("publish/unroutable-not-mandatory", publish("@no"))
# confirms
each("confirm/routed", [queue()], [CONFIRMS], publish("@q", settle=0.2))
each("confirm/unroutable", [CONFIRMS], publish("@no", settle=0.2))
each("confirm/mandatory-return-then-ack", [CONFIRMS], publish("@no", mandatory=1, settle=0.2))
each(
    "confirm/durable-persistent",
    [queue(durable=1)],
    [CONFIRMS],
    publish("@q", props={"delivery_mode": 2}, settle=0.4),
    [call("queue.delete", queue="@q")],
)
each(
    "confirm/two-channels-count-apart",
    [queue()],
    [CONFIRMS],
    [open_channel(2)],
    [call("confirm.select", ch=2)],
    publish("@q", settle=0.2),
    publish("@q", ch=2, settle=0.2),
)
each("confirm/count-starts-at-select", [queue()], publish(), [CONFIRMS], publish("@q", settle=0.2))


@case("confirm/batch-unroutable-100")
def _(scene: Scene) -> list[str]:
    CONFIRMS(scene)
    for _ in range(100):
        scene.a.publish(1, routing_key=scene.named("@no"), body="m")
    came = scene.a.quiet()
    tag = int(came[-1].split("delivery_tag=")[1].split(",")[0])
    return [f"tag={tag} one-each={len(came) == 100}"]


_FULL_WITH_ONE = queue_with(x_max_length=1, x_overflow="reject-publish")
each(
    "confirm/nack-reject-publish",
    [_FULL_WITH_ONE, CONFIRMS],
    publish(body="1", settle=0.2),
    publish(body="2", settle=0.2),
    get(),
)
each(
    "confirm/nack-reject-publish-unacked-not-counted",
    [_FULL_WITH_ONE, CONFIRMS],
    publish(body="1", settle=0.2),
    get(no_ack=False),
    publish(body="2", settle=0.2),
    publish(body="3", settle=0.2),
)
each(
    "confirm/reject-publish-one-of-two-queues",
    [_FULL_WITH_ONE, queue("@r"), bind("@q", "amq.direct", "@k"), bind("@r", "amq.direct", "@k"), CONFIRMS],
    publish("@k", "1", "amq.direct", settle=0.2),
    publish("@k", "2", "amq.direct", settle=0.2),
    queue("@q", passive=1),
    queue("@r", passive=1),
)
each(
    "confirm/reject-publish-without-confirms",
    [_FULL_WITH_ONE],
    publish("@q", "1"),
    publish("@q", "2"),
    nothing_more(),
    queue(passive=1),
)
each(
    "confirm/reject-publish-mandatory",
    [_FULL_WITH_ONE],
    [CONFIRMS],
    publish("@q", "1", mandatory=1, settle=0.2),
    publish("@q", "2", mandatory=1, settle=0.2),
)
each(
    "confirm/reject-publish-dlx",
    [queue("@dl")],
    [
        queue(
            arguments={
                "x-max-length": 1,
                "x-overflow": "reject-publish-dlx",
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": "@dl",
            }
        )
    ],
    [CONFIRMS],
    publish("@q", "1", settle=0.2),
    publish("@q", "2", settle=0.3),
    get("@dl", settle=0.1),
)
each(
    "confirm/max-length-drop-head",
    [queue_with(x_max_length=1)],
    [CONFIRMS],
    publish("@q", "1", settle=0.2),
    publish("@q", "2", settle=0.2),
    get(),
)
each(
    "confirm/max-length-zero",
    [queue_with(x_max_length=0)],
    [CONFIRMS],
    publish("@q", "1", settle=0.2),
    queue(passive=1),
)
