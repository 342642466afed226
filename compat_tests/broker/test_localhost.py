"""`Broker(host="localhost")`: clients reach it on 127.0.0.1 and on ::1."""

from __future__ import annotations

import socket

import pika
import pytest

from compat_tests.tools.loopback import LOOPBACK, free_port, needs_ipv6
from fakeamqp import Broker
from fakeamqp.errors import PortInUse

pytestmark = needs_ipv6


def connect(broker: Broker, host: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters(host, broker.port))


def refused(broker: Broker) -> list[str]:
    """The loopback addresses that refuse a connection to the broker's port."""
    hosts = []
    for host in LOOPBACK:
        try:
            socket.create_connection((host, broker.port), timeout=20).close()
        except ConnectionRefusedError:
            hosts.append(host)
    return hosts


def test_both_addresses_lead_to_the_same_broker() -> None:
    with Broker(host="localhost") as broker:
        assert broker.host == "127.0.0.1"
        assert broker.url == f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F"
        with connect(broker, "127.0.0.1") as one, connect(broker, "::1") as other:
            one.channel().queue_declare("q")
            other.channel().queue_declare("q", passive=True)
            assert len(broker.connections) == 2
    assert refused(broker) == list(LOOPBACK)


def test_by_default_a_broker_listens_on_ipv4_only() -> None:
    with Broker() as broker:
        assert refused(broker) == ["::1"]


def test_a_connection_over_ipv6_is_named_as_rabbitmq_names_it() -> None:
    with Broker(host="localhost") as broker, connect(broker, "::1") as connection:
        host, port, *_ = connection._impl._transport._sock.getsockname()
        assert [each.name for each in broker.connections] == [f"[{host}]:{port} -> [::1]:{broker.port}"]


def test_a_restart_keeps_both_addresses() -> None:
    with Broker(host="localhost") as broker:
        port = broker.port
        broker.restart()
        assert (broker.port, refused(broker)) == (port, [])
        broker.stop()
        assert refused(broker) == list(LOOPBACK)
        broker.start()
        assert (broker.port, refused(broker)) == (port, [])


def test_refuse_fault_applies_to_both_loopback_addresses() -> None:
    with Broker(host="localhost") as broker:
        with broker.faults.network.refuse():
            assert refused(broker) == list(LOOPBACK)
        assert refused(broker) == []


def test_refusing_broker_still_refuses_after_a_restart() -> None:
    with Broker(host="localhost") as broker:
        refusing = broker.faults.network.refuse()
        broker.restart()
        assert refused(broker) == list(LOOPBACK)
        refusing.remove()
        assert refused(broker) == []


def test_port_in_use_on_ipv6_is_an_error_and_leaves_ipv4_closed() -> None:
    port = free_port()
    with socket.create_server(("::1", port), family=socket.AF_INET6):
        broker = Broker(host="localhost", port=port)
        with pytest.raises(PortInUse, match="on ::1 is in use"):
            broker.start()
        assert not broker.running
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=20)


def test_tls_clients_connect_on_both_loopback_addresses() -> None:
    with Broker(host="localhost", tls=True) as broker:
        for host in LOOPBACK:
            options = pika.SSLOptions(broker.tls.client_context, host)
            parameters = pika.ConnectionParameters(host, broker.port, ssl_options=options)
            with pika.BlockingConnection(parameters) as connection:
                assert connection.is_open


@pytest.mark.parametrize("host", LOOPBACK)
def test_both_families_are_intercepted(host: str) -> None:
    with (
        Broker(host="localhost") as broker,
        broker.intercept("localhost:5672"),
        pika.BlockingConnection(pika.ConnectionParameters(host, 5672)) as connection,
    ):
        assert connection.is_open
