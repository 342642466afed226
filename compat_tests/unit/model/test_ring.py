"""The ring of a consistent-hash exchange, beside a list of all its buckets."""

from __future__ import annotations

from random import Random

import pytest

from fakeamqp.model.exchanges.hashing import Ring


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
