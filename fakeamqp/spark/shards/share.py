"""How many messages of a batch each shard may have."""

from __future__ import annotations

from collections.abc import Mapping


def share(ready: Mapping[str, int], most: int | None) -> dict[str, int]:
    """The messages of each shard that has some: all of them, or at most `most` in proportion.

    Every shard has at least one, even if that is more than `most` in all.
    """
    waiting = {shard: count for shard, count in ready.items() if count > 0}
    spare, total = sum(waiting.values()) - len(waiting), len(waiting)
    if most is None or spare + total <= most:
        return waiting
    return {
        shard: 1 + (count - 1) * max(most - total, 0) // max(spare, 1) for shard, count in waiting.items()
    }
