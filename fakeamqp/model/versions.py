"""What differs by personality is a row: a value for most of them, and others for sets of them, by name.

The personalities are in the order of RabbitMQ's releases. `spec` follows RabbitMQ 4.2 where no row says
otherwise. What 3.10 takes is what a node of 3.10.8 says of itself: the arguments in the capabilities of its
queue types, and its registered validators of policies. No node of 4.1 was at hand: the tagged source of 4.1.8
has the code of 4.0.5 for all that 4.0 and 4.2 do differently, except for what names 4.0 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

Versions: TypeAlias = frozenset[str]

ONLY_3_10: Final[Versions] = frozenset({"rabbitmq-3.10"})
ONLY_3_13: Final[Versions] = frozenset({"rabbitmq-3.13"})
ONLY_4_0: Final[Versions] = frozenset({"rabbitmq-4.0"})
ONLY_4_1: Final[Versions] = frozenset({"rabbitmq-4.1"})
SINCE_4_3: Final[Versions] = frozenset({"rabbitmq-4.3"})
SPEC: Final[Versions] = frozenset({"spec"})

NONE: Final[Versions] = frozenset()
UNTIL_3_13: Final[Versions] = ONLY_3_10 | ONLY_3_13
UNTIL_4_0: Final[Versions] = UNTIL_3_13 | ONLY_4_0
UNTIL_4_1: Final[Versions] = UNTIL_4_0 | ONLY_4_1
SINCE_4_2: Final[Versions] = SINCE_4_3 | {"rabbitmq-4.2"} | SPEC
SINCE_4_0: Final[Versions] = SINCE_4_2 | ONLY_4_0 | ONLY_4_1
SINCE_3_13: Final[Versions] = SINCE_4_0 | ONLY_3_13
EVERY: Final[Versions] = SINCE_4_0 | UNTIL_3_13
UNTIL_4_2: Final[Versions] = EVERY - SINCE_4_3

PersonalityName: TypeAlias = Literal[
    "rabbitmq-3.10",
    "rabbitmq-3.13",
    "rabbitmq-4.0",
    "rabbitmq-4.1",
    "rabbitmq-4.2",
    "rabbitmq-4.3",
    "spec",
]
"""The name of a personality."""

NAMES: Final[tuple[PersonalityName, ...]] = get_args(PersonalityName)
"""All personalities, by name."""

_USUAL: Final = "rabbitmq-4.2"

T = TypeVar("T")


class ChoiceRow:
    """The row of one choice: `value` returns the value for the personality of a name.

    With `any_text` any text fits, otherwise only the words that some personality has; `most` is the largest
    number that fits.
    """

    __slots__ = ("any_text", "most", "value")

    def __init__(self, value: Callable[[str], Any], any_text: bool, most: int | None = None) -> None:
        self.value: Callable[[str], Any] = value
        self.any_text: bool = any_text
        self.most: int | None = most


def choice(
    usual: T,
    others: Mapping[Versions, T] | None = None,
    *,
    any_text: bool = False,
    most: int | None = None,
) -> T:
    """Declare a choice as a field of a record. The text below the field says what it decides, and why.

    All personalities have the value `usual`, except for those in `others`; no two sets there have a name in
    common. See also `ChoiceRow`.
    """
    exceptions = tuple(others.items()) if others else ()

    def value(personality: str) -> T:
        for versions, each in exceptions:
            if personality in versions:
                return each
        return usual

    declared: T = field(metadata={"row": ChoiceRow(value, any_text, most)})
    return declared


def derived(value: Callable[[str], T], *, any_text: bool = False) -> T:
    """Declare a choice whose value is computed from the name of the personality."""
    declared: T = field(metadata={"row": ChoiceRow(value, any_text)})
    return declared


class Choices:
    """A record of choices: `dataclass(frozen=True, init=False)` with a row for each field."""

    def __init__(self, **choices: Any) -> None:
        """A record with these choices, and the usual ones."""
        _fill(self, _USUAL, choices)


C = TypeVar("C", bound=Choices)


def part(record: type[C]) -> C:
    """Declare a field that holds a record of further choices."""
    return derived(lambda personality: made(record, personality))


def rows_of(record: Choices | type[Choices]) -> dict[str, ChoiceRow]:
    """The rows of a record, by the names of their fields."""
    return {each.name: each.metadata["row"] for each in fields(record)}  # type: ignore[arg-type]


def made(record: type[C], personality: str) -> C:
    """The record of the personality of this name. A name that stands in no row has the usual values."""
    found: C = _made(record, personality)  # type: ignore[arg-type]
    return found


@lru_cache
def _made(record: Any, personality: str) -> Any:
    found = object.__new__(record)
    _fill(found, personality, {})
    return found


def _fill(record: Choices, personality: str, given: dict[str, Any]) -> None:
    rows = rows_of(record)
    if unknown := given.keys() - rows:
        raise TypeError(f"{type(record).__name__} has no choice {', '.join(sorted(unknown))}")
    for name, row in rows.items():
        # The record is frozen.
        object.__setattr__(record, name, given[name] if name in given else row.value(personality))
