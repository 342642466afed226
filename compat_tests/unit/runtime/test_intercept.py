"""Interception: real clients dial an address that is not the broker's and reach it."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.clients.forgotten import forgotten_sockets_closed
from compat_tests.unit.runtime.fakes import SECONDS, EchoConnection, Echoes, PortEngine, real_engine
from fakeamqp.runtime import InterceptError
from fakeamqp.runtime.intercept import Intercept

ORIGINALS = (socket.getaddrinfo, socket.socket.connect, socket.socket.connect_ex)


class Turnstile(EchoConnection):
    """Reads a protocol header and ends the connection: enough to see that a client has arrived."""

    def on_data(self, data: bytes) -> None:
        if len(self.received) >= 8:
            self.finish()


@pytest.fixture
def visitors() -> Echoes:
    return Echoes(Turnstile)


@pytest.fixture
def stub(visitors: Echoes) -> Iterator[PortEngine]:
    engine = real_engine(visitors)
    engine.start()
    engine.listen()
    yield engine
    engine.stop()
    assert engine.failures == []
    assert (socket.getaddrinfo, socket.socket.connect, socket.socket.connect_ex) == ORIGINALS
    assert "connect" not in vars(socket.socket) and "connect_ex" not in vars(socket.socket)


def arrived(engine: PortEngine, visitors: Echoes, header: bytes = b"AMQP\x00\x00\x09\x01") -> bool:
    return engine.wait_until(lambda: any(each.received[:8] == header for each in visitors.accepted), SECONDS)


def intercepting(stub: PortEngine, *targets: str) -> Intercept:
    return Intercept(targets, stub.listeners[0].address)


# A name that does not exist, a numeric address that is not routed, and an IPv6 one.
HOSTS = ["rabbit.prod.invalid", "192.0.2.5", "2001:db8::5"]


def target(host: str, port: int = 5672) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def pika_blocking(host: str) -> None:
    pika = pytest.importorskip("pika")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(pika.ConnectionParameters(host, 5672, socket_timeout=SECONDS))


def pika_select(host: str) -> None:
    pika = pytest.importorskip("pika")
    connection = pika.SelectConnection(
        pika.ConnectionParameters(host, 5672, socket_timeout=SECONDS),
        on_open_error_callback=lambda connection, _error: connection.ioloop.stop(),
    )
    connection.ioloop.start()
    connection.ioloop.close()


def aio_pika(host: str) -> None:
    aio_pika = pytest.importorskip("aio_pika")

    async def main() -> None:
        async with forgotten_sockets_closed():
            with pytest.raises(Exception):  # noqa: B017 - which one depends on how far it came
                await aio_pika.connect(host=host, port=5672, timeout=SECONDS)

    asyncio.run(main())


def py_amqp(host: str) -> None:
    amqp = pytest.importorskip("amqp")
    connection = amqp.Connection(f"[{host}]:5672" if ":" in host else f"{host}:5672", connect_timeout=SECONDS)
    with pytest.raises((OSError, amqp.exceptions.AMQPError)):
        connection.connect()
    connection.collect()


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("client", [pika_blocking, pika_select, aio_pika, py_amqp])
def test_intercepted_clients_reach_the_broker(
    stub: PortEngine, visitors: Echoes, client: Callable[[str], None], host: str
) -> None:
    if client is aio_pika and ":" in host:
        host = "rabbit.other.invalid"  # its URLs do not carry a bare IPv6 address
    with intercepting(stub, target(host)):
        client(host)
        assert arrived(stub, visitors)


def test_other_addresses_are_untouched(stub: PortEngine, visitors: Echoes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with intercepting(stub, "rabbit.prod.invalid:5672", "192.0.2.5:5672"):
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
                assert client.getpeername()[1] == port
            with pytest.raises(socket.gaierror):
                socket.getaddrinfo("other.prod.invalid", 5672)
            with pytest.raises(socket.gaierror):
                socket.getaddrinfo("rabbit.prod.invalid", 5673)
    assert visitors.accepted == []


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs unix sockets")
def test_unix_sockets_are_untouched(stub: PortEngine, tmp_path: Any) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        with intercepting(stub, "rabbit.prod.invalid:5672"):
            client.connect(path)
            assert client.getpeername() == path


def test_connect_with_a_host_name_is_intercepted(stub: PortEngine, visitors: Echoes) -> None:
    with intercepting(stub, "Rabbit.Prod.invalid.:5672"), socket.socket() as client:
        client.settimeout(SECONDS)
        client.connect(("rabbit.PROD.invalid", 5672))
        client.sendall(b"12345678")
        assert client.recv(1) == b""
    assert visitors.accepted[0].received == b"12345678"


def test_connect_ex_on_a_non_blocking_socket_is_intercepted(stub: PortEngine) -> None:
    with intercepting(stub, "192.0.2.5:5672"), socket.socket() as client:
        client.setblocking(False)
        assert client.connect_ex(("192.0.2.5", 5672)) in (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
        assert select.select([], [client], [], SECONDS)[1]
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert client.getpeername() == stub.listeners[0].address


@pytest.mark.parametrize("port", [5672, "5672", b"5672"])
@pytest.mark.parametrize("host", ["rabbit.prod.invalid", b"rabbit.prod.invalid"])
def test_getaddrinfo_with_host_and_port_of_any_type_is_intercepted(
    stub: PortEngine, host: Any, port: Any
) -> None:
    with intercepting(stub, "rabbit.prod.invalid:5672"):
        infos = socket.getaddrinfo(host=host, port=port, type=socket.SOCK_STREAM)
        assert [info[4] for info in infos] == [stub.listeners[0].address]
        (info,) = socket.getaddrinfo(host, port, socket.AF_INET6, socket.SOCK_STREAM)
        assert info[0] == socket.AF_INET6
        with socket.socket(info[0]) as client:
            client.settimeout(SECONDS)
            client.connect(info[4])  # an IPv4 listener is reached through IPv6 as well


def test_getaddrinfo_for_a_listening_socket_is_not_intercepted(stub: PortEngine) -> None:
    with intercepting(stub, "localhost:5672"):
        infos = socket.getaddrinfo("localhost", 5672, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        assert {info[4][1] for info in infos} == {5672}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_localhost_interception_covers_the_loopback_addresses(stub: PortEngine, host: str) -> None:
    with intercepting(stub, "localhost:5672"), socket.create_connection((host, 5672), SECONDS) as client:
        assert client.getpeername()[1] == stub.listeners[0].port


def test_last_of_nested_interceptions_wins_and_each_ends_independently(stub: PortEngine) -> None:
    other = stub.listen()
    outer = intercepting(stub, "a.invalid:5672", "b.invalid:5672")
    inner = Intercept("b.invalid:5672", other.address)

    def reached(host: str) -> int:
        with socket.create_connection((host, 5672), timeout=SECONDS) as client:
            return int(client.getpeername()[1])

    with outer:
        with inner:
            assert reached("a.invalid") == stub.listeners[0].port
            assert reached("b.invalid") == other.port
        assert reached("b.invalid") == stub.listeners[0].port
        with outer:
            pass
        assert reached("a.invalid") == stub.listeners[0].port
        inner.__enter__()
    # Not last in, first out: two fixtures need not end in the order in which they began.
    assert reached("b.invalid") == other.port
    with pytest.raises(socket.gaierror):
        reached("a.invalid")
    inner.__exit__(None, None, None)


def test_socket_functions_are_restored_after_an_error(stub: PortEngine) -> None:
    with pytest.raises(LookupError), intercepting(stub, "a.invalid:5672"):
        assert socket.getaddrinfo is not ORIGINALS[0]
        raise LookupError
    assert socket.getaddrinfo is ORIGINALS[0]


def test_later_patch_of_getaddrinfo_survives_the_end_of_the_interception(stub: PortEngine) -> None:
    try:
        with intercepting(stub, "a.invalid:5672"):
            ours = socket.getaddrinfo
            socket.getaddrinfo = theirs = lambda *args, **kwargs: ours(*args, **kwargs)
        assert socket.getaddrinfo is theirs
        assert socket.getaddrinfo("127.0.0.1", 1) == ORIGINALS[0]("127.0.0.1", 1)
        with pytest.raises(socket.gaierror):
            socket.getaddrinfo("a.invalid", 5672)
        with intercepting(stub, "a.invalid:5672"):
            assert socket.getaddrinfo("a.invalid", 5672)
    finally:
        socket.getaddrinfo = ORIGINALS[0]


def test_connect_of_a_subclass_replacing_socket_socket_is_intercepted(
    stub: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Guarded(socket.socket):
        pass

    monkeypatch.setattr(socket, "socket", Guarded)
    with intercepting(stub, "192.0.2.5:5672"), Guarded() as client:
        client.settimeout(SECONDS)
        client.connect(("192.0.2.5", 5672))
        assert client.getpeername() == stub.listeners[0].address
    monkeypatch.undo()


def test_interceptions_work_in_several_threads_at_once(stub: PortEngine) -> None:
    failures: list[BaseException] = []
    address = stub.listeners[0].address

    def work(number: int) -> None:
        try:
            for _ in range(20):
                host = f"host-{number}.invalid"
                with Intercept(f"{host}:5672", address), socket.create_connection((host, 5672), SECONDS):
                    pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("host", ["rabbit.prod.example", "192.0.2.5"])
def test_tls_keeps_the_client_s_server_name(stub: PortEngine, visitors: Echoes, host: str) -> None:
    pytest.importorskip("trustme")
    from fakeamqp.runtime.tls import ServerTLS

    tls = ServerTLS.throwaway([host])
    listener = stub.listen(tls=tls)

    async def talk() -> None:
        _reader, writer = await asyncio.open_connection(host, 5671, ssl=tls.client_context)
        writer.write(b"12345678")
        writer.close()
        await writer.wait_closed()

    with Intercept(target(host, 5671), listener.address):
        asyncio.run(asyncio.wait_for(talk(), SECONDS))
        assert arrived(stub, visitors, b"12345678")
        with (
            socket.create_connection((host, 5671), timeout=SECONDS) as sock,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            ssl.create_default_context().wrap_socket(sock, server_hostname=host)
        with ssl.create_default_context(cafile=tls.ca_file).wrap_socket(
            socket.socket(), server_hostname=host
        ) as client:
            client.settimeout(SECONDS)
            client.connect((host, 5671))
    tls.close()


@pytest.mark.parametrize(
    "text",
    ["", "rabbit", "rabbit:", ":5672", "rabbit:amqp", "rabbit:0", "rabbit:99999", "amqp://rabbit:5672"],
)
def test_malformed_intercept_target_is_refused(text: str) -> None:
    with pytest.raises(InterceptError, match="host:port"):
        Intercept(text, ("127.0.0.1", 1))


def test_host_name_as_broker_address_is_refused() -> None:
    with pytest.raises(InterceptError, match="numeric"):
        Intercept("rabbit:5672", ("localhost", 1))


def test_ipv4_connect_to_an_ipv6_listener_is_an_intercept_error() -> None:
    with (
        Intercept("192.0.2.5:5672", ("::1", 1)),
        socket.socket() as client,
        pytest.raises(InterceptError, match=r"127\.0\.0\.1"),
    ):
        client.connect(("192.0.2.5", 5672))
