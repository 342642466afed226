"""Work that counts all together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery

__all__ = ["Transaction"]


class Transaction:
    """Collects publishes and settlements until `commit` or `rollback` (tx/covers-publish-ack).

    After either a new transaction has begun in the same object (tx.commit/new-transaction).
    """

    def __init__(self) -> None:
        self._publishes: list[Callable[[], bool]] = []
        self._settlements: list[tuple[Callable[[Sequence[Delivery]], None], Sequence[Delivery]]] = []

    def publish(self, perform: Callable[[], bool]) -> None:
        """Keep one publish; `perform` does it at commit and tells whether it was accepted."""
        self._publishes.append(perform)

    def settle(self, act: Callable[[Sequence[Delivery]], None], deliveries: Sequence[Delivery]) -> None:
        """Keep one settlement; `act` does it at commit."""
        self._settlements.append((act, deliveries))

    def commit(self) -> bool:
        """Do everything in the order it was asked for, but publishes before settlements.

        Returns:
            False where a queue refused one of the messages.
        """
        publishes, self._publishes = self._publishes, []
        settlements, self._settlements = self._settlements, []
        accepted = [perform() for perform in publishes]
        for act, deliveries in settlements:
            act(deliveries)
        return all(accepted)

    def rollback(self) -> list[Delivery]:
        """Drop everything; the deliveries are outstanding again (tx.rollback/undoes-acks)."""
        self._publishes.clear()
        undone = [delivery for _, deliveries in self._settlements for delivery in deliveries]
        self._settlements.clear()
        return undone
