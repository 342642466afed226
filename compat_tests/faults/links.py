"""The faults of AMQP 1.0, as data: see `catalogue`. They are shown with the clients of 1.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat_tests.faults.bench import Bench
from compat_tests.faults.catalogue import (
    Arrange,
    Fault,
    alarm,
    ended_when_waiting,
    network,
    rule,
    when_waiting,
)
from compat_tests.faults.scenario import QUEUE
from fakeamqp.faults.actions import malformations

__all__ = ["LINK_FAULTS", "LINK_GROUPS"]


def transfer(then: Callable[[Any], Any]) -> Arrange:
    """Something happens to message number 2."""
    return rule("transfer", lambda made: then(made.on_call(2)), queue=QUEUE)


def outcome(then: Callable[[Any], Any]) -> Arrange:
    """Something happens to the outcome of message number 2."""
    return rule("disposition", lambda made: then(made.on_call(2)), direction="sent", role=True)


def delivery(then: Callable[[Any], Any], number: int = 1) -> Arrange:
    """Something happens to a delivery."""
    return rule("transfer", lambda made: then(made.on_call(number)), queue=QUEUE, direction="sent")


def detached_when_waiting(bench: Bench) -> None:
    """The link is detached instead of the late delivery, which goes back."""
    bench.rule(
        bench.faults.on("transfer", direction="sent", queue=QUEUE, body=b"late")
        .once()
        .detach("amqp:link:stolen")
    )


LINK_GROUPS: dict[str, list[Fault]] = {
    "Getting in": [
        Fault("refused-port", "the port is closed", network(lambda n: n.refuse("port"))),
        Fault("closed-at-once", "connections are closed at once", network(lambda n: n.refuse("close"))),
        Fault("reset-at-once", "connections are reset at once", network(lambda n: n.refuse("reset"))),
        Fault("hangs", "connections are taken, and nothing is said", network(lambda n: n.hang())),
        Fault("login-refused", "the login is refused", rule("sasl-init", lambda r: r.refuse_login())),
        Fault("open-refused", "the open is refused", rule("open", lambda r: r.close_connection(530))),
        Fault(
            "session-refused",
            "the session ends instead of its begin",
            rule("begin", lambda r: r.close_channel("amqp:not-allowed", when="after")),
        ),
        Fault(
            "link-refused",
            "the link is refused",
            rule("attach", lambda r: r.detach("amqp:unauthorized-access")),
        ),
        Fault("link-unanswered", "the attach gets no answer", rule("attach", lambda r: r.drop())),
    ],
    "Publishing": [
        Fault("rejected", "a message is lost and rejected", transfer(lambda r: r.nack())),
        Fault("released", "a message is released", transfer(lambda r: r.return_message())),
        Fault("lost-transfer", "a message is lost, untold", transfer(lambda r: r.drop())),
        Fault("lost-outcome", "an outcome is lost", outcome(lambda r: r.drop())),
        Fault("crash-before-outcome", "crash instead of an outcome", outcome(lambda r: r.crash())),
        Fault(
            "gone-before-outcome",
            "the connection ends after a message, before its outcome",
            outcome(lambda r: r.disconnect("fin")),
        ),
        Fault("memory-alarm", "memory alarm, which ends", alarm("memory_alarm", 0.3)),
        Fault("disk-alarm", "disk alarm, which does not end", alarm("disk_alarm", None)),
    ],
    "Detach, end, close": [
        Fault(
            f"{what}-{when}",
            f"{name} {words} a message",
            transfer(lambda r, how=how, when=when, said=said: getattr(r, how)(said, when=when)),
        )
        for what, name, how, said in (
            ("detached", "detach with `amqp:resource-deleted`", "detach", "amqp:resource-deleted"),
            ("ended", "end with `amqp:internal-error`", "close_channel", "amqp:internal-error"),
            ("closed", "close with `amqp:connection:forced`", "close_connection", "amqp:connection:forced"),
        )
        for when, words in (("instead", "instead of"), ("after", "after the outcome of"))
    ],
    "Ends of the connection": [
        Fault("fin-publishing", "FIN while it publishes", transfer(lambda r: r.disconnect("fin"))),
        Fault("reset-publishing", "RST while it publishes", transfer(lambda r: r.disconnect("reset"))),
        Fault(
            "silence-publishing", "silence while it publishes", transfer(lambda r: r.disconnect("silence"))
        ),
        Fault("cut-mid-frame", "cut within a frame of a delivery", delivery(lambda r: r.cut(after=5))),
        Fault("fin-waiting", "FIN while it waits", ended_when_waiting("disconnect"), "wait"),
        Fault("reset-waiting", "RST while it waits", ended_when_waiting("reset"), "wait"),
    ],
    "A slow network": [
        Fault("latency", "10 to 30 ms of latency", network(lambda n: n.latency(0.02, jitter=0.01))),
        Fault("single-octets", "single bytes", network(lambda n: n.slice(1))),
    ],
    "Consuming": [
        *[
            Fault(
                f"malformed-{name}",
                f"a delivery: {ways['1-0'].words}",
                delivery(lambda r, n=name: r.malform(n)),
            )
            for name, ways in malformations(["1-0"]).items()
        ],
        Fault("duplicate", "a delivery comes twice", delivery(lambda r: r.duplicate())),
        Fault("out-of-order", "two deliveries change places", delivery(lambda r: r.reorder())),
        Fault("delayed", "a delivery comes 100 ms late", delivery(lambda r: r.delay(0.1))),
        Fault("link-detached", "the link is detached instead of a delivery", detached_when_waiting, "wait"),
        Fault(
            "queue-deleted",
            "the queue is deleted while it waits",
            when_waiting(lambda b: b.broker.queue(QUEUE).delete()),
            "wait",
        ),
        Fault("restart", "restart while it waits", when_waiting(lambda b: b.broker.restart()), "wait"),
    ],
}
"""By heading, as in the table."""

LINK_FAULTS: dict[str, Fault] = {
    f"1-0-{fault.id}": fault for faults in LINK_GROUPS.values() for fault in faults
}
