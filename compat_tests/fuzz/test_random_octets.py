"""Bytes that were never AMQP, at every point of a connection's life."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.mutations import chunkings
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.subjects import SUBJECTS, Subject, on_each
from compat_tests.fuzz.test_mutated_streams import check_stream


@pytest.mark.parametrize(
    ("subject", "point"), [(subject, point) for subject in SUBJECTS for point in subject.before()], ids=str
)
def test_random_octets(subject: Subject, point: str) -> None:
    start = subject.before()[point]
    framed = st.lists(subject.noise(), min_size=1, max_size=5).map(b"".join)

    @examples(200 * subject.share)
    @given(octets=st.binary(max_size=300) | framed, sizes=chunkings(), wait=st.sampled_from([0, 11, 31]))
    def run(octets: bytes, sizes: tuple[int, ...], wait: float) -> None:
        check_stream(subject, start + octets, sizes, True, wait)

    run()


@on_each
@pytest.mark.parametrize("octet", [0x00, 0x01, 0xCE, 0xFF])
def test_300000_equal_octets_leave_the_broker_consistent(subject: Subject, octet: int) -> None:
    for start in subject.before().values():
        check_stream(subject, start + bytes([octet]) * 300_000, (65_536,), True, 0)
