"""What must have become of every message, and what every subscription may have.

Nothing here looks at the broker. A message is one `Copy` in each queue that it entered. A copy is ready, or
held by somebody, or on its way out; `Books` say which, and refuse whatever does not follow from that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from fakeamqp.protocols.amqp_0_10.codec import structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Struct

__all__ = ["FOUND_BY_FANOUT", "LONGEST_STRICT", "QUEUES", "Books", "Copy", "Message", "Window", "route"]

LONGEST_STRICT = 3
BRIEF = 0.5
QUEUES = ("plain", "spare", "strict", "brief")
FOUND_BY_FANOUT = ("plain", "strict")
_MARGIN = 1e-6
_MOST_CREDIT = 0xFFFFFFFE


def route(exchange: str, key: str, *, alternates: bool) -> tuple[str, ...]:
    """The queues for what is published to an exchange."""
    if exchange == "":
        return (key,) if key in QUEUES else ()
    if exchange == "amq.fanout":
        return FOUND_BY_FANOUT
    if exchange == "main":
        if key in ("plain", "brief"):
            return (key,)
        return ("spare",) if alternates else ()
    assert exchange == "lone"
    return ()


def passed_on(queue: str) -> str | None:
    """Where goes what is rejected, by the alternate exchange of the queue."""
    return {"plain": "spare", "brief": "spare", "spare": "plain"}.get(queue)


@dataclass
class Message:
    """A message as its publisher knows it. `ttl` is milliseconds, `stamped` whether the broker says when."""

    body: bytes
    exchange: str
    key: str
    mode: int | None = None
    ttl: int | None = None
    named: bytes | None = None
    """A correlation-id."""
    stamped: bool = False
    old: bool = False
    """Whether it came by 0-9-1."""
    at: float = 0.0
    """The wall time when the broker had it."""

    @property
    def persistent(self) -> bool:
        return self.mode == 2

    def header(self, time: float, *, redelivered: bool = False) -> bytes:
        """The header segment that a subscription of 0-10 gets."""
        ttl = None
        if self.ttl is not None:
            ttl = max(0, round(self.ttl - (time - self.at) * 1000))
        delivery = structs.DeliveryProperties(
            redelivered=redelivered,
            delivery_mode=self.mode,
            ttl=ttl,
            timestamp=int(self.at) if self.stamped else None,
            expiration=int(self.at + self.ttl / 1000) if self.stamped and self.ttl is not None else None,
            exchange=self.exchange,
            routing_key=None if self.old and not self.key else self.key,
        )
        found: list[Struct] = [delivery]
        if self.named is not None:
            found.append(structs.MessageProperties(correlation_id=self.named))
        return structs.encode_header(found)

    @property
    def cost(self) -> int:
        """What a transfer of it takes of the credit in bytes."""
        return len(self.header(self.at)) + len(self.body)


@dataclass(eq=False)
class Copy:
    """A message in one queue. `expires` is an instant of the broker's clock."""

    queue: str
    message: Message
    position: int
    expires: float | None
    state: str = "ready"
    """"ready", "held", or why it is on its way out."""
    marked: bool = False
    """Whether whoever gets it next is told that it was delivered before."""
    returns: int = 0
    moved: bool = False
    """Whether it was ever held."""
    avoid: object = None

    def expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now + _MARGIN

    def __repr__(self) -> str:
        return f"<{self.message.body[:12]!r} in {self.queue} {self.state} at {self.position}>"


class Window:
    """The credit of one subscription; `inf` is credit without end."""

    def __init__(self) -> None:
        self.messages: float = 0
        self.octets: float = 0
        self.refills = True
        self.era = 0

    def admits(self, cost: int) -> bool:
        return self.messages >= 1 and self.octets > 0 and self.octets >= cost

    def grant(self, unit: int, value: int | None) -> None:
        more = inf if value in (None, 0xFFFFFFFF) else value
        if unit == 0:
            self.messages = _sum(self.messages, more)
        else:
            self.octets = _sum(self.octets, more)

    def take(self, cost: int) -> tuple[int, int] | None:
        """Pay for a transfer; answers with what its completion gives back."""
        assert self.admits(cost), f"sent without credit: {self.messages} messages, {self.octets} bytes"
        self.messages -= 1
        self.octets -= cost
        return (self.era, cost) if self.refills else None

    def give_back(self, receipt: tuple[int, int] | None) -> None:
        if receipt is not None and receipt[0] == self.era:
            self.messages += 1
            self.octets += receipt[1]

    def stop(self) -> None:
        self.messages = self.octets = 0
        self.era += 1

    def set_mode(self, refills: bool) -> None:
        if refills != self.refills:
            self.refills = refills
            self.era += 1


