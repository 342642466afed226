"""A busy day on a broker without sockets: what its trace shows is analysed by the benchmarks and tests.

Three publishers, two of them with confirms, feed a plain queue, a priority queue, a quorum queue that
dead-letters what fails too often, and a queue whose messages expire. Consumers with and without prefetch
take, settle one by one and many at once, give back, refuse, come and go; channels close, connections are
lost. Everything is drawn from one seed, and time is moved by hand.
"""

from __future__ import annotations

from random import Random
from typing import Any

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.trace import Recorder, Trace

__all__ = ["soak"]

QUEUES: dict[str, dict[str, Any]] = {
    "plain": {},
    "urgent": {"x-max-priority": 3},
    "sturdy": {
        "x-queue-type": "quorum",
        "x-delivery-limit": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    },
    "brief": {"x-message-ttl": 2000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    "dead": {},
}


class Worker:
    """A client that consumes on two channels."""

    def __init__(self, server: Server, chance: Random) -> None:
        self.chance = chance
        self.client = server.client()
        self.held: list[int] = []
        self.tags: list[str] = []
        self.begin()

    def begin(self) -> None:
        """Start a consumer, or two of them."""
        chance = self.chance
        queues = chance.sample(sorted(QUEUES), chance.choice([1, 2]))
        # Quorum queues have no limit that consumers share.
        shared = "sturdy" not in queues and chance.random() < 0.4
        self.client.qos(chance.choice([1, 5, 20, 100]), global_=shared)
        for queue in queues:
            no_ack = chance.random() < 0.15
            tag = self.client.consume_ok(queue, no_ack=no_ack).consumer_tag
            self.tags.append("" if no_ack else tag)
            self.read()

    def read(self) -> None:
        """Take what has come."""
        for frame in self.client.inbox:
            method = frame.method
            if isinstance(method, m.BasicDeliver) and method.consumer_tag in self.tags:
                self.held.append(method.delivery_tag)
        self.client.inbox.clear()

    def settle(self) -> None:
        """Deal with some of what is held."""
        chance, held = self.chance, self.held
        self.read()
        for _ in range(chance.randint(0, len(held))):
            if not held:
                break
            multiple = chance.random() < 0.1
            tag = held.pop(chance.randrange(min(3, len(held))))
            if multiple:
                held[:] = [each for each in held if each > tag]
            way = chance.random()
            if way < 0.85:
                self.client.ack(tag, multiple=multiple)
            else:
                self.client.nack(tag, multiple=multiple, requeue=way < 0.95)
            self.read()

    def start_over(self) -> None:
        """Close the channel and go on with a new one."""
        self.client.close_channel() if not self.client.inbox else self._close()
        self.held.clear()
        self.tags.clear()
        self.client.open_channel()
        self.begin()

    def _close(self) -> None:
        self.client.send(m.ChannelClose(reply_code=200))
        self.client.inbox.clear()


def soak(rounds: int, seed: int = 1, *, publishes: int = 50) -> Trace:
    """The trace of so many rounds: of so many publishes each, nine events or so for each of them."""
    chance = Random(seed)
    server = Server()
    recorder = Recorder(server.clock.now, 10**9)
    server.state.tap = recorder
    publishers = [server.client() for _ in range(3)]
    for name, arguments in QUEUES.items():
        publishers[0].declare(name, durable=True, arguments=arguments)
    for publisher in publishers[1:]:
        publisher.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    workers = [Worker(server, chance) for _ in range(4)]
    for _ in range(rounds):
        for _ in range(publishes):
            _publish(chance, chance.choice(publishers))
        for publisher in publishers:
            publisher.inbox.clear()
        for worker in workers:
            worker.settle()
        server.advance(chance.expovariate(4))
        if chance.random() < 0.05:
            chance.choice(workers).start_over()
        if chance.random() < 0.01:
            workers.pop(chance.randrange(len(workers))).client.drop()
            workers.append(Worker(server, chance))
    return recorder.trace()


def _publish(chance: Random, client: Client) -> None:
    client.publish(
        b"x" * chance.choice([0, 20, 90, 200]),
        routing_key=chance.choice(["event_to_json", "event_to_json", "urgent", "sturdy", "brief", "nowhere"]),
        priority=chance.choice([None, None, 1, 3]),
        message_id=f"{chance.getrandbits(64):x}",
    )
