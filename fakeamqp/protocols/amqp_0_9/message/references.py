"""References: message bodies that arrive in pieces, under a name that the sender chooses.

A reference exists from open or resume to close (message.open/scope). Its transfers are published and answered
when it is closed, with all pieces appended by then (message.close/01). A checkpoint keeps the current body
after the channel has closed, so that the same user can resume it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import ContentTooLarge, NotFound, PreconditionFailed, ResourceError
from fakeamqp.model.extensions import Extension
from fakeamqp.model.messages.message import UnfinishedMessage, UnfinishedMessages

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Checkpoints", "Reference", "References"]

_MOST = 1000


class Checkpoints(Extension):
    """The checkpoints in one virtual host, by user and identifier, until the broker restarts."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self.messages: UnfinishedMessages[UnfinishedMessage] = UnfinishedMessages(virtual_host)

    def restarted(self) -> None:
        self.messages.clear()


class Reference:
    """An open reference, with the current body.

    Attributes:
        octets: the current body.
        waiting: called with the body when the reference is closed.
        identifiers: the identifiers of its checkpoints.
    """

    __slots__ = ("identifiers", "octets", "waiting")

    def __init__(self) -> None:
        self.octets: bytearray = bytearray()
        self.waiting: list[Callable[[bytes], None]] = []
        self.identifiers: dict[str, None] = {}


class References:
    """The client's open references on one channel.

    Args:
        user: the owner of the checkpoints.
        checkpoints: the checkpoints of the virtual host.
        largest: the limit of bytes of all references together; 0 is no limit.
    """

    __slots__ = ("_checkpoints", "_largest", "_open", "_size", "_user")

    def __init__(self, user: str, checkpoints: UnfinishedMessages[UnfinishedMessage], largest: int) -> None:
        self._user = user
        self._checkpoints = checkpoints
        self._largest = largest
        self._open: dict[bytes, Reference] = {}
        self._size = 0

    def open(self, name: bytes) -> Reference:
        """Open a reference.

        Raises:
            PreconditionFailed: the reference is open already (message.open/reference-01).
            ResourceError: too many references are open.
        """
        if name in self._open:
            raise PreconditionFailed(f"reference {_shown(name)} is open")
        if len(self._open) >= _MOST:
            raise ResourceError(f"more than {_MOST} references are open", ends_connection=False)
        reference = self._open[name] = Reference()
        return reference

    def find(self, name: bytes) -> Reference:
        """Return an open reference.

        Raises:
            NotFound: the reference is not open (message.append/reference-01 and similar rules).
        """
        reference = self._open.get(name)
        if reference is None:
            raise NotFound(f"reference {_shown(name)} is not open")
        return reference

    def append(self, name: bytes, octets: bytes) -> None:
        """Append to a body (message.append/appends).

        Raises:
            NotFound: the reference is not open.
            ContentTooLarge: all references together would exceed the limit.
        """
        reference = self.find(name)
        size = self._size + len(octets)
        if self._largest and size > self._largest:
            text = f"open references of {size} bytes exceed configured max size {self._largest}"
            raise ContentTooLarge(text)
        reference.octets += octets
        self._size = size

    def close(self, name: bytes) -> Reference:
        """Close a reference, drop its checkpoints, and return it.

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
        """Keep the current body (message.checkpoint/saves).

        Raises:
            NotFound: the reference is not open (message.checkpoint/reference-01).
        """
        reference = self.find(name)
        reference.identifiers[identifier] = None
        self._checkpoints.keep(self._user, identifier, UnfinishedMessage(None, bytes(reference.octets)))

    def resume(self, name: bytes, identifier: str) -> int:
        """Open a reference with the body of the last checkpoint with this identifier.

        The checkpoint is kept until the reference is closed.

        Returns:
            The size of the body in bytes; 0 without a checkpoint (message.resume/offset).

        Raises:
            PreconditionFailed: the reference is open already (message.resume/reference-01).
            ResourceError: too many references are open.
            ContentTooLarge: all references together would exceed the limit.
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
