"""Checks of the values that a policy may set, with RabbitMQ's refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.arguments.reader import seconds_of_age
from fakeamqp.model.erlang import term
from fakeamqp.model.names import LONGEST_NAME, octets_of

if TYPE_CHECKING:
    from fakeamqp.model.personality import DeprecatedFeatures, Personality

__all__ = [
    "FILTER_SIZES",
    "LARGEST_SEGMENT",
    "LOCATORS",
    "Check",
    "age",
    "any_value",
    "between",
    "delivery_limit",
    "is_one_of",
    "is_positive",
    "master_locator",
    "natural",
    "one_of",
    "positive",
    "routing_key",
    "segment_size",
    "text",
    "too_long",
]

Check: TypeAlias = Callable[["Personality", "DeprecatedFeatures", Any], str | None]
"""Returns RabbitMQ's text for an illegal value, None for a legal one."""

LOCATORS = ("client-local", "balanced", "random", "least-leaders")
"""Where the leader of a queue may be placed."""

FILTER_SIZES = range(16, 256)
"""Bytes of the filters of a stream's chunks."""

LARGEST_SEGMENT = 3_000_000_000
"""Bytes in a segment of a stream."""


def _check(legal: Callable[[Any], bool], refusal: str) -> Check:
    return lambda personality, features, value: None if legal(value) else f"{term(value)} {refusal}"


def is_natural(value: Any) -> bool:
    """Whether a value is an integer from 0 upwards."""
    return type(value) is int and value >= 0


def is_positive(value: Any) -> bool:
    """Whether a value is an integer above 0."""
    return type(value) is int and value > 0


def is_one_of(*legal: Any) -> Callable[[Any], bool]:
    """Whether a value equals one of a few and has its type."""
    return lambda value: any(type(value) is type(each) and value == each for each in legal)


def any_value(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """Check nothing."""
    return None


def natural(refusal: str) -> Check:
    """An integer from 0 upwards."""
    return _check(is_natural, refusal)


def positive(refusal: str) -> Check:
    """An integer above 0."""
    return _check(is_positive, refusal)


def between(legal: range, refusal: str) -> Check:
    """An integer of a range."""
    return _check(lambda value: type(value) is int and value in legal, refusal)


def text(refusal: str) -> Check:
    """A string."""
    return _check(lambda value: isinstance(value, str), refusal)


def too_long(key: str) -> str | None:
    """What is wrong with a routing key that no message can have; None if it is not too long.

    RabbitMQ takes it, and ends connections that are sent such a message with 541 (measured).
    """
    return f"longer than {LONGEST_NAME} bytes" if octets_of(key) > LONGEST_NAME else None


def routing_key(refusal: str) -> Check:
    """A routing key that a message can have."""

    def check(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
        if not isinstance(value, str):
            return f"{term(value)} {refusal}"
        problem = too_long(value)
        return f"the routing key is {problem}" if problem else None

    return check


def one_of(*legal: Any, refusal: str) -> Check:
    """One of a few values."""
    return _check(is_one_of(*legal), refusal)


def age(refusal: str) -> Check:
    """A number with a unit."""
    return _check(lambda value: seconds_of_age(value) is not None, refusal)


def segment_size(refusal: str) -> Check:
    """The size of a stream's segment in bytes."""
    return between(range(LARGEST_SEGMENT + 1), refusal)


def delivery_limit(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """An integer, which only some personalities let be negative."""
    legal = type(value) is int and (value >= 0 or personality.negative_delivery_limit)
    return None if legal else f"{term(value)} is not a valid delivery limit"


_MASTER_LOCATORS = one_of(
    "client-local", "min-masters", "random", refusal="invalid queue-master-locator value"
)
_LEADER_LOCATORS = one_of(*LOCATORS, refusal="is not a valid master locator")


def master_locator(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """A deprecated feature; where classic queues can be mirrored, mirroring defines its values."""
    if not features.permitted("queue_master_locator"):
        return "use of deprecated queue-master-locator argument is not permitted"
    check = _MASTER_LOCATORS if "ha-mode" in personality.policy_keys else _LEADER_LOCATORS
    return check(personality, features, value)
