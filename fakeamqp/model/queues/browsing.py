"""The browsing subscriptions of a classic queue, and the messages that each has still to see.

Theory of operation. Each browser has its own list of the messages ahead of it, in the queue's order: what
waits or is held by a client when the subscription begins, and then each new message. The browser is shown a
message once, if the message waits when its turn comes; messages that have gone by then, or that a client
holds, are skipped for good. So a message that comes back to the queue is shown to the browsers that had not
reached its place, to no other, and to none twice (the documents leave that open).

Messages that leave the queue stay in these lists, because removing them would cost each consumer for each
browser. They are swept out when a list is twice as long as necessary: that costs a constant for each message.

Browsers are shown a new message before a consumer takes it, as far as their credit allows. So while there are
browsers every message is stored first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fakeamqp.model.queues.queue import Deadline
from fakeamqp.model.queues.waiting import IndexedFifo

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.queues.classic import ClassicQueue
    from fakeamqp.model.queues.waiting import Fifo, PriorityFifo, QueuedMessage

__all__ = ["Browsing"]


_SHORT = 64
"""Lists up to this length are not swept."""


class Browsing:
    """The browsers of one queue. While it exists, the queue's ready list is watched."""

    __slots__ = ("_browsers", "_queue", "_ready")

    def __init__(self, queue: ClassicQueue) -> None:
        assert not isinstance(queue.ready, IndexedFifo)
        self._queue = queue
        self._ready = queue.ready = IndexedFifo(queue.ready)
        self._browsers: dict[Subscription, _Browser] = {}

    def __bool__(self) -> bool:
        return bool(self._browsers)

    def __contains__(self, subscription: Subscription) -> bool:
        return subscription in self._browsers

    def begin(self, subscription: Subscription) -> None:
        queue = self._queue
        held = (delivery.queued for delivery in queue.unacked)
        browser = _Browser(subscription, queue.empty_ready(), self._ready, held)
        self._browsers[subscription] = browser
        browser.deadline = Deadline(queue.virtual_host, lambda: self._show(browser))

    def end(self, subscription: Subscription) -> None:
        self._browsers.pop(subscription).deadline.stop()

    def end_all(self) -> None:
        """Remove all browsers, and have the queue's ready list watched no longer."""
        for subscription in list(self._browsers):
            self.end(subscription)
        self._queue.ready = self._ready.plain

    def show_new(self, queued: QueuedMessage) -> None:
        for browser in list(self._browsers.values()):
            browser.add(queued, self._ready, self._queue.unacked)
            self._show(browser)

    def show_all(self) -> None:
        """Show all browsers what is ahead of them: a message may have gone that exceeded their credit."""
        for browser in list(self._browsers.values()):
            self._show(browser)

    def _show(self, browser: _Browser) -> None:
        """Show a browser what is ahead of it, as far as its credit allows."""
        queue = self._queue
        subscription = browser.subscription
        while subscription.active and not subscription.paused:
            queued = browser.next(queue.waits)
            if queued is None:
                return
            if not subscription.admits(queued.message):
                if queued.expires_at is not None:
                    label = f"browser '{subscription.tag}' continues in q '{queue.name}'"
                    browser.deadline.set(queued.expires_at, label)
                return
            browser.passed()
            queue.show(queued, subscription)


class _Browser:
    """One browsing subscription.

    `deadline` is set for the expiry of the message ahead if the browser has no credit for it. `ahead` is an
    empty list of the kind that the queue has; `waiting` and `held` are the messages that go into it.
    """

    __slots__ = ("_ahead", "_longest", "deadline", "subscription")
    deadline: Deadline

    def __init__(
        self,
        subscription: Subscription,
        ahead: Fifo | PriorityFifo,
        waiting: Iterable[QueuedMessage],
        held: Iterable[QueuedMessage],
    ) -> None:
        self.subscription = subscription
        self._ahead = ahead
        for queued in waiting:
            ahead.append(queued)
        ahead.put_back(held)
        self._longest = max(_SHORT, 2 * len(ahead))

    def add(self, queued: QueuedMessage, waiting: IndexedFifo, unacked: Iterable[Delivery]) -> None:
        ahead = self._ahead
        ahead.append(queued)
        if len(ahead) > self._longest:
            held = {delivery.queued for delivery in unacked}
            for each in ahead.clear():  # In order: so they can go in again as if they were new.
                if each in waiting or each in held:
                    ahead.append(each)
            self._longest = max(_SHORT, 2 * len(ahead))

    def next(self, waits: Callable[[QueuedMessage], bool]) -> QueuedMessage | None:
        """The next message that waits and suits the subscription; all others are skipped."""
        subscription = self.subscription
        while (queued := self._ahead.head()) is not None:
            if waits(queued) and subscription.suits(queued.message):
                return queued
            self._ahead.pop()
        return None

    def passed(self) -> None:
        self._ahead.pop()
