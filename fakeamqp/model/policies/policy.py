"""One policy: its name, pattern and definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakeamqp.model.erlang import term
from fakeamqp.model.patterns import InvalidPattern, compiled
from fakeamqp.model.policies.keys import definition_problem
from fakeamqp.model.policies.parameters import Check, ParameterError, checked, failed, hint

if TYPE_CHECKING:
    from fakeamqp.model.patterns.matching import Program
    from fakeamqp.model.personality import DeprecatedFeatures, Personality

__all__ = ["APPLY_TO", "Policy", "PolicyError", "read_policy"]

APPLY_TO = ("queues", "classic_queues", "quorum_queues", "streams", "exchanges", "all")
"""The kinds of entities that policies apply to."""

_QUEUES = {"classic": "classic_queues", "quorum": "quorum_queues", "stream": "streams"}


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
        problem = definition_problem(personality, features, definition, operator=operator)
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
