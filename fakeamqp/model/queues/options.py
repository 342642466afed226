"""What a queue's declaration asks for beyond its flags: the `x-` arguments, validated.

Argument meanings and limits are RabbitMQ's documented ones. Which arguments a queue type takes is the
personality's (`queue_arguments`). One that only other types take is refused; one that no type knows is
carried and has no effect, as in RabbitMQ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from fakeamqp.model.equivalence import type_name
from fakeamqp.model.errors import Crash, PreconditionFailed

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = [
    "EQUIVALENCE_ARGUMENTS",
    "KINDS",
    "ArgumentReader",
    "ConsumerOptions",
    "QueueOptions",
    "StreamOffset",
    "check_dead_letter_exchange",
    "compared_arguments",
    "consumer_options",
    "longest_ttl",
    "queue_options",
    "queue_type",
]

Overflow = Literal["drop-head", "reject-publish", "reject-publish-dlx"]
Strategy = Literal["at-most-once", "at-least-once"]

longest_ttl = 315_360_000_000
"""Ten years in milliseconds: RabbitMQ's cap for times to live."""

EQUIVALENCE_ARGUMENTS = (
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-queue-type",
    "x-queue-master-locator",
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-stream-filter-size-bytes",
    "x-initial-cluster-size",
    "x-queue-leader-locator",
)
"""Arguments that a redeclaration must repeat where the queue's type takes them, in the order in which they
are looked at (RabbitMQ: documented equivalence)."""

_QUORUM_EQUIVALENCE = (
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-overflow",
    "x-single-active-consumer",
    "x-queue-type",
    "x-quorum-initial-group-size",
    "x-delivery-limit",
    "x-message-ttl",
    "x-queue-leader-locator",
    "x-consumer-disconnected-timeout",
    "x-consumer-timeout",
    "x-delayed-retry-type",
    "x-delayed-retry-min",
    "x-delayed-retry-max",
)
"""The same for quorum queues, which have an order of their own."""

KINDS = {
    "classic": "rabbit_classic_queue",
    "quorum": "rabbit_quorum_queue",
    "stream": "rabbit_stream_queue",
}
"""The queue types, and how RabbitMQ's texts call them."""

_LONGEST_ROUTING_KEY = 255
"""Octets: what a short string holds in every method that carries a routing key."""

_ENDS: dict[str, Literal["first", "last", "next"]] = {"first": "first", "last": "last", "next": "next"}
_SECONDS = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}


@dataclass(frozen=True)
class QueueOptions:
    """Times in seconds, sizes in bytes, counts in messages; None means not asked for."""

    message_ttl: float | None = None
    expires: float | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    max_priority: int | None = None
    overflow: Overflow = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    dead_letter_strategy: Strategy = "at-most-once"
    single_active_consumer: bool = False
    delivery_limit: float | None = None
    delayed_retry_type: str | None = None
    delayed_retry_min: float | None = None
    delayed_retry_max: float | None = None
    consumer_timeout: float | None = None
    max_age: float | None = None
    max_segment_size: int | None = None

    def __repr__(self) -> str:
        values = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        shown = ", ".join(f"{name}={value!r}" for name, value, usual in values if value != usual)
        return f"QueueOptions({shown})"


@dataclass(frozen=True)
class StreamOffset:
    """Where in a stream to begin.

    At one of its ends, at the offset `number`, at the first message that is as young as `number` says: a
    time in seconds since 1970, or an age in seconds. A "crash" is what RabbitMQ ends the connection for.
    """

    kind: Literal["first", "last", "next", "offset", "time", "age", "crash"] = "next"
    number: float = 0


@dataclass(frozen=True)
class ConsumerOptions:
    """What the arguments of basic.consume ask for.

    `timeout` is how many seconds the consumer may hold a message, where it has a say in that. `filters` are
    the values of messages that a stream is to be filtered by, None where it is not;
    `match_unfiltered` says whether messages without a value come as well.
    """

    priority: int = 0
    timeout: float | None = None
    stream_offset: StreamOffset = StreamOffset()
    filters: tuple[str, ...] | None = None
    match_unfiltered: bool = False


def queue_type(
    name: str,
    virtual_host: str,
    arguments: Mapping[str, Any],
    personality: Personality,
    default: str = "classic",
) -> str:
    """The queue type that the arguments of `queue.declare` ask for.

    Raises:
        PreconditionFailed: there is no such type.
    """
    if arguments.get("x-queue-type") in personality.absent_queue_types:
        return default
    reader = ArgumentReader("queue", name, virtual_host, arguments)
    return reader.choice("x-queue-type", tuple(KINDS), "\"unsupported queue type '{}'\"") or default


