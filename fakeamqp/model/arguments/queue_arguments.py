"""The arguments of `queue.declare` and of `basic.consume`: one row each, in the order of RabbitMQ's checks.

Meanings and limits are RabbitMQ's documented ones. An argument that only other queue types take is refused;
one that no queue type takes is stored and has no effect, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from fakeamqp.model.arguments import values
from fakeamqp.model.arguments.rows import (
    Argument,
    PolicyKey,
    Read,
    Taken,
    argument_wins,
    option,
    policy_wins,
    read_options,
    rows_of,
    stricter_limit,
)
from fakeamqp.model.arguments.values import ArgumentReader, seconds_of_age
from fakeamqp.model.erlang import is_integer, octets_term, term
from fakeamqp.model.errors import ChannelCrash, PreconditionFailed
from fakeamqp.model.versions import (
    EVERY,
    ONLY_3_13,
    SINCE_3_13,
    SINCE_4_0,
    SINCE_4_2,
    SINCE_4_3,
    UNTIL_3_13,
    UNTIL_4_2,
)

if TYPE_CHECKING:
    from fakeamqp.model.personality import Feature, Personality

Overflow = Literal["drop-head", "reject-publish", "reject-publish-dlx"]
Strategy = Literal["at-most-once", "at-least-once"]
NamedOffset = Literal["first", "last", "next"]

QUEUE_TYPES = {
    "classic": "rabbit_classic_queue",
    "quorum": "rabbit_quorum_queue",
    "stream": "rabbit_stream_queue",
}
"""The queue types, and their names in RabbitMQ's texts."""

QUEUE_TYPE: Final = "x-queue-type"
DEAD_LETTER_EXCHANGE: Final = "x-dead-letter-exchange"
STREAM_OFFSET: Final = "x-stream-offset"
_CONSUMER_TIMEOUT: Final = "x-consumer-timeout"


# --- how single arguments are read -------------------------------------------------------------------


def _dead_letter_routing_key(reader: ArgumentReader, name: str) -> str:
    """A routing key, which needs an exchange."""
    key = reader.text(name)
    if DEAD_LETTER_EXCHANGE not in reader.arguments:
        reader.refuse(name, "routing_key_but_no_dlx_defined")
    if problem := values.too_long(key):
        reader.refuse(name, problem)
    return key


def _one_of(legal: tuple[str, ...], refusal: str) -> Read:
    return lambda reader, name: reader.choice(name, legal, refusal)


def _version(reader: ArgumentReader, name: str) -> None:
    version = reader.count(name)
    legal = reader.personality.argument_values.get(name)
    if legal and version not in legal:
        reader.refuse(name, f"\"unsupported queue version '{version}'\"")


def _mode(reader: ArgumentReader, name: str) -> None:
    legal: Any = reader.personality.argument_values.get(name)
    if legal:
        reader.choice(name, legal, "\"unsupported queue mode '{}'\"")


def _master_locator(reader: ArgumentReader, name: str) -> None:
    """A strategy for placing a queue in a cluster: without effect, and by personality not checked."""
    value = reader.arguments[name]
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if reader.personality.crashes_on_locators and text not in ("client-local", "min-masters", "random"):
        raise ChannelCrash(f"{name} names no strategy: {value!r}")


def _leader_locator(reader: ArgumentReader, name: str) -> str:
    legal: Any = reader.personality.argument_values.get(name, ())
    return reader.choice(name, legal, "invalid_queue_locator_arg")


def _consumer_timeout(reader: ArgumentReader, name: str) -> float | None:
    """A time in milliseconds, in seconds; the personality decides whether other values are refused.

    Otherwise they are ignored (RabbitMQ: measured).
    """
    if reader.personality.validates_consumer_timeout:
        return reader.any_milliseconds(name)
    value = reader.arguments[name]
    return value / 1000 if is_integer(value) else None


def _delivery_limit(reader: ArgumentReader, name: str) -> float | None:
    """An integer; other values mean no limit, or in some personalities a limit that is never reached."""
    value = reader.arguments[name]
    if is_integer(value):
        return int(value)
    return None if reader.personality.quorum.invalid_limit_is_none else inf


# --- how policies set them ---------------------------------------------------------------------------


def _seconds(milliseconds: int, _: str) -> float:
    return milliseconds / 1000


def _seconds_of_age(age: str, _: str) -> float | None:
    return seconds_of_age(age)


