"""References: bodies that come in pieces under a name of the sender's, for transfers to name.

A reference lives from open or resume to close (message.open/scope), and only then its transfers are
published and answered, with all that was appended by then (message.close/01). At a checkpoint what there is
is kept beyond the channel, for whoever of the same user resumes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import ContentTooLarge, NotFound, PreconditionFailed, ResourceError
from fakeamqp.model.extensions import Extension
from fakeamqp.model.interrupted import Interrupted, InterruptedMessages

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Checkpoints", "Reference", "References"]

_MOST = 1000


class Checkpoints(Extension):
    """The checkpoints of references in one virtual host, by user and identifier, until the broker restarts."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self.messages: InterruptedMessages[Interrupted] = InterruptedMessages(virtual_host)

    def restarted(self) -> None:
        """See `Extension`."""
        self.messages.clear()


class Reference:
    """A body as far as it has come.

    Attributes:
        octets: what was appended.
        waiting: what is to be done with the body once the reference is closed.
        identifiers: those of its checkpoints.
    """

    __slots__ = ("identifiers", "octets", "waiting")

    def __init__(self) -> None:
        self.octets = bytearray()
        self.waiting: list[Callable[[bytes], None]] = []
        self.identifiers: dict[str, None] = {}


class References:
    """The references of the client that are open on one channel.

    Args:
        user: whose checkpoints they are.
        checkpoints: what is kept of them.
        largest: bytes that all of them together may have; 0 is no limit.
    """

    __slots__ = ("_checkpoints", "_largest", "_open", "_size", "_user")

    def __init__(self, user: str, checkpoints: InterruptedMessages[Interrupted], largest: int) -> None:
        self._user = user
        self._checkpoints = checkpoints
        self._largest = largest
        self._open: dict[bytes, Reference] = {}
        self._size = 0

    def open(self, name: bytes) -> Reference:
        """Begin a body.

        Raises:
            PreconditionFailed: the reference is open (message.open/reference-01).
            ResourceError: too many are.
        """
        if name in self._open:
            raise PreconditionFailed(f"reference {_shown(name)} is open")
        if len(self._open) >= _MOST:
            raise ResourceError(f"more than {_MOST} references are open", ends_connection=False)
        reference = self._open[name] = Reference()
        return reference

    def find(self, name: bytes) -> Reference:
        """An open reference.

        Raises:
            NotFound: it is not (message.append/reference-01 and its kin).
        """
        reference = self._open.get(name)
        if reference is None:
            raise NotFound(f"reference {_shown(name)} is not open")
        return reference

    def append(self, name: bytes, octets: bytes) -> None:
        """Add to a body (message.append/appends).

        Raises:
            NotFound: the reference is not open.
            ContentTooLarge: with this, all that is under way is more than the broker takes.
        """
        reference = self.find(name)
        size = self._size + len(octets)
        if self._largest and size > self._largest:
            text = f"references of {size} bytes are more than configured max size {self._largest}"
            raise ContentTooLarge(text)
        reference.octets += octets
        self._size = size

    def close(self, name: bytes) -> Reference:
        """End a body; what was kept of it is forgotten.

        Raises:
            NotFound: the reference is not open (message.close/reference-01).
        """
        reference = self.find(name)
        del self._open[name]
        self._size -= len(reference.octets)
        for identifier in reference.identifiers:
            self._checkpoints.take(self._user, identifier)
        return reference

    def checkpoint(self, name: bytes, identifier: str) -> None:
        """Keep what there is (message.checkpoint/saves).

        Raises:
            NotFound: the reference is not open (message.checkpoint/reference-01).
        """
        reference = self.find(name)
        reference.identifiers[identifier] = None
        self._checkpoints.keep(self._user, identifier, Interrupted(None, bytes(reference.octets)))

    def resume(self, name: bytes, identifier: str) -> int:
        """Go on from the last checkpoint under this identifier; it stays until the reference is closed.

        Returns:
            How many bytes there are: 0 where nothing is known of it (message.resume/offset).

        Raises:
            PreconditionFailed: the reference is open (message.resume/reference-01).
            ResourceError: too many are.
            ContentTooLarge: with this, all that is under way is more than the broker takes.
        """
        reference = self.open(name)
        kept = self._checkpoints.take(self._user, identifier)
        reference.identifiers[identifier] = None
        if kept is not None:
            self._checkpoints.keep(self._user, identifier, kept)
            self.append(name, bytes(kept.octets))
        return len(reference.octets)


def _shown(name: bytes) -> str:
    return repr(name[:40].decode("utf-8", "replace"))
