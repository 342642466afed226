"""Files to the client: the broker stages each before it delivers it.

It asks with file.open, the client answers with open-ok how much it has of the content already, the broker
sends the rest with file.stage, and file.deliver says whose it is (file.deliver/staged). Since a stage does
not say what it is of, the next file is opened when the one before has been staged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import sha1
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_10.consuming import ConsumerEnd, Consumers
from fakeamqp.dialects.amqp_0_10.contents import FILE, header
from fakeamqp.dialects.amqp_0_10.file.staging import Staging
from fakeamqp.dialects.amqp_0_10.replies import SessionFault
from fakeamqp.model.delivery import accept_all, release_all
from fakeamqp.wire.amqp_0_10 import commands
from fakeamqp.wire.amqp_0_10.constants import SegmentType

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_10.consuming import Window
    from fakeamqp.dialects.amqp_0_10.sessions.session_end import SessionEnd
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.wire.amqp_0_10.assembly import Assembly

__all__ = ["FileConsumer", "Files"]

_BEHIND_TRANSFERS = 1 << 32
"""What delivery tags are raised by in the session's ledger, so that no id of a transfer is the same."""


class _UnderWay:
    """A file that the client is asked to have staged. `withdrawn` says that it will not be delivered."""

    __slots__ = ("consumer", "delivery", "identifier", "message", "redelivered", "tag", "withdrawn")

    def __init__(
        self, consumer: FileConsumer, message: Message, redelivered: bool, delivery: Delivery, tag: int
    ) -> None:
        self.consumer = consumer
        self.message = message
        self.redelivered = redelivered
        self.delivery = delivery
        self.tag = tag
        self.identifier = _identifier(message, delivery)
        self.withdrawn = False


def _identifier(message: Message, delivery: Delivery) -> str:
    """The same whenever this message is staged from this queue, and no other's (file.open/identifier)."""
    queued = delivery.queued
    place = f"{queued.position} {queued.enqueued_at!r} {delivery.queue.name}"
    digest = sha1(place.encode("utf-8", "surrogateescape"), usedforsecurity=False)
    digest.update(header(FILE, message))
    digest.update(message.body)
    return digest.hexdigest()


