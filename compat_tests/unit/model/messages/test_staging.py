"""Contents on their way by staging, without a protocol."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.readers import Reader
from fakeamqp.model.deliveries.delivery import Delivery
from fakeamqp.model.messages.message import Child, PlainProperties
from fakeamqp.model.messages.staging import Description, Download, Downloads, Uploads

DESCRIPTION = Description(PlainProperties(app_id="a"), "encoding", b"octets", (Child(60, b"\0\0", b"inner"),))


@pytest.fixture
def uploads(bench: Bench) -> Uploads:
    return Uploads(bench.host, "guest")


# --- uploads -------------------------------------------------------------------------------------------


def test_broken_off_upload_can_be_resumed_only_by_same_user(bench: Bench, uploads: Uploads) -> None:
    uploads.open("f", 4)
    uploads.broken_off(b"bo")
    assert uploads.open("f", 4) == 2
    uploads.broken_off(b"too much")
    uploads.broken_off(b"nobody waits for this")
    uploads.end()
    assert Uploads(bench.host, "eve").open("f", 4) == 0
    again = Uploads(bench.host, "guest")
    assert again.open("f", 4) == 2
    again.stage(DESCRIPTION, b"dy")
    assert bytes(again.find("f").staged.octets) == b"body"


# --- downloads -----------------------------------------------------------------------------------------


class Client:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def ask(self, download: Download) -> None:
        self.told.append(("ask", download.message.body))

    def send_rest(self, download: Download, offset: int) -> None:
        self.told.append(("rest", download.message.body[offset:]))

    def hand_over(self, download: Download) -> None:
        self.told.append(("deliver", download.message.body))

    def news(self) -> list[tuple[Any, ...]]:
        told, self.told = self.told, []
        return told


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def downloads(client: Client) -> Downloads:
    return Downloads(client)


def files(bench: Bench, tag: str, *bodies: bytes, clock: float = 0.0) -> list[Download]:
    """Files on their way to one consumer."""
    queue = bench.host.queues.get("q") or bench.queue("q")
    reader = Reader(queue, tag)
    for body in bodies:
        bench.publish("q", body)
    deliveries: list[Delivery] = reader.deliveries
    reader.cancel()
    return [Download(reader.subscription, each.queued.message, False, each) for each in deliveries]


def test_withdrawn_download_is_not_delivered(bench: Bench, client: Client, downloads: Downloads) -> None:
    first, second = files(bench, "a", b"1", b"2")
    (third,) = files(bench, "b", b"3")
    for each in (first, second, third):
        downloads.add(each)
    client.news()
    assert downloads.withdraw(first.subscription) == [first, second]
    assert downloads.withdraw(first.subscription) == []
    downloads.opened(0)
    assert client.news() == [("rest", b"1"), ("ask", b"3")]
    assert list(downloads) == [third]
    downloads.clear()
    assert not list(downloads)
