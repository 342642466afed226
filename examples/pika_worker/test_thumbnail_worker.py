from __future__ import annotations

from collections.abc import Callable, Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from thumbnail_worker import PREFETCH, QUEUE, BadImage, ThumbnailWorker, declare, submit

from fakeamqp import Broker


@pytest.fixture(autouse=True)
def job_queue(pika_channel: BlockingChannel) -> Iterator[None]:
    """The queue, made before the test and removed after it: needed only where the broker is a real one."""
    declare(pika_channel)
    yield
    pika_channel.queue_delete(QUEUE)


def work_until(connection: BlockingConnection, done: Callable[[], object]) -> None:
    """Let the worker work until `done()`; pytest's time limit ends a test in which that never happens."""
    while not done():
        connection.process_data_events(time_limit=0.1)


def jobs_left(channel: BlockingChannel) -> int:
    count: int = channel.queue_declare(QUEUE, passive=True).method.message_count
    return count


def test_every_job_is_done_once(pika_connection: BlockingConnection, pika_channel: BlockingChannel) -> None:
    made = []
    for number in range(5):
        submit(pika_channel, f"photo-{number}.jpg", 320)

    ThumbnailWorker(pika_channel, lambda path, width: made.append((path, width))).start()
    work_until(pika_connection, lambda: len(made) == 5)

    assert made == [(f"photo-{number}.jpg", 320) for number in range(5)]
    assert jobs_left(pika_channel) == 0


def test_a_bad_job_is_dropped_and_the_next_one_is_done(
    pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    made = []

    def make_thumbnail(path: str, width: int) -> None:
        if path == "notes.txt":
            raise BadImage(path)
        made.append(path)

    pika_channel.basic_publish("", QUEUE, b"this is not JSON")
    submit(pika_channel, "notes.txt", 320)
    submit(pika_channel, "photo.jpg", 320)
    ThumbnailWorker(pika_channel, make_thumbnail).start()
    work_until(pika_connection, lambda: made)

    assert made == ["photo.jpg"]
    assert jobs_left(pika_channel) == 0


def test_the_job_of_a_crashed_worker_is_done_by_the_next(
    amqp_url: str, pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    class PowerCut(Exception):
        pass

    def crash(path: str, width: int) -> None:
        raise PowerCut

    submit(pika_channel, "photo.jpg", 320)
    with pytest.raises(PowerCut), pika.BlockingConnection(pika.URLParameters(amqp_url)) as doomed:
        ThumbnailWorker(doomed.channel(), crash).start()
        work_until(doomed, lambda: False)

    made = []
    ThumbnailWorker(pika_channel, lambda path, width: made.append(path)).start()
    work_until(pika_connection, lambda: made)
    assert made == ["photo.jpg"]


def test_a_worker_holds_no_more_jobs_than_its_prefetch(
    amqp_broker: Broker, pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    held = []

    def look(path: str, width: int) -> None:
        held.append(amqp_broker.queue(QUEUE).unacked)

    for number in range(6):
        submit(pika_channel, f"photo-{number}.jpg", 320)
    ThumbnailWorker(pika_channel, look).start()
    work_until(pika_connection, lambda: len(held) == 6)

    assert max(held) == PREFETCH


def test_two_workers_share_the_jobs(
    amqp_broker: Broker, pika_connection: BlockingConnection, pika_channel: BlockingChannel
) -> None:
    made: dict[str, list[str]] = {"first": [], "second": []}
    for paths in made.values():
        ThumbnailWorker(pika_connection.channel(), _noting(paths)).start()
    assert len(amqp_broker.queue(QUEUE).consumers) == 2

    for number in range(4):
        submit(pika_channel, f"photo-{number}.jpg", 320)
    work_until(pika_connection, lambda: sum(len(paths) for paths in made.values()) == 4)

    assert made == {"first": ["photo-0.jpg", "photo-2.jpg"], "second": ["photo-1.jpg", "photo-3.jpg"]}


def _noting(paths: list[str]) -> Callable[[str, int], None]:
    """A maker of thumbnails that only notes the paths."""
    return lambda path, width: paths.append(path)
