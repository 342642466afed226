"""Values of arguments and of policies: what is legal, with RabbitMQ's refusals of the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from fakeamqp.model.erlang import is_integer, term, type_name
from fakeamqp.model.errors import ChannelCrash, PreconditionFailed
from fakeamqp.model.names import LONGEST_NAME, octets_of

if TYPE_CHECKING:
    from fakeamqp.model.personality import DeprecatedFeatures, Personality

LONGEST_TTL: Final = 315_360_000_000
"""Ten years in milliseconds: RabbitMQ's limit for times to live."""

_SECONDS = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}


def seconds_of_age(value: Any) -> float | None:
    """A number with a unit, such as 7D, in seconds; None for any other value."""
    found = re.fullmatch("([0-9]+)([YMDhms])\n?", value) if isinstance(value, str) else None
    if found is None or int(found[1]) == 0:
        return None
    return float(int(found[1]) * _SECONDS[found[2]])


class ArgumentReader:
    """Reads the arguments of one declaration; each method reads one that is among them.

    `kind` (queue or exchange) and the names are for texts; the personality decides how some values are read.
    """

    def __init__(
        self, kind: str, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
    ) -> None:
        self.entity: str = f"{kind} '{name}' in vhost '{virtual_host}'"
        self.arguments = arguments
        self.personality = personality

    def refuse(self, argument: str, reason: str) -> NoReturn:
        """Raise PreconditionFailed; `reason` is an Erlang term, as in RabbitMQ's texts."""
        raise PreconditionFailed(f"invalid arg '{argument}' for {self.entity}: {reason}")

    def integer(self, argument: str) -> int:
        """An integer of any width."""
        value = self.arguments[argument]
        if not is_integer(value):
            self.refuse(argument, f'"expected integer, got {type_name(value)}"')
        return int(value)

    def count(self, argument: str, most: int | None = None) -> int:
        """An integer from 0 to `most`."""
        value = self.integer(argument)
        if value < 0:
            self.refuse(argument, f"{{value_negative,{value}}}")
        if most is not None and value > most:
            self.refuse(argument, f"{{max_value_exceeded,{value}}}")
        return value

    def priority(self, argument: str) -> int:
        """An integer from 0 to 255."""
        return self.count(argument, most=255)

    def positive(self, argument: str) -> int:
        """An integer above 0."""
        value = self.count(argument)
        if value == 0:
            self.refuse(argument, "{value_zero,0}")
        return value

    def milliseconds(self, argument: str) -> float:
        """A time in milliseconds of at most ten years, in seconds."""
        value = self.count(argument)
        if value > LONGEST_TTL:
            self.refuse(argument, f"{{value_too_large,{value}}}")
        return value / 1000

    def positive_milliseconds(self, argument: str) -> float:
        """A time in milliseconds above 0 and of at most ten years, in seconds."""
        self.positive(argument)
        return self.milliseconds(argument)

    def any_milliseconds(self, argument: str) -> float:
        """A time in milliseconds of any length, in seconds."""
        return self.count(argument) / 1000

    def milliseconds_if_positive(self, argument: str) -> float | None:
        """A time in milliseconds, in seconds; any other value is ignored (RabbitMQ: its sources)."""
        value = self.arguments[argument]
        return value / 1000 if is_positive(value) else None

    def text(self, argument: str) -> str:
        """A string."""
        value = self.arguments[argument]
        if not isinstance(value, str):
            self.refuse(argument, f"{{unacceptable_type,{type_name(value)}}}")
        return value

    def text_if_any(self, argument: str) -> str | None:
        """A string; any other value is ignored (RabbitMQ: its sources)."""
        value = self.arguments[argument]
        return value if isinstance(value, str) else None

    def exchange(self, argument: str) -> str:
        """The name of an exchange."""
        value = self.arguments[argument]
        if not isinstance(value, str):
            raise PreconditionFailed(
                f"invalid type '{type_name(value)}' for arg '{argument}' in {self.entity}"
            )
        return value

    def choice(self, argument: str, legal: tuple[str, ...], refusal: str) -> str:
        """One of a few words."""
        value = self.text(argument)
        if value not in legal:
            self.refuse(argument, refusal.format(value))
        return value

    def flag(self, argument: str) -> bool:
        """A boolean."""
        value = self.arguments[argument]
        if not isinstance(value, bool):
            self.refuse(argument, f"{{unacceptable_type,{type_name(value)}}}")
        return value

    def age(self, argument: str) -> float:
        """A number with a unit, such as 7D: in seconds."""
        age = self.seconds_of_age(self.text(argument))
        if age is None:
            self.refuse(argument, "invalid_max_age")
        return age

    def seconds_of_age(self, text: str) -> float | None:
        """An age in seconds, or None. By personality, a text that begins with no digit is a ChannelCrash."""
        if self.personality.crashes_on_ages and not re.match("[0-9]", text):
            raise ChannelCrash("an age that does not begin with a digit")
        return seconds_of_age(text)


