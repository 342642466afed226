"""The same over real sockets: the loop thread goes on, and clients that vanish leave nothing behind."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz import mutations
from compat_tests.fuzz.checks import inconsistencies, queues
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.streams import RECORDINGS, Client, recordings
from compat_tests.fuzz.subjects import PERSONALITIES
from fakeamqp import Broker
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@pytest.fixture(params=PERSONALITIES)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(personality=request.param, history=0, trace=0) as broker:
        yield broker
        assert broker.admin.failures == ()


def dial(broker: Broker) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), timeout=30)


def say(client: socket.socket, octets: bytes) -> None:
    """Send; a broker that has ended the connection is no error here."""
    with suppress(ConnectionError):
        client.sendall(octets)


def vanish(client: socket.socket, *, reset: bool) -> None:
    """Go without a word, with a FIN or with a RST."""
    if reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    client.close()


def is_served(broker: Broker, *, strict: bool) -> None:
    """One whole conversation from connect to close."""
    talk = Client(strict=strict)
    frames = [
        *talk.handshake(),
        *talk.open(1),
        *talk.send(
            m.QueueDeclare(queue="next", exclusive=True),
            talk.publish("", "next", b"well served"),
            m.BasicGet(queue="next", no_ack=True),
        ),
        talk.frame(0, m.ConnectionClose(reply_code=200)),
    ]
    with dial(broker) as client:
        client.sendall(b"".join(frames))
        answer = b""
        while m.ConnectionCloseOk().encode() not in answer:
            octets = client.recv(65536)
            assert octets, f"the transport ended behind {answer!r}"
            answer += octets
    assert b"well served" in answer


def nothing_is_left(state: BrokerState) -> bool:
    """No connection, and nothing that one of them held."""
    return not state.connections and not any(
        queue.exclusive_owner or queue.subscriptions or queue.unacked for queue in queues(state)
    )


def check_nothing_is_left(broker: Broker) -> None:
    broker.wait_until_idle(timeout=30)  # Some clients may not even have been accepted when they went.
    assert broker._reader.wait_for(nothing_is_left, timeout=30), broker.connections
    assert broker._reader.read(inconsistencies) == []
    assert broker._reader.read(lambda state: list(state.virtual_hosts["/"].reply_addresses)) == []


@pytest.mark.parametrize("personality", PERSONALITIES)
def test_mutated_streams(personality: str) -> None:
    with Broker(personality=personality, history=0, trace=0) as broker:

        @examples(150)
        @given(
            stream=mutations.streams(recordings(personality)),
            sizes=st.just(()) | st.lists(st.integers(50, 700), min_size=1, max_size=3).map(tuple),
            reset=st.booleans(),
        )
        def run(stream: bytes, sizes: mutations.Chunks, reset: bool) -> None:
            client = dial(broker)
            for chunk in mutations.chunked(stream, sizes):
                say(client, chunk)
            is_served(broker, strict=personality == "spec")
            vanish(client, reset=reset)
            check_nothing_is_left(broker)
            broker.reset()
            assert broker.admin.failures == ()

        run()


@pytest.mark.parametrize("reset", [False, True], ids=["FIN", "RST"])
@pytest.mark.parametrize("recording", range(len(RECORDINGS)))
def test_client_lost_at_any_frame_boundary_leaves_no_state_behind(
    broker: Broker, recording: int, reset: bool
) -> None:
    """Wherever in a frame a client goes, all it had goes with it."""
    strict = broker._reader.read(lambda state: state.personality.name) == "spec"
    frames = recordings("spec" if strict else "")[recording]
    stream = b"".join(frames)
    # Every prefix of the sans-I/O connection is tried elsewhere; here the ends of frames and their middles.
    ends = [sum(map(len, frames[: number + 1])) for number in range(len(frames))]
    for end in sorted({*ends, *(end - 1 for end in ends), *(end - 6 for end in ends)}):
        client = dial(broker)
        say(client, stream[:end])
        vanish(client, reset=reset)
    check_nothing_is_left(broker)
    is_served(broker, strict=strict)
    check_nothing_is_left(broker)


def test_64_clients_lost_at_once_leave_no_state_behind(broker: Broker) -> None:
    strict = broker._reader.read(lambda state: state.personality.name) == "spec"
    streams = [b"".join(recording) for recording in recordings("spec" if strict else "")]
    clients = []
    for number in range(64):
        client = dial(broker)
        stream = streams[number % len(streams)]
        say(client, stream[: len(stream) * (number + 1) // 64])
        clients.append(client)
    for number, client in enumerate(clients):
        vanish(client, reset=number % 2 == 0)
    check_nothing_is_left(broker)
    is_served(broker, strict=strict)
