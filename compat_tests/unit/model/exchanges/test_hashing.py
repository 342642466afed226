"""The hashes of RabbitMQ's hashing exchanges, against values that Erlang computed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fakeamqp.model.erlang import Atom
from fakeamqp.model.exchanges.hashing import Ring, Term, jump, phash2


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (b"", 13708901),
        (b"a", 112802447),
        (b"abcd", 132321803),
        (b"hello world!", 25699699),  # One whole block.
        (b"hello world!x", 126902301),
        (b"k1", 57409138),
        (b"hello", 47480723),
        (b"order.42", 113463079),
    ],
)
def test_phash2_of_binaries_equals_erlang(octets: bytes, expected: int) -> None:
    assert phash2(octets) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 88723725),
        (1, 2614250),
        (-1, 44071773),
        (2**27 - 1, 112602999),
        (2**27, 12354923),
        (-(2**27), 69672967),
        (-(2**27) - 1, 76739502),
        (2**31, 14246037),
        (2**32, 95057355),
        (-(2**33), 54706903),
        (2**59, 26969617),
        (-(2**59) - 1, 36462311),
        (2**63, 39852678),
        (-(2**63), 126213383),
        (2**64, 103122609),
    ],
)
def test_phash2_of_integers_equals_erlang(value: int, expected: int) -> None:
    assert phash2(value) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Atom("undefined"), 45914356),
        (Atom("true"), 506293),
        (Atom("false"), 7111573),
        ([], 113427502),
        ((), 87486268),
        (1.5, 10380315),
        (-2.0, 100094775),
        (0.0, 20875736),
        (-0.0, 20875736),
        ([b"a"], 53691870),
        ([b"a", b"b"], 3094894),
        ([b"a", b"", b"cc"], 63415657),
        ([b""], 38220213),
        ([[]], 96416884),
        ((Atom("a"),), 35332806),
        ((Atom("longstr"), b"a"), 65711459),
        ([(Atom("longstr"), b"a")], 21877881),
        ((Atom("signedint"), 5), 40839585),
        ((Atom("signedint"), -5), 39932925),
        ((Atom("long"), 2**40), 93748608),
        ((2, 314), 28881931),
        ((b"k", Atom("longstr"), b"v"), 37084577),
        ((b"k", Atom("table"), [(b"z", Atom("void"), Atom("undefined"))]), 51620118),
    ],
    ids=repr,
)
def test_phash2_of_other_terms_equals_erlang(term: Term, expected: int) -> None:
    assert phash2(term) == expected


@pytest.mark.parametrize(
    ("key", "buckets"),
    [
        (phash2(b"a"), {2: 1, 3: 1, 5: 1, 10: 6, 100: 47}),
        (phash2(b"k1"), {2: 0, 3: 0, 5: 3, 10: 7, 100: 83}),
        (phash2(b"hello"), {2: 1, 3: 1, 5: 3, 10: 9, 100: 43}),
        (phash2(b"order.42"), {2: 1, 3: 1, 5: 3, 10: 3, 100: 36}),
        (phash2(b""), {2: 0, 3: 0, 5: 0, 10: 9, 100: 45}),
        (phash2(Atom("undefined")), {2: 1, 3: 1, 5: 1, 10: 1, 100: 39}),
        (5, {2: 0, 3: 2, 5: 4, 10: 4, 100: 65}),
    ],
)
def test_jump_hash_selects_same_bucket_as_erlang(key: int, buckets: dict[int, int]) -> None:
    assert {count: jump(key, count) for count in buckets} == buckets
    assert jump(key, 1) == 0


KEYS = st.integers(min_value=-(2**63), max_value=2**64)
COUNTS = st.integers(min_value=1, max_value=3000)


@settings(deadline=None)
@given(KEYS, COUNTS)
def test_additional_bucket_moves_keys_only_to_itself(key: int, count: int) -> None:
    before, after = jump(key, count), jump(key, count + 1)
    assert 0 <= before < count
    assert after in (before, count)


def test_additional_bucket_receives_its_share_of_keys() -> None:
    keys = [phash2(f"key-{number}".encode()) for number in range(4000)]
    moved = sum(jump(key, 8) != jump(key, 9) for key in keys)
    assert 4000 / 9 * 0.8 < moved < 4000 / 9 * 1.2


# --- against Erlang itself -------------------------------------------------------------------------

ERLANG = shutil.which("erl")

BINARIES = st.binary(max_size=40)
ATOMS = st.sampled_from(["undefined", "true", "longstr", "signedint", "table", "a_rather_long_atom_name"])
LEAVES = st.one_of(
    BINARIES,
    ATOMS.map(Atom),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)


def lists(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists of anything but numbers, which take another way."""
    return st.lists(items.filter(lambda item: not isinstance(item, (int, float))), max_size=4)


