"""Reads typed values from a table of arguments, and refuses illegal ones in RabbitMQ's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from fakeamqp.model.equivalence import type_name
from fakeamqp.model.errors import ChannelCrash, PreconditionFailed

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["LONGEST_TTL", "ArgumentReader", "seconds_of_age"]

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
    """Reads the arguments of one declaration.

    Args:
        kind: queue or exchange, for texts.
        name: of the queue or exchange, for texts.
        virtual_host: its name, for texts.
        arguments: of the declaration.
        personality: decides how some values are read.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        virtual_host: str,
        arguments: Mapping[str, Any],
        personality: Personality | None = None,
    ) -> None:
        self.entity: str = f"{kind} '{name}' in vhost '{virtual_host}'"
        self.arguments = arguments
        self.personality = personality

    def refuse(self, argument: str, reason: str) -> NoReturn:
        """Refuse an argument.

        Raises:
            PreconditionFailed: always; `reason` is an Erlang term, as in RabbitMQ's texts.
        """
        raise PreconditionFailed(f"invalid arg '{argument}' for {self.entity}: {reason}")

    def integer(self, argument: str) -> int | None:
        """An integer of any width."""
        if argument not in self.arguments:
            return None
        value = self.arguments[argument]
        if type(value) is not int:
            self.refuse(argument, f'"expected integer, got {type_name(value)}"')
        return value

    def count(self, argument: str, most: int | None = None) -> int | None:
        """An integer from 0 to `most`."""
        value = self.integer(argument)
        if value is None:
            return None
        if value < 0:
            self.refuse(argument, f"{{value_negative,{value}}}")
        if most is not None and value > most:
            self.refuse(argument, f"{{max_value_exceeded,{value}}}")
        return value

    def priority(self, argument: str) -> int | None:
        """An integer from 0 to 255."""
        return self.count(argument, most=255)

    def positive(self, argument: str) -> int | None:
        """An integer above 0."""
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
        if value > LONGEST_TTL:
            self.refuse(argument, f"{{value_too_large,{value}}}")
        return value / 1000

    def positive_milliseconds(self, argument: str) -> float | None:
        """A time in milliseconds above 0 and of at most ten years, in seconds."""
        return self.milliseconds(argument, least=1)

    def any_milliseconds(self, argument: str) -> float | None:
        """A time in milliseconds of any length, in seconds."""
        value = self.count(argument)
        return None if value is None else value / 1000

    def milliseconds_if_positive(self, argument: str) -> float | None:
        """A time in milliseconds, in seconds; any other value is ignored (RabbitMQ: its sources)."""
        value = self.arguments[argument]
        return value / 1000 if type(value) is int and value > 0 else None

    def milliseconds_if_integer(self, argument: str) -> float | None:
        """A time in milliseconds, in seconds; any other value is ignored (RabbitMQ: measured)."""
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

    def text_if_any(self, argument: str) -> str | None:
        """A string; any other value is ignored (RabbitMQ: its sources)."""
        value = self.arguments[argument]
        return value if isinstance(value, str) else None

    def exchange(self, argument: str) -> str | None:
        """The name of an exchange."""
        value = self.arguments.get(argument)
        if argument in self.arguments and not isinstance(value, str):
            raise PreconditionFailed(
                f"invalid type '{type_name(value)}' for arg '{argument}' in {self.entity}"
            )
        return value

    def legal(self, argument: str) -> tuple[Any, ...]:
        """The legal values that the personality has for an argument; empty where any is legal."""
        return () if self.personality is None else self.personality.argument_values.get(argument, ())

    def choice(self, argument: str, legal: tuple[str, ...], refusal: str) -> str | None:
        """One of a few words."""
        value = self.text(argument)
        if value is not None and value not in legal:
            self.refuse(argument, refusal.format(value))
        return value

    def flag(self, argument: str) -> bool:
        """A boolean."""
        value = self.arguments.get(argument, False)
        if not isinstance(value, bool):
            self.refuse(argument, f"{{unacceptable_type,{type_name(value)}}}")
        return value

    def age(self, argument: str) -> float | None:
        """A number with a unit, such as 7D: in seconds."""
        value = self.text(argument)
        if value is None:
            return None
        age = self.seconds_of_age(value)
        if age is None:
            self.refuse(argument, "invalid_max_age")
        return age

    def seconds_of_age(self, text: str) -> float | None:
        """An age in seconds; None if the text is not an age.

        Raises:
            Crash: it does not begin with a digit, in personalities that fail on that.
        """
        crashes = self.personality is not None and self.personality.crashes_on_ages
        if crashes and not re.match("[0-9]", text):
            raise ChannelCrash("an age that does not begin with a digit")
        return seconds_of_age(text)