class Files(Consumers):
    """What class file keeps of one session: its consumers, and what either peer is staging."""

    class_name = "file"

    def __init__(self, session: SessionEnd) -> None:
        super().__init__(session)
        self.staging = Staging(session)
        self._under_way: deque[_UnderWay] = deque()
        """The first of them is opened, the others are to be."""

    def count(self, window: Window) -> None:
        """See the base class."""
        for tag, delivery in self.session.ledger.outstanding.items():
            holder = delivery.holder
            if tag > _BEHIND_TRANSFERS and holder is not None:
                consumer = holder.subscriber
                if isinstance(consumer, FileConsumer) and consumer.windowed:
                    delivery.credits = (*delivery.credits, window.credit)
                    window.credit.take(delivery.queued.message)

    def given_up(self, assembly: Assembly) -> None:
        """See the base class."""
        self.staging.given_up(assembly)

    def let_go(self) -> None:
        """See the base class: what was never delivered returns as such."""
        for consumer in self.by_tag.values():
            self.withdraw(consumer)
        self.told([each for key, each in self.session.ledger.outstanding.items() if key > _BEHIND_TRANSFERS])

    def end(self) -> None:
        """See the base class."""
        super().end()
        unfinished = self.session.incoming.broken_off
        if unfinished is not None:
            self.staging.given_up(unfinished)
        self.staging.end()
        self._under_way.clear()

    # --- out ------------------------------------------------------------------------------------------

    def send(self, consumer: FileConsumer, message: Message, redelivered: bool, delivery: Delivery) -> None:
        """Have the client ready for a file, when its turn comes."""
        tag = self.next_delivery_tag()
        self.session.ledger.enter(_BEHIND_TRANSFERS + tag, delivery)
        self._under_way.append(_UnderWay(consumer, message, redelivered, delivery, tag))
        if len(self._under_way) == 1:
            self._open()

    def _open(self) -> None:
        first = self._under_way[0]
        self.session.send(
            commands.FileOpen(identifier=first.identifier, content_size=len(first.message.body))
        )

    def opened(self, staged_size: int) -> None:
        """The client has so much of the file: stage the rest, and deliver it (file.open-ok/staged-size-*).

        Raises:
            SessionFault: no file is opened, or it is not that large.
        """
        if not self._under_way:
            raise SessionFault("illegal-state", "file.open-ok has come without file.open")
        under_way = self._under_way[0]
        message = under_way.message
        if staged_size > len(message.body):
            text = f"file '{under_way.identifier}' has {len(message.body)} octets, not {staged_size}"
            raise SessionFault("illegal-argument", text, "staged_size")
        self.session.outgoing.send(
            (
                (SegmentType.COMMAND, commands.FileStage().encode()),
                (SegmentType.HEADER, header(FILE, message)),
                (SegmentType.BODY, message.body[staged_size:]),
            )
        )
        if not under_way.withdrawn:
            self._deliver(under_way)
        self._under_way.popleft()
        if self._under_way:
            self._open()

    def _deliver(self, under_way: _UnderWay) -> None:
        """Say to which consumer a staged file goes; to some that is to be rid of it (file.consume/no-ack)."""
        session, consumer = self.session, under_way.consumer
        message, tag = under_way.message, under_way.tag
        tap = session.broker.tap
        if tap is not None and session.endpoint is not None:
            queue = consumer.subscription.queue.name
            tap.delivered(
                message, queue, consumer.tag, session.endpoint, session.channel, tag, under_way.redelivered
            )
        session.send(
            commands.FileDeliver(
                consumer_tag=consumer.tag,
                delivery_tag=tag,
                redelivered=under_way.redelivered,
                exchange=message.exchange,
                routing_key=message.routing_key,
                identifier=under_way.identifier,
            )
        )
        if consumer.no_ack:
            accept_all(self._take_out((tag,)))

    def withdraw(self, consumer: ConsumerEnd) -> None:
        """Deliver nothing more to a consumer: what is under way to it goes back (file.cancel/stops).

        What is opened is staged all the same: the client waits for it.
        """
        withdrawn = [each for each in self._under_way if each.consumer is consumer and not each.withdrawn]
        for each in withdrawn:
            each.withdrawn = True
        self._under_way = deque(
            each for n, each in enumerate(self._under_way) if n == 0 or not each.withdrawn
        )
        release_all(self._take_out([each.tag for each in withdrawn]), redelivered=False)

    # --- settling -------------------------------------------------------------------------------------

    def take(self, tag: int, *, multiple: bool = False) -> list[Delivery]:
        """Take out what was delivered with a tag; with `multiple`, all up to that, and with tag 0 simply all.

        Raises:
            SessionFault: it was not delivered in this session, or is settled (file.ack/multiple-validation).
        """
        outstanding = self.session.ledger.outstanding
        under_way = {each.tag for each in self._under_way}
        if not (multiple and tag == 0) and (_BEHIND_TRANSFERS + tag not in outstanding or tag in under_way):
            raise SessionFault("precondition-failed", f"unknown delivery tag {tag}", "delivery_tag")
        if not multiple:
            return self._take_out((tag,))
        known = [each - _BEHIND_TRANSFERS for each in outstanding if each > _BEHIND_TRANSFERS]
        return self._take_out([each for each in known if each not in under_way and (each <= tag or not tag)])

    @staticmethod
    def told(deliveries: Sequence[Delivery]) -> None:
        """These are about to end: who is told of that is told the tags that the client knows."""
        for delivery in deliveries:
            delivery.tag %= _BEHIND_TRANSFERS

    def _take_out(self, tags: Sequence[int]) -> list[Delivery]:
        outstanding = self.session.ledger.outstanding
        keys = [_BEHIND_TRANSFERS + tag for tag in tags]
        return [outstanding.pop(key) for key in keys if key in outstanding]


class FileConsumer(ConsumerEnd):
    """One consumer of files. Its queue keeps what is under way, also where no ack is expected."""

    def __init__(self, files: Files, queue: Queue, command: commands.FileConsume) -> None:
        self.no_ack = bool(command.no_ack)
        self._files = files
        # A window is for what can be acknowledged (file.qos/prefetch-size).
        super().__init__(files, queue, command, acknowledges=True, windowed=not self.no_ack)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber`."""
        assert delivery is not None
        self._files.send(self, message, redelivered, delivery)
