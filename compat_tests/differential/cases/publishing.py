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
for _name, _value in {"array-of-int": [5], "array-mixed": ["k", 5], "empty-array": []}.items():
    last(f"publish/BCC-{_name}", queue(), publish("@q", props={"headers": {"BCC": _value}}))
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


@case("confirm/batch-unroutable-100")
def _(scene: Scene) -> list[str]:
    CONFIRMS(scene)
    for _ in range(100):
        scene.a.publish(1, routing_key=scene.named("@no"), body="m")
    came = scene.a.quiet()
    tag = int(came[-1].split("delivery_tag=")[1].split(",")[0])
    return [f"tag={tag} one-each={len(came) == 100}"]


each(
    "confirm/max-length-zero",
    [queue_with(x_max_length=0)],
    [CONFIRMS],
    publish("@q", "1", settle=0.2),
    queue(passive=1),
)
