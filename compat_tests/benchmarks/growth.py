"""How the time of operations grows with the number of consumers, messages or bindings.

    python -m compat_tests.benchmarks.growth [PATTERN...] [--number N]

Each operation runs at N, 2 N and 4 N objects, without sockets. Linear growth makes the last column 4. The
operations are those of `OPERATIONS`; `compat_tests/protocol/amqp_0_9_1/test_growth.py` runs them at small
numbers and counts their work.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any, TypeAlias

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["OPERATIONS", "Operation", "main", "seconds"]

Action: TypeAlias = Callable[[], object]
QUEUE = "grows"
TYPES = ("classic", "quorum")


@dataclass(frozen=True)
class Operation:
    """One operation whose growth is measured.

    Args:
        name: what is done to how many objects.
        prepare: makes that many objects, and returns the function to measure.
        linear: whether the time grows with the number, perhaps times its logarithm.
    """

    name: str
    prepare: Callable[[int], Action]
    linear: bool = True


OPERATIONS: list[Operation] = []


def operation(
    name: str, *, linear: bool = True, **variants: tuple[Any, ...]
) -> Callable[[Callable[..., Action]], Callable[..., Action]]:
    """Enter an operation; one with a parameter is entered once for each of its values."""

    def enter(prepare: Callable[..., Action]) -> Callable[..., Action]:
        if not variants:
            OPERATIONS.append(Operation(name, prepare, linear))
        for parameter, values in variants.items():
            OPERATIONS.extend(
                Operation(f"{value}: {name}", partial(prepare, **{parameter: value}), linear)
                for value in values
            )
        return prepare

    return enter


# --- the conversation -----------------------------------------------------------------------------------


class Talker:
    """A client that sends many methods at once and throws away what it gets."""

    def __init__(self, server: Server) -> None:
        self.client: Client = server.client()

    def say(self, *methods: Method) -> None:
        """Send methods on channel 1."""
        self.client.send_bytes(b"".join(method_frame(1, method.encode()) for method in methods))
        self.client.take_bytes()

    def declare(self, queue: str = QUEUE, type_name: str = "classic", **arguments: Any) -> None:
        """Declare a durable queue."""
        arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
        self.say(
            m.QueueDeclare(queue=queue, durable=True, arguments={"x-queue-type": type_name, **arguments})
        )

    def publish(self, number: int, queue: str = QUEUE, *, exchange: str = "", **properties: Any) -> None:
        """Publish so many messages to a queue, or with this key to an exchange."""
        one = method_frame(1, m.BasicPublish(exchange=exchange, routing_key=queue).encode()) + b"".join(
            content_frames(1, 60, BasicProperties(**properties).encode(), b"body", 131_064)
        )
        for _ in range(number):
            self.client.send_bytes(one)
        self.client.take_bytes()

    def consume(self, number: int, queue: str = QUEUE, *, prefetch: int = 0, **arguments: Any) -> None:
        """Start so many consumers, called 0, 1, ..."""
        self.say(m.BasicQos(prefetch_count=prefetch))
        for tag in range(number):
            self.say(m.BasicConsume(queue=queue, consumer_tag=str(tag), **arguments))


def started(type_name: str = "classic", **arguments: Any) -> tuple[Server, Talker]:
    """A broker with a client and a queue."""
    server = Server()
    talker = Talker(server)
    talker.declare(QUEUE, type_name, **arguments)
    return server, talker


# --- operations on one queue: what makes n objects, and what is done with them -----------------------------

Deed: TypeAlias = Callable[[Talker, int], object]


def on_queue(
    name: str,
    prepare: Deed,
    act: Deed,
    *,
    types: tuple[str, ...] = TYPES,
    linear: bool = True,
    **arguments: Any,
) -> None:
    """Enter an operation once for each type of queue; without types it is on a classic one."""

    def made(number: int, type_name: str = "classic") -> Action:
        _, talker = started(type_name, **arguments)
        prepare(talker, number)
        return partial(act, talker, number)

    operation(name, linear=linear, **({"type_name": types} if types else {}))(made)


def consuming(talker: Talker, number: int) -> None:
    """There are n consumers."""
    talker.consume(number)


def busy(talker: Talker, number: int) -> None:
    """n consumers hold one message each, and as many wait."""
    talker.consume(number, prefetch=1)
    talker.publish(2 * number)


def filled(talker: Talker, number: int) -> None:
    """n messages wait."""
    talker.publish(number)


def expiring(talker: Talker, number: int) -> None:
    """n messages expire in a second."""
    talker.declare("dead")
    talker.publish(number, expiration="1000")


def holding(talker: Talker, number: int) -> None:
    """One consumer holds n messages."""
    talker.declare("dead")
    talker.publish(number)
    talker.consume(1)


def returning(talker: Talker, number: int) -> None:
    """A consumer that was cancelled holds n messages."""
    holding(talker, number)
    talker.say(m.BasicCancel(consumer_tag="0"))


def got(talker: Talker, number: int) -> None:
    """The client has got n messages."""
    talker.publish(number)
    for _ in range(number):
        talker.say(m.BasicGet(queue=QUEUE))


def _under_one_window(talker: Talker, number: int) -> None:
    talker.say(m.BasicQos(prefetch_count=10, global_=True))
    talker.consume(number)
    talker.publish(number)


def _priorities(talker: Talker, number: int) -> None:
    for priority in range(10):
        talker.publish(number // 10, priority=priority)


def one(*methods: Method) -> Deed:
    """Send these methods."""
    return lambda talker, number: talker.say(*methods)


def cancel(talker: Talker, number: int) -> None:
    talker.say(*(m.BasicCancel(consumer_tag=str(tag)) for tag in range(number)))


def cancel_backwards(talker: Talker, number: int) -> None:
    talker.say(*(m.BasicCancel(consumer_tag=str(tag)) for tag in reversed(range(number))))


def drop(talker: Talker, number: int) -> None:
    talker.client.drop()


def ack(talker: Talker, number: int) -> None:
    for tag in range(1, number + 1):
        talker.say(m.BasicAck(delivery_tag=tag))


def publish_and_ack(talker: Talker, number: int) -> None:
    for tag in range(1, number + 1):
        talker.publish(1)
        talker.say(m.BasicAck(delivery_tag=tag))


def look(talker: Talker, number: int) -> None:
    """As a program does that looks how far the consumers are."""
    for _ in range(number):
        talker.say(m.QueueDeclare(queue=QUEUE, passive=True))


def get(talker: Talker, number: int) -> None:
    for _ in range(number):
        talker.say(m.BasicGet(queue=QUEUE, no_ack=True))


def advance(talker: Talker, number: int) -> None:
    talker.client.server.advance(2)


_SINGLE = {"x_single_active_consumer": True}
_TO_DEAD = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "dead"}

on_queue("cancel n consumers", consuming, cancel)
on_queue("cancel n consumers without credit", busy, cancel_backwards)
on_queue("cancel n single active consumers", consuming, cancel, **_SINGLE)
on_queue("close a connection with n consumers", consuming, drop)
on_queue("close a connection with n single active consumers", consuming, drop, **_SINGLE)
on_queue("close a connection with n consumers that hold one message each", busy, drop)
on_queue("delete a queue with n consumers", consuming, one(m.QueueDelete(queue=QUEUE)))
on_queue("acknowledge and deliver with n consumers of prefetch 1", busy, ack)
on_queue(
    "publish to n consumers of prefetch 1, and acknowledge",
    lambda talker, number: (talker.consume(number, prefetch=1), talker.publish(number - 1)),
    publish_and_ack,
)
on_queue(
    "publish n messages to n consumers without credit",
    lambda talker, number: (talker.consume(number, prefetch=1), talker.publish(number)),
    filled,
)
# Each acknowledgement opens the window for all n consumers, which then wait again.
on_queue(
    "acknowledge with n consumers under one shared window", _under_one_window, ack, types=(), linear=False
)
on_queue("close a connection with n unacknowledged messages", holding, drop)
on_queue("close a connection with n messages got", got, drop)
on_queue("declare a queue with n unacknowledged n times", holding, look)
on_queue("acknowledge n messages at once", holding, one(m.BasicAck(delivery_tag=0, multiple=True)))
on_queue(
    "acknowledge n messages, the latest first",
    holding,
    lambda talker, number: talker.say(*(m.BasicAck(delivery_tag=tag) for tag in range(number, 0, -1))),
)
on_queue(
    "requeue n messages at once", returning, one(m.BasicNack(delivery_tag=0, multiple=True, requeue=True))
)
on_queue(
    "requeue n messages, the latest first",
    returning,
    lambda talker, number: talker.say(
        *(m.BasicNack(delivery_tag=tag, requeue=True) for tag in range(number, 0, -1))
    ),
)
on_queue(
    "dead-letter n rejected messages",
    holding,
    one(m.BasicNack(delivery_tag=0, multiple=True, requeue=False)),
    **_TO_DEAD,
)
on_queue("get n messages", filled, get)
on_queue("purge n messages", filled, one(m.QueuePurge(queue=QUEUE)))
on_queue("delete a queue with n messages", filled, one(m.QueueDelete(queue=QUEUE)))
on_queue("expire n messages", expiring, advance)
on_queue("dead-letter n expired messages", expiring, advance, **_TO_DEAD)
on_queue(
    "deliver n messages of ten priorities",
    _priorities,
    lambda talker, number: talker.consume(1),
    types=(),
    x_max_priority=9,
)


@operation("drop n messages beyond the length", type_name=TYPES)
def _(number: int, type_name: str) -> Action:
    _, talker = started(type_name, x_max_length=number)
    talker.publish(number)
    return lambda: talker.publish(number)


# --- bindings -------------------------------------------------------------------------------------------


def _many_queues(number: int, exchange_type: str) -> tuple[Server, Talker]:
    server, talker = started()
    talker.say(m.ExchangeDeclare(exchange="e", type=exchange_type))
    for queue in range(number):
        server.vhost.queues.declare(str(queue))
    return server, talker


EXCHANGES = ("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-modulus-hash", "x-random")


@operation("bind n queues", exchange_type=EXCHANGES)
def _(number: int, exchange_type: str) -> Action:
    _, talker = _many_queues(number, exchange_type)
    return lambda: talker.say(
        *(m.QueueBind(queue=str(queue), exchange="e", routing_key="1") for queue in range(number))
    )


@operation("unbind n queues", exchange_type=EXCHANGES)
def _(number: int, exchange_type: str) -> Action:
    _, talker = _many_queues(number, exchange_type)
    keys = [str(queue) for queue in range(number)]
    talker.say(*(m.QueueBind(queue=queue, exchange="e", routing_key="1") for queue in keys))
    return lambda: talker.say(*(m.QueueUnbind(queue=queue, exchange="e", routing_key="1") for queue in keys))


def _by_keys(method: type[Method], number: int) -> list[Method]:
    """Bind or unbind one queue by n keys."""
    place = {"queue": "0", "exchange": "e"}
    return [method(**place, routing_key=f"{key}.a", arguments={"key": key}) for key in range(number)]


@operation("bind one queue by n keys", exchange_type=EXCHANGES[:4])
def _(number: int, exchange_type: str) -> Action:
    _, talker = _many_queues(1, exchange_type)
    return lambda: talker.say(*_by_keys(m.QueueBind, number))


@operation("unbind one queue by n keys", exchange_type=EXCHANGES[:4])
def _(number: int, exchange_type: str) -> Action:
    _, talker = _many_queues(1, exchange_type)
    talker.say(*_by_keys(m.QueueBind, number))
    return lambda: talker.say(*_by_keys(m.QueueUnbind, number))


@operation("bind and publish n times", exchange_type=("direct", "topic", "x-consistent-hash"))
def _(number: int, exchange_type: str) -> Action:
    _, talker = _many_queues(number, exchange_type)

    def exchange() -> None:
        for queue in range(number):
            talker.say(m.QueueBind(queue=str(queue), exchange="e", routing_key=str(queue + 1)))
            talker.publish(1, str(queue + 1), exchange="e")

    return exchange


@operation("delete a queue with n bindings", exchange_type=EXCHANGES[:4])
def _(number: int, exchange_type: str) -> Action:
    server, talker = _many_queues(1, exchange_type)
    queue = server.vhost.queues["0"]
    for key in range(number):
        server.vhost.bindings.bind("e", queue, str(key), {"key": key})
    return lambda: talker.say(m.QueueDelete(queue="0"))


@operation("delete n queues")
def _(number: int) -> Action:
    _, talker = _many_queues(number, "fanout")
    return lambda: talker.say(*(m.QueueDelete(queue=str(queue)) for queue in range(number)))


@operation("open n connections with a channel each")
def _(number: int) -> Action:
    server = Server()
    return lambda: [server.client() for _ in range(number)]


@operation("open and close n channels")
def _(number: int) -> Action:
    client = Server().client()
    numbers = range(2, min(number, 2000) + 2)
    frames = [method_frame(each, m.ChannelOpen().encode()) for each in numbers]
    frames += [method_frame(each, m.ChannelClose(reply_code=200).encode()) for each in numbers]
    return lambda: (client.send_bytes(b"".join(frames)), client.take_bytes())


@operation("declare n queues")
def _(number: int) -> Action:
    _, talker = started()
    return lambda: talker.say(*(m.QueueDeclare(queue=f"q{each}", durable=True) for each in range(number)))


@operation("close n connections with an exclusive queue each")
def _(number: int) -> Action:
    server = Server()
    talkers = [Talker(server) for _ in range(number)]
    for each in talkers:
        each.say(m.QueueDeclare(exclusive=True))
    return lambda: [each.client.drop() for each in talkers]


# --- the report -----------------------------------------------------------------------------------------


def seconds(measured: Operation, number: int) -> float:
    """How long the operation takes at this number."""
    action = measured.prepare(number)
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start
    finally:
        gc.enable()


def main() -> None:
    """Measure operations and print their times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of operations; * for any part")
    parser.add_argument("--number", type=int, default=1000, help="N (default: %(default)s)")
    options = parser.parse_args()
    print(f"{'operation':72} {'N ms':>9} {'2 N ms':>9} {'4 N ms':>9} {'4 N / N':>8}")
    for each in OPERATIONS:
        if any(fnmatch(each.name, pattern) for pattern in options.patterns):
            times = [
                1000 * min(seconds(each, factor * options.number) for _ in range(2)) for factor in (1, 2, 4)
            ]
            columns = " ".join(f"{value:9.1f}" for value in times)
            print(f"{each.name:72} {columns} {times[2] / times[0]:8.1f}", flush=True)


if __name__ == "__main__":
    main()
