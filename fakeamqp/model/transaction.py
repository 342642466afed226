"""Work that counts all together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from fakeamqp.model.delivery import accept_all, reject_all, release_all

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery

__all__ = ["Settlement", "Transaction"]

Settlement = Literal["accept", "reject", "release"]


class Transaction:
    """Collects publishes and settlements until `commit` or `rollback` (tx/covers-publish-ack).

    After either a new transaction has begun in the same object (tx.commit/new-transaction).
    """

    def __init__(self) -> None:
        self._publishes: list[Callable[[], None]] = []
        self._settlements: list[tuple[Settlement, Delivery]] = []

    def publish(self, perform: Callable[[], None]) -> None:
        """Keep one publish; `perform` does it at commit."""
        self._publishes.append(perform)

    def settle(self, how: Settlement, delivery: Delivery) -> None:
        """Keep one settlement."""
        self._settlements.append((how, delivery))

    def commit(self) -> None:
        """Do everything in the order it was asked for: publishes first, then settlements."""
        publishes, self._publishes = self._publishes, []
        settlements, self._settlements = self._settlements, []
        for perform in publishes:
            perform()
        for how, act in (("accept", accept_all), ("reject", reject_all), ("release", release_all)):
            chosen = [delivery for kind, delivery in settlements if kind == how]
            if chosen:
                act(chosen)

    def rollback(self) -> list[Delivery]:
        """Drop everything; the deliveries are outstanding again (tx.rollback/undoes-acks)."""
        self._publishes.clear()
        undone = [delivery for _, delivery in self._settlements]
        self._settlements.clear()
        return undone
