"""The firehose: copies of what a virtual host takes and delivers, in the exchange amq.rabbitmq.trace."""

from __future__ import annotations

from collections.abc import Sequence

from compat_tests.differential.script import *

_ON = operate("set_tracing", "@v", "on")
_OFF = operate("set_tracing", "@v", "")
_SEEN = pause(0.5, on="t")
"""The copies that the firehose publishes within 0.5 s."""


def _firehose(case_id: str, *steps: Step | Sequence[Step], key: str = "#", on: bool = True) -> None:
    """A case in a virtual host of its own, in which client t consumes what the firehose publishes.

    The outcome of every step is told, but for those in brackets; then what the firehose has published.
    """

    def play(scene: Scene) -> list[str]:
        for prepare in (
            operate("add_virtual_host", "@v"),
            connect("a", vhost="@v"),
            connect("t", vhost="@v"),
            queue("@t", on="t"),
            bind("@t", "amq.rabbitmq.trace", key, on="t"),
            consume("@t", "t", on="t", no_ack=1),
            *((_ON,) if on else ()),
        ):
            prepare(scene)
        told = []
        for step in steps:
            for each in step if isinstance(step, Sequence) else ():
                each(scene)
            if not isinstance(step, Sequence):
                told.append(" ; ".join(step(scene)) or "-")
        told += [" ; ".join(_SEEN(scene)) or "-"]
        operate("delete_virtual_host", "@v")(scene)
        return [" / ".join(told)]

    case(f"firehose/{case_id}")(play)


_EVERY_PROPERTY = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"a": 1, "b": "two", "c": {"d": [True, None]}},
    "delivery_mode": 2,
    "priority": 5,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "timestamp": 1700000000,
    "type": "t",
    "user_id": "guest",
    "app_id": "app",
}

_firehose("default-exchange", [queue(), publish()])
_firehose("unroutable", [publish("nowhere")])
_firehose("returned", [publish("nowhere", mandatory=1, settle=0.2)])
_firehose("empty-body", [queue(), publish(body="")])
_firehose("get", [queue(), publish(), get()])
_firehose("get-and-ack", [queue(), publish(), get(no_ack=0), ack(1)])
_firehose("get-empty", [queue(), get()])
_firehose("get-again", [queue(), publish(), get(no_ack=0), reject(1, 1), get()])
_firehose("consumer", [queue(), consume(), publish(settle=0.3), ack(1)])
_firehose("consumer-no-ack", [queue(), consume(no_ack=1), publish(settle=0.3)])
_firehose("delivered-later", [queue(), publish(), consume(no_ack=1, settle=0.3)])
_firehose("redelivered", [queue(), consume(), publish(settle=0.2), reject(1, 1, settle=0.3)])
_firehose("properties", [queue(), publish(props=_EVERY_PROPERTY)])
_firehose("properties-got", [queue(), publish(props=_EVERY_PROPERTY), get()])
_firehose("no-headers", [queue(), publish(props={"content_type": "text/plain"})])
_firehose("empty-headers", [queue(), publish(props={"headers": {}})])
_firehose("late-timestamp", [queue(), publish(props={"timestamp": 5_000_000_000})])
_firehose("copies", [queue("@q"), queue("@q2"), publish(props={"headers": {"CC": ["@q2"], "BCC": ["x"]}})])
_firehose(
    "copies-in-order", [publish("@m", props={"headers": {"CC": ["@z", "@a", "@z", "@B"], "BCC": ["@m"]}})]
)
_firehose("copies-got", [queue("@q"), queue("@q2"), publish(props={"headers": {"BCC": ["@q2"]}}), get("@q2")])
_firehose(
    "exchange-to-exchange",
    [exchange("@x", "fanout"), exchange("@y", "fanout"), queue(), bind("@q", "@y")],
    [call("exchange.bind", destination="@y", source="@x"), publish("key", exchange="@x"), get()],
)
_firehose(
    "alternate-exchange",
    [
        exchange("@y", "fanout"),
        exchange("@x", arguments={"alternate-exchange": "@y"}),
        queue(),
        bind("@q", "@y"),
    ],
    [publish("key", exchange="@x"), get()],
)
for _kind in ("fanout", "direct", "topic", "headers"):
    _firehose(
        f"several-queues-{_kind}",
        [exchange("@x", _kind), *[queue(f"@{name}") for name in "bcad"]],
        [*[bind(f"@{name}", "@x", "k") for name in "cabd"], publish("k", exchange="@x")],
    )
