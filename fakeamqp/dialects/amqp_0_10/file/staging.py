"""Contents that the client stages: file.open, open-ok, file.stage, and file.publish at any time from open on.

A stage says nothing of where it belongs: it is the answer to the oldest open-ok that had none. What a client
does not finish can be gone on with under the same identifier, in this session or, when it has ended, in
another one of the same user (file.open/identifier).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_10.replies import SessionFault
from fakeamqp.model.staging import Staged
from fakeamqp.wire.amqp_0_10 import commands

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_10.sessions.session_end import SessionEnd
    from fakeamqp.wire.amqp_0_10.assembly import Assembly

__all__ = ["Staging", "Upload"]

_MOST = 1000


class Upload:
    """A content that the client stages, and who waits for all of it to be there."""

    __slots__ = ("staged", "waiting")

    def __init__(self, staged: Staged) -> None:
        self.staged = staged
        self.waiting: list[Callable[[Staged], None]] = []


class Staging:
    """What the client of one session stages."""

    __slots__ = ("_due", "_session", "_uploads")

    def __init__(self, session: SessionEnd) -> None:
        self._session = session
        self._uploads: dict[str, Upload] = {}
        """By identifier, until it is published."""
        self._due: deque[Upload] = deque()
        """What was opened and has to be staged next, in order."""

    def open(self, identifier: str, size: int) -> int:
        """Begin, or go on with, a content of so many octets.

        Returns:
            How many of them are there already. A content of another size is another one: none are.

        Raises:
            SessionFault: too many are neither staged nor published.
        """
        upload = self._uploads.get(identifier)
        if upload is None:
            if len(self._uploads) >= _MOST:
                text = f"more than {_MOST} contents are staged and not published"
                raise SessionFault("resource-limit-exceeded", text, "identifier")
            upload = Upload(self._left_behind(identifier) or Staged(identifier, size))
            self._uploads[identifier] = upload
        elif upload in self._due:
            self._due.remove(upload)
        if upload.staged.size != size:
            upload.staged = Staged(identifier, size)
        self._due.append(upload)
        return len(upload.staged.octets)

    def _left_behind(self, identifier: str) -> Staged | None:
        session = self._session
        return session.virtual_host.staged.take(session.user.name, identifier)

    def stage(self, header: bytes, body: bytes) -> None:
        """The rest of a content has come, from where open-ok said (file.open-ok/staged-size-behavior).

        Raises:
            SessionFault: nothing was opened; or it is more or less than was said
                (file.open/content-size-content-size). Too little is kept, for whoever goes on with it.
        """
        if not self._due:
            raise SessionFault("illegal-state", "file.stage has come without file.open")
        upload = self._due.popleft()
        staged = upload.staged
        size = len(staged.octets) + len(body)
        if size > staged.size:
            del self._uploads[staged.identifier]
        else:
            staged.header = header
            staged.octets += body
        if size != staged.size:
            what = f"content '{staged.identifier}'"
            raise SessionFault(
                "illegal-argument", f"{what} has {size} octets, and {staged.size} were announced"
            )
        waiting, upload.waiting = upload.waiting, []
        if waiting:
            del self._uploads[staged.identifier]
        for perform in waiting:
            perform(staged)

    def find(self, identifier: str) -> Upload:
        """The content that was opened under this identifier, whether all of it is there or not.

        Raises:
            SessionFault: none was.
        """
        upload = self._uploads.get(identifier)
        if upload is None:
            left = self._left_behind(identifier)
            if left is None:
                raise SessionFault("not-found", f"no content '{identifier}' was staged", "identifier")
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

    def given_up(self, assembly: Assembly) -> None:
        """The rest of this command will not come: if it is a stage, its content can be gone on with."""
        if _is_stage(assembly.first) and self._due:
            staged, body = self._due.popleft().staged, assembly.body or b""
            if len(staged.octets) + len(body) <= staged.size:
                staged.octets += body

    def end(self) -> None:
        """The session has ended: another one of the same user can go on with what it has staged."""
        session = self._session
        for upload in self._uploads.values():
            session.virtual_host.staged.keep(session.user.name, upload.staged.identifier, upload.staged)
        self._uploads.clear()
        self._due.clear()


def _is_stage(command: bytes) -> bool:
    """Whether this is the command segment of file.stage."""
    return command[:2] == bytes((commands.FileStage.CLASS, commands.FileStage.CODE))
