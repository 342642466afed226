"""Declaring and deleting: what is missing, reserved, different or in use."""

from __future__ import annotations

from compat_tests.differential.script import *

# --- not found

last("404/queue.declare-passive", queue("@no", passive=1))
last("404/exchange.declare-passive", exchange("@no", passive=1))
last("404/queue.bind-no-queue", bind("@no", "amq.direct"))
last("404/queue.bind-no-exchange", queue(), bind("@q", "@no"))
last("404/queue.bind-neither", bind("@noq", "@nox"))
last("404/queue.unbind-no-queue", call("queue.unbind", queue="@no", exchange="amq.direct"))
last("404/queue.unbind-no-exchange", queue(), call("queue.unbind", queue="@q", exchange="@no"))
last(
    "404/queue.unbind-no-binding",
    queue(),
    call("queue.unbind", queue="@q", exchange="amq.direct", routing_key="zzz"),
)
last("404/queue.purge", call("queue.purge", queue="@no"))
last("404/queue.delete", call("queue.delete", queue="@no"))
last("404/queue.delete-if-empty-unused", call("queue.delete", queue="@no", if_empty=1, if_unused=1))
last("404/exchange.delete", call("exchange.delete", exchange="@no"))
last("404/exchange.delete-if-unused", call("exchange.delete", exchange="@no", if_unused=1))
last("404/basic.consume", consume("@no"))
last("404/basic.get", get("@no"))
last("404/basic.publish", publish("k", exchange="@no"))
last("404/basic.publish-mandatory", publish("k", exchange="@no", mandatory=1))
last("404/basic.publish-confirm", CONFIRMS, publish("k", exchange="@no"))
last("404/exchange.bind-no-source", exchange("@d"), call("exchange.bind", destination="@d", source="@no"))
last(
    "404/exchange.bind-no-destination", exchange("@s"), call("exchange.bind", destination="@no", source="@s")
)
last("404/exchange.bind-neither", call("exchange.bind", destination="@nod", source="@nos"))
last("404/exchange.unbind-no-source", exchange("@d"), call("exchange.unbind", destination="@d", source="@no"))
last("404/exchange.unbind-neither", call("exchange.unbind", destination="@d", source="@no"))

# --- names left empty

last("empty/queue.declare-passive", queue("", passive=1))
last("empty/queue.declare-passive-after-declare", queue("@q"), queue("", passive=1))
last("empty/queue.declare-twice", queue(""), queue(""))
last("empty/queue.declare-bad-argument", queue("", exclusive=1, arguments={"x-message-ttl": "soon"}))
last("empty/queue.declare-exclusive-quorum", queue("", exclusive=1, arguments={"x-queue-type": "quorum"}))
last("empty/queue.declare-server-named", queue("", exclusive=1))
last("empty/consume-no-last", consume(""))
last("empty/get-no-last", get(""))
last("empty/purge-no-last", call("queue.purge", queue=""))
last("empty/delete-no-last", call("queue.delete", queue=""))
last("empty/bind-no-last", bind("", "amq.direct"))
last("empty/unbind-no-last", call("queue.unbind", queue="", exchange="amq.direct"))
last("empty/consume-last", queue(), consume(""))
last("empty/get-last", queue(), get(""))
last("empty/purge-last", queue(), call("queue.purge", queue=""))
last("empty/delete-last", queue(), call("queue.delete", queue=""))
last("empty/delete-last-then-get", queue(), call("queue.delete", queue=""), get(""))
each(
    "empty/bind-last-empty-key",
    queue(),
    call("queue.bind", queue="", exchange="amq.direct", routing_key=""),
    publish("@q", exchange="amq.direct"),
    publish("", "2", exchange="amq.direct"),
    get(),
    get(),
)
each(
    "empty/bind-last-with-key",
    queue(),
    call("queue.bind", queue="", exchange="amq.direct", routing_key="@k"),
    publish("@k", exchange="amq.direct"),
    get(),
)
last("empty/last-is-per-channel", queue(), open_channel(2), get("", ch=2))
last("empty/last-set-by-passive", queue(), open_channel(2), queue("@q", passive=1, ch=2), get("", ch=2))
last("empty/exchange.declare", exchange(""))
last("empty/exchange.declare-passive", exchange("", passive=1))
last("empty/exchange.delete", call("exchange.delete", exchange=""))
last("empty/exchange.delete-if-unused", call("exchange.delete", exchange="", if_unused=1))
last("empty/queue.bind-default-exchange", queue(), bind("@q", "", "k"))
last(
    "empty/queue.unbind-default-exchange",
    queue(),
    call("queue.unbind", queue="@q", exchange="", routing_key="@q"),
)
last("empty/exchange.bind-source-default", exchange("@d"), call("exchange.bind", destination="@d", source=""))
last(
    "empty/exchange.bind-destination-default",
    exchange("@s"),
    call("exchange.bind", destination="", source="@s"),
)
last("empty/exchange.unbind-default", exchange("@d"), call("exchange.unbind", destination="@d", source=""))

