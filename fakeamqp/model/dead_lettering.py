"""The way of dead letters: from the queue a message died in to its dead-letter exchange, and on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.model.dead_letter import dead_lettered, is_cycle

if TYPE_CHECKING:
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import DeathReason, Queue
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeadLettering"]


class DeadLettering:
    """Passes on what dies in the queues of one virtual host."""

    __slots__ = ("_held", "_virtual_host", "_waiting")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._waiting: list[tuple[Message, DeathReason]] = []
        self._held = False

    def died(self, queue: Queue, message: Message, reason: DeathReason, failures: int | None = None) -> None:
        """A message died in `queue`: pass it to the queue's dead-letter exchange, or drop it.

        `failures` says how often clients failed to deal with it there, where the queue counts that.
        """
        virtual_host = self._virtual_host
        tap = virtual_host.state.tap
        target = queue.options.dead_letter_exchange
        if tap is not None:
            event = "dropped" if target is None else "dead-lettered"
            tap.model(event, message=message, queue=queue.name, reason=reason)
        if target is None or target not in virtual_host.exchanges:
            return
        dead = dead_lettered(queue, message, reason, virtual_host.state.clock.time(), failures)
        self._waiting.append((dead, reason))
        # A full queue passes a message on at once, to one that may be full as well, and so on: such chains
        # may be longer than the stack is deep, so what dies meanwhile waits for the outermost call.
        if len(self._waiting) == 1 and not self._held:
            self._bury_all()

    def hold(self) -> bool:
        """Let what dies from now on wait for `release`; False where it waits already."""
        if self._held or self._waiting:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Undo `hold`, where it said True."""
        self._held = False
        self._bury_all()

    def _bury_all(self) -> None:
        try:
            for each in self._waiting:
                self._bury(*each)
        finally:
            self._waiting.clear()

    def _bury(self, dead: Message, reason: DeathReason) -> None:
        for queue in self._virtual_host.routing.route(dead).queues:
            if reason == "rejected" or not is_cycle(queue.name, dead):
                queue.bury(dead)
            elif self._virtual_host.state.tap is not None:
                self._virtual_host.state.tap.model(
                    "dropped", message=dead, queue=queue.name, reason="dead-letter cycle"
                )
