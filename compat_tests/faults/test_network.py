"""A network that fails, as clients see it: over real sockets, with and without a client library."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pika
import pytest
from pika.exceptions import AMQPConnectionError, AMQPError, ConnectionClosedByBroker

from fakeamqp import Broker, FakeAMQPError

SECONDS = 20  # until a test that waits in vain gives up
HEADER = b"AMQP\x00\x00\x09\x01"


@pytest.fixture(params=["real", "virtual"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(clock=request.param) as broker:
        yield broker
        broker.faults.network.restore()
        works(broker)
    check(broker)


@pytest.fixture
def virtual() -> Iterator[Broker]:
    with Broker(clock="virtual") as broker:
        yield broker
        broker.faults.network.restore()
        works(broker)
    check(broker)


def check(broker: Broker) -> None:
    """Nothing is left of a broker that has stopped."""
    assert broker.admin.failures == ()
    assert broker._reader.read(lambda state: list(state.connections)) == []
    assert broker.faults.network._registry.proxies == ()
    assert not [each for each in threading.enumerate() if each.name == "fakeamqp"]


def works(broker: Broker) -> None:
    """The next client is served."""
    with closing(connect(broker)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"still here")
        assert channel.basic_get(queue, auto_ack=True)[2] == b"still here"


def connect(broker: Broker, name: str | None = None, heartbeat: int | None = None) -> pika.BlockingConnection:
    parameters = pika.URLParameters(broker.url)
    parameters.socket_timeout = parameters.blocked_connection_timeout = SECONDS
    parameters.stack_timeout = SECONDS
    if heartbeat is not None:
        parameters.heartbeat = heartbeat
    if name is not None:
        parameters.client_properties = {"connection_name": name}
    return pika.BlockingConnection(parameters)


def dial(broker: Broker) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), timeout=SECONDS)


def socket_of(connection: pika.BlockingConnection) -> socket.socket:
    sock: socket.socket = connection._impl._transport._sock
    return sock


def read_to_end(sock: socket.socket) -> tuple[bytes, str]:
    """All there is, and how it ended."""
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionResetError:
        return data, "reset"
    return data, "fin"


def untold(sock: socket.socket) -> bool:
    """Whether a client has nothing to read, not even an end."""
    return not select.select([sock], [], [], 0)[0]


def start_frame(broker: Broker) -> bytes:
    """What the broker says first."""
    with dial(broker) as sock:
        sock.sendall(HEADER)
        data = b""
        while len(data) < 7 or len(data) < int.from_bytes(data[3:7], "big") + 8:
            data += sock.recv(65536)
    return data


# --- who dials -----------------------------------------------------------------------------------------


def test_refused_port_gives_connection_refused_until_removed(broker: Broker) -> None:
    with closing(connect(broker)) as connection:
        fault = broker.faults.network.refuse()
        with pytest.raises(ConnectionRefusedError):
            dial(broker)
        with pytest.raises(AMQPConnectionError):
            connect(broker)
        connection.channel().queue_declare("who is in stays in")
    broker.restart()
    with pytest.raises(ConnectionRefusedError):
        dial(broker)
    fault.remove()
    works(broker)


def test_refusal_stays_in_force_over_stop_and_start() -> None:
    with Broker() as broker:
        port = broker.port
        fault = broker.faults.network.refuse()
        broker.stop()
        broker.start()
        assert broker.port == port
        with pytest.raises(ConnectionRefusedError):
            dial(broker)
        fault.remove()
        works(broker)
    check(broker)


@pytest.mark.parametrize(("how", "end"), [("close", "fin"), ("reset", "reset")])
def test_refused_connections_are_accepted_and_then_closed_or_reset(
    broker: Broker, how: str, end: str
) -> None:
    with closing(connect(broker)) as connection, broker.faults.network.refuse(how) as fault:
        for number in (1, 2):
            if end == "reset":
                with pytest.raises(ConnectionResetError), dial(broker) as sock:
                    sock.recv(1)
            else:
                with dial(broker) as sock:
                    assert sock.recv(1) == b""
            fault.wait(number, SECONDS)
        connection.channel()
    works(broker)


def test_hanging_broker_answers_after_the_hang_is_removed(broker: Broker) -> None:
    with dial(broker) as before:
        before.sendall(HEADER[:4])
        with broker.faults.network.hang() as fault, dial(broker) as sock:
            fault.wait(timeout=SECONDS)
            before.sendall(HEADER[4:])
            sock.sendall(HEADER)
            broker.wait_until_idle()
            assert untold(sock) and untold(before)
            fault.remove()
            assert sock.recv(1) == before.recv(1) == b"\x01"


# --- ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "end"), [("reset", "reset"), ("disconnect", "fin")])
def test_reset_and_disconnect_end_a_connection_at_once(broker: Broker, call: str, end: str) -> None:
    with dial(broker) as sock:
        sock.sendall(HEADER)
        start = sock.recv(65536)
        assert start[0] == 1
        fault = getattr(broker.faults.network, call)()
        assert (read_to_end(sock), fault.hits) == ((b"", end), 1)


@pytest.mark.parametrize("call", ["reset", "disconnect"])
def test_unacked_message_of_an_ended_connection_is_requeued(broker: Broker, call: str) -> None:
    connection = connect(broker)
    channel = connection.channel()
    channel.queue_declare("q")
    broker.publish(b"x", routing_key="q")
    assert channel.basic_get("q")[2] == b"x"
    getattr(broker.faults.network, call)()
    assert (broker.queue("q").ready, broker.queue("q").unacked) == (1, 0)
    assert broker.connections == ()
    with pytest.raises(AMQPError):
        channel.queue_declare("q")


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 9, 100])
def test_cut_passes_the_given_number_of_bytes_and_ends_the_connection(
    broker: Broker, how: str, count: int
) -> None:
    start = start_frame(broker)
    with broker.faults.network.cut_after(bytes=count, how=how) as fault, dial(broker) as sock:
        sock.sendall(HEADER)
        assert read_to_end(sock) == (start[:count], how)
        assert fault.hits == 1


def test_publish_cut_before_its_body_is_not_stored(broker: Broker) -> None:
    connection = connect(broker)
    channel = connection.channel()
    channel.queue_declare("q")
    with broker.faults.network.cut_after(frames=2, direction="received") as fault:
        with suppress(AMQPError):
            channel.basic_publish("", "q", b"method and header arrive, the body does not")
        fault.wait(timeout=SECONDS)
    assert broker.queue("q").ready == 0
    assert broker.connections == ()
    with pytest.raises(AMQPError):
        connection.close()


def test_publish_is_stored_if_its_connection_is_cut_before_the_confirm(broker: Broker) -> None:
    connection = connect(broker)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q")
    cut = broker.faults.network.cut_after(frames=3, direction="received", how="reset")
    with cut, pytest.raises(AMQPConnectionError):
        channel.basic_publish("", "q", b"x")
    assert [each.body for each in broker.queue("q").messages] == [b"x"]


def test_cut_on_a_tls_connection_counts_bytes_of_amqp() -> None:
    import ssl

    with Broker(tls=True) as broker:
        plain = broker.connect()
        plain.settimeout(SECONDS)
        with plain:
            plain.sendall(HEADER)
            start = plain.recv(65536)
        context = broker.tls.client_context
        for how in ("fin", "reset"):
            with (
                broker.faults.network.cut_after(bytes=10, how=how),
                context.wrap_socket(
                    dial(broker), server_hostname="localhost", suppress_ragged_eofs=False
                ) as sock,
            ):
                sock.sendall(HEADER)
                data, end = b"", "fin"
                try:
                    while piece := sock.recv(65536):
                        data += piece
                except (ConnectionResetError, ssl.SSLEOFError):  # which of them depends on OpenSSL
                    end = "reset"
                assert (data, end) == (start[:10], how)
    check(broker)


# --- half-open -------------------------------------------------------------------------------------------


def test_silenced_connection_ends_when_heartbeats_are_missed(virtual: Broker) -> None:
    connection = connect(virtual, heartbeat=10)
    channel = connection.channel()
    channel.queue_declare("q")
    virtual.publish(b"x", routing_key="q")
    channel.basic_get("q")
    silence = virtual.faults.network.silence()
    assert silence.hits == 1
    virtual.clock.advance(19)
    assert virtual.queue("q").unacked == 1
    virtual.clock.advance(11)
    assert (virtual.queue("q").ready, virtual.queue("q").unacked) == (1, 0)
    assert virtual.connections == ()
    assert untold(socket_of(connection)), "the client is not told"
    silence.remove()
    with pytest.raises(AMQPError):
        channel.queue_declare("q")


def test_broker_does_not_see_the_end_of_a_silenced_client(broker: Broker) -> None:
    connection = connect(broker)
    channel = connection.channel()
    channel.queue_declare("q")
    broker.publish(b"x", routing_key="q")
    channel.basic_get("q")
    with broker.faults.network.silence():
        socket_of(connection).shutdown(socket.SHUT_RDWR)
        broker.wait_until_idle()
        assert broker.queue("q").unacked == 1
        assert len(broker.connections) == 1
    broker.queue("q").wait_for(ready=1, unacked=0, timeout=SECONDS)
    with suppress(AMQPError):
        connection.close()


def test_held_messages_pass_in_both_directions_after_a_silence(broker: Broker) -> None:
    with closing(connect(broker)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_consume("q", lambda *_: channel.stop_consuming(), auto_ack=True)
        with broker.faults.network.on(broker.connections[0]).silence():
            channel.basic_publish("", "q", b"from the client")
            broker.publish(b"to the client", routing_key="q")
            broker.wait_until_idle()
            assert untold(socket_of(connection))
            assert [each.body for each in broker.published.with_own] == [b"to the client"]
        connection.call_later(SECONDS, channel.stop_consuming)
        channel.start_consuming()
        broker.expect_published(body=b"from the client", timeout=SECONDS)


# --- slow ------------------------------------------------------------------------------------------------


def test_single_clock_advance_delivers_a_message_through_two_latencies(virtual: Broker) -> None:
    publisher, consumer = connect(virtual, "publisher"), connect(virtual, "consumer")
    with closing(publisher), closing(consumer):
        channel = publisher.channel()
        channel.queue_declare("q")
        receiving = consumer.channel()
        got: list[bytes] = []
        receiving.basic_consume("q", lambda _c, _m, _p, body: got.append(body), auto_ack=True)
        with virtual.faults.network.latency(1) as fault:
            channel.basic_publish("", "q", b"x" * 100)
            fault.wait(100, SECONDS)
            virtual.wait_until_idle()
            virtual.clock.advance(2)
            while not got:
                consumer.process_data_events(time_limit=SECONDS)
        assert got == [b"x" * 100]


def test_broker_stops_delivering_when_latency_holds_many_bytes(virtual: Broker) -> None:
    with closing(connect(virtual)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        for _ in range(300):
            virtual.publish(b"x" * 10_000, routing_key="q")
        virtual.faults.network.latency(60, direction="sent")
        channel._impl.basic_consume("q", lambda *_: None, auto_ack=True)
        connection._flush_output()
        virtual.queue("q").wait_for(consumers=1, timeout=SECONDS)
        virtual.wait_until_idle()
        assert 150 < virtual.queue("q").ready < 250
        virtual.faults.network.restore()
        with suppress(FakeAMQPError):
            virtual.queue("q").wait_for(ready=0, timeout=0)


# --- one connection only ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["name", "handle", "connection name", "alias"])
def test_reset_of_a_named_connection_keeps_other_connections(broker: Broker, how: str) -> None:
    with closing(connect(broker, "shipping")) as shipping:
        billing = connect(broker, "billing")
        handle = broker.connections[1]
        said = {"name": handle.name, "handle": handle, "connection name": "billing", "alias": "c2"}[how]
        assert broker.faults.network.on(said).reset().hits == 1
        with pytest.raises(AMQPError):
            billing.channel()
        shipping.channel()


# --- the broker itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["silence", "hang", "latency", "bandwidth"])
def test_network_fault_stays_in_force_after_restart_and_stop(virtual: Broker, call: str) -> None:
    network = virtual.faults.network
    connection = connect(virtual)
    arguments = {"latency": (60,), "bandwidth": (1,)}.get(call, ())
    fault = getattr(network, call)(*arguments)
    virtual.restart()
    assert virtual.connections == ()
    hits = fault.hits
    with dial(virtual) as sock:
        sock.sendall(HEADER)
        fault.wait(hits + 1, SECONDS)
        virtual.wait_until_idle()
        assert untold(sock), "the fault is in force after a restart"
        virtual.stop()
        assert read_to_end(sock)[0] == b""
    assert virtual._reader.read(lambda state: len(state.timers)) == 0
    with suppress(AMQPError):
        connection.close()
    virtual.start()
    hits = fault.hits
    with dial(virtual) as sock:
        sock.sendall(HEADER)
        fault.wait(hits + 1, SECONDS)
        virtual.wait_until_idle()
        assert untold(sock), "and after a stop"


def test_connection_close_of_a_stopping_broker_passes_in_slices() -> None:
    with Broker() as broker:
        connection = connect(broker)
        broker.faults.network.slice(1, direction="sent")
        broker.stop()
        with pytest.raises(ConnectionClosedByBroker, match="CONNECTION_FORCED"):
            connection.process_data_events(time_limit=SECONDS)
    check(broker)


def test_connections_are_unwrapped_when_the_last_network_fault_is_removed(broker: Broker) -> None:
    with closing(connect(broker)) as connection:
        fault = broker.faults.network.slice(1)
        connection.channel()
        with broker._engine:
            assert all(driver.wrapping is not None for driver in broker._engine._loop.drivers)
        fault.remove()
        with broker._engine:
            assert all(driver.wrapping is None for driver in broker._engine._loop.drivers)
        connection.channel()
        broker.faults.network.on("somebody else").latency(1).remove()
        with broker._engine:
            assert all(driver.wrapping is None for driver in broker._engine._loop.drivers)
