"""Hypothesis strategies that turn valid streams into hostile ones.

A mutation is plain data, (what, where, how, bytes), and acts on a list of pieces: first on whole frames,
then on the bytes. Numbers are taken modulo whatever there is, so each mutation fits each stream and
Hypothesis can shrink freely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from hypothesis import strategies as st

from compat_tests.fuzz.streams import Recording

__all__ = ["ON_OCTETS", "Chunks", "Mutation", "change_bytes", "chunked", "chunkings", "mutated", "streams"]

Mutation: TypeAlias = "tuple[str, int, int, bytes]"
Chunks: TypeAlias = "tuple[int, ...]"

ON_FRAMES = ("swap", "drop", "repeat", "splice", "channel", "type", "size", "end", "cut")
ON_OCTETS = ("flip", "insert", "delete", "duplicate", "overwrite", "truncate")
_OTHER_FRAMES = b"AMQP\x01\x01\x00\x0a"
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


def mutations() -> st.SearchStrategy[list[Mutation]]:
    """At least one mutation; mostly few, since a stream that is broken at once shows little."""
    numbers = st.integers(0, 0xFFFF)
    one = st.tuples(
        st.sampled_from(ON_OCTETS + ON_FRAMES), numbers, numbers, st.binary(min_size=1, max_size=8)
    )
    return st.lists(one, min_size=1, max_size=5)


def mutated(pieces: Recording, changes: list[Mutation], sources: Sequence[Recording]) -> bytes:
    """The stream with all changes made; frames are spliced in from `sources`."""
    frames = list(pieces)
    for what, where, how, octets in changes:
        if what in ON_FRAMES and frames:
            _change_frames(frames, what, where % len(frames), how, octets, sources)
    stream = bytearray(b"".join(frames))
    for what, where, how, octets in changes:
        if what in ON_OCTETS and stream:
            change_bytes(stream, what, where % len(stream), how, octets)
    return bytes(stream)


def _change_frames(
    frames: list[bytes], what: str, at: int, how: int, octets: bytes, sources: Sequence[Recording]
) -> None:
    frame = frames[at]
    other = how % len(frames)
    if what == "swap":
        frames[at], frames[other] = frames[other], frame
    elif what == "drop":
        del frames[at]
    elif what == "repeat":
        frames[at:at] = [frame] * (1 + how % 3)
    elif what == "splice":
        source = sources[octets[0] % len(sources)]
        first = how % len(source)
        frames[at:at] = source[first : first + 1 + octets[-1] % 6]
    elif len(frame) > 8 or frame[:1] == b"\x08":  # The protocol header has none of these fields.
        size = int.from_bytes(frame[3:7], "big")
        if what == "channel":
            frames[at] = frame[:1] + (how % 4).to_bytes(2, "big") + frame[3:]
        elif what == "type":
            frames[at] = bytes((how % 256,)) + frame[1:]
        elif what == "size":
            size = (*EXTREMES, size - 1, size + 1, size + 8)[how % (len(EXTREMES) + 3)] % 2**32
            frames[at] = frame[:3] + size.to_bytes(4, "big") + frame[7:]
        elif what == "end":
            frames[at] = frame[:-1] + octets[:1]
        else:
            # A shorter payload whose frame is whole: what is cut off is noticed only when it is decoded.
            payload = frame[7 : 7 + how % (size + 1)]
            frames[at] = frame[:3] + len(payload).to_bytes(4, "big") + payload + frame[-1:]


def change_bytes(stream: bytearray, what: str, at: int, how: int, octets: bytes) -> None:
    """Make one change to a stream."""
    length = 1 + how % 64
    if what == "flip":
        stream[at] ^= 1 << (how % 8)
    elif what == "insert":
        stream[at:at] = octets
    elif what == "delete":
        del stream[at : at + length]
    elif what == "duplicate":
        stream[at:at] = stream[at : at + length]
    elif what == "overwrite":
        stream[at : at + len(octets)] = octets
    else:
        del stream[at:]


def streams(recordings: Sequence[Recording]) -> st.SearchStrategy[bytes]:
    """One of these recordings, mutated, unless it has become one of 0-10, whose frames are others."""
    built = st.builds(mutated, st.sampled_from(recordings), mutations(), st.just(recordings))
    return built.filter(lambda stream: not stream.startswith(_OTHER_FRAMES))


def chunkings() -> st.SearchStrategy[Chunks]:
    """In which sizes a stream arrives, over and over; nothing means all at once."""
    return st.one_of(
        st.just(()), st.just((1,)), st.lists(st.integers(1, 700), min_size=1, max_size=4).map(tuple)
    )


def chunked(stream: bytes, sizes: Chunks) -> Iterator[bytes]:
    """Cut the stream."""
    if not sizes:
        yield stream
        return
    at = turn = 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        yield stream[at : at + size]
        at += size
        turn += 1
