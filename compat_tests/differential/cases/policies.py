"""Policies and operator policies, and what they make of arguments. The policies are in accounts.py."""

from __future__ import annotations

from compat_tests.differential.script import *


def named(end: str, **arguments: object) -> list[Step]:
    """A queue whose name ends so, with three messages."""
    name = f"@q{end}"
    return [
        queue(name, arguments={key.replace("_", "-"): value for key, value in arguments.items()}),
        *(publish(name, body=str(number)) for number in range(3)),
    ]


for _id, _end, _arguments in (
    ("max-length", "-two", {}),
    ("max-length-and-smaller-argument", "-two", {"x_max_length": 1}),
    ("max-length-and-larger-argument", "-two", {"x_max_length": 3}),
    ("max-length-and-operator", "-two-capped", {}),
    ("operator-alone", "-capped", {}),
    ("operator-and-argument", "-capped", {"x_max_length": 2}),
    ("operator-and-zero", "-capped", {"x_max_length": 0}),
    ("of-two-by-priority", "-ranked", {}),
    ("for-exchanges-only", "-exchange-only", {}),
    ("max-length-and-overflow-argument", "-two", {"x_overflow": "reject-publish"}),
    ("max-length-and-bytes-argument", "-two", {"x_max_length_bytes": 2}),
    ("no-match-before-the-end", "-two-x", {}),
):
    each(f"policy/{_id}", [*named(_end, **_arguments)], contents(f"@q{_end}"))

each(
    "policy/overflow",
    [queue("@q-refusing"), CONFIRMS],
    publish("@q-refusing", "1", settle=0.3),
    publish("@q-refusing", "2", settle=0.3),
    contents("@q-refusing"),
)
each(
    "policy/overflow-argument-of-another-kind",
    [queue("@q-refusing", arguments={"x-overflow": "drop-head"}), CONFIRMS],
    publish("@q-refusing", "1", settle=0.3),
    publish("@q-refusing", "2", settle=0.3),
    contents("@q-refusing"),
)
for _id, _arguments in (("", {}), ("-and-argument", {"x-dead-letter-exchange": ""})):
    each(
        f"policy/dead-letter-exchange{_id}",
        [queue("@d"), bind("@d", "amq.direct", "@q-dead"), queue("@q-dead", arguments=_arguments)],
        [publish("@q-dead", "@first"), publish("@q-dead", "@second")],
        until("first", get("@d"), tries=10),
    )
each("policy/message-ttl", [*named("-brief")], until("empty", get("@q-brief"), tries=20))
each(
    "policy/message-ttl-and-larger-argument",
    [*named("-brief", x_message_ttl=100_000)],
    until("empty", get("@q-brief"), tries=20),
)
each("policy/expires", [queue("@q-expiring")], until("404", queue("@q-expiring", passive=1), tries=20))
each(
    "policy/redeclared-with-the-value-of-the-policy",
    queue("@q-two"),
    queue("@q-two", arguments={"x-max-length": 2}),
)
each("policy/redeclared-as-it-was", queue("@q-two"), queue("@q-two"))
each(
    "policy/alternate-exchange",
    [queue("@d"), bind("@d", "amq.direct", "@key"), exchange("@x-elsewhere")],
    publish("@key", "@m", exchange="@x-elsewhere", mandatory=1),
    until("get-ok", get("@d")),
)
each(
    "policy/alternate-exchange-and-argument",
    [queue("@e"), exchange("@y", "fanout"), bind("@e", "@y")],
    exchange("@x-elsewhere", arguments={"alternate-exchange": "@y"}),
    publish("nothing", "@m", exchange="@x-elsewhere", mandatory=1),
    until("get-ok", get("@e")),
)
for _limit in (None, 0, 5):
    each(
        f"policy/delivery-limit-and-argument-{_limit}",
        [
            queue(
                "@q-limited",
                durable=1,
                arguments={
                    "x-queue-type": "quorum",
                    **({} if _limit is None else {"x-delivery-limit": _limit}),
                },
            ),
            CONFIRMS,
            publish("@q-limited", settle=0.3),
        ],
        consume("@q-limited"),
        arrivals(),
        nack(1, requeue=1, settle=0.5),
        nack(2, requeue=1, settle=0.5),
        call("queue.delete", queue="@q-limited"),
    )
each(
    "policy/max-length-of-a-quorum-queue",
    [
        queue("@q-two", durable=1, arguments={"x-queue-type": "quorum"}),
        CONFIRMS,
        *(publish("@q-two", str(number), settle=0.2) for number in range(3)),
    ],
    contents("@q-two"),
    call("queue.delete", queue="@q-two"),
)
