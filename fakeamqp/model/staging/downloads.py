"""Files that the broker stages to a client before it delivers them, one after the other."""

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
    """A file that the client is asked to have staged, or will be.

    `withdrawn` says that it will not be delivered, `tag` is what the client is to know the delivery by.
    """

    __slots__ = ("delivery", "identifier", "message", "redelivered", "subscription", "tag", "withdrawn")

    def __init__(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery
    ) -> None:
        self.subscription = subscription
        self.message = message
        self.redelivered = redelivered
        self.delivery = delivery
        self.identifier = _identifier(message, delivery)
        self.withdrawn = False
        self.tag = 0


def _identifier(message: Message, delivery: Delivery) -> str:
    """The same whenever this message is staged from this queue, and no other's (file.open/identifier)."""
    queued = delivery.queued
    place = f"{queued.position} {queued.enqueued_at!r} {delivery.queue.name}"
    digest = sha1(place.encode("utf-8", "surrogateescape"), usedforsecurity=False)
    digest.update(message.body)
    return digest.hexdigest()


class FileClient(Protocol):
    """The protocol's side of it."""

    def ask(self, download: Download) -> None:
        """Ask the client how much of a file it has: file.open."""

    def send_rest(self, download: Download, offset: int) -> None:
        """Send a file from there on: file.stage."""

    def hand_over(self, download: Download) -> None:
        """Say to which consumer the file goes that was just staged: file.deliver."""


class Downloads:
    """What is under way to one client, or is to be. The first of them is opened, the others are to be."""

    __slots__ = ("_client", "_under_way")

    def __init__(self, client: FileClient) -> None:
        self._client = client
        self._under_way: deque[Download] = deque()

    def __iter__(self) -> Iterator[Download]:
        return iter(self._under_way)

    def add(self, download: Download) -> None:
        """Have the client ready for a file, when its turn comes."""
        self._under_way.append(download)
        if len(self._under_way) == 1:
            self._client.ask(download)

    def opened(self, staged_size: int) -> None:
        """The client has so much of the file that is opened: stage the rest, and deliver it.

        Sources: file.open-ok/staged-size-behavior, file.deliver/staged.

        Raises:
            IllegalState: no file is opened.
            IllegalArgument: it is not that large.
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
        """Deliver nothing more to a consumer that ends (file.cancel/stops).

        What is opened is staged all the same: the client waits for it.

        Returns:
            What was under way to it, for the caller to give back.
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
        """The client has gone."""
        self._under_way.clear()
