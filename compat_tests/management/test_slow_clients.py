"""Clients of the HTTP port that are slow, silent or many, and requests that never end."""

from __future__ import annotations

import contextlib
import logging
import resource
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pika
import pytest

from compat_tests.management.client import Api
from compat_tests.tools.descriptors import high_descriptors
from fakeamqp import Bounds, Broker
from fakeamqp.management import server
from fakeamqp.management.errors import ManagementError
from fakeamqp.management.resources import RESOURCES

HALF = b"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\n"
LOGIN = b"Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"
PUT = b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: localhost\r\n" + LOGIN


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(management=True, bounds=Bounds(http_connections=20)) as broker:
        yield broker
        assert broker.admin.failures == ()


@contextlib.contextmanager
def client(broker: Broker, sent: bytes) -> Iterator[socket.socket]:
    with socket.create_connection((broker.host, broker.admin.management_port), timeout=60) as sock:
        sock.sendall(sent)
        yield sock


def rest(sock: socket.socket) -> bytes:
    """What the server sends until it ends the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            received += piece
    return received


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HALF,
        PUT + b"Content-Length: 100\r\n\r\n{",
        PUT + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n',
        # Answered before the body has come.
        b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        HALF + LOGIN + b"\r\n" + HALF,
        (HALF + LOGIN + b"\r\n") * 3 + PUT + b"Content-Length: 100\r\n\r\n{",
    ],
    ids=["silent", "half a head", "half a body", "chunks without end", "refused", "second half", "pipelined"],
)
def test_a_request_that_does_not_end_loses_its_connection(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sent: bytes
):
    monkeypatch.setattr(server, "_PATIENCE", {"head": 0.2, "body": 0.2})
    with client(broker, sent) as sock:
        rest(sock)
    assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
    assert "Traceback" not in caplog.text
    assert "q" not in [each.name for each in broker.queues]


def test_a_connection_that_rests_between_two_requests_has_no_time_limit(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
):
    """Neither does the limit of a part of the first request apply to it."""
    monkeypatch.setattr(server, "_PATIENCE", {"head": 0.5, "body": 0.5})
    with client(broker, PUT + b"Content-Length: 2\r\n\r\n{") as sock:
        sock.sendall(b"}")
        for status in (b"201", b"204"):
            assert sock.recv(65536)[9:12] == status
            with client(broker, b"") as later:
                rest(later)  # It has the limit of a head, and began later.
            sock.sendall(PUT + b"Content-Length: 2\r\n\r\n{}")


def test_body_slower_than_its_time_limit_loses_its_connection(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server, "_PATIENCE", {"head": 60, "body": 0.2})
    with client(broker, PUT + b"Content-Length: 1000000\r\n\r\n{") as sock, pytest.raises(OSError):
        while True:
            sock.sendall(b" ")
            time.sleep(0.001)


def test_client_that_does_not_read_loses_its_connection(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "_SEND_SECONDS", 0.2)
    broker.load_definitions({"queues": [{"name": f"q{number}", "durable": True} for number in range(500)]})
    request = b"GET /api/queues HTTP/1.1\r\nHost: localhost\r\n" + LOGIN + b"\r\n"
    with client(broker, request * 40) as sock:
        connections = broker._management._server._uvicorn.server_state.connections  # type: ignore[union-attr]
        deadline = time.monotonic() + 60
        while connections and time.monotonic() < deadline:
            time.sleep(0.01)
        received = len(rest(sock))
    assert received < 40 * 500_000


def test_longest_waiting_connection_ends_when_the_server_is_full(broker: Broker):
    with contextlib.ExitStack() as opened:
        halves = [opened.enter_context(client(broker, HALF)) for _ in range(20)]
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
        assert rest(halves[0]) == b""
        halves[-1].sendall(LOGIN + b"\r\n")
        assert halves[-1].recv(12) == b"HTTP/1.1 200"


def test_a_client_is_refused_with_503_while_every_other_connection_is_being_answered(broker: Broker):
    stream = b"GET /inspector/events HTTP/1.1\r\nHost: localhost\r\n" + LOGIN + b"\r\n"
    with contextlib.ExitStack() as opened:
        for _ in range(20):
            assert opened.enter_context(client(broker, stream)).recv(12) == b"HTTP/1.1 200"
        assert rest(opened.enter_context(client(broker, b""))).startswith(b"HTTP/1.1 503 ")


def test_many_half_requests_leave_descriptors_to_clients_of_amqp(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """400 half requests under `ulimit -n 256`."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # The clients are in this process, too, so the limit that the server sees is another one.
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, hard))
    if soft < 1000:
        pytest.skip("the test itself needs a thousand descriptors")
    with Broker(management=True) as broker, contextlib.ExitStack() as opened:
        for _ in range(400):
            opened.enter_context(client(broker, HALF))
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
        connections = broker._management._server._uvicorn.server_state.connections  # type: ignore[union-attr]
        assert len(connections) <= 256 // 4 + 1
        pika.BlockingConnection(pika.URLParameters(broker.url)).close()
    lines = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(lines) <= 2, lines


