"""The arguments of `queue.declare`: one row each, in the order of RabbitMQ's checks.

Meanings and limits are RabbitMQ's documented ones. An argument that only other queue types take is refused;
one that no queue type takes is stored and has no effect, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from fakeamqp.model.arguments import values
from fakeamqp.model.arguments.rows import (
    Argument,
    Merge,
    PolicyKey,
    Taken,
    argument_wins,
    option,
    policy_wins,
    read_options,
    rows_of,
    stricter_limit,
)
from fakeamqp.model.arguments.values import ArgumentReader, seconds_of_age
from fakeamqp.model.errors import ChannelCrash, PreconditionFailed
from fakeamqp.model.versions import (
    EVERY,
    SINCE_3_13,
    SINCE_4_0,
    SINCE_4_2,
    SINCE_4_3,
    UNTIL_3_13,
    UNTIL_4_2,
)

if TYPE_CHECKING:
    from fakeamqp.model.personality import Feature, Personality

__all__ = [
    "DEAD_LETTER_EXCHANGE",
    "QUEUE_ARGUMENTS",
    "QUEUE_TYPE",
    "QUEUE_TYPES",
    "QueueOptions",
    "argument_of",
    "check_dead_letter_exchange",
    "compared_arguments",
    "compared_values",
    "legal_values",
    "queue_options",
    "queue_type",
    "refuse_foreign",
    "required_features",
    "taken",
]

Overflow = Literal["drop-head", "reject-publish", "reject-publish-dlx"]
Strategy = Literal["at-most-once", "at-least-once"]

QUEUE_TYPES = {
    "classic": "rabbit_classic_queue",
    "quorum": "rabbit_quorum_queue",
    "stream": "rabbit_stream_queue",
}
"""The queue types, and their names in RabbitMQ's texts."""

QUEUE_TYPE: Final = "x-queue-type"
DEAD_LETTER_EXCHANGE: Final = "x-dead-letter-exchange"


# --- how single arguments are read -------------------------------------------------------------------


def _dead_letter_routing_key(reader: ArgumentReader, name: str) -> str | None:
    """A routing key, which needs an exchange."""
    key = reader.text(name)
    if key is not None and DEAD_LETTER_EXCHANGE not in reader.arguments:
        reader.refuse(name, "routing_key_but_no_dlx_defined")
    if key is not None and (problem := values.too_long(key)):
        reader.refuse(name, problem)
    return key


def _strategy(reader: ArgumentReader, name: str) -> str | None:
    return reader.choice(name, ("at-most-once", "at-least-once"), "invalid_dlx_strategy")


def _overflow(reader: ArgumentReader, name: str) -> str | None:
    return reader.choice(name, ("drop-head", "reject-publish", "reject-publish-dlx"), "invalid_overflow")


def _version(reader: ArgumentReader, name: str) -> None:
    version = reader.count(name)
    legal = reader.legal(name)
    if legal and version not in legal:
        reader.refuse(name, f"\"unsupported queue version '{version}'\"")


def _mode(reader: ArgumentReader, name: str) -> None:
    legal = reader.legal(name)
    if legal:
        reader.choice(name, legal, "\"unsupported queue mode '{}'\"")


def _master_locator(reader: ArgumentReader, name: str) -> None:
    """A strategy for placing a queue in a cluster: without effect, and by personality not checked."""
    value = reader.arguments[name]
    if reader.personality is None or not reader.personality.crashes_on_locators:
        return
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if text not in ("client-local", "min-masters", "random"):
        raise ChannelCrash(f"{name} names no strategy: {value!r}")


def _leader_locator(reader: ArgumentReader, name: str) -> str | None:
    return reader.choice(name, reader.legal(name), "invalid_queue_locator_arg")


def _consumer_timeout(reader: ArgumentReader, name: str) -> float | None:
    """A time in milliseconds, in seconds; the personality decides whether other values are refused."""
    checks = reader.personality is not None and reader.personality.validates_consumer_timeout
    return reader.any_milliseconds(name) if checks else reader.milliseconds_if_integer(name)


def _delivery_limit(reader: ArgumentReader, name: str) -> float | None:
    """An integer; other values mean no limit, or in some personalities a limit that is never reached."""
    value = reader.arguments[name]
    if type(value) is int:
        return value
    odd_is_none = reader.personality is None or reader.personality.quorum.invalid_limit_is_none
    return None if odd_is_none else inf


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


def _classic_and_quorum(merge: Merge) -> dict[str, Merge]:
    return {"classic": merge, "quorum": merge}