def _overflow_of_policy(overflow: str, kind: str) -> str:
    """Quorum queues do not support `reject-publish-dlx`; RabbitMQ logs a warning."""
    return "drop-head" if kind == "quorum" and overflow == "reject-publish-dlx" else overflow


def _decides_expiry(personality: Personality, kind: str) -> bool:
    return kind in personality.policy_decides_expiry


def _compared_if_checked(personality: Personality) -> bool:
    """An argument that is not validated is not compared."""
    return personality.validates_consumer_timeout


def _limit(check: values.Check, **more: Any) -> PolicyKey:
    """A policy, an operator policy and an argument may all set a limit: the smallest one holds."""
    return PolicyKey(check, operator=EVERY, operator_merge=min, merge=min, **more)


def _both(position: int) -> dict[str, Taken]:
    """Classic and quorum queues take an argument; the position is that for quorum queues."""
    return {"classic": Taken(), "quorum": Taken(position=position)}


def _retry_key(check: values.Check, **more: Any) -> PolicyKey:
    return PolicyKey(check, versions=SINCE_4_3, operator=SINCE_4_3, foreign={}, **more)


_IN_MEMORY = PolicyKey(
    values.natural("is not a valid maximum memory in bytes"),
    operator=EVERY,
    operator_merge=min,
    foreign={"classic": SINCE_3_13, "stream": EVERY},
)
_CLASSIC = {"classic": Taken()}
_STREAM = {"stream": Taken()}


