"""The HTTP server starts and stops with its broker, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException

import pika
import pytest
from freezegun import freeze_time

from compat_tests.management.client import Api
from compat_tests.tools.runtimes import is_locked
from fakeamqp import Broker, BrokerError
from fakeamqp.errors import ManagementUnavailable, PortInUse


def test_the_api_answers_when_start_returns_and_its_port_is_closed_when_stop_returns():
    threads = set(threading.enumerate())
    with Broker(management=True) as broker:
        url = broker.admin.management_url
        assert Api(url).get("whoami") == {
            "name": "guest",
            "tags": ["administrator"],
            "is_internal_user": True,
        }
        assert url == f"http://guest:guest@127.0.0.1:{broker.admin.management_port}"
        assert all(each.daemon for each in set(threading.enumerate()) - threads)
    assert set(threading.enumerate()) <= threads
    with pytest.raises(ConnectionRefusedError):
        Api(url).get("whoami")


def test_management_port_enables_the_api():
    with Broker(management_port=0) as broker:
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"


def test_the_port_stays_the_same_through_restart_reset_stop_and_start():
    with Broker(management=True) as broker:
        url = broker.admin.management_url
        for again in (broker.restart, broker.reset, broker.stop, broker.start):
            again()
            if broker.running:
                assert Api(url).get("whoami")["name"] == "guest"
    assert broker.admin.management_url == url


def test_localhost_is_both_loopback_addresses():
    with Broker("localhost", management=True) as broker:
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
        if len(broker._listeners) > 1:
            assert (
                Api(f"http://guest:guest@[::1]:{broker.admin.management_port}").get("whoami")["name"]
                == "guest"
            )


def test_a_port_in_use_is_an_error_at_once_and_stops_the_broker():
    threads = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = Broker(management_port=taken.getsockname()[1])
        with pytest.raises(PortInUse, match="port=0"):
            broker.start()
        assert not broker.running
    assert set(threading.enumerate()) <= threads
    with broker:
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"


def test_stop_closes_keep_alive_connections_and_half_sent_requests():
    with Broker(management=True) as broker:
        alive = HTTPConnection("127.0.0.1", broker.admin.management_port)
        alive.request("GET", "/")
        assert alive.getresponse().read()
        half = socket.create_connection(("127.0.0.1", broker.admin.management_port))
        half.sendall(b"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\n")
    assert alive.sock.recv(1) == b""
    assert half.recv(1) == b""
    alive.close()
    half.close()


def test_management_url_without_the_api_is_an_error_that_names_the_option():
    with Broker() as broker, pytest.raises(BrokerError, match=r"Broker\(management=True\)"):
        broker.admin.management_url  # noqa: B018
    with pytest.raises(BrokerError, match="the broker is not started"):
        Broker(management=True).admin.management_url  # noqa: B018


def test_broker_without_the_api_imports_no_management_module():
    program = (
        "import sys; from fakeamqp import Broker\n"
        "with Broker(): pass\n"
        "print([name for name in sys.modules if 'management' in name or name in ('starlette', 'uvicorn')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_management_without_its_packages_is_an_error_that_names_the_extra(monkeypatch):
    from fakeamqp.management import companion

    monkeypatch.setattr(companion, "find_spec", lambda name: None if name == "uvicorn" else object())
    with pytest.raises(ManagementUnavailable, match=r"uvicorn: pip install 'fakeamqp\[management\]'"):
        Broker(management=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_holds_no_port_and_no_connection():
    with Broker(management=True) as broker:
        client = socket.create_connection(("127.0.0.1", broker.admin.management_port))
        client.sendall(b"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 401"
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writable)
            os.read(readable, 1)
            os._exit(0)
        os.close(readable)
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"
        port = broker.admin.management_port
    while client.recv(4096):
        pass
    client.close()
    socket.create_server(("127.0.0.1", port)).close()
    os.close(writable)
    os.waitpid(child, 0)


def test_frozen_time_does_not_stop_the_server():
    with freeze_time("2020-01-01"), Broker(management=True) as broker:
        assert Api(broker.admin.management_url).get("whoami")["name"] == "guest"


def test_a_handler_of_the_broker_may_stop_it():
    threads = set(threading.enumerate())
    broker = Broker(management=True).start()
    broker.admin.add_service("stop", lambda _: broker.stop())
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connection.channel().basic_publish("amq.system", "stop", b"")
        while True:
            connection.process_data_events(0.1)
    broker.stop()
    assert set(threading.enumerate()) <= threads
    socket.create_server(("127.0.0.1", broker.admin.management_port)).close()


def test_stop_ends_while_a_request_waits_for_the_engine():
    broker = Broker(management=True).start()
    api = Api(broker.admin.management_url)
    ended = []

    def ask():
        with contextlib.suppress(OSError, HTTPException):
            ended.append(api.request("GET", "overview"))

    client = threading.Thread(target=ask)
    with broker._engine:
        client.start()
        assert _waits_for(broker._engine._lock._turnstile)
        broker.stop()
    client.join()
    assert not broker.running


def _waits_for(turnstile):
    """Whether another thread comes to hold the turnstile: it waits for the lock then."""
    deadline = time.monotonic() + 30
    while not is_locked(turnstile) and time.monotonic() < deadline:
        time.sleep(0.001)
    return is_locked(turnstile)
