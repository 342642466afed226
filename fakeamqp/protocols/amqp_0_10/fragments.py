"""Messages in several transfers, and messages that continue those of an earlier session.

Fragments of one message go to one destination, one after the other; whole messages and all other commands may
come between them. The first fragment has the properties of the message. The message is complete with the last
one, and belongs to the transaction of that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import ContentTooLarge, IllegalArgument, IllegalState
from fakeamqp.model.messages.unfinished import Interrupted
from fakeamqp.protocols.amqp_0_10.codec import commands, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession
    from fakeamqp.protocols.amqp_0_10.transfers import Heading, TransferTarget

__all__ = ["Fragments", "Whole", "resume"]


class Whole(NamedTuple):
    """A message whose fragments are complete."""

    heading: Heading
    body: bytes
    ids: SequenceSet
    """Those of the transfers that brought it."""


class _Parts:
    """A message as far as it is received. `heading` is that of its first fragment."""

    __slots__ = ("body", "header", "heading", "ids")

    def __init__(self, heading: Heading, header: bytes | None) -> None:
        self.heading = heading
        self.header = header
        self.body = bytearray()
        self.ids = SequenceSet()


class Fragments:
    """The incomplete messages of a session, by destination."""

    __slots__ = ("_parts", "_session")

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._parts: dict[str, _Parts] = {}

    def add(
        self, target: TransferTarget, heading: Heading, header: bytes | None, body: bytes
    ) -> Whole | None:
        """Take a fragment. Returns the message that it completes, if it does.

        Raises:
            IllegalState: it is a first one, and another message is under way to the same destination; or a
                further one, and none is.
            IllegalArgument: it has not the size that is said of it.
            ContentTooLarge: what has come is larger than the broker takes.
        """
        fragment = heading.fragment
        assert fragment is not None
        name = target.name
        parts = self._parts.get(name)
        if fragment.first and parts is not None:
            raise IllegalState(f"a message to '{name}' begins before the last fragment of the one before it")
        if not fragment.first and parts is None:
            raise IllegalState(f"a further fragment has come of a message to '{name}' whose first never came")
        if fragment.fragment_size is not None and fragment.fragment_size != len(body):
            raise IllegalArgument(f"a fragment of {fragment.fragment_size} bytes has {len(body)}")
        if parts is None:
            parts = self._parts[name] = _Parts(heading, header)
        self._check_size(len(body))
        parts.body += body
        parts.ids.add(self._session.incoming.current)
        if not fragment.last:
            return None
        del self._parts[name]
        return Whole(parts.heading, bytes(parts.body), parts.ids)

    def _check_size(self, more: int) -> None:
        """Count all incomplete messages: a session may begin one to each of many exchanges."""
        largest = self._session.personality.largest_message
        size = more + sum(len(each.body) for each in self._parts.values())
        if largest and size > largest:
            raise ContentTooLarge(f"fragments of {size} bytes are more than configured max size {largest}")

    def resume(self, target: TransferTarget, resume_id: str) -> int:
        """Continue the message of this id. Returns how many bytes of it are received.

        Raises:
            IllegalState: another message to this destination is under way.
        """
        session = self._session
        name = target.name
        for destination, parts in self._parts.items():
            if parts.heading.resume_id == resume_id and destination == name:
                return len(parts.body)
        if name in self._parts:
            raise IllegalState(f"another message to '{name}' is under way")
        message = session.virtual_host.interrupted.take(session.user.name, resume_id)
        if message is None:
            return 0  # message.resume/resume-id-unknown-resume-id
        parts = self._parts[name] = _Parts(session.publisher.read(target, message.header), message.header)
        parts.body += message.octets
        return len(parts.body)

    def keep(self) -> None:
        """Keep what the sender of an ended session may resume (message.delivery-properties/resume-id)."""
        session = self._session
        broken_off = self._broken_off()
        for parts in (*self._parts.values(), *broken_off):
            heading = parts.heading
            if heading.resume_id is not None:
                ttl = None if heading.resume_ttl is None else heading.resume_ttl / 1000
                message = Interrupted(parts.header, bytes(parts.body))
                session.virtual_host.interrupted.keep(session.user.name, heading.resume_id, message, ttl)
        self._parts.clear()

    def _broken_off(self) -> list[_Parts]:
        """The received part of an incomplete transfer, unless it continues a kept message."""
        assembly = self._session.incoming.broken_off
        if assembly is None or assembly.body is None:
            return []
        publisher = self._session.publisher
        try:
            command, _ = commands.decode(assembly.first)
            if not isinstance(command, commands.MessageTransfer):
                return []
            target = publisher.aim(command.destination)
            heading = publisher.read(target, assembly.header)
        except FakeAMQPError:
            return []  # It could not have been published either.
        further = heading.fragment is not None and not heading.fragment.first
        parts = self._parts.get(target.name) if further else _Parts(heading, assembly.header)
        if parts is not None:
            parts.body += assembly.body
        return [] if parts is None or further else [parts]


def resume(session: ServerSession, command: commands.MessageResume) -> structs.MessageResumeResult:
    """Tell how much of an interrupted message the broker has; fragments follow (message.resume/offset).

    Raises:
        NotFound: there is no such destination (message.resume/destination-destination-not-found).
        AccessRefused: the user may not publish there.
        IllegalState: another message to this destination is under way.
    """
    target = session.publisher.aim(command.destination)
    return structs.MessageResumeResult(
        offset=session.publisher.fragments.resume(target, command.resume_id or "")
    )
