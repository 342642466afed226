"""Checks what the definition of a policy says, with RabbitMQ's refusals. The keys are rows of `arguments`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.model.arguments.mirroring import mirroring_problem
from fakeamqp.model.arguments.policy_keys import POLICY_KEYS, key_of
from fakeamqp.model.erlang import pairs_term, term
from fakeamqp.model.policies.parameters import hint

if TYPE_CHECKING:
    from fakeamqp.model.personality import DeprecatedFeatures, Personality

__all__ = ["definition_problem"]

_RETRY_TYPE: Final = key_of("delayed_retry_type")
_RETRY_MIN: Final = key_of("delayed_retry_min")
_RETRY_MAX: Final = key_of("delayed_retry_max")


def definition_problem(
    personality: Personality, features: DeprecatedFeatures, definition: Any, *, operator: bool
) -> tuple[str, str] | None:
    """What is wrong with a definition: RabbitMQ's text and a hint, which may be empty. None if nothing is.

    Values are checked before unknown keys are reported, and the first bad value is the only one named
    (RabbitMQ: measured).
    """
    if not isinstance(definition, Mapping):
        if isinstance(definition, list):
            return f"definition must be a dictionary: {term(definition)}", ""
        shown = term(definition)
        text = f"parse error while reading policy definition: {shown}. Validator: policy_validator."
        return text, " A definition must be an object."
    if not definition:
        return "no policy provided", ""
    known = personality.operator_policy_keys if operator else personality.policy_keys
    for key in sorted(definition):
        if key in known:
            problem = POLICY_KEYS[key].check(personality, features, definition[key])
            if problem is not None:
                return problem, ""
    problem = mirroring_problem(features, known, definition) or _delayed_retry_problem(known, definition)
    if problem is not None:
        return problem, ""
    unknown = [(key, definition[key]) for key in sorted(definition) if key not in known]
    if unknown:
        text = f"{pairs_term(unknown)} are not recognised policy settings"
        if operator and unknown[0][0] in personality.policy_keys:
            return text, f"; an operator policy cannot set {unknown[0][0]!r}, a policy can"
        return text, hint(unknown[0][0], known)
    return None


def _delayed_retry_problem(known: Collection[str], definition: Mapping[str, Any]) -> str | None:
    """Keys of delayed retries are checked together (RabbitMQ: since 4.3)."""
    if _RETRY_TYPE not in known:
        return None
    kind = definition.get(_RETRY_TYPE, "disabled")
    least = definition.get(_RETRY_MIN)
    most = definition.get(_RETRY_MAX)
    if kind != "disabled" and least is None:
        return f"{_RETRY_MIN} is required when {_RETRY_TYPE} is {kind}"
    if least is not None and most is not None and most < least:
        return f"{_RETRY_MAX} ({most}) must not be smaller than {_RETRY_MIN} ({least})"
    return None
