"""Contents that a client stages. It may publish them at any time after open, even before all of it was sent.

An incomplete content can be continued under the same identifier: by the session or channel that has opened
it, or, when that one has ended, by another one of the same user (`VirtualHost.staged`).
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
    """A content that a client stages, and the functions to call when it is complete."""

    __slots__ = ("staged", "waiting")

    def __init__(self, staged: Staged) -> None:
        self.staged: Staged = staged
        self.waiting: list[Callable[[Staged], None]] = []


class Uploads:
    """The contents staged in one session or channel of a user."""

    __slots__ = ("_due", "_uploads", "_user", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost, user: str) -> None:
        self._virtual_host = virtual_host
        self._user = user
        self._uploads: dict[str, Upload] = {}
        """The contents by identifier, until they are published."""
        self._due: deque[Upload] = deque()
        """The opened contents without a stage, in order."""

    def open(self, identifier: str, size: int) -> int:
        """Start or continue a content of so many bytes.

        Returns:
            How many bytes were received already: 0 if the size has changed, since it is a new content then.

        Raises:
            ResourceError: too many contents were opened and not published.
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
        """The rest of a content was received, from the offset that the answer to open gave.

        Source: file.open-ok/staged-size-behavior.

        Raises:
            IllegalState: no content is open.
            IllegalArgument: the size is not the announced one. A content that is too short is kept, so that
                it can be continued.
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
            staged.weigh(self._virtual_host.state.memory)
        if size != staged.size:
            what = f"content '{staged.identifier}'"
            raise IllegalArgument(f"{what} has {size} bytes, and {staged.size} were announced")
        waiting, upload.waiting = upload.waiting, []
        if waiting:
            del self._uploads[staged.identifier]
        for perform in waiting:
            perform(staged)

    def find(self, identifier: str) -> Upload:
        """The content that was opened under this identifier, complete or not.

        Raises:
            NotFound: there is none.
        """
        upload = self._uploads.get(identifier)
        if upload is None:
            left = self._left_behind(identifier)
            if left is None:
                raise NotFound(f"no content '{identifier}' was staged")
            upload = self._uploads[identifier] = Upload(left)
        return upload

    def take(self, upload: Upload, perform: Callable[[Staged], None]) -> None:
        """Call `perform` with a content as soon as it is complete, and remove it from the staged contents."""
        staged = upload.staged
        if not staged.complete:
            upload.waiting.append(perform)
            return
        if self._uploads.get(staged.identifier) is upload and upload not in self._due:
            del self._uploads[staged.identifier]
        perform(staged)

    def broken_off(self, octets: bytes) -> None:
        """A stage was interrupted after these octets: keep them, so that its content can be continued."""
        if self._due:
            staged = self._due.popleft().staged
            if len(staged.octets) + len(octets) <= staged.size:
                staged.octets += octets
                staged.weigh(self._virtual_host.state.memory)

    def end(self) -> None:
        """The session or channel has ended: another one of the same user can continue its contents."""
        for upload in self._uploads.values():
            self._virtual_host.staged.keep(self._user, upload.staged.identifier, upload.staged)
        self._uploads.clear()
        self._due.clear()
