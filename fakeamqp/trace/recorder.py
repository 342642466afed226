"""Records what passes the tap. It runs on the broker's hot path, so it stores and does not look."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fakeamqp.trace.model_events import publisher_name
from fakeamqp.trace.timeline import Trace

if TYPE_CHECKING:
    from fakeamqp.trace.timeline import Entry

__all__ = ["Recorder"]

Direction: TypeAlias = Literal["received", "sent"]

_MOST_OCTETS = 16 * 1024 * 1024
"""How much payload is kept at most."""
_LARGE = 4096
"""Bodies beyond this size lose their end: what a timeline shows is at their beginning."""
_BODY = 3
_MOST_GONE = 1000
"""How many connections that have ended are remembered, for the sake of a late word about them."""
_ENDS = frozenset(("closed", "aborted", "lost"))


class Recorder:
    """Keeps the latest events of one broker; install it as the broker's tap.

    The broker calls `frame`, `connection` and `model`, one at a time. Memory is bounded: the oldest events go
    when there are more than `capacity`, or when their payloads take up more than 16 MiB.

    Args:
        now: the broker's clock, in seconds.
        capacity: how many events are kept.
    """

    # Measured on CPython 3.11: see `frame`.

    __slots__ = (
        "_began",
        "_dropped",
        "_entries",
        "_gone",
        "_now",
        "_octets",
        "_peers",
        "_peers_seen",
        "capacity",
    )

    def __init__(self, now: Callable[[], float], capacity: int = 10_000) -> None:
        self._now = now
        self.capacity = max(1, capacity)
        self.clear()

    def clear(self) -> None:
        """Forget everything; time and the short names of connections begin anew."""
        self._began = self._now()
        self._entries: deque[Entry] = deque()
        self._dropped = 0
        self._octets = 0
        self._peers: dict[str, tuple[str, str]] = {}
        self._peers_seen = 0
        self._gone: deque[tuple[str, str]] = deque()

    def trace(self) -> Trace:
        """The record as it is now; to be called where the broker stands still."""
        return Trace(tuple(self._entries), self._dropped, self._began)

    # --- the tap --------------------------------------------------------------------------------------

    def frame(
        self, connection: str, direction: Direction, frame_type: int, channel: int, payload: bytes
    ) -> None:
        """One whole frame."""
        size = len(payload)
        if size > _LARGE and frame_type == _BODY:
            payload = payload[:_LARGE]
        peer = self._peers.get(connection) or self._introduce(connection)
        entries = self._entries
        entries.append((self._now(), peer, direction, frame_type, channel, payload, size))
        self._octets += len(payload)
        if len(entries) > self.capacity or self._octets > _MOST_OCTETS:
            self._forget_oldest()

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection was opened, closed, blocked, ..."""
        if event == "connected":
            self._introduce(connection)
        peer = self._peers.get(connection) or self._introduce(connection)
        self._add((self._now(), peer, event, detail))
        if event in _ENDS:
            self._gone.append(peer)
            if len(self._gone) > _MOST_GONE:
                oldest = self._gone.popleft()
                if self._peers.get(oldest[0]) is oldest:
                    del self._peers[oldest[0]]

    def model(self, event: str, **facts: object) -> None:
        """Something happened in the model."""
        name = publisher_name(facts)
        peer = None if name is None else self._peers.get(name)
        self._add((self._now(), peer, event, facts))

    # --- bounds ---------------------------------------------------------------------------------------

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._octets += _weight(entry)
        if len(self._entries) > self.capacity or self._octets > _MOST_OCTETS:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        entries = self._entries
        while len(entries) > self.capacity or (self._octets > _MOST_OCTETS and len(entries) > 1):
            self._octets -= _weight(entries.popleft())
            self._dropped += 1

    def _introduce(self, connection: str) -> tuple[str, str]:
        """Give a connection its short name; one that reuses the name of an earlier one gets its own."""
        self._peers_seen += 1
        peer = self._peers[connection] = (connection, f"c{self._peers_seen}")
        return peer


def _weight(entry: Any) -> int:
    """Octets that an entry keeps in memory beyond a small constant."""
    if len(entry) == 7:
        return len(entry[5])
    if isinstance(entry[3], dict):
        body = getattr(entry[3].get("message"), "body", b"")
        return len(body) if isinstance(body, bytes) else 0
    return 0
