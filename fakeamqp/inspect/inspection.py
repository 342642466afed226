"""`Inspection`: the part of `Broker` that reads its state, waits for it and asserts, and changes nothing.

Each method imports the views that it returns, so that a broker costs no view that is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fakeamqp.blocking import blocking, blocking_wait
from fakeamqp.errors import WaitTimeout, check_timeout
from fakeamqp.lazy import raise_if_renamed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fakeamqp.inspect.collection import Collection
    from fakeamqp.inspect.expectations import (
        Expectation,
        Wanted,
        WantedDeadLettered,
        WantedDropped,
        WantedReturned,
    )
    from fakeamqp.inspect.handles import ConnectionHandle, ConsumerHandle, ExchangeHandle, QueueHandle
    from fakeamqp.inspect.messages import (
        DeadLettered,
        DeadLetteredView,
        Dropped,
        DroppedView,
        Published,
        PublishedView,
        Returned,
        ReturnedView,
    )
    from fakeamqp.inspect.predicates import Predicate
    from fakeamqp.inspect.topology import (
        ChannelView,
        ConsumerView,
        ExchangeView,
        PolicyView,
        QueueView,
        SessionView,
    )
    from fakeamqp.model.state import BrokerState

T = TypeVar("T")

_OFTEN = 0.02
"""Seconds between looks at a predicate that may be about more than the broker."""


class StateReader:
    """Calls functions of a broker's state inside its engine, which is one of `fakeamqp.runtime`."""

    def __init__(self, engine: Any, state: BrokerState) -> None:
        self._engine = engine
        self._state = state

    def read(self, question: Callable[[BrokerState], T]) -> T:
        with self._engine:
            return question(self._state)

    def change(self, act: Callable[[BrokerState], T]) -> T:
        """Return what `act` returns, once the operations that it began have ended."""
        with self._engine, self._engine.in_slices() as between:
            result = act(self._state)
            between()
            return result

    def wait_for(
        self, predicate: Callable[[BrokerState], object], timeout: float = 5.0, every: float | None = None
    ) -> bool:
        """Wait until `predicate` is true for the broker's state; return whether it became true in time.

        It is evaluated now, after every turn of the event loop, and after `every` seconds without a turn.
        """
        met: bool = self._engine.wait_until(lambda: predicate(self._state), timeout, every)
        return met

    async def wait_for_async(
        self, predicate: Callable[[BrokerState], object], timeout: float = 5.0, every: float | None = None
    ) -> bool:
        """`wait_for` for coroutines: it does not block the event loop of the caller."""
        met: bool = await self._engine.wait_until_async(lambda: predicate(self._state), timeout, every)
        return met


