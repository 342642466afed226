"""Compares answers of RabbitMQ with the broker's: status, keys, types, and values that should be equal.

An answer is brought into a normal form first: names of nodes and connections are replaced, lists whose order
means nothing are sorted, and of values that no two brokers share, such as a number of bytes of Erlang's
memory, only the type is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from compat_tests.management.client import Reply

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
MEASURED = HERE / "measured"
KNOWN = HERE / "known_differences.toml"

_TYPES = {bool: "<flag>", int: "<number>", float: "<number>", str: "<text>", type(None): "<null>"}

#: Keys of which only the type is compared.
_VOLATILE = re.compile(
    r"""(?x)^(
    .*_version | .*_oct | .*_cnt | .*_rate | rate | avg | sample | timestamp | password_hash | ok | memory
    | reductions | channels_created | connected_at | consumer_capacity | consumer_utilisation | peer_port
    | port
    | minor_gcs | fullsweep_after | max_heap_size | min_bin_vheap_size | min_heap_size
    | name_of_node | os_pid | fd_.* | sockets_.* | mem_.* | disk_.* | proc_.* | uptime | run_queue
    | processors
    | gc_.* | context_switches | io_.* | mnesia_.* | msg_store_.* | queue_index_.* | auth_attempts.*
    | connection_created | connection_closed | channel_created | channel_closed
    | queue_created | queue_deleted | queue_declared | internal_cluster_id | product_version | version
    | platform | information | desc | description_of_type | doc_url | provided_by | stability | require_level
    | ip_address | socket_opts | cowboy_opts | ip | db_dir | log_files | config_files | applications
    | idle_since | ports | missing | segments | memory_of_node | callbacks | user_who_performed_action
    | messages.*_ram | message_bytes_ram | .*_paged_out
    )$"""
)
#: Keys that RabbitMQ's answers have or not, by chance.
_BY_CHANCE = re.compile(r"^(idle_since|message_stats|.*_details|protected_from_deletion)$")
_CLUSTER_ID = re.compile("rabbitmq-cluster-id-[A-Za-z0-9_-]+")
_ORDERED = ("samples",)


def normal(reply: Reply, names: Mapping[str, str]) -> dict[str, Any]:
    """The normal form of an answer.

    Args:
        reply: the answer.
        names: texts that are replaced by words, such as the name of the node.
    """
    text = _CLUSTER_ID.sub("{cluster id}", reply.body.decode("utf-8", "replace"))
    try:
        body = json.loads(text)
    except ValueError:
        body = {"<no JSON>": text} if text else None
    return {"status": reply.status, "body": _normal(_named(body, names), "")}


def _named(value: Any, names: Mapping[str, str]) -> Any:
    """The value with words in place of names."""
    if isinstance(value, dict):
        return {_named(name, names): _named(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, str):
        for found, word in names.items():
            value = value.replace(found, word)
    return value


def _order(item: Any) -> tuple[str, str]:
    """What a list is sorted by: first what identifies its items."""
    named = [str(item.get(key)) for key in ("vhost", "name")] if isinstance(item, dict) else []
    return " ".join(named), json.dumps(item, sort_keys=True)


def _normal(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        inner = "memory_of_node" if key in ("memory", "memory_of_node") else ""
        return {name: _normal(item, inner or name) for name, item in sorted(value.items())}
    if isinstance(value, list):
        if _VOLATILE.match(key):
            return ["<list>"]
        items = [_normal(item, key) for item in value]
        if key in _ORDERED:
            return items[:1]
        return sorted(items, key=_order)
    if _VOLATILE.match(key):
        return _TYPES[type(value)]
    if isinstance(value, float) and value == int(value):
        return int(value)
    return value


def differences(real: Any, ours: Any, path: str = "") -> Iterator[str]:
    """What differs between two normal forms, each as `path: what`."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}):
            here = f"{path}.{key}"
            if key not in ours:
                if not _BY_CHANCE.match(key):
                    yield f"{here}: missing"
            elif key not in real:
                if not _BY_CHANCE.match(key):
                    yield f"{here}: only here"
            else:
                yield from differences(real[key], ours[key], here)
    elif isinstance(real, list) and isinstance(ours, list):
        if len(real) != len(ours):
            yield f"{path}[]: {len(real)} items, here {len(ours)}"
        else:
            for one, other in zip(real, ours, strict=True):
                yield from differences(one, other, f"{path}[]")
    elif real != ours:
        yield f"{path}: {json.dumps(real)}, here {json.dumps(ours)}"


class KnownDifferences:
    """The differences that have reasons: see `known_differences.toml`."""

    def __init__(self, version: str) -> None:
        rows = tomllib.loads(KNOWN.read_text())["difference"]
        self._rows = [row for row in rows if version in row.get("versions", [version])]
        self.used: set[int] = set()

    def has(self, request: str, difference: str) -> bool:
        """Whether a difference of a request is known."""
        for number, row in enumerate(self._rows):
            if fnmatchcase(request, row["request"]) and any(
                re.search(each, difference) for each in row["differences"]
            ):
                self.used.add(number)
                return True
        return False

    def unused(self) -> list[str]:
        """Rows that no difference needs."""
        return [row["request"] for number, row in enumerate(self._rows) if number not in self.used]


def compared(
    version: str, real: Mapping[str, dict[str, Any]], ours: Mapping[str, dict[str, Any]]
) -> tuple[list[str], list[str]]:
    """The differences that are not known, and the rows of known ones that nothing needs."""
    known = KnownDifferences(version)
    new = [
        f"{name} {found}"
        for name, answer in real.items()
        for found in dict.fromkeys(differences(answer, ours[name]))
        if not known.has(name, found)
    ]
    return new, known.unused()


def measured(version: str) -> dict[str, dict[str, Any]]:
    """The recorded answers of a version of RabbitMQ, by request."""
    found: dict[str, dict[str, Any]] = json.loads((MEASURED / f"{version}.json").read_text())
    return found