# --- the rows of queues ------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class QueueOptions:
    """What the arguments of a queue ask for; each field stands in the row of its argument.

    Times are seconds, sizes bytes, counts messages; None means not asked for. A `ClassVar` is the row of an
    argument without effect on a single node.
    """

    expires: float | None = option(
        "x-expires",
        ArgumentReader.positive_milliseconds,
        _both(40),
        _limit(values.positive("is not a valid queue expiry"), read=_seconds, overrides=_decides_expiry),
    )
    message_ttl: float | None = option(
        "x-message-ttl",
        ArgumentReader.milliseconds,
        _both(140),
        _limit(values.natural("is not a valid message TTL"), read=_seconds),
    )
    dead_letter_exchange: str | None = option(
        DEAD_LETTER_EXCHANGE,
        ArgumentReader.exchange,
        _both(10),
        PolicyKey(values.text("is not a valid dead letter exchange name"), merge=argument_wins),
    )
    dead_letter_routing_key: str | None = option(
        "x-dead-letter-routing-key",
        _dead_letter_routing_key,
        _both(20),
        PolicyKey(values.routing_key, merge=argument_wins),
    )
    dead_letter_strategy: Strategy = option(
        "x-dead-letter-strategy",
        _one_of(get_args(Strategy), "invalid_dlx_strategy"),
        {"quorum": Taken(position=30)},
        PolicyKey(
            values.one_of(*get_args(Strategy), refusal="is not a valid dead letter strategy"),
            merge=argument_wins,
        ),
        default="at-most-once",
    )
    max_length: int | None = option(
        "x-max-length",
        ArgumentReader.count,
        _both(50),
        _limit(values.natural("is not a valid maximum length")),
    )
    max_length_bytes: int | None = option(
        "x-max-length-bytes",
        ArgumentReader.count,
        _both(60) | _STREAM,
        _limit(values.natural("is not a valid maximum length in bytes"), merges={"stream": policy_wins}),
    )
    max_in_memory_length: ClassVar[Argument] = Argument(
        "x-max-in-memory-length", ArgumentReader.count, {"quorum": Taken(position=70)}, _IN_MEMORY
    )
    max_in_memory_bytes: ClassVar[Argument] = Argument(
        "x-max-in-memory-bytes", ArgumentReader.count, {"quorum": Taken(position=80)}, _IN_MEMORY
    )
    max_priority: int | None = option("x-max-priority", ArgumentReader.priority, _CLASSIC)
    overflow: Overflow = option(
        "x-overflow",
        _one_of(get_args(Overflow), "invalid_overflow"),
        _both(90),
        PolicyKey(
            values.one_of(*get_args(Overflow), refusal="is not a valid overflow value"),
            operator=SINCE_3_13,
            read=_overflow_of_policy,
            merge=argument_wins,
            merges={"quorum": policy_wins},
        ),
        default="drop-head",
    )
    queue_mode: ClassVar[Argument] = Argument(
        "x-queue-mode",
        _mode,
        _CLASSIC,
        PolicyKey(values.one_of("default", "lazy", refusal="is not a valid queue-mode value")),
        values=((UNTIL_4_2, ("default", "lazy")),),
    )
    queue_version: ClassVar[Argument] = Argument(
        "x-queue-version",
        _version,
        _CLASSIC,
        PolicyKey(
            values.one_of(1, 2, refusal="is not a valid queue-version value"), operator=SINCE_3_13, foreign={}
        ),
        values=((UNTIL_4_2, (1, 2)), (SINCE_4_3, (2,))),
    )
    single_active_consumer: bool = option(
        "x-single-active-consumer", ArgumentReader.flag, _both(100), default=False
    )
    queue_type: ClassVar[Argument] = Argument(QUEUE_TYPE, None, _both(110) | _STREAM)
    queue_master_locator: ClassVar[Argument] = Argument(
        "x-queue-master-locator",
        _master_locator,
        _CLASSIC,
        PolicyKey(values.master_locator, operator=SINCE_4_0),
        feature="queue_master_locator",
    )
    quorum_initial_group_size: ClassVar[Argument] = Argument(
        "x-quorum-initial-group-size", ArgumentReader.positive, {"quorum": Taken(position=120)}
    )
    consumer_timeout: float | None = option(
        _CONSUMER_TIMEOUT,
        _consumer_timeout,
        {
            "classic": Taken(SINCE_3_13 & UNTIL_4_2, compared=False),
            "quorum": Taken(SINCE_3_13, position=170, compared=_compared_if_checked),
            "stream": Taken(SINCE_3_13 & UNTIL_4_2, compared=False),
        },
        PolicyKey(
            values.natural("is not a valid consumer timeout"),
            versions=SINCE_3_13,
            read=_seconds,
            merge=min,
            foreign={},
        ),
    )
    consumer_disconnected_timeout: ClassVar[Argument] = Argument(
        "x-consumer-disconnected-timeout",
        ArgumentReader.count,
        {"quorum": Taken(SINCE_4_3, position=160)},
        PolicyKey(
            values.natural("is not a valid consumer disconnected timeout"), versions=SINCE_4_3, foreign={}
        ),
    )
    delivery_limit: float | None = option(
        "x-delivery-limit",
        _delivery_limit,
        {"quorum": Taken(position=130)},
        PolicyKey(values.delivery_limit, operator=EVERY, operator_merge=stricter_limit, merge=stricter_limit),
    )
    delayed_retry_type: str | None = option(
        "x-delayed-retry-type",
        ArgumentReader.text_if_any,
        {"quorum": Taken(SINCE_4_3, position=180)},
        _retry_key(
            values.one_of(
                "all",
                "failed",
                "returned",
                "disabled",
                refusal="is not a valid delayed retry type. Must be one of: all, failed, returned, disabled",
            ),
            merge=policy_wins,
        ),
    )
    delayed_retry_min: float | None = option(
        "x-delayed-retry-min",
        ArgumentReader.milliseconds_if_positive,
        {"quorum": Taken(SINCE_4_3, position=190)},
        _retry_key(
            values.positive("is not a valid delayed retry minimum delay. Must be a positive integer"),
            operator_merge=max,
            read=_seconds,
            merge=min,
        ),
    )
    delayed_retry_max: float | None = option(
        "x-delayed-retry-max",
        ArgumentReader.milliseconds_if_positive,
        {"quorum": Taken(SINCE_4_3, position=200)},
        _retry_key(
            values.positive("is not a valid delayed retry maximum delay. Must be a positive integer"),
            operator_merge=min,
            read=_seconds,
            merge=min,
        ),
    )
    max_age: float | None = option(
        "x-max-age",
        ArgumentReader.age,
        _STREAM,
        PolicyKey(values.age("is not a valid max age"), read=_seconds_of_age, merge=policy_wins),
    )
    max_segment_size: int | None = option(
        "x-stream-max-segment-size-bytes",
        ArgumentReader.count,
        _STREAM,
        PolicyKey(
            values.between(range(values.LARGEST_SEGMENT + 1), "is not a valid segment size"),
            merge=policy_wins,
        ),
    )
    stream_filter_size: ClassVar[Argument] = Argument(
        "x-stream-filter-size-bytes",
        ArgumentReader.count,
        {"stream": Taken(SINCE_4_2)},
        PolicyKey(
            values.between(values.FILTER_SIZES, "is not a valid filter size. Valid range is 16-255"),
            versions=SINCE_3_13,
            foreign={},
        ),
    )
    initial_cluster_size: ClassVar[Argument] = Argument(
        "x-initial-cluster-size",
        ArgumentReader.positive,
        _STREAM,
        PolicyKey(values.natural("is not a valid cluster size")),
    )
    queue_leader_locator: ClassVar[Argument] = Argument(
        "x-queue-leader-locator",
        _leader_locator,
        {"classic": Taken(SINCE_4_0), "quorum": Taken(position=150), "stream": Taken()},
        PolicyKey(values.one_of(*values.LOCATORS, refusal="is not a valid queue leader locator value")),
        values=((UNTIL_3_13, values.LOCATORS), (SINCE_4_0, (*values.LOCATORS, "min-masters"))),
    )

    def __repr__(self) -> str:
        shown = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return f"QueueOptions({', '.join(f'{name}={v!r}' for name, v, usual in shown if v != usual)})"


