"""Does the operations of a program on a real broker, and puts into words what comes of each.

After every operation all queues are asked for their counts, more than once, so that what it has set going
has come to rest. Time really passes: an operation has its time on the program's clock, and the player
notes how late it has been.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from compat_tests.differential.raw_client import Address, Event, RawClient
from compat_tests.programs import program as p

__all__ = ["ProgramPlayer"]

_CONTROL = 10
_PATIENCE = 5.0
_PREPARATIONS = (p.Declare, p.DeclareExchange, p.Bind)


class ProgramPlayer:
    """One client of a broker. `pace` is how many real seconds a second of the program takes."""

    def __init__(self, address: Address, prefix: str, pace: float, rounds: int) -> None:
        self.prefix = prefix
        self.pace = pace
        self.rounds = rounds
        """How often the queues are asked: as often as a message may pass from one to another at once."""
        self.client = RawClient(address, channels=(_CONTROL,))
        self.open: set[int] = set()
        self.held: dict[int, set[int]] = {}
        self.consumers: dict[str, tuple[int, str, bool]] = {}
        """Channel and queue of each consumer, and whether what it is sent needs no settlement."""
        self.queues: dict[str, None] = {}
        self.exchanges: dict[str, None] = {}
        self.published = 0
        self.unconfirmed = 0
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
        method: Callable[[Any], None] = getattr(self, f"_{type(operation).__name__}")
        method(operation)
        self._settle_down()
        if not self.preparing:
            self.latest = max(self.latest, time.monotonic() - self.started - self.passed * self.pace)
        told = [text for channel in sorted(self.seen) for text in self.seen[channel]]
        return " ; ".join(told) or "-"

    def close(self) -> None:
        """Leave nothing behind."""
        if not self.client.end:
            for queue in self.queues:
                self._call(_CONTROL, "queue.delete", "queue.delete-ok", queue=self.prefix + queue)
            for exchange in self.exchanges:
                self._call(_CONTROL, "exchange.delete", "exchange.delete-ok", exchange=self.prefix + exchange)
        self.client.close()

    # --- out ----------------------------------------------------------------------------------------

    def _channel(self, number: int) -> int:
        if number not in self.open:
            self._call(number, "channel.open", "channel.open-ok")
            if number == p.CONFIRMS:
                self._call(number, "confirm.select", "confirm.select-ok")
            self.open.add(number)
            self.held[number] = set()
        return number

    def _call(self, channel: int, method: str, reply: str, **arguments: Any) -> str:
        """Call a method that nothing is told of; what comes meanwhile is."""
        self.client.tell(channel, method, **arguments)
        return self._answer(channel, method, reply)

    def _answer(self, channel: int, method: str, reply: str) -> str:
        """Wait for a reply; empty where the channel is closed instead."""
        while True:
            event = self._next(f"the answer to {method}")
            if (event.channel, event.name) == (channel, reply):
                return event.text
            self._take(event)
            if (event.channel, event.name) == (channel, "channel.close") or self.client.end:
                return ""

    def _ask(self, channel: int, method: str, *replies: str, **arguments: Any) -> None:
        """Call a method; its reply is told."""
        self.client.tell(self._channel(channel), method, **arguments)
        while True:
            event = self._next(f"the answer to {method}")
            self._take(event)
            if (event.channel == channel and event.name in (*replies, "channel.close")) or self.client.end:
                return

    def _Declare(self, operation: p.Declare) -> None:
        arguments = dict(operation.arguments)
        for name in ("x-dead-letter-exchange", "x-dead-letter-routing-key"):
            if arguments.get(name):
                arguments[name] = self.prefix + arguments[name]
        self.queues[operation.queue] = None
        self._ask(
            p.ADMIN,
            "queue.declare",
            "queue.declare-ok",
            queue=self.prefix + operation.queue,
            durable="x-queue-type" in arguments,  # What is transient costs a real broker less time.
            arguments=arguments,
        )

    def _Count(self, operation: p.Count) -> None:
        self._ask(
            p.ADMIN, "queue.declare", "queue.declare-ok", queue=self.prefix + operation.queue, passive=1
        )

    def _DeclareExchange(self, operation: p.DeclareExchange) -> None:
        self.exchanges[operation.exchange] = None
        self._ask(
            p.ADMIN,
            "exchange.declare",
            "exchange.declare-ok",
            exchange=self.prefix + operation.exchange,
            type=operation.type,
        )

    def _Bind(self, operation: p.Bind) -> None:
        self._ask(
            p.ADMIN,
            "queue.bind",
            "queue.bind-ok",
            queue=self.prefix + operation.queue,
            exchange=self.prefix + operation.exchange,
            routing_key=self.prefix + operation.routing_key,
        )

    def _Purge(self, operation: p.Purge) -> None:
        self._ask(p.ADMIN, "queue.purge", "queue.purge-ok", queue=self.prefix + operation.queue)

    def _Delete(self, operation: p.Delete) -> None:
        self._ask(
            p.ADMIN,
            "queue.delete",
            "queue.delete-ok",
            queue=self.prefix + operation.queue,
            if_unused=operation.if_unused,
            if_empty=operation.if_empty,
        )
        if any("queue.delete-ok" in text for text in self.seen.get(p.ADMIN, ())):
            self.queues.pop(operation.queue, None)
            # Every consumer is told; by a process of its own in RabbitMQ, so that it may take a moment.
            while any(queue == operation.queue for _, queue, _ in self.consumers.values()):
                self._take(self._next("basic.cancel"))

    def _Publish(self, operation: p.Publish) -> None:
        self.published += 1
        props: dict[str, Any] = {}
        if operation.priority is not None:
            props["priority"] = operation.priority
        if operation.expiration is not None:
            props["expiration"] = str(operation.expiration)
        channel = self._channel(p.CONFIRMS if operation.confirm else p.ADMIN)
        self.client.publish(
            channel,
            body=p.body_of(self.published, operation.size),
            exchange=self.prefix + operation.exchange if operation.exchange else "",
            routing_key=self.prefix + operation.routing_key,
            mandatory=operation.mandatory,
            props=props,
        )
        if operation.confirm:
            while not any(
                re.search("basic.n?ack|channel.close", text) for text in self.seen.get(channel, ())
            ):
                self._take(self._next("a confirm"))

    def _Get(self, operation: p.Get) -> None:
        self._ask(
            operation.channel,
            "basic.get",
            "basic.get-ok",
            "basic.get-empty",
            queue=self.prefix + operation.queue,
            no_ack=operation.no_ack,
        )
        for text in self.seen.get(operation.channel, ()):
            found = re.search(r"basic\.get-ok\(delivery_tag=(\d+)", text)
            if found and not operation.no_ack:
                self.held[operation.channel].add(int(found[1]))

    def _Consume(self, operation: p.Consume) -> None:
        if operation.tag in self.consumers:
            return
        self._call(
            self._channel(operation.channel),
            "basic.qos",
            "basic.qos-ok",
            prefetch_count=operation.prefetch,
        )
        self.consumers[operation.tag] = (operation.channel, operation.queue, operation.no_ack)
        self._ask(
            operation.channel,
            "basic.consume",
            "basic.consume-ok",
            queue=self.prefix + operation.queue,
            consumer_tag=operation.tag,
            no_ack=operation.no_ack,
            arguments={"x-priority": operation.priority} if operation.priority else {},
        )

    def _Cancel(self, operation: p.Cancel) -> None:
        if operation.tag in self.consumers:
            channel = self.consumers[operation.tag][0]
            self._ask(channel, "basic.cancel", "basic.cancel-ok", consumer_tag=operation.tag)

    def _CloseChannel(self, operation: p.CloseChannel) -> None:
        self._ask(operation.channel, "channel.close", "channel.close-ok", reply_code=200)
        self._forget(operation.channel)

    def _settle(self, operation: p.Settlement | p.Reject, method: str, **arguments: Any) -> None:
        held = self.held[self._channel(operation.channel)]
        tag = p.UNKNOWN_TAG
        if operation.pick is not None:
            if not held:
                return
            tags = sorted(held)
            tag = tags[operation.pick % len(tags)]
            held -= {each for each in held if each == tag or (operation.multiple and each < tag)}
        self.client.tell(operation.channel, method, delivery_tag=tag, **arguments)

    def _Ack(self, operation: p.Ack) -> None:
        self._settle(operation, "basic.ack", multiple=operation.multiple)

    def _Nack(self, operation: p.Nack) -> None:
        self._settle(operation, "basic.nack", multiple=operation.multiple, requeue=operation.requeue)

    def _Reject(self, operation: p.Reject) -> None:
        self._settle(operation, "basic.reject", requeue=operation.requeue)

    def _Recover(self, operation: p.Recover) -> None:
        self.held[self._channel(operation.channel)].clear()
        self._ask(operation.channel, "basic.recover", "basic.recover-ok", requeue=1)

    def _Advance(self, operation: p.Advance) -> None:
        self.passed += operation.seconds
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
        tag = re.search(r"consumer_tag='([^']*)'", event.text)
        if event.name == "basic.deliver":
            assert tag is not None
            number = re.search(r"delivery_tag=(\d+)", event.text)
            assert number is not None
            if not self.consumers[tag[1]][2]:
                self.held[event.channel].add(int(number[1]))
        elif event.name in ("basic.cancel", "basic.cancel-ok"):
            assert tag is not None
            del self.consumers[tag[1]]
        elif event.name == "channel.close":
            self._forget(event.channel)

    def _forget(self, channel: int) -> None:
        self.open.discard(channel)
        self.held.pop(channel, None)
        for tag in [tag for tag, (number, _, _) in self.consumers.items() if number == channel]:
            del self.consumers[tag]

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
            reply = self._answer(_CONTROL, "queue.declare", "queue.declare-ok")
            found = re.search(r"message_count=(\d+), consumer_count=(\d+)", reply)
            if found is None:
                if not self.client.end:
                    self._call(_CONTROL, "channel.open", "channel.open-ok")
                return queue
            counts[queue] = f"{queue}: {found[1]} ready, {found[2]} consumers"
        self.seen.setdefault(_CONTROL, []).extend(counts.values())
        return ""
