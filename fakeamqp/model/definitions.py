"""RabbitMQ's definitions format: a broker's topology, accounts, policies and parameters as data.

Entries that cannot be applied are refused with their names, never skipped: everything that loads is in force.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.access import BadPasswordHash, Permission, TopicPermission, User, check_password_hash
from fakeamqp.model.arguments.queue_arguments import QUEUE_TYPE
from fakeamqp.model.errors import ModelError
from fakeamqp.model.limits import UserLimits, VirtualHostLimits
from fakeamqp.model.names import LONGEST_NAME, octets_of
from fakeamqp.model.operations import carry_out
from fakeamqp.model.patterns import InvalidPattern
from fakeamqp.model.policies import ParameterError, hint, mapping
from fakeamqp.model.queues import Queue, QueueDeclaration
from fakeamqp.model.virtual_host.virtual_host import VirtualHostMetadata

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost


class SectionKind(NamedTuple):
    """What the value of a key has to be; `expected` is for texts, such as "a string"."""

    expected: str
    fits: Callable[[Any], bool]


_NAME = SectionKind("a string", lambda value: isinstance(value, str))
"""A short string of the protocols. (RabbitMQ loads longer names, which no client can then use: measured.)"""
_TEXT = SectionKind("a string", _NAME.fits)
_TEXT_OR_NULL = SectionKind("a string or null", lambda value: value is None or isinstance(value, str))
_FLAG = SectionKind("true or false", lambda value: isinstance(value, bool))
_FLAG_OR_NULL = SectionKind("true, false or null", lambda value: value is None or isinstance(value, bool))
_OBJECT_OR_NULL = SectionKind("an object or null", lambda value: value is None or isinstance(value, Mapping))
_ARGUMENTS = SectionKind(
    "an object", lambda value: value is None or value == [] or isinstance(value, Mapping)
)
"""RabbitMQ exports an empty list where there are no arguments (measured)."""
_TAGS = SectionKind(
    "a list of strings, or one string",
    lambda value: (
        isinstance(value, str) or (_is_list(value) and all(isinstance(each, str) for each in value))
    ),
)
_LIMITS = SectionKind(
    "an object", lambda value: value is None or isinstance(value, Mapping) or _is_list(value)
)
"""Or a list of pairs, as some versions of RabbitMQ export (measured)."""
_ANY = SectionKind("any value", lambda _: True)
"""The code that reads the value checks it."""

_KINDS = {
    **dict.fromkeys(("name", "vhost", "user", "exchange", "component", "type", "source"), _NAME),
    **dict.fromkeys(("destination", "routing_key"), _NAME),
    **dict.fromkeys(("configure", "write", "read", "destination_type", "description"), _TEXT),
    **dict.fromkeys(("password", "password_hash", "hashing_algorithm", "default_queue_type"), _TEXT_OR_NULL),
    **dict.fromkeys(("durable", "auto_delete", "internal", "exclusive", "tracing"), _FLAG),
    "protected_from_deletion": _FLAG_OR_NULL,
    "metadata": _OBJECT_OR_NULL,
    "arguments": _ARGUMENTS,
    "tags": _TAGS,
    "limits": _LIMITS,
}
"""What the value of a key has to be, in all sections; `_ANY` for the others."""

_INFORMATION: dict[str, SectionKind] = {
    **dict.fromkeys(("rabbit_version", "rabbitmq_version", "product_name", "product_version"), _ANY),
    **dict.fromkeys(("rabbitmq_definition_format", "original_cluster_name", "explanation"), _ANY),
    **dict.fromkeys(("description", "metadata"), _ANY),
    "original_vhost_name": _NAME,
    "limits": _LIMITS,
}
"""Keys that describe the definitions, or the single virtual host that they are for."""

_METADATA = ("description", "tags", "default_queue_type", "protected_from_deletion")
_ENTITY = ("vhost", "durable", "auto_delete", "arguments", "policy")

_SECTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # section: (required keys, further keys)
    "vhosts": (("name",), (*_METADATA, "metadata", "limits", "tracing")),
    "users": (("name",), ("password", "password_hash", "hashing_algorithm", "tags", "limits")),
    "permissions": (("user", "vhost"), ("configure", "write", "read")),
    "topic_permissions": (("user", "vhost", "exchange"), ("write", "read")),
    "parameters": (("component", "name", "value"), ("vhost",)),
    "global_parameters": (("name", "value"), ()),
    "policies": (("name", "pattern", "definition"), ("vhost", "apply-to", "priority")),
    "exchanges": (("name", "type"), (*_ENTITY, "internal")),
    "queues": (("name",), (*_ENTITY, "type", "exclusive")),
    "bindings": (
        ("source", "destination"),
        ("vhost", "destination_type", "routing_key", "arguments", "properties_key"),
    ),
}


class DefinitionsError(FakeAMQPError):
    """The definitions cannot be loaded; the text says which entry and why."""

    __module__ = "fakeamqp.errors"


_DEEPEST = 100
"""Levels of an entry: views and exports of deeper values would exceed Python's recursion limit."""
_SECRET = ("password", "password_hash")
_HIDDEN = "***"
_SHOWN_OF_LONG = 40


