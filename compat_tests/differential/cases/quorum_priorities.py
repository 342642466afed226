"""Quorum queues: priorities of messages."""

from __future__ import annotations

from compat_tests.differential.cases.quorum import counted, quorum
from compat_tests.differential.script import *


def urgent(body: str, priority: int | None, **props: object) -> Step:
    given = props if priority is None else {"priority": priority, **props}
    return publish(body=body, props=given)


def levels(*priorities: int | None) -> list[Step]:
    """Messages of these priorities; each is called by its own."""
    return [urgent("none" if each is None else str(each), each) for each in priorities]


each("urgency/two-of-each", [quorum(), *levels(0, 9, 0, 9), counted("4")], contents())
each("urgency/high-first-then-low", [quorum(), *levels(*[9] * 6, *[0] * 6), counted("12")], contents())
each("urgency/low-first-then-high", [quorum(), *levels(*[0] * 6, *[9] * 6), counted("12")], contents())
each("urgency/every-number", [quorum(), *levels(*range(10)), counted("10")], contents())
each("urgency/without-one", [quorum(), *levels(None, 0, 4, 5, None, 5), counted("6")], contents())
each("urgency/above-ten", [quorum(), *levels(31, 255, 32, 10, 33, 5), counted("6")], contents())
for _low, _high in ((3, 4), (4, 5)):
    each(
        f"urgency/border-{_low}-{_high}",
        [quorum(), *levels(_low, _low, _low, _high, _high, _high), counted("6")],
        contents(),
    )
each(
    "urgency/returned-low-and-new-high",
    [quorum(x_delivery_limit=5), *levels(0, 0), counted("2"), get(no_ack=0)],
    [*levels(9), nack(1, requeue=1), counted("3")],
    contents(),
)
each(
    "urgency/returned-high-and-new-low",
    [quorum(x_delivery_limit=5), *levels(9), counted("1"), get(no_ack=0)],
    [*levels(0, 9), nack(1, requeue=1), counted("3")],
    contents(),
)
each(
    "urgency/returned-without-a-limit",
    [quorum(), *levels(9, 9, 0, 0), counted("4"), get(no_ack=0), get(no_ack=0), get(no_ack=0)],
    [nack(3, multiple=1, requeue=1), counted("4")],
    contents(),
)
each(
    "urgency/drop-head",
    [quorum(x_max_length=2), *levels(9, 0, 0, 9, 9), pause(0.3)],
    contents(),
)
each(
    "urgency/drop-head-of-the-low",
    [quorum(x_max_length=3), *levels(9, 0, 9, 0, 9), pause(0.3)],
    contents(),
)
each(
    "urgency/dead-letters-of-drop-head",
    [queue("@dead"), quorum(x_max_length=1, x_dead_letter_exchange="", x_dead_letter_routing_key="@dead")],
    [*levels(9, 0, 9), until("message_count=2", queue("@dead", passive=1))],
    contents("@dead"),
    contents(),
)
each(
    "urgency/expiry-behind-the-high",
    [quorum(), urgent("high", 9), urgent("low", 0, expiration="100"), pause(0.5)],
    queue(passive=1),
    contents(),
)
each(
    "urgency/expiry-behind-its-own",
    [quorum(), urgent("first", 0), urgent("second", 0, expiration="100"), pause(0.4)],
    queue(passive=1),
)
each("urgency/purge", [quorum(), *levels(9, 0, 5), counted("3")], call("queue.purge", queue="@q"))
each(
    "urgency/to-a-consumer",
    [quorum(), *levels(0, 0, 9, 0, 9, 9), counted("6"), call("basic.qos", prefetch_count=1), consume()],
    arrivals(),
    *(call("basic.ack", delivery_tag=tag, settle=0.2) for tag in range(1, 6)),
)
each(
    "urgency/kept-by-a-dead-letter",
    [quorum("@dead"), quorum(x_dead_letter_exchange="", x_dead_letter_routing_key="@dead")],
    [publish("@dead", "low"), *levels(9), until("get-ok", get(no_ack=0)), reject(1)],
    until("message_count=2", queue("@dead", passive=1)),
    contents("@dead"),
)
