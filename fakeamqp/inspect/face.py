"""`Inspection`: all of `Broker` that looks and expects, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fakeamqp.inspect.connections import ChannelView, ConnectionView, connection_views
from fakeamqp.inspect.ends import dead_lettered_views, dropped_views, returned_views
from fakeamqp.inspect.expectations import DEAD_LETTERED, DROPPED, PUBLISHED, RETURNED, Expectation
from fakeamqp.inspect.live import ConnectionHandle, QueueInspector
from fakeamqp.inspect.messages import published_views
from fakeamqp.inspect.policies import policy_views
from fakeamqp.inspect.sessions import session_views
from fakeamqp.inspect.topology import consumer_views, exchange_names, exchange_view, queue_names

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fakeamqp.inspect.ends import (
        DeadLettered,
        DeadLetteredView,
        Dropped,
        DroppedView,
        Returned,
        ReturnedView,
    )
    from fakeamqp.inspect.expectations import (
        Kind,
        Wanted,
        WantedDeadLettered,
        WantedDropped,
        WantedReturned,
    )
    from fakeamqp.inspect.explaining import Explanation
    from fakeamqp.inspect.messages import Published, PublishedView
    from fakeamqp.inspect.policies import PolicyView
    from fakeamqp.inspect.sessions import SessionView
    from fakeamqp.inspect.snapshot import Topology
    from fakeamqp.inspect.topology import ConsumerView, ExchangeView
    from fakeamqp.model.state import BrokerState

__all__ = ["Inspection"]

P = ParamSpec("P")
T = TypeVar("T")


class Inspection:
    """What a broker can be asked. Whoever inherits this has `look`, `wait_for` and `wait_until_idle`."""

    def look(self, at: Callable[[BrokerState], Any], /) -> Any:
        """Call `at` with the broker's state while everything stands still, and return what it returns."""
        raise NotImplementedError

    def wait_for(self, predicate: Callable[[BrokerState], object], /, timeout: float = 5.0) -> bool:
        """Wait until `predicate` of the broker's state is true, at most `timeout` seconds; whether it was."""
        raise NotImplementedError

    def wait_until_idle(self, timeout: float = 5.0) -> None:
        """Wait until everything that arrived has been dealt with and everything to be sent is sent."""
        raise NotImplementedError

    async def wait_for_async(
        self, predicate: Callable[[BrokerState], object], /, timeout: float = 5.0
    ) -> bool:
        """`wait_for`, for a coroutine: the event loop goes on meanwhile."""
        return await _aside(self.wait_for, predicate, timeout=timeout)

    async def wait_until_idle_async(self, timeout: float = 5.0) -> None:
        """`wait_until_idle`, for a coroutine: the event loop goes on meanwhile."""
        await _aside(self.wait_until_idle, timeout=timeout)

    # --- what there is --------------------------------------------------------------------------------

    @property
    def virtual_hosts(self) -> tuple[str, ...]:
        """The names of the virtual hosts, in the order they were added."""
        names: tuple[str, ...] = self.look(lambda state: tuple(state.virtual_hosts))
        return names

    def queue(self, name: str, virtual_host: str = "/") -> QueueInspector:
        """A live look at one queue; it need not exist yet."""
        return QueueInspector(self, name, virtual_host)

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of the queues of virtual host "/", in the order they were declared."""
        names: tuple[str, ...] = self.look(lambda state: queue_names(state, "/"))
        return names

    def exchange(self, name: str, virtual_host: str = "/") -> ExchangeView:
        """One exchange and what is bound to it, at this moment.

        Raises:
            NoSuchExchange: there is none; the text names the nearest match.
        """
        view: ExchangeView = self.look(lambda state: exchange_view(state, name, virtual_host))
        return view

    @property
    def exchanges(self) -> tuple[str, ...]:
        """The names of the exchanges of virtual host "/", "" and amq.* included, as they were declared."""
        names: tuple[str, ...] = self.look(lambda state: exchange_names(state, "/"))
        return names

    def topology(
        self,
        virtual_host: str | None = None,
        *,
        counts: bool = False,
        consumers: bool = False,
        predeclared: bool = False,
    ) -> Topology:
        """Exchanges, bindings, queues and policies, as a text that can be compared and as pictures.

        Equal topologies give equal texts, in whatever order they were declared.

        Args:
            virtual_host: the name of one; None for all.
            counts: say how many messages there are.
            consumers: say which consumers there are.
            predeclared: include the exchanges that every virtual host has.

        Raises:
            NoSuchVirtualHost: there is none of this name.
        """
        from fakeamqp.inspect.snapshot import topology

        found: Topology = self.look(
            lambda state: topology(
                state, virtual_host, counts=counts, consumers=consumers, predeclared=predeclared
            )
        )
        return found

    def explain(
        self,
        exchange: str,
        routing_key: str,
        headers: Mapping[str, Any] | None = None,
        *,
        body: bytes | str = b"",
        virtual_host: str = "/",
        mandatory: bool = False,
        **properties: Any,
    ) -> Explanation:
        """Where a message would go now, and why: print it to read it. Nothing is sent, and nothing changes.

        Args:
            exchange: where it would be published; "" is the default exchange.
            routing_key: with what key.
            headers: of the message.
            body: only its size matters.
            virtual_host: where.
            mandatory: whether its publisher wants it back where no queue is there for it.
            properties: further ones, such as `expiration`.

        Raises:
            NoSuchVirtualHost: there is none of this name.
            UnknownProperty: a property is misspelled.
        """
        from fakeamqp.inspect.explaining import explain

        found: Explanation = self.look(
            lambda state: explain(
                state,
                exchange,
                routing_key,
                headers,
                body=body,
                virtual_host=virtual_host,
                mandatory=mandatory,
                **properties,
            )
        )
        return found

    @property
    def policies(self) -> tuple[PolicyView, ...]:
        """The policies of all virtual hosts, then the operator policies, in the order they were first set."""
        views: tuple[PolicyView, ...] = self.look(policy_views)
        return views

    @property
    def connections(self) -> tuple[ConnectionHandle, ...]:
        """The open connections, oldest first."""
        pairs = self.look(lambda state: list(zip(state.connections, connection_views(state), strict=True)))
        return tuple(ConnectionHandle(self, connection, view) for connection, view in pairs)

    @property
    def sessions(self) -> tuple[SessionView, ...]:
        """The sessions of AMQP 0-10, oldest first, those that are kept without a connection among them."""
        views: tuple[SessionView, ...] = self.look(session_views)
        return views

    @property
    def channels(self) -> tuple[ChannelView, ...]:
        """The open channels of all connections, the oldest connection's first; in 0-10 attached sessions."""
        views: tuple[ConnectionView, ...] = self.look(connection_views)
        return tuple(channel for view in views for channel in view.channels)

    @property
    def consumers(self) -> tuple[ConsumerView, ...]:
        """The consumers of all queues of all virtual hosts, queue by queue, in the order they came."""
        views: tuple[ConsumerView, ...] = self.look(consumer_views)
        return views

    # --- what happened to messages ----------------------------------------------------------------------

    @property
    def published(self) -> Published:
        """Everything published, in order: by clients and by `publish`."""
        views: Published = self.look(published_views)
        return views

    @property
    def returned(self) -> Returned:
        """Everything that publishers were sent back (basic.return), in order."""
        views: Returned = self.look(returned_views)
        return views

    @property
    def dead_lettered(self) -> DeadLettered:
        """Everything that died in a queue and went on through a dead-letter exchange, in order.

        What found no way on from there, or no exchange, is in `dropped`.
        """
        views: DeadLettered = self.look(dead_lettered_views)
        return views

    @property
    def dropped(self) -> Dropped:
        """Everything that is gone without a client having dealt with it, in order, each with its reason."""
        views: Dropped = self.look(dropped_views)
        return views

    # --- what a test expects ----------------------------------------------------------------------------

    def expect_published(
        self, *, timeout: float = 5.0, **expected: Unpack[Wanted]
    ) -> tuple[PublishedView, ...]:
        """Wait until what was published fits, and return the messages that do.

        Args:
            timeout: how many seconds to wait for it.
            expected: `exchange`, `routing_key` (a topic pattern), `body`, `headers`, `count` and others; see
                `fakeamqp.inspect.Wanted`.

        Raises:
            NotPublished: nothing fits, or not as many as expected; the text shows the nearest misses.
            BadExpectation: a keyword is misspelled.
        """
        return self._expect(PUBLISHED, timeout, expected)

    async def expect_published_async(
        self, *, timeout: float = 5.0, **expected: Unpack[Wanted]
    ) -> tuple[PublishedView, ...]:
        """`expect_published`, for a coroutine: the event loop goes on meanwhile."""
        return await _aside(self._expect, PUBLISHED, timeout, expected)

    def expect_nothing_published(self, *, timeout: float = 5.0, **expected: Unpack[Wanted]) -> None:
        """Wait until the broker is idle, and fail if any message that was published fits.

        What clients have sent before this is called counts; what they keep to themselves cannot.

        Args:
            timeout: how many seconds to wait for the broker to be idle.
            expected: as for `expect_published`, but for `count`; nothing means any message at all.

        Raises:
            NotPublished: there is one; the text shows it.
            BrokerError: the broker is still busy after `timeout` seconds.
            BadExpectation: a keyword is misspelled, or `count` is given.
        """
        nothing = Expectation.of_nothing(PUBLISHED, expected)
        self.wait_until_idle(timeout)
        self.look(nothing.check_now)

    async def expect_nothing_published_async(
        self, *, timeout: float = 5.0, **expected: Unpack[Wanted]
    ) -> None:
        """`expect_nothing_published`, for a coroutine: the event loop goes on meanwhile."""
        await _aside(self.expect_nothing_published, timeout=timeout, **expected)

    def expect_returned(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedReturned]
    ) -> tuple[ReturnedView, ...]:
        """Wait until what publishers were sent back fits, and return the messages that do.

        Args:
            timeout: how many seconds to wait for it.
            expected: as for `expect_published`, and `reply_code`, `reply_text`.

        Raises:
            NotReturned: nothing fits, or not as many as expected; the text shows the nearest misses.
            BadExpectation: a keyword is misspelled.
        """
        return self._expect(RETURNED, timeout, expected)

    async def expect_returned_async(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedReturned]
    ) -> tuple[ReturnedView, ...]:
        """`expect_returned`, for a coroutine: the event loop goes on meanwhile."""
        return await _aside(self._expect, RETURNED, timeout, expected)

    def expect_dead_lettered(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDeadLettered]
    ) -> tuple[DeadLetteredView, ...]:
        """Wait until what was dead-lettered fits, and return the messages that do.

        Args:
            timeout: how many seconds to wait for it.
            expected: as for `expect_published`, and `queue`, `reason`, `dead_letter_exchange`,
                `dead_letter_routing_key`; see `fakeamqp.inspect.WantedDeadLettered`.

        Raises:
            NotDeadLettered: nothing fits, or not as many as expected; the text shows the nearest misses, and
                what became of such messages instead.
            BadExpectation: a keyword is misspelled.
        """
        return self._expect(DEAD_LETTERED, timeout, expected)

    async def expect_dead_lettered_async(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDeadLettered]
    ) -> tuple[DeadLetteredView, ...]:
        """`expect_dead_lettered`, for a coroutine: the event loop goes on meanwhile."""
        return await _aside(self._expect, DEAD_LETTERED, timeout, expected)

    def expect_dropped(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDropped]
    ) -> tuple[DroppedView, ...]:
        """Wait until what was dropped fits, and return the messages that do.

        Args:
            timeout: how many seconds to wait for it.
            expected: as for `expect_published`, and `queue`, `reason`, `detail`; see
                `fakeamqp.inspect.WantedDropped`.

        Raises:
            NotDropped: nothing fits, or not as many as expected; the text shows the nearest misses, and what
                became of such messages instead.
            BadExpectation: a keyword is misspelled.
        """
        return self._expect(DROPPED, timeout, expected)

    async def expect_dropped_async(
        self, *, timeout: float = 5.0, **expected: Unpack[WantedDropped]
    ) -> tuple[DroppedView, ...]:
        """`expect_dropped`, for a coroutine: the event loop goes on meanwhile."""
        return await _aside(self._expect, DROPPED, timeout, expected)

    def _expect(self, kind: Kind, timeout: float, expected: Any) -> tuple[Any, ...]:
        expectation = Expectation(kind, **expected)
        self.wait_for(expectation.follow(), timeout)
        found: tuple[Any, ...] = self.look(expectation.check_now)
        return found


async def _aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that waits where it holds nobody up."""
    import asyncio
    from functools import partial

    return await asyncio.to_thread(partial(function, *args, **kwargs))
