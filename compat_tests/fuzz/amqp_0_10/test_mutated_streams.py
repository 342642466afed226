"""Whatever bytes a 0-10 client sends, and however they are cut, the broker stands and others are served.

Ten thousand mutated streams go through in all: see `STREAMS`.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.amqp_0_10 import mutations
from compat_tests.fuzz.amqp_0_10.recordings import RECORDINGS, before
from compat_tests.fuzz.checks import connection_of, inconsistencies, left_behind, queues, serves_others
from compat_tests.fuzz.mutations import ON_OCTETS, Chunks, chunked, chunkings
from compat_tests.fuzz.profile import examples, sampled, scaled
from compat_tests.fuzz.test_mutated_streams import empty
from compat_tests.scripted.amqp_0_10 import Client, Server
from compat_tests.tools.heap import alive, ignore_older_objects
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c
from fakeamqp.protocols.amqp_0_10.server_connection import Amqp010Connection
from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

PERSONALITIES = ("rabbitmq-4.2", "spec")
STREAMS = 10_000


def feed(client: Client, stream: bytes, sizes: Chunks, *, reads: bool) -> None:
    """Give the stream to the broker as the runtime would: nothing more once the connection has ended."""
    for chunk in chunked(stream, sizes):
        if client.closed:
            return
        client.send_bytes(chunk)
        if reads:
            assert client.inbox is not None


def fate(client: Client) -> str:
    """What has become of a connection; anything but one of the fates there are is a failure."""
    connection = client.connection
    if connection.aborted:
        return "aborted"
    if connection.finished:
        return "finished"
    endpoint = connection_of(connection)
    if endpoint is None:
        return "waiting for a header"
    if endpoint.state.name == "CLOSING":
        said = [each.what for each in client.inbox if isinstance(each.what, c.ConnectionClose)]
        assert said, "a connection is closing, yet its client was not told"
        assert said[-1].reply_code in (320, 402, 501) and said[-1].reply_text, f"no reason: {said}"
        return "closing"
    assert endpoint in client.server.state.connections
    failed = [each.what for each in client.inbox if isinstance(each.what, x.ExecutionException)]
    assert all(each.error_code and each.description for each in failed), failed
    return "failed" if failed else "open"


def kept(server: Server, connection: Any) -> list[str]:
    """What a connection that has gone still holds, unless its sessions are kept for another."""
    found = [] if server.state.sessions else left_behind(server.state, connection)
    for session in server.state.sessions.values():
        assert isinstance(session, ServerSession)
        if session.connection is not None or session.timeout == 0:
            found.append(f"{session}")
    return found


def serves_0_10(server: Server) -> None:
    """The next client of the same protocol is served, too."""
    session = server.session(b"the next")
    session.declare("next", exclusive=True, auto_delete=True)
    session.publish(b"well", key="next")
    assert session.query("next").message_count == 1
    session.client.drop()


def check_stream(server: Server, stream: bytes, sizes: Chunks, reads: bool, wait: float) -> str:
    """One stream from the first byte to what is left of it; returns what became of the connection."""
    client = server.dial()
    feed(client, stream, sizes, reads=reads)
    found = fate(client)
    assert not (problems := inconsistencies(server.state)), problems
    server.advance(wait)
    assert client.inbox is not None, "what was sent in between is whole frames, too"
    client.drop()
    assert client.closed
    assert not (left := kept(server, client.connection)), left
    for session in list(server.state.sessions.values()):
        session.end()
    assert not server.state.connections and not server.state.sessions
    assert not (left := kept(server, client.connection)), left
    for queue in queues(server.state):
        assert not queue.unacked or any(queue.virtual_host.branches.views()), f"{queue} after all have gone"
    assert not (problems := inconsistencies(server.state)), problems
    serves = serves_others if len(stream) % 8 == 0 else serves_0_10
    serves(server)
    return found


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("sizes", [(), (1,), (7, 300)], ids=["whole", "octets", "chunks"])
@pytest.mark.parametrize("recording", range(len(RECORDINGS)))
def test_unmutated_recordings_are_accepted_by_the_broker(
    personality: str, sizes: Chunks, recording: int
) -> None:
    """Else the mutations would start from streams that end at the first frame."""
    server = Server(personality)
    client = server.dial()
    feed(client, b"".join(RECORDINGS[recording]), sizes, reads=True)
    assert fate(client) in ("open", "finished"), client.inbox


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("recording", range(len(RECORDINGS)))
def test_connection_lost_at_any_octet_leaves_no_state_behind(personality: str, recording: int) -> None:
    stream = b"".join(RECORDINGS[recording])
    for end in sampled(range(len(stream)), first=recording):
        server = Server(personality)
        client = server.dial()
        client.send_bytes(stream[:end])
        assert not client.closed
        client.drop()
        assert client.closed
        assert not (found := kept(server, client.connection)), (end, found)
        assert not (problems := inconsistencies(server.state)), (end, problems)


@pytest.mark.parametrize("personality", PERSONALITIES)
def test_mutated_streams(personality: str) -> None:
    fates: Counter[str] = Counter()
    runs = count()

    @examples(STREAMS // len(PERSONALITIES))
    @given(
        stream=mutations.streams(),
        sizes=chunkings(),
        reads=st.booleans(),
        wait=st.sampled_from([0, 0.02, 11, 61, 121]),
    )
    def run(stream: bytes, sizes: Chunks, reads: bool, wait: float) -> None:
        next(runs)
        fates[check_stream(Server(personality), stream, sizes, reads, wait)] += 1

    run()
    assert next(runs) >= scaled(STREAMS // len(PERSONALITIES))
    # The mutations are worth something only if they break some streams and leave others whole.
    assert all(fates[each] for each in ("open", "closing", "failed", "finished")), fates


def noise() -> st.SearchStrategy[bytes]:
    """Any bytes, or frames around any octets: those get one layer deeper."""

    def frame(flags: int, kind: int, channel: int, payload: bytes) -> bytes:
        size = (12 + len(payload)).to_bytes(2, "big")
        track = bytes((0, 1 if kind else 0))
        return bytes((flags, kind)) + size + track + channel.to_bytes(2, "big") + bytes(4) + payload

    codes = st.tuples(st.integers(1, 11), st.integers(0, 15)).map(bytes)
    command = st.builds(
        lambda code, sync, rest: code + sync + rest, codes, st.just(b"\1\1"), st.binary(max_size=40)
    )
    payload = st.one_of(
        st.binary(max_size=40), command, st.builds(bytes.__add__, codes, st.binary(max_size=40))
    )
    flags = st.sampled_from([15, 15, 15, 11, 7, 3, 14, 13])
    one = st.builds(frame, flags, st.sampled_from([0, 1, 1, 2, 3]), st.sampled_from([0, 0, 1]), payload)
    return st.one_of(st.binary(max_size=300), st.lists(one, min_size=1, max_size=5).map(b"".join))


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("point", sorted(before()))
def test_random_octets(personality: str, point: str) -> None:
    start = before()[point]

    @examples(100)
    @given(octets=noise(), sizes=chunkings(), wait=st.sampled_from([0, 11, 31]))
    def run(octets: bytes, sizes: Chunks, wait: float) -> None:
        check_stream(Server(personality), start + octets, sizes, True, wait)

    run()


def _random_stream(random: Random) -> bytes:
    """A mutated recording without Hypothesis, which would keep things in memory itself."""
    changes = [
        (
            random.choice(mutations.ON_FRAMES + ON_OCTETS),
            random.randrange(1 << 16),
            random.randrange(1 << 16),
            random.randbytes(random.randint(1, 8)),
        )
        for _ in range(random.randint(1, 3))
    ]
    return mutations.mutated(random.choice(RECORDINGS), changes)


@pytest.mark.long
@pytest.mark.parametrize("personality", PERSONALITIES)
def test_memory_does_not_grow(personality: str) -> None:
    """After twelve hundred broken connections a broker is no larger than after three hundred."""
    random = Random(1)
    ignore_older_objects()
    server = Server(personality)

    def memory_after(connections: int) -> int:
        for _ in range(connections):
            client = server.dial()
            feed(client, _random_stream(random), (), reads=True)
            client.drop()
            for session in list(server.state.sessions.values()):
                session.end()
            server.vhost.branches.abandon(prepared=True)
            empty(server)
        del client
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first = memory_after(300)
        later = memory_after(900)
    finally:
        tracemalloc.stop()
    assert not alive(Amqp010Connection, ServerSession)
    # One small object left behind by each connection would be some 200 bytes each.
    assert later - first < 900 * 100, f"{later - first} bytes more after 900 more connections"
    assert len(server.state.timers._heap) < 200
