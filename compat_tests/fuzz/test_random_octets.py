"""Octets that were never AMQP, at every point of a connection's life."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_tests.fuzz.mutations import chunkings
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.streams import Client
from compat_tests.fuzz.test_mutated_streams import PERSONALITIES, check_stream
from compat_tests.protocol.driver import Server
from fakeamqp.wire.amqp_0_9_1.constants import PROTOCOL_HEADER


def before(personality: str) -> dict[str, bytes]:
    """What a client has said, by the point it has come to."""
    client = Client(strict=personality == "spec")
    handshake = client.handshake()
    return {
        "connect": b"",
        "half a header": PROTOCOL_HEADER[:5],
        "header": PROTOCOL_HEADER,
        "start-ok": b"".join(handshake[:2]),
        "tune-ok": b"".join(handshake[:3]),
        "handshake": b"".join(handshake),
        "channel": b"".join([*handshake, *client.open(1)]),
        "publish": b"".join(
            [*handshake, *client.open(1), *client.publish("", "q", b"body", frame_size=3)[:-1]]
        ),
    }


POINTS = tuple(before("spec"))


def noise() -> st.SearchStrategy[bytes]:
    """Any octets, or frames around any octets: those get one layer deeper."""
    payload = st.binary(max_size=40)
    ids = st.sampled_from([10, 20, 40, 50, 60, 85, 90]), st.integers(0, 120), payload
    method = st.builds(lambda a, b, rest: a.to_bytes(2, "big") + b.to_bytes(2, "big") + rest, *ids)
    frame = st.builds(
        lambda kind, channel, payload: (
            bytes((kind,)) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"
        ),
        st.sampled_from([1, 1, 1, 2, 3, 8]),
        st.sampled_from([0, 1, 1, 2]),
        method | payload,
    )
    return st.one_of(st.binary(max_size=300), st.lists(frame | method, min_size=1, max_size=5).map(b"".join))


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("point", POINTS)
def test_random_octets(personality: str, point: str) -> None:
    start = before(personality)[point]

    @examples(100)
    @given(octets=noise(), sizes=chunkings(), wait=st.sampled_from([0, 11, 31]))
    def run(octets: bytes, sizes: tuple[int, ...], wait: float) -> None:
        check_stream(Server(personality), start + octets, sizes, True, wait)

    run()


@pytest.mark.parametrize("personality", PERSONALITIES)
@pytest.mark.parametrize("octet", [0x00, 0x01, 0xCE, 0xFF])
def test_a_lot_of_one_octet(personality: str, octet: int) -> None:
    for start in before(personality).values():
        check_stream(Server(personality), start + bytes([octet]) * 300_000, (65_536,), True, 0)
