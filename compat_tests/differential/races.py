"""The races of RabbitMQ, round by round: each scene says in which order a broker has answered.

`python -m compat_tests.differential.races` counts the orders on RabbitMQ 4.0 and 4.3, for docs/races.md.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import cycle, islice, product
from typing import Any, NamedTuple

from compat_tests.differential.codec import method_frame as _method, publish_frames
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
            self._client.tell(1, "queue.delete", queue=name)
            self.next("queue.delete-ok")
        self._client.close()

    def end(self) -> None:
        """Close the connection in good order."""
        self.send(_close_connection())
        self.next("connection.close-ok")

    def call(self, method: str, channel: int = 1, **arguments: Any) -> Event:
        """Send a method, and return its answer."""
        self._client.tell(channel, method, **arguments)
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

    def passive(self, queue: str, channel: int = 1) -> str:
        """The count of ready messages of a queue, or the reply code of the refusal to tell it."""
        return self.declared(channel, queue=queue, passive=True)

    def declared(self, channel: int = 1, **arguments: Any) -> str:
        """The count of a queue that is declared, or the reply code of the refusal."""
        self._client.tell(channel, "queue.declare", **arguments)
        came = self.next("queue.declare-ok", "channel.close")
        if came.name == "queue.declare-ok":
            return str(_number(came, "message_count"))
        self.call("channel.open", channel)
        return came.text.split("(")[1][:3]

    def publish_confirmed(self, *queues: str) -> None:
        """Publish a persistent message to each of these queues, and wait for the confirms."""
        for queue in queues:
            self.send(_publish(queue, persistent=True))
            self.next("basic.ack")

    def get(self, queue: str) -> int:
        """The delivery tag of the next message of a queue, which has one."""
        self._client.tell(1, "basic.get", queue=queue)
        return _number(self.next("basic.get-ok"), "delivery_tag")

    def wait_for_count(self, queue: str, count: int) -> None:
        while self.passive(queue) != str(count):
            pass

    def next(self, *names: str) -> Event:
        """The next event with one of these names; others are passed over."""
        while True:
            event = self._client.next(10)
            assert event is not None, f"{' or '.join(names)} did not come"
            assert event.name != "closed", f"the connection ended before {' or '.join(names)}"
            if event.name in names:
                return event

    def queue(self, kind: str = "classic", **arguments: Any) -> str:
        """A new queue."""
        name = f"races.{secrets.token_hex(6)}"
        # Some scenes return the same message again and again.
        unlimited = {"x-delivery-limit": -1} if kind == "quorum" else {}
        arguments = {"x-queue-type": kind, **unlimited, **arguments}
        self.call("queue.declare", queue=name, durable=True, arguments=arguments)
        self._queues.append(name)
        return name

    def queue_with_dead_letters(self, kind: str, target: str) -> str:
        """A new queue whose dead letters go to another one."""
        return self.queue(kind, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target})

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


def _close(channel: int) -> bytes:
    return _method("channel.close", channel, reply_code=200, reply_text="", class_id=0, method_id=0)


def _close_connection() -> bytes:
    return _method("connection.close", 0, reply_code=200, reply_text="", class_id=0, method_id=0)


def _named(came: Iterable[Event]) -> str:
    """The methods in words: "close-ok, delivery"."""
    names = (each.name.partition(".")[2] for each in came)
    return ", ".join("delivery" if name == "deliver" else name for name in names)


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


@scene("commit-ok, delivery")
def commit_and_delivery_that_it_frees(address: Address) -> Iterator[str]:
    """A transaction acknowledges the message that a prefetch limit of 1 waits for."""
    with _Client(address) as client, _Client(address) as other:
        other.call("confirm.select")
        client.call("basic.qos", prefetch_count=1)
        client.call("tx.select")
        tags = {}
        for tag, kind in zip("ab", _KINDS, strict=True):
            queue = client.queue(kind)
            other.publish_confirmed(queue)
            client.call("basic.consume", queue=queue, consumer_tag=tag)
            tags[queue] = _number(client.next("basic.deliver"), "delivery_tag")
        for queue in cycle(tags):
            other.publish_confirmed(queue)
            client.send(_method("basic.ack", delivery_tag=tags[queue]), _method("tx.commit"))
            came = [client.next("basic.deliver", "tx.commit-ok") for _ in range(2)]
            [tags[queue]] = (_number(each, "delivery_tag") for each in came if each.name == "basic.deliver")
            yield _named(came)


@scene("commit-ok, delivery", "delivery, commit-ok")
def commit_and_delivery_of_its_message(address: Address) -> Iterator[str]:
    """A transaction publishes to queues that this channel or another one consumes."""
    with _Client(address, 2) as client:
        client.call("tx.select")
        queues = [client.queue(kind) for kind in _KINDS for _ in "12"]
        for nth, queue in enumerate(queues):
            client.consume(queue, 1 + nth % 2)
        for queue in cycle(queues):
            client.send(_publish(queue), _method("tx.commit"))
            yield _named([client.next("basic.deliver", "tx.commit-ok") for _ in range(2)])


@scene("1")
def count_after_commit_ok(address: Address) -> Iterator[str]:
    """The count of a passive declare on another connection, once a transaction has published a message."""
    with _Client(address) as client, _Client(address) as other:
        client.call("tx.select")
        for queue in cycle([client.queue(kind) for kind in _KINDS]):
            client.send(_publish(queue), _method("tx.commit"))
            client.next("tx.commit-ok")
            yield other.passive(queue)
            client.drain(queue)


@scene("1")
def count_after_confirm(address: Address) -> Iterator[str]:
    """The count of a passive declare on another connection, once a message is confirmed."""
    with _Client(address) as client, _Client(address) as other:
        client.call("confirm.select")
        for queue in cycle([client.queue(kind) for kind in _KINDS]):
            client.send(_publish(queue))
            client.next("basic.ack")
            yield other.passive(queue)
            client.drain(queue)


@scene("nack, acks", "ack, nack, ack", "acks, nack")
def nack_among_acks(address: Address) -> Iterator[str]:
    """The second of three publishes goes to a full queue, which refuses it; the others to another queue."""
    with _Client(address) as client:
        full = client.queue(**{"x-max-length": 1, "x-overflow": "reject-publish"})
        other = client.queue()
        client.call("confirm.select")
        client.send(_publish(full))
        client.next("basic.ack")
        published = 1
        for persistent in cycle((True, False)):
            client.send(*(_publish(queue, persistent=persistent) for queue in (other, full, other)))
            acked: set[int] = set()
            before: int | None = None
            while before is None or len(acked) < 2:
                came = client.next("basic.ack", "basic.nack")
                if came.name == "basic.nack":
                    before = len(acked)
                    continue
                tag = _number(came, "delivery_tag") - published
                acked |= {1, tag} - {2} if _number(came, "multiple") else {tag}
            published += 3
            yield ("nack, acks", "ack, nack, ack", "acks, nack")[before]


@scene("ack, nacks", "nacks, ack")
def nacks_of_the_queue_of_an_ack(address: Address) -> Iterator[str]:
    """Three publishes to a classic queue that takes one message."""
    with _Client(address) as client:
        queue = client.queue(**{"x-max-length": 1, "x-overflow": "reject-publish"})
        client.call("confirm.select")
        for persistent in cycle((True, False)):
            client.send(*(_publish(queue, persistent=persistent) for _ in range(3)))
            came = [client.next("basic.ack", "basic.nack") for _ in range(2)]
            while {each.name for each in came} != {"basic.ack", "basic.nack"} or not _all_nacked(came):
                came.append(client.next("basic.ack", "basic.nack"))
            names = [each.name for each in came]
            position = names.index("basic.ack")
            yield {0: "ack, nacks", len(names) - 1: "nacks, ack"}.get(position, "nack, ack, nack")
            client.drain(queue)


def _all_nacked(came: list[Event]) -> bool:
    """Whether both of the last two of three publishes are refused."""
    nacks = [each for each in came if each.name == "basic.nack"]
    return len(nacks) == 2 or any(_number(each, "delivery_tag") % 3 == 0 for each in nacks)


@scene("return, confirm of it")
def return_among_confirms(address: Address) -> Iterator[str]:
    """The second of three mandatory messages has no queue: what follows its return."""
    with _Client(address) as client:
        queues = [client.queue(kind) for kind in _KINDS]
        client.call("confirm.select")
        published = 0
        for queue, persistent in cycle((queue, persistent) for queue in queues for persistent in (0, 1)):
            keys = (queue, "races.nowhere", queue)
            client.send(*(_publish(key, mandatory=True, persistent=bool(persistent)) for key in keys))
            order: list[str] = []
            confirmed: set[int] = set()
            while len(confirmed) < 3:
                came = client.next("basic.ack", "basic.return")
                if came.name == "basic.return":
                    order.append("return")
                    continue
                tag = _number(came, "delivery_tag") - published
                confirmed |= set(range(1, tag + 1)) if _number(came, "multiple") else {tag}
                order.append("confirm of it" if tag == 2 else "confirm of another")
            published += 3
            start = order.index("return")
            yield ", ".join(order[start : start + 2])


@scene("return, delivery", "delivery, return")
def return_and_delivery(address: Address) -> Iterator[str]:
    """A channel publishes to a queue that it consumes, and then a mandatory message that has no queue."""
    with _Client(address) as client:
        queue = client.queue()
        client.consume(queue)
        for pause in cycle(_PAUSES):
            client.send_apart(pause, _publish(queue), _publish("races.nowhere", mandatory=True))
            yield _named([client.next("basic.deliver", "basic.return") for _ in range(2)])


def _rejected(
    client: _Client, other: _Client, method: str, channel: int, **arguments: Any
) -> Iterator[Event]:
    """What a method says of the queue for dead letters, sent at once or a millisecond after the reject."""
    pairs = []
    for kind in _KINDS:
        target = client.queue(kind)
        pairs.append((client.queue_with_dead_letters(kind, target), target))
    other.call("confirm.select")
    for (queue, target), pause in cycle((pair, pause) for pair in pairs for pause in _PAUSES):
        other.publish_confirmed(queue)
        rejection = _method("basic.reject", delivery_tag=client.get(queue), requeue=False)
        client.send_apart(pause, rejection, _method(method, channel, queue=target, **arguments))
        came = client.next("queue.declare-ok", "basic.get-ok", "basic.get-empty")
        yield came
        if came.name != "basic.get-ok":
            other.drain(target)


@scene("0", "1")
def count_after_reject(address: Address) -> Iterator[str]:
    """The count of a queue for dead letters, after basic.reject."""
    with _Client(address) as client, _Client(address) as other:
        for came in _rejected(client, other, "queue.declare", 1, passive=True):
            yield str(_number(came, "message_count"))


@scene("basic.get-empty", "basic.get-ok")
def get_after_reject(address: Address) -> Iterator[str]:
    """basic.get from a queue for dead letters, after basic.reject."""
    with _Client(address) as client, _Client(address) as other:
        for came in _rejected(client, other, "basic.get", 1, no_ack=True):
            yield came.name


@scene("ab", "ba")
def dead_letters_of_two_queues(address: Address) -> Iterator[str]:
    """Two queues dead-letter a and b to one queue: a quorum queue first, then one of either type."""
    with _Client(address) as client, _Client(address) as other:
        target = client.queue()
        first, *others = (client.queue_with_dead_letters(kind, target) for kind in ("quorum", *_KINDS))
        other.call("confirm.select")
        other.consume(target)
        for second in cycle(others):
            for queue, body in ((first, b"a"), (second, b"b")):
                other.send(_publish(queue, body=body))
                other.next("basic.ack")
            tags = [client.get(queue) for queue in (first, second)]
            client.send(*(_method("basic.reject", delivery_tag=tag, requeue=False) for tag in tags))
            yield "".join(_body(other.next("basic.deliver")) for _ in range(2))


@scene("0", "1")
def count_after_requeue(address: Address) -> Iterator[str]:
    """The count of a passive declare after a message is requeued, at once or a millisecond later."""
    with _Client(address) as client, _Client(address) as other:
        queues = [client.queue(kind) for kind in _KINDS]
        other.call("confirm.select")
        other.publish_confirmed(*queues)
        for nth, (queue, pause) in enumerate(cycle((queue, pause) for queue in queues for pause in _PAUSES)):
            tag = client.get(queue)
            requeue = (
                _method("basic.reject", delivery_tag=tag, requeue=True),
                _method("basic.nack", delivery_tag=tag, requeue=True),
                _method("basic.recover", requeue=True),
            )[nth % 3]
            client.send_apart(pause, requeue, _method("queue.declare", queue=queue, passive=True))
            yield str(_number(client.next("queue.declare-ok"), "message_count"))
            other.wait_for_count(queue, 1)


def _get_again(address: Address, channel: int) -> Iterator[str]:
    with _Client(address, 2) as client, _Client(address) as other:
        queues = [client.queue(kind) for kind in _KINDS]
        other.call("confirm.select")
        other.publish_confirmed(*queues)
        for queue in cycle(queues):
            requeue = _method("basic.reject", delivery_tag=client.get(queue), requeue=True)
            client.send(requeue, _method("basic.get", channel, queue=queue))
            came = client.next("basic.get-ok", "basic.get-empty")
            yield came.name
            if came.name == "basic.get-ok":
                tag = _number(came, "delivery_tag")
                client.send(_method("basic.reject", channel, delivery_tag=tag, requeue=True))
            other.wait_for_count(queue, 1)


@scene("basic.get-ok")
def get_after_requeue(address: Address) -> Iterator[str]:
    """basic.get after a message is requeued."""
    return _get_again(address, 1)


@scene("basic.get-ok", "basic.get-empty")
def get_after_requeue_on_another_channel(address: Address) -> Iterator[str]:
    """basic.get on another channel of the same connection, after a message is requeued."""
    return _get_again(address, 2)


def _cancel(
    address: Address, kinds: Collection[str], channels: Collection[int]
) -> Generator[str, None, None]:
    with _Client(address, 2) as client, _Client(address) as other:
        queues = [other.queue(kind) for kind in kinds]
        for queue, channel, pause in cycle(product(queues, channels, (*_PAUSES, 0.005))):
            client.consume(queue, consumer_tag="t")
            publishes = b"".join(_publish(queue, channel) for _ in range(10))
            client.send_apart(pause, publishes, _method("basic.cancel", consumer_tag="t"))
            count = 0
            while client.next("basic.deliver", "basic.cancel-ok").name == "basic.deliver":
                count += 1
            yield {0: "none", 10: "all"}.get(count, "some")
            if count < 10:
                other.wait_for_count(queue, 10 - count)
                other.drain(queue)


@scene("all")
def deliveries_before_cancel_ok(address: Address) -> Iterator[str]:
    """A channel publishes ten messages to a classic queue that it consumes, and cancels the consumer."""
    return _cancel(address, ["classic"], [1])


@scene("none", "some", "all")
def deliveries_before_cancel_ok_other(address: Address) -> Iterator[str]:
    """The same with a quorum queue; and while another channel publishes to a classic queue."""
    with (
        contextlib.closing(_cancel(address, ["quorum"], [1])) as one,
        contextlib.closing(_cancel(address, ["classic"], [2])) as other,
    ):
        for pair in zip(one, other, strict=False):
            yield from pair


def _delete(address: Address, kind: str, channel: int) -> Iterator[str]:
    with _Client(address, 2) as client:
        while True:
            queue = client.queue(kind)
            client.consume(queue, channel)
            client.send(_method("queue.delete", queue=queue))
            yield _named([client.next("basic.cancel", "queue.delete-ok") for _ in range(2)])


@scene("delete-ok, cancel")
def delete_and_cancel(address: Address) -> Iterator[str]:
    """A channel deletes a queue that it consumes."""
    return _delete(address, "classic", 1)


@scene("cancel, delete-ok")
def delete_and_cancel_quorum(address: Address) -> Iterator[str]:
    """A channel deletes a quorum queue that another channel of the same connection consumes."""
    return _delete(address, "quorum", 2)


@scene("cancel, delete-ok", "delete-ok, cancel")
def delete_and_cancel_on_another_channel(address: Address) -> Iterator[str]:
    """The same with a classic queue."""
    return _delete(address, "classic", 2)


@scene("close-ok, delivery")
def close_and_redelivery(address: Address) -> Iterator[str]:
    """Channel 1 closes with a message that channel 2 gets then."""
    with _Client(address, 2) as client, _Client(address) as other:
        other.call("confirm.select")
        for queue in cycle([other.queue(kind) for kind in _KINDS]):
            other.publish_confirmed(queue)
            client.get(queue)
            client.consume(queue, 2, consumer_tag="t")
            client.send(_close(1))
            yield _named([client.next("basic.deliver", "channel.close-ok") for _ in range(2)])
            client.call("basic.cancel", 2, consumer_tag="t")
            client.call("channel.open")


@scene("0", "1")
def count_after_close_ok(address: Address) -> Iterator[str]:
    """The count on another connection, once a channel has closed that held the message."""
    with _Client(address) as client, _Client(address) as other:
        other.call("confirm.select")
        queues = [other.queue(kind) for kind in _KINDS]
        other.publish_confirmed(*queues)
        for queue in cycle(queues):
            client.get(queue)
            client.send(_close(1))
            client.next("channel.close-ok")
            yield other.passive(queue)
            client.call("channel.open")
            other.wait_for_count(queue, 1)


def _count_after_connection(address: Address, kind: str) -> Iterator[str]:
    with _Client(address) as other:
        other.call("confirm.select")
        queue = other.queue(kind)
        other.publish_confirmed(queue)
        while True:
            with _Client(address) as client:
                client.call("basic.consume", queue=queue)
                client.next("basic.deliver")
                client.end()
            yield other.passive(queue)
            other.wait_for_count(queue, 1)


@scene("1")
def count_after_connection_close_ok(address: Address) -> Iterator[str]:
    """The same once a connection has closed whose consumer held the message of a classic queue."""
    return _count_after_connection(address, "classic")


@scene("0", "1")
def count_after_connection_close_ok_quorum(address: Address) -> Iterator[str]:
    """The same with a quorum queue."""
    return _count_after_connection(address, "quorum")


@scene("404")
def auto_delete_after_close_ok(address: Address) -> Iterator[str]:
    """A passive declare on another connection, once the consumer of an auto-delete queue has ended."""
    name = f"races.{secrets.token_hex(6)}"
    with _Client(address) as other:
        for how in cycle(("basic.cancel", "channel.close", "connection.close")):
            with _Client(address) as client:
                client.call("queue.declare", queue=name, durable=True, auto_delete=True)
                client.call("basic.consume", queue=name, consumer_tag="t")
                if how == "basic.cancel":
                    client.call(how, consumer_tag="t")
                elif how == "channel.close":
                    client.send(_close(1))
                    client.next("channel.close-ok")
                else:
                    client.end()
                yield other.passive(name)


@scene("0", "405")
def declare_after_exclusive_owner(address: Address) -> Iterator[str]:
    """A declare of an exclusive queue's name on another connection, once its owner has closed."""
    name = f"races.{secrets.token_hex(6)}"
    with _Client(address) as other:
        while True:
            with _Client(address) as client:
                client.call("queue.declare", queue=name, exclusive=True)
                client.end()
            came = other.declared(queue=name, durable=True)
            yield came
            if came == "405":
                while other.passive(name) != "404":
                    pass
            else:
                other.call("queue.delete", queue=name)


