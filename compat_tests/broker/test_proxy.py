"""`Proxy` in front of a broker: what passes, what faults do, and what each side is told."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

import aio_pika
import pika
import pytest
from pika.exceptions import (
    AMQPConnectionError,
    AMQPError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NackError,
    ProbableAuthenticationError,
    UnroutableError,
)

from compat_tests.tools.legs import Legs
from compat_tests.tools.matrix import rows
from fakeamqp import Broker, BrokerError, Proxy
from fakeamqp.errors import NotPublished
from fakeamqp.faults import FaultError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import frame, header_frame, method_frame
from fakeamqp.protocols.base.proxied.legs import Leg
from fakeamqp.runtime import connection_driver
from fakeamqp.runtime.transport import NO_LINGER

pytestmark = pytest.mark.threads_only


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with Proxy(broker.url) as proxy:
        yield proxy


def connect(proxy: Proxy, **parameters: Any) -> pika.BlockingConnection:
    wanted = pika.URLParameters(proxy.url)
    for name, value in parameters.items():
        setattr(wanted, name, value)
    return pika.BlockingConnection(wanted)


@pytest.fixture
def channel(proxy: Proxy) -> Iterator[Any]:
    """A channel with confirms and a queue "q"."""
    connection = connect(proxy)
    channel = connection.channel()
    channel.queue_declare("q")
    channel.confirm_delivery()
    yield channel
    with suppress(AMQPError):
        connection.close()


def bodies(channel: Any, count: int) -> list[bytes]:
    """What a consumer gets and acknowledges."""
    found: list[bytes] = []
    for method, _, body in channel.consume("q"):
        found.append(body)
        channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            break
    channel.cancel()
    return found


# --- transparency -----------------------------------------------------------------------------------


def test_bytes_of_both_directions_are_the_same_on_both_legs_without_faults(broker: Broker) -> None:
    with Legs(broker.port) as legs, Proxy(f"amqp://guest:guest@127.0.0.1:{legs.to}/%2F") as proxy:
        connection = connect(proxy, port=legs.listen(proxy.port))
        channel = connection.channel()
        channel.queue_declare("q")
        channel.confirm_delivery()
        for size in (0, 10, 200_000):
            channel.basic_publish("", "q", b"x" * size, pika.BasicProperties(headers={"h": [1, "two"]}))
        assert [len(body) for body in bodies(channel, 3)] == [0, 10, 200_000]
        connection.close()
        traffic = legs.traffic()
    assert traffic.problems == ()
    assert traffic.bytes > 400_000


class Sides(NamedTuple):
    """Sockets of a client and of a broker, with a proxy in between."""

    client: socket.socket
    broker: socket.socket


@pytest.fixture(params=["thread", "asyncio"])
def sides(request: pytest.FixtureRequest) -> Iterator[Sides]:
    """The client has sent the protocol header."""
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(20)
        proxy = Proxy(f"amqp://127.0.0.1:{listener.getsockname()[1]}", runtime=request.param)
        if request.param == "thread":
            held.enter_context(proxy)
        else:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever)
            thread.start()
            held.callback(loop.close)
            held.callback(thread.join)
            held.callback(loop.call_soon_threadsafe, loop.stop)
            asyncio.run_coroutine_threadsafe(proxy.start.aio(), loop).result(20)
            held.callback(lambda: asyncio.run_coroutine_threadsafe(proxy.stop.aio(), loop).result(20))
        client = held.enter_context(socket.create_connection((proxy.host, proxy.port), timeout=20))
        client.sendall(PROTOCOL_HEADER)
        broker = held.enter_context(listener.accept()[0])
        broker.settimeout(20)
        assert broker.recv(8, socket.MSG_WAITALL) == PROTOCOL_HEADER
        yield Sides(client, broker)


def test_client_that_has_ended_its_side_gets_the_answer_of_the_broker(sides: Sides) -> None:
    sides.client.sendall(b"the rest")
    sides.client.shutdown(socket.SHUT_WR)
    assert sides.broker.recv(8, socket.MSG_WAITALL) == b"the rest"
    assert sides.broker.recv(1) == b""
    sides.broker.sendall(b"x" * 3_000_000)
    sides.broker.close()
    with sides.client.makefile("rb") as answer:
        assert len(answer.read()) == 3_000_000


@pytest.mark.parametrize(("resets", "other"), [("client", "broker"), ("broker", "client")])
def test_reset_of_one_side_reaches_the_other_side_behind_its_bytes(
    sides: Sides, resets: str, other: str
) -> None:
    one, left = getattr(sides, resets), getattr(sides, other)
    one.sendall(b"the last")
    assert left.recv(8, socket.MSG_WAITALL) == b"the last"
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    one.close()
    with pytest.raises(ConnectionResetError):
        left.recv(1)


def test_broker_that_does_not_end_keeps_no_client_that_has_ended_its_side(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_driver, "LINGER_SECONDS", 0.01)
    sides.client.shutdown(socket.SHUT_WR)
    assert sides.client.recv(1) == b""


def test_client_that_speaks_another_protocol_gets_the_answer_of_the_broker(
    broker: Broker, proxy: Proxy
) -> None:
    answers = []
    for port in (broker.port, proxy.port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"AMQP\1\1\0\x0a" + b"\x0f\0")
            answers.append(client.recv(7))
    assert answers[0] == answers[1] != b""


def test_broker_answers_malformed_frames_through_the_proxy(
    broker: Broker, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    answers = []
    for port in (broker.port, proxy.port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"AMQP\0\0\x09\x01")
            client.recv(65536)
            client.sendall(b"\1\0\0\0\0\0\4\0\x0a\0\x0bX")
            octets = b""
            while part := client.recv(65536):
                octets += part
            answers.append(octets)
    assert answers[0] == answers[1]
    assert "the client sent a frame that ends with 0x58" in caplog.text


def test_client_that_does_not_read_stops_the_broker_and_not_the_memory_of_the_proxy(
    broker: Broker, proxy: Proxy
) -> None:
    body = b"x" * 1_000_000
    client = connect(proxy)
    channel = client.channel()
    channel.queue_declare("big")
    for _ in range(64):
        broker.publish(body, routing_key="big")
    channel.basic_consume("big", lambda *_: None, auto_ack=True)
    [leg] = proxy._state.connections
    proxy.wait_for(lambda: not leg.broker.reading)
    assert broker.queue("big").ready > 0
    assert leg.waiting < 8 * 1024 * 1024
    client.close()


@pytest.mark.parametrize(
    ("sender", "receiver", "method"),
    [("client", "broker", m.BasicPublish()), ("broker", "client", m.BasicDeliver(delivery_tag=1))],
    ids=["publish", "delivery"],
)
def test_body_of_64_mib_passes_with_less_than_2_mib_kept_for_a_side_that_does_not_read(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, sender: str, receiver: str, method: Any
) -> None:
    kept = [0]
    full = threading.Event()
    write = Leg.write

    def counted(leg: Leg, *octets: Any, **more: Any) -> None:
        write(leg, *octets, **more)
        kept[0] = max(kept[0], leg.unsent)
        if not leg.other.reading:
            full.set()

    monkeypatch.setattr(Leg, "write", counted)
    size, part = 64 * 1024 * 1024, 131_072 - 8
    head = method_frame(1, method.encode()) + header_frame(1, 60, size, b"\0\0")
    frames = b"".join(frame(3, 1, b"x" * min(part, size - at)) for at in range(0, size, part))
    sending = threading.Thread(target=getattr(sides, sender).sendall, args=(head + frames,))
    sending.start()
    assert full.wait(30)
    left = len(head + frames)
    while left:
        left -= len(getattr(sides, receiver).recv(262_144))
    sending.join()
    assert kept[0] < 2 * 1024 * 1024


# --- faults -----------------------------------------------------------------------------------------


def test_nacked_publish_does_not_reach_the_broker(broker: Broker, proxy: Proxy, channel: Any) -> None:
    rule = proxy.faults.on("basic.publish", routing_key="q").nack().once()
    with pytest.raises(NackError):
        channel.basic_publish("", "q", b"refused")
    channel.basic_publish("", "q", b"accepted")
    assert [message.body for message in broker.queue("q").messages] == [b"accepted"]
    assert rule.hits == 1


def test_returned_publish_is_unroutable_for_its_publisher(broker: Broker, proxy: Proxy, channel: Any) -> None:
    proxy.faults.on("basic.publish").return_message().once()
    with pytest.raises(UnroutableError):
        channel.basic_publish("", "q", b"returned", mandatory=True)
    assert broker.queue("q").ready == 0


def test_publishes_and_deliveries_have_right_numbers_after_duplicates(
    broker: Broker, proxy: Proxy, channel: Any
) -> None:
    proxy.faults.on("basic.publish", body=b"1").duplicate().once()
    proxy.faults.on("basic.deliver", body=b"2").duplicate().once()
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", "q", body)
    assert bodies(channel, 5) == [b"1", b"1", b"2", b"2", b"3"]
    broker.wait_for(lambda: broker.queue("q").unacked == 0)
    assert broker.queue("q").ready == 0


def test_channel_closed_by_a_fault_can_be_opened_again(broker: Broker, proxy: Proxy, channel: Any) -> None:
    proxy.faults.on("queue.declare", queue="bad").close_channel(406, "PRECONDITION_FAILED - no").once()
    connection = channel.connection
    other = connection.channel()
    with pytest.raises(ChannelClosedByBroker, match="PRECONDITION_FAILED - no"):
        other.queue_declare("bad")
    again = connection.channel()
    again.queue_declare("good")
    assert [queue.name for queue in broker.queues] == ["q", "good"]


def test_connection_closed_by_a_fault_is_closed_on_both_sides(
    broker: Broker, proxy: Proxy, channel: Any
) -> None:
    proxy.faults.on("queue.declare", queue="bad").close_connection(541, "INTERNAL_ERROR - no").once()
    with pytest.raises(ConnectionClosedByBroker, match="INTERNAL_ERROR - no"):
        channel.queue_declare("bad")
    broker.wait_for(lambda: not broker.connections)
    assert not broker.queue("bad").exists


def test_refused_login_is_an_authentication_error_of_the_client(proxy: Proxy) -> None:
    proxy.faults.on("connection.start-ok").refuse_login().once()
    with pytest.raises(ProbableAuthenticationError, match="ACCESS_REFUSED"):
        connect(proxy)
    connect(proxy).close()


def test_network_is_cut_between_client_and_proxy_only(broker: Broker, proxy: Proxy, channel: Any) -> None:
    proxy.faults.network.reset()
    with pytest.raises(AMQPConnectionError):
        channel.queue_declare("other")
    broker.wait_for(lambda: not broker.connections)


def test_blocked_publisher_is_told_and_continues_after_the_alarm(proxy: Proxy) -> None:
    connection = connect(proxy)
    told: list[str] = []
    connection.add_on_connection_blocked_callback(lambda _, frame: told.append(frame.method.reason))
    connection.add_on_connection_unblocked_callback(lambda *_: told.append("unblocked"))
    channel = connection.channel()
    channel.queue_declare("q")
    alarm = proxy.faults.memory_alarm()
    channel.basic_publish("", "q", b"waits")
    while not told:
        connection.process_data_events(0.05)
    alarm.remove()
    while len(told) < 2:
        connection.process_data_events(0.05)
    assert told == ["low on memory", "unblocked"]
    connection.close()


@rows(
    "make, reason",
    (lambda faults: faults.on("basic.publish").crash(), "cannot crash the broker behind it"),
    (lambda faults: faults.redirect("other:5672"), "has no connection.redirect"),
    (lambda faults: faults.cancel_consumers("q"), "does not see the queues"),
    (lambda faults: faults.starve(), "is counted by the broker behind a proxy"),
    (lambda faults: faults.chaos(1, {"restart": 1}), "cannot restart the broker behind it"),
    ids=["crash", "redirect", "cancel_consumers", "starve", "chaos"],
)
def test_fault_of_the_broker_itself_is_refused_with_the_reason(proxy: Proxy, make: Any, reason: str) -> None:
    with pytest.raises(FaultError, match=reason):
        make(proxy.faults)


# --- history and trace ------------------------------------------------------------------------------


def test_published_and_returned_messages_are_known_from_their_frames(proxy: Proxy, channel: Any) -> None:
    channel.basic_publish("", "q", b"stored", pika.BasicProperties(message_id="m1"))
    with pytest.raises(UnroutableError):
        channel.basic_publish("", "nowhere", b"back", mandatory=True)
    [stored] = proxy.expect_published(routing_key="q", body=b"stored")
    assert stored.message_id == "m1"
    assert stored.outcome == "passed on to the broker"
    [returned] = proxy.expect_returned(reply_code=312)
    assert returned.body == b"back"


def test_error_of_an_expectation_shows_the_near_miss(proxy: Proxy, channel: Any) -> None:
    channel.basic_publish("", "q", b"other")
    with pytest.raises(NotPublished, match=re.compile(r"b'other'.*routing_key='q'", re.DOTALL)):
        proxy.expect_published(routing_key="q", body=b"wanted", timeout=0.1)


def test_trace_has_frames_deliveries_and_settlements(proxy: Proxy, channel: Any) -> None:
    channel.basic_publish("", "q", b"m")
    bodies(channel, 1)
    channel.connection.close()
    told = proxy.trace.timeline()
    for line in (
        "connected:",
        "-> 1    basic.publish",
        "message b'm' delivered from queue 'q'",
        "acked by",
        "closed:",
    ):
        assert line in told


def test_connection_shows_its_channels_with_what_they_hold(proxy: Proxy, channel: Any) -> None:
    channel.basic_qos(prefetch_count=3)
    channel.basic_publish("", "q", b"m")
    assert channel.basic_get("q")[0] is not None
    [connection] = proxy.connections
    assert (connection.user, connection.virtual_host) == ("guest", "/")
    [view] = connection.channels
    assert (view.number, view.mode, view.prefetch, view.unacked) == (1, "confirm", 3, 1)
    assert proxy.channels == (view,)


def test_checks_find_a_message_that_its_consumer_keeps(proxy: Proxy, channel: Any) -> None:
    channel.basic_publish("", "q", b"m")
    channel.basic_get("q")
    [finding] = proxy.trace.findings("unacked")
    assert "b'm'" in str(finding)


# --- legs -------------------------------------------------------------------------------------------


def test_client_is_told_why_there_is_no_broker(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with Proxy(f"amqp://guest:guest@127.0.0.1:{port}/") as proxy:
        with pytest.raises(AMQPConnectionError, match=f"the proxy has no broker: 127.0.0.1:{port}"):
            connect(proxy)
        assert f"no connection to the broker: 127.0.0.1:{port}" in caplog.text


def test_second_address_is_taken_where_the_first_refuses(broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with Proxy([f"amqp://guest:guest@127.0.0.1:{port}/%2F", broker.url]) as proxy:
        connect(proxy).close()


def test_wrong_password_is_refused_by_the_broker(proxy: Proxy) -> None:
    with pytest.raises(ProbableAuthenticationError):
        connect(proxy, credentials=pika.PlainCredentials("guest", "wrong"))


def test_connection_of_a_client_ends_with_the_broker(broker: Broker, proxy: Proxy, channel: Any) -> None:
    broker.stop()
    with pytest.raises(AMQPConnectionError):
        channel.queue_declare("other")
    proxy.wait_for(lambda: not proxy.connections)


def test_connection_to_the_broker_ends_with_the_client(broker: Broker, proxy: Proxy) -> None:
    with socket.create_connection((proxy.host, proxy.port)) as client:
        client.sendall(b"AMQP\0\0\x09\x01")
        assert client.recv(1)
        assert len(broker.connections) == 1
    broker.wait_for(lambda: not broker.connections)


def test_stop_closes_connections_with_a_handshake(broker: Broker) -> None:
    with Proxy(broker.url) as proxy:
        connection = connect(proxy)
    with pytest.raises(ConnectionClosedByBroker, match="the proxy has been stopped"):
        connection.process_data_events(5)
    broker.wait_for(lambda: not broker.connections)


def test_reset_forgets_messages_and_faults(proxy: Proxy, channel: Any) -> None:
    channel.basic_publish("", "q", b"m")
    proxy.faults.on("basic.publish").nack()
    proxy.reset()
    assert len(proxy.published) == 0
    assert proxy.faults.rules == ()
    connection = connect(proxy)
    other = connection.channel()
    other.confirm_delivery()
    other.basic_publish("", "q", b"m")
    connection.close()


@pytest.mark.parametrize("leg", ["to the client", "to the broker"])
def test_tls_can_be_on_either_leg(leg: str) -> None:
    if leg == "to the broker":
        with Broker(tls=True) as broker, Proxy(broker.url, to_tls=broker.tls.client_context) as proxy:
            connect(proxy).close()
        return
    with Broker() as broker, Proxy(broker.url, tls=True) as proxy:
        connect(proxy, ssl_options=pika.SSLOptions(proxy.tls.client_context, "localhost")).close()


@pytest.mark.asyncio
async def test_proxy_runs_in_the_event_loop_of_the_test() -> None:
    async with Broker(runtime="asyncio") as broker, Proxy(broker.url, runtime="asyncio") as proxy:
        connection = await aio_pika.connect(proxy.url)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("q")
            proxy.faults.on("basic.publish").nack().once()
            with pytest.raises(aio_pika.exceptions.DeliveryError):
                await channel.default_exchange.publish(aio_pika.Message(b"refused"), "q")
            await channel.default_exchange.publish(aio_pika.Message(b"m"), "q")
            message = await queue.get()
            assert message.body == b"m"
            await message.ack()
        await proxy.expect_published.aio(routing_key="q", count=1)


@rows("scheme, to_tls", ("amqps", "ca.pem"), ("amqps", True), ("amqp", ssl.create_default_context()))
def test_to_tls_other_than_a_context_for_an_amqps_url_is_refused(scheme: str, to_tls: Any) -> None:
    with pytest.raises(BrokerError, match=r"to_tls is the ssl\.SSLContext for a broker with an amqps:// URL"):
        Proxy(f"{scheme}://rabbit/", to_tls=to_tls)


def test_proxy_to_a_broker_instead_of_its_url_is_refused(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="needs the URL of a broker"):
        Proxy(broker)  # type: ignore[arg-type]


@rows(
    "url, said",
    ("http://guest:secret@rabbit/", "'http://***@rabbit/' is no URL of a broker"),
    ("rabbit:5672", "'rabbit:5672' is no URL of a broker"),
    ("amqp://user:pa/ss@rabbit:5672/", "is no URL of a broker"),
    ("amqp://rabbit:99999/", "is no URL of a broker"),
    ("amqp://[::1/", "is no URL of a broker"),
    ([], "needs the URL of a broker"),
    ids=["http", "no scheme", "slash in password", "large port", "bracket", "none"],
)
def test_proxy_to_invalid_url_is_refused(url: Any, said: str) -> None:
    with pytest.raises(BrokerError, match=re.escape(said)):
        Proxy(url)
