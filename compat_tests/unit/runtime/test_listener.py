"""Listeners: addresses, ports in use, refused and dropped peers, running out of descriptors."""

from __future__ import annotations

import errno
import socket
import threading
from typing import Any

import pytest

from compat_tests.tools.loopback import free_port, needs_ipv6
from compat_tests.unit.runtime.fakes import SECONDS, Echoes, PortEngine
from fakeamqp import Broker, FakeAMQPError
from fakeamqp.runtime import CannotListen, EngineError, PortInUse
from fakeamqp.runtime.addresses import bound_socket, cannot_listen, resolve


def echo(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=SECONDS) as client:
        client.sendall(b"x")
        return client.recv(1)


def test_listen_without_a_port_chooses_a_free_loopback_port(engine: PortEngine) -> None:
    one, two = engine.listen(), engine.listen()
    assert one.address[0] == two.address[0] == "127.0.0.1"
    assert one.port != two.port and one.port > 0
    assert echo(one.address) == echo(two.address) == b"x"


def test_listen_uses_the_given_port(engine: PortEngine) -> None:
    port = (first := engine.listen()).port
    first.close()
    assert engine.listen(port=port).port == port
    assert echo(("127.0.0.1", port)) == b"x"


def test_localhost_is_ipv4_loopback(engine: PortEngine) -> None:
    assert engine.listen("localhost").address[0] == "127.0.0.1"


@needs_ipv6
def test_ipv6_and_ipv4_listeners_can_have_the_same_port(engine: PortEngine, echoes: Echoes) -> None:
    port = free_port()
    listener = engine.listen("::1", port)
    assert echo(listener.address) == b"x"
    peer = echoes.accepted[0].peer
    assert (peer.host, peer.server_host, peer.server_port) == ("::1", "::1", port)
    beside = engine.listen("127.0.0.1", port)  # the families do not share a port
    assert echo(beside.address) == b"x"


