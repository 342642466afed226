"""Quorum queues: what a returned message counts, by the way in which it returned, and its limit.

Every message is held twice by clients of their own, and returns in the same way both times. The delivery
limit is 1, so that the second return kills it if both count.
"""

from __future__ import annotations

from typing import Any

from compat_tests.differential.cases.quorum import SINGLE, counted, loaded, quorum
from compat_tests.differential.script import *

TO_DEAD = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "@dead"}


def found_in(*names: str) -> Step:
    """Look into queues in turn until one of them has a message."""

    def look(scene: Scene) -> list[str]:
        for _ in range(60):
            for name in names:
                outcome = get(name)(scene)
                if outcome[0].startswith("basic.get-ok"):
                    return [f"{name[1:]}: {outcome[0]}"]
            scene.a.quiet(0.05)
        return ["nowhere"]

    return look


def _got(client: str) -> Step:
    return until("get-ok", get(no_ack=0, on=client))


def _consumed(client: str) -> Step:
    def take(scene: Scene) -> list[str]:
        return [*consume(on=client)(scene), *arrivals(on=client)(scene)][-1:]

    return take


CANCEL = call("basic.cancel", consumer_tag="c")
CLOSE = call("channel.close", reply_code=200)
BYE = call("connection.close", reply_code=200)
STUMBLE = ack(99)
WAYS: dict[str, tuple[Any, list[Call] | None]] = {
    "got-nacked": (_got, [nack(1, requeue=1)]),
    "got-rejected": (_got, [reject(1, requeue=1)]),
    "got-recovered": (_got, [call("basic.recover", requeue=1)]),
    "got-channel-closed": (_got, [CLOSE]),
    "got-connection-closed": (_got, [BYE]),
    "got-socket-ended": (_got, None),
    "consumed-channel-closed": (_consumed, [CLOSE]),
    "consumed-connection-closed": (_consumed, [BYE]),
    "consumed-socket-ended": (_consumed, None),
    "consumed-channel-failed": (_consumed, [STUMBLE]),
    "cancelled-nacked": (_consumed, [CANCEL, nack(1, requeue=1)]),
    "cancelled-rejected": (_consumed, [CANCEL, reject(1, requeue=1)]),
    "cancelled-recovered": (_consumed, [CANCEL, call("basic.recover", requeue=1)]),
    "cancelled-channel-closed": (_consumed, [CANCEL, CLOSE]),
    "nacked-in-a-transaction": (_got, [TX, nack(1, requeue=1), call("tx.commit")]),
    "nack-rolled-back": (_got, [TX, nack(1, requeue=1), call("tx.rollback"), CLOSE]),
}


def _returns(back: list[Call] | None, client: str) -> list[Step]:
    return [drop(client)] if back is None else [step.by(client) for step in back]


for _way, (_held, _back) in WAYS.items():
    for _kind, _asked in (("limit-1", {"x_delivery_limit": 1}), ("plain", {})):
        each(
            f"returns/{_way}-{_kind}",
            [queue("@dead"), *loaded("m", **TO_DEAD, **_asked)],
            [_held("first"), *_returns(_back, "first")],
            _held("second"),
            [*_returns(_back, "second")],
            found_in("@q", "@dead"),
        )

each(
    "returns/nacked-to-the-same-consumer",
    [queue("@dead"), *loaded("m", x_delivery_limit=2, **TO_DEAD), consume(), arrivals()],
    nack(1, requeue=1, settle=0.3),
    nack(2, requeue=1, settle=0.3),
    nack(3, requeue=1, settle=0.3),
    found_in("@dead", "@q"),
)
each(
    "returns/by-two-ways-in-turn",
    [
        queue("@dead"),
        *loaded("m", x_delivery_limit=2, **TO_DEAD),
        _got("first"),
        nack(1, requeue=1).by("first"),
    ],
    _got("second"),
    [drop("second")],
    _got("third"),
    [reject(1, requeue=1).by("third")],
    found_in("@q", "@dead"),
)


def worn_out(name: str, back: Call, most: int, **asked: Any) -> None:
    """How often a message can be got and returned, at most so many times."""

    @case(f"returns/{name}")
    def _(scene: Scene) -> list[str]:
        for step in loaded("m", **asked):
            step(scene)
        count = 0
        while count < most and until("get-ok", get(no_ack=0), tries=6)(scene)[0].startswith("basic.get-ok"):
            count += 1
            Call(back.method, {**back.arguments, "delivery_tag": count})(scene)
        return [f"got {count} times"]


worn_out("default-limit-nacked", nack(0, requeue=1), 24)
worn_out("default-limit-rejected", reject(0, requeue=1), 24)
worn_out("no-limit-rejected", reject(0, requeue=1), 24, x_delivery_limit=-1)
worn_out("limit-of-argument", reject(0, requeue=1), 6, x_delivery_limit=3)

each(
    "returns/counts-kept-by-a-dead-letter",
    [quorum("@dead"), *loaded("m", x_delivery_limit=1, **TO_DEAD)],
    [_got("a"), reject(1, requeue=1), _got("a"), reject(2, requeue=1)],
    until("get-ok", get("@dead", no_ack=0)),
    [reject(3, requeue=1)],
    until("get-ok", get("@dead", no_ack=0)),
)
each(
    "returns/header-from-a-publisher",
    [quorum(), publish(body="m", props={"headers": {"x-delivery-count": 7, "x-acquired-count": 8}})],
    until("get-ok", get(no_ack=0)),
    [reject(1, requeue=1)],
    until("get-ok", get(no_ack=0)),
)
each(
    "returns/header-beside-others",
    [quorum(), publish(body="m", props={"headers": {"z": 1, "a": 2}})],
    [_got("a"), reject(1, requeue=1)],
    until("get-ok", get(no_ack=0)),
)
each(
    "returns/mixed-settlement-of-several",
    [*loaded("1", "2", "3", "4", x_delivery_limit=5), call("basic.qos", prefetch_count=4), consume()],
    [arrivals(4), CANCEL, nack(2, requeue=1), reject(4, requeue=1), ack(3), nack(1, requeue=1)],
    counted("3"),
    get(),
    get(),
    get(),
)
each(
    "returns/no-ack-get-of-a-returned-one",
    [*loaded("m"), _got("first"), nack(1, requeue=1).by("first")],
    until("get-ok", get()),
    pause(0.2),
    get(),
)
each(
    "returns/single-active-nacked",
    [*loaded("m", x_delivery_limit=5, **SINGLE), consume(tag="x"), arrivals(), consume(tag="y")],
    nack(1, requeue=1, settle=0.3),
    nack(2, requeue=1, settle=0.3),
)
