"""The properties of contents of class file and stream, with every attribute that the model reads.

A property that these classes do not have is always None. Contents from 0-10, which has the same two classes,
keep the properties that both have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from fakeamqp.protocols.amqp_0_9.codec.properties import BasicProperties, FileProperties, StreamProperties

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import FieldValue

__all__ = ["FILE_ENCODING", "STREAM_ENCODING", "FileMessageProperties", "StreamMessageProperties"]

FILE_ENCODING: Final = "0-9 file"
"""The encoding of messages whose property bytes are sent unchanged in contents of class file."""
STREAM_ENCODING: Final = "0-9 stream"

_PERSISTENT = 2


class OtherProperties(Protocol):
    """Properties of any protocol; see `model.message.ReadableProperties`."""

    @property
    def headers(self) -> dict[str, FieldValue] | None:
        """Application headers."""


class _Absent:
    """The properties that neither class has."""

    __slots__ = ()

    delivery_mode: ClassVar[int | None] = None
    correlation_id: ClassVar[None] = None
    expiration: ClassVar[None] = None
    type: ClassVar[None] = None
    user_id: ClassVar[None] = None
    app_id: ClassVar[None] = None


_NAMES: Final[frozenset[str]] = frozenset(BasicProperties.__slots__)


class FileMessageProperties(_Absent, FileProperties):
    """Properties of a content of class file. Files are persistent (file/01)."""

    __slots__ = ()

    delivery_mode: ClassVar[int | None] = _PERSISTENT

    @classmethod
    def of(cls, properties: OtherProperties) -> Self:
        """The properties of any protocol, as far as this class has them."""
        return cls(**_common(cls.LAYOUT, properties))

    def replace(self, **changes: Any) -> Self:
        """Removing a property that the class does not have changes nothing."""
        return super().replace(**_meaningful(type(self), changes))


class StreamMessageProperties(_Absent, StreamProperties):
    """Properties of a content of class stream."""

    __slots__ = ()

    reply_to: ClassVar[None] = None
    message_id: ClassVar[None] = None

    @classmethod
    def of(cls, properties: OtherProperties) -> Self:
        """The properties of any protocol, as far as this class has them."""
        return cls(**_common(cls.LAYOUT, properties))

    def replace(self, **changes: Any) -> Self:
        """Removing a property that the class does not have changes nothing."""
        return super().replace(**_meaningful(type(self), changes))


def _common(layout: tuple[tuple[str, str], ...], properties: OtherProperties) -> dict[str, Any]:
    return {name: getattr(properties, name, None) for name, _ in layout}


def _meaningful(kind: type[Properties], changes: dict[str, Any]) -> dict[str, Any]:
    known = dict(kind.LAYOUT)
    return {
        name: value
        for name, value in changes.items()
        if name in known or name not in _NAMES or value is not None
    }
