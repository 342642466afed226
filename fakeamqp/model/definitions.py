"""RabbitMQ's definitions format: virtual hosts, users, permissions, exchanges, queues and bindings as data.

What cannot be honoured is refused by name, never skipped: a definition that loads is in force.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.model.errors import ModelError

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["DefinitionsError", "dump_definitions", "load_definitions"]

_REMARKS = frozenset(
    (
        "rabbit_version",
        "rabbitmq_version",
        "product_name",
        "product_version",
        "rabbitmq_definition_format",
        "original_vhost_name",
        "original_cluster_name",
        "explanation",
        "description",
        "metadata",
    )
)
_NOT_BUILT = ("policies", "operator_policies", "parameters", "vhost_limits")
_KEYS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    # section: (required keys, further keys)
    "vhosts": (
        frozenset({"name"}),
        frozenset(
            {"description", "tags", "metadata", "default_queue_type", "limits", "protected_from_deletion"}
        ),
    ),
    "users": (
        frozenset({"name"}),
        frozenset({"password", "password_hash", "hashing_algorithm", "tags", "limits"}),
    ),
    "permissions": (frozenset({"user", "vhost"}), frozenset({"configure", "write", "read"})),
    "topic_permissions": (frozenset({"user", "vhost", "exchange"}), frozenset({"write", "read"})),
    "exchanges": (
        frozenset({"name", "type"}),
        frozenset({"vhost", "durable", "auto_delete", "internal", "arguments", "policy"}),
    ),
    "queues": (
        frozenset({"name"}),
        frozenset({"vhost", "durable", "auto_delete", "arguments", "type", "policy", "exclusive"}),
    ),
    "bindings": (
        frozenset({"source", "destination"}),
        frozenset({"vhost", "destination_type", "routing_key", "arguments", "properties_key"}),
    ),
    "global_parameters": (frozenset({"name", "value"}), frozenset()),
}
"""What each section's entries may say; `limits` must be empty, since limits are not kept yet."""

_HASHES = {"rabbit_password_hashing_sha256": "sha256", "rabbit_password_hashing_sha512": "sha512"}


class DefinitionsError(FakeAMQPError):
    """The definitions cannot be loaded; the text says which entry and why."""


def load_definitions(state: BrokerState, definitions: Mapping[str, Any]) -> None:
    """Create everything the definitions name; what is there already must mean the same.

    Args:
        state: the broker to load them into.
        definitions: RabbitMQ's export, parsed. `vhost` may be left out of an entry and then is "/", or the
            one virtual host an export of a single virtual host is for.

    Raises:
        DefinitionsError: an entry is malformed, misspelled, or asks for what this broker does not have.
    """
    sections = (*_KEYS, *_NOT_BUILT)
    for key, value in definitions.items():
        if key in _REMARKS:
            continue
        if key not in sections:
            raise DefinitionsError(f"definitions: unknown key {key!r}{_hint(key, sections)}")
        if key in _NOT_BUILT and value:
            raise DefinitionsError(f"definitions: {key} are not supported by fakeamqp yet; take them out")
        _check_entries(key, value)
    for entry in definitions.get("vhosts", ()):
        state.add_virtual_host(entry["name"])
    for entry in definitions.get("users", ()):
        state.access.add(_user(entry, state.access.users.get(entry["name"])))
    for entry in definitions.get("permissions", ()):
        permission = Permission(*(entry.get(action, "") for action in ("configure", "write", "read")))
        _known_user(state, "permissions", entry).permissions[entry["vhost"]] = permission
    for entry in definitions.get("topic_permissions", ()):
        topic = TopicPermission(entry.get("write", ""), entry.get("read", ""))
        user = _known_user(state, "topic_permissions", entry)
        user.topic_permissions[entry["vhost"], entry["exchange"]] = topic
    state.access.changed()
    for section, load in (
        ("exchanges", _load_exchange),
        ("queues", _load_queue),
        ("bindings", _load_binding),
    ):
        for entry in definitions.get(section, ()):
            host = entry.get("vhost", "/")
            if host not in state.virtual_hosts:
                raise DefinitionsError(
                    f"{section}: {entry!r} is in virtual host {host!r}, which does not exist; "
                    f"known: {', '.join(map(repr, state.virtual_hosts))}"
                )
            try:
                load(state, host, entry)
            except ModelError as problem:
                raise DefinitionsError(f"{section}: {entry!r}: {problem}") from problem


def _check_entries(section: str, entries: Any) -> None:
    if section in _NOT_BUILT:
        return
    if not isinstance(entries, Iterable) or isinstance(entries, (str, bytes, Mapping)):
        raise DefinitionsError(f"definitions: {section} must be a list of objects, got {entries!r}")
    required, further = _KEYS[section]
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise DefinitionsError(f"{section}: expected an object, got {entry!r}")
        for key in entry:
            if key not in required and key not in further:
                raise DefinitionsError(
                    f"{section}: unknown key {key!r}{_hint(key, (*required, *further))} in {dict(entry)!r}"
                )
        for key in sorted(required - entry.keys()):
            raise DefinitionsError(f"{section}: {key!r} is missing in {dict(entry)!r}")
        if entry.get("limits"):
            raise DefinitionsError(f"{section}: limits are not supported by fakeamqp yet: {dict(entry)!r}")


