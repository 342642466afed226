"""What a trace says of each thing that can happen in a broker, of whom, and in which order."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.errors import AccessRefused
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME, method_frame
from fakeamqp.trace import ConnectionEvent, FrameEvent, ModelEvent, Recorder
from fakeamqp.trace.truncation import frames_in, full_size


@pytest.fixture
def client(server: Server, recorder: Recorder) -> Client:
    return server.client(channels=2)


def happened(recorder: Recorder) -> list[tuple[str, str]]:
    """Events of the model since the record was last cleared: the short name, and the text."""
    events = recorder.trace().events
    return [(event.alias, event.text) for event in events if isinstance(event, ModelEvent)]


def said(recorder: Recorder) -> list[str]:
    return [text for _, text in happened(recorder)]


def latest(recorder: Recorder, name: str) -> ModelEvent:
    events = [event for event in recorder.trace().events if event.name == name]
    assert isinstance(events[-1], ModelEvent)
    return events[-1]


def delivered_tag(client: Client, queue: str = "q", body: bytes = b"one", **publish: str) -> int:
    """Publish one message and get it; the delivery tag."""
    client.publish(body, routing_key=queue, **publish)
    got = client.get(queue)
    assert got is not None
    tag: int = got.method.delivery_tag
    return tag


# --- messages -----------------------------------------------------------------------------------------


def test_frames_and_events_from_publish_to_ack_are_in_order(server: Server, recorder: Recorder):
    publisher, consumer = server.client(), server.client()
    publisher.declare("q")
    consumer.consume("q", "tag")
    recorder.clear()
    publisher.publish(b"one", routing_key="q")
    consumer.send(m.BasicAck(delivery_tag=1))
    assert [
        (event.connection == consumer.connection.name, getattr(event, "direction", "-"), event.name)
        for event in recorder.trace().events
    ] == [
        (False, "received", "basic.publish"),
        (False, "received", "content header"),
        (False, "received", "content body"),
        (False, "-", "published"),
        (False, "-", "enqueued"),
        (True, "-", "delivered"),
        (True, "sent", "basic.deliver"),
        (True, "sent", "content header"),
        (True, "sent", "content body"),
        (True, "received", "basic.ack"),
        (True, "-", "acked"),
    ]
    assert happened(recorder) == [
        ("c1", "message with exchange='' routing_key='q': routed to q"),
        ("c1", "message b'one' enqueued in queue 'q'"),
        ("c2", "message b'one' delivered from queue 'q' to consumer 'tag' on c2 channel 1"),
        ("c2", "message b'one' of queue 'q' acked by consumer 'tag' on c2 channel 1"),
    ]


def test_delivered_event_has_queue_consumer_channel_and_tag(client: Client, recorder: Recorder):
    client.declare("q")
    client.consume("q", "tag", channel=2)
    client.publish(b"one", routing_key="q")
    delivered = latest(recorder, "delivered")
    assert (delivered.queue, delivered.consumer, delivered.channel) == ("q", "tag", 2)
    assert (delivered.connection, delivered.alias) == (client.connection.name, "c1")
    assert delivered.facts["message"].body == b"one"
    assert (delivered.facts["delivery_tag"], delivered.facts["redelivered"]) == (1, False)
    assert set(delivered.facts) == {
        "message",
        "queue",
        "consumer",
        "connection",
        "channel",
        "delivery_tag",
        "redelivered",
    }


@pytest.mark.parametrize("no_ack", [True, False])
def test_get_is_a_delivered_event_without_a_consumer(client: Client, recorder: Recorder, no_ack: bool):
    client.declare("q")
    client.publish(b"one", routing_key="q")
    recorder.clear()
    client.get("q", no_ack=no_ack)
    assert said(recorder) == ["message b'one' delivered from queue 'q' to a get on c1 channel 1"]
    assert latest(recorder, "delivered").consumer is None


def test_rejected_message_is_requeued_and_then_redelivered(client: Client, recorder: Recorder):
    client.declare("q")
    tag = delivered_tag(client)
    client.send(m.BasicReject(delivery_tag=tag, requeue=True))
    client.get("q")
    assert said(recorder)[-2:] == [
        "message b'one' of queue 'q' requeued on c1 channel 1",
        "message b'one' delivered from queue 'q' to a get on c1 channel 1, redelivered",
    ]
    assert latest(recorder, "requeued").facts["delivery_tag"] == tag


@pytest.mark.parametrize(
    ("method", "event"),
    [
        (m.BasicAck(delivery_tag=0, multiple=True), "acked"),
        (m.BasicNack(delivery_tag=0, multiple=True, requeue=False), "rejected"),
        (m.BasicNack(delivery_tag=0, multiple=True, requeue=True), "requeued"),
        (m.BasicRecover(requeue=True), "requeued"),
        (m.BasicRecoverAsync(requeue=True), "requeued"),
        (m.ChannelClose(reply_code=200), "requeued"),
    ],
)
def test_each_message_settled_at_once_has_its_own_event(
    client: Client, recorder: Recorder, method: m.Method, event: str
):
    client.declare("q")
    tags = [delivered_tag(client) for _ in range(3)]
    client.send(method)
    ends = [each for each in recorder.trace().events if each.name == event]
    assert [(each.facts["delivery_tag"], each.queue, each.channel) for each in ends] == [
        (tag, "q", 1) for tag in tags
    ]


def test_unacked_message_of_a_lost_connection_is_requeued(client: Client, recorder: Recorder):
    client.declare("q")
    delivered_tag(client)
    client.drop()
    assert said(recorder)[-1] == "message b'one' of queue 'q' requeued on c1 channel 1"


def test_ack_in_a_transaction_is_an_event_at_commit(client: Client, recorder: Recorder):
    client.declare("q")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(b"one", routing_key="q", channel=2)
    got = client.get("q")
    assert got is not None
    client.send(m.BasicAck(delivery_tag=got.method.delivery_tag))
    assert "acked" not in [event.name for event in recorder.trace().events]
    client.call(m.TxCommit(), m.TxCommitOk)
    assert said(recorder)[-1] == "message b'one' of queue 'q' acked on c1 channel 1"


def test_message_refused_by_a_full_queue_is_dropped_from_that_queue_only(client: Client, recorder: Recorder):
    client.declare("a")
    client.declare("b", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.bind("a", "amq.fanout")
    client.bind("b", "amq.fanout")
    recorder.clear()
    client.publish(b"one", exchange="amq.fanout")
    assert said(recorder) == [
        "message with exchange='amq.fanout' routing_key='': refused by full queue 'b'",
        "message b'one' enqueued in queue 'a'",
        "message b'one' dropped from queue 'b' because the queue was full and refused it (reject-publish)",
    ]


def test_immediate_message_without_a_consumer_is_returned_and_not_enqueued(recorder: Recorder):
    server = Server("spec")
    server.state.tap = recorder
    client = server.client()
    client.declare("q")
    recorder.clear()
    client.publish(b"one", routing_key="q", immediate=True)
    assert [event.name for event in recorder.trace().events if isinstance(event, ModelEvent)] == [
        "published",
        "returned",
    ]
    assert said(recorder)[1] == "message b'one' returned to its publisher: 313 NO_CONSUMERS"


def test_long_message_keeps_its_number_when_requeued_and_dead_lettered(client: Client, recorder: Recorder):
    client.declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    client.publish(b"other", routing_key="dead")
    tag = delivered_tag(client, body=b"long" * 2000)
    client.nack(tag, requeue=True)
    got = client.get("q")
    assert got is not None
    client.reject(got.method.delivery_tag)
    client.empty("dead")
    numbers = [
        (event.name, event.facts["message"].number)
        for event in recorder.trace().events
        if isinstance(event, ModelEvent) and "message" in event.facts
    ]
    assert [number for name, number in numbers if name == "published"] == [1, 2]
    assert [name for name, number in numbers if number == 2] == [
        *("published", "enqueued", "delivered", "requeued", "delivered", "rejected"),
        *("dead-lettered", "enqueued", "delivered"),
    ]


@pytest.mark.parametrize(
    ("qos", "no_ack", "facts"),
    [
        (m.BasicQos(prefetch_count=3), False, (False, 3, True)),
        (m.BasicQos(prefetch_count=3), True, (True, 0, False)),
        (m.BasicQos(prefetch_count=3, global_=True), False, (False, 0, True)),
    ],
)
def test_consumer_added_event_has_no_ack_and_prefetch(
    qos: m.Method, no_ack: bool, facts: tuple[bool, int, bool]
):
    server = Server("rabbitmq-4.2")  # The last version with limits for a channel.
    server.state.tap = recorder = Recorder(server.clock.now)
    client = server.client()
    client.declare("q")
    client.call(qos, m.BasicQosOk)
    client.consume("q", no_ack=no_ack)
    added = latest(recorder, "consumer added").facts
    assert (added["no_ack"], added["prefetch"], added["shares_prefetch"]) == facts


def test_rejected_message_is_dead_lettered_and_then_expires(
    server: Server, client: Client, recorder: Recorder
):
    client.declare("brief", arguments={"x-message-ttl": 1000})
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "brief"})
    recorder.clear()
    client.send(m.BasicReject(delivery_tag=delivered_tag(client), requeue=False))
    server.advance(2)
    assert said(recorder) == [
        "message with exchange='' routing_key='q': routed to q",
        "message b'one' enqueued in queue 'q'",
        "message b'one' delivered from queue 'q' to a get on c1 channel 1",
        "message b'one' of queue 'q' rejected on c1 channel 1",
        "message b'one' dead-lettered from queue 'q' to exchange '' because it was rejected",
        "message b'one' enqueued in queue 'brief'",
        "message b'one' expired in queue 'brief'",
        "message b'one' dropped from queue 'brief' because it had expired, "
        "and the queue has no dead-letter exchange",
    ]
    assert {alias for alias, _ in happened(recorder)} == {"c1"}


def test_quorum_queue_requeues_a_message_after_the_consumer_timeout(recorder: Recorder):
    server = Server("rabbitmq-4.3")
    server.state.tap = recorder
    client = server.client(client_properties={"capabilities": {"consumer_cancel_notify": True}})
    client.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 60_000})
    client.consume("q", "tag")
    client.publish(b"one", routing_key="q")
    server.advance(3600)
    requeued = latest(recorder, "requeued")
    why = "because it was held too long"
    assert requeued.text == f"message b'one' of queue 'q' requeued by consumer 'tag' on c1 {why}"


def test_reply_by_direct_reply_to_is_a_delivered_event(client: Client, recorder: Recorder):
    client.consume("amq.rabbitmq.reply-to", "tag", no_ack=True)
    client.declare("q")
    client.publish(b"ask", routing_key="q", reply_to="amq.rabbitmq.reply-to")
    got = client.get("q", no_ack=True)
    assert got is not None
    recorder.clear()
    client.publish(b"answer", routing_key=got.properties.reply_to)
    assert said(recorder)[-1] == (
        "message b'answer' delivered from queue 'amq.rabbitmq.reply-to' to consumer 'tag' on c1 channel 1"
    )


# --- all else -----------------------------------------------------------------------------------------


def test_declarations_bindings_and_deletions_are_events(client: Client, recorder: Recorder):
    recorder.clear()
    client.declare("q")
    client.declare("q")
    client.call(m.ExchangeDeclare(exchange="e", type="topic"), m.ExchangeDeclareOk)
    for _ in range(2):
        client.call(m.QueueBind(queue="q", exchange="e", routing_key="a.#"), m.QueueBindOk)
    client.call(m.ExchangeBind(destination="e", source="amq.topic", routing_key="b"), m.ExchangeBindOk)
    for _ in range(2):
        client.call(m.QueueUnbind(queue="q", exchange="e", routing_key="a.#"), m.QueueUnbindOk)
    client.publish(b"one", routing_key="q")
    client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk)
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    client.call(m.ExchangeDelete(exchange="e"), m.ExchangeDeleteOk)
    assert said(recorder) == [
        "queue 'q' of type classic declared",
        "exchange 'e' of type topic declared",
        "queue 'q' bound to exchange 'e' by routing key 'a.#'",
        "exchange 'e' bound to exchange 'amq.topic' by routing key 'b'",
        "queue 'q' unbound from exchange 'e' by routing key 'a.#'",
        "message with exchange='' routing_key='q': routed to q",
        "message b'one' enqueued in queue 'q'",
        "message b'one' dropped from queue 'q' because the queue was purged",
        "queue 'q' purged of 1 message",
        "queue 'q' deleted",
        "exchange 'e' deleted",
    ]


def test_deletion_of_an_expired_queue_has_its_reason(server: Server, client: Client, recorder: Recorder):
    client.declare("q", arguments={"x-expires": 1000})
    server.advance(2)
    assert said(recorder)[-1] == "queue 'q' deleted: the queue expired unused"


def test_auto_delete_exchange_is_deleted_after_its_last_bound_queue(client: Client, recorder: Recorder):
    client.declare("q")
    client.call(m.ExchangeDeclare(exchange="e", type="direct", auto_delete=True), m.ExchangeDeclareOk)
    client.bind("q", "e")
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    assert said(recorder)[-2:] == ["queue 'q' deleted", "exchange 'e' deleted"]


def test_each_consumer_has_an_added_and_an_ended_event(client: Client, recorder: Recorder):
    client.declare("q")
    for tag in ("cancelled", "closed", "deleted"):
        client.consume("q", tag, channel=2 if tag == "closed" else 1)
    client.call(m.BasicCancel(consumer_tag="cancelled"), m.BasicCancelOk)
    client.call(m.ChannelClose(reply_code=200), m.ChannelCloseOk, 2)
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    events = [text for text in said(recorder) if text.startswith("consumer")]
    assert events == [
        "consumer 'cancelled' added to queue 'q' on c1 channel 1",
        "consumer 'closed' added to queue 'q' on c1 channel 2",
        "consumer 'deleted' added to queue 'q' on c1 channel 1",
        "consumer 'cancelled' of queue 'q' ended on c1 channel 1",
        "consumer 'closed' of queue 'q' ended on c1 channel 2",
        "consumer 'deleted' of queue 'q' ended on c1 channel 1",
    ]


def test_consumer_without_read_permission_ends_once(server: Server, client: Client, recorder: Recorder):
    client.declare("q")
    client.consume("q", "tag")
    endpoint = client.connection
    [channel, _] = endpoint.open_channels
    channel.authorise = lambda *_: (_ for _ in ()).throw(AccessRefused("no"))
    channel.check_consumers(endpoint.user)
    ended = [text for text in said(recorder) if "ended" in text]
    assert ended == ["consumer 'tag' of queue 'q' ended on c1 channel 1"]


def test_event_of_another_virtual_host_names_the_virtual_host(server: Server, recorder: Recorder):
    vhost = server.state.add_virtual_host("other")
    vhost.queues.declare("q")
    assert happened(recorder) == [("", "queue 'q' of type classic declared in virtual host 'other'")]


# --- connections --------------------------------------------------------------------------------------


def test_connected_event_has_the_protocol_header(client: Client, recorder: Recorder):
    connected = recorder.trace().events[0]
    assert isinstance(connected, ConnectionEvent)
    assert (connected.event, connected.detail) == ("connected", "AMQP 0-0-9-1")
    assert connected.protocol_header == PROTOCOL_HEADER
    opened = next(event for event in recorder.trace().events if event.name == "opened")
    assert isinstance(opened, ConnectionEvent)
    assert opened.protocol_header == b""


def test_connection_without_a_protocol_header_is_refused(server: Server, recorder: Recorder):
    server.connect().send_bytes(b"GET / HTTP/1.1\r\n")
    server.connect()
    server.advance(11)
    assert [event.text for event in recorder.trace().events] == [
        "refused: it sent b'GET / HT' instead of a protocol header: "
        "this looks like an HTTP request; this port speaks AMQP",
        "refused: it sent no protocol header within 10 seconds",
    ]


# --- frames in one piece ------------------------------------------------------------------------------


def test_frames_written_in_one_piece_are_separate_events(client: Client, recorder: Recorder):
    client.declare("q")
    client.consume("q", "tag", no_ack=True)
    recorder.clear()
    for body in (b"", b"short", b"x" * 5000, b"x" * 300_000):
        client.publish(body, routing_key="q")
    sent = [
        (event.name, event.size)
        for event in recorder.trace().events
        if isinstance(event, FrameEvent) and event.direction == "sent" and event.name != "content header"
    ]
    deliver = next(size for name, size in sent if name == "basic.deliver")
    assert sent == [
        ("basic.deliver", deliver),
        ("basic.deliver", deliver),
        ("content body", 5),
        ("basic.deliver", deliver),
        ("content body", 5000),
        ("basic.deliver", deliver),
        ("content body", 131064),
        ("content body", 131064),
        ("content body", 37872),
    ]


def test_incomplete_frame_is_read_with_its_full_size():
    whole = method_frame(1, m.BasicQosOk().encode())
    assert list(frames_in(whole + HEARTBEAT_FRAME)) == [(1, 1, m.BasicQosOk().encode()), (8, 0, b"")]
    assert list(frames_in(b"")) == []
    for end in range(1, len(whole) - 1):
        [(kind, _, payload)] = frames_in(whole[:end])
        assert kind == 1
        assert full_size(payload) > len(payload)
