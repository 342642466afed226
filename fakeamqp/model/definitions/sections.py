"""The format of definitions: their sections, and the keys of each section's entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.parameters import hint

__all__ = ["METADATA_KEYS", "DefinitionsError", "check_definitions", "check_keys"]

_INFORMATION = frozenset(
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
        "limits",
    )
)
"""Keys that describe the definitions, or the single virtual host that they are for."""

METADATA_KEYS = ("description", "tags", "default_queue_type", "protected_from_deletion")

_KEYS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    # section: (required keys, further keys)
    "vhosts": (
        frozenset({"name"}),
        frozenset({*METADATA_KEYS, "metadata", "limits", "tracing"}),
    ),
    "users": (
        frozenset({"name"}),
        frozenset({"password", "password_hash", "hashing_algorithm", "tags", "limits"}),
    ),
    "permissions": (frozenset({"user", "vhost"}), frozenset({"configure", "write", "read"})),
    "topic_permissions": (frozenset({"user", "vhost", "exchange"}), frozenset({"write", "read"})),
    "parameters": (frozenset({"component", "name", "value"}), frozenset({"vhost"})),
    "global_parameters": (frozenset({"name", "value"}), frozenset()),
    "policies": (
        frozenset({"name", "pattern", "definition"}),
        frozenset({"vhost", "apply-to", "priority"}),
    ),
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
}


class DefinitionsError(FakeAMQPError):
    """The definitions cannot be loaded; the text says which entry and why."""


def check_definitions(definitions: Mapping[str, Any]) -> None:
    """Check that every section and every key is known, and that no required key is missing.

    Raises:
        DefinitionsError: a section or an entry is invalid; the text names the nearest match.
    """
    for key, value in definitions.items():
        if key in _INFORMATION:
            continue
        if key not in _KEYS:
            raise DefinitionsError(f"definitions: unknown key {key!r}{hint(key, (*_KEYS, *_INFORMATION))}")
        if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
            raise DefinitionsError(f"definitions: {key} must be a list of objects, got {value!r}")
        required, further = _KEYS[key]
        for entry in value:
            check_keys(key, entry, required, further)


def check_keys(section: str, entry: Any, required: Iterable[str], further: Iterable[str]) -> None:
    """Check that an entry is an object with all required keys, and without unknown ones.

    Raises:
        DefinitionsError: it is not; the text names the nearest match.
    """
    if not isinstance(entry, Mapping):
        raise DefinitionsError(f"{section}: expected an object, got {entry!r}")
    known = (*required, *further)
    for key in entry:
        if key not in known:
            raise DefinitionsError(f"{section}: unknown key {key!r}{hint(key, known)} in {dict(entry)!r}")
    for key in sorted(set(required) - entry.keys()):
        raise DefinitionsError(f"{section}: {key!r} is missing in {dict(entry)!r}")
