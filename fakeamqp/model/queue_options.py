"""What a queue's declaration asks for beyond its flags: the `x-` arguments, validated.

Argument meanings and limits are RabbitMQ's documented ones. An argument RabbitMQ does not know is
carried and has no effect, as there; one that RabbitMQ knows and this broker does not have is refused,
so that no test passes on a feature that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fakeamqp.model.errors import NotImplementedHere, PreconditionFailed

__all__ = ["EQUIVALENCE_ARGUMENTS", "QueueOptions", "longest_ttl", "queue_options"]

Overflow = Literal["drop-head", "reject-publish", "reject-publish-dlx"]

longest_ttl = 315_360_000_000
"""Ten years in milliseconds: RabbitMQ's cap for times to live."""

EQUIVALENCE_ARGUMENTS = (
    "x-expires",
    "x-message-ttl",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-queue-type",
    "x-single-active-consumer",
)
"""Arguments that a redeclaration must repeat (RabbitMQ: documented equivalence)."""

_NOT_BUILT = (
    "x-consumer-timeout",
    "x-delivery-limit",
    "x-max-age",
    "x-initial-cluster-size",
    "x-quorum-initial-group-size",
    "x-stream-max-segment-size-bytes",
)


@dataclass(frozen=True)
class QueueOptions:
    """Times in seconds, sizes in octets, counts in messages; None means not asked for."""

    message_ttl: float | None = None
    expires: float | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    max_priority: int | None = None
    overflow: Overflow = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    single_active_consumer: bool = False


def queue_options(name: str, virtual_host: str, arguments: Mapping[str, Any]) -> QueueOptions:
    """Read the arguments of `queue.declare`.

    Raises:
        PreconditionFailed: a known argument has an illegal value.
        NotImplementedHere: the argument names a feature this broker does not have.
    """
    reader = _Reader(name, virtual_host, arguments)
    for argument in _NOT_BUILT:
        if argument in arguments:
            raise NotImplementedHere(f"queue argument '{argument}' is not supported by fakeamqp yet")
    queue_type = reader.text("x-queue-type", ("classic", "quorum", "stream"))
    if queue_type in ("quorum", "stream"):
        raise NotImplementedHere(f"queue type '{queue_type}' is not supported by fakeamqp yet")
    if arguments.get("x-dead-letter-strategy") == "at-least-once":
        raise NotImplementedHere("dead-letter strategy 'at-least-once' needs a quorum queue")
    options = QueueOptions(
        message_ttl=reader.milliseconds("x-message-ttl", least=0),
        expires=reader.milliseconds("x-expires", least=1),
        max_length=reader.count("x-max-length"),
        max_length_bytes=reader.count("x-max-length-bytes"),
        max_priority=reader.count("x-max-priority", most=255),
        overflow=reader.text("x-overflow", ("drop-head", "reject-publish", "reject-publish-dlx"))
        or "drop-head",  # type: ignore[arg-type]
        dead_letter_exchange=reader.text("x-dead-letter-exchange"),
        dead_letter_routing_key=reader.text("x-dead-letter-routing-key"),
        single_active_consumer=reader.flag("x-single-active-consumer"),
    )
    if options.dead_letter_routing_key is not None and options.dead_letter_exchange is None:
        reader.refuse("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")
    return options


class _Reader:
    """Reads typed values; what is wrong is refused in RabbitMQ's words."""

    def __init__(self, name: str, virtual_host: str, arguments: Mapping[str, Any]) -> None:
        self._name = name
        self._virtual_host = virtual_host
        self._arguments = arguments

    def refuse(self, argument: str, reason: str) -> None:
        raise PreconditionFailed(
            f"invalid arg '{argument}' for queue '{self._name}' in vhost '{self._virtual_host}': {reason}"
        )

    def count(self, argument: str, most: int | None = None) -> int | None:
        value = self._arguments.get(argument)
        if argument not in self._arguments:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(argument, f"{{unacceptable_type,{_type_name(value)}}}")
            return None
        if value < 0:
            self.refuse(argument, f"{{value_negative,{value}}}")
        if most is not None and value > most:
            self.refuse(argument, f"{{max_value_exceeded,{value}}}")
        return value

    def milliseconds(self, argument: str, least: int) -> float | None:
        value = self.count(argument)
        if value is None:
            return None
        if value < least:
            self.refuse(argument, f"{{value_zero,{value}}}")
        if value > longest_ttl:
            self.refuse(argument, f"{{value_too_big,{value}}}")
        return value / 1000

    def text(self, argument: str, legal: tuple[str, ...] = ()) -> str | None:
        if argument not in self._arguments:
            return None
        value = self._arguments[argument]
        if not isinstance(value, str):
            self.refuse(argument, f"{{unacceptable_type,{_type_name(value)}}}")
        elif legal and value not in legal:
            self.refuse(argument, f"invalid value '{value}', expected one of {', '.join(legal)}")
        else:
            return value
        return None

    def flag(self, argument: str) -> bool:
        value = self._arguments.get(argument, False)
        if not isinstance(value, bool):
            self.refuse(argument, f"{{unacceptable_type,{_type_name(value)}}}")
        return bool(value)


def _type_name(value: Any) -> str:
    """RabbitMQ's name for the wire type a value would travel in."""
    from fakeamqp.model.equivalence import type_name

    return type_name(value)
