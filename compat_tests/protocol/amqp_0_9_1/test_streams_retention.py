"""What streams drop: whole segments from the front, when one begins, when limits change, and by the hour."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.streams import ALL, consume, declare, offsets, read
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

HOUR = 3600.0
BODY = bytes(1000)
SEGMENT = 3000
"""Two messages of a thousand bytes fit, and a third fills it: what is around them counts as well."""


@pytest.fixture(params=ALL)
def server(request: pytest.FixtureRequest) -> Server:
    return Server(request.param)


def stream(server: Server, **limits: Any) -> Client:
    """A client and a stream of small segments."""
    return declare(server.client(), stream_max_segment_size_bytes=SEGMENT, **limits)


def kept(server: Server) -> list[int]:
    """The offsets of what is in the stream."""
    return [queued.offset for queued in server.vhost.queues["s"].ready]


@pytest.mark.needs("virtual time", "inspection")
def test_stream_without_limits_keeps_all_messages(server: Server) -> None:
    stream(server).fill("s", *[BODY] * 30)
    server.advance(10 * 365 * 24 * HOUR)
    assert len(kept(server)) == 30


@pytest.mark.needs("inspection")
def test_each_further_segment_skips_one_offset(server: Server) -> None:
    client = stream(server).fill("s", *[BODY] * 7)
    assert kept(server) == [0, 1, 2, 4, 5, 6, 8]
    client.qos(10)
    consume(client)
    assert offsets([client.delivery() for _ in range(7)]) == [0, 1, 2, 4, 5, 6, 8]
    assert client.count("s") == 7


@pytest.mark.needs("inspection")
@pytest.mark.parametrize(("size", "octets"), [(1, 152), (100, 251), (255, 406), (256, 410), (501, 655)])
def test_a_message_takes_as_many_bytes_as_on_rabbitmq(server: Server, size: int, octets: int) -> None:
    # What a segment file grows by for a queue name of three letters, measured on 4.0.5 and 4.3.6.
    client = server.client()
    octets -= len("p.q") - len("s")
    for limit, wanted in ((8 + 2 * octets, [0, 1, 3]), (9 + 2 * octets, [0, 1, 2])):
        declare(client, stream_max_segment_size_bytes=limit).fill("s", *[bytes(size)] * 3, delivery_mode=2)
        assert kept(server) == wanted
        client.perform(m.QueueDelete(queue="s"))


@pytest.mark.needs("inspection")
def test_max_length_bytes_drops_whole_segments_except_the_newest(server: Server) -> None:
    client = stream(server, max_length_bytes=1).fill("s", *[BODY] * 3)
    assert kept(server) == [0, 1, 2]  # One segment, however large.
    client.fill("s", BODY)
    assert kept(server) == [4]
    client.fill("s", *[BODY] * 2)
    assert kept(server) == [4, 5, 6]


@pytest.mark.needs("inspection")
def test_max_length_bytes_keeps_older_segments_that_fit(server: Server) -> None:
    client = stream(server, max_length_bytes=2 * SEGMENT).fill("s", *[BODY] * 9)
    assert kept(server) == [4, 5, 6, 8, 9, 10]
    assert client.count("s") == 6


def test_consumer_with_offset_of_dropped_message_begins_with_first_kept_message(server: Server) -> None:
    stream(server, max_length_bytes=1).fill("s", *[BODY] * 3, b"last")
    for offset in ("first", 0, 2, "1h"):
        assert read(server, offset) == [b"last"]


def test_slow_consumer_continues_with_first_kept_message(server: Server) -> None:
    client = stream(server, max_length_bytes=1).qos(1)
    consume(client).fill("s", *[BODY] * 3, b"new")
    assert offsets([client.delivery()]) == [0]
    client.ack(1)
    assert offsets([client.delivery()]) == [4]


@pytest.mark.needs("virtual time", "inspection")
def test_max_age_drops_segments_when_a_new_segment_begins(server: Server) -> None:
    client = stream(server, max_age="10s")
    client.fill("s", *[BODY] * 2).after(1000).fill("s", BODY)
    assert kept(server) == [0, 1, 2]  # One segment, however old.
    client.after(1000).fill("s", BODY)
    assert kept(server) == [4]


@pytest.mark.needs("virtual time", "inspection")
def test_age_of_segment_is_age_of_its_last_message(server: Server) -> None:
    client = stream(server, max_age="10s")
    client.fill("s", *[BODY] * 2).after(1000).fill("s", BODY)
    client.after(10).fill("s", BODY)
    assert kept(server) == [0, 1, 2, 4]  # Ten seconds, and not more.


@pytest.mark.needs("virtual time", "inspection")
def test_max_age_is_checked_every_hour(server: Server) -> None:
    stream(server, max_age="10s").fill("s", *[BODY] * 4)
    server.advance(HOUR - 1)
    assert kept(server) == [0, 1, 2, 4]
    server.advance(1)
    assert kept(server) == [4]
    assert not [timer for timer in server.state.timers.pending() if timer.words.startswith("q 's'")]


@pytest.mark.needs("virtual time", "inspection")
def test_hourly_check_of_max_age_counts_from_beginning_of_last_segment(server: Server) -> None:
    client = stream(server, max_age="90m").fill("s", *[BODY] * 4)
    client.after(HOUR).fill("s", *[BODY] * 3)  # A third segment begins.
    server.advance(HOUR - 1)
    assert kept(server) == [0, 1, 2, 4, 5, 6, 8]
    server.advance(1)
    assert kept(server) == [4, 5, 6, 8]
    server.advance(HOUR)
    assert kept(server) == [8]


@pytest.mark.needs("virtual time")
def test_pending_timer_of_max_age_names_queue_and_purpose() -> None:
    server = Server()
    stream(server, max_age="2h").fill("s", *[BODY] * 4)
    words = [timer.words for timer in server.state.timers.pending()]
    assert "q 's' drops messages past their age" in words


@pytest.mark.needs("virtual time", "inspection")
def test_a_deleted_stream_has_no_timer() -> None:
    server = Server()
    stream(server, max_age="2h").fill("s", *[BODY] * 4).server.vhost.queues.delete("s", None)
    assert not [timer for timer in server.state.timers.pending() if timer.words.startswith("q 's'")]


@pytest.mark.needs("virtual time", "inspection")
def test_changed_retention_options_apply_at_once(server: Server) -> None:
    stream(server).fill("s", *[BODY] * 9)
    queue = server.vhost.queues["s"]
    queue.apply(replace(queue.options, max_length_bytes=7500))
    assert kept(server) == [4, 5, 6, 8, 9, 10]
    queue.apply(replace(queue.options, max_age=1.0))
    server.advance(2)
    assert kept(server) == [4, 5, 6, 8, 9, 10]
    queue.apply(queue.options)
    assert kept(server) == [8, 9, 10]
