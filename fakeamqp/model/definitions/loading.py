"""Loads definitions: creates all entries, in an order that respects their dependencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.model.arguments.queue_arguments import QUEUE_TYPE
from fakeamqp.model.definitions.sections import (
    METADATA_KEYS,
    DefinitionsError,
    check_metadata,
    checking,
    shown,
)
from fakeamqp.model.errors import ModelError
from fakeamqp.model.limits import UserLimits, VirtualHostLimits
from fakeamqp.model.metadata import VirtualHostMetadata
from fakeamqp.model.operations import carry_out
from fakeamqp.model.parameters import ParameterError, hint, mapping
from fakeamqp.model.password_hashes import BadPasswordHash, check_password_hash
from fakeamqp.model.patterns import InvalidPattern
from fakeamqp.model.queues import QueueDeclaration

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["load_definitions", "loading"]

_HASHES = {"rabbit_password_hashing_sha256": "sha256", "rabbit_password_hashing_sha512": "sha512"}
_COMPONENTS = ("operator_policy", "vhost-limits")
_ELSEWHERE = {
    "federation-upstream": "federation",
    "federation-upstream-set": "federation",
    "federation": "federation",
    "shovel": "shovels",
}
"""Components of RabbitMQ's plugins, and the names of their features."""


def load_definitions(state: BrokerState, definitions: Mapping[str, Any]) -> None:
    """Create all entities in the definitions; existing ones must be equivalent.

    The limits of virtual hosts are set after their queues are created, so that queues beyond a limit, which
    are older than the limit, are created as well. (RabbitMQ omits such queues silently.)

    Args:
        state: the broker to load them into.
        definitions: RabbitMQ's export, parsed. An entry without `vhost` belongs to the virtual host of an
            export of a single virtual host, or else to "/".

    Raises:
        DefinitionsError: an entry is malformed, misspelled, or needs a feature that this broker does not
            have. The entries before it stay loaded.
    """
    carry_out(loading(state, definitions))


def loading(state: BrokerState, definitions: Mapping[str, Any]) -> Iterator[None]:
    """The steps of `load_definitions`; each checks or creates one entry. All are checked first."""
    yield from checking(definitions)
    yield from _Loading(state, definitions).steps()


