"""How many messages went through each exchange, and from it to each queue.

They are counted from the broker's history of publishes while a page looks: the hot path does nothing for it.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from fakeamqp.management.inspector.keys import key_of

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime.engine import Engine

_MOST_AT_ONCE = 20_000
"""Publishes that are counted by one snapshot; of more, the latest."""
_MOST_ROUTES = 5000


class Flows:
    """Counts of publishes by their exchange and the queues that they were routed to."""

    def __init__(self) -> None:
        self._seen = 0
        self._latest: object = None
        """The latest record seen, by which a history that has begun again is told from one that went on."""
        self._published: Counter[str] = Counter()
        self._unrouted: Counter[str] = Counter()
        self._routed: Counter[str] = Counter()

    def counted(self, engine: Engine, state: BrokerState) -> dict[str, int]:
        """The counts so far.

        Keys are `p` and the key of an exchange for what was published to it, `u` and the same for what it
        routed nowhere, `r`, the length of the exchange's key, this key and the queue's key for what was
        routed to the queue.
        """
        history = state.published
        if history is None:
            return {}
        with engine.look():
            count = history.count
            new = min(max(0, count - self._seen), len(history), _MOST_AT_ONCE)
            records = list(islice(reversed(history), new + 1))
            began_again = count < self._seen or (len(records) > new and records[-1] is not self._latest)
            if began_again and self._seen:
                self._forget()
                new = min(count, len(history), _MOST_AT_ONCE)
                records = list(islice(reversed(history), new))
        self._seen = count
        if records:
            self._latest = records[0]
        del records[new:]
        for virtual_host, message, outcome in records:
            exchange = key_of(virtual_host, message.exchange)
            self._published[exchange] += 1
            if not outcome.queues and not outcome.delays:
                self._unrouted[exchange] += 1
            for queue in outcome.queues:
                route = f"{len(exchange)} {exchange}{key_of(virtual_host, queue.name)}"
                if route in self._routed or len(self._routed) < _MOST_ROUTES:
                    self._routed[route] += 1
        return {
            **{f"p{key}": count for key, count in self._published.items()},
            **{f"u{key}": count for key, count in self._unrouted.items()},
            **{f"r{key}": count for key, count in self._routed.items()},
        }

    def _forget(self) -> None:
        """The broker was reset."""
        self._seen = 0
        self._published.clear()
        self._unrouted.clear()
        self._routed.clear()
