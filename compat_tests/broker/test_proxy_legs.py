"""`Proxy` between peers that fail: who is told, in what words, and that nothing stays open."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pika
import pytest
from pika.exceptions import AMQPConnectionError

from fakeamqp import Broker, Proxy
from fakeamqp.runtime.tls import ServerTLS

pytestmark = pytest.mark.threads_only

HEADER = b"AMQP\0\0\x09\x01"
START_OF_START = b"\1\0\0\0\0\1\x00\0\x0a\0\x0a"
"""The beginning of a connection.start, which never ends."""
SECONDS = 20


@contextmanager
def upstream(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """A broker for one connection, which `serve` has; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.settimeout(SECONDS)
                serve(accepted)

        thread = threading.Thread(target=accept)
        thread.start()
        host, port = listener.getsockname()
        yield f"amqp://guest:guest@{host}:{port}/%2F"
        thread.join(SECONDS)
        assert not thread.is_alive()


def all_of(peer: socket.socket) -> bytes:
    """What comes until the peer ends the transport."""
    octets = b""
    while part := peer.recv(65536):
        octets += part
    return octets


def dial(proxy: Proxy) -> socket.socket:
    client = socket.create_connection((proxy.host, proxy.port), timeout=SECONDS)
    client.sendall(HEADER)
    return client


def connect(proxy: Proxy) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(proxy.url))


def nothing_is_left(proxy: Proxy) -> None:
    proxy.wait_for(lambda: not proxy.connections)
    assert proxy.admin.failures == ()


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the broker sent a frame of type 72"),
        (b"\1\0\0\0\0\0\4\0\x0a\0\x0bX", "the broker sent a frame that ends with 0x58"),
        (b"\1\0\0\xff\xff\xff\xff", "the broker sent a frame of type 1 with 4294967295 bytes"),
    ],
    ids=["no AMQP", "frame end", "size"],
)
def test_malformed_bytes_of_the_broker_reach_the_client_and_the_log(
    octets: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    def serve(peer: socket.socket) -> None:
        assert peer.recv(8) == HEADER
        peer.sendall(octets)

    with upstream(serve) as url, Proxy(url) as proxy:
        with dial(proxy) as client:
            assert all_of(client) == octets
        nothing_is_left(proxy)
        assert said in caplog.text
        assert said in proxy.trace.timeline()


def test_client_gets_the_part_of_a_frame_with_which_a_broker_vanishes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def serve(peer: socket.socket) -> None:
        assert peer.recv(8) == HEADER  # With unread input, its end would be a reset.
        peer.sendall(START_OF_START)

    with upstream(serve) as url, Proxy(url) as proxy:
        with dial(proxy) as client:
            assert all_of(client) == START_OF_START
        nothing_is_left(proxy)
        assert "lost: the broker has ended the transport" in proxy.trace.timeline()


def test_connection_to_a_broker_that_never_answers_ends_with_its_client() -> None:
    ended = threading.Event()

    def serve(peer: socket.socket) -> None:
        assert all_of(peer) == HEADER
        ended.set()

    with upstream(serve) as url, Proxy(url) as proxy:
        dial(proxy).close()
        assert ended.wait(SECONDS)
        nothing_is_left(proxy)


def test_stop_ends_a_connection_to_a_broker_that_never_answers() -> None:
    with upstream(all_of) as url, Proxy(url) as proxy:
        client = dial(proxy)
        proxy.wait_for(lambda: proxy.connections)
    with client:
        all_of(client)


def test_client_that_sends_no_header_holds_no_connection_after_its_end() -> None:
    with Broker() as broker, Proxy(broker.url) as proxy:
        with socket.create_connection((proxy.host, proxy.port)) as client:
            client.sendall(HEADER[:3])
            proxy.wait_for(lambda: proxy.connections)
        nothing_is_left(proxy)
        broker.wait_for(lambda: not broker.connections)


def test_reset_of_the_client_ends_the_connection_to_the_broker() -> None:
    with Broker() as broker, Proxy(broker.url) as proxy:
        client = dial(proxy)
        client.recv(1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        nothing_is_left(proxy)
        broker.wait_for(lambda: not broker.connections)


def test_client_is_told_that_the_broker_speaks_no_tls(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker, Proxy(broker.url.replace("amqp://", "amqps://")) as proxy:
        with pytest.raises(AMQPConnectionError, match=f"the proxy has no broker: .*{broker.port} \\(TLS\\)"):
            connect(proxy)
        nothing_is_left(proxy)
    assert f"no connection to the broker: 127.0.0.1:{broker.port} (TLS)" in caplog.text


def test_client_is_told_that_the_certificate_of_the_broker_is_not_trusted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = ServerTLS.throwaway()
    with Broker(tls=True) as broker, Proxy(broker.url, to_tls=other.client_context) as proxy:
        with pytest.raises(AMQPConnectionError, match=r"the proxy has no broker: .*certificate"):
            connect(proxy)
        nothing_is_left(proxy)
    other.close()
    assert "certificate" in caplog.text


def test_client_is_told_that_the_broker_closes_without_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(tls=True) as broker, Proxy(broker.url.replace("amqps://", "amqp://")) as proxy:
        with pytest.raises(
            AMQPConnectionError, match=r"closed the connection without an answer; if .* amqps://"
        ):
            connect(proxy)
        nothing_is_left(proxy)
    assert "no connection to the broker: it has closed the connection without an answer" in caplog.text


def test_client_is_told_that_the_broker_answers_with_a_tls_alert() -> None:
    def serve(peer: socket.socket) -> None:
        peer.recv(8)
        peer.sendall(b"\x15\3\3\0\2\2\x0a")

    with upstream(serve) as url, Proxy(url) as proxy:
        with pytest.raises(AMQPConnectionError, match=r"TLS alert; .* amqps://"):
            connect(proxy)
        nothing_is_left(proxy)
