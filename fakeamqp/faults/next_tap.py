"""The tap behind the faults' own: it sees what really goes over the wire."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["NextTap", "NullTap"]


class NextTap(Protocol):
    """The tap that `FaultTap` passes everything on to: the trace's recorder. See `model.tap.Tap`."""

    confirms_singly: bool

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """A whole frame has arrived."""

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """Whole frames are about to be sent; returns what to send."""

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection event."""

    def published(self, *facts: Any) -> None:
        """A message was published and routed."""

    def refused(self, *facts: Any) -> None:
        """Full queues have refused a message."""

    def delivered(self, *facts: Any) -> None:
        """A message goes to a client."""

    def settled(self, *facts: Any) -> None:
        """Deliveries were settled."""

    def expired(self, *facts: Any) -> None:
        """A message has expired."""

    def dead_lettered(self, *facts: Any) -> None:
        """A message was dead-lettered and is in other queues now."""

    def dropped(self, *facts: Any) -> None:
        """Messages were dropped."""

    def model(self, event: str, **facts: object) -> None:
        """Any other event of the model."""


class NullTap:
    """A `NextTap` that ignores everything: the one of a broker without a recorder."""

    confirms_singly = False

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> None:
        pass

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """Bytes are sent unchanged."""
        return octets

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """Ignored."""

    def published(self, *facts: Any) -> None:
        """Ignored."""

    def refused(self, *facts: Any) -> None:
        """Ignored."""

    def delivered(self, *facts: Any) -> None:
        """Ignored."""

    def settled(self, *facts: Any) -> None:
        """Ignored."""

    def expired(self, *facts: Any) -> None:
        """Ignored."""

    def dead_lettered(self, *facts: Any) -> None:
        """Ignored."""

    def dropped(self, *facts: Any) -> None:
        """Ignored."""

    def model(self, event: str, **facts: object) -> None:
        """Ignored."""
