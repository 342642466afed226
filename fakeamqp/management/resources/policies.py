"""Policies and operator policies."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.errors import absent, bad_request
from fakeamqp.management.listing import columns_of
from fakeamqp.management.resource import CREATED, NO_CONTENT, InVirtualHost, Resource
from fakeamqp.management.values import jsonable
from fakeamqp.model.policies import ParameterError

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall, Handler
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.state import BrokerState


def policy_view(vhost: str, policy: Policy) -> dict[str, Any]:
    """One policy."""
    return {
        "vhost": vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": jsonable(policy.definition),
        "priority": policy.priority,
    }


def _kept(call: ApiCall, state: BrokerState, operator: bool) -> dict[str, Policy]:
    policies = call.virtual_host(state).policies
    return policies.operator_policies if operator else policies.policies


def _list(operator: bool) -> Handler:
    def get(call: ApiCall) -> object:
        vhost = call.names.get("vhost")

        def question(state: BrokerState) -> list[dict[str, Any]]:
            names = [vhost] if vhost is not None else filter(call.visitor.may_see, state.virtual_hosts)
            rows = []
            for name in names:
                policies = state.virtual_hosts[name].policies
                kept = policies.operator_policies if operator else policies.policies
                rows += [policy_view(name, policy) for policy in kept.values()]
            return rows

        return [columns_of(call, row) for row in call.management.read(question)]

    return get


def _get(operator: bool) -> Handler:
    def get(call: ApiCall) -> object:
        def question(state: BrokerState) -> dict[str, Any]:
            policy = _kept(call, state, operator).get(call.names["name"])
            if policy is None:
                raise absent()
            return policy_view(call.names["vhost"], policy)

        return call.management.read(question)

    return get


def _put(operator: bool) -> Handler:
    def put(call: ApiCall) -> object:
        pattern, definition = call.fields("pattern", "definition")
        name = call.names["name"]
        value = {
            "pattern": pattern,
            "definition": definition,
            "apply-to": call.json.get("apply-to", "all"),
            "priority": call.json.get("priority", 0),
        }
        new = call.management.read(lambda state: name not in _kept(call, state, operator))
        try:
            call.management.carry_out(
                lambda state: call.virtual_host(state).policies.setting(name, value, operator=operator)
            )
        except ParameterError as problem:
            escapes = call.choices.escapes_policy_problems and not operator
            raise bad_request(escape(problem.reason, quote=False) if escapes else problem.reason) from None
        return CREATED if new else NO_CONTENT

    return put


def _delete(operator: bool) -> Handler:
    def delete(call: ApiCall) -> object:
        name = call.names["name"]
        if call.management.read(lambda state: name not in _kept(call, state, operator)):
            raise absent()
        call.management.carry_out(
            lambda state: call.virtual_host(state).policies.clearing(name, operator=operator)
        )
        return NO_CONTENT

    return delete


def _resources(path: str, operator: bool, role: Role) -> tuple[Resource, ...]:
    return (
        Resource(path, get=_list(operator)),
        Resource(f"{path}/{{vhost}}", get=_list(operator), vhost=InVirtualHost.SEE),
        Resource(
            f"{path}/{{vhost}}/{{name}}",
            get=_get(operator),
            put=_put(operator),
            delete=_delete(operator),
            role=role,
        ),
    )


RESOURCES = (
    *_resources("policies", False, Role.POLICYMAKER),
    *_resources("operator-policies", True, Role.ADMINISTRATOR),
)
