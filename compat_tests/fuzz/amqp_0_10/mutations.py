"""Hypothesis strategies that turn valid 0-10 streams into hostile ones; see `compat_tests.fuzz.mutations`."""

from __future__ import annotations

from hypothesis import strategies as st

from compat_tests.fuzz.amqp_0_10.recordings import RECORDINGS, Recording
from compat_tests.fuzz.mutations import ON_OCTETS, Mutation, change_bytes

__all__ = ["ON_FRAMES", "mutated", "streams"]

ON_FRAMES = (
    "swap",
    "drop",
    "repeat",
    "splice",
    "channel",
    "flags",
    "type",
    "track",
    "size",
    "reserved",
    "cut",
    "code",
)
_EXTREMES = (0, 1, 11, 12, 13, 4096, 0x7FFF, 0xFFFF)


def mutated(pieces: Recording, changes: list[Mutation]) -> bytes:
    """The stream with all changes made."""
    frames = list(pieces)
    for what, where, how, octets in changes:
        if what in ON_FRAMES and frames:
            _change_frames(frames, what, where % len(frames), how, octets)
    stream = bytearray(b"".join(frames))
    for what, where, how, octets in changes:
        if what in ON_OCTETS and stream:
            change_bytes(stream, what, where % len(stream), how, octets)
    return bytes(stream)


def _change_frames(frames: list[bytes], what: str, at: int, how: int, octets: bytes) -> None:
    frame = bytearray(frames[at])
    other = how % len(frames)
    if what == "swap":
        frames[at], frames[other] = frames[other], frames[at]
    elif what == "drop":
        del frames[at]
    elif what == "repeat":
        frames[at:at] = [bytes(frame)] * (1 + how % 3)
    elif what == "splice":
        source = RECORDINGS[octets[0] % len(RECORDINGS)]
        first = how % len(source)
        frames[at:at] = source[first : first + 1 + octets[-1] % 6]
    elif len(frame) >= 12:  # The protocol header has none of these fields.
        if what == "channel":
            frame[6:8] = (how % 4).to_bytes(2, "big")
        elif what == "flags":
            frame[0] = how % 16
        elif what == "type":
            frame[1] = how % 5
        elif what == "track":
            frame[5] = how % 3
        elif what == "size":
            size = (*_EXTREMES, len(frame) - 1, len(frame) + 1)[how % (len(_EXTREMES) + 2)]
            frame[2:4] = size.to_bytes(2, "big")
        elif what == "reserved":
            frame[8 + how % 4] = octets[0]
        elif what == "code" and len(frame) > 13:
            frame[12], frame[13] = 1 + how % 11, octets[0] % 16
        elif what == "cut":
            # A shorter payload whose frame is whole: what is cut off is noticed only when it is decoded.
            del frame[12 + how % (len(frame) - 11) :]
            frame[2:4] = len(frame).to_bytes(2, "big")
        frames[at] = bytes(frame)


def _changes() -> st.SearchStrategy[list[Mutation]]:
    numbers = st.integers(0, 0xFFFF)
    one = st.tuples(
        st.sampled_from(ON_OCTETS + ON_FRAMES), numbers, numbers, st.binary(min_size=1, max_size=8)
    )
    return st.lists(one, min_size=1, max_size=5)


def streams() -> st.SearchStrategy[bytes]:
    """What a client sends, mutated."""
    return st.builds(mutated, st.sampled_from(RECORDINGS), _changes())
