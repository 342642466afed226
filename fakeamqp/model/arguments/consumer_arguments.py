"""The arguments of `basic.consume`: one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from fakeamqp.model.arguments.queue_arguments import refuse_foreign
from fakeamqp.model.arguments.rows import Argument, Taken, option, read_options, rows_of
from fakeamqp.model.arguments.values import ArgumentReader
from fakeamqp.model.versions import ONLY_3_13, SINCE_3_13, SINCE_4_3, UNTIL_3_13

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["CONSUMER_ARGUMENTS", "STREAM_OFFSET", "ConsumerOptions", "StreamOffset", "consumer_options"]

STREAM_OFFSET: Final = "x-stream-offset"

_NAMED_OFFSETS: dict[str, Literal["first", "last", "next"]] = {
    "first": "first",
    "last": "last",
    "next": "next",
}


@dataclass(frozen=True)
class StreamOffset:
    """Where in a stream a consumer begins.

    At one of its ends, at the offset `number`, or at the first message that is as young as `number` says: a
    time in seconds since 1970, or an age in seconds. For "crash" RabbitMQ ends the connection.
    """

    kind: Literal["first", "last", "next", "offset", "time", "age", "crash"] = "next"
    number: float = 0


def _stream_offset(reader: ArgumentReader, name: str) -> StreamOffset:
    """Where to begin in a stream (RabbitMQ: documented; what it makes of other types is measured)."""
    value = reader.arguments[name]
    if value in (b"first", b"last", b"next"):
        value = value.decode()
    if isinstance(value, str):
        if value in _NAMED_OFFSETS:
            return StreamOffset(_NAMED_OFFSETS[value])
        age = reader.seconds_of_age(value)
        if age is None:
            reader.refuse(name, f"{{invalid_stream_offset_arg,{{longstr,{_erlang_binary(value)}}}}}")
        return StreamOffset("age", age)
    if isinstance(value, bool) or not isinstance(value, int):
        return StreamOffset("crash")
    return StreamOffset("offset" if type(value) is int else "time", value)


def _erlang_binary(text: str) -> str:
    """A text as RabbitMQ's texts show bytes."""
    octets = text.encode("utf-8", "surrogateescape")
    if text.isprintable() and text.isascii():
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'<<"{quoted}">>' if text else "<<>>"
    return f"<<{','.join(map(str, octets))}>>"


def _filters(reader: ArgumentReader, name: str) -> tuple[str, ...] | None:
    """A text or an array of texts; any other value is ignored (RabbitMQ: measured)."""
    value = reader.arguments[name]
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(each for each in value if isinstance(each, str))
    return None


def _is_true(reader: ArgumentReader, name: str) -> bool:
    return reader.arguments[name] is True


@dataclass(frozen=True)
class ConsumerOptions:
    """What the arguments of `basic.consume` ask for; each field stands in the row of its argument.

    `timeout` is how many seconds the consumer may hold a message, where it can ask for that. `filters` are
    the values of the messages that a stream delivers, None where it delivers all; `match_unfiltered` adds
    the messages without a value. A `ClassVar` is the row of an argument without effect.
    """

    priority: int = option(
        "x-priority", ArgumentReader.integer, {"classic": Taken(), "quorum": Taken()}, default=0
    )
    cancel_on_failover: ClassVar[Argument] = Argument(
        "x-cancel-on-ha-failover", ArgumentReader.flag, {"classic": Taken(UNTIL_3_13)}
    )
    credit: ClassVar[Argument] = Argument(
        "x-credit",
        None,
        {"classic": Taken(UNTIL_3_13), "quorum": Taken(UNTIL_3_13), "stream": Taken(UNTIL_3_13)},
    )
    timeout: float | None = option(
        "x-consumer-timeout", ArgumentReader.any_milliseconds, {"quorum": Taken(SINCE_4_3)}
    )
    stream_offset: StreamOffset = option(
        STREAM_OFFSET, _stream_offset, {"stream": Taken()}, default=StreamOffset()
    )
    filters: tuple[str, ...] | None = option(
        # In 3.13 all queue types take the filters' arguments, and only streams heed them.
        "x-stream-filter",
        _filters,
        {"classic": Taken(ONLY_3_13), "quorum": Taken(ONLY_3_13), "stream": Taken(SINCE_3_13)},
    )
    match_unfiltered: bool = option(
        "x-stream-match-unfiltered",
        _is_true,
        {"classic": Taken(ONLY_3_13), "quorum": Taken(ONLY_3_13), "stream": Taken(SINCE_3_13)},
        default=False,
    )


CONSUMER_ARGUMENTS: tuple[Argument, ...] = rows_of(ConsumerOptions)


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
    options = read_options(CONSUMER_ARGUMENTS, reader, personality.consumer_arguments[kind])
    refuse_foreign(reader, kind, personality.consumer_arguments)
    return ConsumerOptions(**options)
