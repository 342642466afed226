"""The two hash functions of RabbitMQ's hashing exchanges, bit for bit.

A test that publishes with a key must reach the same queue as in production, so this module computes what
Erlang computes: `phash2`, the portable hash of Erlang terms (the algorithm is Bob Jenkins' of 1996 over words
of 32 bits), and `jump`, the jump consistent hash of Lamping and Veach, whose random numbers come from
Erlang's exs1024. Both are the same on every version and machine, as Erlang promises.

Erlang terms are: bytes for a binary, `Atom`, int, float, tuple, list. Lists of numbers are not supported:
they hash differently and are not needed.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TypeAlias, Union

from fakeamqp.model.erlang import Atom

__all__ = ["Term", "jump", "phash2"]


Term: TypeAlias = Union[Atom, bytes, int, float, "tuple[Term, ...]", "list[Term]"]

_MASK_32 = 0xFFFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_GOLDEN = 0x9E3779B9

# What is mixed in by kind of term: small multiples of the golden ratio.
_TABLE = {number: _GOLDEN * number & _MASK_32 for number in range(1, 17)}
_EMPTY_LIST = 3468870702

_read_block = struct.Struct("<III").unpack_from
_pack_double = struct.Struct("<d").pack
_read_double_words = struct.Struct("<II").unpack


def phash2(term: Term, bits: int = 27) -> int:
    """Erlang's `erlang:phash2/1`, or with 32 bits `erlang:phash2(Term, 1 bsl 32)`."""
    return _hashed(term, 0) & ((1 << bits) - 1)


def _hashed(term: Term, so_far: int) -> int:
    """The running hash with `term` added; `so_far` is 0 at the beginning."""
    if isinstance(term, bytes):
        start = _TABLE[13] + so_far & _MASK_32
        return _hashed_bytes(term, start) if term else start
    if isinstance(term, Atom):
        value = _hashed_name(term)
        return _with_words(value, 0, 3, so_far) if so_far else value
    if isinstance(term, int):
        return _hashed_integer(term, so_far)
    if isinstance(term, float):
        low, high = _read_double_words(_pack_double(term or 0.0))  # There is but one zero.
        return _with_words(high, low, 12, so_far)
    if isinstance(term, tuple):
        so_far = _with_words(len(term), 0, 9, so_far)
        for item in term:
            so_far = _hashed(item, so_far)
        return so_far
    for item in term:
        so_far = _hashed(item, so_far)
    return _with_words(2, 0, 2, so_far) if so_far else _EMPTY_LIST


def _hashed_integer(value: int, so_far: int) -> int:
    if -(1 << 27) <= value < 1 << 27:
        if value < 0:
            so_far = _with_words(-value, 0, 1, so_far)
        return _with_words(value & _MASK_32, 0, 1, so_far)
    kind, rest = (10, -value) if value < 0 else (11, value)
    while rest:
        so_far = _with_words(rest & _MASK_32, rest >> 32 & _MASK_32, kind, so_far)
        rest >>= 64
    return so_far


def _with_words(one: int, two: int, kind: int, so_far: int) -> int:
    constant = _TABLE[kind]
    return _mixed(constant + one & _MASK_32, constant + two & _MASK_32, so_far)[2]


def _hashed_bytes(octets: bytes, start: int) -> int:
    size = len(octets)
    octets += bytes(12 - size % 12)
    a = b = _GOLDEN
    c = start
    whole = size - size % 12
    for offset in range(0, whole, 12):
        one, two, three = _read_block(octets, offset)
        a, b, c = _mixed(a + one & _MASK_32, b + two & _MASK_32, c + three & _MASK_32)
    one, two, three = _read_block(octets, whole)
    # The lowest byte of the third word is the length's.
    return _mixed(a + one & _MASK_32, b + two & _MASK_32, c + size + (three << 8) & _MASK_32)[2]


def _hashed_name(name: str) -> int:
    """The hash of an atom's name: Weinberger's, known from ELF."""
    value = 0
    for octet in name.encode():
        value = (value << 4) + octet & _MASK_32
        high = value & 0xF0000000
        if high:
            value ^= high >> 24
            value ^= high
    return value


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    """One round of Jenkins' mix."""
    a = (a - b - c & _MASK_32) ^ c >> 13
    b = (b - c - a & _MASK_32) ^ (a << 8 & _MASK_32)
    c = (c - a - b & _MASK_32) ^ b >> 13
    a = (a - b - c & _MASK_32) ^ c >> 12
    b = (b - c - a & _MASK_32) ^ (a << 16 & _MASK_32)
    c = (c - a - b & _MASK_32) ^ b >> 5
    a = (a - b - c & _MASK_32) ^ c >> 3
    b = (b - c - a & _MASK_32) ^ (a << 10 & _MASK_32)
    c = (c - a - b & _MASK_32) ^ b >> 15
    return a, b, c


_MASK_21 = (1 << 21) - 1
_MASK_33 = (1 << 33) - 1
_MASK_39 = (1 << 39) - 1


@lru_cache(maxsize=10_000)
def jump(key: int, buckets: int) -> int:
    """The bucket of `key`, counted from 0. One more bucket moves keys only to the new bucket.

    Takes about 20 microseconds; recent keys are cached.
    """
    if buckets == 1:
        return 0
    numbers = _Exs1024(key)
    chosen, following = 0, 0
    while following < buckets:
        chosen = following
        following = int((chosen + 1) / numbers.next())
    return chosen


class _Exs1024:
    """Erlang's random number generator of this name, seeded with three copies of a key."""

    __slots__ = ("_position", "_state")

    def __init__(self, key: int) -> None:
        seed = (key & _MASK_21) + 1
        one, two, three = (seed * prime & _MASK_21 for prime in (2097131, 2097133, 2097143))
        x = one << 43 | two << 22 | three << 1 | 1
        state = []
        for _ in range(16):
            x ^= x >> 12
            x ^= (x & _MASK_39) << 25
            x ^= x >> 27
            state.append(x * 2685821657736338717 & _MASK_64)
        state.reverse()
        self._state = state
        self._position = 0

    def next(self) -> float:
        """The next number, at least 0 and less than 1."""
        state, position = self._state, self._position
        following = self._position = position + 1 & 15
        zero, one = state[position], state[following]
        one ^= (one & _MASK_33) << 31
        one ^= one >> 11
        one ^= zero ^ zero >> 30
        state[following] = one
        return (one * 1181783497276652981 & _MASK_64) / 18446744073709551616
