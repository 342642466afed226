"""Hypothesis strategies that turn valid streams into hostile ones.

A mutation is plain data, (what, where, how, bytes), and acts on a list of pieces: first on whole frames,
then on the bytes. Numbers are taken modulo whatever there is, so each mutation fits each stream and
Hypothesis can shrink freely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from hypothesis import strategies as st

from compat_tests.fuzz.streams import Recording

__all__ = [
    "FRAMING_0_9",
    "FRAMING_0_10",
    "FRAMING_1_0",
    "Chunks",
    "Framing",
    "chunked",
    "chunkings",
    "mutated",
    "random_stream",
    "streams",
]

Mutation: TypeAlias = "tuple[str, int, int, bytes]"
Chunks: TypeAlias = "tuple[int, ...]"

ON_FRAMES = ("swap", "drop", "repeat", "splice")
ON_OCTETS = ("flip", "insert", "delete", "duplicate", "overwrite", "truncate")
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
EXTREMES_0_10 = (0, 1, 11, 12, 13, 4096, 0x7FFF, 0xFFFF)


@dataclass(frozen=True)
class Framing:
    """How frames of a protocol look: what of one may be changed, and by what function.

    Streams that start like `others` are of another protocol, whose frames are cut otherwise.
    """

    fields: tuple[str, ...]
    change: Callable[[bytes, str, int, bytes], bytes]
    others: bytes

    @property
    def mutations(self) -> tuple[str, ...]:
        """All that may happen to a stream."""
        return ON_OCTETS + ON_FRAMES + self.fields


def _change_0_9(frame: bytes, what: str, how: int, octets: bytes) -> bytes:
    if len(frame) <= 8 and frame[:1] != b"\x08":
        return frame  # The protocol header has none of these fields.
    size = int.from_bytes(frame[3:7], "big")
    if what == "channel":
        return frame[:1] + (how % 4).to_bytes(2, "big") + frame[3:]
    if what == "type":
        return bytes((how % 256,)) + frame[1:]
    if what == "size":
        size = (*EXTREMES, size - 1, size + 1, size + 8)[how % (len(EXTREMES) + 3)] % 2**32
        return frame[:3] + size.to_bytes(4, "big") + frame[7:]
    if what == "end":
        return frame[:-1] + octets[:1]
    # A shorter payload whose frame is whole: what is cut off is noticed only when it is decoded.
    payload = frame[7 : 7 + how % (size + 1)]
    return frame[:3] + len(payload).to_bytes(4, "big") + payload + frame[-1:]


def _change_0_10(whole: bytes, what: str, how: int, octets: bytes) -> bytes:
    frame = bytearray(whole)
    if len(frame) < 12:
        return whole  # As above.
    if what == "channel":
        frame[6:8] = (how % 4).to_bytes(2, "big")
    elif what == "flags":
        frame[0] = how % 16
    elif what == "type":
        frame[1] = how % 5
    elif what == "track":
        frame[5] = how % 3
    elif what == "size":
        size = (*EXTREMES_0_10, len(frame) - 1, len(frame) + 1)[how % (len(EXTREMES_0_10) + 2)]
        frame[2:4] = size.to_bytes(2, "big")
    elif what == "reserved":
        frame[8 + how % 4] = octets[0]
    elif what == "code" and len(frame) > 13:
        frame[12], frame[13] = 1 + how % 11, octets[0] % 16
    elif what == "cut":
        del frame[12 + how % (len(frame) - 11) :]
        frame[2:4] = len(frame).to_bytes(2, "big")
    return bytes(frame)


def _change_1_0(whole: bytes, what: str, how: int, octets: bytes) -> bytes:
    frame = bytearray(whole)
    if len(frame) < 11:
        return whole  # As above; or an empty frame.
    if what == "channel":
        frame[6:8] = (how % 4).to_bytes(2, "big")
    elif what == "type":
        frame[5] = how % 3
    elif what == "offset":
        frame[4] = how % 5
    elif what == "size":
        size = (*EXTREMES, len(frame) - 1, len(frame) + 1)[how % (len(EXTREMES) + 2)] % 2**32
        frame[:4] = size.to_bytes(4, "big")
    elif what == "code":
        frame[10] = (0x10, 0x40, 0x20, 0x70)[octets[0] % 4] + how % 9
    elif what == "cut":
        del frame[8 + how % (len(frame) - 7) :]
        frame[:4] = len(frame).to_bytes(4, "big")
    return bytes(frame)


FRAMING_0_9 = Framing(("channel", "type", "size", "end", "cut"), _change_0_9, b"AMQP\x01\x01\x00\x0a")
"""0-9 and 0-9-1 have frames in common."""
FRAMING_0_10 = Framing(
    ("channel", "flags", "type", "track", "size", "reserved", "cut", "code"),
    _change_0_10,
    b"AMQP\0\0\x09\x01",
)
FRAMING_1_0 = Framing(("channel", "type", "offset", "size", "code", "cut"), _change_1_0, b"AMQP\0\0\x09\x01")


def mutated(
    pieces: Recording, changes: list[Mutation], sources: Sequence[Recording], framing: Framing
) -> bytes:
    """The stream with all changes made; frames are spliced in from `sources`."""
    frames = list(pieces)
    for what, where, how, octets in changes:
        if what in framing.fields and frames:
            at = where % len(frames)
            frames[at] = framing.change(frames[at], what, how, octets)
        elif what in ON_FRAMES and frames:
            _change_frames(frames, what, where % len(frames), how, octets, sources)
    stream = bytearray(b"".join(frames))
    for what, where, how, octets in changes:
        if what in ON_OCTETS and stream:
            _change_bytes(stream, what, where % len(stream), how, octets)
    return bytes(stream)


def _change_frames(
    frames: list[bytes], what: str, at: int, how: int, octets: bytes, sources: Sequence[Recording]
) -> None:
    other = how % len(frames)
    if what == "swap":
        frames[at], frames[other] = frames[other], frames[at]
    elif what == "drop":
        del frames[at]
    elif what == "repeat":
        frames[at:at] = [frames[at]] * (1 + how % 3)
    else:
        source = sources[octets[0] % len(sources)]
        first = how % len(source)
        frames[at:at] = source[first : first + 1 + octets[-1] % 6]


def _change_bytes(stream: bytearray, what: str, at: int, how: int, octets: bytes) -> None:
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


def streams(recordings: Sequence[Recording], framing: Framing = FRAMING_0_9) -> st.SearchStrategy[bytes]:
    """One of these recordings, mutated, unless it has become one of the protocol whose frames are others."""
    numbers = st.integers(0, 0xFFFF)
    one = st.tuples(st.sampled_from(framing.mutations), numbers, numbers, st.binary(min_size=1, max_size=8))
    # Mostly few mutations, since a stream that is broken at once shows little.
    changes = st.lists(one, min_size=1, max_size=5)
    built = st.builds(mutated, st.sampled_from(recordings), changes, st.just(recordings), st.just(framing))
    return built.filter(lambda stream: not stream.startswith(framing.others))


def random_stream(recordings: Sequence[Recording], framing: Framing, random: Random, most: int = 3) -> bytes:
    """A mutated recording without Hypothesis, which would keep things in memory itself."""
    changes = [
        (
            random.choice(framing.mutations),
            random.randrange(1 << 16),
            random.randrange(1 << 16),
            random.randbytes(random.randint(1, 8)),
        )
        for _ in range(random.randint(1, most))
    ]
    return mutated(random.choice(recordings), changes, recordings, framing)


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
