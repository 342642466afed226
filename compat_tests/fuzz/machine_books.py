"""What must have become of every message: one `Copy` in each queue that it entered, in one place at a time.

Nothing here looks at the broker. A copy is ready, held by a client, or on its way out because it was
rejected; who says otherwise is wrong, and so is who makes one up or gives it to two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Books", "Copy", "Sent", "number_of"]


def number_of(body: bytes) -> int:
    """The number of the message with this body."""
    return int(body.split(b":")[0])


@dataclass(eq=False)
class Sent:
    """A message as its publisher knows it. `content_class` is what it is consumed by."""

    number: int
    body: bytes
    content_class: str
    publisher: object
    wanted: tuple[str, ...]
    persistent: bool = False
    priority: int = 0
    mandatory: bool = True
    immediate: bool = False
    secured: bool = False
    """Whether the publisher was told, or need not be told, that the broker has it."""
    entered: list[str] = field(default_factory=list)
    unconsumed: bool = False
    returned: bool = False
    refused: bool = False


@dataclass(eq=False)
class Copy:
    """A message in one queue. `seen` says whether whoever gets it next is told of an earlier delivery."""

    queue: str
    sent: Sent
    position: int
    level: int = 0
    """How urgent it is there."""
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
    """Where every message is. `arguments` are those of the queues, `ranked` says that all have priorities."""

    def __init__(self, arguments: Mapping[str, Mapping[str, Any]], *, ranked: bool = False) -> None:
        self.arguments = arguments
        self.ranked = ranked
        self.counts_failures = False
        """Whether the broker counts failed deliveries of a message in all its queues."""
        self.sent: dict[int, Sent] = {}
        self.queues: dict[str, dict[int, Copy]] = {name: {} for name in arguments}
        self.births = dict.fromkeys(arguments, 0)
        """The number of the last message before a queue was declared."""
        self.entries = 0
        self.newest: dict[tuple[str, int], int] = {}
        """The position of the latest message of a queue and a level that was delivered."""
        self.fates: Counter[str] = Counter()
        """How many copies have ended how: to see that everything happens."""

    # --- queues -----------------------------------------------------------------------------------------

    def passed_on(self, queue: str) -> tuple[str, ...]:
        """Where dead letters go."""
        key = self.arguments[queue].get("x-dead-letter-routing-key")
        return () if key is None else (key,)

    def refuses(self, queue: str) -> bool:
        """Whether it refuses messages when it is full."""
        return self.arguments[queue].get("x-overflow") == "reject-publish"

    def longest(self, queue: str) -> Any:
        """How many messages may be ready in it; None is any number."""
        return self.arguments[queue].get("x-max-length")

    def level(self, queue: str, sent: Sent) -> int:
        """How urgent a message is in a queue."""
        most = self.arguments[queue].get("x-max-priority")
        if most is not None:
            return min(sent.priority, most)
        return sent.priority if self.ranked else 0

    def ready(self, queue: str) -> list[Copy]:
        """What waits in a queue, the next first."""
        found = [copy for copy in self.queues[queue].values() if copy.state == "ready"]
        return sorted(found, key=lambda copy: (-copy.level, copy.position))

    def declared_again(self, queue: str) -> None:
        """A queue is deleted, and another has its name. What clients hold of the first ends nowhere."""
        for copy in self.queues[queue].values():
            copy.state = "of a deleted queue"
        self.queues[queue] = {}
        self.births[queue] = len(self.sent)
        self.newest = {key: position for key, position in self.newest.items() if key[0] != queue}

    # --- messages ---------------------------------------------------------------------------------------

    def enter(self, queue: str, number: int, *, passed: bool = False) -> None:
        """A message comes to a queue."""
        assert number not in self.queues[queue], f"{number} comes to queue {queue} a second time"
        self.entries += 1
        sent = self.sent[number]
        level = self.level(queue, sent)
        self.queues[queue][number] = Copy(queue, sent, self.entries, level, passed=passed)

    def refused(self, queue: str, number: int) -> None:
        """A full queue has refused the message that has entered it last."""
        assert self.refuses(queue) and len(self.ready(queue)) > self.longest(queue)
        copy = self.queues[queue].pop(number)
        assert copy.position == self.entries and copy.state == "ready"
        self.sent[number].refused = True
        self.sent[number].entered.remove(queue)
        self.fates["refused"] += 1

    def leave(self, copy: Copy, why: str) -> None:
        """A copy is gone for good."""
        if copy.state != "of a deleted queue":
            assert self.queues[copy.queue].pop(copy.sent.number) is copy, f"{copy} ends twice"
        copy.state = "gone"
        self.fates[why] += 1

    def delivered(self, queue: str, body: bytes, redelivered: bool | None) -> Copy:
        """Somebody was sent a message from a queue."""
        number = number_of(body)
        copy = self.queues[queue].get(number)
        assert copy is not None, f"{number} comes from queue {queue}, and is not there"
        assert copy.sent.body == body, f"{copy} has changed"
        assert copy.state == "ready", f"{copy} is delivered once more"
        if self.counts_failures and copy.passed and not copy.seen:
            redelivered = None  # A dead letter brings along how often its delivery has failed.
        assert redelivered in (None, copy.seen), f"{copy} is marked as redelivered: {redelivered}"
        self.fates["delivered again" if copy.seen else "delivered"] += 1
        key = queue, copy.level
        self.newest[key] = max(self.newest.get(key, 0), copy.position)
        return copy

    def give_back(self, copy: Copy, *, avoid: object = None) -> None:
        """A copy that somebody held is for others again."""
        if copy.state != "of a deleted queue":
            assert copy.state == "held", copy
            copy.state, copy.seen, copy.avoid = "ready", True, avoid

    def reject(self, copy: Copy) -> None:
        """A copy that somebody held is on its way out."""
        if copy.state != "of a deleted queue":
            copy.state = "rejected"

    def dropped(self, queue: str, number: int, reason: str) -> None:
        """The broker says that a copy is gone."""
        copy = self._ending(queue, number, reason)
        if copy is None:
            return
        if reason == "rejected":
            assert copy.state == "rejected" and not self.passed_on(queue), f"{copy} was dropped: {reason}"
        elif reason == "maxlen":
            assert copy.state == "ready" and self.longest(queue), f"{copy} was dropped: {reason}"
            assert not self.passed_on(queue), f"{copy} was to be passed on"
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
        copy = self._ending(queue, number, reason)
        assert to == self.passed_on(queue), f"{number} was passed on to {to}"
        if copy is not None:
            expected = "rejected" if reason == "rejected" else "ready"
            assert copy.state == expected, f"{copy} was passed on: {reason}"
            known = {"expired": "x-message-ttl", "maxlen": "x-max-length"}.get(reason)
            assert known is None or known in self.arguments[queue], f"{copy} was passed on: {reason}"
            self.leave(copy, "passed on")
        for each in to:
            self.enter(each, number, passed=True)

    def _ending(self, queue: str, number: int, reason: str) -> Copy | None:
        """The copy that ends, or None for one of a queue that was deleted."""
        copy = self.queues[queue].get(number)
        born = self.births[queue]
        assert copy is not None or number <= born, f"{number} is not in {queue}, and ends there: {reason}"
        return copy
