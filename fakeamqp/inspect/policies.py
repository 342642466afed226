"""Policies and operator policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.inspect.frozen import FrozenDict, frozen

if TYPE_CHECKING:
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.state import BrokerState

__all__ = ["PolicyView", "policy_views"]


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyView:
    """One policy.

    Args:
        name: of the policy.
        virtual_host: where it is.
        pattern: a regular expression, found anywhere in a name.
        definition: what it sets, in RabbitMQ's words.
        apply_to: what it is for, such as "queues" or "all".
        priority: of those that match, the policy with the highest counts.
        operator: it is an operator policy.
    """

    name: str
    virtual_host: str
    pattern: str
    definition: FrozenDict
    apply_to: str
    priority: float
    operator: bool

    def __repr__(self) -> str:
        words = ["<operator policy" if self.operator else "<policy", repr(self.name)]
        if self.virtual_host != "/":
            words.append(f"in virtual host {self.virtual_host!r}")
        words.append(f"{self.pattern!r} -> {dict(self.definition)!r}")
        if self.apply_to != "all":
            words.append(f"apply_to={self.apply_to!r}")
        if self.priority:
            words.append(f"priority={self.priority}")
        return " ".join(words) + ">"


def policy_views(state: BrokerState) -> tuple[PolicyView, ...]:
    """The policies of all virtual hosts, then the operator policies, in the order they were first set."""
    hosts = state.virtual_hosts.values()
    ordinary = [_view(host.name, each, False) for host in hosts for each in host.policies.policies.values()]
    operators = [
        _view(host.name, each, True) for host in hosts for each in host.policies.operator_policies.values()
    ]
    return (*ordinary, *operators)


def _view(virtual_host: str, policy: Policy, operator: bool) -> PolicyView:
    return PolicyView(
        name=policy.name,
        virtual_host=virtual_host,
        pattern=policy.pattern,
        definition=frozen(policy.definition),
        apply_to=policy.apply_to,
        priority=policy.priority,
        operator=operator,
    )
