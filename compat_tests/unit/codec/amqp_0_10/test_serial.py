"""Serial numbers, sets of them, and ranges of bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.strategies import byte_ranges, sequence_sets
from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.protocols.amqp_0_10.codec.serial import (
    MODULUS,
    ByteRanges,
    SequenceSet,
    precedes,
    read_byte_ranges,
    read_sequence_set,
    successor,
)

rule = pytest.mark.rule
LAST = MODULUS - 1


def sequence_set(octets: bytes) -> SequenceSet:
    found, end = read_sequence_set(octets, 0)
    assert end == len(octets)
    return found


def ranges_of_bytes(octets: bytes) -> ByteRanges:
    found, end = read_byte_ranges(octets, 0)
    assert end == len(octets)
    return found


@rule("0-10/types/sequence-no")
def test_successor_of_the_last_sequence_number_is_0() -> None:
    assert successor(LAST) == 0
    assert successor(LAST, 5) == 4
    assert successor(3, -4) == LAST
    assert precedes(LAST, 0) and not precedes(0, LAST)
    assert precedes(0, 1) and not precedes(1, 0) and not precedes(1, 1)
    assert precedes(0, 2**31 - 1) and not precedes(2**31 - 1, 0)


@examples(100)
@given(st.integers(0, LAST))
def test_sequence_numbers_2_31_apart_do_not_precede_each_other(number: int) -> None:
    opposite = successor(number, 2**31)
    assert not precedes(number, opposite) and not precedes(opposite, number)
    assert precedes(number, successor(opposite, -1)) and precedes(successor(opposite, 1), number)


# --- sets ----------------------------------------------------------------------------------------------


@rule("0-10/types/sequence-set")
def test_sequence_set_merges_overlapping_and_adjacent_ranges() -> None:
    made = SequenceSet.of(5, 1, 2, 7, 6)
    assert made.ranges == ((1, 2), (5, 7))
    made.add_range(3, 4)
    assert made.ranges == ((1, 7),)
    made.remove(SequenceSet.of(3))
    assert made.ranges == ((1, 2), (4, 7))
    assert made.encode().hex() == "0010" + "00000001000000020000000400000007"


@rule("0-10/types/sequence-set-order")
def test_sequence_set_across_the_wraparound_is_in_serial_order() -> None:
    made = SequenceSet.of(1, 0, LAST, LAST - 1, 5, LAST - 9)
    assert made.ranges == ((LAST - 9, LAST - 9), (LAST - 1, 1), (5, 5))
    assert list(made) == [LAST - 9, LAST - 1, LAST, 0, 1, 5]
    octets = made.encode()
    assert octets.hex() == "0018" + "fffffff6fffffff6" + "fffffffe00000001" + "0000000500000005"
    assert sequence_set(octets) == made
    assert SequenceSet.between(LAST, 1) == SequenceSet.of(LAST, 0, 1)


@examples(100)
@given(sequence_sets())
def test_any_encoded_sequence_set_is_read_back(made: SequenceSet) -> None:
    octets = made.encode()
    assert int.from_bytes(octets[:2], "big") == len(octets) - 2 == 8 * len(made.ranges)
    assert sequence_set(octets) == made
    for (_, upper), (lower, _) in zip(made.ranges, made.ranges[1:], strict=False):
        assert precedes(upper, lower) and successor(upper) != lower


NUMBERS = st.sampled_from([*range(12), *range(LAST - 11, LAST + 1)])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "range", "remove", "update"]), NUMBERS, NUMBERS), max_size=12
)


@examples(100)
@given(CHANGES)
def test_sequence_set_behaves_like_a_python_set_after_any_changes(changes: list) -> None:
    made, model = SequenceSet(), set()
    for what, lower, length in changes:
        members = {(lower + n) % MODULUS for n in range(length % 12 + 1)}
        upper = (lower + length % 12) % MODULUS
        if what == "add":
            made.add(lower)
            model.add(lower)
        elif what == "range":
            made.add_range(lower, upper)
            model |= members
        elif what == "update":
            made.update(SequenceSet.between(lower, upper))
            model |= members
        else:
            made.remove(SequenceSet.between(lower, upper))
            model -= members
        assert set(made) == model and len(made) == len(model) and bool(made) is bool(model)
        assert made == SequenceSet.of(*model)
        for number in (0, 1, 5, 11, 12, LAST, LAST - 11, LAST - 12):
            assert (number in made) is (number in model)
        known = [3, LAST, 0, 7, LAST - 4]
        assert made.select(known) == [number for number in known if number in model]


def test_set_of_all_sequence_numbers_is_one_range() -> None:
    everything = sequence_set(bytes.fromhex("000800000000ffffffff"))
    assert len(everything) == MODULUS
    assert everything.select([9, 3]) == [9, 3]
    everything.remove(SequenceSet.of(5))
    assert everything.ranges == ((6, 4),)
    assert 5 not in everything and 4 in everything
    assert "5" not in everything
    assert everything != 5
    assert repr(everything) == "SequenceSet(6-4)"
    everything.remove(SequenceSet.of(7))
    assert len(everything) == MODULUS - 2
    everything.remove(SequenceSet.between(6, 4))
    assert not everything and everything.select([1]) == []


def test_select_returns_members_in_the_order_of_the_known_numbers() -> None:
    assert SequenceSet.of(5).select({7: "", 5: ""}) == [5]
    assert SequenceSet.of(5).select({}) == []
    assert SequenceSet.of(5, 9).select([9, 5, 4]) == [9, 5]


def test_among_returns_members_among_the_known_ids() -> None:
    known = dict.fromkeys([MODULUS - 2, MODULUS - 1, 0, 1, 5])
    assert SequenceSet.of(1, MODULUS - 1, 7).among(known) == [MODULUS - 1, 1]
    assert SequenceSet.between(MODULUS - 1, MODULUS - 2).among(known) == list(known)
    assert SequenceSet().among(known) == []


def test_number_outside_of_32_bits_is_refused_by_a_sequence_set() -> None:
    for number in (-1, MODULUS):
        with pytest.raises(ValueError, match="no range"):
            SequenceSet.of(number)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        ("00", "inside its size"),
        ("0008", "announces 8 bytes, 0 are left"),
        ("0007" + "00" * 7, "no multiple of 8"),
    ],
)
def test_sequence_set_with_an_invalid_size_is_refused(octets: str, why: str) -> None:
    with pytest.raises(SegmentError, match=why):
        sequence_set(bytes.fromhex(octets))


@rule("0-10/types/sequence-set-order")
@pytest.mark.parametrize(
    "pairs",
    [
        [(5, 6), (1, 2)],
        [(1, 5), (5, 6)],
        [(1, 5), (2, 3)],
        [(LAST, 3), (2, 5)],
        [(5, 4), (9, 9)],
        [(5, 9), (20, 6)],
        [(5, 9), (20, 5)],
    ],
)
def test_sequence_set_with_unordered_or_overlapping_ranges_is_refused(pairs: list[tuple[int, int]]) -> None:
    body = b"".join(lower.to_bytes(4, "big") + upper.to_bytes(4, "big") for lower, upper in pairs)
    with pytest.raises(IllegalValue, match=r"ascend|overlap"):
        sequence_set(len(body).to_bytes(2, "big") + body)


def test_adjacent_ranges_of_a_sequence_set_are_merged() -> None:
    octets = bytes.fromhex("001000000001000000020000000300000003")
    assert sequence_set(octets).ranges == ((1, 3),)


def test_sequence_set_with_more_than_8191_ranges_is_refused() -> None:
    made = SequenceSet.of(*range(0, 2 * 8191, 2))
    assert len(sequence_set(made.encode())) == 8191
    made.add(100_000)
    with pytest.raises(SegmentError, match="8192 ranges"):
        made.encode()


# --- bytes --------------------------------------------------------------------------------------------


@rule("0-10/types/byte-ranges")
def test_byte_ranges_are_encoded_octet_for_octet_and_can_be_changed() -> None:
    one = ByteRanges.of((0, 4))
    assert one.encode() == b"\0\x10" + bytes(8) + bytes(7) + b"\x04"
    two = ByteRanges.of((2**63, 2**64 - 1), (0, 4))
    assert two.ranges == ((0, 4), (2**63, 2**64 - 1))
    assert two.encode()[:2] == b"\0\x20"
    assert ranges_of_bytes(two.encode()) == two
    two.remove(ByteRanges.of((3, 2**63)))
    assert two.ranges == ((0, 2), (2**63 + 1, 2**64 - 1))
    two.update(one)
    assert two.ranges[0] == (0, 4) and 4 in two and 5 not in two


@rule("0-10/types/byte-ranges-disjoint#touch")
def test_adjacent_byte_ranges_are_merged() -> None:
    pairs = [0, 4, 5, 9]
    found = ranges_of_bytes(b"\0\x20" + b"".join(each.to_bytes(8, "big") for each in pairs))
    assert found.ranges == ((0, 9),)
    assert ByteRanges.of((0, 4), (5, 9)).encode() == found.encode()


@rule("0-10/types/byte-ranges-disjoint#overlap")
@pytest.mark.parametrize("pairs", [[0, 4, 4, 9], [5, 9, 0, 4], [4, 3]])
def test_byte_ranges_in_descending_or_overlapping_order_are_refused(pairs: list[int]) -> None:
    body = b"".join(each.to_bytes(8, "big") for each in pairs)
    with pytest.raises(IllegalValue, match="do not ascend"):
        ranges_of_bytes(len(body).to_bytes(2, "big") + body)


@pytest.mark.parametrize("octets", ["00", "0010", "0008" + "00" * 8])
def test_byte_ranges_with_an_invalid_size_are_refused(octets: str) -> None:
    with pytest.raises(SegmentError):
        ranges_of_bytes(bytes.fromhex(octets))


@examples(100)
@given(byte_ranges())
def test_any_encoded_byte_ranges_are_read_back(made: ByteRanges) -> None:
    assert ranges_of_bytes(made.encode()) == made
    assert len(made) == sum(upper - lower + 1 for lower, upper in made.ranges)


def test_4096_byte_ranges_are_refused() -> None:
    with pytest.raises(SegmentError, match="4096 byte-ranges"):
        ByteRanges.of(*((n, n) for n in range(0, 2 * 4096, 2))).encode()
