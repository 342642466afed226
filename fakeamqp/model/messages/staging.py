"""Contents of the classes file and stream: how they are published, and how files are staged.

Staging: a content is sent in advance, under an identifier chosen by the sender, and published later.

Either peer may be the sender. It opens the content, receives how much of it the other peer has already, and
stages the rest. A stage has no identifier: it belongs to the oldest open without a stage. An interrupted
sender continues where it stopped (file.open/identifier). `uploads` are contents that a client stages,
`downloads` those that the broker stages to a client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha1
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fakeamqp.model.errors import IllegalArgument, IllegalState, NotFound, ResourceError
from fakeamqp.model.messages.message import FileMessage, UnfinishedMessage
from fakeamqp.model.queues import ClassicQueue, Queue
from fakeamqp.model.routing import UNROUTABLE
from fakeamqp.model.transactions import PlannedPublish

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.messages.message import Child, Message, ReadableProperties
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.model.virtual_host import VirtualHost


class Description(NamedTuple):
    """A content's properties (decoded, and as received with their encoding) and its child contents."""

    properties: ReadableProperties
    encoding: str
    octets: bytes
    children: tuple[Child, ...] = ()


class Staged(UnfinishedMessage):
    """A content of `size` octets: `octets` are those received so far, `description` its properties."""

    __slots__ = ("description", "identifier", "size")

    def __init__(self, identifier: str, size: int) -> None:
        super().__init__(None, bytearray())
        self.identifier: str = identifier
        self.size: int = size
        self.description: Description | None = None

    @property
    def complete(self) -> bool:
        return self.description is not None and len(self.octets) == self.size

    def message(self, exchange: str, routing_key: str, publisher: object) -> FileMessage:
        """The message to publish. The content must be complete."""
        assert self.description is not None
        properties, encoding, octets, children = self.description
        message = FileMessage(
            exchange, routing_key, properties, bytes(self.octets), encoding, octets, publisher
        )
        if children:
            message.children = children
        return message

    def __repr__(self) -> str:
        return f"<Staged {self.identifier!r} {len(self.octets)} of {self.size} bytes>"


_MOST = 1000


class Upload:
    """A content that a client stages, and the functions to call when it is complete."""

    __slots__ = ("staged", "waiting")

    def __init__(self, staged: Staged) -> None:
        self.staged: Staged = staged
        self.waiting: list[Callable[[Staged], None]] = []


class Uploads:
    """The contents staged in one session or channel of a user."""

    def __init__(self, virtual_host: VirtualHost, user: str) -> None:
        self._virtual_host = virtual_host
        self._user = user
        self._uploads: dict[str, Upload] = {}
        """The contents by identifier, until they are published."""
        self._due: deque[Upload] = deque()
        """The opened contents without a stage, in order."""

    def open(self, identifier: str, size: int) -> int:
        """Start or continue a content of so many bytes. Returns how many bytes were received already: 0 if
        the size has changed, since it is a new content then.
        """
        upload = self._uploads.get(identifier)
        if upload is None:
            if len(self._uploads) >= _MOST:
                raise ResourceError(f"more than {_MOST} contents are staged and not published")
            upload = Upload(self._left_behind(identifier) or Staged(identifier, size))
            self._uploads[identifier] = upload
        elif upload in self._due:
            self._due.remove(upload)
        if upload.staged.size != size:
            upload.staged = Staged(identifier, size)
        self._due.append(upload)
        return len(upload.staged.octets)

    def _left_behind(self, identifier: str) -> Staged | None:
        return self._virtual_host.staged.take(self._user, identifier)

    def stage(self, description: Description, body: bytes) -> None:
        """The rest of a content was received, from the offset that the answer to open gave.

        A content that is too short is kept, so that it can be continued (file.open-ok/staged-size-behavior).
        """
        if not self._due:
            raise IllegalState("file.stage has come without file.open")
        upload = self._due.popleft()
        staged = upload.staged
        size = len(staged.octets) + len(body)
        if size > staged.size:
            del self._uploads[staged.identifier]
        else:
            staged.description = description
            staged.octets += body
            staged.weigh(self._virtual_host.state.memory)
        if size != staged.size:
            what = f"content '{staged.identifier}'"
            raise IllegalArgument(f"{what} has {size} bytes, and {staged.size} were announced")
        waiting, upload.waiting = upload.waiting, []
        if waiting:
            del self._uploads[staged.identifier]
        for perform in waiting:
            perform(staged)

    def find(self, identifier: str) -> Upload:
        """The content that was opened under this identifier, complete or not; else NotFound."""
        upload = self._uploads.get(identifier)
        if upload is None:
            left = self._left_behind(identifier)
            if left is None:
                raise NotFound(f"no content '{identifier}' was staged")
            upload = self._uploads[identifier] = Upload(left)
        return upload

    def take(self, upload: Upload, perform: Callable[[Staged], None]) -> None:
        """Call `perform` with a content as soon as it is complete, and remove it from the staged contents."""
        staged = upload.staged
        if not staged.complete:
            upload.waiting.append(perform)
            return
        if self._uploads.get(staged.identifier) is upload and upload not in self._due:
            del self._uploads[staged.identifier]
        perform(staged)

    def broken_off(self, octets: bytes) -> None:
        """A stage was interrupted after these octets: keep them, so that its content can be continued."""
        if self._due:
            staged = self._due.popleft().staged
            if len(staged.octets) + len(octets) <= staged.size:
                staged.octets += octets
                staged.weigh(self._virtual_host.state.memory)

    def end(self) -> None:
        """The session or channel has ended: another one of the same user can continue its contents."""
        for upload in self._uploads.values():
            self._virtual_host.staged.keep(self._user, upload.staged.identifier, upload.staged)
        self._uploads.clear()
        self._due.clear()


