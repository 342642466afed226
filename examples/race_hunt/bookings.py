"""A service that books payments, and sends a receipt for each.

The race is "exactly once" by a set in memory. A payment that was not acknowledged when the service stops is
delivered again. The racy form has a set of the payments that it has booked, but the second delivery goes to
another instance, whose set is empty.
"""

from __future__ import annotations

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from typing_extensions import Self

PAYMENTS = "payments"
RECEIPTS = "receipts"


class Account:
    """A table of a database in a real service: it outlives the instances of the service."""

    def __init__(self) -> None:
        self.balance = 0
        self._booked: set[str] = set()

    def book(self, cents: int) -> None:
        self.balance += cents

    def book_once(self, payment_id: str, cents: int) -> None:
        """One transaction: insert the id where it is the primary key; add to the balance if it was new."""
        if payment_id not in self._booked:
            self._booked.add(payment_id)
            self.balance += cents


class RacyBookings:
    """Books payments for as long as the `async with` block runs."""

    def __init__(self, url: str, account: Account) -> None:
        self._url = url
        self._account = account
        self._seen: set[str] = set()

    async def __aenter__(self) -> Self:
        # RabbitMQ holds up connections that publish too fast, so consuming has a connection of its own.
        self._consuming = await aio_pika.connect(self._url)
        self._publishing = await aio_pika.connect(self._url)
        self._receipts = (await self._publishing.channel()).default_exchange
        channel = await self._consuming.channel()
        await channel.set_qos(prefetch_count=10)
        self._payments = await channel.declare_queue(PAYMENTS, durable=True)
        self._consumer_tag = await self._payments.consume(self._on_payment)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._payments.cancel(self._consumer_tag)
        await self._consuming.close()  # What is not acknowledged goes to the next instance.
        await self._publishing.close()

    async def _on_payment(self, message: AbstractIncomingMessage) -> None:
        async with message.process(requeue=True):
            payment_id = message.message_id or ""
            # Whoever gets no receipt sends the payment again. It gets a receipt, but is booked once.
            if payment_id not in self._seen:
                self._seen.add(payment_id)
                self._book(payment_id, int(message.body))
            receipt = aio_pika.Message(message.body, message_id=payment_id)
            await self._receipts.publish(receipt, routing_key=RECEIPTS)

    def _book(self, payment_id: str, cents: int) -> None:
        self._account.book(cents)


class Bookings(RacyBookings):
    """The fix: what was booked is remembered where it is booked, in the same transaction."""

    def _book(self, payment_id: str, cents: int) -> None:
        self._account.book_once(payment_id, cents)