class MessageInspection:
    """What a test can ask about clients and their messages. A subclass sets `_reader`."""

    _reader: StateReader

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

    @blocking_wait
    def wait_for(self, predicate: Callable[[], T], /, timeout: float = 5.0) -> T:
        """Wait until `predicate()` is true, and return what it returned.

        Args:
            predicate: a function such as `lambda: not broker.connections`. It is called at once, after
                every turn of the broker, every 20 milliseconds, so that it may also ask the app, at the end,
                and once more for the text of an error: after a turn in the broker's thread. It must not wait
                for a client, since the broker waits for it.
            timeout: in real seconds. 0 asks: the predicate is called once, and what it returns is returned,
                whether true or not.

        Raises:
            WaitTimeout: it did not become true in time. The text shows the predicate with the values in it,
                what the broker holds, and the latest events.
            BadExpectation: it is not a function, or returns what is always true, such as a coroutine.
        """
        watched = _watched(predicate, timeout)
        if timeout == 0:
            return self._reader.read(watched)
        met = self._reader.wait_for(watched, timeout, _OFTEN)
        return self._result(watched, met, timeout, "wait_for.aio")

    @blocking
    def wait_until_idle(self, timeout: float = 5.0) -> None:
        """Wait until the broker has processed all input and sent all output, and no timer is due."""
        raise NotImplementedError

    @wait_for.coroutine
    async def _wait_for_coroutine(self, predicate: Callable[[], T], /, timeout: float = 5.0) -> T:
        """`wait_for` for coroutines: it does not block the event loop, and ends at once if it is cancelled.

        The thread of the broker calls the predicate, so it must not use what belongs to the event loop, such
        as `asyncio.current_task()`; with `runtime="asyncio"` it is called in the event loop.
        """
        watched = _watched(predicate, timeout)
        if timeout == 0:
            return self._reader.read(watched)
        met = await self._reader.wait_for_async(watched, timeout, _OFTEN)
        return self._result(watched, met, timeout, "")

    def _result(self, watched: Predicate[T], met: bool, timeout: float, awaitable: str) -> T:
        if met:
            return watched.result
        from fakeamqp.inspect.hints import span, wait_report

        def text(state: BrokerState) -> str:
            lines = [
                f"waited {span(state, timeout)} for {watched}, which returned {watched.results}",
                *watched.values(),
            ]
            return "\n".join(lines) + wait_report(state, awaitable)

        raise WaitTimeout(self._reader.read(text))

    @wait_until_idle.coroutine
    async def _wait_until_idle_coroutine(self, timeout: float = 5.0) -> None:
        raise NotImplementedError

    # --- clients --------------------------------------------------------------------------------------

    @property
    def connections(self) -> Collection[ConnectionHandle]:
        """The open connections, oldest first."""
        from fakeamqp.inspect.handles import connection_handles

        return connection_handles(self._reader)

    @property
    def channels(self) -> Collection[ChannelView]:
        """The open channels (AMQP 0-10: attached sessions) of all connections, oldest connection first."""
        from fakeamqp.inspect.topology import channel_views

        return self._reader.read(channel_views)

    # --- what happened to messages ----------------------------------------------------------------------

    @property
    def published(self) -> Published:
        """Everything that clients have published, in order; `with_own` has the test's own as well."""
        from fakeamqp.inspect.messages import published_views

        return self._reader.read(published_views)

    @property
    def returned(self) -> Returned:
        """Everything returned to publishers (basic.return), in order."""
        from fakeamqp.inspect.messages import Returned, views

        return self._reader.read(lambda state: views(Returned, state))

    # --- assertions -------------------------------------------------------------------------------------

    @blocking
    def expect_published(
        self, *, timeout: float = 5.0, include_own: bool = False, **expected: Unpack[Wanted]
    ) -> tuple[PublishedView, ...]:
        """Wait until clients have published matching messages, and return them.

        Args:
            timeout: in real seconds.
            include_own: also count what the test itself published, with `publish` or from a service.
            expected: `exchange`, `routing_key` (a topic pattern), `body`, `json` (a part of the body),
                `headers`, `count` and others; see `fakeamqp.inspect.Wanted`.

        Raises:
            NotPublished: no message matches, or not as many as expected; the text shows the nearest misses.
            BadExpectation: a keyword is misspelled.
        """
        kind = "all_published" if include_own else "published"
        return self._expect(kind, timeout, expected)

    @expect_published.coroutine
    async def _expect_published_coroutine(
        self, *, timeout: float = 5.0, include_own: bool = False, **expected: Unpack[Wanted]
    ) -> tuple[PublishedView, ...]:
        kind = "all_published" if include_own else "published"
        return await self._expect_async(kind, timeout, expected)

    @blocking
    def expect_nothing_published(
        self, *, timeout: float = 5.0, include_own: bool = False, **expected: Unpack[Wanted]
    ) -> None:
        """Wait until the broker is idle, and fail if a client has published a matching message.

        Messages that clients have sent before the call count; messages they still buffer cannot.

        Args:
            timeout: how many real seconds to wait for the broker to be idle.
            include_own: also count what the test itself published, with `publish` or from a service.
            expected: as for `expect_published`, but without `count`; no keyword means any message at all.

        Raises:
            NotPublished: such a message was published; the text shows it.
            BrokerError: the broker is still busy after `timeout` seconds.
            BadExpectation: a keyword is misspelled, or `count` is given.
        """
        nothing = _nothing(include_own, expected)
        self.wait_until_idle(timeout)
        self._reader.read(nothing.check_now)

    @expect_nothing_published.coroutine
    async def _expect_nothing_published_coroutine(
        self, *, timeout: float = 5.0, include_own: bool = False, **expected: Unpack[Wanted]
    ) -> None:
        nothing = _nothing(include_own, expected)
        await self.wait_until_idle.aio(timeout)
        self._reader.read(nothing.check_now)

    @blocking
    def expect_returned(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedReturned]
    ) -> tuple[ReturnedView, ...]:
        """Wait until matching messages have been returned to their publishers, and return their views.

        Args:
            timeout: in real seconds.
            expected: as for `expect_published`, and `reply_code`, `reply_text`.

        Raises:
            NotReturned: no message matches, or not as many as expected; the text shows the nearest misses.
            BadExpectation: a keyword is misspelled.
        """
        return self._expect("returned", timeout, expected)

    @expect_returned.coroutine
    async def _expect_returned_coroutine(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedReturned]
    ) -> tuple[ReturnedView, ...]:
        return await self._expect_async("returned", timeout, expected)

    def _expect(self, kind: str, timeout: float, expected: Any) -> tuple[Any, ...]:
        expectation = _expectation(kind, expected)
        self._reader.wait_for(expectation.follow(), timeout)
        return self._reader.read(lambda state: expectation.check_now(state, waited=timeout > 0))

    async def _expect_async(self, kind: str, timeout: float, expected: Any) -> tuple[Any, ...]:
        expectation = _expectation(kind, expected)
        await self._reader.wait_for_async(expectation.follow(), timeout)
        return self._reader.read(expectation.check_now)


