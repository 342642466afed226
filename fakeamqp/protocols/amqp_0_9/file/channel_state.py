"""The state of class file on one channel: consumers, unacknowledged deliveries, uploads and downloads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import Ledger, accept_all, release_all
from fakeamqp.model.messages.staging import Download, Downloads, Uploads
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.consuming import ClassConsumer, Consumers
from fakeamqp.protocols.amqp_0_9.contents import FILE, octets

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.credit import Window
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["FileConsumer", "Files"]


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
        self.channel.send_content(
            m.FileStage(), FILE.number, octets(FILE, message), message.body[offset:], message.children
        )

    def hand_over(self, download: Download) -> None:
        """With no_ack, settle the delivery at once (file.consume/no-ack)."""
        channel, subscription, message = self.channel, download.subscription, download.message
        consumer = subscription.subscriber
        assert isinstance(consumer, FileConsumer)
        tag = channel.ledger.next_tag()
        tap = channel.connection.broker.tap
        if tap is not None:
            queue, redelivered = subscription.queue.name, download.redelivered
            tap.event(
                "delivered",
                channel.connection,
                message,
                queue,
                consumer.tag,
                channel.number,
                tag,
                redelivered,
            )
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
        if consumer.no_ack:
            accept_all((download.delivery,))
        else:
            self.ledger.enter(tag, download.delivery)

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
        incomplete = channel.incomplete_content
        if incomplete is not None and incomplete[0] is m.FileStage:
            self.uploads.broken_off(incomplete[1].body_so_far)
        self.uploads.end()
        self.stop()
        outstanding = self.ledger.take_all()
        channel.note_settled("requeued", outstanding)
        release_all(outstanding, ending="lost")
        # Downloads are requeued last: they are younger, and were not delivered.
        for consumer in self.all():
            self.withdraw(consumer)
        self.downloads.clear()


class FileConsumer(ClassConsumer):
    """One consumer of class file. Its queue keeps downloads until they are delivered, also with no_ack."""

    def __init__(self, files: Files, queue: Queue, tag: str, method: m.FileConsume) -> None:
        self.no_ack: bool = method.no_ack
        self._files = files
        # A window counts only messages that need an acknowledgement (file.qos/prefetch-size).
        super().__init__(files, queue, tag, method, acknowledges=True, windowed=not method.no_ack)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber` (file.deliver/staged-first)."""
        assert delivery is not None
        self._files.downloads.add(Download(subscription, message, redelivered, delivery))

    def cancelled(self, subscription: Subscription) -> None:
        """Withdraws the downloads, whose messages belonged to the queue."""
        super().cancelled(subscription)
        self._files.withdraw(self)
