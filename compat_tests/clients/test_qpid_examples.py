"""The scripts that come with Apache's Python client, unmodified, against `fakeamqp serve`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pika
import pytest

from compat_tests.clients.qpid import suite
from compat_tests.clients.qpid.python27 import Python27
from compat_tests.clients.qpid.remote import Remote

SECONDS = 30


@pytest.fixture
def port(nothing_is_left: None) -> Iterator[int]:
    """Of a broker in a process of its own."""
    command = [sys.executable, "-m", "fakeamqp", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r"127\.0\.0\.1:(\d+)/", line)
            assert found, line
            yield int(found[1])
        finally:
            process.terminate()
            process.wait(SECONDS)


def example(client: Python27, name: str, *arguments: str) -> str:
    """What an example prints."""
    done = client.run(str(client.examples / name), *arguments, seconds=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_hello(python27: Python27, port: int) -> None:
    assert example(python27, "hello", f"guest/guest@127.0.0.1:{port}") == "Hello world!\n"


def test_spout_and_drain(python27: Python27, port: int) -> None:
    broker = ("--broker", f"127.0.0.1:{port}")  # Without a name: they log in as ANONYMOUS.
    orders = "orders; {create: always, node: {durable: True}}"
    example(
        python27, "spout", *broker, "-c", "3", "-d", "-P", "kind=order", "-S", "new", orders, "some", "text"
    )
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)) as connection:
        method, properties, body = connection.channel().basic_get("orders", auto_ack=True)
    assert body == b"some text"
    assert properties.headers["kind"] == "order"
    assert method.message_count == 2
    printed = example(python27, "drain", *broker, "--print", "%(C)s %(P['kind'])s %(M.subject)s", "orders")
    assert printed == "some text order new\n" * 2


def test_the_server_answers(python27: Python27, port: int) -> None:
    address = f"127.0.0.1:{port}"
    command = python27.command(
        str(python27.examples / "server"), "-b", address, "questions; {create: always}"
    )
    with (
        subprocess.Popen(command, env=python27.environment()) as server,
        Remote(python27) as remote,
    ):
        try:
            messaging = remote.module("qpid.messaging")
            session = messaging.Connection.establish(address).session()
            answers = session.receiver("answers; {create: always}")
            question: Any = messaging.Message("str(6 * 7)", reply_to="answers", properties={"type": "eval"})
            session.sender("questions; {create: always}").send(question, timeout=SECONDS)
            assert answers.fetch(timeout=SECONDS).content == b"42"
        finally:
            server.kill()


def test_a_part_of_the_suite(python27: Python27, port: int) -> None:
    some = [test for test in suite.TESTS if test.module in ("broker", "query")]
    assert len(some) == 10
    outcomes = suite.run(python27, "127.0.0.1", port, [test.name for test in some])
    assert {name: outcome for name, outcome in outcomes.items() if outcome.status != "pass"} == {}