_firehose("key-of-queue", [queue(), publish(), get()], key="deliver.#")
_firehose("topic-exchange", [publish("a.b.c", exchange="amq.topic")])
_firehose(
    "to-the-trace-exchange",
    [queue(), bind("@q", "amq.rabbitmq.trace", "mine")],
    publish("mine", exchange="amq.rabbitmq.trace"),
    get(),
)
_firehose(
    "dead-letter",
    [queue("@d"), queue(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "@d"})],
    [publish(), get(no_ack=0), reject(1), get("@d")],
)
_firehose(
    "expired",
    [
        queue("@d"),
        queue(
            arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "@d", "x-message-ttl": 10}
        ),
    ],
    [publish(settle=0.2), get("@d")],
)
_firehose("confirm", [queue(), CONFIRMS], publish(settle=0.2))
_firehose("transaction", [queue(), TX, publish()], _SEEN, call("tx.commit", settle=0.2))
_firehose("rolled-back", [queue(), TX, publish(), call("tx.rollback")])
_firehose("transaction-get", [queue(), publish(), TX, get(no_ack=0), ack(1)], _SEEN, call("tx.commit"))
_firehose(
    "refused",
    [queue(arguments={"x-max-length": 0, "x-overflow": "reject-publish"}), CONFIRMS, publish(settle=0.2)],
)
_firehose("missing-exchange", publish("key", exchange="@missing"))
_firehose("immediate-close", [queue()], publish(props={"expiration": "never"}))
_firehose("other-channel", [open_channel(7), queue(), publish(ch=7)])
_firehose("quorum", [queue(durable=1, arguments={"x-queue-type": "quorum"}), publish(settle=0.3), get()])
_firehose(
    "quorum-consumer",
    [queue(durable=1, arguments={"x-queue-type": "quorum"}), consume(), publish(settle=0.5)],
)
_firehose(
    "stream",
    [queue(durable=1, arguments={"x-queue-type": "stream"}), call("basic.qos", prefetch_count=5)],
    [consume(arguments={"x-stream-offset": "first"}), publish(settle=0.8)],
)
_firehose(
    "reply-to",
    [queue(), consume("amq.rabbitmq.reply-to", "r", no_ack=1), consume(no_ack=1)],
    [publish(props={"reply_to": "amq.rabbitmq.reply-to"}, settle=0.3)],
)
_firehose(
    "switched-on-later",
    [queue(), publish(body="1"), _ON, publish(body="2"), _OFF, publish(body="3")],
    on=False,
)
_firehose("switched-off", [queue(), publish(body="1"), _OFF, get(), _ON, publish(body="2")])
_firehose("switched-on-twice", [_ON, queue(), publish(body="1"), _OFF, publish(body="2")])
_firehose("unbound", [unbind("@t", "amq.rabbitmq.trace", "#", on="t"), queue(), publish()])
_firehose("no-exchange-for-clients", call("exchange.delete", exchange="amq.rabbitmq.trace", on="t"))
_firehose("persistent", [queue(), publish(props={"delivery_mode": 2, "priority": 3})], key="publish.*")
_firehose(
    "trace-queue-got",
    [queue("@t2", on="t"), bind("@t2", "amq.rabbitmq.trace", "publish.", on="t"), queue(), publish()],
    get("@t2", on="t"),
)
_firehose(
    "consume-then-cancel",
    [
        queue(),
        consume(),
        publish(settle=0.2),
        call("basic.cancel", consumer_tag="c"),
        call("basic.recover", requeue=True),
        get(),
    ],
)
_firehose("arrivals", [queue(), publish("@q", "x" * 40)], arrivals(on="t"))
_firehose("other-virtual-host", [connect("o"), queue("@q", on="o"), publish("@q", on="o")])
_firehose("overflow", [queue(arguments={"x-max-length": 1}), publish(body="1"), publish(body="2"), get()])
