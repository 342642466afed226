"""How long one client's operation over many messages keeps the others waiting.

    python -m compat_tests.benchmarks.stalls [PATTERN...] [--number N] [--keep NAME]

Each operation runs at N, 2 N and 4 N objects in a broker of its own process. Meanwhile a second client, in
another process and on its own connection, declares a queue passively every two milliseconds. The report has
the time of the operation, and the round trips of the second client: the median, the 99th percentile and the
longest. A round trip that takes longer than the interval counts for those that could not begin meanwhile as
well, so that a long stall weighs what it takes.

Nearly all operations are a client's, against `fakeamqp serve`. Moving a virtual clock, definitions, policies
and what an operator deletes are calls of the test's thread: they run in a `Broker` of another process.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from typing import Any, TypeAlias

from compat_tests.benchmarks.load import Address, Connection, fakeamqp_serving
from compat_tests.reliability import results
from compat_tests.scripted.amqp_0_9_1 import Frame
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

__all__ = ["OPERATIONS", "Measured", "Operation", "main"]

Action: TypeAlias = Callable[[], object]

QUEUE = "stalls"
DEAD = "dead"
PROBED = "probed"
TYPES = ("classic", "quorum")
INTERVAL = 0.002
"""Seconds between the beginnings of two round trips of the second client."""
P99_GOAL, LONGEST_GOAL = 50.0, 250.0
"""Milliseconds."""
BODY = b"body"
_BATCH = 500
_LARGEST_PREFETCH = 65_535
_DELIVERED = 3
"""Frames of a delivery with a body."""


# --- clients --------------------------------------------------------------------------------------------


class Talker(Connection):
    """A client that publishes, counts deliveries, and waits for answers among them."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        try:
            self.open(1)
        except BaseException:
            self.close()
            raise
        # Methods stay encoded: most are deliveries that are only counted.
        self.read = lambda payload: None  # type: ignore[method-assign]

    def say(self, *methods: Method) -> None:
        """Send methods on channel 1."""
        self.socket.sendall(b"".join(method_frame(1, method.encode()) for method in methods))

    def ask(self, method: Method, answer: type[Method]) -> None:
        """Send a method, and skip what comes before its answer."""
        self.say(method)
        self.await_method(answer)

    def await_method(self, *answers: type[Method]) -> bytes:
        """Read frames until one of these methods arrives; return its payload."""
        indexes = [answer.INDEX.to_bytes(4, "big") for answer in answers]
        while True:
            for each in self._frames():
                if each.type == 1 and each.payload[:4] in indexes:
                    return each.payload

    def take(self, number: int) -> None:
        """Read so many deliveries."""
        missing = _DELIVERED * number
        while missing > 0:
            missing -= sum(each.type != 8 for each in self._frames())

    def _frames(self) -> list[Frame]:
        """Read once; return the whole frames that have arrived."""
        if not self.connection.wait():
            raise ConnectionError("the broker has sent nothing, or closed the connection")
        frames, self._inbox = self.inbox, []
        return frames

    def declare(self, queue: str = QUEUE, type_name: str = "classic", **arguments: Any) -> None:
        """Declare a durable queue."""
        arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
        declare = m.QueueDeclare(
            queue=queue, durable=True, arguments={"x-queue-type": type_name, **arguments}
        )
        self.ask(declare, m.QueueDeclareOk)

    def count(self, queue: str = QUEUE) -> int:
        """The message count of a queue; answered once all that was sent before is done."""
        self.say(m.QueueDeclare(queue=queue, passive=True))
        payload = self.await_method(m.QueueDeclareOk)
        return int.from_bytes(payload[-8:-4], "big")

    def consumers(self, queue: str = QUEUE) -> int:
        """The consumer count of a queue."""
        self.say(m.QueueDeclare(queue=queue, passive=True))
        return int.from_bytes(self.await_method(m.QueueDeclareOk)[-4:], "big")

    def wait_for(self, number: int, queue: str = QUEUE) -> None:
        """Wait until a queue has this number of messages."""
        while self.count(queue) != number:
            time.sleep(0.02)

    def may_declare(self, queue: str) -> bool:
        """Declare a queue, unless it is exclusive to another connection."""
        self.say(m.QueueDeclare(queue=queue, durable=True))
        payload = self.await_method(m.QueueDeclareOk, m.ChannelClose)
        if payload[:4] == m.QueueDeclareOk.INDEX.to_bytes(4, "big"):
            return True
        self.say(m.ChannelCloseOk())
        self.ask(m.ChannelOpen(), m.ChannelOpenOk)
        return False

    def publish(self, number: int, queue: str = QUEUE, *, exchange: str = "", **properties: Any) -> None:
        """Publish so many messages, and wait until the broker has them."""
        one = method_frame(1, m.BasicPublish(exchange=exchange, routing_key=queue).encode()) + b"".join(
            content_frames(1, 60, BasicProperties(**properties).encode(), BODY, 131_064)
        )
        for start in range(0, number, _BATCH):
            self.socket.sendall(one * min(_BATCH, number - start))
        self.count(PROBED)

    def consume(self, tag: str = "0") -> None:
        """Start a consumer with acknowledgements."""
        self.ask(m.BasicConsume(queue=QUEUE, consumer_tag=tag), m.BasicConsumeOk)


