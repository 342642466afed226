"""Class file of 0-9: large messages, which are staged before they are published or delivered.

`model.messages.staging` has the staged contents of both peers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import Ledger, accept_all, reject_all, release_all
from fakeamqp.model.errors import ContentTooLarge, IllegalArgument, IllegalState, PreconditionFailed
from fakeamqp.model.messages.staging import Description, Download, Downloads, Uploads
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.properties import FileMessageProperties
from fakeamqp.protocols.amqp_0_9.content_classes import FILE, ClassConsumer, Consumers
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription, Window
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.messages.staging import Staged, Upload
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel, CompleteContent


class Files(Consumers):
    """Class file on one channel: a class state, and the `model.staging.FileClient` of `Downloads`.

    A download has no delivery tag until it is delivered, so it cannot be acknowledged before.
    """

    class_name = "file"

    def __init__(self, channel: Amqp09Channel) -> None:
        super().__init__(channel)
        self.ledger: Ledger = Ledger()
        """The unacknowledged deliveries, by delivery tags that are unique on the channel."""
        self.uploads: Uploads = Uploads(channel.virtual_host, channel.user.name)
        self.downloads: Downloads = Downloads(self)

    def count(self, window: Window) -> None:
        deliveries = [*self.ledger.outstanding.values(), *(each.delivery for each in self.downloads)]
        for delivery in deliveries:
            if delivery.holder is not None and not delivery.settled:
                consumer = delivery.holder.subscriber
                if isinstance(consumer, FileConsumer) and consumer.windowed:
                    delivery.credits = (*delivery.credits, window.credit)
                    window.credit.take(delivery.queued.message)

    # --- out ------------------------------------------------------------------------------------------

    def ask(self, download: Download) -> None:
        size = len(download.message.body)
        self.channel.send(m.FileOpen(identifier=download.identifier, content_size=size))

    def send_rest(self, download: Download, offset: int) -> None:
        message = download.message
        FILE.send(self.channel, m.FileStage(), message, message.body[offset:])

    def hand_over(self, download: Download) -> None:
        """With no_ack, settle the delivery at once (file.consume/no-ack)."""
        channel, subscription, message = self.channel, download.subscription, download.message
        consumer = subscription.subscriber
        assert isinstance(consumer, FileConsumer)
        tag = channel.ledger.next_tag()
        channel.note_delivered(message, subscription.queue.name, consumer.tag, tag, download.redelivered)
        channel.send(
            m.FileDeliver(
                consumer_tag=consumer.tag,
                delivery_tag=tag,
                redelivered=download.redelivered,
                exchange=message.exchange,
                routing_key=message.routing_key,
                identifier=download.identifier,
            )
        )
        if consumer.windowed:
            self.ledger.enter(tag, download.delivery)
        else:
            accept_all((download.delivery,))

    def withdraw(self, consumer: ClassConsumer) -> None:
        """Stop deliveries to a consumer; its downloads return to the queue as not delivered."""
        withdrawn = self.downloads.withdraw(consumer.subscription)
        release_all([each.delivery for each in withdrawn], redelivered=False)

    # --- closing --------------------------------------------------------------------------------------

    def put_back(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Make this class's deliveries unacknowledged again; return the others (tx.rollback/undoes-acks)."""
        own: list[Delivery] = []
        others: list[Delivery] = []
        for each in deliveries:
            of_here = each.holder is not None and isinstance(each.holder.subscriber, FileConsumer)
            (own if of_here else others).append(each)
        self.ledger.put_back(own)
        return others

    def released(self) -> None:
        """Requeues unacknowledged messages, and keeps incomplete uploads."""
        channel = self.channel
        if channel.expected is not None and channel.expected.method is m.FileStage:
            self.uploads.broken_off(channel.assembler.body_so_far)
        self.uploads.end()
        super().released()
        outstanding = self.ledger.take_all()
        channel.note_settled("requeued", outstanding)
        release_all(outstanding, ending="lost")
        # Downloads are requeued last: they are younger, and were not delivered.
        for consumer in self.all():
            self.withdraw(consumer)
        self.downloads.clear()


