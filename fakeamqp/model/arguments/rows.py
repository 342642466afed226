"""The parts of a row, and how a record of options is made of rows.

An options record is a frozen dataclass. Each field is declared with `option`, which has the row of the
argument that sets it. A `ClassVar` of the record holds the row of an argument that is checked and sets
nothing. The order of the declarations is the order in which RabbitMQ checks the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.arguments.values import ArgumentReader, Check, any_value
from fakeamqp.model.versions import EVERY, NONE, Versions

if TYPE_CHECKING:
    from fakeamqp.model.personality import Feature, Personality

Read: TypeAlias = Callable[[ArgumentReader, str], Any]
"""Reads and checks the value of an argument, by its name."""

Merge: TypeAlias = Callable[[Any, Any], Any]
"""Chooses between two values: of a policy and an argument, or of a policy and an operator policy."""


def policy_wins(policy: Any, _: Any) -> Any:
    """The first of two values."""
    return policy


def argument_wins(_: Any, argument: Any) -> Any:
    """The second of two values: that of the argument, or of the operator policy."""
    return argument


def stricter_limit(one: float, other: float) -> float:
    """The smaller of two limits, where a negative one means that there is no limit."""
    return max(one, other) if one < 0 or other < 0 else min(one, other)


def _unchanged(value: Any, _: str) -> Any:
    return value


def _never(_: Personality, __: str) -> bool:
    return False


@dataclass(frozen=True)
class PolicyKey:
    """How policies set the option of a row. The key is the argument's name without its `x-`.

    Args:
        check: returns RabbitMQ's text for an illegal value, None for a legal one.
        versions: personalities whose policies may set it.
        operator: personalities whose operator policies may set it.
        operator_merge: chooses between the values of a policy and of an operator policy, in this order.
        read: makes the option's value of the policy's, for a queue type.
        merge: chooses between the values of the policies and of the argument, in this order; None: the key
            has no effect.
        merges: the same for queue types where it differs.
        overrides: whether the policy's value holds on a queue type whatever the argument says.
        foreign: by queue type, personalities in which the key makes a whole policy skip such queues; None:
            those in which the type does not take the argument.
    """

    check: Check = any_value
    versions: Versions = EVERY
    operator: Versions = NONE
    operator_merge: Merge = argument_wins
    read: Callable[[Any, str], Any] = _unchanged
    merge: Merge | None = None
    merges: Mapping[str, Merge] = field(default_factory=dict)
    overrides: Callable[[Personality, str], bool] = _never
    foreign: Mapping[str, Versions] | None = None


@dataclass(frozen=True)
class Taken:
    """That a type takes an argument in these personalities.

    `compared` says whether a redeclaration must repeat the argument, and `position` when it is compared;
    otherwise that is in the order of the rows.
    """

    versions: Versions = EVERY
    compared: Callable[[Personality], bool] | bool = True
    position: int = 0

    def is_compared(self, personality: Personality) -> bool:
        return self.compared(personality) if callable(self.compared) else self.compared


@dataclass(frozen=True)
class Argument:
    """The row of one argument.

    Args:
        name: as clients send it.
        read: reads and checks the value; None: the value is not looked at here.
        types: the types of queue or exchange that take it; other queue types refuse it.
        policy: how policies set the same option; None: they cannot.
        values: the legal values where an argument takes only a few, by personality.
        feature: the deprecated feature that must be permitted for it.
        option: the field of the options record that it sets, filled in from the record; empty: none.
    """

    name: str
    read: Read | None
    types: Mapping[str, Taken] = field(default_factory=dict)
    policy: PolicyKey | None = None
    values: tuple[tuple[Versions, tuple[str | int, ...]], ...] = ()
    feature: Feature | None = None
    option: str = ""

    @property
    def key(self) -> str:
        """Its name in the definition of a policy."""
        return self.name.removeprefix("x-")


def option(
    name: str, read: Read, types: Mapping[str, Taken], policy: PolicyKey | None = None, default: Any = None
) -> Any:
    """Declare the field of an options record that the argument `name` sets; see `Argument`."""
    return field(default=default, metadata={"row": Argument(name, read, types, policy)})


def rows_of(record: type[Any]) -> tuple[Argument, ...]:
    """The rows of an options record, in order."""
    named = {each.name: replace(each.metadata["row"], option=each.name) for each in fields(record)}
    return tuple(named.get(name) or getattr(record, name) for name in record.__annotations__)


def read_options(
    rows: tuple[Argument, ...], reader: ArgumentReader, known: Collection[str]
) -> dict[str, Any]:
    """The options that arguments set, by name; those of `known` are read. Raises PreconditionFailed."""
    values = {}
    for row in rows:
        if row.read is not None and row.name in reader.arguments and row.name in known:
            value = row.read(reader, row.name)
            if row.option:
                values[row.option] = value
    return values