def _checking(definitions: Mapping[str, Any]) -> Iterator[None]:
    """Check that every section and every key is known, no required key is missing, and every type is right.

    Each step checks one entry. An error names the key, what it should be and is, or the nearest match.
    """
    for key, value in definitions.items():
        if key in _INFORMATION:
            _check_value("definitions", key, value, _INFORMATION[key])
            continue
        if key not in _SECTIONS:
            raise DefinitionsError(
                f"definitions: unknown key {key!r}{hint(str(key), (*_SECTIONS, *_INFORMATION))}"
            )
        if not _is_list(value):
            raise DefinitionsError(f"definitions: {key} must be a list of objects, got {value!r}")
        required, further = _SECTIONS[key]
        for entry in value:
            _check_depth(key, entry)
            _check_entry(key, entry, required, (*required, *further))
            yield


def _check_depth(section: str, entry: Any) -> None:
    level = [entry]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, (Mapping, list, tuple))
            for inner in (each.values() if isinstance(each, Mapping) else each)
        ]
        if not level:
            return
    name = entry.get("name") if isinstance(entry, Mapping) else None
    raise DefinitionsError(f"{section}: the values of {name!r} are nested deeper than {_DEEPEST} levels")


def shown(entry: Mapping[str, Any]) -> str:
    """An entry for the text of an error, without passwords, and with the beginnings of long names."""
    return repr(
        {
            key: _HIDDEN if key in _SECRET and value else _beginning(value) if _is_long(value) else value
            for key, value in entry.items()
        }
    )


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and octets_of(value) > LONGEST_NAME


def _beginning(name: str) -> str:
    return f"{name[:_SHOWN_OF_LONG]}..."


def _check_entry(section: str, entry: Any, required: tuple[str, ...], known: tuple[str, ...]) -> None:
    if not isinstance(entry, Mapping):
        raise DefinitionsError(f"{section}: expected an object, got {entry!r}")
    for key in entry:
        if key not in known:
            raise DefinitionsError(f"{section}: unknown key {key!r}{hint(str(key), known)} in {shown(entry)}")
    for key in sorted(set(required) - entry.keys()):
        raise DefinitionsError(f"{section}: {key!r} is missing in {shown(entry)}")
    for key, value in entry.items():
        _check_value(section, key, value, _KINDS.get(key, _ANY), entry)


def _check_value(
    section: str, key: str, value: Any, kind: SectionKind, entry: Mapping[str, Any] | None = None
) -> None:
    """Check one value; `entry` is shown in the text of an error."""
    too_long = kind is _NAME and _is_long(value)
    if not too_long and kind.fits(value) and not _has_unpaired_surrogate(value):
        return
    where = "" if entry is None else f" in {shown(entry)}"
    if too_long:
        raise DefinitionsError(
            f"{section}: {key!r} must have at most {LONGEST_NAME} bytes in UTF-8, and "
            f"{_beginning(value)!r} has {octets_of(value)}{where}"
        )
    if not kind.fits(value):
        got = _HIDDEN if key in _SECRET else repr(value)
        raise DefinitionsError(f"{section}: {key!r} must be {kind.expected}, got {got}{where}")
    raise DefinitionsError(
        f"{section}: {key!r} has an unpaired surrogate, which has no bytes in UTF-8; take it out{where}"
    )


