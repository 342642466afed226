"""Bytes that were never AMQP, at every point of a connection's life."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.mutations import chunkings
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.subjects import SUBJECTS, Subject, on_each
from compat_tests.fuzz.test_mutated_streams import check_stream


def before(subject: Subject) -> dict[str, bytes]:
    """What a client has said, by the point it has come to."""
    client = subject.writer()
    handshake = client.handshake()
    return {
        "connect": b"",
        "half a header": client.header[:5],
        "header": client.header,
        "start-ok": b"".join(handshake[:2]),
        "tune-ok": b"".join(handshake[:3]),
        "handshake": b"".join(handshake),
        "channel": b"".join([*handshake, *client.open(1)]),
        "publish": b"".join(
            [*handshake, *client.open(1), *client.publish("", "q", b"body", frame_size=3)[:-1]]
        ),
    }


POINTS = tuple(before(SUBJECTS[0]))


def noise() -> st.SearchStrategy[bytes]:
    """Any bytes, or frames around any octets: those get one layer deeper."""
    payload = st.binary(max_size=40)
    ids = st.sampled_from([*range(10, 130, 10), 85]), st.integers(0, 120), payload
    method = st.builds(lambda a, b, rest: a.to_bytes(2, "big") + b.to_bytes(2, "big") + rest, *ids)
    frame = st.builds(
        lambda kind, channel, payload: (
            bytes((kind,)) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"
        ),
        st.sampled_from([1, 1, 1, 1, 2, 2, 3, 3, 8, *range(4, 11)]),
        st.sampled_from([0, 1, 1, 2]),
        method | payload,
    )
    return st.one_of(st.binary(max_size=300), st.lists(frame | method, min_size=1, max_size=5).map(b"".join))


@on_each
@pytest.mark.parametrize("point", POINTS)
def test_random_octets(subject: Subject, point: str) -> None:
    start = before(subject)[point]

    @examples(200 * subject.share)
    @given(octets=noise(), sizes=chunkings(), wait=st.sampled_from([0, 11, 31]))
    def run(octets: bytes, sizes: tuple[int, ...], wait: float) -> None:
        check_stream(subject.server(), start + octets, sizes, True, wait)

    run()


@on_each
@pytest.mark.parametrize("octet", [0x00, 0x01, 0xCE, 0xFF])
def test_300000_equal_octets_leave_the_broker_consistent(subject: Subject, octet: int) -> None:
    for start in before(subject).values():
        check_stream(subject.server(), start + bytes([octet]) * 300_000, (65_536,), True, 0)
