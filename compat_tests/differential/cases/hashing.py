"""Exchange types of plugins: which queue gets which message, and what they refuse."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

KEYS = ("", "a", "order.42", "hello", "é中", "x" * 255, *(f"key-{number}" for number in range(60)))


def shares(case_id: str, kind: str, *weights: str, arguments: Any = None, messages: Any = None) -> None:
    """Queues named after their place, bound by these keys in turn; which message went to which of them."""

    @case(f"hashing/{case_id}")
    def _(scene: Scene) -> list[str]:
        exchange(type=kind, arguments=arguments or {})(scene)
        for place, weight in enumerate(weights):
            queue(f"@q{place}")(scene)
            bind(f"@q{place}", "@x", weight)(scene)
        for number, (key, properties) in enumerate(messages or [(key, {}) for key in KEYS]):
            publish(key, body=str(number), exchange="@x", props=properties)(scene)
        return [f"{place}: {taken(scene, f'@q{place}')}" for place in range(len(weights))]


def taken(scene: Scene, name: str) -> str:
    """The bodies in a queue, which is emptied."""
    bodies = []
    while (outcome := get(name)(scene)[0]).startswith("basic.get-ok"):
        bodies.append(outcome.rpartition("'")[0].rpartition("'")[2])
    return " ".join(bodies)


for _count in (1, 2, 3, 5):
    shares(f"ring-of-{_count}", "x-consistent-hash", *("1",) * _count)
    shares(f"modulus-of-{_count}", "x-modulus-hash", *map(str, range(_count)))
shares("ring-with-weights", "x-consistent-hash", "2", "3", "1", "10")
shares("ring-with-odd-weights", "x-consistent-hash", "+2", "007")
shares(
    "ring-by-message-id",
    "x-consistent-hash",
    *("1",) * 4,
    arguments={"hash-property": "message_id"},
    messages=[("k", {}), *(("k", {"message_id": key[:255]}) for key in KEYS[:6])],
)
shares(
    "ring-by-correlation-id",
    "x-consistent-hash",
    *("1",) * 4,
    arguments={"hash-property": "correlation_id"},
    messages=[("k", {"correlation_id": f"c{number}"}) for number in range(40)],
)
shares(
    "ring-by-timestamp",
    "x-consistent-hash",
    *("1",) * 4,
    arguments={"hash-property": "timestamp"},
    messages=[("k", {}), *(("k", {"timestamp": 1_700_000_000 + number}) for number in range(40))],
)
shares(
    "ring-and-copies",
    "x-consistent-hash",
    *("1",) * 3,
    messages=[(f"k{number}", {"headers": {"CC": ["a", "b"]}}) for number in range(20)],
)
shares(
    "modulus-and-copies",
    "x-modulus-hash",
    *("a", "b", "c"),
    messages=[(f"k{number}", {"headers": {"CC": ["a"], "BCC": ["b"]}}) for number in range(20)],
)


def ring_after(case_id: str, *steps: Any) -> None:
    """Three queues with weights 2, 3 and 1, then these steps; what the queues get of all keys."""

    @case(f"hashing/ring-after-{case_id}")
    def _(scene: Scene) -> list[str]:
        exchange(type="x-consistent-hash")(scene)
        for place, weight in enumerate(("2", "3", "1")):
            queue(f"@q{place}")(scene)
            bind(f"@q{place}", "@x", weight)(scene)
        for step in steps:
            step(scene)
        for number, key in enumerate(KEYS):
            publish(key, body=str(number), exchange="@x")(scene)
        return [f"{place}: {taken(scene, f'@q{place}')}" for place in range(3)]


def _unbind(place: int, key: str) -> Any:
    return call("queue.unbind", queue=f"@q{place}", exchange="@x", routing_key=key)


ring_after("unbinding-the-first", _unbind(0, "2"))
ring_after("unbinding-the-second", _unbind(1, "3"))
ring_after("binding-twice", bind("@q0", "@x", "9"))
ring_after("unbinding-what-counted-for-nothing", bind("@q0", "@x", "9"), _unbind(0, "9"))
ring_after("unbinding-what-counted", bind("@q0", "@x", "9"), _unbind(0, "2"))
ring_after("coming-back", _unbind(0, "2"), bind("@q0", "@x", "2"))
ring_after("a-queue-has-gone", call("queue.delete", queue="@q1"), queue("@q1"))


@case("hashing/ring-through-exchanges")
def _(scene: Scene) -> list[str]:
    exchange(type="x-consistent-hash")(scene)
    for place in range(2):
        queue(f"@q{place}")(scene)
        exchange(f"@x{place}", "fanout")(scene)
        bind(f"@q{place}", f"@x{place}")(scene)
        call("exchange.bind", destination=f"@x{place}", source="@x", routing_key="1")(scene)
    for number, key in enumerate(KEYS):
        publish(key, body=str(number), exchange="@x")(scene)
    return [f"{place}: {taken(scene, f'@q{place}')}" for place in range(2)]


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
    counts = [len(taken(scene, f"@q{place}").split()) for place in range(3)]
    return [f"{sum(counts)} messages, none without: {all(counts)}"]
