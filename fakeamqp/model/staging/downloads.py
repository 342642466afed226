"""Files that the broker stages to a client, one at a time, before it delivers them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from hashlib import sha1
from typing import TYPE_CHECKING, Protocol

from fakeamqp.model.errors import IllegalArgument, IllegalState

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription

__all__ = ["Download", "Downloads", "FileClient"]


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

    __slots__ = ("_client", "_under_way")

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
        """The client has `staged_size` bytes of the open file: stage the rest, and deliver the file.

        Sources: file.open-ok/staged-size-behavior, file.deliver/staged.

        Raises:
            IllegalState: no file is open.
            IllegalArgument: the file is smaller than that.
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
        """Withdraw the files for a consumer that ends (file.cancel/stops).

        The open file is staged nevertheless, because the client waits for it.

        Returns:
            The withdrawn files, for the caller to requeue.
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
        """Remove everything: the client has disconnected."""
        self._under_way.clear()
