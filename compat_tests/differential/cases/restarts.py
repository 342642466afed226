"""A restart (`rabbitmqctl stop_app`, then `start_app`): what clients see, and what survives."""

from __future__ import annotations

from collections.abc import Sequence

from compat_tests.differential.script import *

KEPT = {"delivery_mode": 2}
QUORUM = {"x-queue-type": "quorum"}
STREAM = {"x-queue-type": "stream"}


def around_a_restart(case_id: str, before: Sequence[Step], *after: Step) -> None:
    """What is told after a restart; client `a` is there before it, `z` comes after it."""

    def begin(scene: Scene) -> list[str]:
        return [text for step in before for text in step(scene)]

    @case(f"restart/{case_id}", before=begin)
    def _(scene: Scene) -> list[str]:
        return [" / ".join(" ; ".join(step(scene)) or "-" for step in after)]


def persistent(key: str = "@q", body: str = "1", **arguments: object) -> Step:
    return publish(key, body, props=KEPT, settle=0.2, **arguments)


def gone(name: str, *, on: str = "z") -> Step:
    return call("queue.delete", queue=name, on=on)


def keeps(case_id: str, before: Sequence[Step], count: int, **asked: object) -> None:
    """What messages of a durable queue are after a restart: so many are got, and the queue is deleted."""
    declared = queue(durable=1, **asked)
    around_a_restart(
        case_id,
        [declared, CONFIRMS, *before],
        until("get-ok", get(on="z")),
        *[get(on="z")] * (count - 1),
        gone("@q"),
    )


def twice_persistent(*more: Step) -> list[Step]:
    return [persistent(body="1"), persistent(body="2"), *more]


around_a_restart("what-a-client-sees", [connect("a")], pause(1.0))
around_a_restart("what-a-client-without-a-channel-sees", [connect("b", channels=())], pause(1.0, on="b"))
around_a_restart("what-a-consumer-sees", [queue(), consume()], pause(1.0))
around_a_restart(
    "what-a-client-that-told-no-capabilities-sees", [connect("b", capabilities={})], pause(1.0, on="b")
)
around_a_restart(
    "queues",
    [
        queue("@durable", durable=1),
        queue("@transient"),
        queue("@auto-delete", durable=1, auto_delete=1),
        queue("@exclusive", exclusive=1),
        queue("@durable-exclusive", durable=1, exclusive=1),
    ],
    *(
        queue(f"@{name}", passive=1, on=name)
        for name in ("durable", "transient", "auto-delete", "exclusive", "durable-exclusive")
    ),
    gone("@durable"),
    gone("@auto-delete"),
)
around_a_restart(
    "auto-delete-queue-that-was-consumed",
    [queue(durable=1, auto_delete=1), consume()],
    queue(passive=1, on="z"),
)
around_a_restart(
    "exchanges",
    [
        exchange("@durable", durable=1),
        exchange("@transient"),
        exchange("@auto-delete", durable=1, auto_delete=1),
        exchange("@internal", durable=1, internal=1),
    ],
    *(
        exchange(f"@{name}", passive=1, on=name)
        for name in ("durable", "transient", "auto-delete", "internal")
    ),
    *(
        call("exchange.delete", exchange=f"@{name}", on="z")
        for name in ("durable", "auto-delete", "internal")
    ),
)
around_a_restart(
    "bindings",
    [
        queue("@durable", durable=1),
        queue("@transient"),
        exchange("@kept", "fanout", durable=1),
        exchange("@lost", "fanout"),
        bind("@durable", "@kept"),
        bind("@durable", "@lost"),
        bind("@transient", "@kept"),
        bind("@durable", "amq.direct", "@key"),
        call("exchange.bind", destination="@kept", source="amq.direct", routing_key="@to"),
    ],
    publish("k", "1", exchange="@kept", mandatory=1, on="z"),
    publish("@key", "2", exchange="amq.direct", mandatory=1, on="z"),
    publish("@to", "3", exchange="amq.direct", mandatory=1, on="z"),
    until("message_count=3", queue("@durable", passive=1, on="z"), tries=10),
    gone("@durable"),
    call("exchange.delete", exchange="@kept", on="z"),
)
around_a_restart(
    "auto-delete-exchange-whose-queue-was-transient",
    [exchange(durable=1, auto_delete=1), queue(), bind()],
    exchange(passive=1, on="z"),
)
around_a_restart(
    "bindings-of-transient-exchanges",
    [
        queue(durable=1),
        exchange(type="fanout"),
        bind(),
        exchange("@y"),
        bind("@q", "@y", "k"),
        exchange("@d"),
        call("exchange.bind", destination="@y", source="@d", routing_key="k"),
    ],
    publish("k", "1", exchange="@x", mandatory=1, on="y"),
    publish("k", "2", exchange="@d", mandatory=1, on="z"),
    queue(passive=1, on="zz"),
    *(call("exchange.delete", exchange=name, on="zzz") for name in ("@x", "@y", "@d")),
    gone("@q", on="zzz"),
)
keeps(
    "messages",
    [
        persistent(body="1"),
        publish(body="2", settle=0.2),
        publish(body="3", props={"delivery_mode": 1}, settle=0.2),
        persistent(body="4"),
    ],
    3,
)
keeps(
    "messages-of-a-quorum-queue", [persistent(body="1"), publish(body="2", settle=0.2)], 3, arguments=QUORUM
)
around_a_restart(
    "messages-of-a-stream",
    [queue(durable=1, arguments=STREAM), CONFIRMS, persistent(body="1"), publish(body="2", settle=0.3)],
    pause(2.0, on="z"),
    call("basic.qos", prefetch_count=5, on="z"),
    consume(on="z", arguments={"x-stream-offset": "first"}),
    arrivals(2, on="z"),
    gone("@q"),
)
keeps("unacknowledged", [*twice_persistent(), persistent(body="3"), get(no_ack=0), get(no_ack=0)], 3)
for _name, _asked in (("by-a-consumer", {}), ("of-a-quorum-queue", {"arguments": QUORUM})):
    keeps(
        f"unacknowledged-{_name}",
        twice_persistent(call("basic.qos", prefetch_count=1), consume(), arrivals()),
        2,
        **_asked,
    )
