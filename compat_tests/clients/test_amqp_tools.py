"""The command line tools of the C client, rabbitmq-c."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20

pytestmark = pytest.mark.skipif(
    shutil.which("amqp-publish") is None, reason="needs rabbitmq-c's tools: Debian package amqp-tools"
)


@pytest.fixture(params=["tcp", "tls"])
def url(request: pytest.FixtureRequest, nothing_is_left: None) -> object:
    with Broker(seed=1, tls=request.param == "tls") as running:
        yield Reach(
            running,
            "localhost" if request.param == "tls" else running.host,
            running.port,
            running.tls.client_context if request.param == "tls" else None,
            running.tls.ca_file if request.param == "tls" else None,
        )
        assert running.admin.failures == ()


def run(reach: Reach, tool: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    options = ["--url", reach.url]
    if reach.ca_file is not None:
        options += ["--cacert", reach.ca_file]
    return subprocess.run(
        [tool, *options, *arguments], input=given, capture_output=True, timeout=SECONDS, check=False
    )


def test_declare_publish_get_consume_delete(url: Reach) -> None:
    done = run(url, "amqp-declare-queue", "-q", "orders", "-d")
    assert (done.returncode, done.stdout.strip()) == (0, b"orders"), done.stderr
    large = bytes(range(256)) * 2048
    for body in (b"small", large):
        done = run(url, "amqp-publish", "-r", "orders", "-p", "-H", "kind: order", given=body)
        assert done.returncode == 0, done.stderr
    url.broker.queue("orders").wait_for(ready=2)
    assert url.broker.queue("orders").messages[0].headers == {"kind": "order"}
    assert run(url, "amqp-get", "-q", "orders").stdout == b"small"
    assert run(url, "amqp-consume", "-q", "orders", "-c", "1", "cat").stdout == large
    url.broker.queue("orders").wait_for(ready=0, unacked=0, consumers=0)
    assert run(url, "amqp-get", "-q", "orders").returncode == 2  # Nothing there.
    assert run(url, "amqp-delete-queue", "-q", "orders").stdout.strip() == b"0"
    assert not url.broker.queue("orders").exists


def test_errors(url: Reach) -> None:
    done = run(url, "amqp-get", "-q", "absent")
    assert done.returncode == 1
    assert b"404" in done.stderr and b"no queue 'absent' in vhost '/'" in done.stderr


def test_a_wrong_password(broker: Broker) -> None:
    tool = ["amqp-get", "-s", broker.host, "--port", str(broker.port), "--password", "wrong", "-q", "q"]
    done = subprocess.run(tool, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert b"403" in done.stderr or b"ACCESS_REFUSED" in done.stderr
