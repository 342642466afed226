"""Class file: bulk messages, staged before they are sent, in either direction.

`model.staging` keeps what either peer stages; `consumer` delivers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import IllegalArgument, ModelError, ResourceError
from fakeamqp.model.messages.message import identity_of
from fakeamqp.model.messages.staging import Description
from fakeamqp.protocols.amqp_0_10 import consuming, contents
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.contents import FILE, ContentTarget
from fakeamqp.protocols.amqp_0_10.file.consumer import FileConsumer, Files
from fakeamqp.protocols.amqp_0_10.properties import ContentProperties
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.staging import Staged, Upload
    from fakeamqp.model.tap import Settlement
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_10.codec.packed import Command
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["CONTENT_HANDLERS", "HANDLERS"]


# --- consumers ---------------------------------------------------------------------------------------


def qos(session: ServerSession, command: commands.FileQos) -> None:
    """Limit what consumers hold unacknowledged, in this session or on the connection (file.qos/*)."""
    window = consuming.set_window(
        Files.of(session),
        count=command.prefetch_count or 0,
        size=command.prefetch_size or 0,
        for_connection=command.global_,
    )
    session.send(commands.FileQosOk())
    window.resume()


def consume(session: ServerSession, command: commands.FileConsume) -> None:
    """Start a consumer; consume-ok precedes the first delivery, unless the client wants none.

    Raises:
        SessionFault, AccessRefused, NotFound, ResourceLocked: see `consuming.consumable`.
    """
    files = Files.of(session)
    consumer = FileConsumer(files, consuming.consumable(files, command), command)
    consuming.start(consumer, no_ack=consumer.no_ack)
    if not command.nowait:
        session.send(commands.FileConsumeOk(consumer_tag=consumer.tag))
    consumer.subscription.queue.dispatch()


def cancel(session: ServerSession, command: commands.FileCancel) -> None:
    """End a consumer; its deliveries can still be acknowledged (file.cancel/stops).

    Raises:
        NotFound: there is none with this tag.
    """
    files = Files.of(session)
    consumer = consuming.cancel(files, command.consumer_tag or "")
    assert isinstance(consumer, FileConsumer)
    consumer.shut()
    files.withdraw(consumer)
    consumer.end()


# --- staging -----------------------------------------------------------------------------------------


def open_(session: ServerSession, command: commands.FileOpen) -> None:
    """Open a content for staging, and tell the client how much of it the broker has.

    Raises:
        ResourceError: the content is larger than the broker's limit.
        SessionFault: see `Uploads.open`.
    """
    size = command.content_size or 0
    largest = session.personality.largest_message
    if largest and size > largest:
        raise ResourceError(f"content of {size} bytes is larger than configured max size {largest}")
    with _blaming("identifier"):
        staged_size = Files.of(session).uploads.open(command.identifier or "", size)
    session.send(commands.FileOpenOk(staged_size=staged_size))


def open_ok(session: ServerSession, command: commands.FileOpenOk) -> None:
    """The client is ready for one of the broker's contents.

    Raises:
        IllegalState: see `Downloads.opened`.
        SessionFault: the same.
    """
    with _blaming("staged_size", IllegalArgument):
        Files.of(session).downloads.opened(command.staged_size or 0)


@contextmanager
def _blaming(field: str, kind: type[ModelError] = ModelError) -> Iterator[None]:
    """Turn errors of this kind into errors of a field."""
    try:
        yield
    except kind as problem:
        raise SessionFault(problem.condition, problem.text, field) from problem


def stage(
    session: ServerSession, command: commands.FileStage, header: bytes | None, body: bytes | None
) -> None:
    """Stage a content, or the rest of one; its last properties count.

    Raises:
        SegmentError: there are no file-properties (file.stage/content).
        IllegalState, IllegalArgument: see `Uploads.stage`.
    """
    _publishing(session)
    properties = ContentProperties.decode(FILE.encoding, header)
    Files.of(session).uploads.stage(Description(properties, FILE.encoding, header or b""), body or b"")


def bare_stage(session: ServerSession, command: commands.FileStage) -> None:
    """A stage without content."""
    stage(session, command, None, None)


def _publishing(session: ServerSession) -> None:
    if session.connection is not None:
        session.connection.publish_received()


# --- publishing --------------------------------------------------------------------------------------


def publish(session: ServerSession, command: commands.FilePublish) -> None:
    """Publish what is staged under an identifier, as soon as it is complete (file.publish/staged).

    Raises:
        NotFound: there is no such exchange.
        AccessRefused: it is internal, or the user may not write to it.
        SessionFault: nothing was opened under the identifier.
    """
    _publishing(session)
    target = ContentTarget.of(command)
    contents.authorise(session, target)
    uploads = Files.of(session).uploads
    with _blaming("identifier"):
        upload = uploads.find(command.identifier or "")
    transaction = session.transaction
    if transaction is None or upload.staged.complete:
        uploads.take(upload, partial(_publish, session, target, transaction))
    else:
        transaction.publish(partial(_commit, session, target, upload))


def _publish(
    session: ServerSession, target: ContentTarget, transaction: Transaction | None, staged: Staged
) -> None:
    message = staged.message(target.exchange, target.routing_key, identity_of(session.connection))
    contents.note_publish(session, message)
    contents.publish(session, FILE, target, message, transaction)


def _commit(session: ServerSession, target: ContentTarget, upload: Upload) -> bool:
    """A transactional publish, at commit, that preceded the end of its content."""
    Files.of(session).uploads.take(upload, partial(_publish, session, target, None))
    return True


# --- settling ----------------------------------------------------------------------------------------


def ack(session: ServerSession, command: commands.FileAck) -> None:
    """Acknowledge files: the client has processed them (file.ack/semantics).

    Raises:
        SessionFault: see `Files.take`.
    """
    deliveries = Files.of(session).take(command.delivery_tag or 0, multiple=bool(command.multiple))
    _settle(session, accept_all, "acked", deliveries)


def reject(session: ServerSession, command: commands.FileReject) -> None:
    """Reject a file: another consumer gets it, or it is dead-lettered or dropped (file.reject/*).

    Raises:
        SessionFault: see `Files.take`.
    """
    deliveries = Files.of(session).take(command.delivery_tag or 0)
    if command.requeue:
        requeue = partial(release_all, ending="failed", avoid=session)  # file.reject/requeue-requeue-strategy
        _settle(session, requeue, "requeued", deliveries)
    else:
        _settle(session, reject_all, "rejected", deliveries)


def _settle(
    session: ServerSession,
    act: Callable[[Sequence[Delivery]], None],
    event: Settlement,
    deliveries: Sequence[Delivery],
) -> None:
    """Settle now, or when the session's transaction is committed (file/transactions)."""
    if session.transaction is not None:
        session.transaction.settle(partial(_carry_out, session, act, event), deliveries)
    else:
        _carry_out(session, act, event, deliveries)


def _carry_out(
    session: ServerSession,
    act: Callable[[Sequence[Delivery]], None],
    event: Settlement,
    deliveries: Sequence[Delivery],
) -> None:
    Files.told(deliveries)
    session.note_settled(event, deliveries)
    act(deliveries)


HANDLERS: dict[type[Command], Callable[[ServerSession, Any], None]] = {
    commands.FileQos: qos,
    commands.FileConsume: consume,
    commands.FileCancel: cancel,
    commands.FileOpen: open_,
    commands.FileOpenOk: open_ok,
    commands.FileStage: bare_stage,
    commands.FilePublish: publish,
    commands.FileAck: ack,
    commands.FileReject: reject,
}

CONTENT_HANDLERS: dict[type[Command], Callable[[ServerSession, Any, bytes | None, bytes | None], None]] = {
    commands.FileStage: stage,
}