keeps("redelivered-before", twice_persistent(get(no_ack=0), nack(1, requeue=1)), 2)
keeps("acknowledged", twice_persistent(get(no_ack=0), ack(1, settle=0.2)), 2)
around_a_restart("transaction-not-committed", [queue(durable=1), TX, persistent()], get(on="z"), gone("@q"))
around_a_restart(
    "transaction-committed",
    [queue(durable=1), TX, persistent(body="1"), publish(body="2"), call("tx.commit")],
    get(on="z"),
    get(on="z"),
    gone("@q"),
)
around_a_restart(
    "arguments-of-a-queue",
    [queue(durable=1, arguments={"x-max-length": 1, "x-message-ttl": 60_000})],
    queue(durable=1, arguments={"x-max-length": 1, "x-message-ttl": 60_000}, on="z"),
    persistent(body="1", on="z"),
    persistent(body="2", on="z"),
    get(on="z"),
    get(on="z"),
    gone("@q"),
)
keeps(
    "properties-of-a-message",
    [
        publish(
            props={"delivery_mode": 2, "priority": 3, "headers": {"a": 1, "b": "x"}, "message_id": "m"},
            settle=0.2,
        )
    ],
    1,
)
around_a_restart(
    "priorities",
    [
        queue(durable=1, arguments={"x-max-priority": 5}),
        CONFIRMS,
        *(publish(body=str(p), props={"delivery_mode": 2, "priority": p}, settle=0.2) for p in (1, 5, 3)),
    ],
    lambda scene: [" ".join(get(on="z")(scene)[0][-4:] for _ in range(3))],
    gone("@q"),
)
keeps("message-that-expires-later", [publish(props={**KEPT, "expiration": "60000"}, settle=0.2)], 1)
around_a_restart(
    "user-and-vhost-that-were-added",
    [operate("add_user", "@u", "p"), operate("add_virtual_host", "@v")],
    connect("y", user="@u", password="p"),
    connect("z", vhost="@v"),
    operate("delete_user", "@u"),
    operate("delete_virtual_host", "@v"),
)
around_a_restart(
    "server-named-queue",
    [queue("", durable=1)],
    queue("", durable=1, exclusive=1, on="z"),
)
around_a_restart(
    "delivery-tags-begin-anew",
    [queue(durable=1), CONFIRMS, persistent(body="1"), get(no_ack=0)],
    get(no_ack=0, on="z"),
    ack(1, on="z"),
    gone("@q"),
)
around_a_restart(
    "while-a-client-closes-nothing",
    [connect("b", answers=False), open_channel(2).by("b")],
    pause(1.0, on="b"),
)