def test_listen_on_a_port_in_use_raises_port_in_use(engine: PortEngine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use; .*port=0") as caught:
            engine.listen(port=port)
    assert isinstance(caught.value, FakeAMQPError)
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", port)


def test_port_of_another_listener_of_the_engine_is_in_use(engine: PortEngine) -> None:
    with pytest.raises(PortInUse):
        engine.listen(port=engine.listen().port)


@pytest.mark.parametrize("host", ["", "192.0.2.1", "no.such.host.invalid"])
def test_listen_on_an_unavailable_address_is_refused(engine: PortEngine, host: str) -> None:
    with pytest.raises(CannotListen):
        engine.listen(host)


def test_an_engine_that_does_not_run_cannot_listen(engine: PortEngine) -> None:
    engine.stop()
    with pytest.raises(EngineError, match="start"):
        engine.listen()


def test_refusing_listener_keeps_connections_and_accepts_again_later(
    engine: PortEngine, echoes: Echoes
) -> None:
    listener = engine.listen()
    port = listener.port
    with socket.create_connection(listener.address, timeout=SECONDS) as old:
        old.sendall(b"x")
        assert old.recv(1) == b"x"
        listener.refuse(True)
        listener.refuse(True)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        old.sendall(b"y")
        assert old.recv(1) == b"y"  # who is in stays in
        engine.disconnect_all()
        assert old.recv(1) == b""
        listener.refuse(False)
        listener.refuse(False)
        assert listener.port == port
        assert echo(listener.address) == b"x"


def test_port_of_a_refusing_listener_stays_reserved(engine: PortEngine) -> None:
    listener = engine.listen()
    listener.refuse(True)
    with socket.socket() as stranger, pytest.raises(OSError) as caught:
        stranger.bind(listener.address)
    assert caught.value.errno == errno.EADDRINUSE


def test_listener_cannot_reopen_a_port_taken_by_another_socket(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = engine.listen()
    listener.refuse(True)
    listener._socket.close()  # as if somebody had snatched the port in the moment it was free
    with socket.create_server(listener.address):
        with pytest.raises(PortInUse):
            listener.refuse(False)
        assert not listener._open
    listener.refuse(False)
    assert echo(listener.address) == b"x"


def test_drop_waiting_resets_peers_in_the_backlog(engine: PortEngine, echoes: Echoes) -> None:
    listener = engine.listen()
    with engine:
        waiting = [socket.create_connection(listener.address, timeout=SECONDS) for _ in range(3)]
        listener.drop_waiting()
    for client in waiting:
        with client, pytest.raises(ConnectionResetError):
            client.recv(1)
    assert echo(listener.address) == b"x"
    assert len(echoes.accepted) == 1


def test_a_closed_listener_stays_closed(engine: PortEngine) -> None:
    listener = engine.listen()
    listener.close()
    listener.close()
    listener.refuse(False)
    listener.refuse(True)
    assert engine.listeners == ()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listener.address, timeout=SECONDS)


def test_all_waiting_peers_are_accepted_in_one_turn(engine: PortEngine, echoes: Echoes) -> None:
    listener = engine.listen()
    with engine:
        clients = [socket.create_connection(listener.address, timeout=SECONDS) for _ in range(100)]
        turns = engine.turns
    assert engine.wait_until(lambda: len(echoes.accepted) == 100, SECONDS)
    # The loop was already on its way into one turn when the lock was taken.
    assert engine.turns - turns <= 2
    for client in clients:
        client.close()


def test_accepted_sockets_do_not_delay_small_writes(engine: PortEngine, echoes: Echoes) -> None:
    listener = engine.listen()
    with socket.create_connection(listener.address, timeout=SECONDS):
        assert engine.wait_until(lambda: echoes.accepted, SECONDS)
        (driver,) = engine._loop.drivers  # type: ignore[union-attr]
        transport: Any = driver.transport
        assert transport._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


class Exhausted:
    """A listening socket whose process has no descriptor left, for a while."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.refusals = 0

    def accept(self) -> Any:
        self.refusals += 1
        raise OSError(errno.EMFILE, "too many open files")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)


def test_listener_without_file_descriptors_retries_without_spinning(
    engine: PortEngine, echoes: Echoes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fakeamqp.runtime.listener._EXHAUSTED_SECONDS", 0.02)
    listener = engine.listen()
    real = listener._socket
    exhausted = Exhausted(real)
    with engine:
        listener._socket = exhausted  # type: ignore[assignment]
    with socket.create_connection(listener.address, timeout=SECONDS) as client:
        assert engine.wait_until(lambda: exhausted.refusals >= 2, SECONDS)
        with engine:
            refusals, turns = exhausted.refusals, engine.turns
            assert turns <= 4 * refusals + 10  # each refusal is one rest, not a spin
            listener._socket = real
        client.sendall(b"x")
        assert client.recv(1) == b"x"
    assert "cannot accept a connection for now" in caplog.text


def test_listeners_can_be_opened_from_several_threads(engine: PortEngine) -> None:
    answers: list[bytes] = []

    def work() -> None:
        listener = engine.listen()
        answers.append(echo(listener.address))
        listener.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [b"x"] * 8


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_listening_on_all_interfaces_logs_a_warning(host: str, caplog: pytest.LogCaptureFixture) -> None:
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        pytest.skip(f"this machine cannot listen on {host}: {error}")
    with Broker(host=host) as broker:
        [record] = [each for each in caplog.records if "every machine" in each.getMessage()]
        assert record.levelname == "WARNING"
        assert f"listening on {host}:{broker.port}" in record.getMessage()


def test_listening_on_loopback_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(), Broker(host="localhost"):
        assert not [each for each in caplog.records if "every machine" in each.getMessage()]


@pytest.mark.parametrize(("host", "other"), [("127.0.0.1", "0.0.0.0"), ("0.0.0.0", "127.0.0.1")])
def test_port_served_on_another_address_is_in_use_on_macos(
    host: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS is simulated: there SO_REUSEADDR does here what SO_REUSEPORT does on Linux."""
    monkeypatch.setattr(socket, "SO_REUSEADDR", socket.SO_REUSEPORT)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind((other, 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr("sys.platform", "darwin")
        bound_socket(*resolve(host, port)).close()  # It does not listen yet.
        taken.listen()
        with pytest.raises(PortInUse):
            bound_socket(*resolve(host, port))
    bound_socket(*resolve(host, port)).close()


def test_a_port_is_bound_exclusively_where_ports_can_be_shared(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows is simulated: another socket option replaces the one that only Windows has."""
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
    sock = bound_socket(*resolve("127.0.0.1", 0))
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    sock.close()


def test_port_denied_by_windows_is_in_use() -> None:
    """Windows answers with WSAEACCES if another socket has the port exclusively."""
    denied = OSError(errno.EACCES, "An attempt was made to access a socket in a way forbidden")
    assert not isinstance(cannot_listen(denied, ("127.0.0.1", 80)), PortInUse)
    denied.winerror = 10013
    assert isinstance(cannot_listen(denied, ("127.0.0.1", 80)), PortInUse)
