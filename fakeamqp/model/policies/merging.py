"""The options in force where a policy, an operator policy and a declaration's arguments set the same one.

First policy and operator policy become one definition, key by key (`effective_definition`). Then, option by
option, that definition meets the arguments (`effective_options`). The rows of `arguments` say which value
wins, because RabbitMQ has no single rule: the stricter value mostly wins, but not always. (RabbitMQ:
documented in part, the rest measured.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.arguments.exchange_arguments import ANY_TYPE, EXCHANGE_ARGUMENTS, ExchangeOptions
from fakeamqp.model.arguments.policy_keys import POLICY_KEYS
from fakeamqp.model.arguments.queue_arguments import QUEUE_ARGUMENTS, QueueOptions
from fakeamqp.model.arguments.rows import Argument, PolicyKey, argument_wins, policy_wins

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.policies.policy import Policy

__all__ = ["effective_definition", "effective_exchange_options", "effective_options"]


def effective_definition(policy: Policy | None, operator: Policy | None) -> dict[str, Any]:
    """What a policy and an operator policy set together, sorted by key."""
    ours = {} if policy is None else policy.definition
    theirs = {} if operator is None else operator.definition
    merged = {}
    for key in sorted({*ours, *theirs}):
        if key in ours and key in theirs:
            merge = POLICY_KEYS[key].operator_merge if key in POLICY_KEYS else argument_wins
            merged[key] = merge(ours[key], theirs[key])
        else:
            merged[key] = ours.get(key, theirs.get(key))
    return merged


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
    for row, key in _set_by(_QUEUE_ROWS, definition, queue_type):
        wanted = key.read(definition[row.key], queue_type)
        if row.name in arguments and row.name in personality.queue_arguments[queue_type]:
            asked = getattr(declared, row.option)
            merge = policy_wins if key.overrides(personality, queue_type) else key.merge[queue_type]
            wanted = wanted if asked is None else merge(wanted, asked)
        changes[row.option] = wanted
    return replace(declared, **changes) if changes else declared


def effective_exchange_options(declared: ExchangeOptions, definition: Mapping[str, Any]) -> ExchangeOptions:
    """The options in force for an exchange; see `effective_options`."""
    changes: dict[str, Any] = {}
    for row, key in _set_by(_EXCHANGE_ROWS, definition, ANY_TYPE):
        wanted = key.read(definition[row.key], ANY_TYPE)
        asked = getattr(declared, row.option)
        changes[row.option] = wanted if asked is None else key.merge[ANY_TYPE](wanted, asked)
    return replace(declared, **changes) if changes else declared


_Row: TypeAlias = "tuple[str, Argument, PolicyKey]"


def _rows(rows: Iterable[Argument]) -> tuple[_Row, ...]:
    return tuple((row.key, row, row.policy) for row in rows if row.policy is not None)


_QUEUE_ROWS = _rows(QUEUE_ARGUMENTS)
_EXCHANGE_ROWS = _rows(EXCHANGE_ARGUMENTS)


def _set_by(
    rows: Iterable[_Row], definition: Mapping[str, Any], kind: str
) -> Iterator[tuple[Argument, PolicyKey]]:
    """The rows whose options a definition sets for a type."""
    for name, row, key in rows:
        if name in definition and kind in key.merge:
            yield row, key
