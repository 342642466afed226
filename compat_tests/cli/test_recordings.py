"""The commands `trace` and `replay`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pika
import pytest

from fakeamqp import Broker, Proxy
from fakeamqp.cli import main


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two connections, one after the other."""
    path = tmp_path_factory.mktemp("recording") / "trace.jsonl"
    with Broker() as broker:
        for queue in ("orders", "bills"):
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                connection.channel().queue_declare(queue)
        broker.wait_for(lambda: not broker.connections)
        broker.trace.jsonl(path)
    return path


def test_trace_command_shows_recording_as_timeline_without_password(recording, capsys):
    assert main(["trace", str(recording)]) == 0
    out = capsys.readouterr().out
    assert "c1 -> 1    queue.declare queue='orders'" in out
    assert "c2 <- 1    queue.declare-ok queue='bills'" in out
    assert "guest\0guest" not in out


def test_trace_and_replay_commands_take_recordings_of_amqp_1_0(tmp_path, capsys):
    proton = pytest.importorskip("proton")
    utils = pytest.importorskip("proton.utils")
    definitions = tmp_path / "definitions.json"
    definitions.write_text('{"queues": [{"name": "orders", "vhost": "/", "durable": true}]}')
    with Broker(definitions=definitions) as broker, Proxy(broker.url, record=tmp_path / "r.jsonl") as proxy:
        connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{proxy.port}", timeout=10)
        connection.create_sender("/queues/orders").send(proton.Message(body=b"x", inferred=True))
        connection.close()
        proxy.wait_for(lambda: not proxy.connections)
    assert main(["trace", str(tmp_path / "r.jsonl")]) == 0
    assert "transfer handle=0 delivery_id=0" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "r.jsonl"), "--definitions", str(definitions)]) == 0
    assert "the same" in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "r.jsonl")]) == 1
    assert "+ session 0: attach" in capsys.readouterr().out


def test_queue_name_outside_console_encoding_is_escaped(tmp_path):
    """A console of Windows in code page 1252 is simulated."""
    path = tmp_path / "trace.jsonl"
    with Broker() as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("ordrés-注文")
        broker.trace.jsonl(path)
    shown = subprocess.run(
        [sys.executable, "-m", "fakeamqp", "trace", str(path)],
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
        capture_output=True,
        timeout=50,
    )
    assert shown.returncode == 0, shown.stderr
    assert "queue='ordrés-\\u6ce8\\u6587'" in shown.stdout.decode("cp1252")


def test_trace_command_with_closed_output_pipe_ends_with_code_141(recording):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "fakeamqp", "trace", str(recording)]
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=50)
    finally:
        os.close(writer)
    assert ended.stderr == b""
    assert ended.returncode == 141


def test_connection_and_limit_options_reduce_shown_events(recording, capsys):
    assert main(["trace", str(recording), "--connection", "c2", "--limit", "3"]) == 0
    out = capsys.readouterr().out
    assert "bills" not in out and "c1" not in out
    assert "earlier events left out" in out.splitlines()[0]
    assert "closed: closed by the client" in out


