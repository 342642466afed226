"""Connections of AMQP 1.0 over real sockets: TLS, SASL EXTERNAL, virtual hosts and idle time-outs."""

from __future__ import annotations

from typing import Any

import pytest

from fakeamqp import Broker, User

proton = pytest.importorskip("proton")
utils = pytest.importorskip("proton.utils")
handlers = pytest.importorskip("proton.handlers")
reactor = pytest.importorskip("proton.reactor")


def secured(broker: Broker, user: str | None = None) -> Any:
    """What proton needs for TLS; with a client certificate of a user, if one is named."""
    domain = proton.SSLDomain(proton.SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(broker.tls.ca_file)
    domain.set_peer_authentication(proton.SSLDomain.VERIFY_PEER)
    if user is not None:
        certificate = broker.tls.client_certificate(user)
        domain.set_credentials(certificate.certificate, certificate.key, None)
    return domain


def test_proton_publishes_over_tls() -> None:
    with Broker(tls=True) as broker:
        url = f"amqps://guest:guest@localhost:{broker.port}"
        connection = utils.BlockingConnection(url, ssl_domain=secured(broker), timeout=10)
        connection.create_sender("/exchanges/amq.fanout")
        [view] = broker.connections
        assert view.protocol == "1-0"
        connection.close()


def test_proton_logs_in_with_its_client_certificate() -> None:
    with Broker(tls=True, users=(User("orders"),)) as broker:
        url = f"amqps://localhost:{broker.port}"
        connection = utils.BlockingConnection(
            url, ssl_domain=secured(broker, "orders"), allowed_mechs="EXTERNAL", timeout=10
        )
        assert [view.user for view in broker.connections] == ["orders"]
        connection.close()


def test_proton_opens_the_virtual_host_that_its_hostname_names() -> None:
    with Broker(virtual_hosts=["orders"]) as broker:
        url = f"amqp://guest:guest@127.0.0.1:{broker.port}"
        connection = utils.BlockingConnection(url, virtual_host="vhost:orders", timeout=10)
        assert [view.virtual_host for view in broker.connections] == ["orders"]
        connection.close()


def test_proton_is_told_why_the_broker_closes_its_connection() -> None:
    with Broker() as broker:
        url = f"amqp://guest:guest@127.0.0.1:{broker.port}"
        connection = utils.BlockingConnection(url, timeout=10)
        broker.restart()
        with pytest.raises(proton.ConnectionException, match=r"amqp:internal-error.*Connection forced"):
            connection.create_sender("/exchanges/amq.fanout")
        connection.close()


class Reconnecting(handlers.MessagingHandler):  # type: ignore[misc, name-defined]
    """A consumer that notes what it gets: the broker crashes at the first message, and sends one more."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self.bodies: list[bytes] = []

    def on_start(self, event: Any) -> None:
        url = f"amqp://guest:guest@127.0.0.1:{self._broker.port}"
        self.connection = event.container.connect(url, reconnect=[0.01])
        event.container.create_receiver(self.connection, "/queues/q")

    def on_message(self, event: Any) -> None:
        self.bodies.append(bytes(event.message.body))
        if len(self.bodies) == 1:
            self.accept(event.delivery)
            self._broker.restart(crash=True)  # Proton does not reconnect where the broker has said close.
            self._broker.publish(b"after", routing_key="q")
        elif self.bodies[-1] == b"after":
            event.connection.close()


def test_proton_consumer_reconnects_after_a_crash_of_the_broker() -> None:
    with Broker(definitions={"queues": [{"name": "q", "vhost": "/", "durable": True}]}) as broker:
        broker.publish(b"before", routing_key="q")
        consumer = Reconnecting(broker)
        reactor.Container(consumer).run()
    assert set(consumer.bodies) == {b"before", b"after"}
