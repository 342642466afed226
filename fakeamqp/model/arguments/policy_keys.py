"""All policy keys, one row each: those of arguments, and those without one.

Those of classic queue mirroring (RabbitMQ: until 3.13) have no effect on a single node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.model.arguments.exchange_arguments import EXCHANGE_ARGUMENTS
from fakeamqp.model.arguments.queue_arguments import QUEUE_ARGUMENTS, QUEUE_TYPES
from fakeamqp.model.arguments.rows import PolicyKey
from fakeamqp.model.arguments.values import is_one_of, is_positive, positive
from fakeamqp.model.erlang import term
from fakeamqp.model.errors import InternalError
from fakeamqp.model.versions import EVERY, NONE, ONLY_3_13, SINCE_3_13, UNTIL_3_13, Versions

if TYPE_CHECKING:
    from fakeamqp.model.personality import DeprecatedFeatures

_MODE: Final = "ha-mode"
_PARAMETERS: Final = "ha-params"


_QUORUM_AND_STREAM = {"quorum": EVERY, "stream": EVERY}
_MIRRORING = PolicyKey(versions=UNTIL_3_13, foreign=_QUORUM_AND_STREAM)
_OPERATORS_MIRRORING = PolicyKey(versions=UNTIL_3_13, operator=ONLY_3_13, foreign=_QUORUM_AND_STREAM)
_PROMOTE = is_one_of("always", "when-synced"), 'must be "always" or "when-synced", got'

_MIRRORING_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "ha-sync-mode": (is_one_of("automatic", "manual"), 'must be "manual" or "automatic", got'),
    "ha-sync-batch-size": (is_positive, "takes an integer greater than 0, got"),
    "ha-promote-on-shutdown": _PROMOTE,
    "ha-promote-on-failure": _PROMOTE,
}
"""What is legal once the mode is right, and the refusal, in the order in which RabbitMQ checks them."""

_MIRRORING_KEYS = {
    _MODE: _OPERATORS_MIRRORING,
    _PARAMETERS: _OPERATORS_MIRRORING,
    "ha-sync-mode": _OPERATORS_MIRRORING,
    "ha-sync-batch-size": PolicyKey(versions=UNTIL_3_13, foreign={"stream": SINCE_3_13}),
    "ha-promote-on-shutdown": _MIRRORING,
    "ha-promote-on-failure": _MIRRORING,
}

_ARGUMENTS = (*QUEUE_ARGUMENTS, *EXCHANGE_ARGUMENTS)

POLICY_KEYS: Final[dict[str, PolicyKey]] = {
    **{row.key: row.policy for row in _ARGUMENTS if row.policy is not None},
    "target-group-size": PolicyKey(
        positive("is not a valid qq target count value"),
        versions=SINCE_3_13,
        operator=SINCE_3_13,
        operator_merge=max,
        foreign={"classic": SINCE_3_13, "stream": SINCE_3_13},
    ),
    **_MIRRORING_KEYS,
}
_TYPES = {row.key: row.types for row in QUEUE_ARGUMENTS}


def policy_keys(personality: str, *, operator: bool = False) -> tuple[str, ...]:
    """The keys that policies, or operator policies, may set in the personality of this name."""
    keys = sorted(POLICY_KEYS.items())
    return tuple(name for name, key in keys if personality in (key.operator if operator else key.versions))


def foreign_policy_keys(personality: str) -> dict[str, tuple[str, ...]]:
    """By queue type, the keys with which a policy as a whole does not apply to queues of the type."""
    return {
        kind: tuple(name for name in sorted(POLICY_KEYS) if personality in _foreign(name, kind))
        for kind in QUEUE_TYPES
    }


def _foreign(name: str, kind: str) -> Versions:
    foreign = POLICY_KEYS[name].foreign
    if foreign is not None:
        return foreign.get(kind, NONE)
    types = _TYPES[name]
    return EVERY - types[kind].versions if kind in types else EVERY


def mirroring_problem(
    features: DeprecatedFeatures, known: Collection[str], definition: Mapping[str, Any]
) -> str | None:
    """What is wrong with the keys of mirroring in a definition, in RabbitMQ's words; None if nothing is."""
    given = {key: value for key, value in definition.items() if key in _MIRRORING_KEYS and key in known}
    if not given:
        return None
    try:
        features.require("classic_queue_mirroring")
    except InternalError as denied:
        return denied.text
    mode = given.get(_MODE)
    if mode is None:
        return "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
    if mode not in ("all", "exactly", "nodes"):
        return f"{term(mode)} is not a valid ha-mode value"
    return _parameters_problem(mode, given.get(_PARAMETERS)) or next(
        (
            f"{key} {refusal} {term(given[key])}"
            for key, (is_legal, refusal) in _MIRRORING_CHECKS.items()
            if key in given and not is_legal(given[key])
        ),
        None,
    )


def _parameters_problem(mode: str, parameters: Any) -> str | None:
    if mode == "all":
        return None if parameters is None else 'ha-mode="all" does not take parameters'
    if mode == "exactly":
        shown = term(parameters)
        return None if is_positive(parameters) else f'ha-mode="exactly" takes an integer, {shown} given'
    if not isinstance(parameters, list):
        return f'ha-mode="nodes" takes a list, {term(parameters)} given'
    if not parameters:
        return 'ha-mode="nodes" list must be non-empty'
    wrong = [each for each in parameters if not isinstance(each, str)]
    return f'ha-mode="nodes" takes a list of strings, {term(wrong)} was not a string' if wrong else None