QUEUE_ARGUMENTS: tuple[Argument, ...] = rows_of(QueueOptions)


# --- the rows of consumers ---------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamOffset:
    """Where in a stream a consumer begins.

    At one of its ends, at the offset `number`, or at the first message that is as young as `number` says: a
    time in seconds since 1970, or an age in seconds. For "crash" RabbitMQ ends the connection.
    """

    kind: NamedOffset | Literal["offset", "time", "age", "crash"] = "next"
    number: float = 0


def _stream_offset(reader: ArgumentReader, name: str) -> StreamOffset:
    """Where to begin in a stream (RabbitMQ: documented; what it makes of other types is measured)."""
    value = reader.arguments[name]
    if value in (b"first", b"last", b"next"):
        value = value.decode()
    if isinstance(value, str):
        named: NamedOffset
        for named in get_args(NamedOffset):
            if value == named:
                return StreamOffset(named)
        age = reader.seconds_of_age(value)
        if age is None:
            printable = value.isascii() and value.isprintable()
            shown = term(value) if printable else octets_term(value.encode("utf-8", "surrogateescape"))
            reader.refuse(name, f"{{invalid_stream_offset_arg,{{longstr,{shown}}}}}")
        return StreamOffset("age", age)
    if isinstance(value, bool) or not isinstance(value, int):
        return StreamOffset("crash")
    return StreamOffset("offset" if is_integer(value) else "time", value)


def _filters(reader: ArgumentReader, name: str) -> tuple[str, ...] | None:
    """A text or an array of texts; any other value is ignored (RabbitMQ: measured)."""
    value = reader.arguments[name]
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(each for each in value if isinstance(each, str))
    return None


_FILTERED = {"classic": Taken(ONLY_3_13), "quorum": Taken(ONLY_3_13), "stream": Taken(SINCE_3_13)}
"""In 3.13 all queue types take the filters' arguments, and only streams heed them."""


@dataclass(frozen=True)
class ConsumerOptions:
    """What the arguments of `basic.consume` ask for; each field stands in the row of its argument.

    `timeout` is how many seconds the consumer may hold a message, where it can ask for that. `filters` are
    the values of the messages that a stream delivers, None where it delivers all; `match_unfiltered` adds
    the messages without a value. A `ClassVar` is the row of an argument without effect.
    """

    priority: int = option("x-priority", ArgumentReader.integer, _both(0), default=0)
    cancel_on_failover: ClassVar[Argument] = Argument(
        "x-cancel-on-ha-failover", ArgumentReader.flag, {"classic": Taken(UNTIL_3_13)}
    )
    credit: ClassVar[Argument] = Argument("x-credit", None, dict.fromkeys(QUEUE_TYPES, Taken(UNTIL_3_13)))
    timeout: float | None = option(
        _CONSUMER_TIMEOUT, ArgumentReader.any_milliseconds, {"quorum": Taken(SINCE_4_3)}
    )
    stream_offset: StreamOffset = option(STREAM_OFFSET, _stream_offset, _STREAM, default=StreamOffset())
    filters: tuple[str, ...] | None = option("x-stream-filter", _filters, _FILTERED)
    match_unfiltered: bool = option(
        "x-stream-match-unfiltered",
        lambda reader, name: reader.arguments[name] is True,
        _FILTERED,
        default=False,
    )


