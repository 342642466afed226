"""The dialogue of a 0-9-x connection: see `fakeamqp.trace.dialogue`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fakeamqp.trace.dialogue import Answered, Asked, Confirmed, Ended, Opened, Publishing, Sent

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.trace.dialogue import Key, Step
    from fakeamqp.trace.events import FrameEvent

OTHER = {"received": "sent", "sent": "received"}
"""The direction of an answer, by that of its request."""
_DELIVERS = ("basic.deliver", "file.deliver", "stream.deliver")
_GETS = ("basic.get-ok", "basic.get-empty")


class DialogueChannel:
    """What is open on one channel."""

    def __init__(self) -> None:
        self.asked: dict[str, list[tuple[int, type[Method]]]] = {"received": [], "sent": []}
        """Requests without an answer, by the direction they went."""
        self.answered: dict[tuple[str, str], int] = {}
        """The latest request that an answer of this direction and name has ended."""
        self.closing: set[str] = set()
        """The directions in which a close went."""
        self.confirms: bool = False
        self.gets: list[bool] = []
        """Whether each get without an answer asked for a message that needs to be settled."""
        self.publishes: int = 0
        self.unconfirmed: dict[int, None] = {}
        self.serial: int = 0
        self.transactional: bool = False


class Dialogue091:
    """Requests and answers belong together by their order; `answers` names the methods that answer others."""

    def __init__(self, answers: frozenset[str]) -> None:
        self._answers = answers
        self._channels: dict[int, DialogueChannel] = {}
        self._closed = False

    def read(self, event: FrameEvent) -> Iterable[Step]:
        if event.part != "method":
            return ()
        method = event.method
        if method is None:
            self.lose_track(event.channel)
            return ()
        return self.read_method(event, method)

    def read_method(self, event: FrameEvent, method: Any) -> Iterator[Step]:
        """The steps of a method."""
        number = event.channel
        name = method.NAME
        if name == "channel.open" and event.direction == "received":
            self._channels[number] = DialogueChannel()
            yield Opened(number)
        channel = self.channel(number)
        if name == "connection.close":
            yield from self._closes(None)
        elif name == "channel.close":
            yield from self._closes(number)
        if event.direction == "received":
            yield from self._received(channel, number, name, method)
        else:
            yield from self._sent(channel, number, name, method)
        yield from self._request_or_answer(channel, event.direction, number, name, method)

    def channel(self, number: int) -> DialogueChannel:
        """The state of a channel, which begins with its first frame."""
        channel = self._channels.get(number)
        if channel is None:
            channel = self._channels[number] = DialogueChannel()
        return channel

    def lose_track(self, number: int) -> None:
        """A request may have come that cannot be read: what is answered on this channel is not known."""
        channel = self.channel(number)
        channel.closing.update(OTHER)
        for pending in channel.asked.values():
            pending.clear()

    def _received(self, channel: DialogueChannel, number: int, name: str, method: Any) -> Iterator[Step]:
        if name == "basic.publish":
            key: Key = None
            if channel.confirms:
                channel.publishes += 1
                channel.unconfirmed[channel.publishes] = None
                key = ("publish", channel.publishes)
            yield Publishing(number, key, f"publish {channel.publishes}", many=False)
            if key is not None and not channel.closing:
                yield Asked(number, key, name)
        elif name == "confirm.select":
            channel.confirms = True
        elif name in ("tx.select", "dtx.select"):
            channel.transactional = True
        elif name == "tx.commit":
            yield Publishing(number, ("commit", channel.serial + 1), "a commit", many=True)
        elif name == "basic.get":
            channel.gets.append(not method.no_ack)

    def _sent(self, channel: DialogueChannel, number: int, name: str, method: Any) -> Iterator[Step]:
        if name in _DELIVERS:
            yield Sent(number, method.delivery_tag, None)
        elif name in _GETS:
            settles = channel.gets.pop(0) if channel.gets else None
            if name == "basic.get-ok":
                yield Sent(number, method.delivery_tag, settles)
        elif name in ("basic.ack", "basic.nack"):
            keys = tuple(_confirmed(channel, method))
            yield Confirmed(number, keys, name == "basic.ack")
            for key in keys:
                yield Answered(number, key, name)
        elif name == "tx.commit-ok":
            pending = channel.asked["received"]
            commits = tuple(("commit", serial) for serial, kind in pending[:1] if kind.NAME == "tx.commit")
            yield Confirmed(number, commits, accepted=True)

    def _closes(self, number: int | None) -> Iterator[Step]:
        """Nothing but the close itself is answered from here on."""
        yield Ended(number)
        for each in (number,) if number is not None else tuple(self._channels):
            channel = self._channels[each]
            for pending in channel.asked.values():
                pending.clear()
            channel.unconfirmed.clear()

    def _request_or_answer(
        self, channel: DialogueChannel, direction: str, number: int, name: str, method: Any
    ) -> Iterator[Step]:
        scope = None if name.startswith("connection.") else number
        if name in ("connection.close", "channel.close"):
            channel.closing.add(direction)
            self._closed |= scope is None
        elif name not in ("connection.close-ok", "channel.close-ok") and (self._closed or channel.closing):
            # A peer ignores what crosses its close.
            return
        if len(channel.closing) > 1:
            # Closes of both peers have crossed: each may be taken for the answer to the other.
            return
        if name in self._answers:
            yield Answered(scope, self._request_of(channel, direction, number, name), name)
        if method.RESPONSES and not getattr(method, "no_wait", False):
            channel.serial += 1
            channel.asked[direction].append((channel.serial, type(method)))
            yield Asked(scope, (number, channel.serial), name, name.endswith(".close"))

    def _request_of(self, channel: DialogueChannel, direction: str, number: int, name: str) -> Key:
        """The oldest request that this answers, or else the one that it has answered before."""
        pending = channel.asked[OTHER[direction]]
        for place, (serial, request) in enumerate(pending):
            if name in request.RESPONSES:
                del pending[place]
                channel.answered[direction, name] = serial
                return number, serial
        known = channel.answered.get((direction, name))
        return None if known is None else (number, known)


def _confirmed(channel: DialogueChannel, method: Any) -> Iterator[Key]:
    """The keys of the publishes that a confirm is about; one that is not open has none or a used one."""
    tag = method.delivery_tag
    if not method.multiple:
        channel.unconfirmed.pop(tag, None)
        yield ("publish", tag)
        return
    for each in [number for number in channel.unconfirmed if number <= tag]:
        del channel.unconfirmed[each]
        yield ("publish", each)
