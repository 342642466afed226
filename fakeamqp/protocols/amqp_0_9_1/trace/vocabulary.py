"""The parts of a 0-9-x protocol that its trace reader needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar

__all__ = ["TraceVocabulary"]


class TraceVocabulary:
    """The methods and contents of one protocol.

    Args:
        methods: class id << 16 | method id -> class.
        properties: class id -> properties of a content of that class. The first entry is also used for
            unknown class ids.
        grammars: the grammars that field tables may follow, the most likely one first.
        secret_fields: fields of methods that are never shown.
        fields_with_urls: fields of methods that may have URLs with passwords.
    """

    def __init__(
        self,
        methods: Mapping[int, type[Method]],
        properties: Mapping[int, type[Properties]],
        grammars: tuple[Grammar, ...],
        secret_fields: frozenset[str],
        fields_with_urls: frozenset[str],
    ) -> None:
        self.methods = methods
        self.properties = properties
        self.grammars = grammars
        self.secret_fields = secret_fields
        self.fields_with_urls = fields_with_urls
        hidden = secret_fields | fields_with_urls
        self.secretive: frozenset[int] = frozenset(
            index for index, kind in methods.items() if not hidden.isdisjoint(name for name, _ in kind.LAYOUT)
        )
        """The methods with secrets."""

    def name(self, index: int) -> str | None:
        """The name of a method, or None if it is unknown."""
        kind = self.methods.get(index)
        return None if kind is None else kind.NAME

    def properties_of(self, class_id: int) -> type[Properties]:
        """The properties of a content of that class."""
        return self.properties.get(class_id) or next(iter(self.properties.values()))
