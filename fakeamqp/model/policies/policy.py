"""One policy: its name, pattern and definition; what it sets together with an operator policy and arguments.

Where several set the same option, policy and operator policy first become one definition, key by key
(`effective_definition`). Then, option by option, that definition meets the arguments
(`effective_options`). The rows of `arguments` say which value wins, because RabbitMQ has no single rule: the
stricter value mostly wins, but not always. (RabbitMQ: documented in part, the rest measured.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fakeamqp.model.arguments.exchange_arguments import ANY_TYPE, EXCHANGE_ARGUMENTS, ExchangeOptions
from fakeamqp.model.arguments.policy_keys import POLICY_KEYS, key_of, mirroring_problem
from fakeamqp.model.arguments.queue_arguments import QUEUE_ARGUMENTS, QueueOptions
from fakeamqp.model.arguments.rows import Argument, PolicyKey, argument_wins, policy_wins
from fakeamqp.model.erlang import pairs_term, term
from fakeamqp.model.patterns import InvalidPattern, compiled
from fakeamqp.model.policies.parameters import Check, ParameterError, checked, failed, hint

if TYPE_CHECKING:
    from fakeamqp.model.patterns.matching import Program
    from fakeamqp.model.personality import DeprecatedFeatures, Personality

__all__ = [
    "APPLY_TO",
    "Policy",
    "PolicyError",
    "effective_definition",
    "effective_exchange_options",
    "effective_options",
    "read_policy",
]

APPLY_TO = ("queues", "classic_queues", "quorum_queues", "streams", "exchanges", "all")
"""The kinds of entities that policies apply to."""

_QUEUES = {"classic": "classic_queues", "quorum": "quorum_queues", "stream": "streams"}

_RETRY_TYPE: Final = key_of("delayed_retry_type")
_RETRY_MIN: Final = key_of("delayed_retry_min")
_RETRY_MAX: Final = key_of("delayed_retry_max")


class PolicyError(ParameterError):
    """A policy has an illegal field, or the policy to clear does not exist."""

    __module__ = "fakeamqp"


@dataclass(frozen=True)
class Policy:
    """Options for the queues and exchanges whose name contains a match of the pattern.

    Args:
        name: unique among the policies, or the operator policies, of a virtual host.
        pattern: a regular expression that matches anywhere in the name.
        definition: keys and values, as in RabbitMQ.
        apply_to: one of `APPLY_TO`.
        priority: of all matching policies only the one with the highest priority applies.
    """

    name: str
    pattern: str
    definition: Mapping[str, Any] = field(hash=False)
    apply_to: str = "all"
    priority: float = 0

    def applies_to(self, kind: str) -> bool:
        """Whether the policy is for queues of this type, or for exchanges if `kind` is "exchange"."""
        if kind == "exchange":
            return self.apply_to in ("all", "exchanges")
        return self.apply_to in ("all", "queues", _QUEUES.get(kind, ""))

    @property
    def program(self) -> Program:
        """The compiled pattern."""
        return compiled(self.pattern)

    def value(self) -> dict[str, Any]:
        """The policy without its name, as RabbitMQ stores and exports it."""
        return {
            "pattern": self.pattern,
            "apply-to": self.apply_to,
            "priority": self.priority,
            "definition": dict(self.definition),
        }


def read_policy(
    personality: Personality,
    features: DeprecatedFeatures,
    name: str,
    value: Mapping[str, Any],
    *,
    operator: bool = False,
) -> Policy:
    """Read a policy from its fields as in RabbitMQ: pattern, definition, priority and apply-to.

    Raises:
        PolicyError: a field is missing or illegal; the text says which, and names near matches.
    """
    hints = ""

    def check_definition(_: str, definition: Any) -> str | None:
        nonlocal hints
        problem = _definition_problem(personality, features, definition, operator=operator)
        if problem is None:
            return None
        hints = problem[1]
        return problem[0]

    def check_apply_to(_: str, apply_to: Any) -> str | None:
        nonlocal hints
        if apply_to in APPLY_TO:
            return None
        hints = hint(str(apply_to), APPLY_TO)
        return (
            f"apply-to '{apply_to}' unrecognised; should be one of: 'queues', 'classic_queues',  "
            "'quorum_queues', 'streams', 'exchanges', or 'all'"
        )

    fields: dict[str, tuple[Check, bool]] = {
        "priority": (_check_priority, True),
        "pattern": (lambda _, pattern: _pattern_problem(personality, pattern), True),
        "apply-to": (check_apply_to, False),
        "definition": (check_definition, True),
    }
    wrong, found = checked(name, value, fields)
    if wrong:
        if isinstance(value, Mapping):
            for key in sorted(set(value) - set(fields)):
                hints = hint(key, fields)
        kind = "operator policy" if operator else "policy"
        raise PolicyError(f"{kind} {name!r}: {'; '.join(wrong)}{hints}", failed(wrong))
    return Policy(
        name, found["pattern"], dict(found["definition"]), found.get("apply-to", "all"), found["priority"]
    )


def _check_priority(_: str, priority: Any) -> str | None:
    if isinstance(priority, (int, float)) and not isinstance(priority, bool):
        return None
    return f"priority should be a number, actually was {term(priority)}"


def _pattern_problem(personality: Personality, pattern: Any) -> str | None:
    if not isinstance(pattern, str):
        shown = "undefined" if pattern is None else term(pattern)
        return f"pattern should be a binary but was {shown}"
    longest = personality.longest_pattern
    if longest and len(pattern.encode("utf-8", "surrogateescape")) > longest:
        return f"pattern must not exceed {longest} bytes"
    try:
        compiled(pattern)
    except InvalidPattern as error:
        return f'pattern should be regular expression but is invalid: {{"{error.problem}",{error.place}}}'
    return None


def _definition_problem(
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


# --- options in force --------------------------------------------------------------------------------


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
