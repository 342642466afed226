"""What holds where a policy, an operator policy and a queue's own arguments speak of the same thing.

First policy and operator policy become one definition, key by key (`effective_definition`). Then, option by
option, that definition meets what the queue was declared with (`effective_options`). Both steps are tables,
for RabbitMQ has no one rule: the stricter mostly holds, but not always. (RabbitMQ: documented in part, the
rest measured.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from fakeamqp.model.policies.keys import seconds_of_age
from fakeamqp.model.queues.options import QueueOptions

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.policies.policy import Policy

__all__ = ["effective_definition", "effective_options"]

_Choose = Callable[[Any, Any], Any]


def _first(one: Any, _: Any) -> Any:
    return one


def _second(_: Any, other: Any) -> Any:
    return other


def _stricter_limit(one: float, other: float) -> float:
    """The smaller, where a negative one means that there is no limit."""
    return max(one, other) if one < 0 or other < 0 else min(one, other)


_OPERATORS: dict[str, _Choose] = {
    "message-ttl": min,
    "expires": min,
    "max-length": min,
    "max-length-bytes": min,
    "max-in-memory-length": min,
    "max-in-memory-bytes": min,
    "delivery-limit": _stricter_limit,
    "target-group-size": max,
    "delayed-retry-min": max,
    "delayed-retry-max": min,
}
"""Policy and operator policy: whose value holds, by key. The operator's, where nothing is said."""


def effective_definition(policy: Policy | None, operator: Policy | None) -> dict[str, Any]:
    """What a policy and an operator policy set together, sorted by key."""
    ours = {} if policy is None else policy.definition
    theirs = {} if operator is None else operator.definition
    merged = {}
    for key in sorted({*ours, *theirs}):
        if key in ours and key in theirs:
            merged[key] = _OPERATORS.get(key, _second)(ours[key], theirs[key])
        else:
            merged[key] = ours.get(key, theirs.get(key))
    return merged


def _seconds(milliseconds: int) -> float:
    return milliseconds / 1000


def _as_it_is(value: Any) -> Any:
    return value


_EVERYWHERE = ("classic", "quorum", "stream")
_CLASSIC_AND_QUORUM = ("classic", "quorum")

_OPTIONS: dict[str, tuple[str, Callable[[Any], Any], Mapping[str, _Choose]]] = {
    "message-ttl": ("message_ttl", _seconds, dict.fromkeys(_CLASSIC_AND_QUORUM, min)),
    "expires": ("expires", _seconds, dict.fromkeys(_CLASSIC_AND_QUORUM, min)),
    "max-length": ("max_length", _as_it_is, dict.fromkeys(_CLASSIC_AND_QUORUM, min)),
    "max-length-bytes": (
        "max_length_bytes",
        _as_it_is,
        {"classic": min, "quorum": min, "stream": _first},
    ),
    "overflow": ("overflow", _as_it_is, {"classic": _second, "quorum": _first}),
    "dead-letter-exchange": (
        "dead_letter_exchange",
        _as_it_is,
        dict.fromkeys(_CLASSIC_AND_QUORUM, _second),
    ),
    "dead-letter-routing-key": (
        "dead_letter_routing_key",
        _as_it_is,
        dict.fromkeys(_CLASSIC_AND_QUORUM, _second),
    ),
    "dead-letter-strategy": ("dead_letter_strategy", _as_it_is, {"quorum": _second}),
    "delivery-limit": ("delivery_limit", _as_it_is, {"quorum": _stricter_limit}),
    "consumer-timeout": ("consumer_timeout", _seconds, dict.fromkeys(_EVERYWHERE, min)),
    "max-age": ("max_age", seconds_of_age, {"stream": _first}),
    "stream-max-segment-size-bytes": ("max_segment_size", _as_it_is, {"stream": _first}),
    "delayed-retry-type": ("delayed_retry_type", _as_it_is, {"quorum": _first}),
    "delayed-retry-min": ("delayed_retry_min", _seconds, {"quorum": min}),
    "delayed-retry-max": ("delayed_retry_max", _seconds, {"quorum": min}),
}
"""By key, the option it sets, the option's value for the policy's, and by queue type whose value holds: given
that of the policies first, and that of the argument. A queue type not named does not heed the key. Keys that
are not here concern the nodes of a cluster or how messages are stored, and nobody can see what they do."""

_KNOWN = frozenset(field.name for field in fields(QueueOptions))


def effective_options(
    personality: Personality,
    queue_type: str,
    declared: QueueOptions,
    arguments: Mapping[str, Any],
    definition: Mapping[str, Any],
) -> QueueOptions:
    """The options in force for a queue.

    Args:
        personality: whose rules hold.
        queue_type: classic, quorum or stream.
        declared: what the arguments ask for.
        arguments: of queue.declare.
        definition: of the policies that match; see `effective_definition`.
    """
    changes: dict[str, Any] = {}
    for key, value in definition.items():
        name, read, rules = _OPTIONS.get(key, ("", _as_it_is, {}))
        if name not in _KNOWN or queue_type not in rules:
            continue
        choose = rules[queue_type]
        if key == "expires" and queue_type in personality.policy_decides_expiry:
            choose = _first
        wanted = read(value)
        argument = f"x-{key}"
        if argument in arguments and argument in personality.queue_arguments[queue_type]:
            asked = getattr(declared, name)
            wanted = wanted if asked is None else choose(wanted, asked)
        if name == "overflow" and queue_type == "quorum" and wanted == "reject-publish-dlx":
            wanted = "drop-head"  # Quorum queues cannot do it, and warn of it in their log.
        changes[name] = wanted
    return replace(declared, **changes) if changes else declared
