"""TLS: round trips with real clients, certificates, and peers that do not speak it."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.unit.runtime.fakes import SECONDS, EchoConnection, Echoes, PortEngine
from fakeamqp.runtime import BadCertificate, TLSUnavailable
from fakeamqp.runtime.thread.listener import ThreadListener
from fakeamqp.runtime.tls import ServerTLS

trustme = pytest.importorskip("trustme")


@pytest.fixture(scope="module")
def tls() -> Iterator[ServerTLS]:
    tls = ServerTLS.throwaway()
    yield tls
    tls.close()


@pytest.fixture
def listener(engine: PortEngine, tls: ServerTLS) -> ThreadListener:
    return engine.listen(tls=tls)


def dial(listener: ThreadListener, context: ssl.SSLContext, name: str = "localhost") -> ssl.SSLSocket:
    sock = socket.create_connection(listener.address, timeout=SECONDS)
    try:
        return context.wrap_socket(sock, server_hostname=name)
    except BaseException:
        sock.close()
        raise


def read(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = sock.recv(count - len(data))
        assert piece, f"end after {len(data)} of {count} bytes"
        data += piece
    return bytes(data)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_blocking_client_exchanges_data_over_tls(
    listener: ThreadListener, tls: ServerTLS, echoes: Echoes, name: str
) -> None:
    with dial(listener, tls.client_context, name) as client:
        client.sendall(b"hello")
        assert read(client, 5) == b"hello"
    peer = echoes.accepted[0].peer
    assert peer.tls is True
    assert peer.certificate_subject is None
    assert peer.server_port == listener.port


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_tls_1_3_clients_exchange_data(
    listener: ThreadListener, tls: ServerTLS, version: ssl.TLSVersion
) -> None:
    context = ssl.create_default_context(cafile=tls.ca_file)
    context.minimum_version = context.maximum_version = version
    with dial(listener, context) as client:
        client.sendall(b"hello")
        assert read(client, 5) == b"hello"
        assert client.version() == version.name.replace("_", ".")


def test_asyncio_client_exchanges_megabytes_over_tls(listener: ThreadListener, tls: ServerTLS) -> None:
    data = os.urandom(3_000_000)

    async def talk() -> bytes:
        reader, writer = await asyncio.open_connection(*listener.address, ssl=tls.client_context)
        sending = asyncio.create_task(send(writer))
        received = await reader.readexactly(len(data))
        await sending
        writer.close()
        await writer.wait_closed()
        return received

    async def send(writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(data), 100_000):
            writer.write(data[start : start + 100_000])
            await writer.drain()

    assert asyncio.run(asyncio.wait_for(talk(), 60)) == data


def test_back_pressure_bounds_encrypted_output_ahead_of_the_client(
    engine: PortEngine, listener: ThreadListener, tls: ServerTLS, echoes: Echoes
) -> None:
    size = 30_000_000
    with dial(listener, tls.client_context) as client:
        assert engine.wait_until(lambda: echoes.accepted, SECONDS)
        connection = echoes.accepted[0]
        with engine:
            connection.write(b"x" * size)
        with engine:
            assert 0 < connection.sent_bytes < size
            (driver,) = engine._loop.drivers  # type: ignore[union-attr]
            transport: Any = driver.transport
            assert len(transport._unsent) <= 300_000
        assert read(client, size) == b"x" * size
        assert engine.wait_until(lambda: connection.sent_bytes == size, SECONDS)


def test_finished_tls_connection_sends_close_notify_after_its_output(
    engine: PortEngine, listener: ThreadListener, tls: ServerTLS, echoes: Echoes
) -> None:
    with dial(listener, tls.client_context) as client:
        assert engine.wait_until(lambda: echoes.accepted, SECONDS)
        with engine:
            echoes.accepted[0].write(b"last words " * 200_000)
            echoes.accepted[0].finish()
        client.suppress_ragged_eofs = False  # type: ignore[attr-defined]  # an end without close_notify is an error
        assert read(client, 2_200_000) == b"last words " * 200_000
        assert client.recv(1) == b""
    assert engine.wait_until(lambda: echoes.accepted[0].eofs == 1, SECONDS)


def test_close_notify_of_a_client_is_answered(
    engine: PortEngine, listener: ThreadListener, tls: ServerTLS, echoes: Echoes
) -> None:
    client = dial(listener, tls.client_context)
    client.sendall(b"x")
    assert client.recv(1) == b"x"
    client.unwrap().close()  # sends close_notify and waits for the answer
    assert engine.wait_until(lambda: echoes.accepted[0].eofs == 1, SECONDS)
    assert echoes.accepted[0].received == b"x"


def test_data_before_close_notify_in_the_same_read_is_processed(
    engine: PortEngine, listener: ThreadListener, tls: ServerTLS, echoes: Echoes
) -> None:
    class Silent(EchoConnection):
        def on_data(self, data: bytes) -> None: ...

    echoes.kind = Silent
    client = dial(listener, tls.client_context)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with client, engine:  # the engine is held, so that both arrive together
        client.sendall(b"all of it")
        client.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):  # said, and not yet answered
            client.unwrap()
        assert engine.wait_until(lambda: echoes.accepted and echoes.accepted[0].eofs == 1, SECONDS)
    assert echoes.accepted[0].received == b"all of it"


@pytest.mark.parametrize("octets", [b"AMQP\x00\x00\x09\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 3000])
def test_plain_octets_on_a_tls_port_end_only_that_connection(
    engine: PortEngine, listener: ThreadListener, tls: ServerTLS, echoes: Echoes, octets: bytes
) -> None:
    with socket.create_connection(listener.address, timeout=SECONDS) as plain:
        plain.sendall(octets)
        answer = bytearray()
        while piece := plain.recv(1000):
            answer += piece
        assert not answer or answer[0] == 21  # at most a TLS alert
    with dial(listener, tls.client_context) as client:
        client.sendall(b"next")
        assert read(client, 4) == b"next"
    assert len(echoes.accepted) == 1


def test_invalid_tls_record_after_the_handshake_ends_the_connection(
    engine: PortEngine, listener: ThreadListener, tls: ServerTLS, echoes: Echoes
) -> None:
    client = dial(listener, tls.client_context)
    client.sendall(b"x")
    assert client.recv(1) == b"x"
    with socket.socket(fileno=client.detach()) as raw:
        raw.sendall(b"\xff" * 100)
        assert engine.wait_until(lambda: echoes.accepted[0].eofs == 1, SECONDS)


def test_peer_lost_during_the_tls_handshake_is_removed(
    engine: PortEngine, listener: ThreadListener, echoes: Echoes
) -> None:
    with socket.create_connection(listener.address, timeout=SECONDS) as plain:
        plain.sendall(b"\x16\x03\x01\x02\x00")
    assert engine.wait_until(lambda: not engine._loop.drivers, SECONDS)  # type: ignore[union-attr]
    assert echoes.accepted == []


def test_slow_tls_handshake_does_not_block_other_clients_and_times_out(
    engine: PortEngine, tls: ServerTLS, echoes: Echoes, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = engine.listen(tls=tls)
    with socket.create_connection(listener.address, timeout=SECONDS) as slow:
        slow.sendall(b"\x16\x03\x01")
        assert engine.wait_until(lambda: len(engine._loop.drivers) == 1, SECONDS)  # type: ignore[union-attr]
        with dial(listener, tls.client_context) as client:
            client.sendall(b"x")
            assert read(client, 1) == b"x"
        monkeypatch.setattr("fakeamqp.runtime.connection_driver.HANDSHAKE_SECONDS", 0.01)
        with socket.create_connection(listener.address, timeout=SECONDS) as timed:
            assert timed.recv(1) == b""
    assert len(echoes.accepted) == 1


def test_peer_has_the_subject_of_the_client_certificate(
    listener: ThreadListener, tls: ServerTLS, echoes: Echoes
) -> None:
    alice = tls.client_certificate("alice")
    bob = tls.client_certificate("bob")
    with dial(listener, alice.context) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"
    by_files = ssl.create_default_context(cafile=tls.ca_file)
    by_files.load_cert_chain(bob.certificate, bob.key)
    with dial(listener, by_files) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"
    assert [each.peer.certificate_subject for each in echoes.accepted] == ["alice", "bob"]


def test_client_certificate_of_an_unknown_authority_is_refused(
    listener: ThreadListener, tls: ServerTLS, echoes: Echoes
) -> None:
    context = ssl.create_default_context(cafile=tls.ca_file)
    trustme.CA().issue_cert(common_name="alice").configure_cert(context)
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca"), dial(listener, context) as client:
        client.recv(1)
    assert echoes.accepted == []


def test_client_certificates_can_be_required(engine: PortEngine, echoes: Echoes) -> None:
    tls = ServerTLS.throwaway(require_client_certificate=True)
    listener = engine.listen(tls=tls)
    # The alert is not lost, although the client has sent more than we ever read.
    with (
        pytest.raises(ssl.SSLError, match=r"(?i)certificate.required"),
        dial(listener, tls.client_context) as client,
    ):
        client.sendall(b"x" * 50_000)
        client.recv(1)
    assert echoes.accepted == []
    with dial(listener, tls.client_certificate("carol").context) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"
    assert echoes.accepted[0].peer.certificate_subject == "carol"
    tls.close()


def test_client_without_trust_in_the_authority_cannot_connect(
    listener: ThreadListener, echoes: Echoes
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        dial(listener, ssl.create_default_context())
    assert echoes.accepted == []


def test_any_requested_server_name_gets_a_certificate(listener: ThreadListener, tls: ServerTLS) -> None:
    for _ in range(2):
        with dial(listener, tls.client_context, "rabbit.prod.example") as client:
            client.sendall(b"x")
            assert read(client, 1) == b"x"


def test_temporary_files_are_removed_on_close() -> None:
    tls = ServerTLS.throwaway()
    ca_file = tls.ca_file
    client = tls.client_certificate("alice")
    assert tls.ca_file == ca_file
    assert os.path.exists(ca_file) and os.path.exists(client.key)
    tls.close()
    tls.close()
    assert not os.path.exists(os.path.dirname(ca_file))


def test_temporary_files_are_removed_by_the_process_but_not_by_its_child() -> None:
    code = (
        "import os\n"
        "from fakeamqp.runtime.tls import ServerTLS\n"
        "tls = ServerTLS.throwaway()\n"
        "path = tls.ca_file\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    tls.close()\n"
        "    raise SystemExit\n"
        "os.waitpid(pid, 0)\n"
        "assert os.path.exists(path)\n"
        "print(path)\n"
    )
    path = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert path and not os.path.exists(path)


class TestFromFiles:
    @pytest.fixture
    def files(self, tmp_path: Path) -> dict[str, Path]:
        authority = trustme.CA()
        server = authority.issue_cert("localhost", "127.0.0.1")
        paths = {name: tmp_path / f"{name}.pem" for name in ("ca", "certificate", "key")}
        authority.cert_pem.write_to_path(paths["ca"])
        server.private_key_pem.write_to_path(paths["key"])
        for blob in server.cert_chain_pems:
            blob.write_to_path(paths["certificate"], append=True)
        return paths

    def test_certificate_from_files_serves_a_client(self, engine: PortEngine, files: dict[str, Path]) -> None:
        tls = ServerTLS.from_files(files["certificate"], files["key"], ca=files["ca"])
        listener = engine.listen(tls=tls)
        with dial(listener, tls.client_context) as client:
            client.sendall(b"x")
            assert read(client, 1) == b"x"
        assert tls.ca_file == str(files["ca"])
        tls.close()
        assert files["ca"].exists()

    def test_client_ca_file_verifies_client_certificates(
        self, engine: PortEngine, echoes: Echoes, files: dict[str, Path]
    ) -> None:
        clients = trustme.CA()
        clients.cert_pem.write_to_path(files["ca"].with_name("clients.pem"))
        tls = ServerTLS.from_files(
            files["certificate"],
            files["key"],
            ca=files["ca"],
            client_ca=files["ca"].with_name("clients.pem"),
            require_client_certificate=True,
        )
        listener = engine.listen(tls=tls)
        clients.issue_cert(common_name="dave").configure_cert(tls.client_context)
        with dial(listener, tls.client_context) as client:
            client.sendall(b"x")
            assert read(client, 1) == b"x"
        assert echoes.accepted[0].peer.certificate_subject == "dave"
        with pytest.raises(TLSUnavailable, match="your own authority"):
            tls.client_certificate("erin")

    def test_missing_certificate_file_is_an_error(self, files: dict[str, Path], tmp_path: Path) -> None:
        with pytest.raises(BadCertificate, match="absent"):
            ServerTLS.from_files(tmp_path / "absent.pem", files["key"])

    def test_key_of_another_certificate_is_an_error(self, files: dict[str, Path]) -> None:
        other = files["key"].with_name("other.pem")
        trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(other)
        with pytest.raises(BadCertificate, match="PEM files that match"):
            ServerTLS.from_files(files["certificate"], other)

    def test_required_client_certificate_without_client_ca_is_an_error(self, files: dict[str, Path]) -> None:
        with pytest.raises(BadCertificate, match="client_ca"):
            ServerTLS.from_files(files["certificate"], files["key"], require_client_certificate=True)


@pytest.mark.parametrize("how", ["finished", "aborted"])
def test_reset_of_a_tls_connection_is_a_tcp_reset(
    engine: PortEngine, listener: ThreadListener, tls: ServerTLS, echoes: Echoes, how: str
) -> None:
    with dial(listener, tls.client_context) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"
        with engine:
            connection = echoes.accepted[0]
            connection.resets = True
            setattr(connection, how, True)
            connection.notify(connection)
        # TLS would tell an end without a farewell and a reset apart, or not, as OpenSSL likes.
        with socket.socket(fileno=os.dup(client.fileno())) as below, pytest.raises(ConnectionResetError):
            below.settimeout(SECONDS)
            while below.recv(65536):
                pass


def test_missing_trustme_error_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(TLSUnavailable, match=r"pip install 'fakeamqp\[tls\]'"):
        ServerTLS.throwaway()


def test_the_engine_alone_loads_neither_ssl_nor_trustme() -> None:
    code = "import sys, fakeamqp.runtime; print({'ssl', 'trustme', 'asyncio'} & set(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "set()"