def _every_type(merge: Merge) -> dict[str, Merge]:
    return dict.fromkeys(QUEUE_TYPES, merge)


def _foreign_to(*types: str) -> dict[str, frozenset[str]]:
    return dict.fromkeys(types, EVERY)


# --- the rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class QueueOptions:
    """What the arguments of a queue ask for; each field stands in the row of its argument.

    Times are seconds, sizes bytes, counts messages; None means not asked for. A `ClassVar` is the row of an
    argument without effect on a single node.
    """

    expires: float | None = option(
        "x-expires",
        ArgumentReader.positive_milliseconds,
        {"classic": Taken(), "quorum": Taken(position=40)},
        PolicyKey(
            values.positive("is not a valid queue expiry"),
            operator=EVERY,
            operator_merge=min,
            read=_seconds,
            merge=_classic_and_quorum(min),
            overrides=_decides_expiry,
            foreign=_foreign_to("stream"),
        ),
    )
    message_ttl: float | None = option(
        "x-message-ttl",
        ArgumentReader.milliseconds,
        {"classic": Taken(), "quorum": Taken(position=140)},
        PolicyKey(
            values.natural("is not a valid message TTL"),
            operator=EVERY,
            operator_merge=min,
            read=_seconds,
            merge=_classic_and_quorum(min),
            foreign=_foreign_to("stream"),
        ),
    )
    dead_letter_exchange: str | None = option(
        DEAD_LETTER_EXCHANGE,
        ArgumentReader.exchange,
        {"classic": Taken(), "quorum": Taken(position=10)},
        PolicyKey(
            values.text("is not a valid dead letter exchange name"),
            merge=_classic_and_quorum(argument_wins),
            foreign=_foreign_to("stream"),
        ),
    )
    dead_letter_routing_key: str | None = option(
        "x-dead-letter-routing-key",
        _dead_letter_routing_key,
        {"classic": Taken(), "quorum": Taken(position=20)},
        PolicyKey(
            values.routing_key("is not a valid dead letter routing key"),
            merge=_classic_and_quorum(argument_wins),
            foreign=_foreign_to("stream"),
        ),
    )
    dead_letter_strategy: Strategy = option(
        "x-dead-letter-strategy",
        _strategy,
        {"quorum": Taken(position=30)},
        PolicyKey(
            values.one_of("at-most-once", "at-least-once", refusal="is not a valid dead letter strategy"),
            merge={"quorum": argument_wins},
            foreign=_foreign_to("classic", "stream"),
        ),
        default="at-most-once",
    )
    max_length: int | None = option(
        "x-max-length",
        ArgumentReader.count,
        {"classic": Taken(), "quorum": Taken(position=50)},
        PolicyKey(
            values.natural("is not a valid maximum length"),
            operator=EVERY,
            operator_merge=min,
            merge=_classic_and_quorum(min),
            foreign=_foreign_to("stream"),
        ),
    )
    max_length_bytes: int | None = option(
        "x-max-length-bytes",
        ArgumentReader.count,
        {"classic": Taken(), "quorum": Taken(position=60), "stream": Taken()},
        PolicyKey(
            values.natural("is not a valid maximum length in bytes"),
            operator=EVERY,
            operator_merge=min,
            merge=_classic_and_quorum(min) | {"stream": policy_wins},
        ),
    )
    max_in_memory_length: ClassVar[Argument] = Argument(
        "x-max-in-memory-length",
        ArgumentReader.count,
        {"quorum": Taken(position=70)},
        PolicyKey(
            values.natural("is not a valid maximum memory in bytes"),
            operator=EVERY,
            operator_merge=min,
            foreign={"classic": SINCE_3_13, "stream": EVERY},
        ),
    )
    max_in_memory_bytes: ClassVar[Argument] = Argument(
        "x-max-in-memory-bytes",
        ArgumentReader.count,
        {"quorum": Taken(position=80)},
        PolicyKey(
            values.natural("is not a valid maximum memory in bytes"),
            operator=EVERY,
            operator_merge=min,
            foreign={"classic": SINCE_3_13, "stream": EVERY},
        ),
    )
    max_priority: int | None = option("x-max-priority", ArgumentReader.priority, {"classic": Taken()})
    overflow: Overflow = option(
        "x-overflow",
        _overflow,
        {"classic": Taken(), "quorum": Taken(position=90)},
        PolicyKey(
            values.one_of(
                "drop-head",
                "reject-publish",
                "reject-publish-dlx",
                refusal="is not a valid overflow value",
            ),
            operator=SINCE_3_13,
            read=_overflow_of_policy,
            merge={"classic": argument_wins, "quorum": policy_wins},
            foreign=_foreign_to("stream"),
        ),
        default="drop-head",
    )
    queue_mode: ClassVar[Argument] = Argument(
        "x-queue-mode",
        _mode,
        {"classic": Taken()},
        PolicyKey(
            values.one_of("default", "lazy", refusal="is not a valid queue-mode value"),
            foreign=_foreign_to("quorum", "stream"),
        ),
        values=((UNTIL_4_2, ("default", "lazy")),),
    )
    queue_version: ClassVar[Argument] = Argument(
        "x-queue-version",
        _version,
        {"classic": Taken()},
        PolicyKey(values.one_of(1, 2, refusal="is not a valid queue-version value"), operator=SINCE_3_13),
        values=((UNTIL_4_2, (1, 2)), (SINCE_4_3, (2,))),
    )
    single_active_consumer: bool = option(
        "x-single-active-consumer",
        ArgumentReader.flag,
        {"classic": Taken(), "quorum": Taken(position=100)},
        default=False,
    )
    queue_type: ClassVar[Argument] = Argument(
        QUEUE_TYPE, None, {"classic": Taken(), "quorum": Taken(position=110), "stream": Taken()}
    )
    queue_master_locator: ClassVar[Argument] = Argument(
        "x-queue-master-locator",
        _master_locator,
        {"classic": Taken()},
        PolicyKey(values.master_locator, operator=SINCE_4_0, foreign=_foreign_to("quorum", "stream")),
        feature="queue_master_locator",
    )
    quorum_initial_group_size: ClassVar[Argument] = Argument(
        "x-quorum-initial-group-size", ArgumentReader.positive, {"quorum": Taken(position=120)}
    )
    consumer_timeout: float | None = option(
        "x-consumer-timeout",
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
            merge=_every_type(min),
        ),
    )
    consumer_disconnected_timeout: ClassVar[Argument] = Argument(
        "x-consumer-disconnected-timeout",
        ArgumentReader.count,
        {"quorum": Taken(SINCE_4_3, position=160)},
        PolicyKey(values.natural("is not a valid consumer disconnected timeout"), versions=SINCE_4_3),
    )
    delivery_limit: float | None = option(
        "x-delivery-limit",
        _delivery_limit,
        {"quorum": Taken(position=130)},
        PolicyKey(
            values.delivery_limit,
            operator=EVERY,
            operator_merge=stricter_limit,
            merge={"quorum": stricter_limit},
            foreign=_foreign_to("classic", "stream"),
        ),
    )
    delayed_retry_type: str | None = option(
        "x-delayed-retry-type",
        ArgumentReader.text_if_any,
        {"quorum": Taken(SINCE_4_3, position=180)},
        PolicyKey(
            values.one_of(
                "all",
                "failed",
                "returned",
                "disabled",
                refusal="is not a valid delayed retry type. Must be one of: all, failed, returned, disabled",
            ),
            versions=SINCE_4_3,
            operator=SINCE_4_3,
            merge={"quorum": policy_wins},
        ),
    )
    delayed_retry_min: float | None = option(
        "x-delayed-retry-min",
        ArgumentReader.milliseconds_if_positive,
        {"quorum": Taken(SINCE_4_3, position=190)},
        PolicyKey(
            values.positive("is not a valid delayed retry minimum delay. Must be a positive integer"),
            versions=SINCE_4_3,
            operator=SINCE_4_3,
            operator_merge=max,
            read=_seconds,
            merge={"quorum": min},
        ),
    )
    delayed_retry_max: float | None = option(
        "x-delayed-retry-max",
        ArgumentReader.milliseconds_if_positive,
        {"quorum": Taken(SINCE_4_3, position=200)},
        PolicyKey(
            values.positive("is not a valid delayed retry maximum delay. Must be a positive integer"),
            versions=SINCE_4_3,
            operator=SINCE_4_3,
            operator_merge=min,
            read=_seconds,
            merge={"quorum": min},
        ),
    )
    max_age: float | None = option(
        "x-max-age",
        ArgumentReader.age,
        {"stream": Taken()},
        PolicyKey(
            values.age("is not a valid max age"),
            read=_seconds_of_age,
            merge={"stream": policy_wins},
            foreign=_foreign_to("classic", "quorum"),
        ),
    )
    max_segment_size: int | None = option(
        "x-stream-max-segment-size-bytes",
        ArgumentReader.count,
        {"stream": Taken()},
        PolicyKey(
            values.segment_size("is not a valid segment size"),
            merge={"stream": policy_wins},
            foreign=_foreign_to("classic", "quorum"),
        ),
    )
    stream_filter_size: ClassVar[Argument] = Argument(
        "x-stream-filter-size-bytes",
        ArgumentReader.count,
        {"stream": Taken(SINCE_4_2)},
        PolicyKey(
            values.between(values.FILTER_SIZES, "is not a valid filter size. Valid range is 16-255"),
            versions=SINCE_3_13,
        ),
    )
    initial_cluster_size: ClassVar[Argument] = Argument(
        "x-initial-cluster-size",
        ArgumentReader.positive,
        {"stream": Taken()},
        PolicyKey(values.natural("is not a valid cluster size"), foreign=_foreign_to("classic", "quorum")),
    )
    queue_leader_locator: ClassVar[Argument] = Argument(
        "x-queue-leader-locator",
        _leader_locator,
        {"classic": Taken(SINCE_4_0), "quorum": Taken(position=150), "stream": Taken()},
        PolicyKey(
            values.one_of(*values.LOCATORS, refusal="is not a valid queue leader locator value"),
            foreign={"classic": UNTIL_3_13},
        ),
        values=((UNTIL_3_13, values.LOCATORS), (SINCE_4_0, (*values.LOCATORS, "min-masters"))),
    )

    def __repr__(self) -> str:
        shown = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return f"QueueOptions({', '.join(f'{name}={v!r}' for name, v, usual in shown if v != usual)})"


