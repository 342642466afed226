"""A client that does not read what it is sent is sent no more.

Here the transport is played by hand: `pending` hands bytes over, and only `sent` tells that they went.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import PROTOCOL_HEADERS, Client, QuietTap, Server
from compat_tests.tools.conformance import SHARING
from fakeamqp.connection import PeerAddress
from fakeamqp.dialects import protocol_names
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.base.outbox import Outbox
from fakeamqp.protocols.negotiation import accept

pytestmark = pytest.mark.needs("own broker")

MIB = 1024 * 1024
BODY = b"x" * 10_000
LARGE = b"x" * MIB


class SlowTransport:
    """Between the broker and a client that reads at its own pace."""

    def __init__(self, client: Client) -> None:
        self._connection = client.connection
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Bytes the broker has handed over and the client has not read."""
        self._waiting += sum(map(len, self._connection.pending()))
        return self._waiting

    def read(self, count: int) -> None:
        """The client reads so many bytes."""
        assert self.waiting >= count
        self._waiting -= count
        self._connection.sent(count)


def flooded(server: Server, messages: int, **arguments: bool) -> tuple[Client, SlowTransport]:
    """A consumer that reads nothing, on a queue with many messages."""
    client = server.client().declare("q")
    client.consume("q", "t", **arguments).expect_nothing()
    transport = SlowTransport(client)
    client.fill("q", *[BODY] * messages)
    return client, transport


@pytest.mark.parametrize("no_ack", [False, True])
def test_deliveries_stop_when_client_has_about_one_mebibyte_unread(server: Server, no_ack: bool) -> None:
    _, transport = flooded(server, 500, no_ack=no_ack)
    assert MIB <= transport.waiting <= MIB + 2 * len(BODY)
    left = len(server.vhost.queues["q"].ready)
    assert left == pytest.approx(500 - MIB / len(BODY), abs=5)