def _user(entry: Mapping[str, Any], existing: User | None) -> User:
    tags = entry.get("tags", ())
    names = (
        tuple(tag.strip() for tag in tags.split(",") if tag.strip()) if isinstance(tags, str) else tuple(tags)
    )
    algorithm = entry.get("hashing_algorithm", "rabbit_password_hashing_sha256")
    if entry.get("password_hash") and algorithm not in _HASHES:
        raise DefinitionsError(
            f"users: {entry['name']!r} has hashing_algorithm {algorithm!r}; known: {', '.join(_HASHES)}"
        )
    user = User(entry["name"], entry.get("password"), names)
    if entry.get("password_hash"):
        user.password_hash = (_HASHES[algorithm], entry["password_hash"])
    if existing is not None:
        user.permissions = existing.permissions
        user.topic_permissions = existing.topic_permissions
    return user


def _known_user(state: BrokerState, section: str, entry: Mapping[str, Any]) -> User:
    for kind, name, known in (
        ("user", entry["user"], state.access.users),
        ("virtual host", entry["vhost"], state.virtual_hosts),
    ):
        if name not in known:
            raise DefinitionsError(f"{section}: there is no {kind} {name!r}{_hint(name, known)}")
    return state.access.users[entry["user"]]


def _load_exchange(state: BrokerState, host: str, entry: Mapping[str, Any]) -> None:
    state.virtual_hosts[host].declare_exchange(
        entry["name"],
        entry["type"],
        durable=entry.get("durable", True),
        auto_delete=entry.get("auto_delete", False),
        internal=entry.get("internal", False),
        arguments=entry.get("arguments", {}),
    )


def _load_queue(state: BrokerState, host: str, entry: Mapping[str, Any]) -> None:
    arguments = dict(entry.get("arguments", {}))
    if entry.get("type", "classic") != "classic":
        arguments.setdefault("x-queue-type", entry["type"])
    state.virtual_hosts[host].declare_queue(
        entry["name"],
        owner=None,
        durable=entry.get("durable", True),
        auto_delete=entry.get("auto_delete", False),
        arguments=arguments,
    )


def _load_binding(state: BrokerState, host: str, entry: Mapping[str, Any]) -> None:
    virtual_host = state.virtual_hosts[host]
    kind = entry.get("destination_type", "queue")
    if kind not in ("queue", "exchange"):
        raise DefinitionsError(f"bindings: destination_type is queue or exchange, not {kind!r}: {entry!r}")
    name = entry["destination"]
    destination = virtual_host.queue(name) if kind == "queue" else virtual_host.exchange(name)
    virtual_host.bind(entry["source"], destination, entry.get("routing_key", ""), entry.get("arguments", {}))


def dump_definitions(state: BrokerState) -> dict[str, Any]:
    """What `load_definitions` would need to make the durable part of this broker again.

    As in RabbitMQ's export, predeclared exchanges and exclusive queues are left out; unlike there,
    passwords appear as they are, since they are a test's own.
    """
    users = state.access.users.values()
    hosts = state.virtual_hosts
    return {
        "rabbit_version": state.personality.version,
        "product_name": state.personality.product,
        "product_version": state.personality.version,
        "users": [_dumped_user(user) for user in users],
        "vhosts": [{"name": name} for name in hosts],
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
        "parameters": [],
        "global_parameters": [],
        "policies": [],
        "queues": [
            {
                "name": queue.name,
                "vhost": host,
                "durable": queue.durable,
                "auto_delete": queue.auto_delete,
                "arguments": queue.arguments,
            }
            for host, each in hosts.items()
            for queue in each.queues.values()
            if queue.exclusive_owner is None
        ],
        "exchanges": [
            {
                "name": exchange.name,
                "vhost": host,
                "type": exchange.type_name,
                "durable": exchange.durable,
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": exchange.arguments,
            }
            for host, each in hosts.items()
            for exchange in each.exchanges.values()
            if exchange.name and not exchange.name.startswith("amq.")
        ],
        "bindings": [
            {
                "source": binding.source.name,
                "vhost": host,
                "destination": binding.destination.name,
                "destination_type": binding.destination.kind,
                "routing_key": binding.routing_key,
                "arguments": binding.arguments,
            }
            for host, each in hosts.items()
            for binding in each.bindings()
            if not (
                binding.destination.kind == "queue" and each.queues[binding.destination.name].exclusive_owner
            )
        ],
    }


def _dumped_user(user: User) -> dict[str, Any]:
    dumped: dict[str, Any] = {"name": user.name, "tags": list(user.tags), "limits": {}}
    if user.password_hash is not None:
        dumped["password_hash"] = user.password_hash[1]
        dumped["hashing_algorithm"] = f"rabbit_password_hashing_{user.password_hash[0]}"
    elif user.password is not None:
        dumped["password"] = user.password
    return dumped


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(names))}"
