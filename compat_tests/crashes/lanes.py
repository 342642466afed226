"""What is published into a queue, what comes out of the pipeline at the other end, and what is missing."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aio_pika
import pika

from compat_tests.crashes.extent import MESSAGES

__all__ = ["Lane", "Outcome"]

UNCONFIRMED = 50
"""How many messages a publisher has under way."""
AHEAD = MESSAGES // 8
"""How many messages it publishes that the sink has not got, as long as the pipeline lives."""
_SEGMENT = re.compile(r"(\d{20})-(\d+)\.arrow")


@dataclass(frozen=True)
class Outcome:
    """What became of the messages of a lane. `strange` are those whose body is another one's, or nobody's."""

    published: int
    taken: int
    lost: list[str]
    twice: list[str]
    strange: list[str]
    replayed: int

    def __str__(self) -> str:
        return (
            f"{self.published} published, {self.taken} taken by another consumer, {len(self.lost)} lost, "
            f"{len(self.twice)} twice, {self.replayed} shown to the sink again"
        )


@dataclass
class Lane:
    """A queue, the query that reads it, and the files of both.

    Attributes:
        ids: how many message ids its messages share; None if each has its own.
    """

    name: str
    url: str
    folder: Path
    options: dict[str, str] = field(default_factory=dict)
    hold_after: int | None = None
    queue_type: str = "classic"
    shards: int = 0
    ids: int | None = None
    published: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    _rows: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        with self.channel() as channel:
            for queue in self.queues:
                channel.queue_declare(queue, durable=True, arguments={"x-queue-type": self.queue_type})

    @property
    def queues(self) -> list[str]:
        """The queue, or those of its shards."""
        return [f"{self.name}-{number}" for number in range(self.shards)] or [self.name]

    @property
    def spools(self) -> bool:
        """Whether its query has a spool."""
        return self.options.get("ackMode", "spool") == "spool"

    def job(self) -> dict[str, Any]:
        """What the pipeline has to know."""
        options = {"amqp.url": self.url, "queue": self.name, **self.options}
        if self.shards:
            options["shards"] = str(self.shards)
        if self.spools:
            options["spoolDir"] = str(self.folder / "spool")
        return {
            "name": self.name,
            "folder": str(self.folder),
            "options": options,
            "hold_after": self.hold_after,
        }

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """A channel to the broker, for the length of the block."""
        parameters = pika.URLParameters(self.url)
        parameters.heartbeat = 0
        with pika.BlockingConnection(parameters) as connection:
            yield connection.channel()

    # --- what is done to the queue ---------------------------------------------------------------------

    def publish(self, count: int) -> None:
        """Publish so many messages, and wait for each one's confirm."""
        asyncio.run(self._publish(count, lambda: True))

    async def _publish(self, count: int, may_go_on: Callable[[], bool]) -> None:
        connection = await aio_pika.connect(self.url)
        async with connection, await connection.channel(publisher_confirms=True) as channel:
            queues = self.queues
            end = len(self.published) + count
            while (begin := len(self.published)) < end:
                while not may_go_on():
                    await asyncio.sleep(0.01)
                names = [f"{self.name}-{number}" for number in range(begin, min(begin + UNCONFIRMED, end))]
                routes = [queues[number % len(queues)] for number in range(begin, begin + len(names))]
                await asyncio.gather(
                    *map(channel.default_exchange.publish, map(self._message, names), routes),
                )
                self.published.extend(names)

    @contextmanager
    def publishing(self, count: int) -> Iterator[None]:
        """Publish beside what happens in the block, hardly faster than the sink takes, so that both last.

        What is not published when the block ends is published then.
        """
        failures: list[BaseException] = []
        over = threading.Event()
        behind = len(self.published) - self.taken_by_sink()

        def may_go_on() -> bool:
            return over.is_set() or len(self.published) - self.taken_by_sink() < behind + AHEAD

        def run() -> None:
            try:
                asyncio.run(self._publish(count, may_go_on))
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, name=f"publisher of {self.name}")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if failures:
            raise failures[0]

    def take(self, count: int) -> None:
        """Take so many messages out of the queue, as another consumer would."""
        with self.channel() as channel:
            for _ in range(count):
                method, _, body = channel.basic_get(self.name)
                assert method is not None, f"only {len(self.taken)} messages were left in the queue"
                channel.basic_ack(method.delivery_tag)
                self.taken.add(json.loads(body)["id"])

    def ready(self) -> int:
        """How many messages are in the queues and not under way to a consumer."""
        return sum(each.message_count for each in self._declared())

    def consumers(self) -> int:
        """How many consumers the queue has."""
        return sum(each.consumer_count for each in self._declared())

    def _declared(self) -> list[Any]:
        with self.channel() as channel:
            return [channel.queue_declare(queue, passive=True).method for queue in self.queues]

    # --- what can be seen from outside -----------------------------------------------------------------

    def spooled(self) -> int:
        """How many rows have been in the spool until now."""
        found = [_SEGMENT.fullmatch(path.name) for path in _files(self.folder / "spool")]
        return max((int(match[1]) + int(match[2]) for match in found if match), default=0)

    def segments(self) -> int:
        """How many segments of shards there are or were."""
        last = 0
        for queue in self.queues:
            names = [path.name for path in _files(self.folder / "spool" / queue)]
            last += max((int(name[:12]) + 1 for name in names if name.endswith(".arrow")), default=0)
        return last

    def begins_to_write(self) -> Callable[[], bool]:
        """A condition: a task has begun to write a segment of a shard, from now on."""

        def unfinished() -> set[Path]:
            folders = (self.folder / "spool" / queue for queue in self.queues)
            return {path for folder in folders for path in _files(folder) if path.suffix == ".tmp"}

        before = unfinished()  # Those of executors that were killed stay for a while.
        return lambda: bool(unfinished() - before)

    def planned(self) -> int:
        """How many batches Spark has begun."""
        return _notes(self.folder / "checkpoint" / "offsets")

    def committed(self) -> int:
        """How many batches Spark has finished."""
        return _notes(self.folder / "checkpoint" / "commits")

    def written(self) -> int:
        """How many batches are in the sink."""
        return len([path for path in _files(self.folder / "sink") if path.suffix == ".json"])

    def taken_by_sink(self) -> int:
        """How many rows are in the sink."""
        for path in _files(self.folder / "sink"):
            if path.suffix == ".json" and path.name not in self._rows:
                self._rows[path.name] = len(json.loads(path.read_text()))
        return sum(self._rows.values())

    def held(self) -> bool:
        """Whether the sink has written the batch after which it stops."""
        return (self.folder / "sink" / "held").exists()

    # --- what came of it -------------------------------------------------------------------------------

    def sunk(self) -> list[list[Any]]:
        """The rows in the sink: message id, offset, and the id in the body."""
        files = [path for path in _files(self.folder / "sink") if path.suffix == ".json"]
        return [row for path in sorted(files) for row in json.loads(path.read_text())]

    def calls(self) -> list[dict[str, Any]]:
        """The calls of the sink in their order."""
        file = self.folder / "sink" / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def outcome(self) -> Outcome:
        """Count."""
        rows = self.sunk()
        found = Counter(row[2] for row in rows)
        published = set(self.published)
        return Outcome(
            published=len(self.published),
            taken=len(self.taken),
            lost=[name for name in self.published if name not in found and name not in self.taken],
            twice=[name for name, times in found.items() if times > 1 or name in self.taken],
            strange=[row[2] for row in rows if row[2] not in published or row[0] != self._message_id(row[2])],
            replayed=sum(len(call["rows"]) for call in self.calls() if call["again"]),
        )

    def changed_on_replay(self) -> list[int]:
        """Batches that had other rows when the sink was given them again."""
        first: dict[int, list[Any]] = {}
        changed = []
        for call in self.calls():
            rows = sorted(call["rows"])
            if first.setdefault(call["batch"], rows) != rows:
                changed.append(call["batch"])
        return changed

    def _message_id(self, name: str) -> str:
        return name if self.ids is None else f"{self.name}-{_number(name) % self.ids}"

    def _message(self, name: str) -> aio_pika.Message:
        number = _number(name)
        return aio_pika.Message(
            json.dumps({"id": name, "total": number % 97, "customer": f"c{number % 11}"}).encode(),
            message_id=self._message_id(name),
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            timestamp=1_700_000_000 + number,
            headers={"n": number, "shop": "north"},
        )


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _notes(folder: Path) -> int:
    return max((int(path.name) + 1 for path in _files(folder) if path.name.isdecimal()), default=0)
