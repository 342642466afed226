"""What a declaration says of a queue beside its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["QueueDeclaration"]


@dataclass(frozen=True)
class QueueDeclaration:
    """What a declaration says of a queue beside its name.

    Args:
        owner: the connection or session that declares the queue, and to which an exclusive queue belongs.
            None is the broker itself, to which nothing is denied.
        durable: the queue survives a restart; an exclusive queue does so only if it is freeable.
        exclusive: only `owner` may use the queue.
        auto_delete: the queue is deleted with its last consumer.
        arguments: see `fakeamqp.model.arguments`.
        alternate_exchange: names the exchange that gets, unchanged, the messages that clients reject and
            those that the queue holds when it is deleted (queue.declare/alternate-exchange-routing).
        freeable: what happens to an exclusive queue when its owner goes. A freeable queue is deleted only if
            it is auto-delete, and not with its last subscription; otherwise it becomes a shared queue
            (queue.declare/auto-delete-exclusive, exclusive-without-auto-delete). Others are deleted.
        priorities: ten levels of priority, or none, where the arguments ask for no number of levels; None
            leaves that to the personality. A queue with such levels drops the least urgent message when it is
            too long. Only classic queues heed it.
    """

    owner: object = None
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    alternate_exchange: str | None = None
    freeable: bool = False
    priorities: bool | None = None

    @property
    def is_durable(self) -> bool:
        """Whether the queue will be durable: it is not if it is deleted with its owner."""
        return self.durable and (not self.exclusive or self.freeable)

    @property
    def exclusive_owner(self) -> object:
        """The owner of the queue if it is exclusive, else None."""
        return self.owner if self.exclusive else None

    @property
    def is_lasting(self) -> bool:
        """Whether it is durable, shared and not deleted by itself, as queues of replicated types must be."""
        return self.durable and not self.exclusive and not self.auto_delete
