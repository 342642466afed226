"""The two kinds of spools: queries with `shards` and queries without cannot read each other's."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fakeamqp.spark.errors import SpoolError

#: The file with the state of a spool without shards.
STATE = "state.json"
#: The files with the state of a spool of shards, by their numbers; the highest counts.
SHARD_STATE = re.compile(r"state-([0-9]{12})\.json")


def check_kind(folder: str, names: Iterable[str], *, shards: bool) -> None:
    """Refuse a folder that has a spool of the other kind.

    Args:
        folder: its path.
        names: of the files in it.
        shards: whether the query has shards.

    Raises:
        SpoolError: a query of the other kind uses it, or has used it.
    """
    if any(name == STATE if shards else SHARD_STATE.fullmatch(name) for name in names):
        theirs, ours = ("without", "with") if shards else ("with", "without")
        raise SpoolError(
            f"{folder} has the spool of a query {theirs} 'shards': a query {ours} 'shards' needs a spoolDir "
            "of its own, and a checkpoint of its own"
        )
