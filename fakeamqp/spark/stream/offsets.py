"""Places in streams, as Spark's checkpoint has them.

A stream may be deleted and declared again under its name, and AMQP 0-9-1 has no identity of a queue. So a
place has a mark: the offset and a digest of a message that was in the stream. If the stream has another
message at this offset, it is another stream. If retention has removed the message, it may be the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from fakeamqp.spark.rows.identity import published_digest, stream_offset
from fakeamqp.spark.wire.queue_types import not_a_stream

#: Where a consumer begins: `first`, `last`, an offset, or a time.
Position: TypeAlias = int | str | datetime


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


def offset_of(stream: str, properties: bytes) -> int:
    """The offset of a message; raises OptionError if it has none, because the queue is no stream."""
    offset, _ = stream_offset(properties)
    if offset is None:
        raise not_a_stream(stream)
    return offset


def mark_of(offset: int, properties: bytes, body: bytes) -> StreamMark:
    """The mark of a message."""
    return StreamMark(offset, published_digest(properties, body))


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
    places = {}
    for stream, entry in given.items():
        entry = {"next": entry} if isinstance(entry, int) else entry
        mark = StreamMark(entry["last"], entry["digest"]) if "last" in entry else None
        places[stream] = StreamPlace(entry["next"], mark, entry.get("first"))
    return places
