"""channel.resume: channels whose connection was lost."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.contents_0_9 import Channel
from compat_tests.scripted.requesting import Requester
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.registrations import MemoryTransport, Registrations
from fakeamqp.protocols.amqp_0_9.resume import InterruptedChannels
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

rule = pytest.mark.rule


@pytest.fixture
def server(lenient: Server) -> Server:
    """Tickets would only be in the way here."""
    return lenient


def open_channel(client: Client, channel: int = 1) -> bytes:
    """Open a channel and return its channel-id."""
    frame = client.send(m.ChannelOpen(), channel).take_frame()
    assert isinstance(frame.method, shared.ChannelOpenOk)
    return m.ChannelOpenOk.decode(frame.payload, client.grammar).channel_id


def resume(client: Client, channel_id: bytes, channel: int = 1) -> Client:
    client.call(m.ChannelResume(channel_id), m.ChannelOk, channel)
    return client


def resumed(server: Server, client: Client, channel_id: bytes) -> Client:
    """Lose the connection, and resume its channel on another one."""
    client.drop()
    return resume(server.client(channels=0), channel_id)


@pytest.fixture
def client(server: Server) -> Client:
    """A connection without channels."""
    return server.client(channels=0)


@pytest.fixture
def channel_id(client: Client) -> bytes:
    """That of channel 1, which has declared the queue "q"."""
    channel_id = open_channel(client)
    client.declare("q")
    return channel_id


def refused(client: Client, channel_id: bytes, channel: int = 1) -> None:
    client.fails(m.ChannelResume(channel_id), 404, channel=channel, at=(20, 50))


@rule("0-9/channel.resume/resumes", "0-9/channel/grammar#resumed", "0-9/channel.ok/completion")
@rule("0-9/channel.resume/optional")
def test_a_channel_is_resumed_on_another_connection(server: Server) -> None:
    client = server.client(channels=0)
    channel_id = open_channel(client, 3)
    client.declare("q", channel=3).drop()

    client = resume(server.client(channels=0), channel_id, 7)
    client.call(m.QueuePurge(queue=""), shared.QueuePurgeOk, 7)  # The current queue is still "q".
    client.close_channel(7)


@rule("0-9/channel.resume/resumes")
def test_resumed_channel_keeps_its_consumers_and_their_unacked_messages(server: Server) -> None:
    client = server.client(channels=0)
    channel_id = open_channel(client)
    for queue, tag, options in (
        ("acked", "a", {}),
        ("free", "f", {"no_ack": True}),
        ("mine", "m", {"exclusive": True}),
    ):
        client.declare(queue).consume(queue, tag, **options)
    client.publish(b"unsettled", routing_key="acked").delivery()
    client.drop()

    client = server.client(channels=0).open_channel(2).publish(b"meanwhile", routing_key="free", channel=2)
    resume(client, channel_id)
    deliveries = [client.delivery() for _ in range(2)]
    assert [(each.method.consumer_tag, each.body, each.method.redelivered) for each in deliveries] == [
        ("a", b"unsettled", True),
        ("f", b"meanwhile", False),
    ]
    assert client.ack(1).count("acked") == client.count("free") == 0
    client.fails(m.BasicConsume(queue="mine"), 403, channel=2)
    client.call(m.BasicCancel(consumer_tag="m"), shared.BasicCancelOk)


@pytest.mark.letter
def test_resumed_channel_keeps_prefetch_and_flow(server: Server, client: Client, channel_id: bytes) -> None:
    client.qos(1).consume("q", "c").call(m.ChannelFlow(active=False), shared.ChannelFlowOk)
    client = resumed(server, client, channel_id)
    client.fill("q", b"1", b"2").expect_nothing()
    client.call(m.ChannelFlow(active=True), shared.ChannelFlowOk)
    assert client.bodies() == [b"1"]
    assert client.ack(1).bodies() == [b"2"]


def test_resumed_channel_is_still_transactional(server: Server, client: Client, channel_id: bytes) -> None:
    client.call(m.TxSelect(), shared.TxSelectOk)
    client.fill("q", b"committed").call(m.TxCommit(), shared.TxCommitOk)
    client = resumed(server, client, channel_id)
    assert client.fill("q", b"kept").count("q") == 1
    client.call(m.TxCommit(), shared.TxCommitOk)
    assert client.empty("q") == [b"committed", b"kept"]


@pytest.mark.parametrize("work", ["publish", "ack"])
def test_channel_with_uncommitted_work_cannot_be_resumed(
    server: Server, client: Client, channel_id: bytes, work: str
) -> None:
    client.fill("q", b"m").get("q")
    client.call(m.TxSelect(), shared.TxSelectOk)
    if work == "publish":
        client.fill("q", b"undone")
    else:
        client.ack(1)
    client.drop()

    client = server.client(channels=0)
    refused(client, channel_id)
    assert client.open_channel().empty("q") == [b"m"]


def test_dtx_start_on_a_resumed_channel_is_refused_after_earlier_work(
    server: Server, client: Client, channel_id: bytes
) -> None:
    client.perform(m.DtxSelect()).fill("q", b"m")
    client = resumed(server, client, channel_id)
    client.fails(m.DtxStart("branch"), 406)


def test_resumed_channel_keeps_its_out_of_band_transport(server: Server) -> None:
    transport = server.state.extensions[Registrations].transports["memory"] = MemoryTransport()
    client = server.client(channels=0).send(m.ChannelOpen(out_of_band="memory"))
    channel_id = m.ChannelOpenOk.decode(client.take_frame().payload, client.grammar).channel_id
    client = resumed(server, client, channel_id)
    transport.send(m.QueueDeclare(queue="q").encode())
    client.send_frame(4, 1, b"").expect(shared.QueueDeclareOk)


@pytest.mark.letter
def test_consumers_of_a_resumed_channel_keep_no_local_and_priority(
    server: Server, client: Client, channel_id: bytes
) -> None:
    consumer = m.BasicConsume(queue="q", no_local=True, filter={"x-priority": 5})
    client.call(consumer, shared.BasicConsumeOk)
    client.drop()

    client, other = server.client(channels=0), server.client()
    other.consume("q")
    resume(client, channel_id).fill("q", b"its own").expect_nothing()
    assert other.bodies() == [b"its own"]
    other.fill("q", b"another's", b"one more")
    assert client.bodies() == [b"another's", b"one more"]


@rule("0-9/domain.consumer-tag/scope")
def test_resume_with_a_consumer_tag_in_use_closes_the_connection_with_530(
    server: Server, client: Client, channel_id: bytes
) -> None:
    client.consume("q", "tag").drop()

    client = server.client()
    client.consume("q", "tag").ends(m.ChannelResume(channel_id), 530, channel=2)
    client = server.client(channels=0)
    assert resume(client, channel_id).fill("q", b"m").bodies() == [b"m"]


def test_channel_with_a_started_branch_cannot_be_resumed(server: Server) -> None:
    client = server.client(channels=0)
    selected, started = open_channel(client), open_channel(client, 2)
    for channel in (1, 2):
        client.perform(m.DtxSelect(), channel=channel)
    client.perform(m.DtxStart("branch"), channel=2).drop()

    client = server.client(channels=0)
    refused(client, started, 2)
    resume(client, selected).perform(m.DtxStart("another"))


def test_resumed_channel_keeps_all_consumers(server: Server, client: Client, channel_id: bytes) -> None:
    Channel(client, "file").consume(tag="acked")
    Channel(client, "file").consume(tag="free", no_ack=True)
    client.perform(m.StreamConsume(queue="q", consumer_tag="stream"))
    requester = Requester(client).consume("q", "messages")
    client = resumed(server, client, channel_id)
    requester.client = client
    for body in (b"first", b"second"):
        Channel(client, "file").publish(body)
    files = [Channel(client, "file").take() for _ in range(2)]
    assert [(each.method.consumer_tag, each.body) for each in files] == [
        ("acked", b"first"),
        ("free", b"second"),
    ]
    client.drop()
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"first"]

    client = resume(server.client(channels=0), channel_id)
    assert Channel(client, "file").take().method.redelivered
    client.send_content(m.StreamPublish(routing_key="q"), None, b"third")
    assert client.expect_content(m.StreamDeliver).method.consumer_tag == "stream"
    requester.client = client
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"fourth")))
    asked = requester.transfer()
    assert (asked.method.destination, asked.method.body.octets) == ("messages", b"fourth")


def test_windows_of_every_class_are_as_they_were(server: Server, client: Client, channel_id: bytes) -> None:
    client.perform(m.FileQos(prefetch_count=1)).perform(m.StreamQos(prefetch_count=5, consume_rate=10))
    Channel(client, "file").consume(tag="file")
    client.perform(m.StreamConsume(queue="q", consumer_tag="stream"))
    requester = Requester(client)
    requester.call(m.MessageQos(prefetch_count=1), m.MessageOk)
    requester.consume("q", "messages")
    client = resumed(server, client, channel_id).open_channel(2)
    for body in (b"1", b"2"):
        Channel(client, "file", 2).publish(body)
    assert Channel(client, "file").take().body == b"1"
    client.expect_nothing()
    for body in (b"x" * 20, b"y"):
        client.send_content(m.StreamPublish(routing_key="q"), None, body, channel=2)
    assert client.expect_content(m.StreamDeliver).body == b"x" * 20
    client.after(1.9).expect_nothing()
    assert client.after(0.2).expect_content(m.StreamDeliver).body == b"y"
    requester.client = client
    for body in (b"3", b"4"):
        client.publish(body, routing_key="q", channel=2)
    assert requester.transfer().method.body.octets == b"3"
    client.expect_nothing()


def test_consumer_without_queue_is_not_resumed(server: Server, client: Client, channel_id: bytes) -> None:
    client.declare("gone", exclusive=True).consume("gone", "g").consume("q", "c")
    client = resumed(server, client, channel_id)
    assert client.fill("q", b"m").bodies() == [b"m"]
    client.declare("gone").consume("gone", "g")


def test_consumer_without_rights_is_not_resumed(server: Server, client: Client, channel_id: bytes) -> None:
    client.consume("q", "c").drop()
    server.state.access.add(User("guest", "guest", permissions={"/": Permission(read="")}))

    client = server.client(channels=0)
    resume(client, channel_id).fill("q", b"m").expect_nothing()


def test_resumed_spec_channel_keeps_its_consumer_and_loses_its_ticket() -> None:
    server = Server("spec")
    client = server.client(channels=0)
    channel_id = open_channel(client)
    number = client.call(
        m.AccessRequest(realm="/data", active=True, read=True), shared.AccessRequestOk
    ).ticket
    client.call(m.QueueDeclare(ticket=number, queue="q"), shared.QueueDeclareOk)
    client.call(m.BasicConsume(ticket=number, queue="q"), shared.BasicConsumeOk)
    client = resumed(server, client, channel_id)
    [subscription] = server.vhost.queues["q"].subscriptions
    assert subscription.owner is not None
    client.ends(m.QueueDeclare(ticket=number, queue="q"), 530)


def test_resumed_channel_can_be_resumed_again_by_the_same_id(server: Server) -> None:
    client = server.client(channels=0)
    channel_id = open_channel(client)
    for _ in range(2):
        client.drop()
        client = resume(server.client(channels=0), channel_id)


@rule("0-9/channel.resume/unknown-id")
def test_resume_of_an_unknown_or_empty_id_is_refused(server: Server) -> None:
    client = server.client(channels=0)
    refused(client, b"unknown")
    refused(client, b"")
    client.open_channel()


@rule("0-9/channel.resume/unknown-id")
def test_resume_of_an_open_closed_or_already_resumed_channel_is_refused(server: Server) -> None:
    client, other = server.client(channels=0), server.client(channels=0)
    running, closed = open_channel(client), open_channel(client, 2)
    client.close_channel(2)
    refused(other, running)
    refused(other, closed)
    client.drop()
    resume(other, running)
    refused(other, running, 2)


def test_channel_ended_by_close_or_error_cannot_be_resumed(server: Server) -> None:
    client = server.client(channels=0)
    by_client = open_channel(client)
    client.perform(shared.ConnectionClose(reply_code=200), channel=0).drop()
    client = server.client(channels=0)
    by_error = open_channel(client)
    client.send_frame(7, 1, b"").expect_connection_close(501)
    client = server.client(channels=0)
    failed = open_channel(client)
    client.send(m.QueueDeclare(queue="nobody", passive=True)).expect(shared.ChannelClose)
    client.drop()
    client = server.client(channels=0)
    for channel_id in (by_client, by_error, failed):
        refused(client, channel_id)


def test_channel_cannot_be_resumed_by_another_user_or_virtual_host(server: Server) -> None:
    server.state.add_virtual_host("/other")
    for name in ("guest", "somebody"):
        every = {"/": Permission(), "/other": Permission()}
        server.state.access.add(User(name, "guest", permissions=every))
    client = server.client(channels=0)
    channel_id = open_channel(client)
    client.drop()
    refused(server.client(channels=0, user="somebody"), channel_id)
    refused(server.client(channels=0, virtual_host="/other"), channel_id)
    resume(server.client(channels=0), channel_id)


def test_a_connection_without_heartbeats_is_interrupted(server: Server) -> None:
    client = server.client(channels=0, heartbeat=10)
    channel_id = open_channel(client)
    assert client.after(60).closed
    resume(server.client(channels=0), channel_id)


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_that_a_fault_breaks_off_is_interrupted(server: Server, reset: bool) -> None:
    client = server.client(channels=0)
    channel_id = open_channel(client)
    [connection] = server.state.connections
    connection.break_off(reset=reset)  # type: ignore[attr-defined]
    resume(server.client(channels=0), channel_id)


def test_broker_keeps_the_last_100_interrupted_channels_until_restart(server: Server) -> None:
    client = server.client(channels=0)
    ids = [open_channel(client, number) for number in range(1, 102)]
    client.drop()
    client = server.client(channels=0)
    refused(client, ids[0])
    resume(client, ids[1])
    client = server.restart().client(channels=0)
    refused(client, ids[1])
    refused(client, ids[-1])


def test_channels_of_0_8_are_not_kept(server: Server) -> None:
    client = server.connect()
    client.send_bytes(version_0_8.PROTOCOL_HEADERS[0]).take_frame()
    client.login().take_frame()
    client.send(m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=0), 0)
    client.send(m.ConnectionOpen(virtual_host="/"), 0).send(m.ChannelOpen())
    assert len(server.state.connections) == 1
    client.drop()
    assert len(server.vhost.extensions[InterruptedChannels]) == 0


def test_resume_on_an_open_channel_closes_the_connection_with_504(server: Server) -> None:
    server.client().ends(m.ChannelResume(b"1"), 504)