@scene("none", "some", "all")
def deliveries_before_connection_close_ok(address: Address) -> Iterator[str]:
    """A connection closes right after ten publishes to a queue that it consumes, or a millisecond later."""
    with _Client(address) as other:
        queues = [other.queue(kind) for kind in _KINDS]
        for queue, pause in cycle((queue, pause) for queue in queues for pause in _PAUSES):
            with _Client(address, 2) as client:
                client.call("basic.consume", queue=queue)
                published = b"".join(_publish(queue, 2) for _ in range(10))
                client.send_apart(pause, published, _close_connection())
                count = 0
                while client.next("basic.deliver", "connection.close-ok").name == "basic.deliver":
                    count += 1
            yield {0: "none", 10: "all"}.get(count, "some")
            other.wait_for_count(queue, 10)
            other.call("queue.purge", queue=queue)


@scene("close-ok", "ack, close-ok")
def confirm_before_connection_close_ok(address: Address) -> Iterator[str]:
    """A connection closes right after a publish, or a millisecond later."""
    with _Client(address) as other:
        queue = other.queue()
        for pause in cycle(_PAUSES):
            with _Client(address) as client:
                client.call("confirm.select")
                client.send_apart(pause, _publish(queue), _close_connection())
                came = [client.next("basic.ack", "connection.close-ok")]
                if came[0].name == "basic.ack":
                    came.append(client.next("connection.close-ok"))
            yield _named(came)
            other.drain(queue)


def main(rounds: int) -> None:
    """Print how often the orders of each scene come on RabbitMQ."""
    for series in ("4.0", "4.3"):
        with RabbitMQNode(series) as node:
            for name, each in SCENES.items():
                counted = orders(each, Address("127.0.0.1", node.port), rounds)
                print(node.version, name, dict(counted.most_common()), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