class Inspection(MessageInspection):
    """What a test can ask a broker: see also the base class."""

    # --- topology -------------------------------------------------------------------------------------

    def queue(self, name: str, virtual_host: str = "/") -> QueueHandle:
        """A handle of one queue, which need not exist yet. Its attributes are read anew at each access."""
        from fakeamqp.inspect.handles import QueueHandle

        return QueueHandle(self._reader, name, virtual_host)

    def exchange(self, name: str, virtual_host: str = "/") -> ExchangeHandle:
        """A handle of one exchange, which need not exist yet. Its attributes are read anew at each access."""
        from fakeamqp.inspect.handles import ExchangeHandle

        return ExchangeHandle(self._reader, name, virtual_host)

    def consumer(self, tag: str, virtual_host: str = "/") -> ConsumerHandle:
        """A handle of the consumer with a tag, which need not exist yet. Its attributes are read anew."""
        from fakeamqp.inspect.handles import ConsumerHandle

        return ConsumerHandle(self._reader, tag, virtual_host)

    @property
    def queues(self) -> Collection[QueueView]:
        """The queues, in the order they were declared, one virtual host after the other."""
        from fakeamqp.inspect.topology import queue_views

        return self._reader.read(queue_views)

    @property
    def exchanges(self) -> Collection[ExchangeView]:
        """The exchanges, predeclared ones included, in the order they were declared."""
        from fakeamqp.inspect.topology import exchange_views

        return self._reader.read(exchange_views)

    @property
    def consumers(self) -> Collection[ConsumerView]:
        """The consumers, queue by queue, in the order they started."""
        from fakeamqp.inspect.topology import consumer_views

        return self._reader.read(consumer_views)

    @property
    def policies(self) -> Collection[PolicyView]:
        """The policies, then the operator policies, each in the order they were first set."""
        from fakeamqp.inspect.topology import policy_views

        return self._reader.read(policy_views)

    @property
    def sessions(self) -> Collection[SessionView]:
        """The sessions of AMQP 0-10, oldest first, including those that are kept without a connection."""
        from fakeamqp.inspect.topology import session_collection

        return self._reader.read(session_collection)

    @property
    def dead_lettered(self) -> DeadLettered:
        """Everything that a dead-letter exchange routed to at least one queue, in order.

        Dead letters without a route, or without a dead-letter exchange, are in `dropped`.
        """
        from fakeamqp.inspect.messages import DeadLettered, views

        return self._reader.read(lambda state: views(DeadLettered, state))

    @property
    def dropped(self) -> Dropped:
        """Everything that is gone and that no client has settled, in order, each with its reason."""
        from fakeamqp.inspect.messages import Dropped, views

        return self._reader.read(lambda state: views(Dropped, state))

    @blocking
    def expect_dead_lettered(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDeadLettered]
    ) -> tuple[DeadLetteredView, ...]:
        """Wait until matching messages have been dead-lettered, and return their views.

        Args:
            timeout: in real seconds.
            expected: as for `expect_published`, and `queue`, `reason`, `dead_letter_exchange`,
                `dead_letter_routing_key`; see `fakeamqp.inspect.WantedDeadLettered`.

        Raises:
            NotDeadLettered: no message matches, or not as many as expected; the text shows the nearest
                misses, and what happened to such messages instead.
            BadExpectation: a keyword is misspelled.
        """
        return self._expect("dead_lettered", timeout, expected)

    @expect_dead_lettered.coroutine
    async def _expect_dead_lettered_coroutine(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDeadLettered]
    ) -> tuple[DeadLetteredView, ...]:
        return await self._expect_async("dead_lettered", timeout, expected)

    @blocking
    def expect_dropped(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDropped]
    ) -> tuple[DroppedView, ...]:
        """Wait until matching messages have been dropped, and return their views.

        Args:
            timeout: in real seconds.
            expected: as for `expect_published`, and `queue`, `reason`, `detail`; see
                `fakeamqp.inspect.WantedDropped`.

        Raises:
            NotDropped: no message matches, or not as many as expected; the text shows the nearest misses, and
                what happened to such messages instead.
            BadExpectation: a keyword is misspelled.
        """
        return self._expect("dropped", timeout, expected)

    @expect_dropped.coroutine
    async def _expect_dropped_coroutine(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDropped]
    ) -> tuple[DroppedView, ...]:
        return await self._expect_async("dropped", timeout, expected)


def _watched(predicate: Callable[[], T], timeout: float) -> Predicate[T]:
    from fakeamqp.inspect.predicates import Predicate

    watched = Predicate(predicate)
    check_timeout(timeout)
    return watched


def _expectation(kind: str, expected: Mapping[str, Any]) -> Expectation:
    from fakeamqp.inspect.expectations import KINDS, Expectation

    return Expectation(KINDS[kind], **expected)


def _nothing(include_own: bool, expected: Mapping[str, Any]) -> Expectation:
    """The expectation that no publish matches."""
    if expected.get("count") is not None:
        from fakeamqp.inspect.errors import BadExpectation

        raise BadExpectation(f"count={expected['count']!r}: an expectation of nothing has no count")
    return _expectation("all_published" if include_own else "published", {**expected, "count": 0})