# --- reserved names

last("amq/queue.declare", queue("amq.probe"))
last("amq/queue.declare-passive-missing", queue("amq.probe-no", passive=1))
last("amq/queue.declare-only-amq", queue("amq"))
last("amq/exchange.declare", exchange("amq.probe"))
last("amq/exchange.declare-passive-existing", exchange("amq.direct", passive=1))
last("amq/exchange.declare-passive-missing", exchange("amq.probe-no", passive=1))
last("amq/exchange.declare-same", exchange("amq.direct", "direct", durable=1))
last("amq/exchange.declare-other-durable", exchange("amq.direct", "direct"))
last("amq/exchange.declare-other-type", exchange("amq.direct", "fanout", durable=1))
for _n in ("direct", "fanout", "topic", "headers", "match", "rabbitmq.trace", "rabbitmq.log"):
    last(f"amq/exists-{_n}", exchange("amq." + _n, passive=1))
    last(f"amq/delete-{_n}", call("exchange.delete", exchange="amq." + _n))
    last(f"amq/publish-{_n}", publish("k", exchange="amq." + _n))
last("amq/delete-missing", call("exchange.delete", exchange="amq.nothing"))
last("amq/queue.delete-missing", call("queue.delete", queue="amq.nothing"))
for _name, _flag in {"": "exclusive", "-passive": "passive"}.items():
    last(
        f"amq/redeclare-own-server-named{_name}",
        keep("name", "queue='([^']*)'", queue("", exclusive=1)),
        queue("$name", **{_flag: 1}),
    )
last("amq/bind-trace", queue(), bind("@q", "amq.rabbitmq.trace", "#"))

# --- inequivalent declarations

for _f in ("durable", "auto_delete", "exclusive"):
    last(f"406/queue-{_f}-now-true", queue(), queue("@q", **{_f: 1}))
    last(f"406/queue-{_f}-now-false", queue("@q", **{_f: 1}), queue())
last("406/queue-exclusive-durable-then-exclusive", queue(exclusive=1, durable=1), queue(exclusive=1))
last("406/queue-exclusive-then-durable-exclusive", queue(exclusive=1), queue(exclusive=1, durable=1))
last("406/queue-two-fields", queue(), queue(durable=1, auto_delete=1))
for _k, _a, _b in [
    ("x-message-ttl", 1000, 2000),
    ("x-expires", 60000, 70000),
    ("x-max-length", 5, 6),
    ("x-max-length-bytes", 5, 6),
    ("x-max-priority", 5, 6),
    ("x-dead-letter-exchange", "a", "b"),
    ("x-overflow", "drop-head", "reject-publish"),
    ("x-queue-mode", "default", "lazy"),
    ("x-queue-type", "classic", "quorum"),
    ("x-single-active-consumer", True, False),
    ("x-unknown", 1, 2),
    ("x-queue-version", 1, 2),
    ("x-queue-master-locator", "client-local", "min-masters"),
]:
    last(f"406/queue-arg-{_k}-changed", queue(arguments={_k: _a}), queue(arguments={_k: _b}))
    last(f"406/queue-arg-{_k}-added", queue(), queue(arguments={_k: _a}))
    last(f"406/queue-arg-{_k}-removed", queue(arguments={_k: _a}), queue())
