"""The metadata of a virtual host, and its default queue type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fakeamqp.model.arguments.queue_arguments import QUEUE_TYPE, QUEUE_TYPES
from fakeamqp.model.parameters import ParameterError, hint

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues import QueueDeclaration

__all__ = ["VirtualHostMetadata"]

_DEFAULT = "classic"


@dataclass(frozen=True)
class VirtualHostMetadata:
    """The metadata of a virtual host.

    Args:
        description: free text.
        tags: free text.
        default_queue_type: the type of queues declared without `x-queue-type`; None means classic.
        protected_from_deletion: has no effect; kept for exports of definitions.

    Raises:
        ParameterError: the queue type does not exist.
    """

    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    protected_from_deletion: bool = False

    def __post_init__(self) -> None:
        kind = self.default_queue_type
        if kind is not None and kind not in QUEUE_TYPES:
            reason = f"{kind} is not a valid queue type"
            raise ParameterError(f"default_queue_type: {reason}{hint(kind, QUEUE_TYPES)}", reason)

    def value(self) -> dict[str, Any]:
        """The metadata as RabbitMQ exports it."""
        value: dict[str, Any] = {"description": self.description, "tags": list(self.tags)}
        if self.default_queue_type is not None:
            value["default_queue_type"] = self.default_queue_type
        if self.protected_from_deletion:
            value["protected_from_deletion"] = True
        return value

    def with_queue_type(self, personality: Personality, declaration: QueueDeclaration) -> QueueDeclaration:
        """The declaration, with the default queue type among its arguments if they name none.

        A queue that is not durable, exclusive or auto-delete is classic whatever the default, since no other
        type can be (RabbitMQ: documented). The personality decides whether the arguments show the type.
        """
        kept = personality.remembers_queue_type
        if QUEUE_TYPE in declaration.arguments or kept == "never":
            return declaration
        default = self.default_queue_type
        if default is None and kept != "always":
            return declaration
        kind = (default or _DEFAULT) if declaration.is_lasting else _DEFAULT
        return replace(declaration, arguments={**declaration.arguments, QUEUE_TYPE: kind})
