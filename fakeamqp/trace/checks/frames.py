"""The frames of one peer on one channel, as `conformance` sees them."""

from __future__ import annotations

from collections.abc import Iterator

from fakeamqp.trace.checks.rows import TraceRow

__all__ = ["Sender"]

_WITH_CONTENT = frozenset(("basic.publish", "basic.deliver", "basic.get-ok", "basic.return"))
_CONTENT = frozenset(("content header", "content body"))
_CLOSES = frozenset(("channel.close", "channel.close-ok"))


class Sender:
    """The state of one peer on one channel, from the frames that it sends."""

    def __init__(self) -> None:
        self._before: str | None = None
        self._due: int | None = None
        """Bytes of body that the latest header announced and that are still missing."""
        self._closes = False
        self._closed = False

    def broken_by(self, row: TraceRow) -> Iterator[str]:
        """The rules that the next frame violates."""
        name, before = row.name, self._before
        if row.channel and (self._closed or (self._closes and name != "channel.close-ok")):
            yield "after-channel-close"
        if name == "content header":
            if before is not None and before not in _WITH_CONTENT:
                yield "content-unannounced"
            self._due = row.body_size
        elif name == "content body":
            if before is not None and before not in _CONTENT:
                yield "content-unannounced"
            elif before is not None and self._due is not None and row.size > self._due:
                yield "content-overrun"
            if self._due is not None:
                self._due -= row.size
        elif name not in _CLOSES and (
            before in _WITH_CONTENT or (before in _CONTENT and (self._due or 0) > 0)
        ):
            yield "content-incomplete"
        self._closes |= name == "channel.close"
        self._closed |= name == "channel.close-ok"
        self._before = name