QUEUE_ARGUMENTS: tuple[Argument, ...] = rows_of(QueueOptions)


# --- what is read off the rows -----------------------------------------------------------------------


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
    if arguments.get(QUEUE_TYPE) in personality.absent_queue_types:
        return default
    reader = ArgumentReader("queue", name, virtual_host, arguments)
    return reader.choice(QUEUE_TYPE, tuple(QUEUE_TYPES), "\"unsupported queue type '{}'\"") or default


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
    options = read_options(QUEUE_ARGUMENTS, reader, personality.queue_arguments[kind])
    refuse_foreign(reader, kind, personality.queue_arguments)
    return QueueOptions(**options)


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
    """The name of the argument that sets an option.

    Raises:
        KeyError: no argument sets the option.
    """
    return {row.option: row.name for row in QUEUE_ARGUMENTS if row.option}[option]


def check_dead_letter_exchange(name: str, virtual_host: str, arguments: Mapping[str, Any]) -> None:
    """Check the type of a dead-letter exchange's name. RabbitMQ checks it first, for queues of every type.

    Raises:
        PreconditionFailed: it is not a string.
    """
    ArgumentReader("queue", name, virtual_host, arguments).exchange(DEAD_LETTER_EXCHANGE)


def refuse_foreign(reader: ArgumentReader, kind: str, known: Mapping[str, Collection[str]]) -> None:
    """Refuse arguments that other queue types take, and `kind` does not.

    Raises:
        PreconditionFailed: there is one.
    """
    for argument in reader.arguments:
        if argument not in known[kind] and any(argument in others for others in known.values()):
            raise PreconditionFailed(
                f"invalid arg '{argument}' for {reader.entity} of queue type {QUEUE_TYPES[kind]}"
            )


def compared_arguments(kind: str, personality: Personality) -> Iterator[str]:
    """The arguments that the redeclaration of a queue of type `kind` must repeat, in RabbitMQ's order.

    A generator, which does nothing for a redeclaration without a difference.
    """
    known = personality.queue_arguments[kind]
    rows = [row for row in QUEUE_ARGUMENTS if row.name in known and _is_compared(row, kind, personality)]
    rows.sort(key=lambda row: row.types[kind].position)
    yield from (row.name for row in rows)


def compared_values(arguments: Mapping[str, Any], personality: Personality) -> dict[str, Any]:
    """The arguments of a queue as a redeclaration compares them: ages perhaps in milliseconds."""
    values = dict(arguments)
    name = argument_of("max_age")
    age = seconds_of_age(values.get(name)) if personality.compares_ages else None
    if age is not None:
        values[name] = str(round(age * 1000))
    return values


def _is_compared(row: Argument, kind: str, personality: Personality) -> bool:
    return kind in row.types and row.types[kind].is_compared(personality)
