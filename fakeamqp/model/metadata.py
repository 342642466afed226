"""What a virtual host says about itself, and the queue type it has where a client names none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakeamqp.model.parameters import ParameterError, hint
from fakeamqp.model.queues.options import KINDS

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["VirtualHostMetadata"]

_DEFAULT = "classic"


@dataclass(frozen=True)
class VirtualHostMetadata:
    """Words about a virtual host.

    Args:
        description: for people.
        tags: for people.
        default_queue_type: of queues declared without `x-queue-type`; None is as good as classic.
        protected_from_deletion: kept for whoever exports it.

    Raises:
        ParameterError: there is no such queue type.
    """

    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    protected_from_deletion: bool = False

    def __post_init__(self) -> None:
        kind = self.default_queue_type
        if kind is not None and kind not in KINDS:
            reason = f"{kind} is not a valid queue type"
            raise ParameterError(f"default_queue_type: {reason}{hint(kind, KINDS)}", reason)

    def value(self) -> dict[str, Any]:
        """They, as RabbitMQ exports them."""
        value: dict[str, Any] = {"description": self.description, "tags": list(self.tags)}
        if self.default_queue_type is not None:
            value["default_queue_type"] = self.default_queue_type
        if self.protected_from_deletion:
            value["protected_from_deletion"] = True
        return value

    def with_queue_type(
        self,
        personality: Personality,
        arguments: Mapping[str, Any],
        *,
        durable: bool,
        exclusive: bool,
        auto_delete: bool,
    ) -> Mapping[str, Any]:
        """The arguments of queue.declare, with the queue type that was not asked for.

        A queue that comes and goes is classic whatever the default, since no other type can be that
        (RabbitMQ: documented). Whether the type is to be seen among the arguments is the personality's.
        """
        kept = personality.remembers_queue_type
        if "x-queue-type" in arguments or kept == "never":
            return arguments
        default = self.default_queue_type
        if default is None and kept != "always":
            return arguments
        lasting = durable and not exclusive and not auto_delete
        return {**arguments, "x-queue-type": (default or _DEFAULT) if lasting else _DEFAULT}
