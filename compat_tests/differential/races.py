"""The races of RabbitMQ, round by round: each scene says in which order a broker has answered.

`python -m compat_tests.differential.races` counts the orders on RabbitMQ 4.0 and 4.3, for docs/races.md.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import cycle, islice
from typing import Any, NamedTuple

from compat_tests.differential.codec import encode_method, frame, publish_frames
from compat_tests.differential.rabbitmq_node import RabbitMQNode
from compat_tests.differential.raw_client import Address, Event, RawClient

__all__ = ["SCENES", "Scene", "orders"]

Rounds = Callable[[Address], Iterator[str]]


class Scene(NamedTuple):
    """A race, or what looks like one: its rounds, and every order that RabbitMQ showed."""

    rounds: Rounds
    orders: frozenset[str]


SCENES: dict[str, Scene] = {}


def scene(*shown: str) -> Callable[[Rounds], Rounds]:
    """Declare a scene with the orders that RabbitMQ showed."""

    def add(rounds: Rounds) -> Rounds:
        SCENES[rounds.__name__] = Scene(rounds, frozenset(shown))
        return rounds

    return add


def orders(scene: Scene, address: Address, rounds: int, *, until: Collection[str] = ()) -> Counter[str]:
    """Count the orders of a scene in some rounds, or in fewer once all orders of `until` have come."""
    counted: Counter[str] = Counter()
    with contextlib.closing(scene.rounds(address)) as running:  # type: ignore[type-var]
        for order in islice(running, rounds):
            counted[order] += 1
            if until and counted.keys() >= set(until):
                break
    return counted


class _Client:
    """A client whose queues are deleted when it closes."""

    def __init__(self, address: Address, channels: int = 1) -> None:
        self._client = RawClient(address, channels=tuple(range(1, channels + 1)))
        self._queues: list[str] = []

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._queues:
            self._client.send(1, "queue.delete", queue=name)
            self.next("queue.delete-ok")
        self._client.close()

    def call(self, method: str, channel: int = 1, **arguments: Any) -> Event:
        """Send a method, and return its answer."""
        self._client.send(channel, method, **arguments)
        return self.next(f"{method}-ok")

    def send(self, *octets: bytes) -> None:
        """Send frames in one write."""
        self._client.send_bytes(b"".join(octets))

    def send_apart(self, pause: float, first: bytes, second: bytes) -> None:
        """Send frames in two writes with a pause between them, or without one in one write."""
        if pause:
            self.send(first)
            time.sleep(pause)
            self.send(second)
        else:
            self.send(first, second)

    def next(self, *names: str) -> Event:
        """The next event with one of these names; others are passed over."""
        while True:
            event = self._client.next(10)
            assert event is not None, f"{' or '.join(names)} did not come"
            assert event.name != "closed", f"the connection ended before {' or '.join(names)}"
            if event.name in names:
                return event

    def queue(self, kind: str = "classic") -> str:
        """A new queue."""
        name = f"races.{secrets.token_hex(6)}"
        self.call("queue.declare", queue=name, durable=True, arguments={"x-queue-type": kind})
        self._queues.append(name)
        return name

    def consume(self, queue: str, channel: int = 1, **arguments: Any) -> None:
        self.call("basic.consume", channel, queue=queue, no_ack=True, **arguments)

    def drain(self, queue: str) -> None:
        """Purge a queue until a message on its way has arrived, too."""
        while _number(self.call("queue.purge", queue=queue), "message_count") == 0:
            pass


def _publish(
    queue: str, channel: int = 1, *, body: bytes = b"", persistent: bool = False, **arguments: Any
) -> bytes:
    return publish_frames(
        channel,
        body=body,
        props={"delivery_mode": 2} if persistent else {},
        frame_max=131072,
        exchange="",
        routing_key=queue,
        **arguments,
    )


def _method(name: str, channel: int = 1, **arguments: Any) -> bytes:
    return frame(1, channel, encode_method(name, **arguments))


def _close(channel: int) -> bytes:
    return _method("channel.close", channel, reply_code=200, reply_text="", class_id=0, method_id=0)


def _number(event: Event, field: str) -> int:
    return int(event.text.split(f"{field}=")[1].split(",")[0].split(")")[0])


def _body(event: Event) -> str:
    return event.text[-2]


_KINDS = ("classic", "quorum")
_LARGE = 100_000
"""Bytes of a message that a classic queue keeps in the message store."""
_PAUSES = (0.0, 0.001)
"""Seconds between two methods; without a pause they are sent in one write."""


@scene("confirm, reply", "reply, confirm")
def confirm_and_reply(address: Address) -> Iterator[str]:
    """A persistent request to a durable queue, whose consumer replies and acknowledges at once."""
    with _Client(address) as client, _Client(address) as responder:
        requests, replies = responder.queue(), client.queue()
        client.call("confirm.select")
        client.consume(replies)
        responder.call("basic.consume", queue=requests)
        while True:
            client.send(_publish(requests, persistent=True))
            tag = _number(responder.next("basic.deliver"), "delivery_tag")
            responder.send(_publish(replies), _method("basic.ack", delivery_tag=tag))
            came = [client.next("basic.ack", "basic.deliver").name for _ in range(2)]
            yield ", ".join("confirm" if name == "basic.ack" else "reply" for name in came)


@scene("both", "1, 2", "2, 1")
def confirms_of_two_queues(address: Address) -> Iterator[str]:
    """Two publishes to two queues in one write."""
    with _Client(address) as client:
        first, second = client.queue(), client.queue()
        client.call("confirm.select")
        published = 0
        for persistent in cycle(((True, False), (False, False), (False, True))):
            client.send(_publish(first, persistent=persistent[0]), _publish(second, persistent=persistent[1]))
            ack = client.next("basic.ack")
            tag = _number(ack, "delivery_tag") - published
            if tag == 2 and _number(ack, "multiple"):
                yield "both"
            else:
                yield f"{tag}, {_number(client.next('basic.ack'), 'delivery_tag') - published}"
            published += 2


@scene("return, confirm")
def return_and_confirm(address: Address) -> Iterator[str]:
    """A mandatory message that no queue gets."""
    with _Client(address) as client:
        client.call("confirm.select")
        while True:
            client.send(_publish("races.nowhere", mandatory=True))
            came = [client.next("basic.ack", "basic.return").name for _ in range(2)]
            yield ", ".join("confirm" if name == "basic.ack" else "return" for name in came)


@scene("0", "1")
def count_after_publish(address: Address) -> Iterator[str]:
    """The count of a passive declare after an unconfirmed publish, at once or a millisecond later."""
    with _Client(address) as client:
        queues = [client.queue(kind) for kind in _KINDS]
        for queue, pause in cycle((queue, pause) for queue in queues for pause in _PAUSES):
            client.send_apart(pause, _publish(queue), _method("queue.declare", queue=queue, passive=True))
            yield str(_number(client.next("queue.declare-ok"), "message_count"))
            client.drain(queue)


def _get(address: Address, kind: str, channel: int) -> Iterator[str]:
    with _Client(address, 2) as client:
        queue = client.queue(kind)
        for pause in cycle(_PAUSES):
            ask = _method("basic.get", channel, queue=queue, no_ack=True)
            client.send_apart(pause, _publish(queue), ask)
            came = client.next("basic.get-ok", "basic.get-empty").name
            yield came
            if came == "basic.get-empty":
                client.drain(queue)


@scene("basic.get-ok")
def get_after_publish_classic(address: Address) -> Iterator[str]:
    """basic.get after a publish of the same channel to a classic queue."""
    return _get(address, "classic", 1)


@scene("basic.get-ok", "basic.get-empty")
def get_after_publish_quorum(address: Address) -> Iterator[str]:
    """The same with a quorum queue."""
    return _get(address, "quorum", 1)


@scene("basic.get-ok", "basic.get-empty")
def get_on_another_channel(address: Address) -> Iterator[str]:
    """basic.get on another channel of the same connection, from a classic queue."""
    return _get(address, "classic", 2)


@scene("0", "1")
def purge_on_another_channel(address: Address) -> Iterator[str]:
    """The count of a purge on another channel of the same connection."""
    with _Client(address, 2) as client:
        queue = client.queue()
        while True:
            client.send(_publish(queue), _method("queue.purge", 2, queue=queue))
            count = _number(client.next("queue.purge-ok"), "message_count")
            yield str(count)
            if not count:
                client.drain(queue)


@scene("ab", "ba")
def deliveries_of_two_queues(address: Address) -> Iterator[str]:
    """One channel publishes to two queues, which another channel consumes."""
    with _Client(address) as client, _Client(address) as consumer:
        pairs = [(consumer.queue(kind), consumer.queue(kind)) for kind in _KINDS]
        for queue in (queue for pair in pairs for queue in pair):
            consumer.consume(queue)
        for first, second in cycle(pairs):
            client.send(_publish(first, body=b"a", persistent=True), _publish(second, body=b"b"))
            yield "".join(_body(consumer.next("basic.deliver")) for _ in range(2))


@scene("ab", "ba")
def deliveries_after_acks_to_two_queues(address: Address) -> Iterator[str]:
    """The next deliveries of two queues, after both first ones are acknowledged in one write.

    The messages of the first queue are large, so that RabbitMQ reads them from its store.
    """
    with _Client(address) as client, _Client(address) as consumer:
        consumer.call("basic.qos", prefetch_count=1)
        client.call("confirm.select")
        queues = {tag: consumer.queue() for tag in "ab"}
        for tag, queue in queues.items():
            consumer.call("basic.consume", queue=queue, consumer_tag=tag)
        while True:
            for tag, queue in queues.items():
                for _ in range(2):
                    client.send(_publish(queue, body=bytes(_LARGE if tag == "a" else 1), persistent=True))
                    client.next("basic.ack")
            for _ in range(2):
                came = [consumer.next("basic.deliver") for _ in range(2)]
                order = "".join("a" if "consumer_tag='a'" in each.text else "b" for each in came)
                tags = [_number(came[order.index(tag)], "delivery_tag") for tag in "ab"]
                consumer.send(*(_method("basic.ack", delivery_tag=tag) for tag in tags))
            yield order


@scene("abc", "acb", "bac")
def messages_of_two_channels(address: Address) -> Iterator[str]:
    """Channel 1 publishes a, channel 2 b, channel 1 c, to one queue in one write."""
    with _Client(address, 2) as client, _Client(address) as consumer:
        queues = [consumer.queue(kind) for kind in _KINDS]
        for queue in queues:
            consumer.consume(queue)
        for queue in cycle(queues):
            client.send(*(_publish(queue, 1 + nth % 2, body=b"abc"[nth : nth + 1]) for nth in range(3)))
            yield "".join(_body(consumer.next("basic.deliver")) for _ in range(3))


@scene("none", "some", "all")
def deliveries_before_close_ok(address: Address) -> Iterator[str]:
    """Ten messages are published on channel 2 while channel 1, which consumes their queue, closes."""
    with _Client(address, 2) as client, _Client(address) as other:
        queues = [other.queue(kind) for kind in _KINDS]
        for queue in cycle(queues):
            client.consume(queue)
            client.send(*(_publish(queue, 2) for _ in range(10)), _close(1))
            count = 0
            while client.next("basic.deliver", "channel.close-ok").name == "basic.deliver":
                count += 1
            yield {0: "none", 10: "all"}.get(count, "some")
            client.call("channel.open")
            # The others arrive in the queue.
            for _ in range(10 - count):
                while (
                    other.send(_method("basic.get", queue=queue, no_ack=True))
                    or other.next("basic.get-ok", "basic.get-empty").name == "basic.get-empty"
                ):
                    pass


@scene("channel.close-ok", "basic.ack, channel.close-ok")
def confirm_before_close_ok(address: Address) -> Iterator[str]:
    """A channel closes right after a publish."""
    with _Client(address) as other, _Client(address, 2) as client:
        queue = other.queue()
        while True:
            client.call("confirm.select")
            client.send(_publish(queue), _close(1))
            came = [client.next("basic.ack", "channel.close-ok").name]
            if came[0] == "basic.ack":
                came.append(client.next("channel.close-ok").name)
            yield ", ".join(came)
            client.call("channel.open")


def main(rounds: int) -> None:
    """Print how often the orders of each scene come on RabbitMQ."""
    for series in ("4.0", "4.3"):
        with RabbitMQNode(series) as node:
            for name, each in SCENES.items():
                counted = orders(each, Address("127.0.0.1", node.port), rounds)
                print(node.version, name, dict(counted.most_common()), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
