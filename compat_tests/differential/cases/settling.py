"""Acknowledgements and transactions."""

from __future__ import annotations

from compat_tests.differential.script import *

# --- acknowledgements

for _v in ("ack", "nack", "reject"):
    last(f"ack/{_v}-unknown", queue(), call("basic." + _v, delivery_tag=7))
    last(f"ack/{_v}-zero", queue(), call("basic." + _v, delivery_tag=0))
    last(
        f"ack/{_v}-twice",
        queue(),
        publish(),
        get(no_ack=0),
        call("basic." + _v, delivery_tag=1),
        call("basic." + _v, delivery_tag=1),
    )
    last(f"ack/{_v}-huge", queue(), call("basic." + _v, delivery_tag=2**64 - 1))
for _v in ("ack", "nack"):
    last(f"ack/{_v}-zero-multiple-none", queue(), call("basic." + _v, delivery_tag=0, multiple=1))
    last(f"ack/{_v}-unknown-multiple", queue(), call("basic." + _v, delivery_tag=7, multiple=1))
    last(
        f"ack/{_v}-multiple-beyond",
        queue(),
        publish(),
        get(no_ack=0),
        call("basic." + _v, delivery_tag=5, multiple=1),
    )
    last(
        f"ack/{_v}-multiple-again",
        queue(),
        publish(),
        publish(),
        get(no_ack=0),
        get(no_ack=0),
        call("basic." + _v, delivery_tag=2, multiple=1),
        call("basic." + _v, delivery_tag=2, multiple=1),
    )
    last(
        f"ack/{_v}-multiple-lower-done",
        queue(),
        publish(),
        publish(),
        get(no_ack=0),
        get(no_ack=0),
        call("basic." + _v, delivery_tag=1),
        call("basic." + _v, delivery_tag=1, multiple=1),
    )
each("ack/of-no-ack-get", [queue()], [publish()], get(no_ack=1), ack(1))
each("ack/of-no-ack-consumer", [queue()], [publish()], consume(no_ack=1), arrivals(), ack(1))
each(
    "ack/zero-multiple-acks-all",
    [queue()],
    [publish()],
    [publish()],
    [get(no_ack=0)],
    [get(no_ack=0)],
    ack(0, multiple=1),
    call("queue.declare", queue="@q", passive=1),
    call("basic.recover", requeue=1),
    get(),
)
each("ack/tag-of-other-channel", [queue()], [publish()], [get(no_ack=0)], [open_channel(2)], ack(1, ch=2))
each(
    "ack/no-ack-get-uses-a-tag",
    [queue()],
    [publish()],
    [publish()],
    [publish()],
    get(no_ack=1),
    get(no_ack=0),
    get(no_ack=1),
)

# --- tx and confirm

last("tx/commit-without-select", call("tx.commit"))
last("tx/rollback-without-select", call("tx.rollback"))
last("tx/select-twice", call("tx.select"), call("tx.select"))
last("tx/confirm-then-tx", CONFIRMS, call("tx.select"))
last("tx/tx-then-confirm", call("tx.select"), CONFIRMS)
last("tx/confirm-twice", CONFIRMS, CONFIRMS)
last("tx/confirm-nowait", call("confirm.select", nowait=1))
each(
    "tx/publish-hidden-until-commit",
    [queue()],
    [call("tx.select")],
    publish(),
    queue(passive=1),
    call("tx.commit"),
    queue(passive=1),
)
each(
    "tx/rollback-drops-publish",
    [queue()],
    [call("tx.select")],
    publish(),
    call("tx.rollback"),
    queue(passive=1),
)
last("tx/publish-missing-exchange-at-once", call("tx.select"), publish("k", exchange="@no"))
each(
    "tx/mandatory-returned-at-commit",
    call("tx.select"),
    publish("@no", mandatory=1),
    call("tx.commit", settle=0.3),
)
each("tx/mandatory-rollback", call("tx.select"), publish("@no", mandatory=1), call("tx.rollback", settle=0.3))
each(
    "tx/ack-rolled-back",
    [queue()],
    [publish()],
    [call("tx.select")],
    get(no_ack=0),
    ack(1),
    call("tx.rollback"),
    queue(passive=1),
    ack(1),
    call("tx.commit"),
    call("channel.close"),
    call("channel.open"),
    queue(passive=1),
)
each(
    "tx/ack-rolled-back-then-recover",
    [queue()],
    [publish()],
    [call("tx.select")],
    get(no_ack=0),
    ack(1),
    call("tx.rollback"),
    call("basic.recover", requeue=1, settle=0.2),
    get(),
)
each(
    "tx/ack-uncommitted-close",
    [queue()],
    [publish()],
    [call("tx.select")],
    get(no_ack=0),
    ack(1),
    call("channel.close"),
    call("channel.open"),
    get(),
)
each(
    "tx/reject-requeue-at-commit",
    [queue()],
    [publish()],
    [call("tx.select")],
    get(no_ack=0),
    reject(1, 1),
    get(),
    call("tx.commit", settle=0.1),
    get(),
)
each(
    "tx/reject-rolled-back",
    [queue()],
    [publish()],
    [call("tx.select")],
    get(no_ack=0),
    reject(1, 1),
    call("tx.rollback", settle=0.1),
    get(),
    ack(1),
    call("tx.commit"),
    queue(passive=1),
)
last("tx/ack-unknown", call("tx.select"), ack(9))
last("tx/ack-twice", queue(), publish(), call("tx.select"), get(no_ack=0), ack(1), ack(1))
last("tx/commit-empty", call("tx.select"), call("tx.commit"))
each(
    "tx/queue-deleted-before-commit",
    [queue()],
    [call("tx.select")],
    publish(),
    call("queue.delete", queue="@q"),
    call("tx.commit"),
)
each(
    "tx/exchange-deleted-before-commit",
    [exchange("@x", "fanout")],
    [queue()],
    [bind()],
    [call("tx.select")],
    publish("", exchange="@x"),
    call("exchange.delete", exchange="@x"),
    call("tx.commit"),
    get(),
)
each(
    "tx/nack-multiple",
    [queue()],
    [publish("@q", "1")],
    [publish("@q", "2")],
    [call("tx.select")],
    get(no_ack=0),
    get(no_ack=0),
    nack(2, multiple=1, requeue=1),
    call("tx.commit", settle=0.1),
    get(),
    get(),
)
