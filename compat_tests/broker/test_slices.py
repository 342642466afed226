"""Calls of a test in the midst of a client's long operation: nothing is lost, and a test sees it whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from compat_tests.benchmarks.load import Address
from compat_tests.benchmarks.stalls import QUEUE, Talker
from fakeamqp import Broker
from fakeamqp.model.queues import ClassicQueue
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.runtime import turns

NUMBER = 800


@pytest.fixture(autouse=True)
def one_step_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_SLICE_SECONDS", 0.0)


@pytest.fixture(params=["real", "virtual"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(seed=1, clock=request.param) as running:
        yield running
        assert running.admin.failures == ()


@pytest.fixture
def requeue(broker: Broker) -> Iterator[Callable[[], None]]:
    """Begins to requeue all messages of a queue."""
    talker = Talker(Address("broker", broker.host, broker.port))
    talker.declare(QUEUE)
    talker.consume()
    for number in range(NUMBER):
        broker.publish(b"%d" % number, routing_key=QUEUE, delivery_mode=2)
    talker.take(NUMBER)
    # Without a consumer the messages stay where they return to.
    talker.ask(m.BasicCancel(consumer_tag="0"), m.BasicCancelOk)

    def begin() -> None:
        talker.say(m.BasicNack(delivery_tag=0, multiple=True, requeue=True))
        operations = broker._state.operations
        for _ in range(100_000):
            if operations.pending:
                break

    yield begin
    talker.close()


def bodies(broker: Broker) -> list[bytes]:
    return [message.body for message in broker.queue(QUEUE).messages]


EVERYTHING = [b"%d" % number for number in range(NUMBER)]


@pytest.mark.parametrize("crash", [False, True])
def test_restart_during_a_requeue_loses_no_message(
    broker: Broker, requeue: Callable[[], None], crash: bool
) -> None:
    requeue()
    broker.restart(crash=crash)
    assert bodies(broker) == EVERYTHING


def test_closing_the_connection_after_a_requeue_loses_no_message(
    broker: Broker, requeue: Callable[[], None]
) -> None:
    requeue()
    broker.queue(QUEUE).wait_for(ready=NUMBER)
    broker.connections[0].close(320, "enough")
    assert bodies(broker) == EVERYTHING


def test_stop_completes_a_running_requeue(broker: Broker, requeue: Callable[[], None]) -> None:
    requeue()
    broker.stop()
    assert bodies(broker) == EVERYTHING


def test_thread_of_a_test_never_sees_a_partial_requeue(broker: Broker, requeue: Callable[[], None]) -> None:
    requeue()
    seen = set()
    while NUMBER not in seen:
        seen.add(broker.queue(QUEUE).ready)
    assert seen <= {0, NUMBER}


async def logged_in(broker: Broker) -> asyncio.StreamWriter:
    """A client in the event loop of the broker, with an open channel."""
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    writer.write(PROTOCOL_HEADER)
    for methods, answer in _HANDSHAKE:
        for channel, method in methods:
            writer.write(method_frame(channel, method.encode()))
        while True:
            header = await reader.readexactly(7)
            payload = await reader.readexactly(int.from_bytes(header[3:], "big") + 1)
            if payload[:4] == answer.INDEX.to_bytes(4, "big"):
                break
    return writer


_LOGIN = m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
_TUNE = m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=0)
_HANDSHAKE: list[tuple[list[tuple[int, Method]], type[Method]]] = [
    ([], m.ConnectionStart),
    ([(0, _LOGIN)], m.ConnectionTune),
    ([(0, _TUNE), (0, m.ConnectionOpen(virtual_host="/"))], m.ConnectionOpenOk),
    ([(1, m.ChannelOpen())], m.ChannelOpenOk),
]


@pytest.mark.threads_only
@pytest.mark.parametrize("publishers", [1, 20])
def test_a_handshake_beside_publishers_to_many_queues_takes_few_short_turns(
    monkeypatch: pytest.MonkeyPatch, publishers: int
) -> None:
    """All in one event loop, so neither the machine nor other threads have a say."""
    monkeypatch.setattr(turns, "_TURN_SECONDS", 0.0)
    monkeypatch.setattr(turns, "_COSTLY_SECONDS", 0.0)
    enqueued = []
    enqueue = ClassicQueue.enqueue
    monkeypatch.setattr(
        ClassicQueue, "enqueue", lambda self, message: enqueued.append(self) or enqueue(self, message)
    )
    names = [f"q{each}" for each in range(1500)]
    binding = {"source": "amq.fanout", "vhost": "/", "destination_type": "queue", "routing_key": ""}
    publish = method_frame(1, m.BasicPublish(exchange="amq.fanout").encode()) + b"".join(
        content_frames(1, 60, BasicProperties().encode(), b"", 1000)
    )

    async def run() -> tuple[int, int]:
        async with Broker(runtime="asyncio") as broker:
            broker.load_definitions(
                {
                    "queues": [{"name": each, "vhost": "/", "durable": True} for each in names],
                    "bindings": [{**binding, "destination": each} for each in names],
                }
            )
            clients = [await logged_in(broker) for _ in range(publishers)]
            for each in clients:
                each.write(publish * 20)
            while not enqueued:
                await asyncio.sleep(0)
            before, turns_before = len(enqueued), broker._engine.turns
            clients.append(await logged_in(broker))
            seen = len(enqueued) - before, broker._engine.turns - turns_before
            for each in clients:
                each.close()
            return seen

    messages, taken = asyncio.run(run())
    assert taken <= 40
    # A step for the operations that go on, one for a new operation, and the first of each publisher.
    assert messages <= 32 * (2 * taken + publishers)
