"""Pytest files that are written from recordings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pika
import pytest

from compat_tests.trace.happenings import busy, calls
from compat_tests.trace.sessions import RECORDED
from fakeamqp import Broker
from fakeamqp.replay import ReplayError, scaffold
from fakeamqp.trace import Trace, load

PAGE = Path(__file__).parents[3] / "docs" / "traces.md"


def recorded(happening: Callable[[Broker], object]) -> Trace:
    with Broker() as broker:
        happening(broker)
        return broker.trace


def with_channel(work: Callable[[Any], object]) -> Callable[[Broker], None]:
    def happening(broker: Broker) -> None:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            work(connection.channel())

    return happening


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_files_of_recorded_sessions_pass_and_are_formatted(tmp_path: Path) -> None:
    traces = {path.stem: load(path) for path in RECORDED.glob("*.jsonl")}
    traces |= {"busy": recorded(busy), "calls": recorded(calls)}
    for name, trace in traces.items():
        text = scaffold(trace, f"{name}.jsonl")
        (tmp_path / f"test_{name.replace('-', '_')}.py").write_text(text, encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(traces) + 2} passed" in done.stdout  # Two connections of two recordings published.
    for check in (["format", "--check", "--diff"], ["check"]):
        ruff = [sys.executable, "-m", "ruff", *check, "--isolated", "--no-cache", str(tmp_path)]
        checked = subprocess.run(ruff, capture_output=True, text=True, timeout=60, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_file_fails_once_a_binding_is_missing(tmp_path: Path) -> None:
    lines = scaffold(load(RECORDED / "npm-amqplib.jsonl")).splitlines(keepends=True)
    text = "".join(line for line in lines if "queue_bind" not in line)
    (tmp_path / "test_orders.py").write_text(text, encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 1 and "WaitTimeout" in done.stdout


EXPECTED = '''"""What clients did in staging.jsonl, written by `fakeamqp scaffold` to be edited."""

import pika
import pytest


@pytest.fixture
def channel(pika_channel):
    """A channel, once the recorded exchanges, queues and bindings are there."""
    pika_channel.exchange_declare("events", "topic", durable=True)
    pika_channel.queue_declare("orders", durable=True, arguments={"x-max-length": 5})
    pika_channel.queue_declare("generated-1", exclusive=True)
    pika_channel.queue_bind("orders", "events", "order.#")
    pika_channel.queue_bind("generated-1", "events", "#")
    return pika_channel


def test_messages_reach_orders_and_generated_1(amqp_broker, channel):
    """What connection c1 of the recording published."""
    channel.basic_publish(
        "events",
        "order.placed",
        b'it\\'s "one"',
        pika.BasicProperties(reply_to="generated-1"),
    )
    channel.basic_publish(
        "events",
        "order.placed",
        b"two two two two two two two two two two ".ljust(4000, b"*"),
    )
    channel.basic_publish("", "generated-1", b"back")

    amqp_broker.expect_published(exchange="events", routing_key="order.placed", count=2)
    amqp_broker.expect_published(exchange="", routing_key="generated-1", count=1)
    amqp_broker.queue("orders").wait_for(ready=2)
    amqp_broker.queue("generated-1").wait_for(ready=3)
'''


def test_file_has_topology_publishes_and_counts_of_queues() -> None:
    def work(channel: Any) -> None:
        channel.exchange_declare("events", "topic", durable=True)
        channel.queue_declare("orders", durable=True, arguments={"x-max-length": 5})
        channel.queue_bind("orders", "events", "order.#")
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind("", "events", "#")
        properties = pika.BasicProperties(reply_to=queue)
        channel.basic_publish("events", "order.placed", b'it\'s "one"', properties)
        channel.basic_publish("events", "order.placed", b"two " * 1000)
        channel.basic_publish("", queue, b"back")
        channel.queue_delete("orders")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.exchange_declare("events", "fanout")

    assert scaffold(recorded(with_channel(work)), "staging.jsonl") == EXPECTED


MORE = {"vhost": "/", "arguments": {}}
BINDING = {"destination_type": "queue", "routing_key": ""}


def test_topology_that_was_there_before_is_declared_as_far_as_the_recording_shows_it(tmp_path: Path) -> None:
    def work(channel: Any) -> None:
        channel.basic_publish("events", "order.placed", b"one")
        for _ in range(2):
            channel.basic_get("orders", auto_ack=True)

    with Broker() as broker:
        broker.load_definitions(
            {
                "exchanges": [{"name": "events", "type": "fanout", "durable": True, **MORE}],
                "queues": [{"name": "orders", "durable": True, **MORE}],
                "bindings": [{"source": "events", "destination": "orders", **BINDING, **MORE}],
            }
        )
        with_channel(work)(broker)
        text = scaffold(broker.trace)
    assert (
        "    # It was there already: its type is a guess.\n"
        '    pika_channel.exchange_declare("events", "topic")\n'
        "    # It was there already.\n"
        '    pika_channel.queue_declare("orders")\n'
        "    # Messages with this routing key came from there.\n"
        '    pika_channel.queue_bind("orders", "events", "order.placed")\n'
    ) in text
    assert '    amqp_broker.queue("orders").wait_for(ready=1)\n' in text
    (tmp_path / "test_orders.py").write_text(text, encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


def test_clock_is_virtual_where_messages_or_queues_expire() -> None:
    def expiring(channel: Any) -> None:
        channel.queue_declare("short", arguments={"x-message-ttl": 1})
        channel.basic_publish("", "short", b"late")

    def plain(channel: Any) -> None:
        channel.basic_publish("", "short", b"late")

    mark = '\npytestmark = pytest.mark.amqp(clock="virtual")\n\n\n@pytest.fixture\n'
    assert mark in scaffold(recorded(with_channel(expiring)))
    assert "pytestmark" not in scaffold(recorded(with_channel(plain)))


def test_messages_beyond_the_first_thirty_are_counted() -> None:
    def work(channel: Any) -> None:
        for _ in range(35):
            channel.basic_publish("", "nowhere", b"x")

    text = scaffold(recorded(with_channel(work)))
    assert text.count("basic_publish") == 30
    assert "# 5 left out: refused, or answers to amq.rabbitmq.reply-to, or too many.\n" in text
    assert 'expect_published(exchange="", routing_key="nowhere", count=30)' in text


def test_recording_without_a_publish_is_an_error() -> None:
    with pytest.raises(ReplayError, match=r"no client of AMQP 0-9-1 published in staging\.jsonl"):
        scaffold(recorded(with_channel(lambda channel: channel.queue_declare("q"))), "staging.jsonl")


def test_example_on_the_page_about_traces_is_what_is_written() -> None:
    def work(channel: Any) -> None:
        channel.queue_declare("orders", arguments={"x-message-ttl": 60_000})
        channel.basic_publish("", "orders", b'{"fruit": "apple"}')

    text = scaffold(recorded(with_channel(work)), "orders.jsonl")
    assert f"```python\n{text}```\n" in PAGE.read_text("utf-8")
