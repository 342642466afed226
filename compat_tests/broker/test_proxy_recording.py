"""`Proxy(record=...)`: what is in the file, what is left out of it, and when."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.exceptions import AMQPError

from fakeamqp import Broker, BrokerError, Proxy, Recording
from fakeamqp.errors import FakeAMQPError, PortInUse
from fakeamqp.replay import replay
from fakeamqp.trace import FrameEvent, load
from fakeamqp.trace.truncation import full_size

pytestmark = pytest.mark.threads_only


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def publish_and_consume(proxy: Proxy, *bodies: bytes, **properties: Any) -> None:
    """A client publishes these messages to a queue, gets them and closes its connection."""
    with pika.BlockingConnection(pika.URLParameters(proxy.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("orders", exclusive=True)
        for body in bodies:
            channel.basic_publish("", "orders", body, pika.BasicProperties(**properties))
            method, _, got = channel.basic_get("orders")
            assert got == body
            channel.basic_ack(method.delivery_tag)


def text_of(path: Path) -> str:
    """All that a file has, with its bytes in base64 decoded."""
    frames = b"".join(event.payload for event in load(path).events if isinstance(event, FrameEvent))
    return path.read_text("ascii") + frames.decode("latin-1")


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_recorded_delivery_has_its_message_and_checks_find_no_confirmed_message_lost(
    broker: Broker, path: Path, size: int
) -> None:
    with Proxy(broker.url, record=path) as proxy:
        publish_and_consume(proxy, b"x" * size, app_id="shop")
        proxy.wait_for(lambda: not proxy.connections)
        assert proxy.trace.findings() == ()
    recorded = load(path)
    assert recorded.findings() == ()
    [message] = [each.facts["message"] for each in recorded.events if each.name == "delivered"]
    assert (full_size(message.body), message.properties.app_id) == (size, "shop")


def test_recording_has_the_events_of_the_trace(broker: Broker, path: Path) -> None:
    with Proxy(broker.url, record=path) as proxy:
        proxy.faults.on("basic.get").delay(0.01).once()
        proxy.faults.network.latency(0.001)
        publish_and_consume(proxy, b"one", b"two", headers={"n": 1})
        proxy.wait_for(lambda: not proxy.connections)
        trace = proxy.trace
    recorded = load(path)
    assert [(each.alias, each.text) for each in recorded.events] == [
        (each.alias, each.text) for each in trace.events
    ]
    assert recorded.wall_time == pytest.approx(trace.wall_time)
    assert (recorded.dropped, recorded.unfinished) == (0, False)
    replay(recorded).expect_same()


def test_recording_is_complete_where_the_trace_keeps_few_events_and_short_bodies(
    broker: Broker, path: Path
) -> None:
    body = bytes(range(256)) * 2000
    with Proxy(broker.url, record=path, trace=5) as proxy:
        publish_and_consume(proxy, body)
    recorded = load(path)
    assert recorded.events[0].name == "connected"
    published = b"".join(
        event.payload
        for event in recorded.events
        if isinstance(event, FrameEvent) and event.name == "content body" and event.direction == "received"
    )
    assert published == body
    replay(recorded).expect_same()


def test_recording_works_with_the_trace_switched_off(broker: Broker, path: Path) -> None:
    with Proxy(broker.url, record=path, trace=0) as proxy:
        publish_and_consume(proxy, b"one")
        with pytest.raises(BrokerError, match="the trace is off"):
            _ = proxy.trace
    assert {"connected", "basic.publish", "published", "closed"} <= {each.name for each in load(path).events}


def test_password_is_not_in_the_file(path: Path) -> None:
    with Broker(users={"ann": "swordfish"}) as broker, Proxy(broker.url, record=path) as proxy:
        publish_and_consume(proxy, b"one")
    assert "swordfish" not in text_of(path)
    assert "ann" in text_of(path)


def test_chosen_fields_are_redacted_in_frames_and_messages_and_replay_is_the_same(
    broker: Broker, path: Path
) -> None:
    redact = ("body", "headers.authorization", "message_id", "timestamp")
    headers = {"Authorization": "Bearer abc", "kind": "order", "n": 7}
    with Proxy(broker.url, record=Recording(path, redact=redact)) as proxy:
        publish_and_consume(
            proxy, b"card 42-42", headers=headers, message_id="secret-id", timestamp=1_700_000_000
        )
        assert proxy.published[0].body == b"card 42-42"
    text = text_of(path)
    for secret in ("card", "Bearer", "secret-id", "1700000000"):
        assert secret not in text
    recorded = load(path)
    (header,) = {json.dumps(_properties(each)) for each in recorded.events if each.name == "content header"}
    assert json.loads(header) == {
        "headers": {"Authorization": "**********", "kind": "order", "n": 7},
        "message_id": "*********",
        "timestamp": 0,
    }
    messages = [each.facts["message"] for each in recorded.events if each.name == "published"]  # type: ignore[attr-defined]
    assert [(each.body, each.properties.headers, each.properties.message_id) for each in messages] == [
        (b"**********", json.loads(header)["headers"], "*********")
    ]
    replay(recorded).expect_same()


def _properties(event: Any) -> dict[str, Any]:
    values = {name: getattr(event.properties, name) for name in ("headers", "message_id", "timestamp")}
    return {name: value if name == "headers" else type(value)(value) for name, value in values.items()}


def test_all_headers_can_be_redacted_with_their_nested_values(broker: Broker, path: Path) -> None:
    headers = {
        "text": "abc",
        "number": 4242,
        "big": 2**40,
        "flag": True,
        "nested": {"list": ["abc", 4242, {"deep": "abc"}], "nothing": None},
    }
    with Proxy(broker.url, record=Recording(path, redact=["headers"])) as proxy:
        publish_and_consume(proxy, b"body", headers=headers)
    shown = {
        "text": "***",
        "number": 0,
        "big": 0,
        "flag": False,
        "nested": {"list": ["***", 0, {"deep": "***"}], "nothing": None},
    }
    recorded = load(path)
    found = [each.properties.headers for each in recorded.events if each.name == "content header"]  # type: ignore[attr-defined]
    assert found == [shown, shown]
    messages = [each.facts["message"] for each in recorded.events if each.name == "published"]  # type: ignore[attr-defined]
    assert [each.properties.headers for each in messages] == [shown]
    replay(recorded).expect_same()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"redact": ["bodies"]}, "cannot redact 'bodies'.*did you mean 'body'"),
        ({"redact": ["header.authorization"]}, "there are 'body', 'headers', 'headers.NAME'"),
        ({"file_size": 0}, "file_size=0 of a recording must be a whole number above 0"),
        ({"files": "3"}, "files='3' of a recording must be a whole number above 0"),
    ],
)
def test_invalid_setting_of_a_recording_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(BrokerError, match=said):
        Recording("recording.jsonl", **settings)


def test_full_file_is_rotated_and_each_file_can_be_read(broker: Broker, path: Path) -> None:
    with Proxy(broker.url, record=Recording(path, file_size=20_000, files=3)) as proxy:
        publish_and_consume(proxy, *(b"%d" % number for number in range(40)))
        proxy.wait_for(lambda: not proxy.connections)
        events = proxy.trace.events
    names = sorted(each.name for each in path.parent.iterdir())
    assert names == ["recording.jsonl", "recording.jsonl.1", "recording.jsonl.2"]
    assert all(each.stat().st_size <= 20_000 for each in path.parent.iterdir())
    parts = [load(path.parent / name) for name in reversed(names)]
    assert parts[0].dropped > 0
    for earlier, later in pairwise(parts):
        assert later.dropped == earlier.dropped + len(earlier)
    kept = [event for part in parts for event in part.events]
    assert kept[-1].name == "connection.close-ok"
    assert [each.text for each in kept] == [each.text for each in events[-len(kept) :]]
    assert [each.alias for each in kept] == [each.alias for each in events[-len(kept) :]]


def test_earlier_file_is_kept_by_a_new_start_and_by_a_reset(broker: Broker, path: Path) -> None:
    path.write_text("an earlier file")
    with Proxy(broker.url, record=path) as proxy:
        publish_and_consume(proxy, b"first")
        proxy.wait_for(lambda: not proxy.connections)
        proxy.reset()
        publish_and_consume(proxy, b"second")
    assert Path(f"{path}.2").read_text() == "an earlier file"
    assert "b'first'" in load(f"{path}.1").timeline()
    assert "b'first'" not in load(path).timeline() and "b'second'" in load(path).timeline()
    assert load(path).events[0].alias == "c1"


def test_restarted_proxy_begins_another_file_with_the_times_of_its_trace(broker: Broker, path: Path) -> None:
    with Proxy(broker.url, record=path) as proxy:
        publish_and_consume(proxy, b"first")
        proxy.stop()
        proxy.start()
        publish_and_consume(proxy, b"second")
    first, second = load(f"{path}.1"), load(path)
    assert second.dropped == len(first)
    assert {each.alias for each in second.events} == {"c2"}


KILLED = """
import sys
from fakeamqp import Proxy
proxy = Proxy(sys.argv[1], record=sys.argv[2]).start()
print(proxy.url, flush=True)
sys.stdin.read()
"""


def test_all_that_a_client_has_got_is_in_the_file_of_a_killed_process(broker: Broker, path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, broker.url, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        connection = pika.BlockingConnection(pika.URLParameters(url))
        channel = connection.channel()
        channel.confirm_delivery()
        for number in range(20):
            channel.basic_publish("", "nowhere", b"%d" % number)
        process.send_signal(signal.SIGKILL)
        with suppress(AMQPError):
            connection.close()
    recorded = load(path)
    assert recorded.unfinished
    names = [each.name for each in recorded.events]
    assert names.count("basic.publish") == 20
    assert names.count("published") == 20
    confirms = [each for each in recorded.events if each.name == "basic.ack"]
    assert confirms[-1].method.delivery_tag == 20  # type: ignore[attr-defined]
    replay(recorded).expect_same()


@pytest.mark.parametrize("left", [1, 30, 300])
def test_file_that_ends_within_a_line_is_read_up_to_there(broker: Broker, path: Path, left: int) -> None:
    with Proxy(broker.url, record=path) as proxy:
        publish_and_consume(proxy, b"one")
    whole = load(path)
    lines = path.read_bytes().splitlines(keepends=True)
    last = len(lines) - 1
    assert b"connection.close-ok" in lines[last]
    path.write_bytes(b"".join(lines[:last]) + lines[last][:left])
    with pytest.raises(FakeAMQPError, match="is damaged"):
        load(path)  # A file that was closed is whole.
    lines[0] = re.sub(rb'"events": \d+', b'"events": null', lines[0])
    path.write_bytes(b"".join(lines[:last]) + lines[last][:left])
    torn = load(path)
    assert torn.unfinished and not whole.unfinished
    assert torn.events == whole.events[: last - 1]
    assert torn.timeline().endswith(
        "(the recording has no end: the proxy that wrote it was killed, or still runs)"
    )
    replay(torn).expect_same()


def test_damaged_line_before_the_last_is_an_error(broker: Broker, path: Path) -> None:
    with Proxy(broker.url, record=path) as proxy:
        publish_and_consume(proxy, b"one")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3][:20] + b"\n", *lines[4:]]))
    with pytest.raises(FakeAMQPError, match="line 4 is damaged"):
        load(path)


class _FullDisk:
    """A file system that takes so many more bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = sys.maxsize
        disk = self

        class File(FileIO):  # type: ignore[misc, valid-type]
            def write(self, octets: Any) -> int:
                if self.tell() < os.fstat(self.fileno()).st_size:
                    return int(super().write(octets))
                taken = min(disk.room, len(octets))
                if not taken:
                    raise OSError(28, "No space left on device")
                disk.room -= taken
                return int(super().write(octets[:taken]))

        monkeypatch.setattr("fakeamqp.trace.recording.FileIO", File)


