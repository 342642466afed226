"""Places in streams, as Spark's checkpoint has them.

A stream may be deleted and declared again under its name, and AMQP 0-9-1 has no identity of a queue. So a
place has a mark: the offset and a digest of a message that was in the stream. If the stream has another
message at this offset, it is another stream. If retention has removed the message, it may be the same one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from fakeamqp.spark.property_lists import value_of


class StreamMark(NamedTuple):
    """A message of a stream: its offset, and a digest of its body, message id and timestamp."""

    offset: int
    digest: str


class StreamPlace(NamedTuple):
    """Where reading goes on: at `next`.

    `mark` is the first message at `next - 1` or behind; None if it is unknown. `first` is where the batch
    before this place begins if it does not begin where the one before it ended, because the stream is new.
    """

    next: int
    mark: StreamMark | None = None
    first: int | None = None


def mark_of(offset: int, properties: bytes, body: bytes) -> StreamMark:
    """The mark of a message: of what no version of a broker converts when it delivers it."""
    digest = hashlib.sha256(body)
    for name in ("message_id", "timestamp"):
        digest.update(repr(value_of(properties, name)).encode())
    return StreamMark(offset, digest.hexdigest()[:16])


def to_json(places: Mapping[str, StreamPlace]) -> dict[str, Any]:
    """The places of streams for a checkpoint: `{"events": {"next": 17, "last": 16, "digest": "..."}}`.

    A place without a mark is only its number, as in checkpoints of earlier versions.
    """
    found: dict[str, Any] = {}
    for stream, (following, mark, first) in places.items():
        entry: dict[str, Any] = {"next": following}
        if mark is not None:
            entry.update(last=mark.offset, digest=mark.digest)
        if first is not None:
            entry["first"] = first
        found[stream] = entry if len(entry) > 1 else following
    return found


def from_json(given: Mapping[str, Any]) -> dict[str, StreamPlace]:
    """The places in a checkpoint, of this version or an earlier one."""
    return {
        stream: StreamPlace(entry)
        if isinstance(entry, int)
        else StreamPlace(
            entry["next"],
            StreamMark(entry["last"], entry["digest"]) if "last" in entry else None,
            entry.get("first"),
        )
        for stream, entry in given.items()
    }
