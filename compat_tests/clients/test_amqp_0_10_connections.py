"""Ways to the broker: transports, logins, virtual hosts, heartbeats; the broker as a program of its own."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import pytest

from compat_tests.cli.test_serve import serving
from compat_tests.clients.amqp_0_10.checks import drained, inbox
from compat_tests.clients.amqp_0_10.client import (
    Connection,
    ConnectionClosed,
    ConnectionLost,
    Redirected,
    connect,
    connect_over,
)
from compat_tests.clients.reach import Reach
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec.constants import CloseCode


def works(connection: Connection, name: str = "works") -> None:
    """A message of some size goes to the broker and comes back."""
    body = bytes(range(256)) * 1000
    session = connection.session(name.encode())
    session.declare(name, exclusive=True, auto_delete=True)
    session.publish(body, key=name, headers={"octets": len(body)})
    inbox(session, name)
    message = session.get(name)
    assert (message.body, message.headers) == (body, {"octets": len(body)})
    session.accept(message)
    session.close()


def test_over_tcp_and_tls_and_intercepted(reach: Reach) -> None:
    with connect(host=reach.host, port=reach.port, tls=reach.context) as connection:
        works(connection)


def test_tls_and_socketpair_connections_work_at_the_same_time() -> None:
    with Broker(seed=1, tls=True) as broker:
        with (
            connect_over(broker.connect()) as pair,
            connect(broker, tls=broker.tls.client_context) as one,
            connect(broker, tls=broker.tls.client_context) as two,
        ):
            for number, connection in enumerate((pair, one, two)):
                works(connection, f"works {number}")
            sessions = [connection.session(b"%d" % n) for n, connection in enumerate((pair, one, two))]
            for session in sessions:
                session.declare("q")
                session.subscribe("q", "d", credit=1)
            for body in (b"1", b"2", b"3"):
                sessions[0].publish(body, key="q")
            assert sorted(session.get("d").body or b"" for session in sessions) == [b"1", b"2", b"3"]
        assert broker.admin.failures == ()


def test_the_broker_is_a_program_of_its_own() -> None:
    with serving("--port", "0") as (_, _, port), connect(port=port) as one, connect(port=port) as two:
        works(one)
        session = one.session(b"one")
        session.declare("q")
        inbox(session, "q")
        two.session(b"two").publish(b"from another connection", key="q")
        assert session.get("q").body == b"from another connection"


def test_terminated_server_program_closes_connections_with_connection_forced() -> None:
    with serving("--port", "0") as (process, _, port):
        connection = connect(port=port)
        session = connection.session(b"session", timeout=60)
        process.terminate()
        with pytest.raises(ConnectionClosed) as closed:
            session.get("nothing comes")
        assert closed.value.code == CloseCode.CONNECTION_FORCED
        process.wait()


def test_publishing_and_consuming_20_megabytes_at_once_does_not_deadlock(broker: Broker) -> None:
    """What is sent comes back while more is sent, and is far more than the sockets hold."""
    with connect(broker) as connection:
        session = connection.session(b"session")
        session.declare("q")
        session.subscribe("q", "d", accept_mode=1)
        bodies = [bytes([number]) * 200_000 for number in range(100)]
        for body in bodies:
            session.publish(body, key="q", wait=False)
        assert drained(session, "d") == bodies


# --- logins -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "CRAM-MD5", "ANONYMOUS"])
def test_login_succeeds_with_each_offered_sasl_mechanism(broker: Broker, mechanism: str) -> None:
    with connect(broker, mechanism=mechanism) as connection:
        assert mechanism in (connection.start.mechanisms or ())
        works(connection)
        assert broker.connections[0].user == "guest"


def test_login_by_client_certificate_uses_its_user(nothing_is_left: None) -> None:
    with Broker(tls=True, users={"orders": "secret"}) as broker:
        context = broker.tls.client_certificate("orders").context
        with connect(broker, tls=context, mechanism="EXTERNAL") as connection:
            works(connection)
            assert broker.connections[0].user == "orders"


# --- while it lasts -----------------------------------------------------------------------------------------


def test_redirected_client_can_connect_to_the_named_host_or_insist(broker: Broker) -> None:
    with Broker() as elsewhere:
        with broker.faults.redirect(f"{elsewhere.host}:{elsewhere.port}"):
            with pytest.raises(Redirected) as redirected:
                connect(broker)
            with connect(broker, insist=True) as connection:
                works(connection)
        host, _, port = redirected.value.host.partition(":")
        with connect(host=host, port=int(port)) as connection:
            works(connection)


@pytest.mark.parametrize("end", [Broker.stop, Broker.restart])
def test_the_broker_says_why_it_closes_a_connection(broker: Broker, end: Callable[[Broker], None]) -> None:
    session = connect(broker).session(b"session")
    end(broker)
    with pytest.raises(ConnectionClosed) as closed:
        session.sync()
    assert closed.value.code == CloseCode.CONNECTION_FORCED


def test_a_crash_is_silent(broker: Broker) -> None:
    session = connect(broker).session(b"session")
    broker.restart(crash=True)
    with pytest.raises(ConnectionLost):
        session.sync()


def test_the_certificate_is_checked(nothing_is_left: None) -> None:
    with Broker(tls=True) as broker, pytest.raises(ssl.SSLCertVerificationError):
        connect(broker, tls=ssl.create_default_context())
