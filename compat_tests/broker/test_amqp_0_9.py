"""What tests hand in for clients of AMQP 0-9, with a client over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.scripted import amqp_0_9
from compat_tests.scripted.amqp_0_9_1 import Frame
from compat_tests.scripted.sockets import SocketServer
from fakeamqp import Broker, WaitTimeout
from fakeamqp.connection import PeerAddress
from fakeamqp.model.errors import ModelError
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, TunnelProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE
from fakeamqp.protocols.amqp_0_9.codec.requests import Request, encode_request
from fakeamqp.protocols.amqp_0_9.public import BadRegistration, MemoryTransport, TraceFrame, TunnelRequest
from fakeamqp.protocols.amqp_0_9.registrations import Registrations
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame, header_frame


class Client(amqp_0_9.Client):
    """The scripted client over a socket, with channel 1 open."""

    def __init__(self, broker: Broker, *, out_of_band: str = "") -> None:
        super().__init__(SocketServer(broker.host, broker.port, protocol="0-9"), PeerAddress())
        self.handshake()
        self.call(m.ChannelOpen(out_of_band), m.ChannelOpenOk)

    def tunnel(self, proxy_name: str, body: bytes = b"data", **properties: Any) -> None:
        properties["proxy_name"] = proxy_name
        self.send_content(m.TunnelRequest({"list": [1, {"a": 2}]}), TunnelProperties(**properties), body)


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    client = Client(broker)
    yield client
    client.drop()


# --- tunnels -----------------------------------------------------------------------------------------------


def test_a_handler_gets_requests_and_can_publish_through_the_broker(broker: Broker, client: Client) -> None:
    client.call(m.QueueDeclare(queue="answers"), m.QueueDeclareOk)
    requests: list[TunnelRequest] = []

    def handle(request: TunnelRequest) -> None:
        requests.append(request)
        broker.publish(request.body.upper(), routing_key="answers")

    tunnel = broker.admin.amqp_0_9.tunnel("proxy", handle)
    client.tunnel("proxy", headers={"h": [1]})
    tunnel.wait()
    assert tunnel.calls == 1
    assert broker.queue("answers").messages[0].body == b"DATA"
    [request] = requests
    assert request.meta_data == {"list": [1, {"a": 2}]}
    assert request.connection == broker.connections[0].name
    for change in (
        lambda: request.meta_data["list"].append(2),
        lambda: request.headers["h"].clear(),  # type: ignore[index]
    ):
        with pytest.raises(TypeError):
            change()


def test_removed_tunnel_handler_gets_no_more_requests(broker: Broker, client: Client) -> None:
    requests: list[TunnelRequest] = []
    with broker.admin.amqp_0_9.tunnel("proxy", requests.append) as tunnel:
        client.tunnel("proxy")
        tunnel.wait()
    tunnel.remove()
    assert "removed, calls=1" in repr(tunnel)
    client.tunnel("proxy")
    assert client.expect(m.ConnectionClose, 0).reply_code == 540
    assert len(requests) == 1


def test_tunnel_wait_timeout_names_the_proxy_and_its_call_count(broker: Broker) -> None:
    tunnel = broker.admin.amqp_0_9.tunnel("proxy", print)
    with pytest.raises(WaitTimeout, match="tunnel proxy 'proxy' was called 0 times in 0 s, and not 1"):
        tunnel.wait(timeout=0)


class Oops(BaseException):
    """What pytest raises on its own behalf is no Exception either."""


# Types, not instances: a raised instance keeps its traceback, and with it the channel, until pytest ends.
@pytest.mark.parametrize("kind", [ValueError, Oops])
def test_exception_of_a_tunnel_handler_closes_the_connection_and_reaches_the_test(
    broker: Broker, client: Client, kind: type[BaseException]
) -> None:
    error = kind("oops")

    def fail(_: TunnelRequest) -> None:
        raise error

    tunnel = broker.admin.amqp_0_9.tunnel("proxy", fail)
    client.tunnel("proxy")
    close = client.expect(m.ConnectionClose, 0)
    assert close.reply_code == 541
    assert "the handler of tunnel proxy 'proxy' has failed" in close.reply_text and "oops" in close.reply_text
    assert tunnel.error is error
    with pytest.raises(kind):
        tunnel.wait(2, timeout=1000)
    with pytest.raises(WaitTimeout):  # It is said once.
        tunnel.wait(2, timeout=0)
    broker.admin.amqp_0_9.raise_errors()
    assert broker.admin.failures == ()


def test_first_of_several_tunnel_handler_errors_is_kept(broker: Broker) -> None:
    errors = [ValueError("first"), ValueError("second")]

    def fail(_: TunnelRequest) -> None:
        raise errors[tunnel.calls - 1]

    tunnel = broker.admin.amqp_0_9.tunnel("proxy", fail)
    for _ in errors:
        client = Client(broker)
        client.tunnel("proxy")
        assert client.expect(m.ConnectionClose, 0).reply_code == 541
        client.drop()
    assert tunnel.error is errors[0]


def test_keyboard_interrupt_in_a_tunnel_handler_is_not_caught(broker: Broker) -> None:
    def interrupt(_: TunnelRequest) -> None:
        raise KeyboardInterrupt

    tunnel = broker.admin.amqp_0_9.tunnel("proxy", interrupt)
    request = TunnelRequest({}, {}, "proxy", "", False, False, b"", "c", 1, "/", "guest")
    with pytest.raises(KeyboardInterrupt):
        broker._reader.read(lambda state: state.extensions[Registrations].tunnel(request))
    assert tunnel.error is None


def test_raise_errors_raises_a_handler_error_once_without_a_wait(broker: Broker, client: Client) -> None:
    broker.admin.amqp_0_9.tunnel("proxy", lambda _: 1 / 0)
    broker.admin.amqp_0_9.raise_errors()
    client.tunnel("proxy")
    client.expect(m.ConnectionClose, 0)
    with pytest.raises(ZeroDivisionError):
        broker.admin.amqp_0_9.raise_errors()
    broker.admin.amqp_0_9.raise_errors()


# --- trace frames ------------------------------------------------------------------------------------------


def test_trace_frames_reach_the_handler_until_its_removal(broker: Broker, client: Client) -> None:
    frames: list[TraceFrame] = []
    handler = broker.admin.amqp_0_9.on_trace_frame(frames.append)
    client.send_bytes(frame(7, 0, b"anything"))
    handler.wait()
    assert frames == [(broker.connections[0].name, b"anything")]
    handler.remove()
    client.send_bytes(frame(7, 0, b"more"))
    client.call(m.QueueDeclare(queue="q"), m.QueueDeclareOk)
    assert len(frames) == 1


# --- out-of-band -------------------------------------------------------------------------------------------


def test_message_is_published_and_delivered_over_an_out_of_band_transport(broker: Broker) -> None:
    transport = MemoryTransport()
    registration = broker.admin.amqp_0_9.out_of_band("memory", transport)
    client = Client(broker, out_of_band="memory")
    client.call(m.QueueDeclare(queue="q"), m.QueueDeclareOk)
    payloads = [
        (4, m.BasicPublish(routing_key="q").encode()),
        (5, header_frame(1, 60, 1, BasicProperties(type="t").encode())[7:-1]),
        (6, b"m"),
    ]
    for kind, payload in payloads:
        transport.send(payload)
        client.send_bytes(frame(kind, 1, b""))
    client.call(m.BasicConsume(queue="q"), m.BasicConsumeOk)
    assert [client.take_frame() for _ in range(3)] == [Frame(kind, 1, b"") for kind in (4, 5, 6)]
    transport.receive()
    assert transport.receive() == payloads[1][1]
    assert transport.receive() == b"m"
    registration.wait(6)
    assert broker.published[0].type == "t"
    client.drop()


def test_exception_of_an_out_of_band_transport_reaches_the_test(broker: Broker) -> None:
    class Broken(MemoryTransport):
        def take(self) -> bytes | None:
            raise ValueError("oops")

    registration = broker.admin.amqp_0_9.out_of_band("broken", Broken())
    client = Client(broker, out_of_band="broken")
    client.send_bytes(frame(4, 1, b""))
    assert client.expect(m.ConnectionClose, 0).reply_code == 541
    with pytest.raises(ValueError, match="oops"):
        registration.wait(2)
    client.drop()


# --- realms ------------------------------------------------------------------------------------------------


def test_added_realm_grants_tickets_only_to_its_users() -> None:
    with Broker(personality="spec") as broker:
        client = Client(broker)
        broker.admin.amqp_0_9.add_realm("/admin")
        ticket = client.call(m.AccessRequest(realm="/admin", active=True), m.AccessRequestOk).ticket
        client.call(m.QueueDeclare(ticket=ticket, queue="q"), m.QueueDeclareOk)
        broker.admin.amqp_0_9.add_realm("/admin", users=["somebody"])
        client.send(m.AccessRequest(realm="/admin", active=True))
        assert client.expect(m.ChannelClose).reply_code == 403
        client.drop()
        with pytest.raises(ModelError, match="/nowhere"):
            broker.admin.amqp_0_9.add_realm("/admin", virtual_host="/nowhere")


# --- what is refused ---------------------------------------------------------------------------------------


def test_invalid_0_9_registrations_are_refused(broker: Broker) -> None:
    face: Any = broker.admin.amqp_0_9
    face.out_of_band("taken", MemoryTransport())
    for wrong, text in (
        (lambda: face.tunnel(5, print), "not 5"),
        (lambda: face.tunnel("proxy", None), "must be callable, not None"),
        (lambda: face.on_trace_frame("print"), "must be callable, not 'print'"),
        (lambda: face.out_of_band("", MemoryTransport()), "1 to 255 bytes"),
        (lambda: face.out_of_band("taken", MemoryTransport()), "'taken' is registered already"),
        (lambda: face.out_of_band("free", object()), "needs `take` and `put`"),
        (lambda: face.add_realm("x" * 256), "1 to 255 bytes"),
        (lambda: face.add_realm(None), "not None"),
    ):
        with pytest.raises(BadRegistration, match=text):
            wrong()


def test_reset_removes_0_9_registrations(broker: Broker) -> None:
    face = broker.admin.amqp_0_9
    assert face is broker.admin.amqp_0_9
    registrations = [
        face.tunnel("proxy", print),
        face.on_trace_frame(print),
        face.out_of_band("memory", MemoryTransport()),
    ]
    broker.reset()
    assert all("removed" in repr(each) for each in registrations)
    client = Client(broker)
    client.tunnel("proxy")
    assert client.expect(m.ConnectionClose, 0).reply_code == 540
    client.drop()
    face.out_of_band("memory", MemoryTransport())


def test_message_fetched_with_message_get_shows_its_channel(broker: Broker, client: Client) -> None:
    client.call(m.QueueDeclare(queue="q"), m.QueueDeclareOk)
    broker.publish(b"body", routing_key="q")
    request = Request(1, 0, m.MessageGet(queue="q", destination="d").encode())
    client.send_bytes(frame(FRAME_REQUEST, 1, encode_request(request)))
    assert [client.take_frame().type for _ in range(2)] == [FRAME_RESPONSE, FRAME_REQUEST]
    [held] = broker.queue("q").messages
    assert (held.state, held.channel, held.consumer_tag) == ("unacked", 1, None)
    [connection] = broker.connections
    assert [channel.unacked for channel in connection.channels] == [1]
