"""Programs of other projects on the broker: the examples of Proton for Python, and rhea on Node.js.

They are fetched once, into the cache of the user; without a network the tests are skipped. What they do was
seen on RabbitMQ 4.0.5 and 4.3.6 first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest

from compat_tests.client_suites.sources import Unavailable, package_of_npm, repository
from compat_tests.client_suites.suites import INSIDE
from fakeamqp import Broker
from fakeamqp.model.versions import PersonalityName

PROTON = ("https://github.com/apache/qpid-proton", "0.40.0")
RHEA = ("rhea", "3.0.5")
SECONDS = 60

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=["rabbitmq-4.3", "rabbitmq-4.0"])
def personality(request: pytest.FixtureRequest) -> PersonalityName:
    name: PersonalityName = request.param
    return name


@pytest.fixture
def broker(personality: PersonalityName) -> Iterator[Broker]:
    with Broker(personality=personality) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("examples", durable=True)
        yield broker


@pytest.fixture
def example(broker: Broker) -> Run:
    """Run an example of Proton; the port in its source is that of the broker."""
    pytest.importorskip("proton")
    try:
        folder = repository(*PROTON) / "python" / "examples"
    except Unavailable as reason:
        pytest.skip(str(reason))

    def run(name: str, *options: str, addressed: bool = True) -> subprocess.CompletedProcess[str]:
        address = f"amqp://guest:guest@127.0.0.1:{broker.port}//queues/examples"
        said = ["-a", address, *options] if addressed else list(options)
        ports = {"FAKEAMQP_SUITE_PORTS": json.dumps({"5672": broker.port}), "PYTHONPATH": str(INSIDE)}
        return subprocess.run(
            [sys.executable, str(folder / name), *said],
            env={**os.environ, **ports},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    return run


def test_examples_of_proton_send_and_receive(broker: Broker, example: Run) -> None:
    assert example("simple_send.py", "-m", "200").stdout == "all messages confirmed\n"
    assert broker.queue("examples").ready == 200
    received = example("simple_recv.py", "-m", "200").stdout.splitlines()
    assert received == [f"{{'sequence': {number}}}" for number in range(1, 201)]
    broker.wait_for(lambda: broker.queue("examples").unacked == broker.queue("examples").ready == 0)


def test_selector_of_proton_is_left_out(broker: Broker, example: Run) -> None:
    example("colour_send.py", "-m", "4")
    received = example("selected_recv.py", "-m", "4").stdout.splitlines()
    assert received == ["green 1", "red 2", "green 3", "red 4"]


def test_bare_name_of_a_queue_is_refused_in_4_3(personality: str, example: Run) -> None:
    if personality != "rabbitmq-4.3":
        pytest.skip("RabbitMQ 4.0 takes addresses of version 1")
    done = example("helloworld_blocking.py", addressed=False)
    assert done.returncode == 1
    assert "LinkDetached" in done.stderr and "amqp_address_v1_not_permitted" in done.stderr


def test_transactions_of_proton_are_refused(personality: str, broker: Broker, example: Run) -> None:
    if personality != "rabbitmq-4.3":
        pytest.skip("in RabbitMQ 4.0 the refusal ends the session, which the example does not see")
    done = example("tx_send.py", "-m", "10")
    assert (done.returncode, done.stdout) == (0, "")
    assert broker.queue("examples").ready == 0


# --- rhea ---------------------------------------------------------------------------------------------------

SEND_AND_RECEIVE = """
const container = require('rhea');
const [port, address, total] = [process.argv[1], process.argv[2], Number(process.argv[3])];
let sent = 0, accepted = 0, received = 0;
const connection = container.connect({
    port: port, host: '127.0.0.1', username: 'guest', password: 'guest', reconnect: false,
});
connection.open_sender(address);
container.on('sendable', (context) => {
    while (context.sender.sendable() && sent < total) {
        context.sender.send({message_id: ++sent, durable: true, body: {sequence: sent}});
    }
});
container.on('accepted', () => {
    if (++accepted === total) connection.open_receiver(address);
});
container.on('message', (context) => {
    if (context.message.body.sequence !== ++received) process.exit(2);
    if (received === total) connection.close();
});
for (const problem of ['connection_error', 'session_error', 'sender_error', 'receiver_error']) {
    container.on(problem, (context) => {
        const error = (context.sender || context.receiver || context.session || context.connection).error;
        console.log(problem, String(error && error.condition));
        connection.close();
    });
}
container.on('connection_close', () => console.log('accepted', accepted, 'received', received));
"""


@pytest.fixture
def rhea(broker: Broker) -> Run:
    """Run a program that requires rhea; its arguments are the port, an address and others."""
    try:
        modules = package_of_npm(*RHEA)
    except Unavailable as reason:
        pytest.skip(str(reason))
    node = shutil.which("node")
    if node is None:
        pytest.skip("rhea needs Node.js")

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [node, "-e", program, str(broker.port), *arguments],
            env={**os.environ, "NODE_PATH": str(modules)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    return run


def test_rhea_sends_and_receives(broker: Broker, rhea: Run) -> None:
    done = rhea(SEND_AND_RECEIVE, "/queues/examples", "500")
    assert (done.returncode, done.stdout, done.stderr) == (0, "accepted 500 received 500\n", "")
    assert broker.queue("examples").ready == 0


def test_rhea_is_told_that_a_queue_is_missing(personality: str, rhea: Run) -> None:
    done = rhea(SEND_AND_RECEIVE, "/queues/none", "1")
    scope = "sender_error" if personality == "rabbitmq-4.3" else "session_error"
    assert done.stdout.splitlines()[0] == f"{scope} amqp:not-found"


def test_cache_keeps_what_was_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKEAMQP_CLIENT_SUITES", str(tmp_path))
    with pytest.raises(Unavailable, match="cannot be had from file:///nowhere"):
        repository("file:///nowhere", "1.0")
    assert not list(tmp_path.glob("*.complete"))
