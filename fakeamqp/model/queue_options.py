"""What a queue's declaration asks for beyond its flags: the `x-` arguments, validated.

Argument meanings and limits are RabbitMQ's documented ones. An argument RabbitMQ does not know is
carried and has no effect, as there; one that RabbitMQ knows and this broker does not have is refused,
so that no test passes on a feature that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from fakeamqp.model.equivalence import type_name
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
    "x-queue-mode",
    "x-queue-version",
    "x-queue-type",
    "x-queue-master-locator",
    "x-single-active-consumer",
)
"""Arguments that a redeclaration must repeat (RabbitMQ: documented equivalence)."""

_LONGEST_ROUTING_KEY = 255
"""Octets: what a short string holds in every method that carries a routing key."""

_OF_OTHER_TYPES = (
    "x-dead-letter-strategy",
    "x-delivery-limit",
    "x-initial-cluster-size",
    "x-max-age",
    "x-max-in-memory-bytes",
    "x-max-in-memory-length",
    "x-quorum-initial-group-size",
    "x-stream-filter-size-bytes",
    "x-stream-max-segment-size-bytes",
)
"""Arguments of quorum queues and streams: refused on a classic queue (RabbitMQ: measured)."""


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
    queue_type = reader.choice(
        "x-queue-type", ("classic", "quorum", "stream"), "\"unsupported queue type '{}'\""
    )
    if queue_type in ("quorum", "stream"):
        raise NotImplementedHere(f"queue type '{queue_type}' is not supported by fakeamqp yet")
    for argument in _OF_OTHER_TYPES:
        if argument in arguments:
            raise PreconditionFailed(
                f"invalid arg '{argument}' for queue '{name}' in vhost '{virtual_host}' "
                "of queue type rabbit_classic_queue"
            )
    if "x-consumer-timeout" in arguments:
        raise NotImplementedHere("queue argument 'x-consumer-timeout' is not supported by fakeamqp yet")
    # In the order RabbitMQ checks them, so that of two bad ones the same is named.
    options = QueueOptions(
        expires=reader.milliseconds("x-expires", least=1),
        message_ttl=reader.milliseconds("x-message-ttl", least=0),
        dead_letter_exchange=reader.exchange("x-dead-letter-exchange"),
        dead_letter_routing_key=reader.text("x-dead-letter-routing-key"),
        max_length=reader.count("x-max-length"),
        max_length_bytes=reader.count("x-max-length-bytes"),
        max_priority=reader.count("x-max-priority", most=255),
        overflow=reader.choice(  # type: ignore[arg-type]
            "x-overflow", ("drop-head", "reject-publish", "reject-publish-dlx"), "invalid_overflow"
        )
        or "drop-head",
        single_active_consumer=reader.flag("x-single-active-consumer"),
    )
    key = options.dead_letter_routing_key
    if key is not None and options.dead_letter_exchange is None:
        reader.refuse("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")
    if key is not None and len(key.encode("utf-8", "surrogateescape")) > _LONGEST_ROUTING_KEY:
        # RabbitMQ (measured) takes it, and ends connections that are sent such a message with 541.
        reader.refuse("x-dead-letter-routing-key", f"longer than {_LONGEST_ROUTING_KEY} octets")
    reader.choice("x-queue-mode", ("default", "lazy"), "\"unsupported queue mode '{}'\"")
    version = reader.count("x-queue-version")
    if version not in (None, 1, 2):
        reader.refuse("x-queue-version", f"\"unsupported queue version '{version}'\"")
    return options


class _Reader:
    """Reads typed values; what is wrong is refused in RabbitMQ's words."""

    def __init__(self, name: str, virtual_host: str, arguments: Mapping[str, Any]) -> None:
        self._name = name
        self._virtual_host = virtual_host
        self._arguments = arguments

    def refuse(self, argument: str, reason: str) -> NoReturn:
        raise PreconditionFailed(
            f"invalid arg '{argument}' for queue '{self._name}' in vhost '{self._virtual_host}': {reason}"
        )

    def count(self, argument: str, most: int | None = None) -> int | None:
        if argument not in self._arguments:
            return None
        value = self._arguments[argument]
        if type(value) is not int:
            self.refuse(argument, f'"expected integer, got {type_name(value)}"')
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
            self.refuse(argument, f"{{value_too_large,{value}}}")
        return value / 1000

    def text(self, argument: str) -> str | None:
        if argument not in self._arguments:
            return None
        value = self._arguments[argument]
        if not isinstance(value, str):
            self.refuse(argument, f"{{unacceptable_type,{type_name(value)}}}")
        return value

    def exchange(self, argument: str) -> str | None:
        value = self._arguments.get(argument)
        if argument in self._arguments and not isinstance(value, str):
            raise PreconditionFailed(
                f"invalid type '{type_name(value)}' for arg '{argument}' in queue '{self._name}' "
                f"in vhost '{self._virtual_host}'"
            )
        return value

    def choice(self, argument: str, legal: tuple[str, ...], refusal: str) -> str | None:
        value = self.text(argument)
        if value is not None and value not in legal:
            self.refuse(argument, refusal.format(value))
        return value

    def flag(self, argument: str) -> bool:
        value = self._arguments.get(argument, False)
        if not isinstance(value, bool):
            self.refuse(argument, f"{{unacceptable_type,{type_name(value)}}}")
        return value
