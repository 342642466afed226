from __future__ import annotations

import gc
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pika
import pytest
import trustme

from compat_tests.tools.loopback import LOOPBACK, needs_ipv6
from fakeamqp import Broker
from fakeamqp.cli import _parser
from fakeamqp.cli.serve import _choices, _tune_garbage_collection

LISTENING = re.compile(r"listening on (amqps?://(?:guest:guest@)?127\.0\.0\.1:(\d+)/%2F)\n")
TIMEOUT = 30


@contextmanager
def serving(
    *arguments: str,
    command: str = "serve",
    errors: int = subprocess.PIPE,
    program: tuple[str, str] = ("-m", "fakeamqp"),
) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A running `fakeamqp serve`, or another command, the URL it prints, and its port."""
    # Unbuffered output of the child would hide a line that it forgets to flush, so none is asked for.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, *program, command, *arguments],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=environment,
    ) as process:
        guard = threading.Timer(TIMEOUT, process.kill)  # So that a silent child cannot hang the test.
        guard.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = LISTENING.fullmatch(line)
            assert found, (line, process.stderr.read() if process.stderr else "")
            yield process, found[1], int(found[2])
        finally:
            guard.cancel()
            process.kill()


@contextmanager
def connected(*arguments: str, **how: tuple[str, str]) -> Iterator[pika.BlockingConnection]:
    """A client of a running `fakeamqp serve`."""
    with (
        serving("--port", "0", *arguments, **how) as (_, url, _),
        pika.BlockingConnection(pika.URLParameters(url)) as connection,
    ):
        yield connection


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fakeamqp", *arguments], capture_output=True, text=True, timeout=TIMEOUT
    )


def test_client_connects_to_printed_url_immediately():
    with connected() as connection:
        connection.channel().queue_declare("orders")


@needs_ipv6
def test_serve_accepts_connections_on_ipv4_and_ipv6_loopback():
    with serving("--port", "0") as (_, _, port):
        for host in LOOPBACK:
            pika.BlockingConnection(pika.ConnectionParameters(host, port)).close()


@needs_ipv6
def test_serve_with_host_option_listens_on_that_address_only():
    with serving("--port", "0", "--host", "127.0.0.1") as (_, _, port), pytest.raises(ConnectionRefusedError):
        socket.create_connection(("::1", port)).close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_ends_with_code_0_on_signal_while_client_is_connected(number):
    with serving("--port", "0") as (process, url, port):
        connection = pika.BlockingConnection(pika.URLParameters(url))
        process.send_signal(number)
        output, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, output, errors) == (0, "", "")
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            while True:
                connection.process_data_events(time_limit=None)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()


def test_serve_ends_with_code_0_on_ctrl_break():
    """Windows is simulated: another signal replaces the one that only Windows has."""
    code = "import signal; signal.SIGBREAK = signal.SIGUSR1; from fakeamqp.cli import main; exit(main())"
    with serving("--port", "0", program=("-c", code)) as (process, _, _):
        process.send_signal(signal.SIGUSR1)
        assert (*process.communicate(timeout=TIMEOUT), process.returncode) == ("", "", 0)


def test_serve_leaves_garbage_collector_of_pypy_unchanged(monkeypatch):
    """PyPy is simulated."""
    monkeypatch.delattr(gc, "freeze")
    before = gc.get_threshold()
    _tune_garbage_collection()
    assert gc.get_threshold() == before


def test_serve_ends_with_code_0_on_two_signals():
    with serving("--port", "0") as (process, _, _):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, errors) == (0, "")


def test_serve_listens_on_port_of_option():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving("--port", str(port)) as (_, _, actual):
        assert actual == port


def test_serve_on_port_in_use_ends_with_code_1():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "in use" in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(("name", "is_rabbitmq"), [("rabbitmq-4.2", True), ("spec", False)])
def test_personality_option_selects_personality(name, is_rabbitmq):
    with (
        serving("--port", "0", "--personality", name) as (_, _, port),
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.sendall(b"AMQP\x00\x00\x09\x01")
        assert (b"RabbitMQ" in client.recv(4096)) is is_rabbitmq


def transient_queue_on(*options):
    """Declare a queue that is neither durable nor exclusive. Returns the code, if the connection ends."""
    with connected(*options) as connection:
        try:
            connection.channel().queue_declare("q")
        except pika.exceptions.ConnectionClosedByBroker as closed:
            return closed.reply_code
        return None


def test_permit_and_deny_options_set_deprecated_features():
    modern = ("--personality", "rabbitmq-4.3")
    assert transient_queue_on(*modern) is None
    denied = ("--permit", "global_qos", "--deny", "transient_nonexcl_queues")
    assert transient_queue_on(*modern, *denied) == 541
    assert transient_queue_on("--deny", "transient_nonexcl_queues") == 541


def test_max_message_size_option_refuses_larger_message():
    with connected("--max-message-size", "3") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "nowhere", b"123")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="larger than configured max size 3"):
            channel.basic_publish("", "nowhere", b"1234")


def test_memory_limit_and_bound_options_block_publisher_and_limit_consumers():
    options = ("--memory-limit", "10000", "--bound", "consumers_per_channel=1")
    with (
        serving("--port", "0", *options) as (_, url, _),
        pika.BlockingConnection(pika.URLParameters(url)) as connection,
    ):
        reasons = []
        connection.add_on_connection_blocked_callback(lambda _, frame: reasons.append(frame.method.reason))
        channel = connection.channel()
        channel.queue_declare("q")
        for _ in range(3):
            channel.basic_publish("", "q", bytes(10_000))
        while not reasons:
            connection.process_data_events(0.1)
        assert reasons == ["low on memory"]
        other = pika.BlockingConnection(pika.URLParameters(url))
        consumers = other.channel()
        consumers.basic_consume("q", lambda *_: None, auto_ack=True)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="reached maximum"):
            consumers.basic_consume("q", lambda *_: None, auto_ack=True)


@pytest.mark.parametrize(
    ("option", "users"), [([], ("guest",)), (["none"], ()), (["guest, ann"], ("guest", "ann"))]
)
def test_loopback_users_option_is_parsed_to_names(option: list[str], users: tuple[str, ...]):
    options = _parser().parse_args(["serve", *(["--loopback-users", *option] if option else [])])
    assert _choices(options)["loopback_users"] == users


def test_max_failed_logins_option_blocks_address_after_wrong_passwords():
    def log_in(port: int, password: str) -> None:
        credentials = pika.PlainCredentials("guest", password)
        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, "/", credentials)).close()

    with serving("--port", "0", "--max-failed-logins", "2", "--login-block-time", "3600") as (_, _, port):
        log_in(port, "guest")
        for password in ("wrong", "wrong", "guest"):
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                log_in(port, password)


def test_not_implemented_option_refuses_class_and_method():
    arguments = ("--port", "0", "--not-implemented", "tx", "--not-implemented", "confirm.select")
    with serving(*arguments) as (_, url, _):
        for select in ("tx_select", "confirm_delivery"):
            with pika.BlockingConnection(pika.URLParameters(url)) as connection:
                with pytest.raises(pika.exceptions.AMQPError) as error:
                    getattr(connection.channel(), select)()
                assert select == "confirm_delivery" or "540" in str(error.value)


FROZEN = """
import os, sys, threading, time
from freezegun import freeze_time
from fakeamqp.cli import main
with freeze_time("2026-01-01") as frozen:
    def tick():
        while not os.path.exists("{sign}"):
            time.sleep(0.01)
        frozen.tick(3600)
    threading.Thread(target=tick, daemon=True).start()
    sys.exit(main(sys.argv[1:]))
