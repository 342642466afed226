"""Where one client meets one fault: a broker, what is wrong with it, and what the driver asks on the way."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pika

from compat_tests.faults.observation import Observation, name_of
from compat_tests.faults.proxied_node import ProxiedNode
from compat_tests.faults.scenario import LATE, QUEUE, Scenario
from fakeamqp import Broker, WaitTimeout
from fakeamqp.faults import Faults, Handle, Rule
from fakeamqp.trace import ConnectionEvent

__all__ = ["Bench"]

_GRACE = 0.06
"""Seconds of quiet after which nothing more is expected, at the usual patience."""
_STUCK = 4
"""How many times its patience a client may neither finish a step nor ask."""
_SECONDS = 20


class Bench:
    """A `Stage`. Faults are arranged with `rule`, `at` and what follows them.

    Args:
        broker: it must run; or a proxy in front of a RabbitMQ.
        scenario: what the client will do.
        patience: seconds that a step of it may take.
        batch: how many messages the client publishes before it waits for a confirm.
        spare: how many connections it makes on purpose, beside the first.
        late: how the late message is published, where it is not plain text.
    """

    def __init__(
        self,
        broker: Broker | ProxiedNode,
        scenario: Scenario,
        *,
        patience: float,
        batch: int = 1,
        spare: int = 0,
        late: Mapping[str, Any] | None = None,
    ) -> None:
        self.broker, self.scenario, self.patience, self.batch, self.spare = (
            broker,
            scenario,
            patience,
            batch,
            spare,
        )
        self._late_message = late or {"body": LATE, "content_type": "text/plain", "content_encoding": "utf-8"}
        self.host, self.port = broker.host, broker.port
        self.moments: list[str] = []
        self.handles: list[Handle] = []
        self.deeds = 0
        self.late_when: Callable[[], object] = lambda: True
        """When the late message is to be published, once the consumer waits."""
        self._late = False
        self._doings: dict[str, list[Callable[[], object]]] = {}
        self._undoings: list[Callable[[], object]] = []
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()
        self._quiet_since: float | None = None
        self._progress = time.monotonic()
        self._stuck = False
        self._spawn(self._watch)

    # --- how faults are arranged ------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """The broker's."""
        return self.broker.faults

    def rule(self, handle: Any) -> Any:
        """Note a fault; it must happen."""
        self.handles.append(handle)
        return handle

    def at(self, moment: str, do: Callable[[], object]) -> None:
        """Do something when the client gets so far, in its own thread."""
        self._doings.setdefault(moment, []).append(do)

    def undo(self, do: Callable[[], object]) -> None:
        """Do something before the next client comes."""
        self._undoings.append(do)

    def done(self) -> None:
        """Something that is no fault of the room's has been done to the client."""
        self.deeds += 1

    def later(self, share: float, do: Callable[[], object]) -> None:
        """Do something after this share of the patience."""

        def wait() -> None:
            if not self._ending.wait(share * self.patience):
                do()

        self._spawn(wait)

    def releasing(self, rule: Rule, batch: int, **how: Any) -> None:
        """Release what a rule holds whenever it is so many."""

        def release() -> None:
            while not self._ending.is_set():
                # The condition is about what is held, so waiting for hits only saves turns.
                with suppress(WaitTimeout):
                    self.broker.wait_for(lambda: rule.held >= batch, 0.1)
                    rule.release(**how)

        self._spawn(release)

    def _watch(self) -> None:
        """End the connections of a client that does not come back."""
        while not self._ending.wait(0.1):
            if time.monotonic() - self._progress > _STUCK * self.patience:
                self._stuck = True
                self.faults.network.disconnect()
                self._progress = time.monotonic()

    def _spawn(self, do: Callable[[], object]) -> None:
        thread = threading.Thread(target=do, daemon=True)
        self._threads.append(thread)
        thread.start()

    # --- what drivers ask -------------------------------------------------------------------------------

    def reached(self, moment: str) -> None:
        """See `Stage`."""
        self._progress = time.monotonic()
        first = moment not in self.moments
        self.moments.append(moment)
        self._quiet_since = None
        if first:
            for do in self._doings.get(moment, ()):
                do()

    def over(self) -> bool:
        """See `Stage`: everything has been taken, and for a moment nothing more has come of it."""
        self._progress = time.monotonic()
        if "waiting" in self.moments and not self._late and self._consumers() and self.late_when():
            self._late = True
            self.broker.publish(routing_key=QUEUE, **self._late_message)
        if not self._settled():
            self._quiet_since = None
            return False
        now = time.monotonic()
        if self._quiet_since is None:
            self._quiet_since = now
        return now - self._quiet_since >= _GRACE * self.patience

    def wait_for_change(self, seconds: float) -> None:
        """See `Stage`: until everything has been taken, or something has come again."""
        settled = self._settled()
        with suppress(WaitTimeout):
            self.broker.wait_for(lambda: self._settled() != settled, seconds)

    def _settled(self) -> bool:
        waiting = "waiting" in self.moments
        if (waiting and not self._late) or not self.broker.queue(QUEUE).exists:
            return False
        queue = self.broker.queue(QUEUE)
        return queue.ready == 0 and queue.unacked == 0

    def _consumers(self) -> int:
        return len(self.broker.queue(QUEUE).consumers) if self.broker.queue(QUEUE).exists else 0

    @property
    def consuming(self) -> str:
        """The short name of the connection that the client consumes on, if nothing happens before."""
        return f"c{1 + self.spare}"

    @property
    def opened(self) -> int:
        """How many connections have been opened so far."""
        return sum(
            isinstance(event, ConnectionEvent) and event.event == "opened"
            for event in self.broker.trace.events
        )

    @property
    def again(self) -> bool:
        """Whether the client has opened more connections than it would without a fault."""
        return self.opened > self._usual

    @property
    def _usual(self) -> int:
        return 1 + (self.spare if "published" in self.moments else 0)

    # --- afterwards -------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the bench's own threads."""
        self._ending.set()
        for thread in self._threads:
            thread.join(_SECONDS)

    def finish(self, seen: Observation) -> None:
        """End the fault, and complete the observation by what only the broker knows."""
        self.stop()
        if self._stuck:
            seen.tell("stuck until the test ends its connection")
        seen.connections = self.opened - self._usual + 1
        for handle in self.handles:
            handle.remove()
        self.faults.clear()
        for undo in self._undoings:
            undo()
        self.broker.wait_for(lambda: not self.broker.connections, _SECONDS)
        if self.broker.queue(QUEUE).exists:
            seen.left = [name_of(message.body) for message in self.broker.queue(QUEUE).messages]

    def check(self, *, happened: bool = True) -> None:
        """The fault has happened, and the broker is as good as new for the next client."""
        unused = [str(handle) for handle in self.handles if not handle.used]
        assert not unused, f"never happened: {unused}"
        assert bool(self.handles or self.deeds) == happened
        parameters = pika.ConnectionParameters(
            self.host, self.port, socket_timeout=_SECONDS, blocked_connection_timeout=_SECONDS
        )
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare(QUEUE, durable=True)
            channel.queue_purge(QUEUE)
            for number in range(3):
                channel.basic_publish("", QUEUE, b"%d" % number)
            got: list[bytes] = []
            for method, _properties, body in channel.consume(QUEUE, inactivity_timeout=_SECONDS):
                assert method is not None, f"only {got} came"
                got.append(body)
                channel.basic_ack(method.delivery_tag)
                if len(got) == 3:
                    break
            channel.cancel()
            assert got == [b"0", b"1", b"2"]
            assert channel.queue_delete(QUEUE).method.message_count == 0
        assert self.broker.admin.failures == ()

    @property
    def story(self) -> str:
        """The trace, for a failed test."""
        return str(Counter(self.moments)) + "\n" + "\n".join(map(str, self.broker.trace.events))
