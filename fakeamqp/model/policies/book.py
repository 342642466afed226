"""The policies of one virtual host, and the policies of each of its queues and exchanges.

Setting or clearing a policy matches all queues and exchanges again, and applies the options of those whose
policies changed. New ones are matched when they are declared. (RabbitMQ: documented.)

The other modules of this package are imported with the first policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.parameters import hint

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.policies.policy import Policy
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Policies"]


class Policies:
    """Policies and operator policies by name, in the order they were first set."""

    __slots__ = ("_virtual_host", "operator_policies", "policies")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self.policies: dict[str, Policy] = {}
        self.operator_policies: dict[str, Policy] = {}

    def set(self, name: str, value: Mapping[str, Any], *, operator: bool = False) -> Policy:
        """Set or replace a policy; it applies at once.

        Args:
            name: of the policy.
            value: the fields pattern, definition, priority and apply-to, as in RabbitMQ.
            operator: make it an operator policy.

        Raises:
            PolicyError: a field is missing or illegal.
        """
        from fakeamqp.model.policies.policy import read_policy

        state = self._virtual_host.state
        policy = read_policy(state.personality, state.features, name, value, operator=operator)
        self._kept(operator)[name] = policy
        self._match_all()
        return policy

    def clear(self, name: str, *, operator: bool = False) -> None:
        """Clear a policy; its effect ends at once.

        Raises:
            PolicyError: no policy has this name.
        """
        from fakeamqp.model.policies.policy import PolicyError

        kept = self._kept(operator)
        if name not in kept:
            kind = "operator policy" if operator else "policy"
            where = self._virtual_host.name
            near = hint(name, kept) if kept else "; there are none"
            raise PolicyError(
                f"there is no {kind} {name!r} in virtual host {where!r}{near}", "Parameter does not exist"
            )
        del kept[name]
        self._match_all()

    def _kept(self, operator: bool) -> dict[str, Policy]:
        return self.operator_policies if operator else self.policies

    # --- matching -----------------------------------------------------------------------------------

    def _match_all(self) -> None:
        virtual_host = self._virtual_host
        for exchange in virtual_host.exchanges.values():
            self.adopt_exchange(exchange)
        for queue in list(virtual_host.queues.values()):
            # Dead letters of one queue may cause the deletion of another one in the list.
            if not queue.deleted:
                self.adopt_queue(queue)

    def adopt_queue(self, queue: Queue) -> None:
        """Match a queue, and apply its options if its policies changed."""
        kind = queue.type_name
        foreign = frozenset(self._virtual_host.state.personality.foreign_policy_keys[kind])

        def fits(policy: Policy) -> bool:
            return foreign.isdisjoint(policy.definition) and policy.matches(queue.name, "queue", kind)

        policy = _best(self.policies.values(), fits)
        operator = _best(self.operator_policies.values(), fits)
        if (policy, operator) == (queue.policy, queue.operator_policy):
            return
        from fakeamqp.model.policies.merging import effective_definition, effective_options

        queue.policy, queue.operator_policy = policy, operator
        queue.apply(
            effective_options(
                self._virtual_host.state.personality,
                kind,
                queue.declared,
                queue.arguments,
                effective_definition(policy, operator),
            )
        )

    def adopt_exchange(self, exchange: Exchange) -> None:
        """Match an exchange, and apply its options if its policies changed.

        The default exchange has no policy.
        """
        if not exchange.name:
            return

        def fits(policy: Policy) -> bool:
            return policy.matches(exchange.name, "exchange")

        policy = _best(self.policies.values(), fits)
        operator = _best(self.operator_policies.values(), fits)
        if (policy, operator) == (exchange.policy, exchange.operator_policy):
            return
        from fakeamqp.model.policies.merging import effective_definition, effective_exchange_options

        exchange.policy, exchange.operator_policy = policy, operator
        definition = effective_definition(policy, operator)
        exchange.apply(effective_exchange_options(exchange.declared, definition))
        self._virtual_host.routing.invalidate()


def _best(policies: Iterable[Policy], fits: Callable[[Policy], bool]) -> Policy | None:
    """The policy with the highest priority; of several, the first by name (RabbitMQ: any of them)."""
    return min(filter(fits, policies), key=lambda each: (-each.priority, each.name), default=None)
