"""Apache's Python client over AMQP 0-9: its suites for brokers of that time, and its class message.

The client knows request and response frames, and takes them for use on a channel that is told to; their two
constants are missing in the definitions that it comes with.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.clients.qpid import older_suites, suite
from compat_tests.clients.qpid.python27 import Python27
from compat_tests.clients.qpid.remote import Remote, RemoteError, RemoteObject
from fakeamqp import Broker

SECONDS = 20


@pytest.fixture(scope="module")
def outcomes(python27: Python27) -> dict[str, suite.Outcome]:
    """How each test of the suites went that is run, by its name."""
    return older_suites.run_all(python27)


@pytest.mark.parametrize(("module", "tests"), older_suites.MODULES.items())
def test_suite(module: str, tests: int, outcomes: dict[str, suite.Outcome]) -> None:
    found = {name: outcome for name, outcome in outcomes.items() if name.startswith(f"{module}.")}
    assert {name: outcome for name, outcome in found.items() if outcome.status != "pass"} == {}
    not_run = [name for name in older_suites.NOT_RUN if name.startswith(f"{module}.")]
    assert len(found) + len(not_run) == tests


@pytest.mark.parametrize("name", older_suites.NOT_RUN)
def test_not_run(name: str) -> None:
    pytest.skip(older_suites.NOT_RUN[name])


class Peer:
    """A connection of the client. Its channels open as they come; `reliable` ones use requests for all."""

    def __init__(self, remote: Remote, broker: Broker) -> None:
        self.remote = remote
        self.client = remote.module("qpid.client").Client(broker.host.encode(), broker.port)
        self.client.start(username=b"guest", password=b"guest")
        constant = remote.module("qpid.spec08").Constant
        for name, number in ((b"frame_request", 9), (b"frame_response", 10)):
            self.client.spec.constants.add(constant(self.client.spec, name, number, None, []))
        self.channels = 0

    def channel(self) -> Any:
        self.channels += 1
        channel = self.client.channel(self.channels)
        channel.channel_open()
        return channel

    def reliable(self) -> Any:
        channel = self.channel()
        by_requests(channel)
        return channel

    def next(self, destination: bytes) -> Any:
        """What has come for a consumer."""
        return self.client.queue(destination).get(timeout=SECONDS)

    def reference(self, name: bytes) -> RemoteObject:
        """A body that is a reference."""
        return self.remote.module("qpid.reference").ReferenceId(name)


def by_requests(channel: Any) -> None:
    channel.invoker = channel.invoke_reliable


def by_methods(channel: Any) -> None:
    channel.invoker = channel.invoke_method


@pytest.fixture
def peer(remote: Remote, broker: Broker) -> Iterator[Peer]:
    opened = Peer(remote, broker)
    opened.channel().queue_declare(queue=b"orders")
    yield opened
    opened.client.close()


def kind(reply: Any) -> str:
    """What a response is."""
    name: bytes = reply.method.name
    return name.decode()


def answer(future: Any) -> Any:
    """The response to what was not waited for."""
    return future.get_response(timeout=SECONDS).method


def count(broker: Broker, count: int, unacked: int = 0) -> None:
    broker.queue("orders").wait_for(ready=count, unacked=unacked)


FIELDS = {
    "ttl": 60_000,
    "priority": 3,
    "delivery_mode": 2,
    "message_id": b"m",
    "correlation_id": b"c",
    "reply_to": b"answers",
    "content_type": b"text/plain",
    "content_encoding": b"none",
    "user_id": b"guest",
    "app_id": b"app",
    "application_headers": {b"text": b"word", b"number": -5, b"yes": True},
}


def test_transfer_and_consume(peer: Peer, broker: Broker) -> None:
    channel = peer.reliable()
    sent = channel.message_transfer(routing_key=b"orders", body=b"first", **FIELDS)
    assert kind(sent) == "ok"
    count(broker, 1)
    assert kind(channel.message_consume(queue=b"orders", destination=b"d")) == "ok"
    message = peer.next(b"d")
    assert {name: getattr(message, name) for name in FIELDS} == FIELDS
    assert (message.body, message.routing_key, message.redelivered) == (b"first", b"orders", False)
    assert message.expiration == message.timestamp + FIELDS["ttl"] // 1000
    count(broker, 0, unacked=1)
    message.ok()
    count(broker, 0)
    assert kind(channel.message_cancel(destination=b"d")) == "ok"


def test_get(peer: Peer, broker: Broker) -> None:
    channel = peer.reliable()
    assert kind(channel.message_get(queue=b"orders", destination=b"d")) == "empty"
    channel.message_transfer(routing_key=b"orders", body=b"first")
    assert kind(channel.message_get(queue=b"orders", destination=b"d")) == "ok"
    message = peer.next(b"d")
    assert message.body == b"first"
    message.ok()
    count(broker, 0)
    channel.message_transfer(routing_key=b"orders", body=b"second")
    assert kind(channel.message_get(queue=b"orders", destination=b"d", no_ack=True)) == "ok"
    assert peer.next(b"d").body == b"second"
    count(broker, 0)


def test_the_broker_rejects(peer: Peer) -> None:
    channel = peer.reliable()
    unroutable = channel.message_transfer(routing_key=b"nobody", body=b"x")
    assert (kind(unroutable), unroutable.code) == ("reject", 0)
    assert unroutable.text == b"NO_ROUTE"
    waiting = channel.message_transfer(routing_key=b"orders", immediate=True, body=b"x")
    assert (kind(waiting), waiting.code) == ("reject", 1)
    with pytest.raises(RemoteError) as error:
        channel.message_transfer(destination=b"unknown", routing_key=b"orders", body=b"x")
    assert error.value.name == "Closed"
    assert error.value.of[0].reply_code == 404


def test_the_client_rejects(peer: Peer, broker: Broker) -> None:
    channel = peer.reliable()
    channel.message_transfer(routing_key=b"orders", body=b"bad")
    channel.message_consume(queue=b"orders", destination=b"d")
    peer.next(b"d").reject(code=403, text=b"not mine")
    count(broker, 0)


def test_responses_for_many(peer: Peer, broker: Broker) -> None:
    channel = peer.reliable()
    channel.message_consume(queue=b"orders", destination=b"d")
    for number in range(5):
        channel.message_transfer(routing_key=b"orders", body=b"%d" % number)
    messages = [peer.next(b"d") for _ in range(5)]
    assert [message.body for message in messages] == [b"0", b"1", b"2", b"3", b"4"]
    count(broker, 0, unacked=5)
    messages[2].ok(batchoffset=-1)  # That and the one before.
    count(broker, 0, unacked=3)
    messages[3].ok(batchoffset=1)
    count(broker, 0, unacked=1)
    messages[0].ok()
    count(broker, 0)


def test_a_body_by_reference(peer: Peer, broker: Broker) -> None:
    channel = peer.reliable()
    assert kind(channel.message_open(reference=b"r")) == "ok"
    for part in (b"one ", b"two ", b"three"):
        assert kind(channel.message_append(reference=b"r", bytes=part)) == "ok"
    channel.synchronous = False  # The answer to a transfer by reference may wait for its close.
    sent = channel.message_transfer(routing_key=b"orders", body=peer.reference(b"r"), **FIELDS)
    closed = channel.message_close(reference=b"r")
    assert kind(answer(closed)) == "ok"
    assert kind(answer(sent)) == "ok"
    count(broker, 1)
    (queued,) = broker.queue("orders").messages
    assert queued.body == b"one two three"

    channel.synchronous = True
    # The client forgets a body when it is closed, unless it is kept from it.
    channel.references.close = channel.references.get
    channel.message_consume(queue=b"orders", destination=b"d")
    message = peer.next(b"d")
    assert {name: getattr(message, name) for name in FIELDS} == FIELDS
    assert content(channel, message, 13) == b"one two three"
    message.ok()
    count(broker, 0)


def content(channel: Any, message: Any, size: int) -> bytes:
    """A body, however it was sent."""
    body = message.body
    if isinstance(body, bytes):
        return body
    octets, reference = b"", channel.references.get(body.id)
    while len(octets) < size:
        octets += reference.get_chunk()
    return octets


def test_large_bodies(peer: Peer, broker: Broker) -> None:
    """More than fits into a frame comes by reference."""
    octets = bytes(range(256)) * 2048
    channel = peer.reliable()
    channel.references.close = channel.references.get
    channel.message_open(reference=b"r")
    for start in range(0, len(octets), 100_000):
        channel.message_append(reference=b"r", bytes=octets[start : start + 100_000])
    channel.synchronous = False
    channel.message_transfer(routing_key=b"orders", body=peer.reference(b"r"))
    channel.message_close(reference=b"r")
    count(broker, 1)
    channel.message_consume(queue=b"orders", destination=b"d")
    message = peer.next(b"d")
    assert not isinstance(message.body, bytes)
    assert content(channel, message, len(octets)) == octets
    message.ok()
    count(broker, 0)


def test_checkpoint_and_resume(peer: Peer, broker: Broker) -> None:
    channel = peer.reliable()
    channel.message_open(reference=b"r")
    channel.message_append(reference=b"r", bytes=b"0123")
    assert kind(channel.message_checkpoint(reference=b"r", identifier=b"here")) == "ok"
    channel.message_append(reference=b"r", bytes=b"lost")
    by_methods(channel)
    channel.channel_close()

    channel = peer.reliable()
    resumed = channel.message_resume(reference=b"again", identifier=b"here")
    assert (kind(resumed), resumed.value) == ("offset", 4)
    channel.message_append(reference=b"again", bytes=b"456789")
    channel.synchronous = False
    channel.message_transfer(routing_key=b"orders", body=peer.reference(b"again"))
    channel.message_close(reference=b"again")
    count(broker, 1)
    (queued,) = broker.queue("orders").messages
    assert queued.body == b"0123456789"


def test_qos(peer: Peer, broker: Broker) -> None:
    channel = peer.reliable()
    for number in range(4):
        channel.message_transfer(routing_key=b"orders", body=b"%d" % number)
    assert kind(channel.message_qos(prefetch_count=2)) == "ok"
    channel.message_consume(queue=b"orders", destination=b"d")
    count(broker, 2, unacked=2)
    peer.next(b"d").ok()
    count(broker, 1, unacked=2)


@pytest.mark.parametrize("requeue", [False, True])
def test_recover(peer: Peer, broker: Broker, requeue: bool) -> None:
    channel = peer.reliable()
    channel.message_transfer(routing_key=b"orders", body=b"first")
    channel.message_consume(queue=b"orders", destination=b"d")
    assert not peer.next(b"d").redelivered
    assert kind(channel.message_recover(requeue=requeue)) == "ok"
    again = peer.next(b"d")
    assert (again.body, again.redelivered) == (b"first", True)
    again.ok()
    count(broker, 0)


def test_a_transaction(peer: Peer, broker: Broker) -> None:
    channel = peer.channel()
    channel.tx_select()
    ends: tuple[tuple[Callable[[], Any], int], ...] = ((channel.tx_rollback, 0), (channel.tx_commit, 1))
    for end, messages in ends:
        by_requests(channel)
        assert kind(channel.message_transfer(routing_key=b"orders", body=b"x")) == "ok"
        assert len(broker.queue("orders").messages) == 0
        by_methods(channel)
        end()
        assert len(broker.queue("orders").messages) == messages


def test_ping(peer: Peer) -> None:
    """The broker answers, and sends a pong of its own, which the client answers."""
    channel = peer.reliable()
    for _ in range(3):
        answer = channel.channel_ping()
        assert (answer.method.klass.name, kind(answer)) == (b"channel", "ok")


def test_a_channel_is_resumed(remote: Remote, peer: Peer, broker: Broker) -> None:
    """What was answered on the lost connection is not done again, and consumers come back."""
    channel = peer.client.channel(7)
    channel_id = channel.channel_open().channel_id
    by_requests(channel)
    assert kind(channel.message_transfer(routing_key=b"orders", body=b"first")) == "ok"
    assert kind(channel.message_consume(queue=b"orders", destination=b"d")) == "ok"
    assert not peer.next(b"d").redelivered
    peer.client.conn.io.sock.shutdown(socket.SHUT_RDWR)
    broker.wait_for(lambda: not broker.connections)

    again = Peer(remote, broker)
    channel = again.client.channel(7)
    assert kind(channel.channel_resume(channel_id=channel_id)) == "ok"
    by_requests(channel)
    # The client has heard nothing of its first request, let us say, so it sends that again.
    assert kind(channel.message_transfer(routing_key=b"orders", body=b"first")) == "ok"
    message = again.next(b"d")
    assert (message.body, message.redelivered) == (b"first", True)
    count(broker, 0, unacked=1)
    message.ok()
    count(broker, 0)
    again.client.close()


def test_messages_are_shared_between_class_basic_and_class_message(peer: Peer, broker: Broker) -> None:
    plain, channel = peer.channel(), peer.reliable()
    published = peer.remote.module("qpid.content").Content(b"first", [], {b"content_type": b"text/plain"})
    plain.basic_publish(routing_key=b"orders", content=published)
    channel.message_consume(queue=b"orders", destination=b"d")
    message = peer.next(b"d")
    assert (message.body, message.content_type) == (b"first", b"text/plain")
    message.ok()
    channel.message_cancel(destination=b"d")
    channel.message_transfer(routing_key=b"orders", body=b"second", correlation_id=b"c")
    got = plain.basic_get(queue=b"orders", no_ack=True)
    assert (got.content.body, got.content.properties[b"correlation_id"]) == (b"second", b"c")
