"""The tap behind the faults' own: it sees what really goes over the wire."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["NextTap", "NullTap"]


class NextTap(Protocol):
    """The tap that `FaultTap` passes everything on to: the trace's recorder. See `model.tap.Tap`."""

    confirms_singly: bool
    intercepts: bool

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """A whole frame has arrived."""

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """Whole frames are about to be sent; returns what to send."""

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection event."""

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        """An event of the model."""


class NullTap:
    """A `NextTap` that ignores everything: the one of a broker without a recorder."""

    confirms_singly = False
    intercepts = False

    def received(self, connection: Any, frame_type: int, channel: int, payload: bytes) -> None:
        """Ignored."""

    def sending(self, connection: Any, octets: bytes) -> bytes:
        """Bytes are sent unchanged."""
        return octets

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """Ignored."""

    def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
        """Ignored."""