class Probe:
    """The second client, in a process of its own."""

    def __init__(self, address: Address) -> None:
        command = [sys.executable, "-m", __spec__.name, "--probe", f"{address.host}:{address.port}"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask("")

    def _ask(self, text: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(text, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()

    def round_trips(self, start: float, end: float) -> list[float]:
        """Seconds of the round trips that overlap this time."""
        trips: list[float] = json.loads(self._ask(f"{start!r} {end!r}"))
        return trips

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()


def be_the_probe(place: str) -> None:
    """Declare a queue passively at an interval; answer each line with the round trips between two times."""
    host, _, port = place.rpartition(":")
    talker = Talker(Address("probed", host, int(port)))
    trips: list[tuple[float, float]] = []

    def ask() -> None:
        while True:
            start = time.monotonic()
            talker.count(PROBED)
            end = time.monotonic()
            trips.append((start, end))
            time.sleep(max(0.0, start + INTERVAL - end))

    threading.Thread(target=ask, daemon=True).start()
    for line in sys.stdin:
        if not line.strip():
            print("ready", flush=True)
            continue
        first, last = map(float, line.split())
        while not trips or trips[-1][0] <= last:
            time.sleep(INTERVAL)
        print(json.dumps([end - start for start, end in trips if end >= first and start <= last]), flush=True)
        trips.clear()


@contextmanager
def hosting() -> Iterator[tuple[Address, Callable[[str], None]]]:
    """A `Broker` with a virtual clock in another process, and a function that runs a call of it there."""
    command = [sys.executable, "-m", __spec__.name, "--host"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def run(call: str) -> None:
            print(call, file=stdin, flush=True)
            assert stdout.readline() == "done\n"

        try:
            yield Address("Broker", "127.0.0.1", int(stdout.readline())), run
        finally:
            process.terminate()


def be_the_host() -> None:
    """Run the calls that arrive line by line: a name and one argument in JSON."""
    from fakeamqp import Broker

    with Broker(clock="virtual", history=0) as broker:
        print(broker.port, flush=True)
        for line in sys.stdin:
            name, _, argument = line.partition(" ")
            calls: dict[str, Callable[[Any], object]] = {
                "advance": broker.clock.advance,
                "load": broker.load_definitions,
                "add_virtual_host": broker.admin.add_virtual_host,
                "remove_virtual_host": broker.admin.remove_virtual_host,
                "clear_policy": broker.admin.clear_policy,
                "delete": lambda queue: broker.queue(queue).delete(),
                "purge": lambda queue: broker.queue(queue).purge(),
                "cancel_consumers": lambda queue: broker.queue(queue).cancel_consumers(),
            }
            calls[name](json.loads(argument))
            print("done", flush=True)


# --- operations -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """What an operation has to work with: two clients, and calls of the test's thread where it is hosted."""

    address: Address
    talker: Talker
    consumer: Talker
    run: Callable[[str], None]


@dataclass(frozen=True)
class Operation:
    """One operation.

    Args:
        name: what is done to n objects.
        prepare: makes n objects; returns the function to measure.
        share: the part of the number that this operation takes.
        hosted: whether it is a call of the test's thread, in a `Broker` with a virtual clock.
    """

    name: str
    prepare: Callable[[Bench, int], Action]
    share: float = 1.0
    hosted: bool = False


OPERATIONS: list[Operation] = []


def operation(
    name: str, *, share: float = 1.0, hosted: bool = False, types: tuple[str, ...] = ()
) -> Callable[[Callable[..., Action]], Callable[..., Action]]:
    """Enter an operation; one with types is entered once for each of them."""

    def enter(prepare: Callable[..., Action]) -> Callable[..., Action]:
        if not types:
            OPERATIONS.append(Operation(name, prepare, share, hosted))
        for each in types:

            def of_type(bench: Bench, number: int, type_name: str = each) -> Action:
                return prepare(bench, number, type_name)

            OPERATIONS.append(Operation(f"{each}: {name}", of_type, share, hosted))
        return prepare

    return enter


def holding(bench: Bench, number: int, type_name: str = "classic", **arguments: Any) -> Talker:
    """The consumer, once it holds so many messages of one queue."""
    bench.talker.declare(DEAD)
    bench.talker.declare(QUEUE, type_name, **arguments)
    if type_name == "classic":
        bench.consumer.consume()
    else:  # Its consumers have a prefetch in any case.
        bench.consumer.ask(m.BasicQos(prefetch_count=_LARGEST_PREFETCH), m.BasicQosOk)
        for tag in range(number // _LARGEST_PREFETCH + 1):
            bench.consumer.consume(str(tag))
    publisher = threading.Thread(target=bench.talker.publish, args=(number,))
    publisher.start()
    bench.consumer.take(number)
    publisher.join()
    return bench.consumer


TO_DEAD = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": DEAD}


@operation("fan n messages out to 1 000 queues", share=0.005)
def _(bench: Bench, number: int) -> Action:
    talker = bench.talker
    talker.ask(m.ExchangeDeclare(exchange="fan", type="fanout"), m.ExchangeDeclareOk)
    for each in range(1000):
        talker.declare(f"fan.{each}")
        talker.ask(m.QueueBind(queue=f"fan.{each}", exchange="fan"), m.QueueBindOk)
    return lambda: talker.publish(number, exchange="fan")


def _fanned(bench: Bench, number: int) -> None:
    """Bind so many queues to a fanout exchange."""
    for each in range(number):
        name = f"f{each}"
        bench.talker.say(
            m.QueueDeclare(queue=name, no_wait=True),
            m.QueueBind(queue=name, exchange="amq.fanout", no_wait=True),
        )
    bench.talker.count(PROBED)


@operation("fan a message out to n queues", share=0.1)
def _(bench: Bench, number: int) -> Action:
    _fanned(bench, number)
    return lambda: bench.talker.publish(1, exchange="amq.fanout")


@operation("reject a message to a dead-letter exchange with n queues", share=0.1)
def _(bench: Bench, number: int) -> Action:
    consumer = holding(bench, 1, x_dead_letter_exchange="amq.fanout")
    _fanned(bench, number)

    def reject() -> None:
        consumer.say(m.BasicNack(delivery_tag=0, multiple=True, requeue=False))
        consumer.count(PROBED)

    return reject


@operation("fan n messages of 100 publishers out to 1 000 queues", share=0.005)
def _(bench: Bench, number: int) -> Action:
    _fanned(bench, 1000)
    publishers = [Talker(bench.address) for _ in range(100)]
    each = -(-number // len(publishers))

    def publish() -> None:
        threads = [
            threading.Thread(target=talker.publish, args=(each,), kwargs={"exchange": "amq.fanout"})
            for talker in publishers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
            Talker(bench.address).close()  # Others log in meanwhile.
        for talker in publishers:
            talker.close()

    return publish


@operation("delete a queue with n messages", types=(*TYPES, "stream"))
def _(bench: Bench, number: int, type_name: str) -> Action:
    bench.talker.declare(QUEUE, type_name)
    bench.talker.publish(number)
    return lambda: (bench.talker.ask(m.QueueDelete(queue=QUEUE), m.QueueDeleteOk), bench.talker.count(PROBED))


@operation("purge n messages", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    bench.talker.declare(QUEUE, type_name)
    bench.talker.publish(number)
    return lambda: (bench.talker.ask(m.QueuePurge(queue=QUEUE), m.QueuePurgeOk), bench.talker.count(PROBED))


def _expiring(bench: Bench, number: int, type_name: str, **arguments: Any) -> None:
    """A queue whose n messages have expired behind one that expires soon."""
    bench.talker.declare(DEAD)
    bench.talker.declare(QUEUE, type_name, **arguments)
    seconds = 2 + number / 15_000
    due = time.monotonic() + seconds
    bench.talker.publish(1, expiration=str(int(1000 * seconds)))
    bench.talker.publish(number, expiration="1")
    time.sleep(max(0.0, due - time.monotonic() - 0.1))


@operation("expire n messages", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    _expiring(bench, number, type_name)
    return lambda: bench.talker.wait_for(0)


@operation("expire n messages to a dead-letter queue", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    _expiring(bench, number, type_name, **TO_DEAD)
    return lambda: bench.talker.wait_for(number + 1, DEAD)


@operation("requeue n messages", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    consumer = holding(bench, number, type_name)
    for tag in range(number // _LARGEST_PREFETCH + 1):
        consumer.ask(m.BasicCancel(consumer_tag=str(tag)), m.BasicCancelOk)

    def requeue() -> None:
        consumer.say(m.BasicNack(delivery_tag=0, multiple=True, requeue=True))
        assert consumer.count() == number

    return requeue


@operation("reject n messages to a dead-letter queue", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    consumer = holding(bench, number, type_name, **TO_DEAD)

    def reject() -> None:
        consumer.say(m.BasicNack(delivery_tag=0, multiple=True, requeue=False))
        consumer.wait_for(number, DEAD)

    return reject


@operation("publish n messages too many, to a dead-letter queue", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    bench.talker.declare(DEAD)
    bench.talker.declare(QUEUE, type_name, x_max_length=1, **TO_DEAD)
    bench.talker.publish(1)
    return lambda: (bench.talker.publish(number), bench.talker.wait_for(number, DEAD))


@operation("requeue n messages of ten priorities")
def _(bench: Bench, number: int) -> Action:
    bench.talker.declare(QUEUE, x_max_priority=9)
    bench.consumer.consume()
    publisher = threading.Thread(
        target=lambda: [bench.talker.publish(number // 10, priority=each) for each in range(10)]
    )
    publisher.start()
    bench.consumer.take(number // 10 * 10)
    publisher.join()
    bench.consumer.ask(m.BasicCancel(consumer_tag="0"), m.BasicCancelOk)

    def requeue() -> None:
        bench.consumer.say(m.BasicNack(delivery_tag=0, multiple=True, requeue=True))
        assert bench.consumer.count() == number // 10 * 10

    return requeue


@operation("publish n delayed messages when they are due")
def _(bench: Bench, number: int) -> Action:
    talker = bench.talker
    talker.declare()
    talker.ask(
        m.ExchangeDeclare(exchange="late", type="x-delayed-message", arguments={"x-delayed-type": "fanout"}),
        m.ExchangeDeclareOk,
    )
    talker.ask(m.QueueBind(queue=QUEUE, exchange="late"), m.QueueBindOk)
    due = time.monotonic() + 2 + number / 15_000
    for start in range(0, number, 10_000):
        left = min(10_000, number - start)
        delay = int(1000 * (due - time.monotonic()))
        talker.publish(left, exchange="late", headers={"x-delay": max(delay, 1)})
    time.sleep(max(0.0, due - time.monotonic() - 0.1))
    return lambda: talker.wait_for(number)


@operation("acknowledge n messages at once", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    consumer = holding(bench, number, type_name)

    def acknowledge() -> None:
        consumer.say(m.BasicAck(delivery_tag=number, multiple=True))
        consumer.count()

    return acknowledge


@operation("commit n publishes", types=TYPES, share=0.009)
def _(bench: Bench, number: int, type_name: str) -> Action:
    bench.talker.declare(QUEUE, type_name)
    bench.talker.ask(m.TxSelect(), m.TxSelectOk)
    bench.talker.publish(number)
    return lambda: bench.talker.ask(m.TxCommit(), m.TxCommitOk)


@operation("close a connection with n unacknowledged messages", types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    consumer = holding(bench, number, type_name)
    return lambda: (consumer.close(), bench.talker.wait_for(number))


def _binding(bench: Bench, number: int, exchange: str = "amq.topic") -> None:
    bench.talker.declare()
    for start in range(0, number, _BATCH):
        keys = range(start, min(start + _BATCH, number))
        binds = [m.QueueBind(queue=QUEUE, exchange=exchange, routing_key=f"{key}.a") for key in keys]
        bench.talker.say(*binds)
    bench.talker.count(PROBED)


@operation("delete a queue with n bindings", share=0.1)
def _(bench: Bench, number: int) -> Action:
    talker = bench.talker
    _binding(bench, number)
    return lambda: (talker.ask(m.QueueDelete(queue=QUEUE), m.QueueDeleteOk), talker.count(PROBED))


@operation("delete an exchange with n bindings", share=0.1)
def _(bench: Bench, number: int) -> Action:
    talker = bench.talker
    talker.ask(m.ExchangeDeclare(exchange="x", type="direct"), m.ExchangeDeclareOk)
    _binding(bench, number, "x")
    return lambda: (talker.ask(m.ExchangeDelete(exchange="x"), m.ExchangeDeleteOk), talker.count(PROBED))


@operation("close a connection with n exclusive queues", share=0.1)
def _(bench: Bench, number: int) -> Action:
    for start in range(0, number, _BATCH):
        names = [f"own{each}" for each in range(start, min(start + _BATCH, number))]
        bench.consumer.say(*(m.QueueDeclare(queue=name, exclusive=True, no_wait=True) for name in names))
    bench.consumer.count(PROBED)

    def close() -> None:
        bench.consumer.close()
        while not bench.talker.may_declare(f"own{number - 1}"):
            time.sleep(0.02)

    return close


def _consuming(bench: Bench, number: int, type_name: str) -> None:
    bench.talker.declare(QUEUE, type_name)
    for start in range(0, number, _BATCH):
        tags = range(start, min(start + _BATCH, number))
        bench.consumer.say(
            *(m.BasicConsume(queue=QUEUE, consumer_tag=str(tag), no_wait=True) for tag in tags)
        )
    bench.consumer.count()


@operation("delete a queue with n consumers", share=0.1, types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    _consuming(bench, number, type_name)
    return lambda: (bench.talker.ask(m.QueueDelete(queue=QUEUE), m.QueueDeleteOk), bench.talker.count(PROBED))


@operation("cancel n consumers", share=0.1, types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    _consuming(bench, number, type_name)

    def cancel() -> None:
        for start in range(0, number, _BATCH):
            tags = range(start, min(start + _BATCH, number))
            bench.consumer.say(*(m.BasicCancel(consumer_tag=str(tag), no_wait=True) for tag in tags))
        bench.consumer.count()

    return cancel


@operation("close a connection with n consumers", share=0.1, types=TYPES)
def _(bench: Bench, number: int, type_name: str) -> Action:
    _consuming(bench, number, type_name)

    def close() -> None:
        bench.consumer.close()
        while bench.talker.consumers():
            time.sleep(0.02)

    return close


@operation("advance a virtual clock past n timers", share=0.1, hosted=True)
def _(bench: Bench, number: int) -> Action:
    for each in range(number):
        bench.talker.say(
            m.QueueDeclare(queue=f"q{each}", durable=True, no_wait=True, arguments={"x-expires": 1000 + each})
        )
    bench.talker.count(PROBED)
    return lambda: bench.run(f"advance {2 + number / 1000}")


@operation("expire n messages by advancing a virtual clock", hosted=True)
def _(bench: Bench, number: int) -> Action:
    bench.talker.declare(QUEUE)
    bench.talker.publish(number, expiration="1000")
    return lambda: bench.run("advance 2")


@operation("load definitions of n queues", share=0.1, hosted=True)
def _(bench: Bench, number: int) -> Action:
    definitions = {"queues": [_defined(each) for each in range(number)]}
    return lambda: bench.run(f"load {json.dumps(definitions)}")


def _defined(number: int) -> dict[str, Any]:
    return {"name": f"d{number}", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}


@operation("set a policy over n queues", share=0.1, hosted=True)
def _(bench: Bench, number: int) -> Action:
    bench.run(f"load {json.dumps({'queues': [_defined(each) for each in range(number)]})}")
    policy = {"vhost": "/", "name": "p", "pattern": "^d", "apply-to": "queues", "priority": 0}
    definitions = {"policies": [{**policy, "definition": {"max-length": 5}}]}
    return lambda: bench.run(f"load {json.dumps(definitions)}")


@operation("clear a policy over n queues", share=0.1, hosted=True)
def _(bench: Bench, number: int) -> Action:
    policy = {"vhost": "/", "name": "p", "pattern": "^d", "priority": 0, "definition": {"max-length": 5}}
    definitions = {"policies": [policy], "queues": [_defined(each) for each in range(number)]}
    bench.run(f"load {json.dumps(definitions)}")
    return lambda: bench.run('clear_policy "p"')


@operation("remove a virtual host with n queues", share=0.1, hosted=True)
def _(bench: Bench, number: int) -> Action:
    bench.run('add_virtual_host "v"')
    queues = [{**_defined(each), "vhost": "v"} for each in range(number)]
    bench.run(f"load {json.dumps({'queues': queues})}")
    return lambda: bench.run('remove_virtual_host "v"')


@operation("delete a queue with n bindings by a call", share=0.1, hosted=True)
def _(bench: Bench, number: int) -> Action:
    _binding(bench, number)
    return lambda: bench.run(f"delete {json.dumps(QUEUE)}")


@operation("purge n messages by a call", hosted=True)
def _(bench: Bench, number: int) -> Action:
    bench.talker.declare(QUEUE)
    bench.talker.publish(number)
    return lambda: bench.run(f"purge {json.dumps(QUEUE)}")


@operation("cancel n consumers by a call", share=0.1, hosted=True)
def _(bench: Bench, number: int) -> Action:
    _consuming(bench, number, "classic")
    return lambda: bench.run(f"cancel_consumers {json.dumps(QUEUE)}")


# --- the report -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One run of an operation: its time and the round trips of the second client, in milliseconds."""

    operation: str
    number: int
    milliseconds: float
    p50: float
    p99: float
    longest: float


def percentiles(round_trips: list[float]) -> tuple[float, float, float]:
    """The median, 99th percentile and longest of round trips, in the same unit.

    A long one counts for those as well that would have begun meanwhile, at the interval.
    """
    counted = [0.0] if not round_trips else []
    for trip in round_trips:
        counted.append(trip)
        left = trip - INTERVAL
        while left > INTERVAL:
            counted.append(left)
            left -= INTERVAL
    counted.sort()
    return counted[len(counted) // 2], counted[min(len(counted) - 1, len(counted) * 99 // 100)], counted[-1]


def measure(each: Operation, number: int) -> Measured:
    """Run an operation once, in a new broker."""
    with ExitStack() as stack:
        if each.hosted:
            address, run = stack.enter_context(hosting())
        else:
            # Without the memory alarm, which would block the second client for five million entries.
            address, run = stack.enter_context(fakeamqp_serving("--memory-limit", "none")), _cannot
        talker, consumer = Talker(address), Talker(address)
        stack.callback(talker.close)
        stack.callback(consumer.close)
        talker.declare(PROBED)
        count = max(1, int(number * each.share))
        probe = Probe(address)
        stack.callback(probe.close)
        action = each.prepare(Bench(address, talker, consumer, run), count)
        start = time.monotonic()
        action()
        end = time.monotonic()
        p50, p99, longest = percentiles(probe.round_trips(start, end))
    return Measured(
        each.name,
        count,
        *(round(1000 * seconds, 1) for seconds in (end - start, p50, p99, longest)),
    )


def _cannot(call: str) -> None:
    raise ValueError(f"{call!r} needs an operation that is hosted")


def write(name: str, figures: list[Measured]) -> None:
    """Keep the figures so far, with the load of the machine."""
    command = shlex.join(["python", "-m", "compat_tests.benchmarks.stalls", *sys.argv[1:]])
    load = round(os.getloadavg()[1], 1)
    results.write(name, command, {"load_average": load, "figures": [asdict(each) for each in figures]})


def main() -> None:
    """Measure operations, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of operations; * for any part")
    parser.add_argument("--number", type=int, default=250_000, help="N (default: %(default)s)")
    parser.add_argument("--factors", type=int, nargs="+", default=[1, 2, 4], help="multiples of N to measure")
    parser.add_argument("--keep", metavar="NAME", help="write compat_tests/reliability/NAME.json as well")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    parser.add_argument("--host", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        be_the_probe(options.probe)
        return
    if options.host:
        be_the_host()
        return
    figures = []
    print(f"{'operation':60} {'n':>9} {'time ms':>9} {'p50 ms':>8} {'p99 ms':>8} {'longest':>8}")
    for each in OPERATIONS:
        if not any(fnmatch(each.name, pattern) for pattern in options.patterns):
            continue
        for factor in options.factors:
            measured = measure(each, factor * options.number)
            figures.append(measured)
            mark = " *" if measured.p99 > P99_GOAL or measured.longest > LONGEST_GOAL else ""
            print(
                f"{each.name:60} {measured.number:9} {measured.milliseconds:9.0f} {measured.p50:8.1f} "
                f"{measured.p99:8.1f} {measured.longest:8.1f}{mark}",
                flush=True,
            )
            if options.keep:
                write(options.keep, figures)
    print(f"* above the goal: p99 {P99_GOAL:g} ms, longest {LONGEST_GOAL:g} ms")


if __name__ == "__main__":
    main()
