"""Hash exchanges: every queue gets exactly the messages that it gets from RabbitMQ; and what they refuse."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from compat_tests.differential.script import *

_random = random.Random(16)
WORDS = [
    "".join(_random.choices("abcdefghijklmnopqrstuvwxyz0123456789.-_/:", k=_random.randint(1, 40)))
    for _ in range(300)
]
"""Routing keys."""
Sent = tuple[str, dict[str, Any]]


def spread(
    name: str,
    kind: str,
    keys: Sequence[str],
    *steps: Step,
    arguments: dict[str, Any] | None = None,
    messages: Sequence[Sent] | None = None,
) -> None:
    """Queues bound by these keys in turn, then steps; which of the messages every queue got."""
    sent = [(word, {}) for word in WORDS] if messages is None else messages

    @case(f"spread/{name}")
    def _(scene: Scene) -> list[str]:
        exchange(type=kind, arguments=arguments or {})(scene)
        for place, key in enumerate(keys):
            queue(f"@q{place}")(scene)
            bind(f"@q{place}", "@x", key)(scene)
        for step in steps:
            step(scene)
        return shared_out(scene, sent, [f"@q{place}" for place in range(len(keys))])


def shared_out(scene: Scene, messages: Sequence[Sent], names: Sequence[str]) -> list[str]:
    """Publish messages, called by their numbers, and tell which queue got which of them."""
    client = scene.a
    CONFIRMS(scene)
    for number, (key, properties) in enumerate(messages):
        client.publish(1, exchange=scene.named("@x"), routing_key=key, body=str(number), props=properties)
    confirmed: set[int] = set()
    while len(confirmed) < len(messages):
        event = client.next(3.0)
        ack = re.search(r"delivery_tag=(\d+), multiple=(\d)", "" if event is None else event.text)
        if ack is None:
            return ["silence" if event is None else event.text]
        tag = int(ack[1])
        confirmed |= set(range(1, tag + 1)) if ack[2] == "1" else {tag}
    counts = [re.search(r"message_count=(\d+)", queue(name, passive=1)(scene)[-1]) for name in names]
    missing = sum(int(count[1]) for count in counts if count)
    found: dict[str, list[str]] = {name: [] for name in names}
    came: list[str] = []
    for name in names:
        came += consume(name, name, no_ack=1)(scene)
    while True:
        for text in came:
            if delivery := re.match(r"basic\.deliver\(consumer_tag='(.*?)'.*'(\d+)'$", text):
                found[f"@{delivery[1].removeprefix(scene.prefix)}"].append(delivery[2])
                missing -= 1
        if missing <= 0 or (event := client.next(3.0)) is None or event.name == "closed":
            return [f"{name[1:]}: {' '.join(found[name])}" for name in names]
        came = [event.text]


RING, MODULUS = "x-consistent-hash", "x-modulus-hash"
WEIGHTS = [str(weight) for weight in (1, 7, 20, 3, 3, 1, 12, 5, 2, 2, 9, 1, 30, 4, 6, 1)]

for _count in (1, 2, 3, 5, 16):
    spread(f"ring-of-{_count}", RING, ["1"] * _count)
    spread(f"modulus-of-{_count}-keys", MODULUS, [str(number) for number in range(_count)])
spread("ring-with-odd-weights", RING, ["+2", "007"])
spread("ring-of-16-weights", RING, WEIGHTS)
spread("ring-of-large-weights", RING, ["100", "1000", "1", "250"])
spread("modulus-of-16", MODULUS, [""] * 16)
spread("modulus-of-equal-keys", MODULUS, WEIGHTS)
spread("modulus-of-17-words", MODULUS, WORDS[:17])
_LEFT = [unbind(f"@q{place}", "@x", WEIGHTS[place]) for place in (0, 5, 9, 12, 15)]
_BACK = [bind(f"@q{place}", "@x", WEIGHTS[place]) for place in (12, 0, 9)]
for _name, _kind in (("ring", RING), ("modulus", MODULUS)):
    spread(f"{_name}-after-unbinding", _kind, WEIGHTS, *_LEFT)
    spread(f"{_name}-after-rebinding", _kind, WEIGHTS, *_LEFT, *_BACK)
    spread(
        f"{_name}-after-deletions",
        _kind,
        WEIGHTS,
        *(call("queue.delete", queue=f"@q{place}") for place in (2, 3, 14)),
        *(queue(f"@q{place}") for place in (2, 3, 14)),
    )
    for _id, _unbound in (("", None), ("-which-go", "8"), ("-and-no-longer-with-theirs", "7")):
        spread(
            f"{_name}-bound-again-with-other-keys{_id}",
            _kind,
            WEIGHTS,
            *(bind(f"@q{place}", "@x", "8") for place in (1, 4, 10)),
            *([] if _unbound is None else [unbind("@q1", "@x", _unbound)]),
        )
    spread(
        f"{_name}-with-arguments",
        _kind,
        ["2", "3"],
        bind("@q0", "@x", "2", arguments={"a": 1}),
        bind("@q1", "@x", "3", arguments={"b": "x"}),
    )
    spread(
        f"{_name}-and-copies",
        _kind,
        ["1", "2", "3"],
        messages=[(word, {"headers": {"CC": ["a", "b"], "BCC": ["c"]}}) for word in WORDS[:40]],
    )
    spread(
        f"{_name}-of-empty-and-long-keys",
        _kind,
        ["1"] * 8,
        messages=[(key, {}) for key in ("", "a", "b" * 255, " ", "é中", "#", "*", "a.b.c")],
    )


def by_header(value: Any) -> Sent:
    return "k", {"headers": {"hash-on": value}}


HEADER = {"hash-header": "hash-on"}
spread("header-texts", RING, WEIGHTS, arguments=HEADER, messages=[by_header(word) for word in WORDS])
spread(
    "header-integers",
    RING,
    ["1"] * 8,
    arguments=HEADER,
    messages=[
        by_header(Tagged(tag, number)) for tag in "bsIl" for number in (-100, -1, 0, 1, 7, 42, 99, 127)
    ],
)
spread(
    "header-of-other-types",
    RING,
    ["1"] * 8,
    arguments=HEADER,
    messages=[
        *(by_header(value) for value in (True, False, None, 1.5, -0.25, b"bytes", b"", "", {"a": 1})),
        *(by_header(value) for value in ([1, "x"], [True], Tagged("T", 1_700_000_000), Tagged("f", 0.5))),
        ("k", {}),
        ("k", {"headers": {"other": 1}}),
    ],
)
spread(
    "header-given-twice",
    RING,
    ["1"] * 8,
    arguments=HEADER,
    messages=[
        ("k", {"headers": [("hash-on", first), ("hash-on", second)]})
        for first, second in zip(WORDS[:20], WORDS[20:40], strict=True)
    ],
)
spread(
    "header-with-copies",
    RING,
    ["1"] * 6,
    arguments=HEADER,
    messages=[("k", {"headers": {"hash-on": word, "CC": ["a", "b"]}}) for word in WORDS[:30]],
)
for _property in ("message_id", "correlation_id"):
    spread(
        f"property-{_property}",
        RING,
        WEIGHTS,
        arguments={"hash-property": _property},
        messages=[("k", {_property: word}) for word in WORDS],
    )
spread(
    "property-timestamp",
    RING,
    WEIGHTS,
    arguments={"hash-property": "timestamp"},
    messages=[("k", {"timestamp": number}) for number in range(0, 3_000_000_000, 30_000_000)],
)
spread(
    "property-missing",
    RING,
    ["1"] * 8,
    arguments={"hash-property": "message_id"},
    messages=[("k", {"correlation_id": word}) for word in WORDS[:20]],
)


@case("spread/rings-in-a-row")
def _(scene: Scene) -> list[str]:
    exchange(type=RING)(scene)
    for place in range(4):
        exchange(f"@x{place}", RING if place % 2 else MODULUS)(scene)
        call("exchange.bind", destination=f"@x{place}", source="@x", routing_key=str(place + 1))(scene)
        for inner in range(3):
            queue(f"@q{place}{inner}")(scene)
            bind(f"@q{place}{inner}", f"@x{place}", str(inner + 1))(scene)
    names = [f"@q{at}{inner}" for at in range(4) for inner in range(3)]
    return shared_out(scene, [(word, {}) for word in WORDS], names)


for _weight in ("10000", "10001"):
    last(f"spread/weight-{_weight}", exchange(type=RING), queue(), bind(routing_key=_weight))
each(
    "spread/header-and-text-argument-types",
    exchange(type=RING, arguments={"hash-header": 5}),
    exchange("@y", RING, arguments={"hash-header": b"h"}),
)
each(
    "hashing/nothing-bound",
    [exchange(type="x-consistent-hash"), exchange("@m", "x-modulus-hash"), exchange("@r", "x-random")],
    publish("k", exchange="@x", mandatory=1),
    publish("k", exchange="@m", mandatory=1),
    publish("k", exchange="@r", mandatory=1),
)
for _name, _key in (("word", "abc"), ("empty", ""), ("zero", "0"), ("negative", "-3"), ("space", " 1")):
    last(f"hashing/bad-weight-{_name}", exchange(type="x-consistent-hash"), queue(), bind(routing_key=_key))
for _name, _arguments in (
    ("unsupported-property", {"hash-property": "user_id"}),
    ("both", {"hash-header": "h", "hash-property": "message_id"}),
    ("empty-property", {"hash-property": ""}),
):
    last(f"hashing/declare-{_name}", exchange(type="x-consistent-hash", arguments=_arguments))
each(
    "hashing/declare-again",
    [exchange(type="x-consistent-hash", arguments={"hash-header": "h"})],
    exchange(type="x-consistent-hash"),
    exchange(type="x-consistent-hash", arguments={"hash-property": "user_id"}),
)
each(
    "hashing/random-of-one",
    [exchange(type="x-random"), queue(), bind(routing_key="any")],
    publish("k", exchange="@x", mandatory=1),
    get(),
)


@case("hashing/random-of-three")
def _(scene: Scene) -> list[str]:
    exchange(type="x-random")(scene)
    for place in range(3):
        queue(f"@q{place}")(scene)
        bind(f"@q{place}", "@x", str(place))(scene)
    for _ in range(60):
        publish("k", exchange="@x")(scene)
    counts = [len(contents(f"@q{place}")(scene)[0].split()) for place in range(3)]
    return [f"{sum(counts)} messages, none without: {all(counts)}"]
