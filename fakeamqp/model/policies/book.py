"""The policies of one virtual host, and which of them each queue and exchange has.

Whenever a policy is set or cleared everything is matched anew, and what has another policy than before is
told so. New queues and exchanges are matched when they are declared. (RabbitMQ: documented.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.parameters import hint
from fakeamqp.model.policies.merging import effective_definition, effective_options
from fakeamqp.model.policies.policy import Policy, PolicyError, read_policy

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
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
        """Set or replace a policy; it holds at once.

        Args:
            name: of the policy.
            value: pattern, definition, priority and apply-to, as RabbitMQ calls them.
            operator: make it an operator policy.

        Raises:
            PolicyError: something is wrong with it.
        """
        state = self._virtual_host.state
        policy = read_policy(state.personality, state.features, name, value, operator=operator)
        self._kept(operator)[name] = policy
        self._match_all()
        return policy

    def clear(self, name: str, *, operator: bool = False) -> None:
        """Take a policy away; what it did ends at once.

        Raises:
            PolicyError: there is none of this name.
        """
        kept = self._kept(operator)
        if name not in kept:
            kind = "operator policy" if operator else "policy"
            where = self._virtual_host.name
            near = hint(name, kept) if kept else "; there is none at all"
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
            # What a queue drops may expire, or fill, another one of the list.
            if not queue.deleted:
                self.adopt_queue(queue)

    def adopt_queue(self, queue: Queue) -> None:
        """Match a queue, and have it heed its policies if they are others than before."""
        kind = queue.type_name
        foreign = frozenset(self._virtual_host.state.personality.foreign_policy_keys[kind])

        def fits(policy: Policy) -> bool:
            return foreign.isdisjoint(policy.definition) and policy.matches(queue.name, "queue", kind)

        policy = _best(self.policies.values(), fits)
        operator = _best(self.operator_policies.values(), fits)
        if (policy, operator) == (queue.policy, queue.operator_policy):
            return
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
        """Match an exchange; an alternate exchange is all that policies give it.

        The default exchange has no policy. One's own argument holds, whatever policies say.
        """
        if not exchange.name:
            return

        def fits(policy: Policy) -> bool:
            return policy.matches(exchange.name, "exchange")

        policy = _best(self.policies.values(), fits)
        operator = _best(self.operator_policies.values(), fits)
        if (policy, operator) == (exchange.policy, exchange.operator_policy):
            return
        exchange.policy, exchange.operator_policy = policy, operator
        given = effective_definition(policy, operator).get("alternate-exchange")
        argument = exchange.arguments.get("alternate-exchange", given)
        exchange.alternate_exchange = exchange.declared_alternate or argument
        self._virtual_host.routing.forget()


def _best(policies: Iterable[Policy], fits: Callable[[Policy], bool]) -> Policy | None:
    """The policy with the highest priority; of several, the first by name (RabbitMQ: any of them)."""
    return min(filter(fits, policies), key=lambda each: (-each.priority, each.name), default=None)