class _Loading:
    """One load of definitions."""

    def __init__(self, state: BrokerState, definitions: Mapping[str, Any]) -> None:
        self._state = state
        self._definitions = definitions
        self._vhost = definitions.get("original_vhost_name", "/")

    def steps(self) -> Iterator[None]:
        yield from self._each("users", self._user)
        yield from self._each("vhosts", self._virtual_host)
        self._check_single_virtual_host()
        yield from self._check_room_for_queues()
        yield from self._each("permissions", self._permission)
        yield from self._each("topic_permissions", self._topic_permission)
        self._state.access.changed()
        yield from self._each("exchanges", self._exchange)
        yield from self._each("global_parameters", self._global_parameter)
        yield from self._each("policies", self._policy)
        yield from self._each("parameters", self._parameter)
        yield from self._each("queues", self._queue)
        yield from self._each("bindings", self._binding)
        yield from self._each("vhosts", self._limits_of_virtual_host)
        yield from self._each("parameters", self._limits)
        if self._definitions.get("limits"):
            self._set_limits(self._state.virtual_hosts[self._vhost], self._definitions["limits"])

    def _each(
        self, section: str, load: Callable[[Mapping[str, Any]], Iterator[None] | None]
    ) -> Iterator[None]:
        """Load a section entry by entry. A function that returns steps has more than one for an entry."""
        for entry in self._definitions.get(section, ()):
            try:
                steps = load(entry)
                if steps is not None:
                    yield from steps
            except (ModelError, ParameterError) as problem:
                raise DefinitionsError(f"{section}: {shown(entry)}: {problem}") from problem
            yield

    def _vhost_of(self, section: str, entry: Mapping[str, Any]) -> VirtualHost:
        name = entry.get("vhost", self._vhost)
        found = self._state.virtual_hosts.get(name)
        if found is None:
            known = ", ".join(map(repr, self._state.virtual_hosts))
            raise DefinitionsError(
                f"{section}: {shown(entry)} is in virtual host {name!r}, which does not exist; known: {known}"
            )
        return found

    # --- virtual hosts ------------------------------------------------------------------------------

    def _check_single_virtual_host(self) -> None:
        """Refuse an export of a single virtual host that does not exist: the export does not create it."""
        if self._vhost not in self._state.virtual_hosts:
            raise DefinitionsError(
                f"definitions: they are for virtual host {self._vhost!r}, which does not exist; add it "
                f"first, with broker.add_virtual_host({self._vhost!r})"
            )

    def _virtual_host(self, entry: Mapping[str, Any]) -> None:
        metadata = entry.get("metadata")
        if metadata:
            check_metadata(f"vhosts: {entry['name']!r}: metadata", metadata)
        # RabbitMQ repeats the default type outside the metadata, even if the virtual host has none.
        outside = {key: entry[key] for key in METADATA_KEYS if key in entry}
        if metadata is not None:
            outside.pop("default_queue_type", None)
        found = {**(metadata or {}), **outside}
        vhost = self._state.add_virtual_host(entry["name"])
        if "tracing" in entry:
            vhost.set_firehose(entry["tracing"])
        kind = found.get("default_queue_type")
        vhost.metadata = VirtualHostMetadata(
            description=found.get("description", vhost.metadata.description),
            tags=_tags(found.get("tags", vhost.metadata.tags)),
            default_queue_type=vhost.metadata.default_queue_type if kind in (None, "", "undefined") else kind,
            protected_from_deletion=bool(found.get("protected_from_deletion")),
        )

    def _limits_of_virtual_host(self, entry: Mapping[str, Any]) -> None:
        if entry.get("limits"):
            self._set_limits(self._state.virtual_hosts[entry["name"]], entry["limits"])

    def _set_limits(self, vhost: VirtualHost, value: Any) -> None:
        vhost.limits = VirtualHostLimits.read(f"virtual host {vhost.name!r}", value)

    def _check_room_for_queues(self) -> Iterator[None]:
        """Refuse the definitions if their queues would exceed the limits already set."""
        entries = self._definitions.get("queues", ())
        new: Counter[str] = Counter()
        for entry in entries:
            vhost = self._vhost_of("queues", entry)
            new[vhost.name] += entry["name"] not in vhost.queues
            yield
        for name, count in new.items():
            vhost = self._state.virtual_hosts[name]
            limit = vhost.limits.max_queues
            if limit is not None and 0 <= limit < len(vhost.queues) + count and count:
                raise DefinitionsError(
                    f'Adding {count} queue(s) to virtual host "{name}" would exceed the limit of {limit} '
                    f"queue(s).\n\nThis virtual host currently has {len(vhost.queues)} queue(s) defined.\n\n"
                    "Import aborted!"
                )

    # --- accounts -----------------------------------------------------------------------------------

    def _user(self, entry: Mapping[str, Any]) -> None:
        name = entry["name"]
        user = User(name, entry.get("password"), _tags(entry.get("tags", ())))
        if entry.get("password_hash"):
            if user.password is not None:  # RabbitMQ refuses them as well (measured).
                raise DefinitionsError(
                    f"users: {name!r} has a password and a password_hash; give one of them"
                )
            user.password_hash = _password_hash(entry)
        user.limits = UserLimits.read(f"user {name!r}", entry.get("limits"))
        existing = self._state.access.users.get(name)
        if existing is not None:
            user.permissions = existing.permissions
            user.topic_permissions = existing.topic_permissions
        self._state.access.add(user)

    def _permission(self, entry: Mapping[str, Any]) -> None:
        patterns = (entry.get(action, "") for action in ("configure", "write", "read"))
        user = self._known_user("permissions", entry)
        with _naming_pattern_errors("permissions", entry):
            user.permissions[entry["vhost"]] = Permission(*patterns)

    def _topic_permission(self, entry: Mapping[str, Any]) -> None:
        with _naming_pattern_errors("topic_permissions", entry):
            topic = TopicPermission(entry.get("write", ""), entry.get("read", ""))
        user = self._known_user("topic_permissions", entry)
        user.topic_permissions[entry["vhost"], entry["exchange"]] = topic

    def _known_user(self, section: str, entry: Mapping[str, Any]) -> User:
        users = self._state.access.users
        for kind, name, known in (
            ("user", entry["user"], users),
            ("virtual host", entry["vhost"], self._state.virtual_hosts),
        ):
            if name not in known:
                raise DefinitionsError(f"{section}: there is no {kind} {name!r}{hint(name, known)}")
        return users[entry["user"]]

    # --- parameters ---------------------------------------------------------------------------------

    def _global_parameter(self, entry: Mapping[str, Any]) -> None:
        self._state.global_parameters[entry["name"]] = entry["value"]

    def _policy(self, entry: Mapping[str, Any]) -> Iterator[None]:
        value = {key: item for key, item in entry.items() if key not in ("name", "vhost")}
        return self._vhost_of("policies", entry).policies.setting(entry["name"], {"priority": 0, **value})

    def _parameter(self, entry: Mapping[str, Any]) -> Iterator[None] | None:
        component, name = entry["component"], entry["name"]
        if component == "policy":
            raise DefinitionsError(f"parameters: policies have a section of their own: {shown(entry)}")
        if component in _ELSEWHERE:
            raise DefinitionsError(
                f"parameters: fakeamqp has no {_ELSEWHERE[component]}; take {component} {name!r} out"
            )
        if component not in _COMPONENTS:
            raise DefinitionsError(
                f"parameters: component {component} not found{hint(component, _COMPONENTS)} in {shown(entry)}"
            )
        vhost = self._vhost_of("parameters", entry)
        if component == "operator_policy":
            value = mapping(entry["value"])
            if isinstance(value, Mapping) and value.get("definition"):
                value = {**value, "definition": mapping(value["definition"])}
            return vhost.policies.setting(name, value, operator=True)
        self._check_limits(entry)
        return None

    def _check_limits(self, entry: Mapping[str, Any]) -> None:
        """Check limits before anything else is created, although they are set last."""
        VirtualHostLimits.read("the virtual host", entry["value"])

    def _limits(self, entry: Mapping[str, Any]) -> None:
        if entry["component"] == "vhost-limits":
            self._set_limits(self._vhost_of("parameters", entry), entry["value"])

    # --- topology -----------------------------------------------------------------------------------

    def _exchange(self, entry: Mapping[str, Any]) -> None:
        name = entry["name"]
        vhost = self._vhost_of("exchanges", entry)
        if not name or name.startswith("amq."):
            return  # The broker's own: every virtual host has them (RabbitMQ: documented).
        vhost.exchanges.declare(
            name,
            entry["type"],
            durable=entry.get("durable", True),
            auto_delete=entry.get("auto_delete", False),
            internal=entry.get("internal", False),
            arguments=_arguments(entry),
        )

    def _queue(self, entry: Mapping[str, Any]) -> None:
        if entry.get("exclusive"):
            raise DefinitionsError(f"queues: an exclusive queue belongs to a connection: {shown(entry)}")
        vhost = self._vhost_of("queues", entry)
        declaration = vhost.metadata.with_queue_type(
            self._state.personality,
            QueueDeclaration(
                durable=entry.get("durable", True),
                auto_delete=entry.get("auto_delete", False),
                arguments=_arguments(entry),
            ),
        )
        arguments = declaration.arguments
        kind = arguments.get(QUEUE_TYPE) or vhost.metadata.default_queue_type or "classic"
        if QUEUE_TYPE not in _arguments(entry) and entry.get("type", kind) != kind:
            declaration = replace(declaration, arguments={**arguments, QUEUE_TYPE: entry["type"]})
        vhost.queues.declare(entry["name"], declaration, reserved=True)

    def _binding(self, entry: Mapping[str, Any]) -> None:
        vhost = self._vhost_of("bindings", entry)
        kind = entry.get("destination_type", "queue")
        if kind not in ("queue", "exchange"):
            raise DefinitionsError(
                f"bindings: destination_type is queue or exchange, not {kind!r}: {shown(entry)}"
            )
        name = entry["destination"]
        destination = vhost.queues.require(name) if kind == "queue" else vhost.exchanges.require(name)
        vhost.bindings.bind(entry["source"], destination, entry.get("routing_key", ""), _arguments(entry))


