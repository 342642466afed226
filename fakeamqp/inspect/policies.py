"""Views of policies and operator policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.inspect.frozen import FrozenDict, frozen
from fakeamqp.inspect.lookup import select_virtual_hosts

if TYPE_CHECKING:
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.state import BrokerState

__all__ = ["PolicyView", "policy_views"]


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyView:
    """One policy.

    Args:
        name: the name of the policy.
        virtual_host: the name of its virtual host.
        pattern: a regular expression that is searched in names.
        definition: the keys and values that it sets, with RabbitMQ's keys.
        apply_to: the entities that it applies to, such as "queues" or "all".
        priority: of several matching policies, the one with the highest priority applies.
        operator: whether it is an operator policy.
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


def policy_views(state: BrokerState, virtual_host: str | None = None) -> tuple[PolicyView, ...]:
    """The policies of one virtual host, or (None) of all, then the operator policies, in the order first set.

    Raises:
        NoSuchVirtualHost: no virtual host has this name.
    """
    chosen = select_virtual_hosts(state, virtual_host)
    ordinary = [
        _view(each.name, policy, False) for each in chosen for policy in each.policies.policies.values()
    ]
    operators = [
        _view(each.name, policy, True)
        for each in chosen
        for policy in each.policies.operator_policies.values()
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