def queue_options(
    kind: str,
    name: str,
    virtual_host: str,
    arguments: Mapping[str, Any],
    personality: Personality,
) -> QueueOptions:
    """Read the arguments of `queue.declare` for a queue of type `kind`.

    Args:
        kind: the queue type.
        name: of the queue, for texts.
        virtual_host: its name, for texts.
        arguments: of the declaration.
        personality: says which queue type takes what.

    Raises:
        PreconditionFailed: an argument has an illegal value, or belongs to other queue types.
    """
    reader = ArgumentReader("queue", name, virtual_host, arguments, personality)
    return QueueOptions(**_read(reader, _QUEUE_ARGUMENTS, kind, personality.queue_arguments))


def consumer_options(
    kind: str,
    name: str,
    virtual_host: str,
    arguments: Mapping[str, Any],
    personality: Personality,
) -> ConsumerOptions:
    """Read the arguments of `basic.consume` for a queue of type `kind`; see `queue_options`.

    Raises:
        PreconditionFailed: an argument has an illegal value, or belongs to other queue types.
    """
    reader = ArgumentReader("queue", name, virtual_host, arguments, personality)
    return ConsumerOptions(**_read(reader, _CONSUMER_ARGUMENTS, kind, personality.consumer_arguments))


def check_dead_letter_exchange(name: str, virtual_host: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a dead-letter exchange that is no name. For queues of every type this is looked at first.

    Raises:
        PreconditionFailed: it is none.
    """
    ArgumentReader("queue", name, virtual_host, arguments).exchange("x-dead-letter-exchange")


def _read(
    reader: ArgumentReader,
    readers: Mapping[str, tuple[str | None, _Read]],
    kind: str,
    known: Mapping[str, Collection[str]],
) -> dict[str, Any]:
    """The options that the arguments set, by name."""
    values = {}
    # In the order RabbitMQ checks them, so that of two bad ones the same is named.
    for argument, (field, read) in readers.items():
        if argument in reader.arguments and argument in known[kind]:
            value = read(reader, argument)
            if field:
                values[field] = value
    for argument in reader.arguments:
        if argument not in known[kind] and any(argument in others for others in known.values()):
            raise PreconditionFailed(
                f"invalid arg '{argument}' for {reader.entity} of queue type {KINDS[kind]}"
            )
    return values


class ArgumentReader:
    """Reads typed values from a table of arguments; what is wrong is refused in RabbitMQ's words."""

    def __init__(
        self,
        kind: str,
        name: str,
        virtual_host: str,
        arguments: Mapping[str, Any],
        personality: Personality | None = None,
    ) -> None:
        self.entity = f"{kind} '{name}' in vhost '{virtual_host}'"
        self.arguments = arguments
        self._personality = personality

    def refuse(self, argument: str, reason: str) -> NoReturn:
        """Refuse an argument.

        Raises:
            PreconditionFailed: always; `reason` is an Erlang term, as in RabbitMQ's texts.
        """
        raise PreconditionFailed(f"invalid arg '{argument}' for {self.entity}: {reason}")

    def integer(self, argument: str) -> int | None:
        """A whole number of any width."""
        if argument not in self.arguments:
            return None
        value = self.arguments[argument]
        if type(value) is not int:
            self.refuse(argument, f'"expected integer, got {type_name(value)}"')
        return value

    def count(self, argument: str, most: int | None = None) -> int | None:
        """A whole number from 0 to `most`."""
        value = self.integer(argument)
        if value is None:
            return None
        if value < 0:
            self.refuse(argument, f"{{value_negative,{value}}}")
        if most is not None and value > most:
            self.refuse(argument, f"{{max_value_exceeded,{value}}}")
        return value

    def positive(self, argument: str) -> int | None:
        """A whole number above 0."""
        value = self.count(argument)
        if value == 0:
            self.refuse(argument, "{value_zero,0}")
        return value

    def milliseconds(self, argument: str, least: int = 0) -> float | None:
        """A time in milliseconds of at most ten years, in seconds."""
        value = self.count(argument)
        if value is None:
            return None
        if value < least:
            self.refuse(argument, f"{{value_zero,{value}}}")
        if value > longest_ttl:
            self.refuse(argument, f"{{value_too_large,{value}}}")
        return value / 1000

    def delivery_limit(self, argument: str) -> float | None:
        """A whole number; what is none means nothing, or by personality a limit that is never reached."""
        value = self.arguments[argument]
        if type(value) is int:
            return value
        odd_is_none = self._personality is None or self._personality.quorum.odd_limit_is_none
        return None if odd_is_none else inf

    def milliseconds_if_positive(self, argument: str) -> float | None:
        """A time in milliseconds, in seconds; anything else is as good as nothing (RabbitMQ: its sources)."""
        value = self.arguments[argument]
        return value / 1000 if type(value) is int and value > 0 else None

    def text_if_any(self, argument: str) -> str | None:
        """A string; anything else is as good as nothing (RabbitMQ: its sources)."""
        value = self.arguments[argument]
        return value if isinstance(value, str) else None

    def milliseconds_if_whole(self, argument: str) -> float | None:
        """A time in milliseconds, in seconds; anything else is as good as nothing (RabbitMQ: measured)."""
        value = self.arguments.get(argument)
        return value / 1000 if type(value) is int else None

    def text(self, argument: str) -> str | None:
        """A string."""
        if argument not in self.arguments:
            return None
        value = self.arguments[argument]
        if not isinstance(value, str):
            self.refuse(argument, f"{{unacceptable_type,{type_name(value)}}}")
        return value

    def exchange(self, argument: str) -> str | None:
        """The name of an exchange."""
        value = self.arguments.get(argument)
        if argument in self.arguments and not isinstance(value, str):
            raise PreconditionFailed(
                f"invalid type '{type_name(value)}' for arg '{argument}' in {self.entity}"
            )
        return value

    def dead_letter_routing_key(self, argument: str) -> str | None:
        """A routing key, for which there must be an exchange."""
        key = self.text(argument)
        if key is not None and "x-dead-letter-exchange" not in self.arguments:
            self.refuse(argument, "routing_key_but_no_dlx_defined")
        if key is not None and len(key.encode("utf-8", "surrogateescape")) > _LONGEST_ROUTING_KEY:
            # RabbitMQ (measured) takes it, and ends connections that are sent such a message with 541.
            self.refuse(argument, f"longer than {_LONGEST_ROUTING_KEY} bytes")
        return key

    def legal(self, argument: str) -> tuple[Any, ...]:
        """The values that the personality has for an argument; none where it takes any."""
        return () if self._personality is None else self._personality.argument_values.get(argument, ())

    def choice(self, argument: str, legal: tuple[str, ...], refusal: str) -> str | None:
        """One of a few words."""
        value = self.text(argument)
        if value is not None and value not in legal:
            self.refuse(argument, refusal.format(value))
        return value

    def flag(self, argument: str) -> bool:
        """A truth value."""
        value = self.arguments.get(argument, False)
        if not isinstance(value, bool):
            self.refuse(argument, f"{{unacceptable_type,{type_name(value)}}}")
        return value

    def age(self, argument: str) -> float | None:
        """A number with a unit, such as 7D: in seconds."""
        value = self.text(argument)
        if value is None:
            return None
        age = self._seconds(value)
        if age is None:
            self.refuse(argument, "invalid_max_age")
        return age

    def _seconds(self, text: str) -> float | None:
        """An age in seconds; None where it is none.

        Raises:
            Crash: it does not begin with a digit, where the personality cannot stand that.
        """
        if (
            self._personality is not None
            and self._personality.crashes_on_ages
            and not re.match("[0-9]", text)
        ):
            raise Crash("an age that does not begin with a digit")
        found = re.fullmatch("([0-9]+)([YMDhms])\n?", text)
        if found is None or int(found[1]) == 0:
            return None
        return float(int(found[1]) * _SECONDS[found[2]])

    def stream_offset(self, argument: str) -> StreamOffset:
        """Where to begin in a stream (RabbitMQ: documented; what it makes of other types is measured)."""
        value = self.arguments[argument]
        if value in (b"first", b"last", b"next"):
            value = value.decode()
        if isinstance(value, str):
            if value in _ENDS:
                return StreamOffset(_ENDS[value])
            age = self._seconds(value)
            if age is None:
                self.refuse(argument, f"{{invalid_stream_offset_arg,{{longstr,{_erlang_binary(value)}}}}}")
            return StreamOffset("age", age)
        if isinstance(value, bool) or not isinstance(value, int):
            return StreamOffset("crash")
        return StreamOffset("offset" if type(value) is int else "time", value)

    def filters(self, argument: str) -> tuple[str, ...] | None:
        """One text or an array of such; anything else is as good as nothing (RabbitMQ: measured)."""
        value = self.arguments.get(argument)
        if isinstance(value, str):
            return (value,)
        if isinstance(value, (list, tuple)):
            return tuple(each for each in value if isinstance(each, str))
        return None

    def patience(self, argument: str) -> float | None:
        """A time in milliseconds, in seconds; what else it may be is the personality's."""
        if self._personality is None or not self._personality.validates_consumer_timeout:
            return self.milliseconds_if_whole(argument)
        value = self.count(argument)
        return None if value is None else value / 1000


def _version(reader: ArgumentReader, argument: str) -> int | None:
    version = reader.count(argument)
    legal = reader.legal(argument)
    if legal and version not in legal:
        reader.refuse(argument, f"\"unsupported queue version '{version}'\"")
    return version


def _mode(reader: ArgumentReader, argument: str) -> None:
    legal = reader.legal(argument)
    if legal:
        reader.choice(argument, legal, "\"unsupported queue mode '{}'\"")


def _erlang_binary(text: str) -> str:
    """A text as RabbitMQ's texts show bytes."""
    octets = text.encode("utf-8", "surrogateescape")
    if text.isprintable() and text.isascii():
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'<<"{quoted}">>' if text else "<<>>"
    return f"<<{','.join(map(str, octets))}>>"


def compared_arguments(kind: str, personality: Personality) -> list[str]:
    """The arguments that the redeclaration of a queue of type `kind` must repeat."""
    known = personality.queue_arguments[kind]
    names = _QUORUM_EQUIVALENCE if kind == "quorum" else EQUIVALENCE_ARGUMENTS
    # What is not validated is not compared.
    unknown = () if personality.validates_consumer_timeout else ("x-consumer-timeout",)
    return [name for name in names if name in known and name not in unknown]


_Read = Callable[[ArgumentReader, str], Any]

_QUEUE_ARGUMENTS: dict[str, tuple[str | None, _Read]] = {
    "x-expires": ("expires", lambda reader, name: reader.milliseconds(name, least=1)),
    "x-message-ttl": ("message_ttl", ArgumentReader.milliseconds),
    "x-dead-letter-exchange": ("dead_letter_exchange", ArgumentReader.exchange),
    "x-dead-letter-routing-key": ("dead_letter_routing_key", ArgumentReader.dead_letter_routing_key),
    "x-dead-letter-strategy": (
        "dead_letter_strategy",
        lambda reader, name: reader.choice(name, ("at-most-once", "at-least-once"), "invalid_dlx_strategy"),
    ),
    "x-max-length": ("max_length", ArgumentReader.count),
    "x-max-length-bytes": ("max_length_bytes", ArgumentReader.count),
    "x-max-in-memory-length": (None, ArgumentReader.count),
    "x-max-in-memory-bytes": (None, ArgumentReader.count),
    "x-max-priority": ("max_priority", lambda reader, name: reader.count(name, most=255)),
    "x-overflow": (
        "overflow",
        lambda reader, name: reader.choice(
            name, ("drop-head", "reject-publish", "reject-publish-dlx"), "invalid_overflow"
        ),
    ),
    "x-queue-mode": (None, _mode),
    "x-queue-version": (None, _version),
    "x-single-active-consumer": ("single_active_consumer", ArgumentReader.flag),
    "x-quorum-initial-group-size": (None, ArgumentReader.positive),
    "x-consumer-timeout": ("consumer_timeout", ArgumentReader.patience),
    "x-consumer-disconnected-timeout": (None, ArgumentReader.count),
    "x-delivery-limit": ("delivery_limit", ArgumentReader.delivery_limit),
    "x-delayed-retry-type": ("delayed_retry_type", ArgumentReader.text_if_any),
    "x-delayed-retry-min": ("delayed_retry_min", ArgumentReader.milliseconds_if_positive),
    "x-delayed-retry-max": ("delayed_retry_max", ArgumentReader.milliseconds_if_positive),
    "x-max-age": ("max_age", ArgumentReader.age),
    "x-stream-max-segment-size-bytes": ("max_segment_size", ArgumentReader.count),
    "x-stream-filter-size-bytes": (None, ArgumentReader.count),
    "x-initial-cluster-size": (None, ArgumentReader.positive),
    "x-queue-leader-locator": (
        None,
        lambda reader, name: reader.choice(name, reader.legal(name), "invalid_queue_locator_arg"),
    ),
}
"""Argument -> the option it sets, if any, and how it is read. In the order of RabbitMQ's checks."""

_CONSUMER_ARGUMENTS: dict[str, tuple[str | None, _Read]] = {
    "x-priority": ("priority", ArgumentReader.integer),
    "x-cancel-on-ha-failover": (None, ArgumentReader.flag),
    "x-consumer-timeout": (
        "timeout",
        lambda reader, name: None if (asked := reader.count(name)) is None else asked / 1000,
    ),
    "x-stream-offset": ("stream_offset", ArgumentReader.stream_offset),
    "x-stream-filter": ("filters", ArgumentReader.filters),
    "x-stream-match-unfiltered": (
        "match_unfiltered",
        lambda reader, name: reader.arguments[name] is True,
    ),
}
"""The same for the arguments of basic.consume."""
