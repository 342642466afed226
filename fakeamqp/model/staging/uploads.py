"""Contents that a client stages, and publishes at any time from open on.

What it does not finish can be gone on with under the same identifier: by whoever has opened it, or, when that
session or channel has ended, by another one of the same user (`VirtualHost.staged`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.model.errors import IllegalArgument, IllegalState, NotFound, ResourceError
from fakeamqp.model.staging.staged import Staged

if TYPE_CHECKING:
    from fakeamqp.model.staging.staged import Description
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Upload", "Uploads"]

_MOST = 1000


class Upload:
    """A content that a client stages, and who waits for all of it to be there."""

    __slots__ = ("staged", "waiting")

    def __init__(self, staged: Staged) -> None:
        self.staged = staged
        self.waiting: list[Callable[[Staged], None]] = []


class Uploads:
    """What is staged in one session or channel, by this user."""

    __slots__ = ("_due", "_uploads", "_user", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost, user: str) -> None:
        self._virtual_host = virtual_host
        self._user = user
        self._uploads: dict[str, Upload] = {}
        """By identifier, until it is published."""
        self._due: deque[Upload] = deque()
        """What was opened and has to be staged next, in order."""

    def open(self, identifier: str, size: int) -> int:
        """Begin, or go on with, a content of so many bytes.

        Returns:
            How many of them are there already. A content of another size is another one: none are.

        Raises:
            ResourceError: too many are neither staged nor published.
        """
        upload = self._uploads.get(identifier)
        if upload is None:
            if len(self._uploads) >= _MOST:
                raise ResourceError(f"more than {_MOST} contents are staged and not published")
            upload = Upload(self._left_behind(identifier) or Staged(identifier, size))
            self._uploads[identifier] = upload
        elif upload in self._due:
            self._due.remove(upload)
        if upload.staged.size != size:
            upload.staged = Staged(identifier, size)
        self._due.append(upload)
        return len(upload.staged.octets)

    def _left_behind(self, identifier: str) -> Staged | None:
        return self._virtual_host.staged.take(self._user, identifier)

    def stage(self, description: Description, body: bytes) -> None:
        """The rest of a content has come, from where the answer to open said.

        Source: file.open-ok/staged-size-behavior.

        Raises:
            IllegalState: nothing was opened.
            IllegalArgument: it is more or less than was said. Too little is kept, for who goes on with it.
        """
        if not self._due:
            raise IllegalState("file.stage has come without file.open")
        upload = self._due.popleft()
        staged = upload.staged
        size = len(staged.octets) + len(body)
        if size > staged.size:
            del self._uploads[staged.identifier]
        else:
            staged.description = description
            staged.octets += body
        if size != staged.size:
            what = f"content '{staged.identifier}'"
            raise IllegalArgument(f"{what} has {size} bytes, and {staged.size} were announced")
        waiting, upload.waiting = upload.waiting, []
        if waiting:
            del self._uploads[staged.identifier]
        for perform in waiting:
            perform(staged)

    def find(self, identifier: str) -> Upload:
        """The content that was opened under this identifier, whether all of it is there or not.

        Raises:
            NotFound: none was.
        """
        upload = self._uploads.get(identifier)
        if upload is None:
            left = self._left_behind(identifier)
            if left is None:
                raise NotFound(f"no content '{identifier}' was staged")
            upload = self._uploads[identifier] = Upload(left)
        return upload

    def take(self, upload: Upload, perform: Callable[[Staged], None]) -> None:
        """Do something with a content as soon as all of it is there; it is staged no longer after that."""
        staged = upload.staged
        if not staged.complete:
            upload.waiting.append(perform)
            return
        if self._uploads.get(staged.identifier) is upload and upload not in self._due:
            del self._uploads[staged.identifier]
        perform(staged)

    def broken_off(self, octets: bytes) -> None:
        """The rest of a stage, of which these have come, will not come: its content can be gone on with."""
        if self._due:
            staged = self._due.popleft().staged
            if len(staged.octets) + len(octets) <= staged.size:
                staged.octets += octets

    def end(self) -> None:
        """The session or channel has ended: another one of the same user can go on with what it staged."""
        for upload in self._uploads.values():
            self._virtual_host.staged.keep(self._user, upload.staged.identifier, upload.staged)
        self._uploads.clear()
        self._due.clear()
