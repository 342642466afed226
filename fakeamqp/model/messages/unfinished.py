"""Messages of which a part has come before their session ended, kept for who of the same user resumes them.

Which message it is, and for how long it is worth keeping, the sender has said (resume-id, resume-ttl, or
the identifier of what is staged).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from fakeamqp.model.memory import Charge

if TYPE_CHECKING:
    from fakeamqp.model.memory import Memory
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Interrupted", "InterruptedMessages"]

_MOST_MESSAGES = 100
_MOST_OCTETS = 256 * 1024 * 1024


class Interrupted:
    """A message as far as it has come: `header` is its header segment, `octets` its body's beginning."""

    __slots__ = ("charge", "header", "octets", "timer")

    def __init__(self, header: bytes | None, octets: bytes | bytearray) -> None:
        self.header: bytes | None = header
        self.octets: bytes | bytearray = octets
        self.timer: Timer | None = None
        self.charge: Charge | None = None

    def weigh(self, memory: Memory) -> None:
        """Charge the memory with what has come, for as long as this is kept."""
        if self.charge is None:
            self.charge = Charge(memory.unfinished, len(self.octets))
        else:
            self.charge.change(len(self.octets))


M = TypeVar("M", bound=Interrupted)


class InterruptedMessages(Generic[M]):
    """What ended sessions have left behind in one virtual host, by user and what the sender calls it.

    The latest hundred of at most 256 MiB together are kept, until the broker restarts.
    """

    __slots__ = ("_kept", "_octets", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._kept: dict[tuple[str, str], M] = {}
        self._octets = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, user: str, resume_id: str, message: M, ttl: float | None = None) -> None:
        """Keep this in place of what there is under the same id: for `ttl` seconds, or for as long as may be.

        Sources: message.delivery-properties/resume-id, message.delivery-properties/resume-ttl.
        """
        self.take(user, resume_id)
        if not message.octets:
            return
        message.weigh(self._virtual_host.state.memory)
        self._kept[user, resume_id] = message
        self._octets += len(message.octets)
        if ttl is not None:
            label = f"interrupted message {resume_id!r} is forgotten"
            message.timer = self._virtual_host.call_later(ttl, lambda: self._forget(user, resume_id), label)
        while len(self._kept) > _MOST_MESSAGES or self._octets > _MOST_OCTETS:
            self.take(*next(iter(self._kept)))

    def _forget(self, user: str, resume_id: str) -> None:
        self.take(user, resume_id)

    def take(self, user: str, resume_id: str) -> M | None:
        """Take out what there is; None where there is nothing."""
        message = self._kept.pop((user, resume_id), None)
        if message is not None:
            self._octets -= len(message.octets)
            if message.timer is not None:
                message.timer.cancel()
        return message

    def clear(self) -> None:
        """Forget everything."""
        for user, resume_id in list(self._kept):
            self.take(user, resume_id)
