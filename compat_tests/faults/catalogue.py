"""Every fault there is, as data: what it is in words, how it is arranged, which scenario shows it.

An arrangement is a function of the bench. `number 2` is the second of three messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from compat_tests.faults.bench import Bench
from compat_tests.faults.scenario import QUEUE
from fakeamqp.faults import MALFORMATIONS
from fakeamqp.protocols.amqp_0_9_1.codec import methods

__all__ = ["FAULTS", "GROUPS", "Arrange", "Fault"]

Arrange = Callable[[Bench], object]


@dataclass(frozen=True)
class Fault:
    """One entry of the catalogue.

    Args:
        id: for test ids and the files of what is expected.
        words: for the table.
        arrange: makes it happen.
        scenario: the name of that which shows it.
    """

    id: str
    words: str
    arrange: Arrange
    scenario: str = "work"


def rule(method: str, then: Callable[[Any], Any], **wanted: Any) -> Arrange:
    """A rule of `faults.on`, with what it does."""
    return lambda bench: bench.rule(then(bench.faults.on(method, **wanted)))


def publish(then: Callable[[Any], Any]) -> Arrange:
    """Something happens to publish number 2."""
    return rule("basic.publish", lambda made: then(made.on_call(2)), routing_key=QUEUE)


def confirm(then: Callable[[Any], Any]) -> Arrange:
    """Something happens to the confirm of publish number 2."""
    return rule("confirm", lambda made: then(made.on_call(2)), routing_key=QUEUE)


def deliver(then: Callable[[Any], Any], number: int = 1) -> Arrange:
    """Something happens to a delivery; number 4 is the late message."""
    return rule("basic.deliver", lambda made: then(made.on_call(number)), queue=QUEUE)


def network(how: Callable[[Any], Any]) -> Arrange:
    """Something is wrong with the network."""
    return lambda bench: bench.rule(how(bench.faults.network))


def first_connection(how: Callable[[Any], Any]) -> Arrange:
    """Something is wrong with the first connection, and not with those that follow."""
    return lambda bench: bench.rule(how(bench.faults.network.on(connection="c1")))


def held_confirms(**how: Any) -> Arrange:
    def arrange(bench: Bench) -> None:
        held = bench.rule(bench.faults.on("confirm", routing_key=QUEUE).hold())
        bench.releasing(held, bench.batch, **how)

    return arrange


def reversed_deliveries(bench: Bench) -> None:
    held = bench.rule(bench.faults.on("basic.deliver", queue=QUEUE).times(3).hold())
    bench.releasing(held, 3, reverse=True)


def limit(name: str, user: str = "") -> Arrange:
    """A limit of the virtual host, or of a user, is 0 until this is undone."""

    def arrange(bench: Bench) -> None:
        most = partial(bench.broker.admin.set_user_limits, user) if user else bench.broker.admin.set_limits
        most(**{name: 0})
        bench.done()
        bench.undo(lambda: most(**{name: -1}))

    return arrange


def alarm(kind: str, share: float | None) -> Arrange:
    """An alarm begins when the queue is declared; it ends after a share of the client's patience."""

    def arrange(bench: Bench) -> None:
        def sound() -> None:
            handle = bench.rule(getattr(bench.faults, kind)())
            if share is not None:
                bench.later(share, handle.remove)

        bench.at("declared", sound)

    return arrange


def flow(bench: Bench) -> None:
    def stop() -> None:
        handle = bench.rule(bench.faults.channel_flow())
        bench.later(0.3, handle.remove)

    bench.at("declared", stop)


def blocked(bench: Bench) -> None:
    def block() -> None:
        bench.done()
        for connection in bench.broker.connections:
            connection.block("low on something")
            bench.later(0.3, connection.unblock)

    bench.at("declared", block)


def when_waiting(do: Callable[[Bench], object]) -> Arrange:
    """Something is done while the consumer waits; the late message comes when somebody consumes after it."""

    def arrange(bench: Bench) -> None:
        def act() -> None:
            do(bench)
            bench.done()

        bench.at("waiting", act)

    return arrange


def ended_when_waiting(how: str) -> Arrange:
    return when_waiting(lambda b: b.rule(getattr(b.faults.network, how)()))


