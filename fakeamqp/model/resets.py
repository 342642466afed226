"""The entities that resets have removed, and those of them that clients or the test asked for since."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fakeamqp.model.policies.policy import Policy

__all__ = ["Entity", "Resets"]

Entity: TypeAlias = "tuple[str, str, str]"
"""The kind of an entity, its virtual host ("" for one that has none), and its name."""

_MOST = 10_000
"""How many entities are remembered, the latest ones."""


class Resets:
    """The removed entities: the error about a missing entity names the reset that has removed it."""

    def __init__(self) -> None:
        self._removed: dict[Entity, int] = {}
        """By entity, the number of the latest reset that removed it."""
        self._missed: dict[Entity, None] = {}
        self._policies: dict[Entity, Policy] = {}
        self._count = 0
        self._name = ""

    def removes(self, entities: Iterable[Entity], policies: dict[Entity, Policy], name: str) -> None:
        """Note that a reset removes entities and policies; `name` is what the reset is called in errors."""
        self._count += 1
        self._name = name
        self._missed.clear()
        self._policies.update(policies)
        for entity in chain(entities, policies):
            self._removed.pop(entity, None)
            self._removed[entity] = self._count
        for entity in list(self._removed)[:-_MOST]:
            del self._removed[entity]
            self._policies.pop(entity, None)

    def miss(self, kind: str, virtual_host: str, name: str) -> str:
        """Note a request for a missing entity; return a hint if a reset has removed it, otherwise ""."""
        entity = (kind, virtual_host, name)
        if entity not in self._removed:
            return ""
        self._missed[entity] = None
        return self._hint(entity)

    def miss_policies(self, virtual_host: str, kind: str, name: str) -> None:
        """Note that no policy matches a queue of this type (or "exchange"), if a removed one would."""
        for entity, policy in self._policies.items():
            if entity[1] == virtual_host and policy.applies_to(kind) and policy.program.search(name):
                self._missed[entity] = None

    def hints(self) -> list[str]:
        """A sentence about each entity that was missed since the last reset."""
        return [self._hint(entity) for entity in self._missed]

    def _hint(self, entity: Entity) -> str:
        kind, virtual_host, name = entity
        where = "" if virtual_host in ("", "/") else f" in virtual host {virtual_host!r}"
        reset = self._name if self._removed[entity] == self._count else "an earlier reset"
        return (
            f"{kind} {name!r}{where} existed until {reset}; load_definitions(..., keep=True) loads "
            "definitions that outlast resets"
        )
