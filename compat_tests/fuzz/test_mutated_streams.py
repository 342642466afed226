"""Whatever bytes a client sends, and however they are cut, the broker stands and the next client is served.

Ten thousand mutated streams go through in all by 0-9 and 0-9-1, as many by 0-10, and four thousand by 1.0.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from itertools import count, cycle, islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz import mutations
from compat_tests.fuzz.checks import (
    connection_closes,
    connection_of,
    gone,
    inconsistencies,
    serves_others,
    settled_fate,
)
from compat_tests.fuzz.mutations import Chunks, chunked, random_stream
from compat_tests.fuzz.profile import examples, sampled, scaled
from compat_tests.fuzz.subjects import SUBJECTS, Subject, on_each, on_each_0_9, speaking_0_9_1
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.heap import alive, ignore_older_objects
from fakeamqp.protocols.amqp_0_9.access import Realms
from fakeamqp.protocols.amqp_0_9_1.base_channel import BaseChannel
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection
from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection
from fakeamqp.protocols.amqp_0_10.server_session import ServerSession
from fakeamqp.protocols.amqp_1_0.server_connection import Amqp10Connection
from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

STREAMS = 10_000


def feed(client: Any, stream: bytes, sizes: Chunks, *, reads: bool) -> None:
    """Give the stream to the broker as the runtime would: nothing more once the connection has ended."""
    for chunk in chunked(stream, sizes):
        if client.closed:
            return
        client.send_bytes(chunk)
        if reads:
            assert client.inbox is not None


def check_stream(subject: Subject, stream: bytes, sizes: Chunks, reads: bool, wait: float) -> str:
    """One stream from the first byte to what is left of it; returns what became of the connection."""
    server = subject.server()
    client = subject.connect(server)
    feed(client, stream, sizes, reads=reads)
    fate = settled_fate(client)
    assert not (problems := inconsistencies(server.state)), problems
    server.advance(wait)
    assert client.inbox is not None, "what was sent in between is whole frames, too"
    if len(stream) % 4 == 0:  # Not each time: the next client is half of the work.
        serves_others(speaking_0_9_1(server))
    assert not (found := subject.gone(client)), found
    assert not server.state.connections
    assert not (problems := inconsistencies(server.state)), problems
    subject.serves_next(server)
    return fate


@on_each
@pytest.mark.parametrize("sizes", [(), (1,), (7, 300)], ids=["whole", "octets", "chunks"])
def test_unmutated_recordings_are_accepted_by_the_broker(subject: Subject, sizes: Chunks) -> None:
    """Else the mutations would start from streams that end at the first frame."""
    for recording in subject.recordings:
        client = subject.connect(subject.server())
        feed(client, b"".join(recording), sizes, reads=True)
        assert not (closes := connection_closes(client)), closes
        assert settled_fate(client) in ("open", "finished"), client.inbox
        assert isinstance(recording[-1], bytes)
        assert not (found := subject.gone(client)), found


@pytest.mark.parametrize(
    ("subject", "recording"),
    [(subject, number) for subject in SUBJECTS for number in range(len(subject.recordings))],
    ids=str,
)
def test_connection_lost_at_any_octet_leaves_no_state_behind(subject: Subject, recording: int) -> None:
    stream = b"".join(subject.recordings[recording])
    # The longest ones consist of bodies, in which one byte is like another, and 0-9 is cut like 0-9-1.
    step = 37 if len(stream) >= 3000 else 3 if subject.protocol == "0-9" else 1
    for end in sampled(range(0, len(stream), step), first=recording):
        server = subject.server()
        client = subject.connect(server)
        client.send_bytes(stream[:end])
        assert not client.closed
        assert not (found := subject.gone(client)), (end, found)
        assert not server.state.connections
        assert not (problems := inconsistencies(server.state)), (end, problems)


@on_each
def test_mutated_streams(subject: Subject) -> None:
    fates: Counter[str] = Counter()
    runs = count()

    @examples(STREAMS * subject.share)
    @given(
        stream=mutations.streams(subject.recordings, subject.framing),
        sizes=mutations.chunkings(),
        reads=st.booleans(),
        wait=st.sampled_from([0, 0.02, 11, 61, 121]),
    )
    def run(stream: bytes, sizes: Chunks, reads: bool, wait: float) -> None:
        next(runs)
        fates[check_stream(subject, stream, sizes, reads, wait)] += 1

    run()
    assert next(runs) >= scaled(STREAMS * subject.share)
    # The mutations are worth something only if they break some streams and leave others whole.
    assert all(fates[fate] for fate in subject.fates), fates


def empty(server: Server) -> None:
    """Take out what the clients were free to leave."""
    for queue in list(server.vhost.queues.values()):
        server.vhost.queues.remove(queue)
    for exchange in list(server.vhost.exchanges.values()):
        if exchange.name and not exchange.name.startswith("amq."):
            server.vhost.exchanges.remove(exchange)
    server.vhost.extensions[
        Realms
    ]._latest = 0  # The next client knows the numbers of its access tickets beforehand.


@pytest.mark.long
@on_each
def test_memory_does_not_grow(subject: Subject) -> None:
    """After nine hundred broken connections a broker is no larger than after three hundred good ones.

    By then it keeps as much as it ever does for those who come again. Over 0-10 the first three hundred are
    broken as well.
    """
    random = Random(1)
    ignore_older_objects()
    server = subject.server()
    good = [b"".join(recording) for recording in subject.recordings]

    def memory_after(streams: Iterable[bytes]) -> int:
        for stream in streams:
            client = subject.connect(server)
            feed(client, stream, (), reads=True)
            subject.gone(client)
            server.vhost.branches.abandon(prepared=True)
            empty(server)
        del client
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        bad = (random_stream(subject.recordings, subject.framing, random) for _ in count())
        before = memory_after(islice(bad if subject.protocol == "0-10" else cycle(good), 300))
        after = memory_after(islice(bad, 900))
    finally:
        tracemalloc.stop()
    assert not alive(Amqp091Connection, Amqp010Connection, ServerSession, Amqp10Connection, Amqp10Session)
    # One small object left behind by each connection would be some 200 bytes each.
    assert after - before < 900 * 100, f"{after - before} bytes more after 900 more connections"
    assert len(server.state.timers._heap) < 200


@on_each_0_9
def test_messages_do_not_keep_channels_of_their_lost_publisher_in_memory(subject: Subject) -> None:
    """They know who published them; what that connection had to remember to serve its client is gone."""
    ignore_older_objects()
    for recording in subject.recordings:
        server = subject.server()
        client = server.connect(port=40_000)
        feed(client, b"".join(recording), (), reads=True)
        gone(client)
        endpoint = connection_of(client.connection)
        assert not alive(BaseChannel)
        assert not endpoint.channels and not endpoint.known_properties and not endpoint._partial


@pytest.mark.long
def test_caches_of_connection_channel_routing_and_access_are_bounded() -> None:
    """Caches make a busy client cheap; one that never says the same twice must not fill them for ever."""
    server = Server("rabbitmq-4.3")
    client = server.client()
    client.declare("all")
    client.bind("all", "amq.fanout")
    client.consume("all", "one", no_ack=True)
    for number in range(12_000):
        name = str(number)
        client.send(m.QueueDeclare(queue=name, no_wait=True))
        client.send(m.QueueDelete(queue=name, no_wait=True))
    for number in range(12_000):
        client.publish(exchange="amq.fanout", routing_key=str(number), message_id=str(number))
        octets = b"".join(client.connection.pending())
        assert octets.endswith(b"body\xce")
        client.connection.sent(len(octets))
    endpoint = connection_of(client.connection)
    channel = endpoint.channels[1]
    routes = server.vhost.routing._remembered
    for cache in (endpoint.known_properties, channel.targets, channel.deliver_prefixes, routes):
        assert 0 < len(cache) <= 10_000
    assert 0 < len(server.state.access._granted) <= 10_000