"""
"""An hour passes on the wall clock of this process as soon as a file is there."""


def test_message_expires_with_a_sped_up_virtual_clock():
    with connected("--clock", "virtual", "--clock-rate", "1e6") as connection:
        assert _dead_letter(connection.channel(), ttl=86_400_000) == b"late"


def test_message_expires_with_wall_clock_option(tmp_path):
    sign = tmp_path / "sign"
    with connected("--clock", "wall", program=("-c", FROZEN.format(sign=sign))) as connection:
        assert _dead_letter(connection.channel(), ttl=3_600_000, once_waiting=sign.touch) == b"late"


def _dead_letter(channel, ttl: int, once_waiting=lambda: None) -> bytes:
    channel.queue_declare("dead")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("q", arguments={"x-message-ttl": ttl, **dead})
    channel.basic_publish("", "q", b"late")
    once_waiting()
    _, _, body = next(channel.consume("dead", auto_ack=True, inactivity_timeout=TIMEOUT))
    return body


def test_printed_url_has_no_user_when_definitions_hold_only_password_hashes(tmp_path):
    path = tmp_path / "definitions.json"
    path.write_text(
        json.dumps(
            {
                "users": [
                    {"name": "guest", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"}
                ]
            }
        )
    )
    with serving("--port", "0", "--definitions", str(path)) as (process, url, port):
        assert url == f"amqp://127.0.0.1:{port}/%2F"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=TIMEOUT)
    assert errors == (
        "WARNING fakeamqp: the URL names no user, since the definitions contain only hashes of passwords; "
        "log in with a password of the broker that exported them\n"
    )


def test_definitions_are_loaded_before_serve_listens(tmp_path):
    path = tmp_path / "definitions.json"
    path.write_text('{"queues": [{"name": "orders", "vhost": "/", "durable": true, "arguments": {}}]}')
    with connected("--definitions", str(path)) as connection:
        connection.channel().queue_declare("orders", passive=True)


def test_client_with_printed_ca_file_connects_over_tls():
    with serving("--port", "0", "--tls") as (process, url, _):
        assert url.startswith("amqps://")
        assert process.stdout is not None
        line = process.stdout.readline()
        file = line.removeprefix("certificate authority in ").rstrip("\n")
        parameters = pika.URLParameters(url)
        parameters.ssl_options = pika.SSLOptions(ssl.create_default_context(cafile=file), parameters.host)
        pika.BlockingConnection(parameters).close()

        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
        assert not os.path.exists(file)


def test_tls_with_a_certificate_of_ones_own(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = authority.issue_cert("127.0.0.1")
    server.private_key_pem.write_to_path(tmp_path / "key.pem")
    for blob in server.cert_chain_pems:
        blob.write_to_path(tmp_path / "certificate.pem", append=True)
    clients = trustme.CA()
    clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    clients.issue_cert(common_name="guest").configure_cert(context)

    files = {"certificate": "certificate", "key": "key", "ca": "ca", "client-ca": "clients"}
    options = [part for name, file in files.items() for part in (f"--tls-{name}", f"{tmp_path}/{file}.pem")]
    with serving("--port", "0", *options) as (process, url, port):
        assert url.startswith("amqps://")
        assert process.stdout is not None
        assert process.stdout.readline() == f"certificate authority in {tmp_path}/ca.pem\n"
        parameters = pika.ConnectionParameters(
            "127.0.0.1",
            port,
            ssl_options=pika.SSLOptions(context, "127.0.0.1"),
            credentials=pika.credentials.ExternalCredentials(),
        )
        pika.BlockingConnection(parameters).close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tls-certificate", "cert.pem"], "--tls-certificate needs both"),
        (["--tls", "--tls-key", "key.pem"], "--tls-key needs both"),
        (["--tls", "--tls-client-ca", "ca.pem"], "--tls-client-ca needs both"),
        (["--tls-certificate", "no-such.pem", "--tls-key", "no-such-key.pem"], "no-such.pem"),
        (["--personality", "rabbitmq-4.x2"], "rabbitmq-4.2"),
        (["--permit", "gobal_qos"], "did you mean 'global_qos'?"),
        (["--permit", "classic_queue_mirroring"], "rabbitmq-4.3 has it no more"),
        (["--clock", "virtual"], "other processes cannot move this clock; add a --clock-rate"),
        (["--clock", "virtul"], "did you mean 'virtual'?"),
        (["--clock-rate", "60"], "the clock is real"),
        (["--clock", "wall", "--clock-rate", "60"], "the clock is wall"),
        (["--clock", "virtual", "--clock-rate", "0"], "'0' is not a number above 0"),
        (["--clock", "virtual", "--clock-rate", "fast"], "'fast' is not a number above 0"),
        (["--management-port", "http"], "is not a port"),
        (["--port", "65536"], "is not a port"),
        (["--port", "amqp"], "is not a port"),
        (["--max-message-size", "0"], "is not a number of bytes"),
        (["--max-message-size", "1MB"], "is not a number of bytes"),
        (["--memory-limit", "1GB"], "is not a number of bytes, nor none"),
        (["--bound", "consumers_per_channel"], "is not a bound"),
        (["--bound", "consumers_per_chanel=1"], "did you mean 'consumers_per_channel'?"),
        (["--bound", "idle_frames=0"], "'0' is not a number above 0"),
        (["--max-failed-logins", "many"], "is not a number of logins"),
        (["--login-block-time", "0"], "is not a number above 0"),
        (["--not-implemented", "dtxx"], "did you mean 'dtx'?"),
        (["--not-implemented", "queue.declare", "--not-implemented", "connection"], "can be without"),
        (["--definitions", "no-such-file.json"], "no-such-file.json"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_serve_with_invalid_option_ends_with_code_2(arguments, words):
    done = run("serve", "--port", "0", *arguments)
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_serve_raises_garbage_collection_thresholds() -> None:
    before = gc.get_threshold()
    try:
        _tune_garbage_collection()
        assert gc.get_threshold() == (10_000, 2, 200_000)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_broker_in_test_leaves_garbage_collector_unchanged() -> None:
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    with Broker():
        assert gc.get_threshold() == thresholds
        # Objects that were frozen before may end meanwhile. Freezing would add thousands.
        assert gc.get_freeze_count() <= frozen


@contextmanager
def full_pipe() -> Iterator[int]:
    """The writing end of a pipe that holds as much as it can, and that nobody reads."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        for size in (4096, 1):
            with suppress(BlockingIOError):
                while True:
                    os.write(writer, b"x" * size)
        os.set_blocking(writer, True)
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


def test_serve_works_and_ends_while_its_stderr_pipe_is_full():
    with full_pipe() as errors, serving("--port", "0", errors=errors) as (process, url, port):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as client:
                client.sendall(b"garbage!")
                assert client.recv(8).startswith(b"AMQP")
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            connection.channel().queue_declare("orders")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0


def test_last_warning_is_written_before_serve_ends():
    with serving("--port", "0") as (process, _, port):
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as client:
            client.sendall(b"garbage!")
            assert client.recv(8).startswith(b"AMQP")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=TIMEOUT)
    assert re.fullmatch(
        r"WARNING fakeamqp: \S+ -> \S+ sent b'garbage!' instead of a protocol header\n", errors
    )