class Download:
    """A file that the broker stages, or will stage, to the client.

    `withdrawn` means that it will not be delivered; `tag` is the delivery tag.
    """

    __slots__ = ("delivery", "identifier", "message", "redelivered", "subscription", "tag", "withdrawn")

    def __init__(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery
    ) -> None:
        self.subscription: Subscription = subscription
        self.message: Message = message
        self.redelivered: bool = redelivered
        self.delivery: Delivery = delivery
        self.identifier: str = _identifier(message, delivery)
        self.withdrawn: bool = False
        self.tag: int = 0


def _identifier(message: Message, delivery: Delivery) -> str:
    """The identifier of this message in this queue: stable, and different for each (file.open/identifier)."""
    place = f"{delivery.queued.position} {message.published_at!r} {delivery.queue.name}"
    digest = sha1(place.encode("utf-8", "surrogateescape"), usedforsecurity=False)
    digest.update(message.body)
    return digest.hexdigest()


class FileClient(Protocol):
    """Sends the methods of a protocol to the client."""

    def ask(self, download: Download) -> None:
        """Ask the client how much of a file it has: file.open."""

    def send_rest(self, download: Download, offset: int) -> None:
        """Send a file from `offset` on: file.stage."""

    def hand_over(self, download: Download) -> None:
        """Deliver the file that was just staged to its consumer: file.deliver."""


class Downloads:
    """The files for one client, in order. The first one is open, the others wait."""

    def __init__(self, client: FileClient) -> None:
        self._client = client
        self._under_way: deque[Download] = deque()

    def __iter__(self) -> Iterator[Download]:
        return iter(self._under_way)

    def add(self, download: Download) -> None:
        """Add a file; it is opened when it is the first."""
        self._under_way.append(download)
        if len(self._under_way) == 1:
            self._client.ask(download)

    def opened(self, staged_size: int) -> None:
        """The client has `staged_size` bytes of the open file: stage the rest, and deliver the file
        (file.open-ok/staged-size-behavior, file.deliver/staged).
        """
        if not self._under_way:
            raise IllegalState("file.open-ok has come without file.open")
        download = self._under_way[0]
        size = len(download.message.body)
        if staged_size > size:
            raise IllegalArgument(f"file '{download.identifier}' has {size} bytes, not {staged_size}")
        self._client.send_rest(download, staged_size)
        if not download.withdrawn:
            self._client.hand_over(download)
        self._under_way.popleft()
        if self._under_way:
            self._client.ask(self._under_way[0])

    def withdraw(self, subscription: Subscription) -> list[Download]:
        """Withdraw the files for a consumer that ends (file.cancel/stops), and return them to be requeued.

        The open file is staged nevertheless, because the client waits for it.
        """
        withdrawn = [
            each for each in self._under_way if each.subscription is subscription and not each.withdrawn
        ]
        for each in withdrawn:
            each.withdrawn = True
        self._under_way = deque(
            each for n, each in enumerate(self._under_way) if n == 0 or not each.withdrawn
        )
        return withdrawn

    def clear(self) -> None:
        self._under_way.clear()


def publish_content(
    virtual_host: VirtualHost,
    message: Message,
    *,
    mandatory: bool,
    immediate: bool,
    on_outcome: Callable[[Outcome], None],
    transaction: Transaction | None = None,
) -> None:
    """Publish a message, now or when a transaction is committed.

    A full queue may not discard files (file/no-discard): it refuses a file that would push a message out.
    `mandatory` and `immediate` are as in `VirtualHost.publish`. `on_outcome` is called with the outcome once
    it is known; not after a restart.
    """
    # The exchange may have been deleted while the content was staged. The headers CC and BCC are RabbitMQ's
    # and have no meaning in these classes.
    there = message.exchange in virtual_host.exchanges
    plan = virtual_host.routing.route(message) if there else UNROUTABLE
    if transaction is not None:
        planned = PlannedPublish(
            virtual_host, message, plan, immediate=immediate, mandatory=mandatory, on_outcome=on_outcome
        )
        transaction.publish(planned)
        return
    full: tuple[Queue, ...] = ()
    if message.content_class == "file":
        full = tuple(queue for queue in plan.queues if _would_discard(queue, message))
    if full:
        on_outcome(replace(plan, refused=full))
    else:
        outcome = virtual_host.offer(message, plan, immediate, mandatory, sliced=True)
        virtual_host.state.operations.then(partial(on_outcome, outcome))


def _would_discard(queue: Target, message: Message) -> bool:
    """Whether a queue would have to drop another message for this one, or refuse it."""
    if not isinstance(queue, Queue) or queue.could_take(message):
        return False
    if queue.would_refuse(message):
        return True
    if not isinstance(queue, ClassicQueue):
        return False
    most, most_bytes = queue.options.max_length, queue.options.max_length_bytes
    if most is not None and len(queue.ready) >= most:
        return True
    return most_bytes is not None and queue.ready_bytes + len(message.body) > most_bytes
