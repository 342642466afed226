"""Definitions out: what `load_definitions` would need to make the broker again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakeamqp.model.access import User
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["dump_definitions"]


def dump_definitions(state: BrokerState) -> dict[str, Any]:
    """The broker's topology, accounts, policies and parameters, in the shape of the personality's version.

    As in RabbitMQ's export, predeclared exchanges and exclusive queues are left out. Unlike there, passwords
    appear as they are, since they are a test's own, and internal exchanges appear, so that nothing is lost.
    """
    users = state.access.users.values()
    hosts = state.virtual_hosts
    return {
        **_remarks(state),
        "users": [_user(user) for user in users],
        "vhosts": [_virtual_host(host) for host in hosts.values()],
        "permissions": [
            {
                "user": user.name,
                "vhost": host,
                "configure": each.configure,
                "write": each.write,
                "read": each.read,
            }
            for user in users
            for host, each in user.permissions.items()
        ],
        "topic_permissions": [
            {"user": user.name, "vhost": host, "exchange": exchange, "write": each.write, "read": each.read}
            for user in users
            for (host, exchange), each in user.topic_permissions.items()
        ],
        "parameters": [entry for host in hosts.values() for entry in _parameters(host)],
        "global_parameters": [
            {"name": name, "value": value}
            for name, value in state.global_parameters.items()
            if not name.startswith("internal")
        ],
        "policies": [
            {"vhost": host.name, "name": policy.name, **policy.value()}
            for host in hosts.values()
            for policy in host.policies.policies.values()
        ],
        "queues": [entry for host in hosts.values() for entry in _queues(host)],
        "exchanges": [entry for host in hosts.values() for entry in _exchanges(host)],
        "bindings": [entry for host in hosts.values() for entry in _bindings(host)],
    }


def _remarks(state: BrokerState) -> dict[str, str]:
    personality = state.personality
    remarks = {
        "rabbit_version": personality.version,
        "rabbitmq_version": personality.version,
        "product_name": personality.product,
        "product_version": personality.version,
    }
    if personality.definitions_name_format:
        cluster = state.cluster_name
        remarks["rabbitmq_definition_format"] = "cluster"
        remarks["original_cluster_name"] = cluster
        remarks["explanation"] = f"Definitions of cluster '{cluster}'"
    return remarks


def _user(user: User) -> dict[str, Any]:
    dumped: dict[str, Any] = {"name": user.name, "tags": list(user.tags), "limits": user.limits.value()}
    if user.password_hash is not None:
        dumped["password_hash"] = user.password_hash[1]
        dumped["hashing_algorithm"] = f"rabbit_password_hashing_{user.password_hash[0]}"
    elif user.password is not None:
        dumped["password"] = user.password
    return dumped


def _virtual_host(host: VirtualHost) -> dict[str, Any]:
    personality = host.state.personality
    limits: Any = host.limits.value()
    if personality.limits_are_pairs:
        limits = [list(pair) for pair in limits.items()]
    dumped = {"name": host.name, "limits": limits, "metadata": host.metadata.value()}
    if personality.definitions_repeat_queue_type:
        dumped["default_queue_type"] = host.metadata.default_queue_type or "classic"
    return dumped


def _parameters(host: VirtualHost) -> list[dict[str, Any]]:
    limits = host.limits.value()
    values = [("vhost-limits", "limits", limits)] if limits else []
    operators = host.policies.operator_policies.values()
    values += [("operator_policy", each.name, each.value()) for each in operators]
    return [
        {"vhost": host.name, "component": component, "name": name, "value": value}
        for component, name, value in values
    ]


def _queues(host: VirtualHost) -> list[dict[str, Any]]:
    return [
        {
            "vhost": host.name,
            "name": queue.name,
            "type": queue.type_name,
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "arguments": dict(queue.arguments),
        }
        for queue in host.queues.values()
        if queue.exclusive_owner is None
    ]


def _exchanges(host: VirtualHost) -> list[dict[str, Any]]:
    dumped = []
    for exchange in host.exchanges.values():
        if exchange.name and not exchange.name.startswith("amq."):
            entry = {
                "vhost": host.name,
                "name": exchange.name,
                "type": exchange.type_name,
                "durable": exchange.durable,
                "auto_delete": exchange.auto_delete,
                "arguments": dict(exchange.arguments),
            }
            if exchange.internal:
                entry["internal"] = True
            dumped.append(entry)
    return dumped


def _bindings(host: VirtualHost) -> list[dict[str, Any]]:
    dumped = []
    for binding in host.bindings():
        destination = binding.destination
        if destination.kind == "queue" and host.queues[destination.name].exclusive_owner is not None:
            continue
        dumped.append(
            {
                "source": binding.source.name,
                "vhost": host.name,
                "destination": destination.name,
                "destination_type": destination.kind,
                "routing_key": binding.routing_key,
                "arguments": dict(binding.arguments),
            }
        )
    return dumped
