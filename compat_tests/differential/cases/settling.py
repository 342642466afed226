"""Acknowledgements and transactions."""

from __future__ import annotations

from compat_tests.differential.script import *

# --- acknowledgements

HELD: list[Step] = [*filled(2), get(no_ack=0), get(no_ack=0)]
for _v in ("ack", "nack", "reject"):
    for _name, _tag in (("unknown", 7), ("zero", 0), ("huge", 2**64 - 1)):
        last(f"ack/{_v}-{_name}", queue(), call("basic." + _v, delivery_tag=_tag))
    last(f"ack/{_v}-twice", *HELD, *[call("basic." + _v, delivery_tag=1)] * 2)
for _v in ("ack", "nack"):
    for _name, _tag in (("zero", 0), ("unknown", 7)):
        last(f"ack/{_v}-{_name}-multiple", queue(), call("basic." + _v, delivery_tag=_tag, multiple=1))
    last(f"ack/{_v}-multiple-beyond", *HELD, call("basic." + _v, delivery_tag=5, multiple=1))
    last(f"ack/{_v}-multiple-again", *HELD, *[call("basic." + _v, delivery_tag=2, multiple=1)] * 2)
    _first = {"delivery_tag": 1}
    last(
        f"ack/{_v}-multiple-lower-done",
        *HELD,
        call("basic." + _v, **_first),
        call("basic." + _v, multiple=1, **_first),
    )

# --- tx and confirm

last("tx/commit-without-select", call("tx.commit"))
last("tx/rollback-without-select", call("tx.rollback"))
last("tx/confirm-then-tx", CONFIRMS, call("tx.select"))
last("tx/tx-then-confirm", call("tx.select"), CONFIRMS)
last("tx/confirm-twice", CONFIRMS, CONFIRMS)
last("tx/confirm-nowait", call("confirm.select", nowait=1))
last("tx/publish-missing-exchange-at-once", call("tx.select"), publish("k", exchange="@no"))
last("tx/ack-unknown", call("tx.select"), ack(9))
each(
    "tx/queue-deleted-before-commit",
    [queue()],
    [call("tx.select")],
    publish(),
    call("queue.delete", queue="@q"),
    call("tx.commit"),
)