last(
    "406/queue-arg-dlrk-changed",
    queue(arguments={"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "r"}),
    queue(arguments={"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "s"}),
)
last(
    "406/queue-arg-dlrk-removed",
    queue(arguments={"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "r"}),
    queue(arguments={"x-dead-letter-exchange": "a"}),
)
last(
    "406/queue-arg-ttl-same-value-other-width",
    queue(arguments={"x-message-ttl": Tagged("I", 1000)}),
    queue(arguments={"x-message-ttl": Tagged("l", 1000)}),
)
last(
    "406/queue-arg-ttl-same-value-uint16",
    queue(arguments={"x-message-ttl": Tagged("I", 1000)}),
    queue(arguments={"x-message-ttl": Tagged("u", 1000)}),
)
last(
    "406/queue-arg-ttl-vs-double",
    queue(arguments={"x-message-ttl": Tagged("I", 1000)}),
    queue(arguments={"x-message-ttl": Tagged("d", 1000.0)}),
)
last(
    "406/queue-args-order",
    queue(arguments={"x-message-ttl": 1000, "x-max-length": 5}),
    queue(arguments={"x-max-length": 5, "x-message-ttl": 1000}),
)
last(
    "406/queue-passive-ignores",
    queue(),
    queue(passive=1, durable=1, auto_delete=1, arguments={"x-message-ttl": 5}),
)
last("406/queue-passive-exclusive-flag", queue(), queue(passive=1, exclusive=1))
for _f in ("durable", "auto_delete", "internal"):
    last(f"406/exchange-{_f}-now-true", exchange(), exchange("@x", "direct", **{_f: 1}))
    last(f"406/exchange-{_f}-now-false", exchange("@x", "direct", **{_f: 1}), exchange())
for _t in ("fanout", "topic", "headers"):
    last(f"406/exchange-type-{_t}", exchange(), exchange(type=_t))
last("406/exchange-type-and-durable", exchange(), exchange(type="fanout", durable=1))
last(
    "406/exchange-ae-changed",
    exchange(arguments={"alternate-exchange": "a"}),
    exchange(arguments={"alternate-exchange": "b"}),
)
last("406/exchange-ae-added", exchange(), exchange(arguments={"alternate-exchange": "a"}))
last("406/exchange-ae-removed", exchange(arguments={"alternate-exchange": "a"}), exchange())
last(
    "406/exchange-unknown-arg-changed", exchange(arguments={"x-foo": "a"}), exchange(arguments={"x-foo": "b"})
)
last(
    "406/exchange-passive-ignores",
    exchange(),
    exchange(type="fanout", passive=1, durable=1, internal=1, auto_delete=1),
)
last("406/exchange-passive-bogus-type", exchange(), exchange(type="bogus", passive=1))
last("406/exchange-passive-empty-type", exchange(), exchange(type="", passive=1))
last("exchange-type/unknown", exchange(type="bogus"))
last("exchange-type/empty", exchange(type=""))
last("exchange-type/x-random", exchange(type="x-random"))
last("exchange-type/x-delayed-message", exchange(type="x-delayed-message"))
last("exchange-type/x-consistent-hash", exchange(type="x-consistent-hash"))
last("exchange-type/x-local-random", exchange(type="x-local-random"))
last("exchange-type/upper-case", exchange(type="DIRECT"))
last("exchange-type/known-atom", exchange(type="undefined"))

# --- not implemented, flow, recover, qos

last("540/immediate", queue(), publish(immediate=1))
last("540/immediate-no-exchange", publish("k", exchange="@no", immediate=1))
last("540/immediate-and-mandatory", publish("@no", immediate=1, mandatory=1))
last("540/prefetch-size", call("basic.qos", prefetch_size=1))
last("540/channel.flow-false", call("channel.flow", active=0))
last("540/channel.flow-true", call("channel.flow", active=1))
last("540/recover-false", call("basic.recover", requeue=0))
last("540/recover-async-false", call("basic.recover-async", requeue=0))
last("540/recover-true", call("basic.recover", requeue=1))
last("540/recover-async-true", call("basic.recover-async", requeue=1))
last("540/no-local-accepted", queue(), consume(no_local=1))
each("540/no-local-ignored", [queue()], consume(no_local=1, no_ack=1), publish(settle=0.2))
last("540/qos-max", call("basic.qos", prefetch_count=65535))
