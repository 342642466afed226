"""Recognizes redelivered messages that segments have, by the option `dedupe`.

A row of an earlier channel stands for one redelivered message of the present channel. A row of the present
one is another message: a channel never redelivers what it has delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from fakeamqp.spark.rows.columns import DIGEST, SOURCE_COLUMNS, Column
from fakeamqp.spark.rows.identity import content_digest, message_id_of

# By `dedupe`: the column that tells messages of a queue apart. A digest is also one of the message id.
_IDENTITY = {"content": [DIGEST.name], "message_id": ["message_id"], "none": []}


class Repetitions:
    """The rows that redelivered messages may repeat.

    Args:
        dedupe: the value of the option.
        columns: those that Spark wants.
        earlier: the segments of earlier channels, as far back as their messages may be redelivered.
        by_queue: whether segments have messages of several queues.

    Attributes:
        columns: those that a segment needs.
    """

    def __init__(
        self,
        dedupe: str,
        columns: Sequence[Column],
        earlier: Callable[[], Iterable[pa.RecordBatch]],
        *,
        by_queue: bool = False,
    ) -> None:
        found = _IDENTITY[dedupe]
        self._identity = ["queue", *found] if by_queue and found else found
        more = (
            each for each in (*SOURCE_COLUMNS, DIGEST) if each.name in self._identity and each not in columns
        )
        self.columns: tuple[Column, ...] = (*columns, *more)
        self._earlier = earlier
        # How many messages rows stand for, by their identities; None before a message is redelivered.
        self._rows: Counter[tuple[str | bytes, ...]] | None = None

    def __bool__(self) -> bool:
        """False if no message is a repetition (`dedupe=none`)."""
        return bool(self._identity)

    def has(self, queue: str, properties: bytes, body: bytes) -> bool:
        """Whether a redelivered message is a row. Messages without a message id, or an empty one, are not."""
        message_id = message_id_of(properties) if self._identity else None
        if not message_id:
            return False
        if self._rows is None:
            self._rows = Counter(
                identity for batch in self._earlier() for identity in self._identities(batch)
            )
        told = content_digest(properties, body) if DIGEST.name in self._identity else message_id
        identity = (queue, told) if "queue" in self._identity else (told,)
        if not self._rows[identity]:
            return False
        self._rows[identity] -= 1
        return True

    def forget(self) -> None:
        """Read the segments again for the next redelivered message: there are others by then."""
        self._rows = None

    def _identities(self, batch: pa.RecordBatch) -> Iterable[tuple[str | bytes, ...]]:
        if not set(self._identity) <= set(batch.schema.names):
            return ()  # The segment was written with other options.
        return zip(*(batch.column(name).to_pylist() for name in self._identity), strict=True)