def heartbeats(direction: str) -> Arrange:
    """Heartbeats get lost until the client connects anew: then the late message comes."""

    def arrange(bench: Bench) -> None:
        bench.late_when = lambda: bench.again
        bench.rule(bench.faults.on("heartbeat", direction=direction, connection=bench.consuming).drop())

    return arrange


def late_heartbeats(bench: Bench) -> None:
    late = bench.rule(bench.faults.on("heartbeat", direction="sent").delay(0.4))
    bench.late_when = lambda: late.hits >= 2


def silence_with_heartbeats(bench: Bench) -> None:
    bench.late_when = lambda: bench.again
    bench.at("waiting", lambda: bench.rule(bench.faults.silence(bench.consuming)))


def content_on_closed_channel(bench: Bench) -> None:
    bench.rule(bench.faults.on("basic.publish", routing_key=QUEUE).on_call(2).close_channel(406))

    def send(group: Any) -> None:
        delivery = methods.BasicDeliver("late", 1, False, "", QUEUE)
        bench.faults.send(delivery, channel=group.channel, body=b"late")

    bench.rule(bench.faults.on("channel.close-ok").once().call(send))


GROUPS: dict[str, list[Fault]] = {
    "Getting in": [
        Fault("refused-port", "the port is closed", network(lambda n: n.refuse("port"))),
        Fault("closed-at-once", "connections are closed at once", network(lambda n: n.refuse("close"))),
        Fault("reset-at-once", "connections are reset at once", network(lambda n: n.refuse("reset"))),
        Fault("hangs", "connections are taken, and nothing is said", network(lambda n: n.hang())),
        Fault(
            "login-refused", "the login is refused", rule("connection.start-ok", lambda r: r.refuse_login())
        ),
        Fault(
            "host-refused",
            "the virtual host is refused (530)",
            rule("connection.open", lambda r: r.close_connection(530)),
        ),
        Fault(
            "queue-refused",
            "the queue is refused (403)",
            rule("queue.declare", lambda r: r.close_channel(403)),
        ),
        Fault("full-host", "the virtual host has all the connections it may have", limit("max_connections")),
        Fault("too-many-queues", "the virtual host has all the queues it may have", limit("max_queues")),
        Fault("no-channels", "the user has all the channels it may have", limit("max_channels", "guest")),
    ],
    "Publishing": [
        Fault("nack", "a publish is lost and nacked", publish(lambda r: r.nack())),
        Fault("nacked-but-there", "a publish is there and nacked", confirm(lambda r: r.nack())),
        Fault("returned", "a publish comes back (basic.return)", publish(lambda r: r.return_message())),
        Fault("lost-publish", "a publish is lost, untold", publish(lambda r: r.drop())),
        Fault("lost-confirm", "a confirm is lost", confirm(lambda r: r.drop())),
        Fault("confirms-held", "confirms wait", held_confirms(), "together"),
        Fault("confirms-reversed", "confirms in reverse order", held_confirms(reverse=True), "together"),
        Fault("confirms-multiple", "one confirm for all", held_confirms(multiple=True), "together"),
        Fault("crash-after-confirm", "crash after a confirm", confirm(lambda r: r.crash(when="after"))),
        Fault("crash-before-confirm", "crash instead of a confirm", confirm(lambda r: r.crash())),
        Fault(
            "gone-before-confirm",
            "the connection ends after a publish, before its confirm",
            confirm(lambda r: r.disconnect("fin")),
        ),
    ],
    "Closing channel or connection": [
        *[
            Fault(
                f"{what}-closed-{when}",
                f"{what}.close {code} {words} a publish",
                publish(
                    lambda r, what=what, code=code, when=when: getattr(r, f"close_{what}")(code, when=when)
                ),
            )
            for what, code in (("channel", 406), ("connection", 320))
            for when, words in (
                ("instead", "instead of"),
                ("before", "in place of the confirm of"),
                ("after", "after the confirm of"),
            )
        ],
        Fault(
            "channel-closed-no-reply",
            "channel.close 405 in place of declare-ok",
            rule("queue.declare", lambda r: r.close_channel(405, when="before")),
        ),
        Fault(
            "connection-closed-no-reply",
            "connection.close 541 in place of declare-ok",
            rule("queue.declare", lambda r: r.close_connection(541, when="before")),
        ),
    ],
    "Ends of the connection": [
        Fault("cut-handshake", "cut after 300 bytes", first_connection(lambda n: n.cut_after(bytes=300))),
        Fault("cut-frames", "cut after 8 frames", first_connection(lambda n: n.cut_after(frames=8))),
        Fault("cut-mid-frame", "cut within a frame of a delivery", deliver(lambda r: r.cut(after=5))),
        Fault("cut-before-header", "cut between method and header", deliver(lambda r: r.cut("method"))),
        Fault("cut-before-body", "cut between header and body", deliver(lambda r: r.cut("header"))),
        Fault("fin-publishing", "FIN while it publishes", publish(lambda r: r.disconnect("fin"))),
        Fault("reset-publishing", "RST while it publishes", publish(lambda r: r.disconnect("reset"))),
        Fault("silence-publishing", "silence while it publishes", publish(lambda r: r.disconnect("silence"))),
        Fault("fin-waiting", "FIN while it waits", ended_when_waiting("disconnect"), "wait"),
        Fault("reset-waiting", "RST while it waits", ended_when_waiting("reset"), "wait"),
        Fault(
            "silence-waiting",
            "silence while it waits, without heartbeats",
            ended_when_waiting("silence"),
            "wait",
        ),
        Fault("silence-heartbeats", "silence, with heartbeats", silence_with_heartbeats, "heartbeats"),
        Fault("heartbeats-stop", "the broker sends no heartbeats", heartbeats("sent"), "heartbeats"),
        Fault("heartbeats-ignored", "the broker ignores heartbeats", heartbeats("received"), "heartbeats"),
        Fault("heartbeats-late", "heartbeats come late", late_heartbeats, "heartbeats"),
    ],
    "A slow network, a slow broker": [
        Fault("latency", "10 to 30 ms of latency", network(lambda n: n.latency(0.02, jitter=0.01))),
        Fault("bandwidth", "20 kB/s", network(lambda n: n.bandwidth(20_000))),
        Fault("single-octets", "single bytes", network(lambda n: n.slice(1))),
        Fault(
            "slow-broker",
            "everything the broker says comes 20 ms late",
            rule("*", lambda r: r.delay(0.02), direction="sent"),
        ),
    ],
    "Malformed deliveries": [
        *[
            Fault(f"malformed-{name}", way.words, deliver(lambda r, name=name: r.malform(name)))
            for name, way in MALFORMATIONS.items()
            if name != "garbage"  # What is said of it depends on how much memory there is.
        ],
        Fault("content-on-closed-channel", "on a channel that is closed", content_on_closed_channel),
    ],
    "Consuming": [
        Fault(
            "consumer-cancelled",
            "the broker cancels the consumer",
            when_waiting(lambda b: b.faults.cancel_consumers(QUEUE)),
            "wait",
        ),
        Fault(
            "queue-deleted",
            "the queue is deleted",
            when_waiting(lambda b: b.broker.queue(QUEUE).delete()),
            "wait",
        ),
        Fault("duplicate", "a delivery comes twice", deliver(lambda r: r.duplicate())),
        Fault("redelivered", "marked as redelivered", deliver(lambda r: r.replace(redelivered=True))),
        Fault("out-of-order", "deliveries in reverse order", reversed_deliveries),
        Fault("delayed", "a delivery comes 100 ms late", deliver(lambda r: r.delay(0.1))),
    ],
    "Holding publishers back": [
        Fault("blocked", "blocked, then unblocked", blocked),
        Fault("memory-alarm", "memory alarm, which ends", alarm("memory_alarm", 0.3)),
        Fault("disk-alarm", "disk alarm, which does not end", alarm("disk_alarm", None)),
        Fault("flow", "channel.flow off, then on", flow),
    ],
    "The broker itself, while a consumer waits": [
        Fault("restart", "restart", when_waiting(lambda b: b.broker.restart()), "wait"),
        Fault(
            "crash",
            "crash; durable state is kept",
            when_waiting(lambda b: b.broker.restart(crash=True)),
            "wait",
        ),
        Fault(
            "crash-empty",
            "crash; it comes back empty",
            when_waiting(lambda b: b.broker.restart(crash=True, durable=False)),
            "wait",
        ),
    ],
}
"""By heading, as in the table."""

FAULTS: dict[str, Fault] = {fault.id: fault for faults in GROUPS.values() for fault in faults}
