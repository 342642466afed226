"""The policies of one virtual host, and the policies of each of its queues and exchanges.

Setting or clearing a policy matches all queues and exchanges again, and applies the options of those whose
policies changed. New ones are matched when they are declared. (RabbitMQ: documented.)

The other modules of this package are imported with the first policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.operations import carry_out
from fakeamqp.model.policies.parameters import hint

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.patterns.matching import Program
    from fakeamqp.model.policies.policy import Policy
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Policies"]


class Policies:
    """Policies and operator policies by name, in the order they were first set."""

    __slots__ = ("_ranked", "_virtual_host", "operator_policies", "policies")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self.policies: dict[str, Policy] = {}
        self.operator_policies: dict[str, Policy] = {}
        self._ranked: dict[tuple[str, bool], list[tuple[Program, Policy]]] = {}
        """By type of queue, or "exchange": policies or operator policies; the first that fits holds."""

    def set(self, name: str, value: Mapping[str, Any], *, operator: bool = False) -> Policy:
        """Set or replace a policy; it applies at once.

        Args:
            name: of the policy.
            value: the fields pattern, definition, priority and apply-to, as in RabbitMQ.
            operator: make it an operator policy.

        Raises:
            PolicyError: a field is missing or illegal.
        """
        carry_out(self.setting(name, value, operator=operator))
        return self._kept(operator)[name]

    def setting(self, name: str, value: Mapping[str, Any], *, operator: bool = False) -> Iterator[None]:
        """The steps of `set`; each gives one queue or exchange its policies."""
        from fakeamqp.model.policies.policy import read_policy

        state = self._virtual_host.state
        policy = read_policy(state.personality, state.features, name, value, operator=operator)
        self._kept(operator)[name] = policy
        yield from self._matching()

    def clear(self, name: str, *, operator: bool = False) -> None:
        """Clear a policy; its effect ends at once.

        Raises:
            PolicyError: no policy has this name.
        """
        carry_out(self.clearing(name, operator=operator))

    def clearing(self, name: str, *, operator: bool = False) -> Iterator[None]:
        """The steps of `clear`; each gives one queue or exchange its policies."""
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
        yield from self._matching()

    def _kept(self, operator: bool) -> dict[str, Policy]:
        return self.operator_policies if operator else self.policies

    # --- matching -----------------------------------------------------------------------------------

    def _matching(self) -> Iterator[None]:
        """The steps of matching all queues and exchanges again. Clients may declare and delete meanwhile."""
        self._ranked.clear()
        virtual_host = self._virtual_host
        for exchange in list(virtual_host.exchanges.values()):
            if virtual_host.exchanges.get(exchange.name) is exchange:
                self.adopt_exchange(exchange)
                yield
        for queue in list(virtual_host.queues.values()):
            # Dead letters of one queue may cause the deletion of another one in the list.
            if not queue.deleted:
                self.adopt_queue(queue)
                yield

    def _best(self, name: str, kind: str, *, operator: bool = False) -> Policy | None:
        """The policy with the highest priority; of several, the first by name (RabbitMQ: any of them).

        `kind` is the type of the queue, or "exchange".
        """
        policies = self._kept(operator)
        if not policies:
            return None
        ranked = self._ranked.get((kind, operator))
        if ranked is None:
            foreign = self._virtual_host.state.personality.foreign_policy_keys
            skipped = frozenset() if kind == "exchange" else frozenset(foreign[kind])
            ranked = self._ranked[kind, operator] = [
                (each.program, each)
                for each in sorted(policies.values(), key=lambda each: (-each.priority, each.name))
                if each.applies_to(kind) and skipped.isdisjoint(each.definition)
            ]
        return next((policy for program, policy in ranked if program.search(name)), None)

    def adopt_queue(self, queue: Queue) -> None:
        """Match a queue, and apply its options if its policies changed."""
        kind = queue.type_name
        policy, operator = self._best(queue.name, kind), self._best(queue.name, kind, operator=True)
        if policy is None:
            self._virtual_host.state.resets.miss_policies(self._virtual_host.name, kind, queue.name)
        if (policy, operator) == (queue.policy, queue.operator_policy):
            return
        from fakeamqp.model.policies.policy import effective_definition, effective_options

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
        name = exchange.name
        policy, operator = self._best(name, "exchange"), self._best(name, "exchange", operator=True)
        if policy is None:
            self._virtual_host.state.resets.miss_policies(self._virtual_host.name, "exchange", name)
        if (policy, operator) == (exchange.policy, exchange.operator_policy):
            return
        from fakeamqp.model.policies.policy import effective_definition, effective_exchange_options

        exchange.policy, exchange.operator_policy = policy, operator
        definition = effective_definition(policy, operator)
        exchange.apply(effective_exchange_options(exchange.declared, definition))
        self._virtual_host.routing.invalidate()