TERMS = st.recursive(
    LEAVES, lambda items: st.one_of(lists(items), st.lists(items, max_size=4).map(tuple)), max_leaves=12
)


def erlang(term: Any) -> str:
    """A term as Erlang's source has it."""
    if isinstance(term, bytes):
        return f"<<{','.join(map(str, term))}>>"
    if isinstance(term, float):
        [word] = struct.unpack(">Q", struct.pack(">d", term))
        return f"(fun() -> <<F/float>> = <<{word}:64>>, F end)()"
    if isinstance(term, (list, tuple)):
        opened, closed = "[]" if isinstance(term, list) else "{}"
        return opened + ",".join(map(erlang, term)) + closed
    return str(term)


def asked(expressions: list[str]) -> list[int]:
    """What Erlang makes of these."""
    assert ERLANG is not None
    program = f'io:format("~w~n", [[{",".join(expressions)}]]), halt().'
    done = subprocess.run(
        [ERLANG, "-noshell", "-boot", "start_clean", "-eval", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return [int(number) for number in done.stdout.strip("[]\n").split(",")]


@pytest.mark.skipif(ERLANG is None, reason="Erlang is not installed")
def test_phash2_of_random_terms_equals_installed_erlang() -> None:
    terms: list[Any] = []

    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(TERMS, min_size=20, max_size=20))
    def collect(some: list[Any]) -> None:
        terms.extend(some)

    collect()
    chosen = terms[:2000]
    assert asked([f"erlang:phash2({erlang(term)})" for term in chosen]) == [phash2(term) for term in chosen]


@pytest.mark.skipif(ERLANG is None, reason="Erlang is not installed")
def test_jump_hash_equals_installed_erlang() -> None:
    pairs = [(key * 7919 - 3 * 10**6, 1 + key % 250) for key in range(500)]
    walk = (
        "(fun(K, N) -> F = fun F(B, J, _) when J >= N -> B; "
        "F(_, J, S) -> {R, T} = rand:uniform_s(S), F(J, trunc((J + 1) / R), T) end, "
        "F(-1, 0, rand:seed_s(exs1024, {K, K, K})) end)"
    )
    assert asked([f"{walk}({key}, {count})" for key, count in pairs]) == [jump(*pair) for pair in pairs]


# --- the ring of a consistent-hash exchange, beside a list of all its buckets --------------------------


def buckets(ring: Ring[str]) -> str:
    return "".join(ring.owner(bucket) for bucket in range(ring.buckets))


def test_empty_hash_ring_has_no_buckets() -> None:
    ring: Ring[str] = Ring()
    assert not ring
    assert ring.buckets == 0


def test_ring_members_own_buckets_in_order_of_addition() -> None:
    ring: Ring[str] = Ring()
    for member, weight in (("a", 1), ("b", 3), ("c", 2)):
        ring.add(member, weight)
    assert buckets(ring) == "abbbcc"
    ring.remove("b")
    assert "b" not in ring and len(ring) == 2
    assert buckets(ring) == "acc"
    ring.add("b", 1)
    assert buckets(ring) == "accb"


@pytest.mark.parametrize("seed", range(20))
def test_ring_behaves_like_list_of_buckets_in_random_changes(seed: int) -> None:
    random = Random(seed)
    ring: Ring[str] = Ring()
    weights: dict[str, int] = {}
    for _ in range(400):
        member = chr(0x4E00 + random.randrange(200))
        if member in weights:
            ring.remove(member)
            del weights[member]
        else:
            weights[member] = random.choice((1, 2, 5))
            ring.add(member, weights[member])
        assert buckets(ring) == "".join(each * weight for each, weight in weights.items())
    ring.clear()
    assert not ring and ring.buckets == 0