def test_deliveries_resume_when_half_of_the_unread_bytes_are_read(server: Server) -> None:
    _, transport = flooded(server, 500)
    queue = server.vhost.queues["q"]
    left = len(queue.ready)
    transport.read(MIB // 2 - 2 * len(BODY))
    assert len(queue.ready) == left
    transport.read(4 * len(BODY))
    assert len(queue.ready) < left
    assert MIB <= transport.waiting <= MIB + 2 * len(BODY)


def test_client_that_reads_all_output_receives_all_messages_in_order(server: Server) -> None:
    client = server.client().declare("q").consume("q")
    numbers = [b"%04d" % number + BODY for number in range(400)]
    client.fill("q", *numbers)
    assert len(server.vhost.queues["q"].ready) > 0
    assert client.bodies() == numbers


def test_messages_held_back_from_slow_consumer_go_to_quick_consumer(server: Server) -> None:
    slow, transport = flooded(server, 200)
    assert transport.waiting >= MIB
    held = len(server.vhost.queues["q"].ready)
    quick = server.client()
    assert len(quick.consume("q").bodies()) == held
    slow.fill("q", b"more")
    assert quick.bodies() == [b"more"]


def test_ack_does_not_resume_deliveries_to_a_full_transport(server: Server) -> None:
    client, transport = flooded(server, 500)
    before = transport.waiting
    client.ack(0, multiple=True)
    assert transport.waiting == before


def test_full_transport_still_receives_answers_to_requests(server: Server) -> None:
    client, transport = flooded(server, 500)
    before = transport.waiting
    client.send(m.QueueDeclare(queue="q", passive=True))
    assert transport.waiting == before + len(b"\x01\0\x01\0\0\0\x0e\0\x32\0\x0b\x01q\0\0\0\0\0\0\0\0\xce")


def test_broker_stops_reading_requests_at_8_mebibytes_of_unread_output(server: Server) -> None:
    client = server.client().declare("q").fill("q", *[BODY] * 900)
    transport = SlowTransport(client)
    get = b"\x01\x00\x01\x00\x00\x00\x09\x00\x3c\x00\x46\x00\x00\x01q\x01\xce"
    requests = 0
    while client.connection.reading:
        client.send_bytes(get)
        requests += 1
        assert requests < 900, "the broker never stopped reading"
    assert 8 * MIB <= transport.waiting <= 8 * MIB + 2 * len(BODY)
    transport.read(4 * len(BODY))
    assert client.connection.reading


def stuffed(server: Server, heartbeat: int) -> tuple[Client, SlowTransport]:
    """A client that read nothing until the broker stopped reading from it."""
    client = server.client(heartbeat=heartbeat).declare("q").fill("q", *[BODY] * 900)
    transport = SlowTransport(client)
    while client.connection.reading:
        client.send(m.BasicGet(queue="q", no_ack=True))
    return client, transport


@pytest.mark.rule("0-9-1/heartbeat/missed-two#closes", "0-9-1/heartbeat/missed-two#logs")
def test_client_that_stops_reading_is_closed_for_missed_heartbeats(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    # Measured with 1 s: 3.10.8 and 4.3.6 reset the connection 3.3 s after it took its last byte.
    client, _ = stuffed(server, heartbeat=1)
    assert not client.after(0.9).connection.aborted
    assert client.after(3.1).connection.aborted
    assert "missed heartbeats from client, timeout: 1s" in caplog.text


@pytest.mark.rule("0-9-1/heartbeat/missed-two#closes")
def test_slow_reading_client_misses_no_heartbeats(server: Server) -> None:
    client, transport = stuffed(server, heartbeat=1)
    for _ in range(20):
        server.advance(0.9)
        transport.read(1)
        assert not client.connection.reading
        assert not client.connection.aborted


def test_spec_personality_keeps_client_that_reads_no_output_without_heartbeats(spec: Server) -> None:
    client, _ = stuffed(spec, heartbeat=0)
    assert not client.after(1_000_000).connection.aborted


@pytest.mark.parametrize("heartbeat", [0, 600])
def test_rabbitmq_resets_connection_that_takes_no_output_for_30_seconds(
    rabbitmq: Server, heartbeat: int, caplog: pytest.LogCaptureFixture
) -> None:
    # Measured on 3.10.8, 4.0.5 and 4.3.6: 30.0 to 30.5 s, although the client sends heartbeats.
    client = rabbitmq.client(heartbeat=heartbeat).declare("q")
    client.consume("q", no_ack=True).expect_nothing()
    client.fill("q", *[LARGE] * 2)
    for _ in range(29):
        client.after(1).send_bytes(b"\x08\0\0\0\0\0\0\xce")
    assert client.connection.reading and not client.connection.aborted
    assert client.after(1).connection.aborted
    assert "the client took no output for 30 s" in caplog.text
    assert rabbitmq.state.peer_timers.next_due() is None


def test_rabbitmq_output_timeout_does_not_count_busy_time_of_the_broker(rabbitmq: Server) -> None:
    client, transport = flooded(rabbitmq, 500)
    rabbitmq.advance(29)
    transport.read(1)
    rabbitmq.advance(2)  # It looks every three seconds: now it has seen that a byte was taken.
    rabbitmq.state.operations.busy_seconds += 23
    assert not client.after(29 + 22).connection.aborted
    assert client.after(1).connection.aborted


def test_rabbitmq_keeps_connection_that_takes_one_byte_every_29_seconds(rabbitmq: Server) -> None:
    client, transport = flooded(rabbitmq, 500)
    for _ in range(20):
        rabbitmq.advance(29)
        transport.read(1)
        assert not client.connection.aborted


def test_rabbitmq_output_timeout_ends_when_deliveries_resume(rabbitmq: Server) -> None:
    client, transport = flooded(rabbitmq, 150)
    rabbitmq.advance(29)
    transport.read(transport.waiting - 100_000)
    assert not client.after(1_000_000).connection.aborted


# --- one read of input with much output --------------------------------------------------------------------
def requests(client: Client, count: int) -> bytes:
    """Requests for so many messages, encoded."""
    return client.method_frame(m.BasicGet(queue="q", no_ack=True)) * count


def read_all(client: Client) -> list[Method]:
    """The methods that come when the client reads on until nothing more comes."""
    count = -1
    while count != len(client.inbox):
        count = len(client.inbox)
    return [each.method for each in client.inbox if each.method is not None]


@pytest.mark.parametrize("tapped", [False, True])
def test_requests_of_one_write_are_handled_up_to_output_limit(server: Server, tapped: bool) -> None:
    if tapped:
        server.state.tap = QuietTap()
    client = server.client().declare("q").fill("q", *[LARGE] * 20)
    transport = SlowTransport(client)
    client.send_bytes(requests(client, 20))
    assert 8 * MIB <= transport.waiting <= 9 * MIB + 1000
    assert not client.connection.reading


def test_remaining_requests_of_one_write_are_handled_when_output_is_read(server: Server) -> None:
    client = server.client().declare("q").fill("q", *[LARGE] * 20)
    client.send_bytes(requests(client, 20) + client.method_frame(m.QueueDeclare(queue="q", passive=True)))
    methods = read_all(client)
    assert [each.NAME for each in methods] == ["basic.get-ok"] * 20 + ["queue.declare-ok"]
    assert client.connection.reading


def test_incomplete_frame_behind_waiting_requests_is_completed_by_later_bytes(server: Server) -> None:
    client = server.client().declare("q")
    last = client.fill("q", *[LARGE] * 10).method_frame(m.QueueDeclare(queue="q", passive=True))
    client.send_bytes(requests(client, 10) + last[:5]).send_bytes(last[5:9])
    assert len(read_all(client)) == 10
    client.send_bytes(last[9:])
    assert read_all(client)[-1].NAME == "queue.declare-ok"


def test_requests_that_waited_for_output_do_not_count_as_heartbeat(server: Server) -> None:
    client = server.client(heartbeat=1).declare("q")
    client.fill("q", *[LARGE] * 12).send_bytes(requests(client, 12))
    transport = SlowTransport(client)
    while not client.connection.reading:
        transport.read(min(transport.waiting, MIB))
    assert client.after(4).connection.aborted


def test_waiting_requests_are_dropped_when_client_disconnects(server: Server) -> None:
    client = server.client().declare("q").fill("q", *[LARGE] * 20)
    client.send_bytes(requests(client, 20)).connection.receive_eof()
    client.connection.sent(sum(map(len, client.connection.pending())))
    assert client.connection.pending() == []
    assert server.client().call(m.QueueDeclare(queue="q", passive=True), m.QueueDeclareOk).message_count == 12


# --- large bodies -----------------------------------------------------------------------------------------
def taken(client: Client) -> list[bytes | memoryview]:
    """The pieces that wait for a client."""
    return client.connection.pending()


@pytest.mark.parametrize("protocol", [each for each in SHARING if each in protocol_names()])
@pytest.mark.parametrize("way", ["deliver", "get", "return"])
def test_large_body_is_shared_between_deliveries_without_a_copy(protocol: str, way: str) -> None:
    server = Server("rabbitmq-4.3", protocol=protocol)
    body = bytes(range(256)) * 2048
    clients = [server.client() for _ in range(3)]
    bodies = []
    for number, client in enumerate(clients):
        client.declare(f"q{number}")
        client.bind(f"q{number}", "amq.fanout", "")
        if way == "deliver":
            client.consume(f"q{number}", no_ack=True)
    server.client().publish(body, exchange="amq.fanout")
    for number, client in enumerate(clients):
        if way == "get":
            client.send(m.BasicGet(queue=f"q{number}", no_ack=True))
        elif way == "return":
            client.publish(body, routing_key="nowhere", mandatory=True)
        pieces = taken(client)
        views = [each for each in pieces if isinstance(each, memoryview) and each.nbytes < len(each.obj)]
        assert b"".join(views) == body
        assert sum(map(len, pieces)) - sum(map(len, views)) < 500
        bodies += [each.obj for each in views]
    assert len({id(each) for each in bodies}) == (3 if way == "return" else 1)


# --- what the runtime is told ------------------------------------------------------------------------------
@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def outbox(rabbitmq: Server, told: list[str]) -> Outbox:
    """Another one than the connection's own."""
    connection: Any = rabbitmq.client().connection
    return Outbox(connection, lambda: told.append("notified"))


def test_outbox_notifies_once_until_its_pieces_are_taken(outbox: Outbox, told: list[str]) -> None:
    outbox.write(b"a")
    outbox.write(b"b")
    outbox.write_pieces([b"c", memoryview(b"d")])
    assert told == ["notified"]
    assert b"".join(outbox.take()) == b"abcd"
    outbox.write_pieces([b"e"])
    outbox.write(b"f")
    assert told == ["notified"] * 2
    assert b"".join(outbox.take()) == b"ef"


def test_when_sent_callback_runs_when_all_earlier_bytes_are_sent(outbox: Outbox) -> None:
    done: list[str] = []
    outbox.write(b"abc")
    outbox.when_sent(lambda: done.append("abc"))
    outbox.write(b"d")
    outbox.when_sent(lambda: done.append("d"))
    outbox.sent(2)
    assert done == []
    outbox.sent(1)
    assert done == ["abc"]
    outbox.sent(1)
    assert done == ["abc", "d"]
    assert (outbox.unsent, outbox.sent_bytes) == (0, 4)


@pytest.mark.parametrize("name", sorted(PROTOCOL_HEADERS))
def test_notify_callback_receives_the_accepted_connection(rabbitmq: Server, name: str) -> None:
    told: list[Any] = []
    accept(rabbitmq.state, PeerAddress(port=1), told.append).receive(PROTOCOL_HEADERS[name])
    assert set(told) == set(rabbitmq.state.connections)
    assert told[0].pending()
