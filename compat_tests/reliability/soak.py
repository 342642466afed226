"""A soak: clients of every protocol work for a month of the broker's time, while chaos has its way.

python -m compat_tests.reliability.soak [--minutes M] [--days D] [--seed S]

pika, aio-pika, and raw clients of 0-9-1, 0-9 and 0-10 publish persistent messages with confirms to a queue of
their own each, and take what is in it: they accept, reject (a dead letter) and give back. Every day has
another profile of chaos, and begins with faults on a clock that runs with real time; then the rest of the day
passes at once. Messages that lie for a day expire into the queue of dead letters, which all of them read.

The books have every message. At the end each confirmed one has been accepted, or is in a queue; none came
twice from one queue without being marked as redelivered; and no thread, socket, connection or timer is left.
Memory is measured at the end of every day, and must be flat after the first ones.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aio_pika
import pika

from compat_tests.clients.amqp_0_10.client import connect as connect_0_10
from compat_tests.clients.amqp_0_10.errors import ClientError
from compat_tests.differential.raw_client import Address, RawClient
from compat_tests.reliability import page, results
from compat_tests.tools.heap import alive, held_by, ignore_older_objects
from fakeamqp import Broker
from fakeamqp.faults.chaos import PROFILES
from fakeamqp.protocols.base.server_connection import ServerConnection

__all__ = ["NAME", "Report", "main", "soak"]

NAME = "soak"
DAY = 86_400.0
DEAD = "dead"
PATIENCE = 1.5
"""Real seconds that a client waits for anything; faults last for less."""
BATCH = 8
_MOST = 4_000_000
"""Messages that one client can publish at most."""
_COPIES = ("duplicate-publish", "duplicate-delivery")
"""Faults that make copies, which the books would take for messages that come twice."""
_RAW_0_9 = b"AMQP\1\1\0\x09"


class Books:
    """What became of the messages of one client. A bit each, so that the books do not grow."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.published = 0
        self.marks: dict[str, bytearray] = {
            mark: bytearray(_MOST // 8) for mark in ("confirmed", "accepted", "seen", "seen dead", "rejected")
        }
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def mark(self, mark: str, number: int) -> bool:
        """Set a mark; whether it was set before."""
        marks = self.marks[mark]
        bit = 1 << (number & 7)
        before = bool(marks[number >> 3] & bit)
        marks[number >> 3] |= bit
        if not before:
            self.counts[mark] += 1
        return before

    def has(self, mark: str, number: int) -> bool:
        return bool(self.marks[mark][number >> 3] & 1 << (number & 7))

    def came(self, number: int, queue: str, *, redelivered: bool) -> None:
        """A message has come from a queue."""
        before = self.mark("seen dead" if queue == DEAD else "seen", number)
        self.counts["deliveries"] += 1
        if before and not redelivered:
            self.wrong.append(f"{self.name}:{number} came from {queue} once more, not marked as redelivered")

    def unaccounted(self, there: set[int]) -> list[int]:
        """Confirmed messages that have not been accepted and are not there."""
        return [
            number
            for number in range(self.published)
            if self.has("confirmed", number) and not self.has("accepted", number) and number not in there
        ]


class Worker:
    """One client: it publishes, consumes and settles in rounds, and survives whatever is raised."""

    name = ""

    def __init__(self, broker: Broker, every: dict[str, Books], seed: str) -> None:
        self.broker = broker
        self.books = every[self.name]
        self.every = every
        self.draw = random.Random(f"{seed}:{self.name}")
        self.ending = threading.Event()
        self.raised: Counter[str] = Counter()
        self.rounds = 0
        self.queue = f"work-{self.name}"
        self.thread = threading.Thread(target=self._run, name=f"soak {self.name}", daemon=True)

    def _run(self) -> None:
        while not self.ending.is_set():
            try:
                self.round()
                self.rounds += 1
            except Exception as error:
                self.raised[type(error).__name__] += 1

    def round(self) -> None:
        """Connect, publish, take, settle, and close."""
        raise NotImplementedError

    def next(self) -> tuple[int, bytes]:
        """The number and the body of the next message."""
        number = self.books.published
        assert number < _MOST, "the books are full"
        self.books.published += 1
        return number, f"{self.name}:{number}:".encode() + b"x" * (number % 200)

    def confirmed(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.books.mark("confirmed", number)

    def came(self, queue: str, body: bytes, *, redelivered: bool) -> tuple[Books, int, str]:
        """Enter a delivery; whose it is, its number, and what to do with it."""
        name, number, _ = body.split(b":", 2)
        books = self.every[name.decode()]
        books.came(int(number), queue, redelivered=redelivered)
        how = "accept" if queue == DEAD else self.draw.choices(("accept", "reject", "release"), (8, 1, 1))[0]
        return books, int(number), how

    @staticmethod
    def settled(books: Books, number: int, how: str) -> None:
        """A settlement is sent: the message may be gone from now on."""
        if how == "accept":
            books.mark("accepted", number)
        elif how == "reject":
            books.mark("rejected", number)

    @property
    def arguments(self) -> dict[str, Any]:
        """Of its queue: rejected and old messages go to the dead ones."""
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
        return {**arguments, "x-message-ttl": int(DAY) * 1000, "x-queue-type": self.kind}

    kind = "classic"


class PikaWorker(Worker):
    """A blocking connection of pika."""

    name = "pika"

    def round(self) -> None:
        parameters = pika.ConnectionParameters(
            self.broker.host,
            self.broker.port,
            socket_timeout=PATIENCE,
            stack_timeout=PATIENCE,
            blocked_connection_timeout=PATIENCE,
            heartbeat=0,
            client_properties={"connection_name": self.name},
        )
        connection = pika.BlockingConnection(parameters)
        # A channel that waits for an answer has no limit of its own.
        guard = connection.call_later(
            2 * PATIENCE, lambda: connection._impl._terminate_stream(TimeoutError())
        )
        try:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare(DEAD, durable=True)
            channel.queue_declare(self.queue, durable=True, arguments=self.arguments)
            for _ in range(BATCH):
                number, body = self.next()
                channel.basic_publish(
                    "", self.queue, body, pika.BasicProperties(delivery_mode=2), mandatory=True
                )
                self.confirmed([number])
            for queue in (self.queue, DEAD):
                for _ in range(2 * BATCH):
                    method, _, body = channel.basic_get(queue)
                    if method is None:
                        break
                    books, number, how = self.came(queue, body, redelivered=method.redelivered)
                    self.settled(books, number, how)
                    if how == "accept":
                        channel.basic_ack(method.delivery_tag)
                    else:
                        channel.basic_reject(method.delivery_tag, requeue=how == "release")
        finally:
            with suppress(Exception):
                connection.remove_timeout(guard)
            with suppress(Exception):
                connection.close()


class AioPikaWorker(Worker):
    """aio-pika, with an event loop for each round."""

    name = "aio-pika"
    kind = "quorum"

    def round(self) -> None:
        asyncio.run(asyncio.wait_for(self._round(), 4 * PATIENCE))

    async def _round(self) -> None:
        connection = await aio_pika.connect(
            self.broker.url, timeout=PATIENCE, client_properties={"connection_name": self.name}
        )
        try:
            channel = await asyncio.wait_for(connection.channel(on_return_raises=True), PATIENCE)
            await channel.set_qos(prefetch_count=2 * BATCH)
            await channel.declare_queue(DEAD, durable=True, timeout=PATIENCE)
            queue = await channel.declare_queue(
                self.queue, durable=True, arguments=self.arguments, timeout=PATIENCE
            )
            sent = [self.next() for _ in range(BATCH)]
            ends = await asyncio.gather(
                *(
                    channel.default_exchange.publish(
                        aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT),
                        self.queue,
                        timeout=PATIENCE,
                    )
                    for _, body in sent
                ),
                return_exceptions=True,
            )
            self.confirmed(
                number
                for (number, _), end in zip(sent, ends, strict=True)
                if not isinstance(end, BaseException)
            )
            async with queue.iterator(timeout=0.05) as messages:
                left = 2 * BATCH
                with suppress(asyncio.TimeoutError):
                    async for message in messages:
                        await self._settle(message)
                        left -= 1
                        if not left:
                            break
        finally:
            with suppress(Exception):
                await asyncio.wait_for(connection.close(), PATIENCE)

    async def _settle(self, message: aio_pika.abc.AbstractIncomingMessage) -> None:
        books, number, how = self.came(self.queue, message.body, redelivered=bool(message.redelivered))
        self.settled(books, number, how)
        if how == "accept":
            await message.ack()
        else:
            await message.reject(requeue=how == "release")


class RawWorker(Worker):
    """Octets of 0-9-1, or of 0-9 as RabbitMQ takes it."""

    name = "0-9-1"
    header = b"AMQP\0\0\x09\x01"

    def round(self) -> None:
        client = RawClient(
            Address(self.broker.host, self.broker.port, patience=PATIENCE / 4), header=self.header
        )
        try:
            self._expect(client.do(1, "confirm.select"), "confirm.select-ok")
            self._expect(client.do(1, "queue.declare", queue=DEAD, durable=True), "declare-ok")
            declared = client.do(1, "queue.declare", queue=self.queue, durable=True, arguments=self.arguments)
            self._expect(declared, "declare-ok")
            self._publish(client)
            self._take(client, self.queue)
            self._take(client, DEAD)
            client.tell(0, "connection.close", reply_code=200, reply_text="", class_id=0, method_id=0)
            client.until("connection.close-ok", seconds=PATIENCE)
        finally:
            client.close()

    @staticmethod
    def _expect(came: list[str], word: str) -> None:
        if not came or word not in came[-1]:
            raise ClientError(" ; ".join(came))

    def _publish(self, client: RawClient) -> None:
        sent = []
        for _ in range(BATCH):
            number, body = self.next()
            client.publish(
                1, exchange="", routing_key=self.queue, body=body, props={"delivery_mode": 2}, mandatory=True
            )
            sent.append(number)
        open_ = dict(enumerate(sent, 1))
        while open_:
            event = client.next(PATIENCE)
            if event is None or event.name in ("closed", "connection.close", "channel.close"):
                raise ClientError("no confirm")
            if event.name == "basic.return":
                number = _number(event.text)[1]
                open_ = {tag: each for tag, each in open_.items() if each != number}
            elif event.name in ("basic.ack", "basic.nack"):
                said = event.text
                tag = int(said.split("delivery_tag=")[1].split(",")[0])
                tags = [each for each in open_ if each == tag or ("multiple=1" in said and each <= tag)]
                done = [open_.pop(each) for each in tags]
                if event.name == "basic.ack":
                    self.confirmed(done)

    def _take(self, client: RawClient, queue: str) -> None:
        for _ in range(2 * BATCH):
            came = client.do(1, "basic.get", queue=queue)
            text = came[-1] if came else ""
            if "get-empty" in text:
                return
            self._expect(came, "basic.get-ok")
            tag = int(text.split("delivery_tag=")[1].split(",")[0])
            name, number = _number(text)
            body = f"{name}:{number}:".encode()
            books, number, how = self.came(queue, body, redelivered="redelivered=1" in text)
            self.settled(books, number, how)
            if how == "accept":
                client.tell(1, "basic.ack", delivery_tag=tag)
            else:
                client.tell(1, "basic.reject", delivery_tag=tag, requeue=how == "release")


def _number(text: str) -> tuple[str, int]:
    """Whose message the text of a content shows, and its number."""
    found = re.search(r"([a-z0-9-]+):(\d+):", text)
    assert found, text
    return found[1], int(found[2])


class RawWorker09(RawWorker):
    """The same over 0-9."""

    name = "0-9"
    header = _RAW_0_9


class Worker010(Worker):
    """0-10: a transfer is confirmed when its command is completed."""

    name = "0-10"

    def round(self) -> None:
        connection = connect_0_10(self.broker)
        try:
            session = connection.session(b"soak")
            session.declare(DEAD, durable=True)
            session.declare(self.queue, durable=True, arguments=self.arguments)
            sent = []
            for _ in range(BATCH):
                number, body = self.next()
                sent.append((number, session.publish(body, key=self.queue, delivery_mode=2, wait=False)))
            session.sync()
            for number, id_ in sent:
                session.result(id_, 2 * PATIENCE)
                self.confirmed([number])
            session.subscribe(self.queue, "d", credit=2 * BATCH)
            session.sync()
            messages = session.drain("d")
            for message in messages:
                marked = bool(message.delivery.redelivered)
                books, number, how = self.came(self.queue, message.body or b"", redelivered=marked)
                self.settled(books, number, how)
                settle = {"accept": session.accept, "reject": session.reject}
                settle[how](message) if how in settle else session.release(message, set_redelivered=True)
            session.sync()
            connection.close()
        finally:
            connection.drop()


WORKERS: tuple[type[Worker], ...] = (PikaWorker, AioPikaWorker, RawWorker, RawWorker09, Worker010)


@dataclass
class Report:
    """What a soak has measured. `problems` is empty if all is as it should be."""

    seed: str
    days: int
    seconds: float = 0.0
    messages: dict[str, dict[str, int]] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    raised: dict[str, dict[str, int]] = field(default_factory=dict)
    objects: list[int] = field(default_factory=list)
    """Objects of the broker's types, at the end of every day."""
    megabytes: list[float] = field(default_factory=list)
    """Resident memory, at the end of every day."""
    left_in_queues: int = 0
    problems: list[str] = field(default_factory=list)


def soak(days: int, minutes: float, seed: str) -> Report:
    """Let so many days of the broker's time pass in so many minutes."""
    report = Report(seed, days)
    threads = threading.active_count()
    descriptors = _descriptors()
    began = time.monotonic()
    ignore_older_objects()
    with _without_logs():
        _live(report, days, max(0.2, minutes * 60 / days))
        report.seconds = round(time.monotonic() - began, 1)
        _check_what_is_left(report, threads, descriptors)
    _check_memory(report)
    return report


@contextmanager
def _without_logs() -> Iterator[None]:
    """Log nothing: records of a client's exception keep its frames, and what these know of the broker."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _live(report: Report, days: int, seconds: float) -> None:
    """All days; the faults of each last for so many real seconds."""
    every = {kind.name: Books(kind.name) for kind in WORKERS}
    # What history and trace keep is full before the first day ends.
    with Broker(clock="virtual", seed=report.seed, history=100, trace=1000) as broker:
        workers = [kind(broker, every, report.seed) for kind in WORKERS]
        for worker in workers:
            worker.thread.start()
        for day in range(days):
            _day(broker, day, seconds, report)
            _measure(report)
        _calm(broker, workers)
        # What is left expires into the queue of dead letters, and no timer is left.
        broker.clock.advance(2 * DAY)
        if broker.clock.timers:
            report.problems.append(f"timers are left: {broker.clock.timers}")
        if not broker._reader.wait_for(lambda state: not state.connections, timeout=30):
            report.problems.append(f"connections are left: {broker.connections}")
        if broker.admin.failures:
            report.problems.append(f"bugs: {broker.admin.failures}")
        left = _there(broker)
    report.left_in_queues = sum(map(len, left.values()))
    for worker in workers:
        report.raised[worker.name] = {"rounds": worker.rounds, **worker.raised}
        del worker.broker  # Logs may keep exceptions of clients, with the frames of their workers.
    for name, books in every.items():
        report.messages[name] = {"published": books.published, **books.counts}
        report.problems += books.wrong[:10]
        lost = books.unaccounted(left.get(name, set()))
        if lost:
            report.problems.append(f"{name}: {len(lost)} confirmed messages are nowhere: {lost[:10]}")


def _day(broker: Broker, day: int, seconds: float, report: Report) -> None:
    name = ("gentle", "network", "broker", "hostile", "mixed")[day % 5]
    profile = {fault: chance for fault, chance in PROFILES[name].items() if fault not in _COPIES}
    chaos = broker.faults.chaos(f"{report.seed}:{day}", profile, intensity=0.5)
    broker.clock.rate = 1.0
    time.sleep(seconds)
    broker.clock.rate = 0.0
    chaos.remove()
    report.faults[name] = report.faults.get(name, 0) + chaos.hits
    broker.faults.clear()
    for hour in range(1, 25):
        wanted = day * DAY + hour * DAY / 24
        broker.clock.advance(max(0.0, wanted - broker.clock.elapsed))


def _measure(report: Report) -> None:
    gc.collect()
    count = sum(1 for each in gc.get_objects() if str(type(each).__module__).startswith("fakeamqp"))
    report.objects.append(count)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    report.megabytes.append(round(resident / 1e6, 1))


def _calm(broker: Broker, workers: list[Worker]) -> None:
    """Without faults: every client has a round to the end, and then they go."""
    goals = [worker.rounds + 2 for worker in workers]
    deadline = time.monotonic() + 60
    while any(worker.rounds < goal for worker, goal in zip(workers, goals, strict=True)):
        assert time.monotonic() < deadline, [(worker.name, worker.raised) for worker in workers]
        time.sleep(0.02)
    for worker in workers:
        worker.ending.set()
    for worker in workers:
        worker.thread.join(30)
        assert not worker.thread.is_alive(), worker.name
    broker.wait_until_idle(timeout=30)


def _there(broker: Broker) -> dict[str, set[int]]:
    """What is in the queues, by client."""
    found: dict[str, set[int]] = {}
    for queue in broker.queues:
        for message in broker.queue(queue.name).messages:
            name, number, _ = message.body.split(b":", 2)
            found.setdefault(name.decode(), set()).add(int(number))
    return found


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _check_what_is_left(report: Report, threads: int, descriptors: int) -> None:
    gc.collect()
    if threading.active_count() > threads:
        report.problems.append(f"threads are left: {threading.enumerate()}")
    if _descriptors() > descriptors:
        report.problems.append(f"{_descriptors() - descriptors} descriptors are left")
    if connections := alive(ServerConnection):
        report.problems.append(f"{len(connections)} connections are reachable: {held_by(connections.pop())}")


_SLACK_OBJECTS = 1.5
_SLACK_MEGABYTES = 40.0


def _check_memory(report: Report) -> None:
    """Flat: what comes later is no more than what there was in the first fifth, with slack."""
    settled = max(1, len(report.objects) // 5)
    first, later = report.objects[:settled], report.objects[settled:]
    if later and max(later) > _SLACK_OBJECTS * max(first):
        report.problems.append(f"objects grow: {report.objects}")
    before, after = report.megabytes[:settled], report.megabytes[settled:]
    if after and max(after) > max(before) + _SLACK_MEGABYTES:
        report.problems.append(f"memory grows: {report.megabytes} MB")


def main(arguments: list[str] | None = None) -> int:
    """Run a soak, write its result, and say what is wrong."""
    parser = argparse.ArgumentParser(description="Let clients work for days of the broker's time.")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", default=str(random.randrange(10**9)))
    parser.add_argument("--no-record", action="store_true", help="print the result only")
    options = parser.parse_args(arguments)
    report = soak(options.days, options.minutes, options.seed)
    if not options.no_record:
        command = (
            f"python -m compat_tests.reliability.soak --minutes {options.minutes:g} --days {options.days} "
            f"--seed {options.seed}"
        )
        results.write(NAME, command, vars(report))
        page.main()
    print(json.dumps(vars(report), indent=1))
    return 1 if report.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
