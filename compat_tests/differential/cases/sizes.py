"""The largest messages, and headers that a message has twice."""

from __future__ import annotations

from compat_tests.differential.script import *

LARGEST = 16 * 1024 * 1024
"""The default of max_message_size since 4.0."""


def octets(count: int, **arguments: object) -> Step:
    """Publish a message of so many bytes that no queue gets."""
    return publish("@nowhere", "x" * count, settle=0.4, **arguments)


each("size/largest", [CONFIRMS], octets(LARGEST), queue())
each("size/one-more", [CONFIRMS], octets(LARGEST + 1), queue())
each("size/one-more-in-a-transaction", [TX], octets(LARGEST + 1), call("tx.commit"))
each("size/one-more-to-a-missing-exchange", octets(LARGEST + 1, exchange="@missing"))

# --- headers that are there twice: which one an exchange looks at

for _name, _headers, _arguments in (
    ("first-fits", [("k", "a"), ("k", "b")], {"k": "a"}),
    ("last-fits", [("k", "a"), ("k", "b")], {"k": "b"}),
    ("with-another-between", [("k", "a"), ("z", 1), ("k", "b")], {"k": "b"}),
    ("of-two-types", [("k", 1), ("k", "1")], {"k": "1"}),
    ("any-first", [("k", "a"), ("k", "b")], {"x-match": "any", "k": "a", "q": 1}),
    ("any-last", [("k", "a"), ("k", "b")], {"x-match": "any", "k": "b", "q": 1}),
    ("present", [("k", "a"), ("k", "b")], {"k": None}),
    ("x-headers-last", [("x-k", "a"), ("x-k", "b")], {"x-match": "all-with-x", "x-k": "b"}),
    ("x-headers-first", [("x-k", "a"), ("x-k", "b")], {"x-match": "all-with-x", "x-k": "a"}),
):
    each(
        f"twice/{_name}",
        [queue(), exchange("@x", "headers"), bind(arguments=_arguments)],
        publish("", exchange="@x", mandatory=1, props={"headers": _headers}, settle=0.2),
    )
for _name, _bound in (("first", "a"), ("last", "b")):
    each(
        f"twice/in-the-binding-{_name}",
        [queue(), exchange("@x", "headers"), bind(arguments=[("k", "a"), ("k", "b")])],
        publish("", exchange="@x", mandatory=1, props={"headers": {"k": _bound}}, settle=0.2),
    )
each(
    "twice/x-match-in-the-binding",
    [queue(), exchange("@x", "headers")],
    bind(arguments=[("x-match", "any"), ("x-match", "all"), ("k", "a"), ("q", "b")]),
    publish("", exchange="@x", mandatory=1, props={"headers": {"k": "a"}}, settle=0.2),
)
each(
    "twice/copies",
    [queue("@a"), queue("@b")],
    [publish("@nowhere", props={"headers": [("CC", ["@a"]), ("CC", ["@b"])]})],
    get("@a"),
    get("@b"),
)
each(
    "twice/unbound-with-one",
    [queue(), exchange("@x", "headers"), bind(arguments=[("k", "a"), ("k", "b")])],
    call("queue.unbind", queue="@q", exchange="@x", routing_key="", arguments={"k": "a"}),
    publish("", exchange="@x", mandatory=1, props={"headers": {"k": "a"}}, settle=0.2),
)


@case("twice/through-a-dead-letter")
def _(scene: Scene) -> list[str]:
    queue("@d")(scene)
    queue(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "@d"})(scene)
    publish(props={"headers": [("k", 1), ("k", Tagged("l", 2))]})(scene)
    get(no_ack=0)(scene)
    call("basic.reject", delivery_tag=1)(scene)
    return get("@d")(scene)
