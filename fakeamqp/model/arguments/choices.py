"""What a personality takes: its part of every row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from fakeamqp.model.arguments.consumer_arguments import CONSUMER_ARGUMENTS
from fakeamqp.model.arguments.policy_keys import POLICY_KEYS
from fakeamqp.model.arguments.queue_arguments import QUEUE_ARGUMENTS, QUEUE_TYPES
from fakeamqp.model.arguments.rows import Argument
from fakeamqp.model.arguments.versions import NONE

__all__ = ["ArgumentChoices", "argument_choices"]


class ArgumentChoices(TypedDict):
    """The choices of a personality that the rows make; see `Personality`."""

    queue_arguments: Mapping[str, tuple[str, ...]]
    consumer_arguments: Mapping[str, tuple[str, ...]]
    removed_queue_arguments: tuple[str, ...]
    argument_values: Mapping[str, tuple[str | int, ...]]
    policy_keys: tuple[str, ...]
    operator_policy_keys: tuple[str, ...]
    foreign_policy_keys: Mapping[str, tuple[str, ...]]


def argument_choices(personality: str) -> ArgumentChoices:
    """The choices of the personality of this name."""
    keys = sorted(POLICY_KEYS.items())
    return {
        "queue_arguments": _taken(QUEUE_ARGUMENTS, personality),
        "consumer_arguments": _taken(CONSUMER_ARGUMENTS, personality),
        "removed_queue_arguments": tuple(row.name for row in QUEUE_ARGUMENTS if personality in row.removed),
        "argument_values": {
            row.name: values
            for row in QUEUE_ARGUMENTS
            for versions, values in row.values
            if personality in versions
        },
        "policy_keys": tuple(name for name, key in keys if personality in key.versions),
        "operator_policy_keys": tuple(name for name, key in keys if personality in key.operator),
        "foreign_policy_keys": {
            kind: tuple(name for name, key in keys if personality in key.foreign.get(kind, NONE))
            for kind in QUEUE_TYPES
        },
    }


def _taken(rows: Iterable[Argument], personality: str) -> dict[str, tuple[str, ...]]:
    """By queue type, the arguments that it takes."""
    rows = tuple(rows)
    return {
        kind: tuple(row.name for row in rows if kind in row.types and personality in row.types[kind].versions)
        for kind in QUEUE_TYPES
    }
