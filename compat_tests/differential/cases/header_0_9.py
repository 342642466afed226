"""Connections that begin with the header of 0-9, which RabbitMQ takes for 0-9-1."""

from __future__ import annotations

from compat_tests.differential.codec import frame
from compat_tests.differential.raw_client import RawClient
from compat_tests.differential.script import *

HEADER = b"AMQP\1\1\0\x09"


def opened(scene: Scene) -> list[str]:
    """The client connects with the header of 0-9."""
    scene.client("a", header=HEADER)
    return []


def over(case_id: str, *steps: Step | list[Step]) -> None:
    """A case over the header of 0-9."""
    each(f"header-0-9/{case_id}", [opened], *steps)


@case("header-0-9/start-is-that-of-0-9-1")
def _(scene: Scene) -> list[str]:
    started = []
    for header in (HEADER, b"AMQP\0\0\x09\x01"):
        client = RawClient(scene.address, header=header, handshake=False)
        started.append(client.until("connection.start"))
        client.close()
    return [f"equal: {started[0] == started[1]}"]


@case("header-0-9/out-of-band")
def _(scene: Scene) -> list[str]:
    """What aioamqp sends in channel.open."""
    client = scene.client("a", header=HEADER, channels=())
    client.send_bytes(frame(1, 1, b"\0\x14\0\x0a\1" + b"0"))
    return client.until("channel.open-ok")


over(
    "confirms",
    CONFIRMS,
    [queue("@q")],
    publish("@q", "1", settle=0.2),
    publish("@gone", "2", mandatory=True, settle=0.2),
)
over("nack", [queue("@q"), publish("@q", "1")], get("@q", 0), nack(1, requeue=True), get("@q"))
over(
    "exchange-bind",
    [exchange("@e", "fanout"), exchange("@f", "fanout"), queue("@q"), bind("@q", "@e")],
    call("exchange.bind", destination="@e", source="@f"),
    publish("", "1", exchange="@f"),
    get("@q"),
    call("exchange.unbind", destination="@e", source="@f"),
    publish("", "2", exchange="@f"),
    get("@q"),
)
over("cancel-notify", [queue("@q")], consume("@q", "c"), call("queue.delete", queue="@q", settle=0.2))
over(
    "reply-to",
    [queue("@q")],
    consume("amq.rabbitmq.reply-to", "c", no_ack=True),
    publish("@q", "1", props={"reply_to": "amq.rabbitmq.reply-to"}),
    get("@q"),
)
over("update-secret", call("connection.update-secret", ch=0, new_secret="s", reason="r"))
over(
    "recover", [queue("@q"), publish("@q", "1")], get("@q", 0), call("basic.recover", requeue=True), get("@q")
)
over(
    "recover-async",
    [queue("@q"), publish("@q", "1"), get("@q", 0)],
    call("basic.recover-async", requeue=True),
)
over("recover-to-the-same", call("basic.recover", requeue=False))
over(
    "qos-per-consumer",
    [queue("@q"), publish("@q", "1"), publish("@q", "2")],
    call("basic.qos", prefetch_count=1),
    consume("@q", "c", settle=0.2),
    call("basic.qos", prefetch_count=10, settle=0.2),
    ack(1, settle=0.2),
)
over("qos-in-bytes", call("basic.qos", prefetch_size=1))
over("flow", call("channel.flow", active=False))
over(
    "tx-rollback",
    [queue("@q"), publish("@q", "1")],
    TX,
    get("@q", 0),
    ack(1),
    call("tx.rollback", settle=0.2),
)
over("tx-and-confirms", TX, CONFIRMS)
over("redeclared-exchange", call("exchange.declare", exchange="amq.direct", type="fanout"))
over("redeclared-queue", [queue("@q")], call("queue.declare", queue="@q", durable=True))
over("reserved-name", call("exchange.declare", exchange="amq.own", type="direct"))
over("internal-exchange", [exchange("@e", "fanout", internal=True), queue("@q")], bind("@q", "@e"))
over("default-exchange", [queue("@q")], bind("@q", ""))
over("unbind-what-is-not-bound", [queue("@q")], call("queue.unbind", queue="@q", exchange="amq.direct"))
over("delete-what-is-not-there", call("queue.delete", queue="@gone"))
over("no-current-queue", call("basic.consume"), call("channel.open"), call("basic.get"))
over("immediate", [queue("@q")], publish("@q", "1", immediate=True))
over("no-local", [queue("@q")], consume("@q", "c", no_local=True), publish("@q", "1", settle=0.2))
over("tag-on-two-channels", [queue("@q")], consume("@q", "c"), consume("@q", "c"))
over("access", call("access.request", realm="/data", passive=True), call("access.request", realm="/no"))
