from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import cut
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.trace import ConnectionEvent, Recorder

rule = pytest.mark.rule


def begin(server: Server) -> Client:
    """A client that has got start."""
    return server.started()


def login(server: Server) -> Client:
    """A client that has got tune."""
    client = begin(server)
    client.login().expect(m.ConnectionTune, 0)
    return client


def tune(server: Server) -> Client:
    """A client that has sent tune-ok."""
    client = login(server)
    client.send(m.ConnectionTuneOk(channel_max=10, frame_max=8192), 0).expect_nothing()
    return client


def close_from_here(server: Server, client: Client) -> None:
    """Close a client's connection as an operator."""
    [connection] = [each for each in server.state.connections if each.name == client.connection.name]
    connection.close_by_operator(320, "CONNECTION_FORCED - maintenance")


@pytest.mark.needs("inspection")
def test_second_operator_close_ends_the_connection_without_close_ok(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    [connection] = rabbitmq.state.connections
    connection.close_by_operator(320, "CONNECTION_FORCED - one")
    client.expect(m.ConnectionClose, 0)
    assert not client.closed
    connection.close_by_operator(320, "CONNECTION_FORCED - two")
    client.expect_nothing()
    assert client.closed


# --- the class ---------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
@rule("0-9/connection/grammar#opening", "0-9/connection/grammar#closing")
@rule("0-9-1/connection/grammar#opening")
def test_connection_handshake_and_close_follow_the_specified_order(server: Server) -> None:
    client = server.started()
    client.expect_nothing()
    client.login().expect(m.ConnectionTune, 0)
    client.expect_nothing()
    client.send(m.ConnectionTuneOk(channel_max=10, frame_max=8192), 0).expect_nothing()
    client.perform(m.ConnectionOpen(virtual_host="/"), channel=0)
    client.perform(m.ConnectionClose(reply_code=200), channel=0)
    client.expect_end_after_close()


START_OK = m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
TUNE_OK = m.ConnectionTuneOk(channel_max=10, frame_max=8192)
OPEN = m.ConnectionOpen(virtual_host="/")
CLOSE = m.ConnectionClose(reply_code=200)


@rule("0-9/connection/grammar#opening", "0-9-1/connection/out-of-order")
@rows(
    "reach, method",
    (begin, TUNE_OK),
    (begin, OPEN),
    (begin, CLOSE),
    (begin, m.ConnectionSecureOk()),
    (begin, m.ConnectionCloseOk()),
    (begin, m.ConnectionStart()),
    (begin, m.ChannelOpen()),
    (login, START_OK),
    (login, OPEN),
    (login, CLOSE),
    (login, m.ConnectionSecureOk()),
)
def test_method_out_of_order_before_tune_ok_ends_the_socket_silently(
    server: Server, reach: Callable[[Server], Client], method: m.Method
) -> None:
    reach(server).send(method, 0).expect_silent_end()


@rule("0-9-1/connection/out-of-order")
@pytest.mark.parametrize("method", [START_OK, TUNE_OK, CLOSE, m.ConnectionCloseOk(), m.ChannelOpen()])
def test_wrong_method_before_open_is_answered_with_close_504_only_by_rabbitmq(
    spec: Server, rabbitmq: Server, method: m.Method
) -> None:
    client = tune(spec)
    client.send(method, 0).expect_silent_end()
    client = tune(rabbitmq)
    close = client.ends(method, 504, channel=0)
    assert close.reply_text == "CHANNEL_ERROR - unexpected method in connection state opening"
    assert (close.class_id, close.method_id) == (method.CLASS_ID, method.METHOD_ID)


@pytest.mark.deviates("0-9-1/connection/out-of-order")
@rule("0-9-1/connection/out-of-order")
@pytest.mark.parametrize("reach", [begin, login, tune])
def test_channel_open_before_connection_open_ends_the_connection(
    server: Server, reach: Callable[[Server], Client]
) -> None:
    client = reach(server).send(m.ChannelOpen(), 1)
    if reach is tune and not server.is_spec:
        client.expect_connection_close(505, at=(0, 0))
    else:
        client.expect_silent_end()


@pytest.mark.needs("inspection", "personality of choices")
@rule("0-9/connection/grammar#secure")
@rule("0-9-1/connection/mandatory", "0-9-1/connection/grammar#secure", "0-9-1/connection/grammar#closing")
def test_all_ten_methods_of_class_connection_are_implemented(server: Server) -> None:
    asking = server.varied(mechanisms=("CRAM-MD5",))
    client = begin(asking).send(m.ConnectionStartOk(mechanism="CRAM-MD5", locale="en_US"), 0)
    challenge = client.expect(m.ConnectionSecure, 0).challenge
    response = b"guest " + hmac.new(b"guest", challenge, "md5").hexdigest().encode()
    client.send(m.ConnectionSecureOk(response=response), 0).expect(m.ConnectionTune, 0)
    client.send(TUNE_OK, 0).call(OPEN, m.ConnectionOpenOk, 0)
    close_from_here(asking, client)
    client.expect_connection_close(320)
    client = asking.started()


# --- open, open-ok -----------------------------------------------------------------------------------------
@pytest.mark.needs("settings")
@rule("0-9-1/connection.open/virtual-host-separation#exchanges")
@rule("0-9-1/connection.open/virtual-host-separation#queues")
@rule("0-9-1/connection.open/virtual-host-separation#bindings")
def test_virtual_hosts_have_separate_queues_exchanges_and_bindings(server: Server) -> None:
    server.state.add_virtual_host("/other")
    server.state.access.users["guest"].permissions["/other"] = Permission()
    client, other = server.client(), server.client(virtual_host="/other")
    client.declare("q").declare_exchange("e").bind("q", "amq.fanout")
    assert (
        other.fails(m.QueueDeclare(queue="q", passive=True), 404).reply_text
        == "NOT_FOUND - no queue 'q' in vhost '/other'"
    )
    other.open_channel().fails(m.ExchangeDeclare(exchange="e", passive=True), 404)
    other.open_channel().declare("q").publish(b"there", routing_key="q")
    other.publish(b"anywhere", exchange="amq.fanout")
    assert client.count("q") == 0
    assert other.count("q") == 1


@pytest.mark.needs("settings")
@rule("0-9-1/connection.open/virtual-host-security")
def test_open_of_virtual_host_without_permission_closes_the_connection_with_530(server: Server) -> None:
    server.state.add_virtual_host("/private")
    server.state.access.add(User("worker", "secret", permissions={"/private": Permission()}))
    client = tune(server)
    client.ends(
        m.ConnectionOpen(virtual_host="/private"),
        530,
        channel=0,
        text="NOT_ALLOWED - access to vhost '/private' refused for user 'guest'",
    )
    server.client(user="worker", password="secret", virtual_host="/private").declare("q")


@rule("0-9-1/connection.open/unknown-vhost")
@rows("name", "/missing", *(pytest.param(each, marks=pytest.mark.protocols("0-9-1")) for each in ("", "//")))
def test_spec_personality_refuses_unknown_virtual_host_with_402(spec: Server, name: str) -> None:
    tune(spec).ends(m.ConnectionOpen(virtual_host=name), 402, channel=0, at=(10, 40))


@pytest.mark.deviates("0-9-1/connection.open/unknown-vhost")
@pytest.mark.parametrize("name", ["nope", "", "//"])
def test_rabbitmq_refuses_unknown_virtual_host_with_530(rabbitmq: Server, name: str) -> None:
    client = tune(rabbitmq)
    client.ends(
        m.ConnectionOpen(virtual_host=name), 530, channel=0, text=f"NOT_ALLOWED - vhost {name} not found"
    )


@rule("0-9-1/connection.open-ok/ready#channels", "0-9-1/connection.open-ok/ready#reserved")
def test_open_ok_is_empty_and_channels_may_be_opened(server: Server) -> None:
    client = tune(server)
    assert client.send(OPEN, 0).take_bytes() == bytes.fromhex("01 0000 00000005 000a0029 00 ce")
    client.open_channel()


# --- close, close-ok ---------------------------------------------------------------------------------------
def provoke(client: Client) -> None:
    """Make the server close the connection."""
    client.send(m.QueueDeclare(queue="q"), 0).expect(m.ConnectionClose, 0)


@rule("0-9-1/connection.close/stability#discards")
def test_methods_between_broker_close_and_close_ok_are_discarded(server: Server) -> None:
    client, other = server.client(), server.client()
    other.declare("q")
    provoke(client)
    client.send(m.QueueDeclare(queue="too-late")).send(m.ChannelOpen(), 2).publish(routing_key="q")
    client.send(START_OK, 0).send_frame(8, 1, b"").expect_nothing()
    assert not client.closed
    client.send(m.ConnectionCloseOk(), 0).expect_silent_end()
    assert other.count("q") == 0
    other.fails(m.QueueDeclare(queue="too-late", passive=True), 404)


@rule("0-9-1/errors/crossed-close#connection", "0-9-1/connection.close/stability#crossed")
def test_connection_close_crossing_the_broker_close_is_answered_with_close_ok(server: Server) -> None:
    client = server.client()
    provoke(client)
    client.call(CLOSE, m.ConnectionCloseOk, 0)
    assert not client.closed, "our own close is not answered yet"
    client.send(m.ConnectionCloseOk(), 0).expect_silent_end()


@rule("0-9-1/connection.close/stability#discards")
def test_method_sent_in_one_write_behind_a_connection_error_is_discarded(server: Server) -> None:
    client, other = server.client(), server.client()
    octets = method_frame(0, m.QueueDeclare(queue="q").encode())
    client.send_bytes(octets + method_frame(1, m.QueueDeclare(queue="behind").encode()))
    client.expect_connection_close(504)
    other.fails(m.QueueDeclare(queue="behind", passive=True), 404)


@pytest.mark.needs("virtual time")
def test_unanswered_connection_close_aborts_the_connection_after_30_seconds(server: Server) -> None:
    client = server.client()
    provoke(client)
    assert not client.after(29).closed
    assert client.after(2).connection.aborted


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.close/either-peer#client")
def test_client_close_is_answered_with_close_ok(client: Client) -> None:
    client.call(CLOSE, m.ConnectionCloseOk, 0)
    client.expect_end_after_close()


@pytest.mark.needs("inspection", "addresses of peers")
@rule("0-9/connection/grammar#closing", "0-9-1/connection.close/either-peer#server")
def test_operator_close_sends_connection_close_to_one_client(server: Server) -> None:
    client, other = server.client(), server.connect(port=40_000)
    other.handshake()
    close_from_here(server, other)
    other.expect_connection_close(320, text="CONNECTION_FORCED - maintenance", at=(0, 0))
    client.declare("still-served")


@pytest.mark.needs("addresses of peers")
@rule("0-9-1/connection.close/implies-channels#consumers", "0-9-1/connection.close/implies-channels#messages")
@pytest.mark.parametrize("how", ["client", "server", "error", "lost"])
def test_end_of_connection_removes_consumers_and_requeues_unacked_messages(server: Server, how: str) -> None:
    other = server.connect(port=40_000)
    other.handshake()
    other.open_channel()
    client = server.client(channels=2).declare("q")
    for body in (b"got", b"consumed", b"waiting"):
        client.publish(body, routing_key="q")
    client.get("q")
    client.perform(m.BasicQos(prefetch_count=1), channel=2).consume("q", channel=2).delivery(channel=2)
    before = other.declare_ok("q", passive=True)
    assert (before.message_count, before.consumer_count) == (1, 1)
    if how == "client":
        client.call(CLOSE, m.ConnectionCloseOk, 0)
    elif how == "server":
        close_from_here(server, client)
    elif how == "error":
        client.send(m.QueueDeclare(), 0)
    else:
        client.drop()
    after = other.declare_ok("q", passive=True)
    assert (after.message_count, after.consumer_count) == (3, 0)
    returned = [other.get("q") for _ in range(3)]
    assert [each.body for each in returned if each] == [b"got", b"consumed", b"waiting"]
    assert [each.method.redelivered for each in returned if each] == [True, True, False]


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.close/client-close-any-code")
@pytest.mark.parametrize("code", [0, 200, 404, 541, 65535])
def test_client_close_with_any_reply_code_is_answered_with_close_ok(client: Client, code: int) -> None:
    close = m.ConnectionClose(reply_code=code, reply_text="bye", class_id=60, method_id=40)
    client.call(close, m.ConnectionCloseOk, 0)
    client.expect_end_after_close()


@rule("0-9-1/connection.close-ok/socket-closed-after")
def test_spec_personality_ends_the_transport_directly_after_close_ok(spec: Server) -> None:
    client = spec.client().send(CLOSE, 0).send(m.QueueDeclare(queue="q"))
    assert [frame.payload for frame in cut(client.take_bytes())] == [bytes.fromhex("000a0033")]
    client.expect_silent_end()
    assert not client.connection.aborted, "close-ok must still be written"


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/connection.close-ok/socket-closed-after")
@pytest.mark.parametrize(("heartbeat", "timeout"), [(0, 30), (60, 30), (5, 5)])
def test_rabbitmq_waits_for_client_to_end_the_transport_after_close_ok(
    rabbitmq: Server, heartbeat: int, timeout: int
) -> None:
    client = rabbitmq.client(heartbeat=heartbeat).declare("mine", exclusive=True)
    client.send(CLOSE, 0).send(m.QueueDeclare(queue="q")).send(CLOSE, 0)
    assert [frame.payload for frame in cut(client.take_bytes())] == [bytes.fromhex("000a0033")] * 2
    assert not rabbitmq.state.connections, "all but the transport is over"
    assert "mine" not in rabbitmq.vhost.queues
    assert not client.after(timeout - 0.1).closed
    client.after(0.2).expect_silent_end()
    assert not client.connection.aborted, "close-ok must still be written"


@pytest.mark.needs("virtual time")
def test_close_ok_or_malformed_frame_after_close_ok_ends_the_transport(rabbitmq: Server) -> None:
    """Measured on 4.0.5 and 4.3.6: each ends the transport, at once or after three seconds."""

    def closed() -> Client:
        client = rabbitmq.client()
        client.call(CLOSE, m.ConnectionCloseOk, 0)
        return client

    client = closed()
    client.send_frame(5, 0, b"unknown")
    client.send_frame(1, 1, b"\0\x63\0\1")
    client.send_frame(1, 0, b"\0\x0a\0\x32")
    client.expect_nothing()
    assert not client.closed
    client.send(m.ConnectionCloseOk(), 0)
    client.expect_silent_end()

    client = closed()
    client.send_frame(1, 0, b"\0\x63\0\1")
    client.expect_silent_end()

    client = closed()
    client.send_bytes(bytes(8))
    rabbitmq.advance(2.9)
    assert not client.closed
    rabbitmq.advance(0.2)
    client.expect_silent_end()


@pytest.mark.needs("virtual time")
def test_client_that_disconnects_directly_after_close_receives_close_ok(rabbitmq: Server) -> None:
    client = rabbitmq.client(heartbeat=10)
    client.send(CLOSE, 0).drop()
    assert client.connection.finished and not client.connection.aborted
    client.expect(m.ConnectionCloseOk, 0)
    assert rabbitmq.state.timers.next_due() is None, "nobody is waited for"


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.close-ok/reporting")
@pytest.mark.parametrize("closing", [False, True])
def test_disconnect_without_close_ok_is_logged(
    server: Server, closing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    client = server.client()
    if closing:
        close_from_here(server, client)
    with caplog.at_level(logging.INFO, "fakeamqp"):
        caplog.clear()
        client.drop()
    assert [record.getMessage() for record in caplog.records] == [
        f"{client.connection.name}: the transport ended without connection.close-ok"
    ]


def test_disconnect_after_close_ok_is_not_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fakeamqp"):
        client.call(CLOSE, m.ConnectionCloseOk, 0)
        client.drop()
    assert not caplog.records


@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize("ended", ["lingering", "finished"])
def test_fault_on_closed_connection_records_no_second_closed_event(rabbitmq: Server, ended: str) -> None:
    """A fault may end the transport that a client, or the broker's answer, has yet to end."""
    client = rabbitmq.client()
    connection: Any = next(iter(rabbitmq.state.connections))
    recorder = rabbitmq.state.tap = Recorder(rabbitmq.clock.now)
    if ended == "lingering":
        assert not client.perform(m.ConnectionClose(reply_code=200), channel=0).connection.finished
    else:
        connection.close_by_operator(320, "enough")
        client.expect(m.ConnectionClose, 0)
        assert client.send(m.ConnectionCloseOk(), 0).connection.finished

    def closed() -> list[str]:
        events = recorder.trace().events
        return [
            each.detail for each in events if isinstance(each, ConnectionEvent) and each.event == "closed"
        ]

    assert len(closed()) == 1
    first = closed()
    connection.break_off(reset=False)
    assert client.connection.finished
    assert closed() == first


@pytest.mark.needs("virtual time", "inspection")
def test_fault_on_open_connection_records_a_closed_event(server: Server) -> None:
    client = server.client()
    connection: Any = next(iter(server.state.connections))
    recorder = server.state.tap = Recorder(server.clock.now)
    connection.break_off(reset=False)
    events = [each for each in recorder.trace().events if isinstance(each, ConnectionEvent)]
    assert [(each.event, each.detail) for each in events if each.event == "closed"] == [
        ("closed", "closed by a fault")
    ]
    assert client.closed and not server.state.connections
