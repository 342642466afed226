"""The command `proxy`."""

from __future__ import annotations

import signal
import ssl
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
import trustme

from compat_tests.cli.test_serve import TIMEOUT, run, serving
from fakeamqp import Broker, ServerTLS
from fakeamqp.trace import load


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(users={"ann": "swordfish"}) as broker:
        yield broker


def log_in(url: str, **parameters: object) -> pika.BlockingConnection:
    wanted = pika.URLParameters(url)
    wanted.credentials = pika.PlainCredentials("ann", "swordfish")
    for name, value in parameters.items():
        setattr(wanted, name, value)
    return pika.BlockingConnection(wanted)


def test_client_reaches_the_broker_at_the_printed_url_which_has_no_login(broker: Broker) -> None:
    with (
        serving("--to", broker.url, command="proxy") as (_, url, port),
        log_in(url) as connection,
    ):
        assert url == f"amqp://127.0.0.1:{port}/%2F"
        connection.channel().queue_declare("orders")
        assert broker.queue("orders").exists


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_proxy_ends_with_code_0_on_signal_and_its_recording_is_whole(
    broker: Broker, tmp_path: Path, number: int
) -> None:
    path = tmp_path / "recording.jsonl"
    options = ("--record", str(path), "--redact", "body", "--redact", "headers.token")
    with serving("--to", broker.url, *options, command="proxy") as (process, url, _):
        connection = log_in(url)
        properties = pika.BasicProperties(headers={"token": "abc", "kind": "order"})
        connection.channel().basic_publish("", "nowhere", b"card 4242", properties)
        broker.wait_for(lambda: len(broker.published) == 1)
        process.send_signal(number)
        output, errors = process.communicate(timeout=TIMEOUT)
        assert (process.returncode, output, errors) == (0, "", "")
        with pytest.raises(pika.exceptions.AMQPError):
            while True:
                connection.process_data_events(time_limit=None)
    recorded = load(path)
    shown = recorded.timeline()
    assert "the proxy has been stopped" in shown
    assert "headers={'token': '***', 'kind': 'order'}" in shown and "body=b'*********'" in shown
    assert "swordfish" not in path.read_text()


def test_recording_options_bound_the_files(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    options = ("--record", str(path), "--record-size", "10000", "--record-files", "2")
    with serving("--to", broker.url, *options, command="proxy") as (process, url, _):
        for _ in range(4):
            log_in(url).close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["recording.jsonl", "recording.jsonl.1"]


def test_second_broker_is_taken_where_the_first_cannot_be_reached(broker: Broker) -> None:
    options = ("--to", "amqp://127.0.0.1:1/%2F", "--to", broker.url)
    with serving(*options, command="proxy") as (_, url, _):
        log_in(url).close()


def test_proxy_speaks_tls_to_clients_and_to_the_broker(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(tmp_path / "certificate.pem", append=True)
    server = ServerTLS.from_files(tmp_path / "certificate.pem", tmp_path / "key.pem", ca=tmp_path / "ca.pem")
    files = {"tls-certificate": "certificate", "tls-key": "key", "tls-ca": "ca", "to-ca": "ca"}
    options = [part for name, file in files.items() for part in (f"--{name}", f"{tmp_path}/{file}.pem")]
    with (
        Broker(users={"ann": "swordfish"}, tls=server) as broker,
        serving("--to", broker.url, *options, command="proxy") as (process, url, port),
    ):
        assert url == f"amqps://127.0.0.1:{port}/%2F"
        assert process.stdout is not None
        assert process.stdout.readline() == f"certificate authority in {tmp_path}/ca.pem\n"
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        log_in(url, ssl_options=pika.SSLOptions(context, "127.0.0.1")).close()


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
from fakeamqp.cli import main
exit(main())
"""
"""A process whose files have at most 5000 bytes."""


def test_recording_that_could_not_be_written_ends_the_command_with_code_1(
    broker: Broker, tmp_path: Path
) -> None:
    path = tmp_path / "recording.jsonl"
    options = ("--to", broker.url, "--record", str(path))
    with serving(*options, command="proxy", program=("-c", LIMITED)) as (process, url, _):
        log_in(url).close()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert f"ERROR fakeamqp: the recording {path} ends here, and the proxy goes on: [Errno 27]" in errors
    assert "fakeamqp proxy: the recording is not complete: [Errno 27] File too large" in errors
    assert not load(path).unfinished


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "--to"),
        (["--to", "http://ann:swordfish@rabbit/"], 2, "is no URL of a broker"),
        (["--to", "amqp://rabbit/", "--listen", "65536"], 2, "is not a port"),
        (["--to", "amqp://rabbit/", "--redact", "body"], 2, "need --record FILE"),
        (["--to", "amqp://rabbit/", "--record", "x", "--redact", "bodi"], 2, "did you mean 'body'?"),
        (["--to", "amqp://rabbit/", "--record", "x", "--record-files", "0"], 2, "is not a number of files"),
        (["--to", "amqp://rabbit/", "--tls-key", "key.pem"], 2, "--tls-key needs both"),
        (["--to", "amqps://rabbit/", "--to-ca", "no-such.pem"], 1, "No such file"),
        (["--to", "amqp://rabbit/", "--record", "/no-such-folder/x.jsonl"], 1, "/no-such-folder/x.jsonl"),
    ],
)
def test_proxy_with_invalid_argument_ends_with_an_explanation(
    arguments: list[str], code: int, words: str
) -> None:
    done = run("proxy", *arguments)
    assert done.returncode == code
    assert words in done.stderr and "Traceback" not in done.stderr
    assert "swordfish" not in done.stderr
    assert done.stdout == ""
