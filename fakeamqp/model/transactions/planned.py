"""A message that will be published when its transaction is committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from fakeamqp.model.queues import Queue
from fakeamqp.model.queues.queue import NOT_PERSISTENT

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["PlannedPublish"]


class PlannedPublish:
    """One publish of a transaction. The message was routed when it was received.

    Args:
        virtual_host: where it is published.
        message: as `Router.plan` returns it.
        plan: its queues, as `Router.plan` returns them.
        immediate: as in `VirtualHost.publish`.
        mandatory: as in `VirtualHost.publish`.
        on_outcome: called with the outcome once it is known; not called after a restart.
    """

    __slots__ = ("_immediate", "_mandatory", "_on_outcome", "_plan", "_promised", "_virtual_host", "message")

    def __init__(
        self,
        virtual_host: VirtualHost,
        message: Message,
        plan: Outcome,
        *,
        immediate: bool = False,
        mandatory: bool = False,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> None:
        virtual_host.state.memory.hold(message)
        self.message: Message = message
        self._virtual_host = virtual_host
        self._plan = plan
        self._immediate = immediate
        self._mandatory = mandatory
        self._on_outcome = on_outcome
        self._promised = False

    @property
    def queues(self) -> tuple[Queue, ...]:
        """The queues that it goes to, without those deleted meanwhile."""
        return tuple(queue for queue in self._plan.queues if not queue.deleted)

    def __call__(self) -> bool:
        """Publish it.

        Returns:
            False if a full queue refused it.
        """
        self.message.secured = True
        branches = self._virtual_host.branches
        branches.promised = self.message if self._promised else None
        try:
            outcome = self._virtual_host.offer(
                self.message,
                replace(self._plan, queues=self.queues),
                immediate=self._immediate,
                mandatory=self._mandatory,
            )
        finally:
            branches.promised = None
        if self._on_outcome is not None:
            self._on_outcome(outcome)
        return not any(queue.fails_commits for queue in outcome.refused)

    def promise(self) -> None:
        """From now on no queue may refuse the message, and no crash may lose it if it is persistent."""
        self._promised = True
        self.message.secured = True

    def keep_persistent(self, *, crash: bool = False) -> bool:
        """After a restart: publish the message only to queues that would have kept it.

        Returns:
            False if there are none.
        """
        self._on_outcome = None
        queues = self.queues
        kept = tuple(each for each in queues if self.message.persistent or _replicated(each))
        for queue in queues:
            if queue not in kept:
                self._virtual_host.message_outcomes.dropped(
                    self.message,
                    queue.name,
                    "crash" if crash else "restart",
                    NOT_PERSISTENT.format(how="crashed" if crash else "restarted"),
                )
        self._plan = replace(self._plan, queues=kept)
        return bool(kept)


def _replicated(queue: object) -> bool:
    """Whether it is a queue that keeps transient messages as well."""
    return isinstance(queue, Queue) and queue.replicated
