"""A restart and a crash behind every frame of sessions of each protocol.

What is durable and confirmed is there, what was acknowledged is gone, and nothing else is there. Each session
is a list of steps; a step says what it changes once its last frame has been handled. So what has to be there
is known behind every frame, and comes from nothing that the broker says of itself. The sessions of the fuzz
tests are restarted behind every frame as well, and compared with what was there before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pytest

from compat_tests.attempts.floods import framed_errors, packed_errors
from compat_tests.fuzz import streams
from compat_tests.fuzz.amqp_0_9 import recordings as streams_0_9
from compat_tests.fuzz.amqp_0_10 import recordings as streams_0_10
from compat_tests.fuzz.checks import inconsistencies
from compat_tests.fuzz.subjects import SUBJECTS, Subject
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.matrix import cases
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c


@dataclass
class Kept:
    """What has to outlast a restart: durable queues, and bodies in each, some of which outlast a crash."""

    queues: dict[str, dict[bytes, bool]] = field(default_factory=dict)

    def there(self, *, crash: bool) -> dict[str, list[bytes]]:
        return {
            queue: [body for body, safe in bodies.items() if safe or not crash]
            for queue, bodies in self.queues.items()
        }

    # What steps do:

    def declare(self, queue: str) -> None:
        self.queues[queue] = {}

    def delete(self, queue: str) -> None:
        del self.queues[queue]

    def put(self, queue: str, body: bytes, *, safe: bool = True) -> None:
        self.queues[queue][body] = safe

    def take(self, queue: str, body: bytes) -> None:
        del self.queues[queue][body]

    def purge(self, queue: str, *, but: tuple[bytes, ...] = ()) -> None:
        """Take what is ready."""
        self.queues[queue] = {body: safe for body, safe in self.queues[queue].items() if body in but}


class Step(NamedTuple):
    """Frames, and what they change when the last one has been handled."""

    frames: list[bytes]
    change: Callable[[Kept], object] = lambda _: None


# --- sessions --------------------------------------------------------------------------------------------


def framed(client: streams.Client, *, confirms: bool) -> list[Step]:
    """A session of 0-9-1 or 0-9. Channel 1 confirms where there are confirms, 2 is plain, 3 transactional."""

    def call(method: Method, channel: int = 2) -> list[bytes]:
        return client.send(method, channel=channel)

    def publish(
        body: bytes, key: str = "d", channel: int = 2, mode: int = 2, exchange: str = ""
    ) -> list[bytes]:
        # In frames of four bytes each, so that there are steps inside a body.
        return client.publish(exchange, key, body, channel=channel, delivery_mode=mode, frame_size=4)

    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"} if confirms else {}
    steps = [
        Step([*client.handshake(), *client.open(1, 2, 3)]),
        Step(call(m.TxSelect(), 3)),
        Step(call(m.QueueDeclare(queue="dead", durable=True)), lambda k: k.declare("dead")),
        Step(call(m.QueueDeclare(queue="d", durable=True, arguments=dead)), lambda k: k.declare("d")),
        Step(call(m.QueueDeclare(queue="mine", exclusive=True))),
        Step(call(m.ExchangeDeclare(exchange="e", type="fanout", durable=True))),
        Step(call(m.QueueBind(queue="d", exchange="e"))),
        Step(call(m.QueueBind(queue="mine", exchange="e"))),
        Step(publish(b"plain one"), lambda k: k.put("d", b"plain one", safe=False)),
        Step(publish(b"transient", mode=1)),
        Step(publish(b"of mine", "mine")),
        Step([*publish(b"committed", channel=3), *publish(b"committed 2", channel=3)]),
        Step(
            call(m.TxCommit(), 3),
            lambda k: (k.put("d", b"committed"), k.put("d", b"committed 2")),
        ),
        Step(publish(b"rolled back", channel=3)),
        Step(call(m.TxRollback(), 3)),
        # Delivery tags of channel 2: 1 is "plain one", 2 is "transient", 3 is "committed".
        Step(call(m.BasicGet(queue="d"))),
        Step(call(m.BasicGet(queue="d"))),
        Step(call(m.BasicGet(queue="d"))),
        Step(call(m.BasicAck(delivery_tag=1)), lambda k: k.take("d", b"plain one")),
        Step(call(m.BasicReject(delivery_tag=3, requeue=True))),
        Step(publish(b"to all", exchange="e"), lambda k: k.put("d", b"to all", safe=False)),
        Step(call(m.BasicGet(queue="d"), 3)),
        Step(call(m.BasicAck(delivery_tag=1), 3)),
        Step(call(m.TxCommit(), 3), lambda k: k.take("d", b"committed")),
        Step(call(m.BasicGet(queue="d"), 3)),
        Step(call(m.BasicAck(delivery_tag=2), 3)),
        Step(call(m.TxRollback(), 3)),
        Step(call(m.BasicAck(delivery_tag=2))),
    ]
    if confirms:
        steps += [
            Step(call(m.ConfirmSelect(), 1)),
            Step(publish(b"confirmed", channel=1), lambda k: k.put("d", b"confirmed")),
            Step(publish(b"short-lived", channel=1, mode=1)),
            Step(publish(b"nobody's", "nowhere", channel=1)),
            Step(
                call(m.QueueDeclare(queue="k", durable=True, arguments={"x-queue-type": "quorum"})),
                lambda k: k.declare("k"),
            ),
            Step(publish(b"replicated", "k", channel=1), lambda k: k.put("k", b"replicated")),
            Step(publish(b"transient too", "k", channel=1, mode=1), lambda k: k.put("k", b"transient too")),
            Step(call(m.BasicGet(queue="k"), 1)),
            Step(call(m.BasicAck(delivery_tag=1), 1), lambda k: k.take("k", b"replicated")),
            # "to all" has been got by nobody and "committed 2" is held by channel 3.
            Step(call(m.BasicGet(queue="d"), 1)),
            Step(call(m.BasicGet(queue="d"), 1)),
            Step(
                call(m.BasicReject(delivery_tag=3, requeue=False), 1),
                lambda k: (k.take("d", b"confirmed"), k.put("dead", b"confirmed")),
            ),
            Step(call(m.BasicNack(delivery_tag=0, multiple=True, requeue=True), 1)),
            Step(call(m.QueueDelete(queue="k")), lambda k: k.delete("k")),
        ]
    return [
        *steps,
        # What is held outlasts it.
        Step(call(m.QueuePurge(queue="d")), lambda k: k.purge("d", but=(b"committed 2",))),
        Step(call(m.ChannelClose(reply_code=200), 3)),
        Step(call(m.QueueDelete(queue="d")), lambda k: k.delete("d")),
        Step([client.frame(0, m.ConnectionClose(reply_code=200))]),
    ]


def packed() -> list[Step]:
    """A session of 0-10: a transfer is confirmed when its command is completed, and `sync` asks for that."""
    w = streams_0_10

    def transfer(key: str, body: bytes, mode: int = 2, channel: int = 0) -> list[bytes]:
        header = [w.structs.DeliveryProperties(routing_key=key, delivery_mode=mode)]
        return w.command(
            x.MessageTransfer(accept_mode=1), channel, header=header, body=body, size=16 + 4, sync=True
        )

    def call(*which: Any, channel: int = 0) -> list[bytes]:
        return [frame for each in which for frame in w.command(each, channel, sync=True)]

    ids = w.SequenceSet.of
    return [
        Step([*w.handshake(), *w.attach(), *w.attach(b"tx", 1)]),
        Step(call(x.TxSelect(), channel=1)),
        Step(call(x.QueueDeclare(queue="dead", durable=True)), lambda k: k.declare("dead")),
        Step(call(x.ExchangeDeclare(exchange="e", type="fanout", durable=True))),
        Step(call(x.ExchangeBind(queue="dead", exchange="e"))),
        Step(call(x.QueueDeclare(queue="d", durable=True, alternate_exchange="e")), lambda k: k.declare("d")),
        Step(call(x.QueueDeclare(queue="mine", exclusive=True))),
        Step(transfer("d", b"completed"), lambda k: k.put("d", b"completed")),
        Step(transfer("d", b"transient", mode=1)),
        Step(transfer("mine", b"of mine")),
        Step([*transfer("d", b"committed", channel=1), *transfer("d", b"committed 2", channel=1)]),
        Step(call(x.TxCommit(), channel=1), lambda k: (k.put("d", b"committed"), k.put("d", b"committed 2"))),
        Step(transfer("d", b"rolled back", channel=1)),
        Step(call(x.TxRollback(), channel=1)),
        Step(
            call(
                x.MessageSubscribe(queue="d", destination="s"),
                x.MessageFlow(destination="s", unit=1, value=0xFFFFFFFF),
                x.MessageFlow(destination="s", unit=0, value=4),
            )
        ),
        # 0 is "completed", 1 "transient", 2 "committed", 3 "committed 2".
        Step(call(x.MessageAccept(transfers=ids(0))), lambda k: k.take("d", b"completed")),
        Step(call(x.MessageRelease(transfers=ids(1)))),
        Step(
            call(x.MessageReject(transfers=ids(2))),
            lambda k: (k.take("d", b"committed"), k.put("dead", b"committed")),
        ),
        Step(transfer("d", b"another"), lambda k: k.put("d", b"another")),
        Step(call(x.QueuePurge(queue="d")), lambda k: k.purge("d", but=(b"committed 2",))),
        Step(call(x.MessageAccept(transfers=ids(3))), lambda k: k.take("d", b"committed 2")),
        Step(call(x.MessageCancel(destination="s"))),
        Step(call(x.QueueDelete(queue="d")), lambda k: k.delete("d")),
        Step(w.control(c.SessionDetach(name=b"s"))),
        Step(w.control(c.ConnectionClose(reply_code=200))),
    ]


SESSIONS: dict[str, tuple[str, str, Callable[[], list[Step]]]] = {
    "0-9-1": ("0-9-1", "rabbitmq-4.3", lambda: framed(streams.Client(), confirms=True)),
    "0-9-1 spec": ("0-9-1", "spec", lambda: framed(streams.Client(strict=True), confirms=False)),
    "0-9 RabbitMQ": (
        "0-9",
        "rabbitmq-4.3",
        lambda: framed(streams_0_9.Client(rabbitmq=True), confirms=True),
    ),
    "0-9 spec": ("0-9", "spec", lambda: framed(streams_0_9.Client(strict=True), confirms=False)),
    "0-10": ("0-10", "rabbitmq-4.3", packed),
    "0-10 spec": ("0-10", "spec", packed),
}


def behind_every_frame(steps: list[Step]) -> Iterator[tuple[list[bytes], Kept]]:
    """What a client has sent, and what has to be kept, for every number of frames."""
    kept = Kept()
    sent: list[bytes] = []
    for step in steps:
        for at, frame in enumerate(step.frames):
            sent.append(frame)
            if at == len(step.frames) - 1:
                step.change(kept)
            yield list(sent), kept


@cache
def _server(protocol: str, personality: str) -> Callable[[], Server]:
    return lambda: Server(personality, protocol=protocol)


def restarted(protocol: str, personality: str, frames: list[bytes], *, crash: bool) -> Server:
    """A broker that has handled these frames, and was restarted."""
    server = _server(protocol, personality)()
    client = server.connect()
    for frame in frames:
        client.send_bytes(frame)
        client.take_bytes()
    server.restart(crash=crash)
    return server


def contents(server: Server) -> dict[str, list[bytes]]:
    """What is in each queue, ready; nothing may be held."""
    found = {}
    for name, queue in server.vhost.queues.items():
        assert not queue.unacked and not queue.subscriptions, name
        found[name] = [bytes(queued.message.body) for queued in queue.ready]
    return found


def check(name: str, *, crash: bool, every: int) -> None:
    """Behind every so many frames of a session."""
    protocol, personality, make = SESSIONS[name]
    with cases() as case:
        for number, (frames, kept) in enumerate(behind_every_frame(make())):
            if number % every:
                continue
            with case(len(frames)):
                server = restarted(protocol, personality, frames, crash=crash)
                assert contents(server) == kept.there(crash=crash)
                assert inconsistencies(server.state) == []
                assert not server.state.connections


on_each_session = pytest.mark.parametrize("name", SESSIONS)
both_ways = pytest.mark.parametrize("crash", [False, True], ids=["restart", "crash"])


@both_ways
@on_each_session
def test_restart_or_crash_after_every_fifth_frame_keeps_expected_messages(name: str, crash: bool) -> None:
    check(name, crash=crash, every=5)


@pytest.mark.long
@both_ways
@on_each_session
def test_restart_or_crash_after_every_frame_keeps_expected_messages(name: str, crash: bool) -> None:
    check(name, crash=crash, every=1)


@on_each_session
def test_session_of_restart_tests_ends_with_close_ok_and_no_error(name: str) -> None:
    """All of its frames do what their step says: nothing is refused, and the last answer is a close-ok."""
    protocol, personality, make = SESSIONS[name]
    client = _server(protocol, personality)().connect()
    came = b""
    for step in make():
        for frame in step.frames:
            client.send_bytes(frame)
            came += client.take_bytes()
    if protocol == "0-10":
        assert packed_errors(came) == []
        assert c.ConnectionCloseOk().encode() in came
    else:
        assert framed_errors(came) == []
        assert m.ConnectionCloseOk().encode() in came


# --- the sessions of the fuzz tests ------------------------------------------------------------------------


RECORDINGS = {
    f"{subject} {number}": (subject, frames)
    for subject in SUBJECTS
    for number, frames in enumerate(subject.recordings)
}


def ready(server: Server) -> Counter[tuple[str, bytes]]:
    """What is in the durable queues and is persistent; in quorum queues and streams everything is."""
    return Counter(
        (name, bytes(queued.message.body))
        for name, queue in server.vhost.queues.items()
        if queue.durable
        for queued in queue.ready
        if queued.message.persistent or type(queue).__name__ in ("QuorumQueue", "StreamQueue")
    )


def replayed(subject: Subject, frames: Sequence[bytes]) -> Server:
    """After these frames, and the end of the connection."""
    server = subject.server()
    client = server.connect()
    for frame in frames:
        client.send_bytes(frame)
        client.take_bytes()
    for connection in list(server.state.connections):
        connection.receive_eof()  # type: ignore[attr-defined]
    return server


@pytest.mark.long
@pytest.mark.parametrize("name", RECORDINGS)
def test_restart_after_every_frame_of_recording_keeps_durable_persistent_messages(name: str) -> None:
    """A restart keeps just what is durable and persistent; a crash nothing else, twice in a row the same."""
    subject, frames = RECORDINGS[name]
    with cases() as case:
        for count in range(1, len(frames) + 1):
            with case(count):
                before = ready(server := replayed(subject, frames[:count]))
                durable = {name for name, queue in server.vhost.queues.items() if queue.durable}
                server.state.restart()
                after = ready(server)
                assert set(server.vhost.queues) == durable
                assert not before - after, "lost in a restart"
                assert sum(len(queue.ready) for queue in server.vhost.queues.values()) == after.total()
                assert inconsistencies(server.state) == []
                crashed = replayed(subject, frames[:count])
                crashed.state.restart(crash=True)
                assert set(crashed.vhost.queues) == durable
                once = ready(crashed)
                assert not once - after, "there is more after a crash than after a restart"
                assert inconsistencies(crashed.state) == []
                crashed.state.restart(crash=True)
                assert ready(crashed) == once, "a second crash took what the first had left"
