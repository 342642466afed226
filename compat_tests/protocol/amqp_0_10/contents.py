"""What a 0-10 client does with files and streams: stage and publish them, and take what is delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from compat_tests.scripted.amqp_0_10 import Arrived, Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

C = TypeVar("C", bound=Command)


@dataclass(frozen=True)
class File:
    """A file that was staged and delivered."""

    deliver: x.FileDeliver
    properties: structs.FileProperties
    body: bytes

    @property
    def tag(self) -> int:
        assert self.deliver.delivery_tag is not None
        return self.deliver.delivery_tag


@dataclass(frozen=True)
class Packet:
    """A message of a stream as it was delivered. `id` is that of the command."""

    deliver: x.StreamDeliver
    properties: structs.StreamProperties
    body: bytes
    id: int


def next_command(session: Session, kind: type[C]) -> tuple[C, Arrived]:
    """The next thing that has come to a session, but for bookkeeping, which must be this command."""
    skip(session)
    got = session.client.take()
    assert isinstance(got.what, kind), f"expected {kind.__name__}, got {got}"
    assert got.channel == session.channel, f"expected channel {session.channel}, got {got}"
    return got.what, got


def skip(session: Session) -> None:
    """Forget the bookkeeping of all sessions."""
    inbox = session.client.inbox
    bookkeeping = (c.SessionCompleted, c.SessionCommandPoint, c.SessionKnownCompleted)
    inbox[:] = [each for each in inbox if not isinstance(each.what, bookkeeping)]


def attach_again(server: Server, session: Session, *, at: int, has: int = 0) -> Session:
    """Attach a session that has lost its transport to a new one.

    Args:
        server: the broker.
        session: as it was before.
        at: the command that the client goes on with.
        has: how many commands of the broker's the client has; it gets the others again.
    """
    client = server.open(max_frame_size=session.client.max_frame_size)
    client.call(c.SessionAttach(name=session.name), c.SessionAttached)
    client.inbox.clear()
    again = Session(client, session.name, 0)
    again.point(at)
    client.send(c.SessionExpected(commands=SequenceSet.of(has)))
    return again


def file_properties(header: bytes | None) -> structs.FileProperties:
    """The only struct of a header segment."""
    (found,) = structs.decode_header(header or b"")
    assert isinstance(found, structs.FileProperties)
    return found


def stream_properties(header: bytes | None) -> structs.StreamProperties:
    """The only struct of a header segment."""
    (found,) = structs.decode_header(header or b"")
    assert isinstance(found, structs.StreamProperties)
    return found


# --- files -------------------------------------------------------------------------------------------


def open_file(session: Session, size: int, identifier: str = "f") -> int:
    """Ask to stage a content; answers with how much of it the broker has."""
    session.send(x.FileOpen(identifier=identifier, content_size=size))
    ok, _ = next_command(session, x.FileOpenOk)
    return ok.staged_size or 0


def send_stage(session: Session, body: bytes, **properties: Any) -> None:
    """Send the rest of a content."""
    session.send(x.FileStage(), header=[structs.FileProperties(**properties)], body=body)


def stage_file(session: Session, body: bytes, identifier: str = "f", **properties: Any) -> None:
    """Stage a whole content."""
    session.call(x.FileOpen(identifier=identifier, content_size=len(body)))
    offset = take_open_ok(session)
    session.call(x.FileStage(), header=[structs.FileProperties(**properties)], body=body[offset:])


def take_open_ok(session: Session) -> int:
    """Take the answer to a file.open from among what has come; it says how much the broker has."""
    inbox = session.client.inbox
    (found,) = [each for each in inbox if isinstance(each.what, x.FileOpenOk)]
    inbox.remove(found)
    return found.what.staged_size or 0


def publish_file(
    session: Session,
    body: bytes,
    key: str = "q",
    *,
    exchange: str | None = None,
    identifier: str = "f",
    mandatory: bool = False,
    immediate: bool = False,
    **properties: Any,
) -> None:
    """Stage a whole content, and publish it."""
    stage_file(session, body, identifier, **properties)
    session.call(
        x.FilePublish(
            exchange=exchange,
            routing_key=key,
            mandatory=mandatory,
            immediate=immediate,
            identifier=identifier,
        )
    )


def consume_files(session: Session, queue: str = "q", tag: str = "t", **arguments: Any) -> None:
    """Start a consumer; files that follow stay in the inbox."""
    session.send(x.FileConsume(queue=queue, consumer_tag=tag, **arguments))
    ok, _ = next_command(session, x.FileConsumeOk)
    assert ok.consumer_tag == tag


def take_file(session: Session, have: bytes = b"") -> File:
    """Have the next file staged, of which `have` is there, and take it."""
    opening, _ = next_command(session, x.FileOpen)
    session.send(x.FileOpenOk(staged_size=len(have)))
    _, staged = next_command(session, x.FileStage)
    deliver, _ = next_command(session, x.FileDeliver)
    assert deliver.identifier == opening.identifier
    body = have + (staged.body or b"")
    assert len(body) == (opening.content_size or 0)
    return File(deliver, file_properties(staged.header), body)


def take_files(session: Session) -> list[File]:
    """All files that come; nothing else may, but for bookkeeping."""
    found = []
    while skip(session) or session.client.inbox:
        found.append(take_file(session))
    return found


def ack_file(session: Session, tag: int, *, multiple: bool = False) -> None:
    """Acknowledge; files that follow stay in the inbox."""
    session.call(x.FileAck(delivery_tag=tag, multiple=multiple))


# --- streams -----------------------------------------------------------------------------------------


def publish_packet(
    session: Session,
    body: bytes,
    key: str = "q",
    *,
    exchange: str | None = None,
    mandatory: bool = False,
    immediate: bool = False,
    **properties: Any,
) -> None:
    """Publish a message of a stream."""
    command = x.StreamPublish(exchange=exchange, routing_key=key, mandatory=mandatory, immediate=immediate)
    session.call(command, header=[structs.StreamProperties(**properties)], body=body)


def consume_stream(session: Session, queue: str = "q", tag: str = "t", **arguments: Any) -> None:
    """Start a consumer; what follows stays in the inbox."""
    session.send(x.StreamConsume(queue=queue, consumer_tag=tag, **arguments))
    ok, _ = next_command(session, x.StreamConsumeOk)
    assert ok.consumer_tag == tag


def take_packets(session: Session) -> list[Packet]:
    """All messages of streams that have come; nothing else may have, but for bookkeeping."""
    found = []
    while skip(session) or session.client.inbox:
        deliver, got = next_command(session, x.StreamDeliver)
        assert got.id is not None
        found.append(Packet(deliver, stream_properties(got.header), got.body or b"", got.id))
    return found


def bodies(session: Session) -> list[bytes]:
    """Those of all messages of streams that have come."""
    return [packet.body for packet in take_packets(session)]
