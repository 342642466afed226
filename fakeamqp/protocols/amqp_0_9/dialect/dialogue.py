"""The dialogue of a 0-9 connection: see `fakeamqp.trace.dialogue`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec.constants import OUT_OF_BAND
from fakeamqp.protocols.amqp_0_9.codec.methods import MessageOk, MessageTransfer
from fakeamqp.protocols.amqp_0_9.codec.requests import Request
from fakeamqp.protocols.amqp_0_9_1.dialect.dialogue import OTHER, Dialogue091
from fakeamqp.trace.dialogue import Answered, Asked, Confirmed, Publishing, Sent

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.codec.requests import Response
    from fakeamqp.protocols.amqp_0_9.dialect import Dialect09
    from fakeamqp.trace.dialogue import Key, Step
    from fakeamqp.trace.events import FrameEvent


class Dialogue09(Dialogue091):
    """The numbers of requests and responses tell which belong together."""

    def __init__(self, dialect: Dialect09) -> None:
        super().__init__(dialect.answers)
        self._dialect = dialect
        self._open: dict[tuple[int, str], dict[int, bool]] = {}
        """By channel and direction, the requests without a response; True for a transfer to a client."""
        self._latest: dict[tuple[int, str], int] = {}
        """By channel and direction, the number of the latest request."""

    def read(self, event: FrameEvent) -> Iterable[Step]:
        if event.type in OUT_OF_BAND:
            self.lose_track(event.channel)
            return ()
        envelope = self._dialect.envelope(event.type, event.payload)
        if envelope is None:
            return super().read(event)
        method = event.method
        if method is None:
            return ()
        if isinstance(envelope, Request):
            return self._request(event, envelope.request_id, method)
        return self._response(event, envelope, method)

    def read_method(self, event: FrameEvent, method: Any) -> Iterator[Step]:
        """What is open on a channel ends with it."""
        if method.NAME in ("channel.open", "channel.close"):
            for direction in OTHER:
                self._open.pop((event.channel, direction), None)
                self._latest.pop((event.channel, direction), None)
        return super().read_method(event, method)

    def _request(self, event: FrameEvent, number: int, method: Any) -> Iterator[Step]:
        channel = event.channel
        received = event.direction == "received"
        transfer = isinstance(method, MessageTransfer)
        delivery = transfer and not received
        place = channel, event.direction
        self._open.setdefault(place, {})[number] = delivery
        repeats = number <= self._latest.get(place, 0)
        self._latest[place] = max(number, self._latest.get(place, 0))
        key = _key(event.direction, number)
        if delivery:
            yield Sent(channel, number, None)
            return
        if transfer:
            # A repetition is confirmed once more, and a reference before its content is there.
            confirmed = not (repeats or method.body.by_reference or self.channel(channel).transactional)
            yield Publishing(channel, key if confirmed else None, f"request {number}", many=False)
        if not self.channel(channel).closing:
            yield Asked(channel, key, method.NAME)

    def _response(self, event: FrameEvent, numbers: Response, method: Any) -> Iterator[Step]:
        direction = OTHER[event.direction]
        pending = self._open.get((event.channel, direction), {})
        first, last = numbers.request_id, numbers.request_id + numbers.batch_offset
        answered = [number for number in pending if first <= number <= last]
        keys = tuple(_key(direction, number) for number in answered if not pending[number])
        settled = len(answered) > len(keys)
        for number in answered:
            del pending[number]
        if direction == "received" and keys:
            yield Confirmed(event.channel, keys, isinstance(method, MessageOk))
        if not answered and direction == "received":
            keys = (_key(direction, first),)
        if not settled:
            for key in keys:
                yield Answered(event.channel, key, method.NAME)


def _key(direction: str, number: int) -> Key:
    return "request", direction, number
