"""Brokers whose time a test moves, or that follow the wall clock. Nothing here waits for time to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from typing import Any

import pika
import pytest

from fakeamqp import Broker

NOON = datetime(2024, 2, 29, 12)
"""When time begins on the brokers here, UTC."""

UTC_NOON = NOON.replace(tzinfo=timezone.utc)

NEW_YEAR = datetime(2024, 1, 1, tzinfo=timezone.utc)
SECONDS = 20
"""How long a test that waits in vain waits."""

Connect = Callable[..., pika.BlockingConnection]


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker on virtual time."""
    with Broker(clock="virtual", now=NOON, seed=1) as running:
        yield running
    assert running.admin.failures == ()


@pytest.fixture
def wall_broker() -> Iterator[Broker]:
    """A broker on the wall clock's time."""
    with Broker(clock="wall", seed=1) as running:
        yield running
    assert running.admin.failures == ()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is: a frozen world is not left until somebody does something outside."""
    monkeypatch.setattr("fakeamqp.runtime.clock.wall._LEFT_SECONDS", 1e9)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects pika to a broker; keywords are connection parameters."""
    with ExitStack() as opened:

        def connect(broker: Broker, **parameters: Any) -> pika.BlockingConnection:
            given = pika.URLParameters(broker.url)
            for name, value in parameters.items():
                setattr(given, name, value)
            connection = pika.BlockingConnection(given)
            opened.callback(close, connection)
            return connection

        yield connect


@pytest.fixture
def minute(wall_broker: Broker, connect: Connect) -> Any:
    """A channel to a broker that has a queue `minute`, from which messages go to queue `dead`."""
    channel = connect(wall_broker, heartbeat=0).channel()
    retry_queues(channel, ("minute", 60), back_to="dead")
    channel.queue_declare("dead")
    return channel


@pytest.fixture
def counts(wall_broker: Broker) -> Callable[[], tuple[int, int]]:
    """How many messages are in `minute` and in `dead`."""
    return lambda: (wall_broker.queue("minute").ready, wall_broker.queue("dead").ready)


def close(connection: pika.BlockingConnection) -> None:
    with suppress(pika.exceptions.AMQPError):
        connection.close()


def retry_queues(channel: Any, *names_and_seconds: tuple[str, float], back_to: str) -> None:
    """Queues whose messages expire after so many seconds and go to queue `back_to`."""
    for name, seconds in names_and_seconds:
        arguments = {
            "x-message-ttl": int(seconds * 1000),
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": back_to,
        }
        channel.queue_declare(name, arguments=arguments)


def deaths(message: Any) -> dict[str, float]:
    """From which queues a message was dead-lettered, and when, in seconds since noon."""
    times = {}
    for death in message.headers["x-death"]:
        time = death["time"]
        # Times of pika 1.3 have no time zone.
        instant = time.replace(tzinfo=timezone.utc).timestamp() if isinstance(time, datetime) else int(time)
        times[death["queue"]] = instant - UTC_NOON.timestamp()
    return times