def test_server_without_descriptors_recovers_and_logs_at_most_one_line(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    refusals = 0
    real = socket.socket.accept

    def accept(sock: socket.socket) -> object:
        nonlocal refusals
        if sock.getsockname()[1] == broker.admin.management_port and refusals < 6:
            refusals += 1
            raise OSError(24, "Too many open files")
        return real(sock)

    monkeypatch.setattr(server, "_EXHAUSTED_SECONDS", 0.01)
    monkeypatch.setattr(socket.socket, "accept", accept)
    assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
    assert refusals == 6
    texts = [each.getMessage() for each in caplog.records if "cannot accept" in each.getMessage()]
    assert len(texts) <= 1
    assert "Traceback" not in caplog.text


def test_clients_beyond_the_limit_of_select_are_refused_and_other_clients_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(selectors, "DefaultSelector", selectors.SelectSelector)
    with Broker(management=True) as broker, client(broker, HALF) as served:
        monkeypatch.undo()
        uvicorn = broker._management._server._uvicorn  # type: ignore[union-attr]
        broker.wait_for(lambda: uvicorn.server_state.connections, timeout=30)
        with high_descriptors():
            for _ in range(3):
                with client(broker, HALF) as refused:
                    assert rest(refused) == b""
        served.sendall(LOGIN + b"\r\n")
        assert served.recv(12) == b"HTTP/1.1 200"
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
    assert sum("refuses a connection for now" in each.getMessage() for each in caplog.records) <= 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 100_000,
        b"GET /" + b"x" * 1_000_000,
        b"nonsense\r\n\r\n",
        PUT + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        PUT + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        PUT + b"Transfer-Encoding: gzip\r\n\r\n",
        PUT + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        PUT + b"Content-Length: -1\r\n\r\n",
        PUT + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    ],
    ids=[
        "headers",
        "path",
        "nonsense",
        "two lengths",
        "two framings",
        "unknown framing",
        "chunk",
        "length",
        "upgrade",
    ],
)
def test_malformed_http_ends_the_connection_without_a_traceback(
    broker: Broker, caplog: pytest.LogCaptureFixture, sent: bytes
):
    answer = b""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError), client(broker, sent) as sock:
        with contextlib.suppress(OSError):  # The server has ended the connection already.
            sock.shutdown(socket.SHUT_WR)
        answer = rest(sock)
    assert answer[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 401", b"HTTP/1.1 201")
    assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("host", [b"", b"Host: localhost\r\nHost: other\r\n"])
def test_a_request_without_a_host_or_with_two_is_refused(
    broker: Broker, caplog: pytest.LogCaptureFixture, host: bytes
):
    """As by RabbitMQ (measured on 4.3.6). HTTP/1.0 needs none."""
    for version, status in ((b"1.1", b"400"), (b"1.0", b"400" if host else b"200")):
        with client(broker, b"GET /api/whoami HTTP/" + version + b"\r\n" + host + LOGIN + b"\r\n") as sock:
            assert rest(sock)[9:12] == status
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_a_client_that_goes_away_amid_a_body_leaves_no_traceback(
    broker: Broker, caplog: pytest.LogCaptureFixture
):
    for _ in range(3):
        with client(broker, PUT + b"Content-Length: 100\r\n\r\n{"):
            pass
    assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
    assert "Traceback" not in caplog.text


def test_stop_ends_the_broker_and_then_reports_a_stuck_request(monkeypatch: pytest.MonkeyPatch):
    stuck, released = threading.Event(), threading.Event()

    def hang(call: object) -> object:
        stuck.set()
        released.wait()
        return {}

    whoami = next(each for each in RESOURCES if each.path == "/api/whoami")
    monkeypatch.setitem(whoami._handlers, "GET", hang)
    monkeypatch.setattr(server, "_STOP_SECONDS", 0.05)
    broker = Broker(management=True).start()
    amqp = pika.BlockingConnection(pika.URLParameters(broker.url))
    with client(broker, HALF + LOGIN + b"\r\n") as sock:
        assert stuck.wait(60)
        (thread,) = [each for each in threading.enumerate() if each.name == "fakeamqp-management"]
        with pytest.raises(ManagementError, match="a request is stuck in its handler"):
            broker.stop()
        assert not broker.running
        assert rest(sock) == b""
    for port in (broker.port, broker.admin.management_port):
        socket.create_server(("127.0.0.1", port)).close()
    with pytest.raises(pika.exceptions.AMQPError):
        amqp.process_data_events(60)
    broker.stop()
    monkeypatch.undo()
    with broker:
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
        released.set()
        thread.join(60)
        assert not thread.is_alive()
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"


def test_repeated_warning_is_logged_once_and_then_with_the_number_of_omitted_warnings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    now = 1000.0
    monkeypatch.setattr(server.RealClock, "now", lambda: now)
    log = logging.getLogger("fakeamqp.management.http")
    for now in (1000.0, 1001.0, 1009.9, 1010.0, 1020.0):
        log.warning("a %s", now)
        log.warning("b %s", now) if now == 1009.9 else None
    more = "(2 more of these warnings were left out)"
    assert [each.getMessage() for each in caplog.records] == [
        "a 1000.0",
        "b 1009.9",
        f"a 1010.0 {more}",
        "a 1020.0",
    ]


def test_at_most_a_quarter_of_the_descriptors_is_for_clients_of_http(monkeypatch: pytest.MonkeyPatch):
    for descriptors, most in ((resource.RLIM_INFINITY, 20), (1000, 20), (60, 15), (40, 10), (12, 8)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=descriptors: (soft, soft))
        assert server._affordable(20) == most


def test_an_abandoned_server_has_closed_every_descriptor_and_does_not_run():
    """What a forked child does with the server of its parent."""
    loop = server._Loop(selectors.DefaultSelector())
    peers = socket.socketpair()
    port = server._Port("127.0.0.1", 0)
    given_up: list[bool] = []
    acceptor = SimpleNamespace(abandon=lambda: given_up.append(True))
    connections = [
        SimpleNamespace(transport=SimpleNamespace(_sock=peers[0])),
        SimpleNamespace(transport=None),
    ]
    served = server.HttpServer(None, 1)
    served._loop, served._thread, served._ports = loop, threading.current_thread(), (port,)
    served._uvicorn = SimpleNamespace(  # type: ignore[assignment]
        acceptors=[acceptor], server_state=SimpleNamespace(connections=connections)
    )
    waking = (loop._ssock, loop._csock)  # type: ignore[attr-defined]
    loop._thread_id = 1  # type: ignore[attr-defined]
    assert served.running and served.on_own_thread()
    served._abandon()
    assert not served.running and given_up == [True]
    assert {each.fileno() for each in (*waking, peers[0], port.socket)} == {-1}
    assert loop.own_selector.get_map() is None
    assert loop.is_closed() and not loop.is_running()
    served._abandon()
    served.stop()
    peers[1].close()


def test_server_that_fails_to_start_frees_its_port(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no more of them")

    for place, name, error in (
        (server.threading.Thread, "start", RuntimeError),
        (server._Uvicorn, "startup", ManagementError),
    ):
        served = server.HttpServer(None, 1)
        with monkeypatch.context() as patched:
            patched.setattr(place, name, fail)
            with pytest.raises(error, match="no more of them"):
                served.start("127.0.0.1")
        assert not served.running
        address = served.start("127.0.0.1", served._ports[0].port)
        assert address == served._ports[0].address
        served.stop()
