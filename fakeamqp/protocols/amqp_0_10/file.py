"""Class file: bulk messages, staged before they are sent, in either direction.

`model.messages.staging` keeps what either peer stages. The broker asks a client with file.open; the client
answers with open-ok how much of the content it has; the broker sends the rest with file.stage, and
file.deliver names the consumer (file.deliver/staged).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.model.deliveries.delivery import accept_all, reject_all, release_all
from fakeamqp.model.deliveries.subscription import Gate
from fakeamqp.model.errors import IllegalArgument, ModelError, ResourceError
from fakeamqp.model.messages.message import identity_of
from fakeamqp.model.messages.staging import Description, Download, Downloads, Uploads
from fakeamqp.protocols.amqp_0_10 import contents
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.contents import (
    ContentClass,
    ContentConsumers,
    ContentTarget,
    ServerConsumer,
)
from fakeamqp.protocols.amqp_0_10.properties import FILE_ENCODING, ContentProperties
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription, Window
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.messages.staging import Staged, Upload
    from fakeamqp.model.tap import Settlement
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_10.codec.frames import Assembly
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

_STAGE = commands.FileStage.INDEX.to_bytes(2, "big")
_BEHIND_TRANSFERS = 1 << 32
"""What delivery tags are raised by in the session's ledger, so that no id of a transfer is the same."""


class Files(ContentConsumers):
    """The state of class file in one session: its consumers, and what either peer is staging.

    It is the peer of `Downloads`.
    """

    KIND: ClassVar[ContentClass] = ContentClass(
        "file", FILE_ENCODING, commands.FileReturn, commands.FileQosOk, commands.FileConsumeOk
    )

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
        if assembly.first[:2] == _STAGE:
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

    def ask(self, download: Download) -> None:
        size = len(download.message.body)
        self.session.send(commands.FileOpen(identifier=download.identifier, content_size=size))

    def send_rest(self, download: Download, offset: int) -> None:
        contents.send(self.session, Files.KIND, commands.FileStage(), download.message, offset=offset)

    def hand_over(self, download: Download) -> None:
        """Send a file; a consumer with no-ack has acknowledged it thereby (file.consume/no-ack)."""
        session, consumer = self.session, download.subscription.subscriber
        assert isinstance(consumer, FileConsumer)
        message, tag = download.message, download.tag
        consumer.note_delivered(message, tag, download.redelivered)
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
        """Remove the delivery of a tag; with `multiple`, also earlier ones (file.ack/multiple-validation)."""
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

    consumers: Files

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Ask the client to open a file, when its turn comes."""
        assert delivery is not None
        download = Download(subscription, message, redelivered, delivery)
        download.tag = self.consumers.next_delivery_tag()
        self.session.ledger.enter(_BEHIND_TRANSFERS + download.tag, delivery)
        self.consumers.downloads.add(download)


# --- consumers ---------------------------------------------------------------------------------------


def qos(session: ServerSession, command: commands.FileQos) -> None:
    """Limit what consumers hold unacknowledged, in this session or on the connection (file.qos/*)."""
    contents.set_window(Files.of(session), command)


def consume(session: ServerSession, command: commands.FileConsume) -> None:
    """Start a consumer. A window is for what can be acknowledged (file.qos/prefetch-size)."""
    consumer = FileConsumer(Files.of(session), command, acknowledges=True, windowed=not command.no_ack)
    contents.start(consumer, command)


def cancel(session: ServerSession, command: commands.FileCancel) -> None:
    """End a consumer; its deliveries can still be acknowledged (file.cancel/stops)."""
    files = Files.of(session)
    consumer = contents.cancel(files, command.consumer_tag or "")
    assert isinstance(consumer, FileConsumer)
    closed = Gate()
    closed.shut()
    consumer.subscription.depend_on((closed,), ())
    files.withdraw(consumer)
    consumer.end()


# --- staging -----------------------------------------------------------------------------------------


def open_(session: ServerSession, command: commands.FileOpen) -> None:
    """Open a content for staging, and tell the client how much of it the broker has."""
    size = command.content_size or 0
    largest = session.personality.largest_message
    if largest and size > largest:
        raise ResourceError(f"content of {size} bytes is larger than configured max size {largest}")
    with _blaming("identifier"):
        staged_size = Files.of(session).uploads.open(command.identifier or "", size)
    session.send(commands.FileOpenOk(staged_size=staged_size))


def open_ok(session: ServerSession, command: commands.FileOpenOk) -> None:
    """The client is ready for one of the broker's contents."""
    with _blaming("staged_size", IllegalArgument):
        Files.of(session).downloads.opened(command.staged_size or 0)


@contextmanager
def _blaming(field: str, kind: type[ModelError] = ModelError) -> Iterator[None]:
    try:
        yield
    except kind as problem:
        raise SessionFault(problem.condition, problem.text, field) from problem


def stage(
    session: ServerSession, command: commands.FileStage, header: bytes | None, body: bytes | None
) -> None:
    """Stage a content, or the rest of one; its last properties count (file.stage/content)."""
    _publishing(session)
    properties = ContentProperties.decode(FILE_ENCODING, header)
    Files.of(session).uploads.stage(Description(properties, FILE_ENCODING, header or b""), body or b"")


def _publishing(session: ServerSession) -> None:
    if session.connection is not None:
        session.connection.publish_received()


# --- publishing --------------------------------------------------------------------------------------


def publish(session: ServerSession, command: commands.FilePublish) -> None:
    """Publish what is staged under an identifier, as soon as it is complete (file.publish/staged)."""
    _publishing(session)
    target = ContentTarget.of(session, command)
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
    contents.publish(session, Files.KIND, target, message, transaction)


def _commit(session: ServerSession, target: ContentTarget, upload: Upload) -> bool:
    """A transactional publish, at commit, that preceded the end of its content."""
    Files.of(session).uploads.take(upload, partial(_publish, session, target, None))
    return True


# --- settling ----------------------------------------------------------------------------------------


def ack(session: ServerSession, command: commands.FileAck) -> None:
    """Acknowledge files: the client has processed them (file.ack/semantics)."""
    deliveries = Files.of(session).take(command.delivery_tag or 0, multiple=bool(command.multiple))
    _settle(session, accept_all, "acked", deliveries)


def reject(session: ServerSession, command: commands.FileReject) -> None:
    """Reject a file: another consumer gets it, or it is dead-lettered or dropped (file.reject/*)."""
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
