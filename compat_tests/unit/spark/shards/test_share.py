"""How many messages a batch takes of each shard."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import examples
from fakeamqp.spark.shards.share import share


@examples(200)
@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 10**7), max_size=8),
    st.none() | st.integers(1, 10**6),
)
def test_each_shard_with_messages_gets_share_within_limit(ready, most):
    found = share(ready, most)
    assert set(found) == {shard for shard, count in ready.items() if count}
    assert all(1 <= count <= ready[shard] for shard, count in found.items())
    if most is None:
        assert sum(found.values()) == sum(ready.values())
    else:
        assert sum(found.values()) <= max(most, len(found))


@pytest.mark.parametrize(
    ("most", "found"),
    [
        (None, {"a": 1, "b": 11, "c": 31}),
        (43, {"a": 1, "b": 11, "c": 31}),
        (42, {"a": 1, "b": 10, "c": 30}),
        (23, {"a": 1, "b": 6, "c": 16}),
        (3, {"a": 1, "b": 1, "c": 1}),
        (2, {"a": 1, "b": 1, "c": 1}),
    ],
)
def test_shares_of_three_shards_are_proportional_to_ready_messages(most, found):
    assert share({"a": 1, "b": 11, "none": 0, "c": 31}, most) == found
    assert share({}, most) == {}