@pytest.mark.parametrize(("form", "beginning"), [("html", b"<!doctype html>"), ("pcapng", b"\n\r\r\n")])
def test_trace_command_writes_html_or_pcapng_file(recording, tmp_path, capsys, form, beginning):
    out = tmp_path / f"trace.{form}"
    assert main(["trace", str(recording), f"--{form}", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    assert out.read_bytes().lower().startswith(beginning)
    whole = len(out.read_bytes())
    assert main(["trace", str(recording), f"--{form}", str(out), "--connection", "c1"]) == 0
    assert b"bills" not in out.read_bytes() and len(out.read_bytes()) < whole


def test_replay_on_default_broker_reports_same_replies(recording, capsys):
    assert main(["replay", str(recording)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("c1 127.0.0.1:") and first.endswith(": the same 7 replies")
    assert second.startswith("c2 127.0.0.1:")


def test_replay_on_other_broker_shows_difference_of_replies(recording, capsys):
    with Broker() as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        connection.channel().queue_declare("bills", durable=True)
        assert main(["replay", str(recording), "--url", broker.url, "--timeout", "0.5"]) == 1
    out = capsys.readouterr().out
    assert "c1 127.0.0.1:" in out and "the same" in out
    assert "- channel 1: queue.declare-ok queue='bills'" in out
    assert "+ channel 1: channel.close reply_code=406" in out


def test_replay_with_other_personality_shows_difference_of_replies(tmp_path, capsys):
    path = tmp_path / "trace.jsonl"
    with Broker(personality="spec") as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().basic_qos(prefetch_size=1000)
        broker.trace.jsonl(path)
    # RabbitMQ has no limit in bytes.
    assert main(["replay", str(path), "--personality", "rabbitmq-4.3"]) == 1
    assert "+ channel 0: connection.close reply_code=540" in capsys.readouterr().out


def test_replay_loads_definitions_before_recording(recording, tmp_path, capsys):
    definitions = tmp_path / "definitions.json"
    definitions.write_text('{"queues": [{"name": "orders", "vhost": "/", "durable": true, "arguments": {}}]}')
    assert main(["replay", str(recording), "--definitions", str(definitions)]) == 1
    assert "406" in capsys.readouterr().out


def test_replay_to_port_without_broker_ends_with_code_1(recording, capsys):
    assert main(["replay", str(recording), "--url", "amqp://127.0.0.1:1/"]) == 1
    assert "no broker at 127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace", "no-such.jsonl"], "no-such.jsonl"),
        (["replay", "no-such.jsonl"], "no-such.jsonl"),
        (["trace", __file__], "this is not a recording of fakeamqp"),
        (["trace", "RECORDING", "--connection", "c3"], "no connection 'c3'; there are c1, 127.0.0.1:"),
        (["trace", "RECORDING", "--limit", "0"], "'0' is not a number of events"),
        (["replay", "RECORDING", "--personality", "rabbitmq-4.x2"], "rabbitmq-4.2"),
        (["replay", "RECORDING", "--definitions", "no-such.json"], "no-such.json"),
        (
            ["replay", "RECORDING", "--url", "amqp://x/", "--personality", "spec"],
            "--personality configures a new broker",
        ),
        (["replay", "RECORDING", "--url", "x"], "not a URL of a broker"),
        (["replay", "RECORDING", "--timeout", "0"], "is not a number above 0"),
        (["trace"], "FILE"),
    ],
)
def test_trace_and_replay_with_invalid_argument_end_with_code_2(recording, capsys, arguments, words):
    arguments = [str(recording) if each == "RECORDING" else each for each in arguments]
    try:
        code = main(arguments)
    except SystemExit as leaving:
        code = leaving.code
    assert code == 2
    captured = capsys.readouterr()
    assert words in captured.err and captured.out == ""


def test_scaffold_prints_or_writes_a_test_file_that_it_does_not_overwrite(tmp_path, capsys):
    path, out = tmp_path / "trace.jsonl", tmp_path / "test_orders.py"
    with Broker() as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().basic_publish("", "orders", b"one")
        broker.trace.jsonl(path)
    assert main(["scaffold", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith('"""What clients did in trace.jsonl, written by `fakeamqp scaffold`')
    assert '    channel.basic_publish("", "orders", b"one")\n' in shown
    assert main(["scaffold", str(path), "--output", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    assert out.read_text() == shown
    out.write_text("edited")
    assert main(["scaffold", str(path), "--output", str(out)]) == 1
    assert "File exists" in capsys.readouterr().err
    assert out.read_text() == "edited"


def test_scaffold_of_recording_without_publish_ends_with_code_1(recording, capsys):
    assert main(["scaffold", str(recording)]) == 1
    assert "no client of AMQP 0-9-1 published in trace.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["trace", "replay"])
def test_command_reports_a_recording_without_an_end_and_goes_on(tmp_path, capsys, command):
    path = tmp_path / "recording.jsonl"
    with Broker() as broker, Proxy(broker.url, record=path) as proxy:
        pika.BlockingConnection(pika.URLParameters(proxy.url)).close()
        proxy.wait_for(lambda: not proxy.connections)
        assert main([command, str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == (
        f"{path}: the recording has no end: the proxy that wrote it was killed, or still runs\n"
    )
    assert "c1" in captured.out
