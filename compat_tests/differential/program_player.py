"""Does the operations of a program on a real broker, and puts into words what comes of each.

After every operation all queues are asked for their counts, more than once, so that what it has set going
has come to rest. Time really passes: an operation has its time on the program's clock, and the player
notes how late it has been.
"""

from __future__ import annotations

import re
import time
from typing import Any

from compat_tests.differential.raw_client import Address, Event, RawClient
from compat_tests.programs import program as p
from compat_tests.programs.player import Performer

__all__ = ["ProgramPlayer"]

_CONTROL = 10
_PATIENCE = 5.0
_PREPARATIONS = (p.Declare, p.DeclareExchange, p.Bind)


class ProgramPlayer(Performer):
    """One client of a broker. `pace` is how many real seconds a second of the program takes."""

    all_durable = False  # What is transient costs a real broker less time.

    def __init__(self, address: Address, prefix: str, pace: float, rounds: int) -> None:
        super().__init__()
        self.prefix = prefix
        self.pace = pace
        self.rounds = rounds
        """How often the queues are asked: as often as a message may pass from one to another at once."""
        self.client = RawClient(address, channels=(_CONTROL,))
        self.queues: dict[str, None] = {}
        self.exchanges: dict[str, None] = {}
        self.passed = 0.0
        """Seconds on the program's clock."""
        self.started = time.monotonic()
        self.preparing = True
        """The program's clock stands still while queues and exchanges are declared."""
        self.latest = 0.0
        """The longest that anything was done behind its time, in real seconds."""
        self.seen: dict[int, list[str]] = {}

    def perform(self, operation: p.Operation) -> str:
        """Do an operation and say what came of it."""
        if self.client.end:
            return "closed"
        if self.preparing and not isinstance(operation, _PREPARATIONS):
            self.preparing = False
            self.started = time.monotonic()
        self.seen = {}
        self.do(operation)
        self._settle_down()
        if not self.preparing:
            self.latest = max(self.latest, time.monotonic() - self.started - self.passed * self.pace)
        told = [text for channel in sorted(self.seen) for text in self.seen[channel]]
        return " ; ".join(told) or "-"

    def close(self) -> None:
        """Leave nothing behind."""
        if not self.client.end:
            for queue in self.queues:
                self.call(_CONTROL, "queue.delete", queue=self.prefix + queue)
            for exchange in self.exchanges:
                self.call(_CONTROL, "exchange.delete", exchange=self.prefix + exchange)
        self.client.close()

    def named(self, name: str) -> str:
        return self.prefix + name

    # --- out ----------------------------------------------------------------------------------------

    def call(self, channel: int, method: str, **arguments: Any) -> None:
        self.client.tell(channel, method, **arguments)
        self._answer(channel, method)

    def _answer(self, channel: int, method: str) -> str:
        """Wait for a reply, which is not told; empty where the channel is closed instead."""
        while True:
            event = self._next(f"the answer to {method}")
            if (event.channel, event.name) == (channel, f"{method}-ok"):
                return event.text
            self._take(event)
            if (event.channel, event.name) == (channel, "channel.close") or self.client.end:
                return ""

    def ask(self, channel: int, method: str, **arguments: Any) -> None:
        self.client.tell(channel, method, **arguments)
        replies = (f"{method}-ok", "basic.get-empty", "channel.close")
        while True:
            event = self._next(f"the answer to {method}")
            self._take(event)
            if (event.channel == channel and event.name in replies) or self.client.end:
                return

    def settle(self, channel: int, method: str, **arguments: Any) -> None:
        self.client.tell(channel, method, **arguments)

    def publish(self, channel: int, body: bytes, properties: dict[str, Any], **arguments: Any) -> None:
        self.client.publish(channel, body=body, props=properties, **arguments)
        while channel == p.CONFIRMS and not any(
            re.search("basic.n?ack|channel.close", text) for text in self.seen.get(channel, ())
        ):
            self._take(self._next("a confirm"))

    def _Declare(self, operation: p.Declare) -> None:
        self.queues[operation.queue] = None
        super()._Declare(operation)

    def _DeclareExchange(self, operation: p.DeclareExchange) -> None:
        self.exchanges[operation.exchange] = None
        super()._DeclareExchange(operation)

    def _Delete(self, operation: p.Delete) -> None:
        super()._Delete(operation)
        if any("queue.delete-ok" in text for text in self.seen.get(p.ADMIN, ())):
            self.queues.pop(operation.queue, None)
            # Every consumer is told; by a process of its own in RabbitMQ, so that it may take a moment.
            while any(each.queue == operation.queue for each in self.consumers.values()):
                self._take(self._next("basic.cancel"))

    def advance(self, seconds: float) -> None:
        self.passed += seconds
        # The one place where time has to pass: nothing says that a time to live is not over yet.
        while (left := self.started + self.passed * self.pace - time.monotonic()) > 0:
            event = self.client.next(left / self.client.address.patience)
            if event is not None:
                self._take(event)

    # --- in -----------------------------------------------------------------------------------------

    def _next(self, what: str) -> Event:
        event = self.client.next(_PATIENCE)
        if event is None:
            raise LookupError(f"{what} does not come")
        return event

    def _take(self, event: Event) -> None:
        """Note what has come."""
        if event.name == "closed":
            self.seen.setdefault(0, []).append("closed")
            return
        if event.channel == _CONTROL:
            return
        self.seen.setdefault(event.channel, []).append(event.text)
        number = re.search(r"delivery_tag=(\d+)", event.text)
        tag = re.search(r"consumer_tag='([^']*)'", event.text)
        if event.name in ("basic.deliver", "basic.get-ok"):
            assert number is not None
            self.received(event.channel, int(number[1]), tag and tag[1])
        elif event.name in ("basic.cancel", "basic.cancel-ok"):
            assert tag is not None
            del self.consumers[tag[1]]
        elif event.name == "channel.close":
            self.forget(event.channel)

    def _settle_down(self) -> None:
        """Wait until what was set going has come to rest, and tell how many messages there are."""
        self._pass_by()
        while self.queues and not self.client.end and (gone := self._count()):
            self.seen.setdefault(_CONTROL, []).append(f"{gone} has gone")
            del self.queues[gone]
        self._pass_by()

    def _pass_by(self) -> None:
        """Have each channel do all that it has been asked to."""
        channels = sorted(self.open)
        for channel in channels:
            self.client.tell(channel, "access.request", realm="/data")
        waiting = set(channels)
        while waiting and not self.client.end:
            event = self._next("the answer to access.request")
            if event.name == "access.request-ok":
                waiting.discard(event.channel)
            else:
                self._take(event)
                waiting &= self.open

    def _count(self) -> str:
        """Ask all queues for their counts, again and again; the last answers are told.

        Returns:
            The name of a queue that there is no more: the channel is closed for the question.
        """
        asked = [*self.queues] * self.rounds
        for queue in asked:
            self.client.tell(_CONTROL, "queue.declare", queue=self.prefix + queue, passive=1)
        counts = {}
        for queue in asked:
            reply = self._answer(_CONTROL, "queue.declare")
            found = re.search(r"message_count=(\d+), consumer_count=(\d+)", reply)
            if found is None:
                if not self.client.end:
                    self.call(_CONTROL, "channel.open")
                return queue
            counts[queue] = f"{queue}: {found[1]} ready, {found[2]} consumers"
        self.seen.setdefault(_CONTROL, []).extend(counts.values())
        return ""
