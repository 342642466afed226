"""What a trace costs: the same work with it and without, in turn.

Conversations run in this thread without sockets, in short spells by turns, and what is counted is processor
time, so that what else the machine does matters little. The load goes to two brokers in processes of their
own. The record is full before anything is counted: it never grows, and every event puts out an old one.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

from compat_tests.benchmarks import load
from compat_tests.benchmarks.cases import MANY, conversation, publish_bytes
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.runtime.clock import RealClock
from fakeamqp.trace import Recorder

__all__ = ["CONVERSATIONS", "Pair", "brokers", "converse", "rows", "spent", "turns"]

CAPACITY = 10_000
_SERVE = """
import sys, time
from fakeamqp import Broker
with Broker(history=0, trace=int(sys.argv[1])) as broker:
    print(broker.port, flush=True)
    sys.stdin.read()
"""
_GET = method_frame(1, m.BasicGet(queue="q", no_ack=True).encode())
_NACK = method_frame(1, m.BasicNack(delivery_tag=0, multiple=True).encode())
_PURGE = method_frame(1, m.QueuePurge(queue="q", no_wait=True).encode())
_ACK = method_frame(1, m.BasicAck(delivery_tag=0, multiple=True).encode())

CONVERSATIONS: dict[str, tuple[tuple[m.Method, ...], bytes]] = {
    "publish, deliver without ack": (
        (m.BasicConsume(queue="q", no_ack=True),),
        publish_bytes("", "q") * MANY,
    ),
    "publish, deliver, one multiple ack": (
        (m.BasicConsume(queue="q"),),
        publish_bytes("", "q") * MANY + _ACK,
    ),
    "publish, deliver, one multiple nack that drops": (
        (m.BasicConsume(queue="q"),),
        publish_bytes("", "q") * MANY + _NACK,
    ),
    "publish with confirm, deliver without ack": (
        (m.ConfirmSelect(), m.BasicConsume(queue="q", no_ack=True)),
        publish_bytes("", "q") * MANY,
    ),
    "publish with confirm, purge": ((m.ConfirmSelect(),), publish_bytes("", "q") * MANY + _PURGE),
    "publish, get without ack": ((), (publish_bytes("", "q") + _GET) * MANY),
}
"""By name: what is said once, and the bytes of a thousand messages."""


@dataclass(frozen=True)
class Pair:
    """Seconds of the processor for each spell, without what is measured and with it."""

    off: list[float]
    on: list[float]

    @property
    def cost(self) -> float:
        """What part of the throughput it costs: the median over the pairs."""
        return 1 - 1 / median(on / off for off, on in zip(self.off, self.on, strict=True))


def converse(name: str, rounds: int) -> Pair:
    """Hold one of the conversations, `rounds` times each way."""
    runs = []
    for traced in (False, True):
        setup, octets = CONVERSATIONS[name]
        client, run = conversation(*setup, octets=octets)
        if traced:
            client.server.state.tap = Recorder(RealClock().now, CAPACITY)
        for _ in range(2 * CAPACITY // MANY):
            run()
        runs.append(run)
    return turns(partial(spent, runs[0]), partial(spent, runs[1]), rounds)


def turns(off: Callable[[], float], on: Callable[[], float], rounds: int) -> Pair:
    """Have both take turns; they say how many seconds each took."""
    pair = Pair([], [])
    for number in range(rounds):
        # Who goes first takes turns as well.
        for which in (number % 2, 1 - number % 2):
            (pair.on if which else pair.off).append((on if which else off)())
    return pair


def spent(run: Callable[[], object]) -> float:
    """Seconds of the processor that it takes."""
    start = time.process_time()
    run()
    return time.process_time() - start


@contextmanager
def brokers() -> Iterator[list[load.Address]]:
    """Two brokers in processes of their own, the second with a trace."""
    with ExitStack() as stack:
        addresses = []
        for name, capacity in (("off", 0), ("on", CAPACITY)):
            command = [sys.executable, "-c", _SERVE, str(capacity)]
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.terminate)
            assert process.stdout is not None
            addresses.append(load.Address(name, "127.0.0.1", int(process.stdout.readline())))
        yield addresses


def rows(rounds: int, messages: int, runs: int) -> Iterator[str]:
    """The rows of a table: messages a second without a trace, with one, and what it costs."""
    for name in CONVERSATIONS:
        pair = converse(name, rounds)
        off, on = (MANY / median(each) for each in (pair.off, pair.on))
        yield f"| {name} | {off:,.0f} | {on:,.0f} | {pair.cost:.0%} |\n"
    with brokers() as addresses:
        rates = load.take_turns(addresses, messages, runs)
    cost = 1 - median(on / off for off, on in zip(rates["off"], rates["on"], strict=True))
    name = "raw load from another process"
    yield f"| {name} | {median(rates['off']):,.0f} | {median(rates['on']):,.0f} | {cost:.0%} |\n"