def _password_hash(entry: Mapping[str, Any]) -> tuple[str, str]:
    """The algorithm and the hash of an account's password.

    Raises:
        DefinitionsError: the algorithm is unknown, or the hash is not one of this algorithm.
    """
    name, hashed = entry["name"], entry["password_hash"]
    algorithm = entry.get("hashing_algorithm") or "rabbit_password_hashing_sha256"
    if algorithm not in _HASHES:
        raise DefinitionsError(
            f"users: {name!r} has hashing_algorithm {algorithm!r}; known: {', '.join(_HASHES)}"
        )
    password_hash = (_HASHES[algorithm], hashed)
    try:
        check_password_hash(password_hash)
    except BadPasswordHash as problem:
        raise DefinitionsError(f"users: password_hash of {name!r} {problem}") from None
    return password_hash


@contextmanager
def _naming_pattern_errors(section: str, entry: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except InvalidPattern as error:
        raise DefinitionsError(
            f"{section}: user {entry['user']!r} in virtual host {entry['vhost']!r} has a pattern that cannot "
            f"be used: {error}"
        ) from error


def _arguments(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(entry.get("arguments") or {})  # An empty list means no arguments (RabbitMQ: measured).


def _tags(tags: Any) -> tuple[str, ...]:
    """Tags from a list, or from text with commas, as older RabbitMQ versions exported them."""
    if isinstance(tags, str):
        return tuple(tag.strip() for tag in tags.split(",") if tag.strip())
    return tuple(tags)
