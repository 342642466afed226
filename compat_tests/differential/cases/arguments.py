"""Arguments and names of queues, exchanges, bindings and consumers."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import *

# --- bad arguments

QUEUE_ARGUMENTS: dict[str, list[Any]] = {
    "x-message-ttl": [
        -1,
        "5",
        0,
        Tagged("l", 2**40),
        Tagged("d", 5.0),
        True,
        None,
        Tagged("T", 5),
        Tagged("l", 315360000000),
        Tagged("l", 315360000001),
    ],
    "x-expires": [0, -1, "5", 1, Tagged("l", 2**40), Tagged("l", 315360000001), Tagged("d", 1000.0)],
    "x-max-length": [-1, "5", 0, Tagged("l", 2**60), Tagged("d", 5.0)],
    "x-max-length-bytes": [-1, "5", 0],
    "x-max-priority": [-1, "5", 0, 255, 256, Tagged("d", 5.0)],
    "x-dead-letter-exchange": [5, "", "@missing", True, b"bytes", "amq.direct"],
    "x-dead-letter-routing-key": ["k", 5],
    "x-overflow": ["bogus", 5, "drop-head", "reject-publish", "reject-publish-dlx"],
    "x-queue-mode": ["bogus", 5, "lazy", "default"],
    "x-queue-type": ["bogus", 5, "classic", None],
    "x-single-active-consumer": ["yes", 1, True, False],
    "x-queue-version": [0, 1, 2, 3, "2"],
    "x-queue-master-locator": ["bogus", 5, "min-masters", "client-local"],
    "x-max-age": ["1D", "bogus"],
    "x-delivery-limit": [5, -1],
    "x-quorum-initial-group-size": [1],
    "x-ha-policy": ["all"],
    "x-max-in-memory-length": [5],
    "x-unknown": [5, "a", None],
    "x-stream-max-segment-size-bytes": [5000],
    "x-dead-letter-strategy": ["at-most-once", "at-least-once"],
}
for _k, _values in QUEUE_ARGUMENTS.items():
    for _v in _values:
        last(f"args/queue-{_k}={_v!r}", queue(arguments={_k: _v}))
last(
    "args/queue-dlrk-with-dlx-int",
    queue(arguments={"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": 5}),
)
last("args/queue-two-bad", queue(arguments={"x-message-ttl": -1, "x-expires": 0}))
last("args/queue-two-bad-reversed", queue(arguments={"x-expires": 0, "x-message-ttl": -1}))
last("args/queue-quorum-not-durable", queue(arguments={"x-queue-type": "quorum"}))
last("args/queue-quorum-exclusive", queue(durable=1, exclusive=1, arguments={"x-queue-type": "quorum"}))
last("args/queue-quorum-auto-delete", queue(durable=1, auto_delete=1, arguments={"x-queue-type": "quorum"}))
last(
    "args/queue-quorum-max-priority",
    queue(durable=1, arguments={"x-queue-type": "quorum", "x-max-priority": 5}),
)
last("args/queue-quorum-lazy", queue(durable=1, arguments={"x-queue-type": "quorum", "x-queue-mode": "lazy"}))
last("args/queue-stream-exclusive", queue(durable=1, exclusive=1, arguments={"x-queue-type": "stream"}))
last("args/queue-stream-ttl", queue(durable=1, arguments={"x-queue-type": "stream", "x-message-ttl": 5}))
last("args/queue-passive-bad", queue(), queue(passive=1, arguments={"x-message-ttl": -1}))
last("args/queue-existing-bad", queue(), queue(arguments={"x-message-ttl": -1}))
for _v in (5, "", "@missing", None, b"x", True):
    last(f"args/exchange-alternate-exchange={_v!r}", exchange(arguments={"alternate-exchange": _v}))
last("args/exchange-unknown", exchange(arguments={"x-foo": 5}))
for _v in ("all", "any", "all-with-x", "any-with-x", "bogus", "ALL", "", 5, True, None, b"all"):
    last(f"args/x-match={_v!r}", queue(), bind("@q", "amq.headers", arguments={"x-match": _v, "k": 1}))
last("args/x-match-on-direct-exchange", queue(), bind("@q", "amq.direct", arguments={"x-match": "bogus"}))
for _v in (5, -5, 0, "5", Tagged("l", 2**40), Tagged("d", 1.5), None, True):
    last(f"args/consume-x-priority={_v!r}", queue(), consume(arguments={"x-priority": _v}))
last("args/consume-unknown", queue(), consume(arguments={"x-foo": 1}))
last("args/consume-x-cancel-on-ha-failover", queue(), consume(arguments={"x-cancel-on-ha-failover": True}))
last("args/consume-x-stream-offset", queue(), consume(arguments={"x-stream-offset": "first"}))

# --- names

last(
    "names/cr-lf",
    call("queue.declare", queue="\r\n@"),
)
each("names/queue-cr-lf-stripped", queue("@a\r\nb\nc"), queue("@abc", passive=1))
each("names/exchange-cr-lf-stripped", exchange("@a\r\nb"), exchange("@ab", passive=1))
last("names/queue-cr-lf-passive", queue("@ab"), queue("@a\nb", passive=1))
last("names/queue-cr-lf-get", queue("@ab"), get("@a\nb"))
last("names/queue-cr-lf-publish", queue("@ab"), publish("@a\nb"), queue("@ab", passive=1))
last("names/queue-cr-lf-delete", queue("@ab"), call("queue.delete", queue="@a\nb"), queue("@ab", passive=1))
each("names/only-cr-lf", queue("\r\n"))
each(
    "names/invalid-utf8-queue",
    call("queue.declare", queue="\udcff\udcfe"),
    call("queue.delete", queue="\udcff\udcfe"),
)
each("names/invalid-utf8-404", call("queue.declare", queue="\udcff\udcfe-no", passive=1))
each("names/non-ascii", call("queue.declare", queue="@\u00e9\u4e2d", passive=1))
each("names/quote-in-name", queue("@it's", passive=1))


@case("names/255-octets")
def _(scene: Scene) -> list[str]:
    name = scene.named("@").ljust(255, "y")
    return [text.replace(name, "<255 bytes>") for text in queue(name)(scene)]


last("names/255-octets-404", queue("z" * 255, passive=1))
each("names/nul-in-name", queue("@a\0b", passive=1))
last("names/auto-queue", queue("", auto_delete=1))
last("names/auto-tag", queue(), consume(tag=""))