# --- values of policies -----------------------------------------------------------------------------

Check: TypeAlias = Callable[["Personality", "DeprecatedFeatures", Any], str | None]
"""Returns RabbitMQ's text for an illegal value, None for a legal one."""

LOCATORS = ("client-local", "balanced", "random", "least-leaders")
"""Where the leader of a queue may be placed."""

FILTER_SIZES = range(16, 256)
"""Bytes of the filters of a stream's chunks."""

LARGEST_SEGMENT = 3_000_000_000
"""Bytes in a segment of a stream."""


def is_positive(value: Any) -> bool:
    """Whether a value is an integer above 0."""
    return is_integer(value) and value > 0


def is_one_of(*legal: Any) -> Callable[[Any], bool]:
    """Whether a value equals one of a few and has its type."""
    return lambda value: any(type(value) is type(each) and value == each for each in legal)


def any_value(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """Check nothing."""
    return None


def _check(legal: Callable[[Any], bool], refusal: str) -> Check:
    return lambda personality, features, value: None if legal(value) else f"{term(value)} {refusal}"


def natural(refusal: str) -> Check:
    """An integer from 0 upwards."""
    return _check(lambda value: is_integer(value) and value >= 0, refusal)


def positive(refusal: str) -> Check:
    """An integer above 0."""
    return _check(is_positive, refusal)


def between(legal: range, refusal: str) -> Check:
    """An integer of a range."""
    return _check(lambda value: is_integer(value) and value in legal, refusal)


def text(refusal: str) -> Check:
    """A string."""
    return _check(lambda value: isinstance(value, str), refusal)


def one_of(*legal: Any, refusal: str) -> Check:
    """One of a few values."""
    return _check(is_one_of(*legal), refusal)


def age(refusal: str) -> Check:
    """A number with a unit."""
    return _check(lambda value: seconds_of_age(value) is not None, refusal)


def too_long(key: str) -> str | None:
    """What is wrong with a routing key that no message can have; None if it is not too long.

    RabbitMQ takes it, and ends connections that are sent such a message with 541 (measured).
    """
    return f"longer than {LONGEST_NAME} bytes" if octets_of(key) > LONGEST_NAME else None


def routing_key(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """A routing key that a message can have."""
    if not isinstance(value, str):
        return f"{term(value)} is not a valid dead letter routing key"
    problem = too_long(value)
    return f"the routing key is {problem}" if problem else None


def delivery_limit(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """An integer, which only some personalities let be negative."""
    legal = is_integer(value) and (value >= 0 or personality.negative_delivery_limit)
    return None if legal else f"{term(value)} is not a valid delivery limit"


def master_locator(personality: Personality, features: DeprecatedFeatures, value: Any) -> str | None:
    """A deprecated feature; where classic queues can be mirrored, mirroring defines its values."""
    if not features.permitted("queue_master_locator"):
        return "use of deprecated queue-master-locator argument is not permitted"
    mirrored = "ha-mode" in personality.policy_keys
    legal = ("client-local", "min-masters", "random") if mirrored else LOCATORS
    refusal = "invalid queue-master-locator value" if mirrored else "is not a valid master locator"
    return None if is_one_of(*legal)(value) else f"{term(value)} {refusal}"