class FileConsumer(ClassConsumer):
    """One consumer of class file. Its queue keeps downloads until they are delivered, also with no_ack."""

    consumers: Files

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber` (file.deliver/staged-first)."""
        assert delivery is not None
        self.consumers.downloads.add(Download(subscription, message, redelivered, delivery))

    def cancelled(self, subscription: Subscription) -> None:
        """Withdraws the downloads, whose messages belonged to the queue."""
        super().cancelled(subscription)
        self.consumers.withdraw(self)


# --- consumers ---------------------------------------------------------------------------------------


def qos(channel: Amqp09Channel, method: m.FileQos) -> None:
    """Set the prefetch limit of the channel, or of the whole connection (file.qos/*)."""
    window = channel.class_state(Files).set_window(
        method.prefetch_count, method.prefetch_size, 0, for_connection=method.global_
    )
    channel.send(m.FileQosOk())
    window.resume()


def consume(channel: Amqp09Channel, method: m.FileConsume) -> None:
    """Start a consumer; send consume-ok before the first file.open, unless no_wait is set."""
    files = channel.class_state(Files)
    queue, tag = files.consumable(method)
    # A window counts only messages that need an acknowledgement (file.qos/prefetch-size).
    consumer = FileConsumer(files, queue, tag, method, acknowledges=True, windowed=not method.no_ack)
    channel.enter_consumer(consumer.subscription, no_ack=method.no_ack)
    if not method.no_wait:
        channel.send(m.FileConsumeOk(consumer_tag=tag))
    queue.dispatch()


def cancel(channel: Amqp09Channel, method: m.FileCancel) -> None:
    """Cancel a consumer; files delivered to it can still be acknowledged (file.cancel/stops).

    A tag unknown in this class is confirmed too, as in class basic.
    """
    files = channel.class_state(Files)
    consumer = files.cancel(method.consumer_tag)
    if not method.no_wait:
        channel.send(m.FileCancelOk(consumer_tag=method.consumer_tag))
    if consumer is not None:
        consumer.shut()
        files.withdraw(consumer)
        channel.end_consumer(consumer.subscription)


# --- staging -----------------------------------------------------------------------------------------


def open_(channel: Amqp09Channel, method: m.FileOpen) -> None:
    """Begin to stage a content; answer with the size that is staged already (file.open/*).

    Source of the limit: file.open/size-hint.
    """
    largest = channel.personality.largest_message
    if largest and method.content_size > largest:
        raise ContentTooLarge(
            f"content of {method.content_size} bytes is larger than configured max size {largest}"
        )
    staged_size = channel.class_state(Files).uploads.open(method.identifier, method.content_size)
    channel.send(m.FileOpenOk(staged_size=staged_size))


def open_ok(channel: Amqp09Channel, method: m.FileOpenOk) -> None:
    """Send the rest of a content that the broker opened (file.open-ok/staged-size-01)."""
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

    Its size must be the announced one (file.open/content-size-01).
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
    """Publish the content with an identifier, as soon as it is complete (file.publish/asynchronous)."""
    channel.connection.publish_received()
    channel.authorise_publish(method.ticket, method.exchange, method.routing_key)
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
    FILE.publish(channel, method, message, transaction)


def _commit(channel: Amqp09Channel, method: m.FilePublish, upload: Upload) -> bool:
    """Carry out a publish of a transaction, at commit, whose content was incomplete when it arrived."""
    channel.class_state(Files).uploads.take(upload, partial(_publish, channel, method, None))
    return True


# --- settlement --------------------------------------------------------------------------------------


def ack(channel: Amqp09Channel, method: m.FileAck) -> None:
    """Acknowledge files (file.ack/semantics)."""
    deliveries = _take(channel, method.delivery_tag, multiple=method.multiple)
    channel.settle(accept_all, "acked", deliveries)


def reject(channel: Amqp09Channel, method: m.FileReject) -> None:
    """Reject a file: requeue it for other consumers, or dead-letter or drop it.

    Sources: file.reject/01, file.reject/02, file.reject/requeue-01.
    """
    deliveries = _take(channel, method.delivery_tag, multiple=False)
    if method.requeue:
        channel.settle(partial(release_all, ending="failed", avoid=channel), "requeued", deliveries)
    else:
        channel.settle(reject_all, "rejected", deliveries)


def _take(channel: Amqp09Channel, tag: int, *, multiple: bool) -> Sequence[Delivery]:
    """Remove and return the delivery with a tag; with `multiple` all up to it, with tag 0 all.

    PreconditionFailed: no unacknowledged file has the tag (file.ack/multiple-01).
    """
    deliveries = channel.class_state(Files).ledger.take(tag, multiple)
    if deliveries is None:
        raise PreconditionFailed(f"unknown delivery tag {tag}")
    return deliveries
