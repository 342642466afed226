"""Exports definitions, from which `load_definitions` can create the same broker again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakeamqp.model.access.users import User
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["dump_definitions", "hashed_password"]


def dump_definitions(state: BrokerState) -> dict[str, Any]:
    """The broker's topology, accounts, policies and parameters, in the shape of the personality's version.

    As in RabbitMQ's, predeclared exchanges and exclusive queues are left out, and passwords are hashes.
    Unlike in RabbitMQ's, internal exchanges are included, so that nothing is lost. System exchanges are left
    out where clients cannot declare them.
    """
    users = state.access.users.values()
    vhosts = state.virtual_hosts
    return {
        **_information(state),
        "users": [_user(user) for user in users],
        "vhosts": [_virtual_host(vhost) for vhost in vhosts.values()],
        "permissions": [
            {
                "user": user.name,
                "vhost": vhost,
                "configure": each.configure,
                "write": each.write,
                "read": each.read,
            }
            for user in users
            for vhost, each in user.permissions.items()
        ],
        "topic_permissions": [
            {"user": user.name, "vhost": vhost, "exchange": exchange, "write": each.write, "read": each.read}
            for user in users
            for (vhost, exchange), each in user.topic_permissions.items()
        ],
        "parameters": [entry for vhost in vhosts.values() for entry in _parameters(vhost)],
        "global_parameters": [
            {"name": name, "value": value}
            for name, value in state.global_parameters.items()
            if not name.startswith("internal")
        ],
        "policies": [
            {"vhost": vhost.name, "name": policy.name, **policy.value()}
            for vhost in vhosts.values()
            for policy in vhost.policies.policies.values()
        ],
        "queues": [entry for vhost in vhosts.values() for entry in _queues(vhost)],
        "exchanges": [entry for vhost in vhosts.values() for entry in _exchanges(vhost)],
        "bindings": [entry for vhost in vhosts.values() for entry in _bindings(vhost)],
    }


def _information(state: BrokerState) -> dict[str, str]:
    personality = state.personality
    information = {
        "rabbit_version": personality.version,
        "rabbitmq_version": personality.version,
        "product_name": personality.product,
        "product_version": personality.version,
    }
    if personality.definitions_name_format:
        cluster = state.cluster_name
        information["rabbitmq_definition_format"] = "cluster"
        information["original_cluster_name"] = cluster
        information["explanation"] = f"Definitions of cluster '{cluster}'"
    return information


def _user(user: User) -> dict[str, Any]:
    algorithm, hashed = hashed_password(user)
    return {
        "name": user.name,
        "password_hash": hashed,
        "hashing_algorithm": f"rabbit_password_hashing_{algorithm}",
        "tags": list(user.tags),
        "limits": user.limits.value(),
    }


def hashed_password(user: User) -> tuple[str, str]:
    """The algorithm and the hash of an account's password; the hash is empty if there is no password.

    The salt follows from the account's name, so that the same account always has the same hash.
    """
    import base64  # Imported for exports only: they make importing `Broker` slower.
    import hashlib

    if user.password is None or user.fits_hash(user.password):
        return user.password_hash or ("sha256", "")
    salt = hashlib.sha256(user.name.encode("utf-8", "surrogateescape")).digest()[:4]
    salted = salt + user.password.encode("utf-8", "surrogateescape")
    return "sha256", base64.b64encode(salt + hashlib.sha256(salted).digest()).decode()


def _virtual_host(vhost: VirtualHost) -> dict[str, Any]:
    personality = vhost.state.personality
    limits: Any = vhost.limits.value()
    if personality.limits_are_pairs:
        limits = [list(pair) for pair in limits.items()]
    dumped = {"name": vhost.name, "limits": limits, "metadata": vhost.metadata.value()}
    if personality.definitions_repeat_queue_type:
        dumped["default_queue_type"] = vhost.metadata.default_queue_type or "classic"
    return dumped


def _parameters(vhost: VirtualHost) -> list[dict[str, Any]]:
    limits = vhost.limits.value()
    values = [("vhost-limits", "limits", limits)] if limits else []
    operators = vhost.policies.operator_policies.values()
    values += [("operator_policy", each.name, each.value()) for each in operators]
    return [
        {"vhost": vhost.name, "component": component, "name": name, "value": value}
        for component, name, value in values
    ]


def _queues(vhost: VirtualHost) -> list[dict[str, Any]]:
    return [
        {
            "vhost": vhost.name,
            "name": queue.name,
            "type": queue.type_name,
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "arguments": dict(queue.arguments),
        }
        for queue in vhost.queues.values()
        if queue.exclusive_owner is None
    ]


def _exchanges(vhost: VirtualHost) -> list[dict[str, Any]]:
    dumped = []
    for exchange in vhost.exchanges.values():
        if exchange.type_name not in vhost.state.personality.exchange_types:
            continue  # A system exchange that only the test could declare.
        if exchange.name and not exchange.name.startswith("amq."):
            entry = {
                "vhost": vhost.name,
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


def _bindings(vhost: VirtualHost) -> list[dict[str, Any]]:
    dumped = []
    for binding in vhost.bindings.all():
        destination = binding.destination
        if destination.kind == "queue" and vhost.queues[destination.name].exclusive_owner is not None:
            continue
        dumped.append(
            {
                "source": binding.source.name,
                "vhost": vhost.name,
                "destination": destination.name,
                "destination_type": destination.kind,
                "routing_key": binding.routing_key,
                "arguments": dict(binding.arguments),
            }
        )
    return dumped
