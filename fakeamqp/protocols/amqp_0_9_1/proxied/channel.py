"""What a proxy knows of one channel: who has it open, whose numbers are whose, and what the client holds.

Client and broker count the publishes and the deliveries of a channel, each on its own. As long as all frames
pass, both count the same. A fault sets them apart, in one of three ways:

- A publish that the broker does not get keeps its number at the client: later confirms of the broker have
  smaller numbers than the client waits for. A duplicate of a publish is counted by the broker alone.
- A duplicate of a delivery has a tag of its own at the client (a *spare* tag), so that the tags of later
  deliveries are larger there. Settling it concerns the client alone.
- Deliveries that have changed places have each other's tags.

A delivery that the client does not get keeps its tag, as if it were still on its way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message

Side = Literal["client", "broker"]


class Consumer(NamedTuple):
    """A consumer, as basic.consume has asked for it."""

    queue: str
    no_ack: bool


class Held(NamedTuple):
    """A delivery that the client has not settled."""

    queue: str
    consumer: str | None
    message: Message


class ProxiedChannel:
    """One channel of a client, with its counterpart at the broker."""

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.open: bool = False
        """True from open-ok to the first close or close-ok."""
        self.ending: bool = False
        """True once the client or the broker has sent a close."""
        self.closing: set[Side] = set()
        """The sides whose close-ok for a close by the proxy has not come."""
        self.mode: Literal["confirm", "tx"] | None = None
        self.prefetch: tuple[int, int] = (0, 0)
        self.queue: str = ""
        """The queue that was declared last, for which an empty name stands."""
        self.consumers: dict[str, Consumer] = {}
        self.asked: deque[tuple[str, Consumer]] = deque()
        """Consumes and gets without an answer: the consumer tag, and what was asked for."""
        self.awaited_flow_oks: int = 0
        """How many answers of the client to flows of the proxy the broker must not get."""
        self.waiting: list[bytes] = []
        """Frames of the client for the next channel of this number, while the broker closes this one."""

        self.confirms_singly: bool = False
        """True if each publish must be confirmed by a frame of its own."""
        self.published: int = 0
        """The publishes in confirm mode, as the client counts them."""
        self._forwarded = 0
        """The publishes in confirm mode, as the broker counts them."""
        self._unconfirmed: dict[int, int | None] = {}
        """The broker's number of each publish without a confirm -> the client's; None for a duplicate."""
        self._apart = False
        """True once the numbers of publishes have been apart."""

        self.held: dict[int, Held] = {}
        """By the client's tag, ascending: the deliveries that the client has to settle."""
        self._last_tag = 0
        self._spares: list[int] = []
        """The client's tags that the broker does not know, ascending."""
        self._renumbered: dict[int, int] = {}
        """The client's tag -> the broker's, of deliveries that have changed places."""

    # --- publishes --------------------------------------------------------------------------------------

    def forward_publish(self, *, counted: bool = True) -> None:
        """Note that the broker gets a publish. The client does not count a duplicate."""
        if self.mode != "confirm":
            return
        self._forwarded += 1
        if counted:
            self.published += 1
        else:
            self._apart = True
        self._unconfirmed[self._forwarded] = self.published if counted else None

    def skip_publish(self) -> int | None:
        """Note that the broker does not get a publish; its number at the client, None without confirms."""
        if self.mode != "confirm":
            return None
        self._apart = True
        self.published += 1
        return self.published

    def confirmed(self, tag: int, multiple: bool, *, singly: bool = False) -> list[int] | None:
        """Take a confirm of the broker; `singly` for the sake of a fault.

        Returns:
            The numbers to confirm one by one; None to pass it on.
        """
        unconfirmed = self._unconfirmed
        numbers = [unconfirmed.pop(each) for each in _meant(unconfirmed, tag, multiple)]
        if not self._apart and not (multiple and (singly or self.confirms_singly)):
            return None
        return [each for each in numbers if each is not None]

    # --- deliveries -------------------------------------------------------------------------------------

    def client_tag(self, tag: int) -> int:
        """The client's tag of a delivery that the broker sends now."""
        self._last_tag = tag + len(self._spares)
        return self._last_tag

    def spare_tag(self) -> int:
        """The tag of a duplicate of the latest delivery, which the broker does not know."""
        original = self.held.get(self._last_tag)
        self._last_tag += 1
        self._spares.append(self._last_tag)
        if original is not None:
            self.held[self._last_tag] = original
        return self._last_tag

    def is_spare(self, tag: int) -> bool:
        """True for a tag that the broker does not know, so that the proxy must refuse a second settlement."""
        return self._brokers_tag(tag) is None

    def renumber(self, tags: Mapping[int, int]) -> None:
        """Give deliveries other tags at the client, by their present ones."""
        between = {each for each in self.held if min(tags) <= each <= max(tags)}
        brokers = {tags.get(each, each): self._brokers_tag(each) for each in between.union(tags)}
        self.held = dict(sorted((tags.get(each, each), held) for each, held in self.held.items()))
        self._spares = sorted(
            {*self._spares}.difference(tags).union(new for new, tag in brokers.items() if tag is None)
        )
        # A spare tag may have moved: of the deliveries in between, the tags are not counted any more.
        self._renumbered.update((new, tag) for new, tag in brokers.items() if tag is not None)

    def _brokers_tag(self, tag: int) -> int | None:
        """The broker's tag of a delivery; None of a spare one."""
        place = bisect_left(self._spares, tag)
        if place < len(self._spares) and self._spares[place] == tag:
            return None
        return self._renumbered.get(tag, tag - place)

    def settled(
        self, tag: int, multiple: bool
    ) -> tuple[list[tuple[int, Held]], list[tuple[int, bool]] | None]:
        """Take a settlement of the client.

        Returns:
            The deliveries that it settles, by their tags, and what the broker has to be told: tag and
            `multiple` of each method; None to pass it as it is.
        """
        tags = _meant(self.held, tag, multiple)
        held = [(each, self.held.pop(each)) for each in tags]
        if not self._spares and not self._renumbered:
            return held, None
        if not multiple:
            brokers = self._brokers_tag(tag)
            self._renumbered.pop(tag, None)
            return held, [] if brokers is None else [(brokers, False)]
        if self._renumbered:
            known = [self._brokers_tag(each) for each in tags]
            for each in tags:
                self._renumbered.pop(each, None)
            return held, [(each, False) for each in known if each is not None]
        if not any(self._brokers_tag(each) for each in tags):
            return held, None if not tag else []
        return held, [(tag and tag - bisect_right(self._spares, tag), True)]

    def holds(self, tag: int, multiple: bool) -> Iterable[Held]:
        """The deliveries that the client would settle like that."""
        return [self.held[each] for each in _meant(self.held, tag, multiple)]

    def __repr__(self) -> str:
        state = "open" if self.open else f"closing at {sorted(self.closing)}" if self.closing else "not open"
        return f"<proxied channel {self.number} {state}>"


def _meant(ascending: Mapping[int, object], tag: int, multiple: bool) -> list[int]:
    """The numbers that a tag means: with `multiple` all up to it, and all of them if it is 0."""
    if not multiple:
        return [tag] if tag in ascending else []
    return list(takewhile(tag.__ge__, ascending) if tag else ascending)
