"""What must have become of every message: one `Copy` in each queue that it entered, in one place at a time.

Nothing here looks at the broker. A copy is ready, held by a client, or on its way out because it was
rejected; who says otherwise is wrong, and so is who makes one up or gives it to two.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LONGEST", "QUEUES", "Books", "Copy", "Sent", "passed_on", "route"]

LONGEST = 3
QUEUES: dict[str, dict[str, Any]] = {
    "plain": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"},
    "other": {},
    "short": {"x-max-length": LONGEST},
}


def route(exchange: str, key: str) -> tuple[str, ...]:
    """The queues for what is published."""
    if exchange:
        return ("plain", "short")
    return (key,) if key in QUEUES else ()


def passed_on(queue: str) -> tuple[str, ...]:
    """Where goes what is rejected."""
    return ("other",) if queue == "plain" else ()


@dataclass(eq=False)
class Sent:
    """A message as its publisher knows it. `content_class` is what it is consumed by."""

    number: int
    body: bytes
    content_class: str
    persistent: bool
    publisher: object
    wanted: tuple[str, ...]
    immediate: bool = False
    secured: bool = False
    """Whether the publisher was told, or need not be told, that the broker has it."""
    entered: list[str] = field(default_factory=list)
    unconsumed: bool = False
    returned: bool = False


@dataclass(eq=False)
class Copy:
    """A message in one queue. `seen` says whether whoever gets it next is told of an earlier delivery."""

    queue: str
    sent: Sent
    position: int
    state: str = "ready"
    seen: bool = False
    avoid: object = None
    passed: bool = False
    """Whether it came from another queue, where who had published it no longer counts."""

    @property
    def size(self) -> int:
        return len(self.sent.body)

    def __repr__(self) -> str:
        return f"<{self.sent.content_class} {self.sent.number} in {self.queue}, {self.state}>"


class Books:
    """Where every message is."""

    def __init__(self) -> None:
        self.sent: dict[int, Sent] = {}
        self.queues: dict[str, dict[int, Copy]] = {name: {} for name in QUEUES}
        self.entries = 0
        self.fates: Counter[str] = Counter()
        """How many copies have ended how: to see that everything happens."""

    def enter(self, queue: str, number: int, *, passed: bool = False) -> None:
        """A message comes to a queue."""
        assert number not in self.queues[queue], f"{number} comes to queue {queue} a second time"
        self.entries += 1
        self.queues[queue][number] = Copy(queue, self.sent[number], self.entries, passed=passed)

    def leave(self, copy: Copy, why: str) -> None:
        """A copy is gone for good."""
        assert self.queues[copy.queue].pop(copy.sent.number) is copy, f"{copy} ends twice"
        copy.state = "gone"
        self.fates[why] += 1

    def delivered(self, queue: str, body: bytes, redelivered: bool | None) -> Copy:
        """Somebody was sent a message from a queue."""
        number = int(body.split(b":")[0])
        copy = self.queues[queue].get(number)
        assert copy is not None, f"{number} comes from queue {queue}, and is not there"
        assert copy.sent.body == body, f"{copy} has changed"
        assert copy.state == "ready", f"{copy} is delivered once more"
        assert redelivered in (None, copy.seen), f"{copy} is marked as redelivered: {redelivered}"
        self.fates["delivered again" if copy.seen else "delivered"] += 1
        return copy

    def give_back(self, copy: Copy, *, avoid: object = None) -> None:
        """A copy that somebody held is for others again."""
        assert copy.state == "held", copy
        copy.state, copy.seen, copy.avoid = "ready", True, avoid

    def dropped(self, queue: str, number: int, reason: str) -> None:
        """The broker says that a copy is gone."""
        copy = self.queues[queue][number]
        if reason == "rejected":
            assert copy.state == "rejected" and not passed_on(queue), f"{copy} was dropped: {reason}"
        elif reason == "maxlen":
            assert copy.state == "ready" and queue == "short", f"{copy} was dropped: {reason}"
        elif reason in ("restart", "crash"):
            lasts = copy.sent.persistent and (reason == "restart" or copy.sent.secured)
            assert copy.state == "ready" and not lasts, f"{copy} is lost by a {reason}"
        elif reason == "delivery_limit":
            assert copy.state == "ready" and copy.seen, f"{copy} was dropped: {reason}"
        else:
            assert reason == "purged" and copy.state == "purged", f"{copy} was dropped: {reason}"
        self.leave(copy, reason)

    def dead_lettered(self, queue: str, number: int, reason: str, to: tuple[str, ...]) -> None:
        """The broker says that a copy has gone on to other queues."""
        copy = self.queues[queue][number]
        expected = "ready" if reason == "delivery_limit" else reason
        assert copy.state == expected, f"{copy} was passed on: {reason}"
        assert to == passed_on(queue), f"{copy} was passed on to {to}"
        self.leave(copy, "passed on")
        for each in to:
            self.enter(each, number, passed=True)

    def ready(self, queue: str) -> list[Copy]:
        """What waits in a queue, the oldest first."""
        found = [copy for copy in self.queues[queue].values() if copy.state == "ready"]
        return sorted(found, key=lambda copy: copy.position)
