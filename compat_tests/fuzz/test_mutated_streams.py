"""Whatever octets a client sends, and however they are cut, the broker stands and the next client is served.

Ten thousand mutated streams go through in all: see `STREAMS`.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_tests.fuzz import mutations
from compat_tests.fuzz.checks import (
    endpoint_of,
    inconsistencies,
    left_behind,
    serves_others,
    settled_fate,
)
from compat_tests.fuzz.mutations import Chunks, chunked
from compat_tests.fuzz.profile import FACTOR, examples
from compat_tests.fuzz.streams import recordings
from compat_tests.protocol.driver import Client, Server
from fakeamqp.dialects.amqp_0_9_1 import Endpoint
from fakeamqp.dialects.amqp_0_9_1.channel_end import ChannelEnd
from fakeamqp.wire.amqp_0_9_1 import methods as m

PERSONALITIES = ("rabbitmq-4.2", "spec")
STREAMS = 10_000


def feed(client: Client, stream: bytes, sizes: Chunks, *, reads: bool) -> None:
    """Give the stream to the broker as the runtime would: nothing more once the connection has ended."""
    for chunk in chunked(stream, sizes):
        if client.closed:
            return
        client.send_octets(chunk)
        if reads:
            assert client.inbox is not None


def check_stream(server: Server, stream: bytes, sizes: Chunks, reads: bool, wait: float) -> str:
    """One stream from the first octet to what is left of it; returns what became of the connection."""
    client = server.connect(port=40_000)
    feed(client, stream, sizes, reads=reads)
    fate = settled_fate(client)
    assert not (problems := inconsistencies(server.state)), problems
    server.advance(wait)
    assert client.inbox is not None, "what was sent in between is whole frames, too"
    if len(stream) % 4 == 0:  # Not each time: the next client is half of the work.
        serves_others(server)
    client.drop()
    assert client.closed
    assert not (found := left_behind(server.state, client.connection)), found
    assert not server.state.connections
    assert not (problems := inconsistencies(server.state)), problems
    serves_others(server)
    return fate


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("sizes", [(), (1,), (7, 300)], ids=["whole", "octets", "chunks"])
def test_recordings_are_what_valid_clients_send(personality: str, sizes: Chunks) -> None:
    """Else the mutations would start from streams that end at the first frame."""
    for recording in recordings(personality):
        server = Server(personality)
        client = server.connect(port=40_000)
        feed(client, b"".join(recording), sizes, reads=True)
        closes = [frame.method for frame in client.inbox if isinstance(frame.method, m.ConnectionClose)]
        assert not closes, closes
        assert settled_fate(client) in ("open", "finished")
        assert isinstance(recording[-1], bytes)
        client.drop()
        assert not left_behind(server.state, client.connection)


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("recording", range(len(recordings("spec"))))
def test_vanishing_at_every_octet_leaves_nothing(personality: str, recording: int) -> None:
    stream = b"".join(recordings(personality)[recording])
    # The longest one consists of bodies, in which one octet is like another.
    for end in range(0, len(stream), 1 if len(stream) < 3000 else 37):
        server = Server(personality)
        client = server.connect(port=40_000)
        client.send_octets(stream[:end])
        assert not client.closed
        client.drop()
        assert client.closed
        assert not (found := left_behind(server.state, client.connection)), (end, found)
        assert not server.state.connections
        assert not (problems := inconsistencies(server.state)), (end, problems)


@pytest.mark.parametrize("personality", PERSONALITIES)
def test_mutated_streams(personality: str) -> None:
    fates: Counter[str] = Counter()
    runs = count()

    @examples(STREAMS // len(PERSONALITIES))
    @given(
        stream=mutations.streams(personality),
        sizes=mutations.chunkings(),
        reads=st.booleans(),
        wait=st.sampled_from([0, 0.02, 11, 61, 121]),
    )
    def run(stream: bytes, sizes: Chunks, reads: bool, wait: float) -> None:
        next(runs)
        fates[check_stream(Server(personality), stream, sizes, reads, wait)] += 1

    run()
    assert next(runs) >= FACTOR * STREAMS // len(PERSONALITIES)
    # The mutations are worth something only if they break some streams and leave others whole.
    assert all(fates[fate] for fate in ("open", "closing", "finished")), fates


def random_stream(personality: str, random: Random) -> bytes:
    """A mutated recording without Hypothesis, which would keep things in memory itself."""
    changes = [
        (
            random.choice(mutations.ON_FRAMES + mutations.ON_OCTETS),
            random.randrange(1 << 16),
            random.randrange(1 << 16),
            random.randbytes(random.randint(1, 8)),
        )
        for _ in range(random.randint(1, 3))
    ]
    return mutations.mutated(random.choice(recordings(personality)), changes)


def empty(server: Server) -> None:
    """Take out what the clients were free to leave."""
    for queue in list(server.vhost.queues.values()):
        server.vhost.remove_queue(queue)
    for exchange in list(server.vhost.exchanges.values()):
        if exchange.name and not exchange.name.startswith("amq."):
            server.vhost.remove_exchange(exchange)


def alive(kind: type) -> list[object]:
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is kind]


@pytest.mark.parametrize("personality", PERSONALITIES)
def test_memory_does_not_grow(personality: str) -> None:
    """After twelve hundred broken connections a broker is no larger than after three hundred."""
    random = Random(1)
    server = Server(personality)

    def memory_after(connections: int) -> int:
        for _ in range(connections):
            client = server.connect(port=40_000)
            feed(client, random_stream(personality, random), (), reads=True)
            client.drop()
            empty(server)
        del client
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = memory_after(300)
        after = memory_after(900)
    finally:
        tracemalloc.stop()
    assert not alive(Endpoint)
    # One small object left behind by each connection would be some 200 octets each.
    assert after - before < 900 * 100, f"{after - before} octets more after 900 more connections"
    assert len(server.state.timers._heap) < 200


@pytest.mark.parametrize("personality", PERSONALITIES)
def test_messages_do_not_keep_what_their_publisher_had(personality: str) -> None:
    """They know who published them; what that connection had to remember to serve its client is gone."""
    for recording in recordings(personality):
        server = Server(personality)
        client = server.connect(port=40_000)
        feed(client, b"".join(recording), (), reads=True)
        client.drop()
        endpoint = endpoint_of(client.connection)
        assert not alive(ChannelEnd)
        assert not endpoint.channels and not endpoint.known_properties and not endpoint._partial


def test_what_is_remembered_has_bounds() -> None:
    """Caches make a busy client cheap; one that never says the same twice must not fill them for ever."""
    server = Server("rabbitmq-4.2")
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
    endpoint = endpoint_of(client.connection)
    channel = endpoint.channels[1]
    routes = server.vhost.routing._remembered
    for cache in (endpoint.known_properties, channel.targets, channel.deliver_prefixes, routes):
        assert 0 < len(cache) <= 10_000
    assert 0 < len(server.state.access._granted) <= 10_000