CONSUMER_ARGUMENTS: tuple[Argument, ...] = rows_of(ConsumerOptions)


# --- what is read off the rows -----------------------------------------------------------------------


def queue_type(
    name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality, default: str
) -> str:
    """The queue type that the arguments of `queue.declare` ask for, or PreconditionFailed."""
    if QUEUE_TYPE not in arguments or arguments[QUEUE_TYPE] in personality.absent_queue_types:
        return default
    reader = ArgumentReader("queue", name, virtual_host, arguments, personality)
    return reader.choice(QUEUE_TYPE, tuple(QUEUE_TYPES), "\"unsupported queue type '{}'\"")


def queue_options(
    kind: str, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
) -> QueueOptions:
    """Read the arguments of `queue.declare` for a queue of type `kind`; the names are for texts.

    PreconditionFailed is raised for an illegal value, and for an argument that only other queue types take.
    """
    reader = ArgumentReader("queue", name, virtual_host, arguments, personality)
    return QueueOptions(**_read(QUEUE_ARGUMENTS, reader, kind, personality.queue_arguments))


def consumer_options(
    kind: str, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
) -> ConsumerOptions:
    """Read the arguments of `basic.consume` for a queue of type `kind`; as `queue_options`."""
    reader = ArgumentReader("queue", name, virtual_host, arguments, personality)
    return ConsumerOptions(**_read(CONSUMER_ARGUMENTS, reader, kind, personality.consumer_arguments))


def _read(
    rows: tuple[Argument, ...], reader: ArgumentReader, kind: str, known: Mapping[str, Collection[str]]
) -> dict[str, Any]:
    """The options that arguments set. Those that other queue types take, and `kind` does not, are refused."""
    options = read_options(rows, reader, known[kind])
    for argument in reader.arguments:
        if argument not in known[kind] and any(argument in others for others in known.values()):
            raise PreconditionFailed(
                f"invalid arg '{argument}' for {reader.entity} of queue type {QUEUE_TYPES[kind]}"
            )
    return options


def taken(rows: Iterable[Argument], personality: str) -> dict[str, tuple[str, ...]]:
    """By queue type, the arguments that it takes in the personality of this name."""
    return {
        kind: tuple(row.name for row in rows if kind in row.types and personality in row.types[kind].versions)
        for kind in QUEUE_TYPES
    }


def legal_values(personality: str) -> dict[str, tuple[str | int, ...]]:
    """The legal values of the arguments that take only a few in the personality of this name."""
    return {
        row.name: legal
        for row in QUEUE_ARGUMENTS
        for versions, legal in row.values
        if personality in versions
    }


def required_features(kind: str, arguments: Mapping[str, Any]) -> list[Feature]:
    """The deprecated features that the arguments of a queue of type `kind` need."""
    return [
        row.feature
        for row in QUEUE_ARGUMENTS
        if row.feature is not None and row.name in arguments and kind in row.types
    ]


@cache
def argument_of(option: str) -> str:
    """The name of the argument that sets an option."""
    return {row.option: row.name for row in QUEUE_ARGUMENTS if row.option}[option]


def check_dead_letter_exchange(
    name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
) -> None:
    """PreconditionFailed if the name is no string. RabbitMQ checks it first, for queues of every type."""
    if DEAD_LETTER_EXCHANGE in arguments:
        ArgumentReader("queue", name, virtual_host, arguments, personality).exchange(DEAD_LETTER_EXCHANGE)


def compared_arguments(kind: str, personality: Personality) -> Iterator[str]:
    """The arguments that the redeclaration of a queue of type `kind` must repeat, in RabbitMQ's order.

    A generator, which does nothing for a redeclaration without a difference.
    """
    known = personality.queue_arguments[kind]
    rows = [row for row in QUEUE_ARGUMENTS if row.name in known and kind in row.types]
    rows.sort(key=lambda row: row.types[kind].position)
    yield from (row.name for row in rows if row.types[kind].is_compared(personality))


def compared_values(arguments: Mapping[str, Any], personality: Personality) -> dict[str, Any]:
    """The arguments of a queue as a redeclaration compares them: ages perhaps in milliseconds."""
    values = dict(arguments)
    name = argument_of("max_age")
    age = seconds_of_age(values.get(name)) if personality.compares_ages else None
    if age is not None:
        values[name] = str(round(age * 1000))
    return values