def _has_unpaired_surrogate(value: Any) -> bool:
    """Whether a text in the value has no bytes. Those that stand for bytes that are not UTF-8 have."""
    if value is None or isinstance(value, int) or (isinstance(value, str) and value.isascii()):
        return False
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, str):
            try:
                each.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                return True
        elif isinstance(each, Mapping):
            rest += [*each, *each.values()]
        elif isinstance(each, (list, tuple)):
            rest += each
    return False


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


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

    An entry without `vhost` belongs to the virtual host of an export of a single virtual host, or else to
    "/". Raises DefinitionsError for an entry that is malformed, misspelled, or needs a feature that this
    broker does not have; the entries before it stay loaded.
    """
    carry_out(loading(state, definitions))


def loading(state: BrokerState, definitions: Mapping[str, Any]) -> Iterator[None]:
    """The steps of `load_definitions`; each checks or creates one entry. All are checked first."""
    yield from _checking(definitions)
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
        parameters = self._definitions.get("global_parameters", ())
        self._state.global_parameters.update((each["name"], each["value"]) for each in parameters)
        yield from self._each("policies", self._policy)
        yield from self._each("parameters", self._parameter)
        yield from self._each("queues", self._queue)
        yield from self._each("bindings", self._binding)
        yield from self._each("vhosts", self._limits_of_virtual_host)
        yield from self._each("parameters", self._limits)
        self._limits_of_virtual_host({"name": self._vhost, "limits": self._definitions.get("limits")})

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
            except InvalidPattern as error:
                raise DefinitionsError(
                    f"{section}: user {entry['user']!r} in virtual host {entry['vhost']!r} has a pattern "
                    f"that cannot be used: {error}"
                ) from error
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

    def _check_single_virtual_host(self) -> None:
        """Refuse an export of a single virtual host that does not exist: the export does not create it."""
        if self._vhost not in self._state.virtual_hosts:
            raise DefinitionsError(
                f"definitions: they are for virtual host {self._vhost!r}, which does not exist; add it "
                f"first, with broker.admin.add_virtual_host({self._vhost!r})"
            )

    def _virtual_host(self, entry: Mapping[str, Any]) -> None:
        metadata = entry.get("metadata")
        if metadata:
            _check_entry(f"vhosts: {entry['name']!r}: metadata", metadata, (), _METADATA)
        # RabbitMQ repeats the default type outside the metadata, even if the virtual host has none.
        outside = {key: entry[key] for key in _METADATA if key in entry}
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
        user.permissions[entry["vhost"]] = Permission(*patterns)

    def _topic_permission(self, entry: Mapping[str, Any]) -> None:
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
        # Limits are checked before anything else is created, although they are set last.
        VirtualHostLimits.read("the virtual host", entry["value"])
        return None

    def _limits(self, entry: Mapping[str, Any]) -> None:
        if entry["component"] == "vhost-limits":
            self._set_limits(self._vhost_of("parameters", entry), entry["value"])

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


def _arguments(entry: Mapping[str, Any]) -> dict[str, Any]:
    return dict(entry.get("arguments") or {})  # An empty list means no arguments (RabbitMQ: measured).


def _tags(tags: Any) -> tuple[str, ...]:
    """Tags from a list, or from text with commas, as older RabbitMQ versions exported them."""
    if isinstance(tags, str):
        return tuple(tag.strip() for tag in tags.split(",") if tag.strip())
    return tuple(tags)


# --- dumping -----------------------------------------------------------------------------------------


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
        "queues": [
            _entity(queue)
            for vhost in vhosts.values()
            for queue in vhost.queues.values()
            if queue.exclusive_owner is None
        ],
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


def _entity(entity: Queue | Exchange) -> dict[str, Any]:
    return {
        "vhost": entity.virtual_host.name,
        "name": entity.name,
        "type": entity.type_name,
        "durable": entity.durable,
        "auto_delete": entity.auto_delete,
        "arguments": dict(entity.arguments),
    }


def _exchanges(vhost: VirtualHost) -> list[dict[str, Any]]:
    return [
        _entity(exchange) | ({"internal": True} if exchange.internal else {})
        for exchange in vhost.exchanges.values()
        if exchange.name and not exchange.name.startswith("amq.")
        # Others are system exchanges that only the test could declare.
        if exchange.type_name in vhost.state.personality.exchange_types
    ]


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
