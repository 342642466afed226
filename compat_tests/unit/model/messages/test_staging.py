"""Contents on their way by staging, without a protocol."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.unit.model.bench import Bench
from compat_tests.unit.model.readers import Reader
from fakeamqp.model.deliveries.delivery import Delivery
from fakeamqp.model.deliveries.subscription import Window
from fakeamqp.model.errors import IllegalArgument, IllegalState, NotFound, ResourceError
from fakeamqp.model.messages.message import Child, FileMessage, Message, PlainProperties
from fakeamqp.model.messages.staging import Description, Download, Downloads, Staged, Uploads

DESCRIPTION = Description(PlainProperties(app_id="a"), "encoding", b"octets", (Child(60, b"\0\0", b"inner"),))


@pytest.fixture
def uploads(bench: Bench) -> Uploads:
    return Uploads(bench.host, "guest")


# --- uploads -------------------------------------------------------------------------------------------


def test_staged_content_becomes_message_once_complete(uploads: Uploads) -> None:
    done: list[Staged] = []
    assert uploads.open("f", 4) == 0
    upload = uploads.find("f")
    uploads.take(upload, done.append)
    assert not done and not upload.staged.complete
    uploads.stage(DESCRIPTION, b"body")
    (staged,) = done
    assert staged.complete
    message = staged.message("x", "k", "somebody")
    assert isinstance(message, FileMessage)
    assert (message.exchange, message.routing_key, message.body) == ("x", "k", b"body")
    assert (message.properties.app_id, message.encoding, message.properties_bytes) == (
        "a",
        "encoding",
        b"octets",
    )
    assert (message.publisher, message.children) == ("somebody", DESCRIPTION.children)
    with pytest.raises(NotFound):
        uploads.find("f")


def test_stages_complete_uploads_in_order_of_their_latest_open(uploads: Uploads) -> None:
    uploads.open("a", 1)
    uploads.open("b", 2)
    uploads.open("a", 1)
    uploads.stage(DESCRIPTION, b"22")
    assert uploads.find("b").staged.complete
    uploads.stage(DESCRIPTION, b"1")
    assert uploads.find("a").staged.complete
    with pytest.raises(IllegalState):
        uploads.stage(DESCRIPTION, b"")


@pytest.mark.parametrize(("body", "kept"), [(b"123", 3), (b"12345", 0)])
def test_stage_of_size_not_announced_is_refused(uploads: Uploads, body: bytes, kept: int) -> None:
    uploads.open("f", 4)
    with pytest.raises(IllegalArgument, match=f"has {len(body)} bytes, and 4 were announced"):
        uploads.stage(DESCRIPTION, body)
    assert uploads.open("f", 4) == kept


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


def test_opening_more_than_1000_unpublished_uploads_is_refused(uploads: Uploads) -> None:
    for number in range(1000):
        uploads.open(str(number), 1)
    uploads.open("0", 1)
    with pytest.raises(ResourceError):
        uploads.open("one more", 1)


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


def test_files_are_downloaded_one_after_another(bench: Bench, client: Client, downloads: Downloads) -> None:
    for each in files(bench, "t", b"one", b"two"):
        downloads.add(each)
    assert client.news() == [("ask", b"one")]
    downloads.opened(2)
    assert client.news() == [("rest", b"e"), ("deliver", b"one"), ("ask", b"two")]
    with pytest.raises(IllegalArgument, match="has 3 bytes, not 4"):
        downloads.opened(4)
    downloads.opened(3)
    assert client.news() == [("rest", b""), ("deliver", b"two")]
    with pytest.raises(IllegalState):
        downloads.opened(0)


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


def test_download_identifier_is_equal_only_for_same_message(bench: Bench) -> None:
    one, other = files(bench, "t", b"body", b"body")
    again = Download(one.subscription, one.message, True, one.delivery)
    assert one.identifier == again.identifier != other.identifier


# --- windows -------------------------------------------------------------------------------------------


def test_window_limits_message_count_and_rate(bench: Bench) -> None:
    window = Window(bench.state.timers, "file")
    message = Message("", "q", PlainProperties(), b"0123456789")
    assert window.credit.open and window.rate.open
    window.resize(count=1, size=0, rate=5)
    window.take(message)
    assert (window.credit.open, window.rate.open) == (False, False)
    window.credit.refill(message)
    bench.advance(1.9)
    assert (window.credit.open, window.rate.open) == (True, False)
    bench.advance(0.2)
    assert window.rate.open
