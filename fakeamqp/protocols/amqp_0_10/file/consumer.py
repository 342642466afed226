"""Files to the client: the broker stages each before it delivers it.

It asks with file.open; the client answers with open-ok how much of the content it has; the broker sends the
rest with file.stage, and file.deliver names the consumer (file.deliver/staged). `model.staging` decides the
order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import accept_all, release_all
from fakeamqp.model.messages.staging import Download, Downloads, Uploads
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.codec.constants import SegmentType
from fakeamqp.protocols.amqp_0_10.consuming import ContentConsumers, ServerConsumer
from fakeamqp.protocols.amqp_0_10.contents import FILE, header
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.credit import Window
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_10.codec.assembly import Assembly
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["FileConsumer", "Files"]

_BEHIND_TRANSFERS = 1 << 32
"""What delivery tags are raised by in the session's ledger, so that no id of a transfer is the same."""


class Files(ContentConsumers):
    """The state of class file in one session: its consumers, and what either peer is staging.

    It is the peer of `Downloads`.
    """

    class_name = "file"

    def __init__(self, session: ServerSession) -> None:
        super().__init__(session)
        self.uploads: Uploads = Uploads(session.virtual_host, session.user.name)
        self.downloads: Downloads = Downloads(self)

    def count(self, window: Window) -> None:
        for tag, delivery in self.session.ledger.outstanding.items():
            holder = delivery.holder
            if tag > _BEHIND_TRANSFERS and holder is not None:
                consumer = holder.subscriber
                if isinstance(consumer, FileConsumer) and consumer.windowed:
                    delivery.credits = (*delivery.credits, window.credit)
                    window.credit.take(delivery.queued.message)

    def given_up(self, assembly: Assembly) -> None:
        if _is_stage(assembly.first):
            self.uploads.broken_off(assembly.body or b"")

    def let_go(self) -> None:
        """What was never delivered returns as such."""
        for consumer in self.by_tag.values():
            self.withdraw(consumer)
        self.told([each for key, each in self.session.ledger.outstanding.items() if key > _BEHIND_TRANSFERS])

    def end(self) -> None:
        super().end()
        unfinished = self.session.incoming.broken_off
        if unfinished is not None:
            self.given_up(unfinished)
        self.uploads.end()
        self.downloads.clear()

    # --- out ------------------------------------------------------------------------------------------

    def send(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery
    ) -> None:
        """Ask the client to open a file, when its turn comes."""
        download = Download(subscription, message, redelivered, delivery)
        download.tag = self.next_delivery_tag()
        self.session.ledger.enter(_BEHIND_TRANSFERS + download.tag, delivery)
        self.downloads.add(download)

    def ask(self, download: Download) -> None:
        size = len(download.message.body)
        self.session.send(commands.FileOpen(identifier=download.identifier, content_size=size))

    def send_rest(self, download: Download, offset: int) -> None:
        message = download.message
        self.session.outgoing.send(
            (
                (SegmentType.COMMAND, commands.FileStage().encode()),
                (SegmentType.HEADER, header(FILE, message)),
                (SegmentType.BODY, message.body[offset:]),
            )
        )

    def hand_over(self, download: Download) -> None:
        """Send a file; a consumer with no-ack has acknowledged it thereby (file.consume/no-ack)."""
        session, consumer = self.session, download.subscription.subscriber
        assert isinstance(consumer, FileConsumer)
        message, tag = download.message, download.tag
        tap = session.broker.tap
        if tap is not None and session.connection is not None:
            queue = download.subscription.queue.name
            redelivered = download.redelivered
            tap.delivered(message, queue, consumer.tag, session.connection, session.channel, tag, redelivered)
        session.send(
            commands.FileDeliver(
                consumer_tag=consumer.tag,
                delivery_tag=tag,
                redelivered=download.redelivered,
                exchange=message.exchange,
                routing_key=message.routing_key,
                identifier=download.identifier,
            )
        )
        if consumer.no_ack:
            accept_all(self._take_out((tag,)))

    def withdraw(self, consumer: ServerConsumer) -> None:
        """Stop deliveries to a consumer; unfinished ones return to the queue (file.cancel/stops)."""
        withdrawn = self.downloads.withdraw(consumer.subscription)
        release_all(self._take_out([each.tag for each in withdrawn]), redelivered=False)

    # --- settling -------------------------------------------------------------------------------------

    def take(self, tag: int, *, multiple: bool = False) -> list[Delivery]:
        """Remove the delivery of a tag; with `multiple`, all up to it, and with tag 0 all deliveries.

        Raises:
            SessionFault: it was not delivered in this session, or is settled (file.ack/multiple-validation).
        """
        outstanding = self.session.ledger.outstanding
        under_way = {each.tag for each in self.downloads}
        if not (multiple and tag == 0) and (_BEHIND_TRANSFERS + tag not in outstanding or tag in under_way):
            raise SessionFault("precondition-failed", f"unknown delivery tag {tag}", "delivery_tag")
        if not multiple:
            return self._take_out((tag,))
        known = [each - _BEHIND_TRANSFERS for each in outstanding if each > _BEHIND_TRANSFERS]
        return self._take_out([each for each in known if each not in under_way and (each <= tag or not tag)])

    @staticmethod
    def told(deliveries: Iterable[Delivery]) -> None:
        """Deliveries are about to end: restore the tags that the client knows, for the observers."""
        for delivery in deliveries:
            delivery.tag %= _BEHIND_TRANSFERS

    def _take_out(self, tags: Iterable[int]) -> list[Delivery]:
        outstanding = self.session.ledger.outstanding
        keys = [_BEHIND_TRANSFERS + tag for tag in tags]
        return [outstanding.pop(key) for key in keys if key in outstanding]


class FileConsumer(ServerConsumer):
    """One consumer of files. Its queue keeps unfinished deliveries, also where no ack is expected."""

    def __init__(self, files: Files, queue: Queue, command: commands.FileConsume) -> None:
        self.no_ack: bool = bool(command.no_ack)
        self._files = files
        # A window is for what can be acknowledged (file.qos/prefetch-size).
        super().__init__(files, queue, command, acknowledges=True, windowed=not self.no_ack)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        assert delivery is not None
        self._files.send(subscription, message, redelivered, delivery)


def _is_stage(command: bytes) -> bool:
    """True for the command segment of file.stage."""
    return command[:2] == bytes((commands.FileStage.CLASS, commands.FileStage.CODE))
