"""The methods of class file. The staged contents of both peers are in `model.staging`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.errors import ContentTooLarge, IllegalArgument, IllegalState, PreconditionFailed
from fakeamqp.model.messages.staging import Description
from fakeamqp.protocols.amqp_0_9 import consuming, contents
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.message_properties import FileMessageProperties
from fakeamqp.protocols.amqp_0_9.contents import FILE
from fakeamqp.protocols.amqp_0_9.file.channel_state import FileConsumer, Files
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.messages.staging import Staged, Upload
    from fakeamqp.model.tap import Settlement
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, CompleteContent
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["HANDLERS"]


# --- consumers ---------------------------------------------------------------------------------------


def qos(channel: Amqp09Channel, method: m.FileQos) -> None:
    """Set the prefetch limit of the channel, or of the whole connection (file.qos/*)."""
    window = consuming.set_window(
        channel.class_state(Files),
        count=method.prefetch_count,
        size=method.prefetch_size,
        for_connection=method.global_,
    )
    channel.send(m.FileQosOk())
    window.resume()


def consume(channel: Amqp09Channel, method: m.FileConsume) -> None:
    """Start a consumer; send consume-ok before the first file.open, unless no_wait is set.

    Raises:
        ProtocolError, NotAllowed, AccessRefused, NotFound, ResourceLocked: see `consuming.consumable`.
    """
    files = channel.class_state(Files)
    queue, tag = consuming.consumable(files, method)
    consuming.start(FileConsumer(files, queue, tag, method), no_ack=method.no_ack)
    if not method.no_wait:
        channel.send(m.FileConsumeOk(consumer_tag=tag))
    queue.dispatch()


def cancel(channel: Amqp09Channel, method: m.FileCancel) -> None:
    """Cancel a consumer; files delivered to it can still be acknowledged (file.cancel/stops).

    A tag unknown in this class is confirmed too, as in class basic.
    """
    files = channel.class_state(Files)
    consumer = consuming.cancel(files, method.consumer_tag)
    if not method.no_wait:
        channel.send(m.FileCancelOk(consumer_tag=method.consumer_tag))
    if consumer is not None:
        consumer.shut()
        files.withdraw(consumer)
        channel.end_consumer(consumer.subscription)


# --- staging -----------------------------------------------------------------------------------------


def open_(channel: Amqp09Channel, method: m.FileOpen) -> None:
    """Begin to stage a content; answer with the size that is staged already (file.open/*).

    Raises:
        ContentTooLarge: the content exceeds the broker's limit (file.open/size-hint).
        ResourceError: see `Uploads.open`.
    """
    largest = channel.personality.largest_message
    if largest and method.content_size > largest:
        raise ContentTooLarge(
            f"content of {method.content_size} bytes is larger than configured max size {largest}"
        )
    staged_size = channel.class_state(Files).uploads.open(method.identifier, method.content_size)
    channel.send(m.FileOpenOk(staged_size=staged_size))


def open_ok(channel: Amqp09Channel, method: m.FileOpenOk) -> None:
    """Send the rest of a content that the broker opened (file.open-ok/staged-size-01).

    Raises:
        ProtocolError: the broker has opened no content.
        PreconditionFailed: the staged size exceeds the size of the content.
    """
    try:
        channel.class_state(Files).downloads.opened(method.staged_size)
    except IllegalState as problem:
        raise ProtocolError("command-invalid", problem.text) from problem
    except IllegalArgument as problem:
        raise PreconditionFailed(problem.text) from problem


def stage(channel: Amqp09Channel, method: m.FileStage) -> None:
    """Handle file.stage; its content follows (file.stage/content)."""
    channel.expect_content(m.FileStage, FileMessageProperties, partial(_staged, channel))


def _staged(channel: Amqp09Channel, content: CompleteContent[FileMessageProperties]) -> None:
    """Stage a content of the client, or the rest of one; its latest properties count.

    Raises:
        ProtocolError: the client has opened no content.
        PreconditionFailed: the size differs from the announced size (file.open/content-size-01).
    """
    description = Description(content.properties, FILE.encoding, content.octets, content.children)
    try:
        channel.class_state(Files).uploads.stage(description, content.body)
    except IllegalState as problem:
        raise ProtocolError("command-invalid", problem.text) from problem
    except IllegalArgument as problem:
        raise PreconditionFailed(problem.text) from problem


# --- publishing --------------------------------------------------------------------------------------


def publish(channel: Amqp09Channel, method: m.FilePublish) -> None:
    """Publish the content with an identifier, as soon as it is complete (file.publish/asynchronous).

    Raises:
        NotFound: the exchange does not exist, or no content was opened with the identifier.
        AccessRefused, NotAllowed: see `contents.authorise`.
    """
    channel.connection.publish_received()
    contents.authorise(channel, method)
    uploads = channel.class_state(Files).uploads
    upload = uploads.find(method.identifier)
    transaction = channel.transaction
    if transaction is None or upload.staged.complete:
        uploads.take(upload, partial(_publish, channel, method, transaction))
    else:
        transaction.publish(partial(_commit, channel, method, upload))


def _publish(
    channel: Amqp09Channel, method: m.FilePublish, transaction: Transaction | None, staged: Staged
) -> None:
    message = staged.message(method.exchange, method.routing_key, channel.connection.identity)
    message.secured = True  # The broker must make its best effort to keep files (file/01).
    contents.publish(channel, FILE, method, message, transaction)


def _commit(channel: Amqp09Channel, method: m.FilePublish, upload: Upload) -> bool:
    """Carry out a publish of a transaction, at commit, whose content was incomplete when it arrived."""
    channel.class_state(Files).uploads.take(upload, partial(_publish, channel, method, None))
    return True


# --- settlement --------------------------------------------------------------------------------------


def ack(channel: Amqp09Channel, method: m.FileAck) -> None:
    """Acknowledge files (file.ack/semantics)."""
    deliveries = _take(channel, method.delivery_tag, multiple=method.multiple)
    _settle(channel, accept_all, "acked", deliveries)


def reject(channel: Amqp09Channel, method: m.FileReject) -> None:
    """Reject a file: requeue it for other consumers, or dead-letter or drop it.

    Sources: file.reject/01, file.reject/02, file.reject/requeue-01.
    """
    deliveries = _take(channel, method.delivery_tag, multiple=False)
    if method.requeue:
        _settle(channel, partial(release_all, ending="failed", avoid=channel), "requeued", deliveries)
    else:
        _settle(channel, reject_all, "rejected", deliveries)


def _take(channel: Amqp09Channel, tag: int, *, multiple: bool) -> Sequence[Delivery]:
    """Remove and return the delivery with a tag; with `multiple` all up to it, with tag 0 all.

    Raises:
        PreconditionFailed: no unacknowledged file has the tag (file.ack/multiple-01).
    """
    deliveries = channel.class_state(Files).ledger.take(tag, multiple)
    if deliveries is None:
        raise PreconditionFailed(f"unknown delivery tag {tag}")
    return deliveries


def _settle(
    channel: Amqp09Channel,
    act: Callable[[Sequence[Delivery]], None],
    event: Settlement,
    deliveries: Sequence[Delivery],
) -> None:
    """Settle deliveries, now or when the channel's transaction is committed (file/transactional)."""
    carry_out = partial(_carry_out, channel, act, event)
    if channel.transaction is not None:
        channel.transaction.settle(carry_out, deliveries)
    else:
        carry_out(deliveries)


def _carry_out(
    channel: Amqp09Channel,
    act: Callable[[Sequence[Delivery]], None],
    event: Settlement,
    deliveries: Sequence[Delivery],
) -> None:
    channel.note_settled(event, deliveries)
    act(deliveries)


HANDLERS: dict[type[Method], Callable[[Amqp09Channel, Any], None]] = {
    m.FileQos: qos,
    m.FileConsume: consume,
    m.FileCancel: cancel,
    m.FileOpen: open_,
    m.FileOpenOk: open_ok,
    m.FileStage: stage,
    m.FilePublish: publish,
    m.FileAck: ack,
    m.FileReject: reject,
}