def test_full_disk_ends_the_recording_with_a_whole_line_and_the_proxy_goes_on(
    broker: Broker, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = _FullDisk(monkeypatch)
    recording = Recording(path)
    with Proxy(broker.url, record=recording) as proxy:
        publish_and_consume(proxy, b"first")
        proxy.wait_for(lambda: not proxy.connections)
        disk.room = 100
        publish_and_consume(proxy, b"second")
        proxy.expect_published(count=2)
    assert isinstance(recording.error, OSError)
    assert f"the recording {path} ends here, and the proxy goes on: [Errno 28] No space" in caplog.text
    assert caplog.text.count("No space") == 1
    recorded = load(path)
    assert not recorded.unfinished
    assert recorded.events[-1].name == "connection.close-ok" and {each.alias for each in recorded.events} == {
        "c1"
    }


def test_full_disk_at_a_rotation_leaves_the_earlier_files(
    broker: Broker, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _FullDisk(monkeypatch)
    disk.room = 20_000
    recording = Recording(path, file_size=5000)
    with Proxy(broker.url, record=recording) as proxy:
        publish_and_consume(proxy, *(b"%d" % number for number in range(10)))
    assert isinstance(recording.error, OSError)
    later, *earlier = sorted(path.parent.iterdir())
    assert len(earlier) > 1 and all(len(load(each)) for each in earlier)
    assert not later.stat().st_size or len(load(later))


def test_file_that_cannot_be_created_is_an_error_of_the_start(broker: Broker, tmp_path: Path) -> None:
    proxy = Proxy(broker.url, record=tmp_path / "no-such-folder" / "recording.jsonl")
    with pytest.raises(OSError, match="no-such-folder"):
        proxy.start()
    assert not proxy.running


@pytest.mark.asyncio
async def test_proxy_in_an_event_loop_records(path: Path) -> None:
    import aio_pika

    async with (
        Broker(runtime="asyncio") as broker,
        Proxy(broker.url, record=path, runtime="asyncio") as proxy,
        await aio_pika.connect(proxy.url) as connection,
    ):
        channel = await connection.channel()
        queue = await channel.declare_queue("q")
        await channel.default_exchange.publish(aio_pika.Message(b"one"), queue.name)
    assert "basic.publish exchange='' routing_key='q'" in load(path).timeline()


def test_failed_start_leaves_earlier_recordings_as_they_are(broker: Broker, path: Path) -> None:
    with Proxy(broker.url, record=path) as proxy:
        publish_and_consume(proxy, b"kept")
    before = path.read_bytes()
    for _ in range(3):
        with pytest.raises(PortInUse):
            Proxy(broker.url, port=broker.port, record=path).start()
    assert (path.read_bytes(), list(path.parent.iterdir())) == (before, [path])
