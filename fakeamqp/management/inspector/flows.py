"""How many messages went through each exchange, along each binding, and to and from each queue.

They are counted from the broker's histories and from its trace while a page looks: the hot path does nothing
for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fakeamqp.management.counters import Counter as TimedCounter
from fakeamqp.management.inspector.keys import key_of
from fakeamqp.model.errors import InternalError
from fakeamqp.model.events import EVENTS
from fakeamqp.model.exchanges import Exchange
from fakeamqp.model.exchanges.hashing import RandomExchange

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fakeamqp.model.history import History
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.trace import Recorder

_MOST_AT_ONCE = 20_000
"""Records that one snapshot counts; of more, the latest."""
_MOST_WALKS = 500
"""Messages whose way through several exchanges one snapshot follows; of more, the latest."""
_MOST_ROUTES = 5000
_RATES = {"published": "in", "delivered": "out", "acked": "ack"}
"""The rates of queues, by the event that counts for them."""

R = TypeVar("R")


class _Following(Generic[R]):
    """The new records of a history, at each look."""

    def __init__(self) -> None:
        self._seen = 0
        self._latest: object = None
        """The latest record seen, by which a history that has begun again is told from one that went on."""

    def new(self, history: History[Any]) -> tuple[bool, list[Any]]:
        """Whether the history has begun again, and what is new in it, the latest first."""
        count = history.count
        new = min(max(0, count - self._seen), len(history), _MOST_AT_ONCE)
        records = list(islice(reversed(history), new + 1))
        again = count < self._seen or (len(records) > new and records[-1] is not self._latest)
        if again := again and bool(self._seen):
            new = min(count, len(history), _MOST_AT_ONCE)
            records = list(islice(reversed(history), new))
        self._seen = count
        if records:
            self._latest = records[0]
        del records[new:]
        return again, records


class Flows:
    """Counts of messages by exchange and binding, and rates of queues."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._published: _Following[Any] = _Following()
        self._dead: _Following[Any] = _Following()
        self._rates: defaultdict[str, defaultdict[str, TimedCounter]] = defaultdict(
            lambda: defaultdict(TimedCounter)
        )
        self._serial = 0
        self._clears: int | None = None

    def counted(self, engine: Engine, state: BrokerState) -> dict[str, int]:
        """The counts so far.

        A key is a letter and the key of an exchange: `p` for what clients published to it, `u` for what it
        routed nowhere, `d` for dead letters that queues passed to it, `i` for what came from other exchanges,
        by bindings or as their alternate exchange. Or it is a letter, the length of an exchange's key, this
        key, and the key of a destination: `r` for what went to the queue, `x` for what went to the exchange.
        """
        if state.published is None or state.outcome_histories is None:
            return {}
        with engine.look():
            again, publishes = self._published.new(state.published)
            dead_again, dead = self._dead.new(state.outcome_histories.dead_lettered)
        if again or dead_again:
            self._counts.clear()
        walks: list[tuple[str, str, Message, Sequence[Any]]] = []
        for virtual_host, message, outcome in publishes:
            self._counts[f"p{key_of(virtual_host, message.exchange)}"] += 1
            if not outcome.queues and not outcome.delays:
                self._counts[f"u{key_of(virtual_host, message.exchange)}"] += 1
            walks.append((virtual_host, message.exchange, message, outcome.queues))
        for record in dead:
            self._counts[f"d{key_of(record.virtual_host, record.exchange)}"] += 1
            walks.append((record.virtual_host, record.exchange, record.message, record.outcome.queues))
        for at, (virtual_host, exchange, message, queues) in enumerate(walks):
            with engine.look():
                host = state.virtual_hosts.get(virtual_host)
                first = None if host is None else host.exchanges.get(exchange)
                far = at < _MOST_WALKS and first is not None and _leads_on(first)
                hops = _hops(host, first, message) if far and host is not None and first is not None else ()
            self._count_hops(virtual_host, exchange, queues, hops)
        return dict(self._counts)

    def _count_hops(
        self, host: str, exchange: str, queues: Iterable[Any], hops: Iterable[tuple[str, Any]]
    ) -> None:
        reached = set()
        passed = set()
        for source, target in hops:
            there = key_of(host, target.name)
            if isinstance(target, Exchange):
                self._route("x", key_of(host, source), there)
                passed.add(there)
            elif target in queues:
                self._route("r", key_of(host, source), there)
                reached.add(target.name)
        for there in passed:
            self._counts[f"i{there}"] += 1
        for queue in queues:
            if queue.name not in reached:
                self._route("r", key_of(host, exchange), key_of(host, queue.name))

    def _route(self, letter: str, source: str, target: str) -> None:
        route = f"{letter}{len(source)} {source}{target}"
        if route in self._counts or len(self._counts) < _MOST_ROUTES:
            self._counts[route] += 1

    def rates(
        self, engine: Engine, state: BrokerState, recorder: Recorder | None
    ) -> dict[str, dict[str, float]]:
        """Messages per second of the broker's clock, over the latest five: in, out and acked, by queue.

        They are those of RabbitMQ's page. Queues without any are left out.
        """
        if recorder is None:
            return {}
        with engine.look():
            if self._clears != recorder.clears:
                self._rates.clear()
                self._serial, self._clears = 0, recorder.clears
            _, entries = recorder.entries_from(self._serial, _MOST_AT_ONCE)
            self._serial = recorder.count
            now = state.clock.now()
            hosts = {each.name: each.virtual_host_name for each in state.connections}
        for event, instant, peer, *rest in entries:
            if (rate := _RATES.get(event)) is None:
                continue
            connection = None if peer is None else peer[0]
            facts: dict[str, Any] = EVENTS[event].facts(connection, *rest)
            host = facts.get("virtual_host") or hosts.get(connection or "") or "/"
            queues = facts["outcome"].queues if rate == "in" else (facts["queue"],)
            for queue in filter(None, queues):
                self._rates[key_of(host, getattr(queue, "name", queue))][rate].add(instant)
        found = {}
        for key, counters in self._rates.items():
            told = {name: value for name, each in counters.items() if (value := round(each.rate(now), 2))}
            if told:
                found[key] = told
        return found


def _leads_on(exchange: Exchange) -> bool:
    """Whether messages may go from an exchange to another one."""
    return exchange.alternate_exchange is not None or any(
        each.destination.kind == "exchange" for each in exchange.bindings.values()
    )


def _hops(host: VirtualHost, first: Exchange, message: Message) -> list[tuple[str, Any]]:
    """Each exchange and what it routes a message to, by the bindings of now. Call it inside the engine."""
    hops: list[tuple[str, Any]] = []

    def ask(exchange: Exchange, keys: Sequence[str], asked: Message) -> tuple[float, Iterable[Any]]:
        # A random choice cannot be made again.
        found = () if isinstance(exchange.chooser, RandomExchange) else tuple(exchange.route(keys, asked))
        hops.extend((exchange.name, each) for each in found)
        other = host.exchanges.get(exchange.alternate_exchange) if exchange.alternate_exchange else None
        if other is not None and not found:
            hops.append((exchange.name, other))
        return 0.0, found

    with suppress(InternalError):  # An exchange cannot handle the value of a header.
        host.routing.dry_run(message, ask, first)
    return hops