def _sum(balance: float, more: float) -> float:
    return inf if inf in (balance, more) else min(balance + more, _MOST_CREDIT)


@dataclass
class Books:
    """Where every message is. `most_returns` is how often one may come back, 0 for any number."""

    most_returns: int = 0
    queues: dict[str, dict[bytes, Copy]] = field(default_factory=lambda: {name: {} for name in QUEUES})
    messages: dict[bytes, Message] = field(default_factory=dict)
    picky: set[str] = field(default_factory=set)
    """Queues that hold, or have held, what is not for everybody."""
    entries: int = 0
    fates: dict[str, int] = field(default_factory=dict)
    """How many copies have ended how: to see that everything happens."""

    def count(self, what: str) -> None:
        self.fates[what] = self.fates.get(what, 0) + 1

    def ready(self, queue: str) -> list[Copy]:
        found = [copy for copy in self.queues[queue].values() if copy.state == "ready"]
        return sorted(found, key=lambda copy: copy.position)

    def enter(self, queue: str, body: bytes, now: float, time: float) -> None:
        """A message comes to a queue."""
        assert body not in self.queues[queue], f"{body[:20]!r} comes to queue {queue} a second time"
        message = self.messages[body]
        ends = []
        if message.ttl is not None:
            ends.append(now + message.ttl / 1000)
        if queue == "brief":
            ends.append(now + BRIEF)
        self.entries += 1
        self.queues[queue][body] = Copy(queue, message, self.entries, min(ends, default=None))

    def leave(self, copy: Copy, why: str) -> None:
        """A copy is gone for good."""
        assert self.queues[copy.queue].pop(copy.message.body) is copy, f"{copy} ends twice"
        copy.state = "gone"
        self.count(why)

    def hold(self, copy: Copy, now: float) -> None:
        """Somebody gets a copy."""
        assert copy.state == "ready", f"{copy} is delivered and is not there to be had"
        assert not copy.expired(now), f"{copy} is delivered though its time is over"
        copy.state = "held"
        copy.moved = True

    def give_back(self, copies: Iterable[Copy], *, marked: bool, avoid: object = None) -> None:
        """Copies return to their queues, to their old places."""
        for copy in copies:
            assert copy.state == "held"
            copy.avoid = avoid
            copy.state = "ready"
            if avoid is not None:
                self.picky.add(copy.queue)
            if marked:
                copy.marked = True
                copy.returns += 1
                if self.most_returns and copy.returns >= self.most_returns:
                    copy.state = "delivery_limit"

    def dropped(self, queue: str, body: bytes, reason: str, now: float) -> None:
        """The broker says that a copy is gone."""
        copy = self.queues[queue][body]
        if reason == "expired":
            assert copy.state == "ready" and copy.expired(now), f"{copy} was dropped before its time"
        elif reason in ("restart", "crash"):
            assert copy.state == "ready" and not copy.message.persistent, f"{copy} is lost"
        elif reason == "purged":
            assert copy.state == "purged"
        else:
            assert copy.state == reason, f"{copy} was dropped: {reason}"
            assert reason != "rejected" or passed_on(queue) is None, f"{copy} had somewhere to go"
        self.leave(copy, reason)

    def passed(self, queue: str, body: bytes, reason: str, to: list[str], now: float, time: float) -> None:
        """The broker says that a copy has left its queue for others."""
        copy = self.queues[queue][body]
        assert copy.state == reason == "rejected", f"{copy} was passed on: {reason}"
        assert to == [passed_on(queue)], f"{copy} was passed on to {to}"
        self.leave(copy, "passed on")
        for each in to:
            self.enter(each, body, now, time)
