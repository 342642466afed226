"""The memory alarm: what counts, who is blocked, and when publishers continue."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.conformance import SHARING
from fakeamqp.dialects import protocol_names
from fakeamqp.model.memory import ENTRY, HEADERS, MESSAGE
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

pytestmark = pytest.mark.needs("settings")

LIMIT = 100_000
BODY = bytes(20_000)


@pytest.fixture
def server() -> Server:
    return Server(memory_limit=LIMIT)


def publisher(server: Server, queue: str = "q") -> Client:
    return server.client(client_properties={"capabilities": {"connection.blocked": True}}).declare(queue)


def fill_up(client: Client, queue: str = "q") -> Client:
    """Publish until the alarm is raised; the client is not told before its next publish."""
    return client.fill(queue, *[BODY] * 5)


def ready(server: Server, queue: str = "q") -> int:
    return len(server.vhost.queues[queue].ready)


def messages(server: Server) -> int:
    return int(server.state.memory.messages.octets)


class TestTheAlarm:
    def test_publishers_are_blocked_until_messages_are_consumed(self, server: Server) -> None:
        client = publisher(server)
        fill_up(client).expect_nothing()
        assert server.state.memory.alarm
        assert client.fill("q", b"waits").expect(m.ConnectionBlocked, 0).reason == "low on memory"
        assert not client.connection.reading
        assert ready(server) == 5

        assert server.client().empty("q") == [BODY] * 5 + [b"waits"]
        client.expect(m.ConnectionUnblocked, 0)
        assert client.connection.reading
        assert not server.state.memory.alarm

    def test_consuming_connection_is_not_blocked_by_memory_alarm(self, server: Server) -> None:
        client, consumer = publisher(server), publisher(server, "other")
        consumer.consume("other")
        fill_up(client).fill("q", b"waits").expect(m.ConnectionBlocked, 0)
        assert consumer.connection.reading
        assert consumer.count("q") == 5
        consumer.expect_nothing()

    def test_connection_is_blocked_with_its_first_publish_during_memory_alarm(self, server: Server) -> None:
        fill_up(publisher(server))
        late = publisher(server)
        late.expect_nothing()
        late.fill("q", b"waits").expect(m.ConnectionBlocked, 0)
        assert ready(server) == 5

    def test_memory_alarm_ends_when_the_queue_is_purged(self, server: Server) -> None:
        fill_up(publisher(server))
        server.client().perform(m.QueuePurge(queue="q"))
        assert not server.state.memory.alarm

    def test_memory_alarm_ends_when_messages_expire(self, server: Server) -> None:
        publisher(server).publish(bytes(LIMIT), routing_key="q", expiration="1000")
        assert server.state.memory.alarm
        server.advance(1)
        server.state.memory.settle()  # The runtime does so at the end of each turn.
        assert not server.state.memory.alarm

    def test_memory_alarm_does_not_end_just_below_the_limit(self, server: Server) -> None:
        client = publisher(server).fill("q", b"small", bytes(LIMIT - 1000))
        assert server.state.memory.alarm
        assert client.get("q", no_ack=True) is not None
        assert messages(server) < LIMIT
        assert server.state.memory.alarm
        client.empty("q")
        assert not server.state.memory.alarm

    def test_unblocked_publishers_can_raise_memory_alarm_again(self, server: Server) -> None:
        clients = [publisher(server) for _ in range(3)]
        fill_up(clients[0])
        for client in clients:
            client.fill("q", bytes(60_000))
            client.expect(m.ConnectionBlocked, 0)
        server.client().perform(m.QueuePurge(queue="q"))
        assert server.state.memory.alarm
        assert ready(server) == 2  # Of the two that made it, the second exceeded the limit.
        assert [client.connection.reading for client in clients] == [True, True, False]

    def test_no_memory_alarm_is_raised_without_memory_limit(self) -> None:
        server = Server(memory_limit=None)
        client = publisher(server)
        fill_up(client).fill("q", b"goes on").expect_nothing()
        assert ready(server) == 6

    def test_connection_stays_blocked_by_disk_alarm_after_memory_alarm_ends(self, server: Server) -> None:
        """RabbitMQ names both (alarm/both-told-at-the-publish), and says nothing when one of them ends."""
        client = fill_up(publisher(server))
        server.state.block("low on disk", "a fault")
        assert client.fill("q", b"waits").expect(m.ConnectionBlocked, 0).reason == "low on disk & memory"
        server.client().perform(m.QueuePurge(queue="q"))
        assert server.state.blocked_reason == "low on disk"
        client.expect_nothing()
        assert not client.connection.reading
        server.state.unblock("a fault")
        client.expect(m.ConnectionUnblocked, 0)

    def test_restart_ends_memory_alarm_and_counts_no_messages(self, server: Server) -> None:
        fill_up(publisher(server))
        server.restart()
        assert server.state.blocked_reason is None
        assert messages(server) == 0


class TestWhatCounts:
    def test_message_counts_with_its_body_and_headers(self, server: Server) -> None:
        publisher(server).fill("q", b"12345")
        headers = BasicProperties().encode()
        assert messages(server) == MESSAGE + 5 + HEADERS * len(headers)

    def test_headers_count_as_received_and_decoded(self, server: Server) -> None:
        client = publisher(server)
        headers = {"long": "x" * 50_000}
        client.publish(b"", routing_key="q", headers=headers)
        assert messages(server) == MESSAGE + HEADERS * len(BasicProperties(headers=headers).encode())
        assert server.state.memory.alarm

    def test_a_body_that_queues_share_counts_once(self, server: Server) -> None:
        client = publisher(server, "q1")
        for name in ("q1", "q2", "q3"):
            client.declare(name).bind(name, "amq.fanout")
        client.publish(BODY, exchange="amq.fanout")
        whole = MESSAGE + len(BODY) + HEADERS * 2 + 2 * ENTRY
        assert messages(server) == whole
        client.empty("q2")
        client.empty("q1")
        assert messages(server) == whole, "its further places share a charge, for the sake of their size"
        client.empty("q3")
        assert messages(server) == 0

    def test_memory_of_fanout_message_is_freed_when_it_has_left_all_queues(self, server: Server) -> None:
        client = publisher(server, "q1")
        for name in ("q1", "q2"):
            client.declare(name).bind(name, "amq.fanout")
        one, two = (MESSAGE + len(body) + HEADERS * 2 + ENTRY for body in (b"one", b"three"))
        client.publish(b"one", exchange="amq.fanout").publish(b"three", exchange="amq.fanout")
        assert messages(server) == one + two
        for name in ("q1", "q2"):
            client.get(name, no_ack=True)
        assert messages(server) == two

    def test_dead_letter_shares_memory_of_body_with_rejected_message(self, server: Server) -> None:
        client = publisher(server, "dead")
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        message = client.declare("q", arguments=arguments).fill("q", BODY).fetch("q")
        client.reject(message.method.delivery_tag)
        assert ready(server, "dead") == 1
        assert len(BODY) < messages(server) < len(BODY) + 2 * MESSAGE + ENTRY

    def test_delivery_counts_until_acknowledged(self, server: Server) -> None:
        client = publisher(server).consume("q")
        delivery = client.fill("q", BODY).delivery()
        assert messages(server) > len(BODY)
        client.ack(delivery.method.delivery_tag)
        assert messages(server) == 0

    def test_message_delivered_to_no_ack_consumer_does_not_count(self, server: Server) -> None:
        fill_up(publisher(server).consume("q", no_ack=True))
        assert messages(server) == 0

    def test_an_uncommitted_publish_counts(self, server: Server) -> None:
        client = fill_up(publisher(server).perform(m.TxSelect()))
        assert server.state.memory.alarm
        client.connection.receive_eof()
        server.state.memory.settle()
        assert messages(server) == 0

    @pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
    def test_messages_in_classic_quorum_and_stream_queues_count_until_queue_is_deleted(
        self, server: Server, kind: str
    ) -> None:
        client = server.client()
        client.declare("q", durable=True, arguments={"x-queue-type": kind}).fill("q", BODY)
        assert len(BODY) < messages(server) < len(BODY) + 2 * MESSAGE
        client.perform(m.QueueDelete(queue="q"))
        assert messages(server) == 0

    @pytest.mark.parametrize("protocol", [each for each in SHARING if each in protocol_names()])
    def test_unfinished_content_counts_and_raises_memory_alarm(self, protocol: str) -> None:
        name = "rabbitmq-4.3" if protocol == "0-9-1" else "spec"
        server = Server(name, protocol=protocol, memory_limit=LIMIT)
        client = server.client().declare("q").send(m.BasicPublish(routing_key="q"))
        header, *_ = content_frames(1, 60, bytes(2), bytes(3 * LIMIT), 100_000)
        client.send_bytes(header).send_bytes(frame(3, 1, bytes(50_000)))
        assert server.state.memory.unfinished.octets == 50_000
        assert not server.state.memory.alarm
        client.send_bytes(frame(3, 1, bytes(60_000)))
        assert server.state.memory.alarm
        assert not client.send_bytes(frame(3, 1, bytes(60_000))).connection.reading
        client.connection.receive_eof()
        server.state.memory.settle()
        assert server.state.memory.unfinished.octets == 0
        assert not server.state.memory.alarm

    def test_bytes_that_client_does_not_read_count_until_connection_ends(self, server: Server) -> None:
        publisher(server).fill("q", BODY)
        reader = server.client()
        for _ in range(3):
            reader.connection.receive(reader.method_frame(m.BasicGet(queue="q")))
            nack = m.BasicNack(delivery_tag=0, multiple=True, requeue=True)
            reader.connection.receive(reader.method_frame(nack))
        assert 3 * len(BODY) < server.state.memory.connections.octets < 4 * len(BODY)
        reader.connection.receive_eof()
        assert server.state.memory.connections.octets == 0

    def test_a_large_body_that_clients_do_not_take_counts_once(self, server: Server) -> None:
        body = bytes(LIMIT)
        readers = [server.client() for _ in range(3)]
        for reader in readers:
            reader.declare(queue := f"q{id(reader)}")
            reader.bind(queue, "amq.fanout")
            reader.connection.receive(reader.method_frame(m.BasicConsume(queue=queue, no_ack=True)))
        publisher(server).publish(body, exchange="amq.fanout")
        held = messages(server) + server.state.memory.connections.octets
        assert LIMIT < held < LIMIT + 5_000
        for reader in readers:
            reader.expect(m.BasicConsumeOk)
            assert reader.bodies() == [body]
        assert messages(server) == 0


class TestHistories:
    def test_history_of_published_messages_is_shortened_before_memory_alarm_is_raised(self) -> None:
        server = Server(memory_limit=LIMIT, history=1000)
        client = publisher(server).consume("q", no_ack=True)
        for _ in range(5):
            assert client.fill("q", BODY).bodies() == [BODY]
        client.fill("q", b"goes on")
        assert not server.state.memory.alarm
        assert server.state.published is not None
        assert [len(each.message.body) for each in server.state.published] == [20_000, 7]
