"""The dialogue of a 1.0 connection: see `fakeamqp.trace.dialogue`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.dialect.frames import decode
from fakeamqp.trace.dialogue import Answered, Asked, Confirmed, Ended, Opened, Publishing, Sent

if TYPE_CHECKING:
    from fakeamqp.trace.dialogue import Step
    from fakeamqp.trace.events import FrameEvent

_OTHER = {"received": "sent", "sent": "received"}
_LEAVING = ("close", "end", "detach")


class Dialogue10:
    """See `Dialogue`. Each peer answers open, begin, attach, detach, end and close with the same.

    A message from the client that is not settled is answered by a disposition, and a flow that drains a link
    by a flow.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int | None, Any], str] = {}
        """Name, channel and handle of a question -> the direction that it has gone."""
        self._publishes: dict[int, dict[int, None]] = {}
        """By channel, the delivery ids that wait for an outcome."""
        self._begun: dict[tuple[int, str, int], c.Transfer] = {}
        """By channel, direction and handle: the first transfer of a message, until its last one has come."""

    def read(self, event: FrameEvent) -> Iterable[Step]:
        read = decode(event.type, event.payload)
        return () if read is None else self._steps(event, read[0])

    def _steps(self, event: FrameEvent, body: Any) -> Iterator[Step]:
        channel = event.channel
        if isinstance(body, c.Begin) and event.direction == "received":
            self._publishes[channel] = {}
            yield Opened(channel)
        elif isinstance(body, c.Transfer):
            yield from self._transfer(event, body)
        elif isinstance(body, c.Disposition) and event.direction == "sent" and body.role:
            yield from self._outcome(channel, body)
        elif isinstance(body, c.Flow) and body.handle is not None and body.drain:
            key = ("drain", channel, int(body.handle))
            if event.direction == "received":
                self._asked[key] = event.direction
                yield Asked(channel, key, "flow")
            elif self._asked.pop(key, None) is not None:
                yield Answered(channel, key, "flow")
        if isinstance(body, (c.Open, c.Begin, c.Attach, c.Detach, c.End, c.Close)):
            yield from self._handshake(event, body)

    def _handshake(self, event: FrameEvent, body: Any) -> Iterator[Step]:
        name = body.NAME
        scope = None if name in ("open", "close") else event.channel
        key = (name, scope, getattr(body, "handle", None))
        if name in _LEAVING:
            self._forget_parts(scope, getattr(body, "handle", None))
        if self._asked.get(key) == _OTHER[event.direction]:
            del self._asked[key]
            yield Answered(scope, key, name)
            if name in ("end", "close"):
                yield from self._ended(scope)
            return
        if name in ("end", "close"):
            yield from self._ended(scope)
        if not (event.direction == "sent" and getattr(body, "error", None) is not None):
            self._asked[key] = event.direction
            yield Asked(scope, key, name, name in _LEAVING)

    def _ended(self, scope: int | None) -> Iterator[Step]:
        """Nothing else is answered on the session, or for None on the connection."""
        for known in [each for each in self._asked if scope is None or each[1] == scope]:
            del self._asked[known]
        if scope is not None:
            self._publishes.pop(scope, None)
        yield Ended(scope)

    def _forget_parts(self, channel: int | None, handle: Any) -> None:
        for key in list(self._begun):
            if channel in (None, key[0]) and handle in (None, key[2]):
                del self._begun[key]

    def _transfer(self, event: FrameEvent, body: c.Transfer) -> Iterator[Step]:
        key = event.channel, event.direction, int(body.handle)
        first = self._begun.pop(key, body)
        if body.more:
            self._begun[key] = first
            return
        if first.delivery_id is None:
            return
        number = int(first.delivery_id)
        settled = bool(first.settled or body.settled)
        if event.direction == "sent":
            yield Sent(event.channel, number, not settled)
            return
        if settled:
            return
        self._publishes.setdefault(event.channel, {})[number] = None
        yield Publishing(event.channel, ("delivery", number), f"delivery {number}", many=False)
        yield Asked(event.channel, ("delivery", number), "transfer")

    def _outcome(self, channel: int, body: c.Disposition) -> Iterator[Step]:
        waiting = self._publishes.get(channel, {})
        last = body.first if body.last is None else body.last
        numbers = [each for each in waiting if body.first <= each <= last]
        for number in numbers:
            del waiting[number]
        if numbers:
            accepted = isinstance(c.composite_or_value(body.state), c.Accepted)
            yield Confirmed(channel, tuple(("delivery", each) for each in numbers), accepted=accepted)
            for number in numbers:
                yield Answered(channel, ("delivery", number), "disposition")
