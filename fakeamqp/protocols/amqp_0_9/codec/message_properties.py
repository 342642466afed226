"""The properties of contents of class file and stream, with all that is read of a message's properties.

What these classes do not have is absent: None, and so it stays. What came by 0-10, which has the same two
classes, keeps what they have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from fakeamqp.protocols.amqp_0_9.codec.properties import BasicProperties, FileProperties, StreamProperties

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.framed.codec.properties import Properties
    from fakeamqp.protocols.framed.codec.tables import FieldValue

__all__ = ["FILE_ENCODING", "STREAM_ENCODING", "FileMessageProperties", "StreamMessageProperties"]

FILE_ENCODING: Final = "0-9 file"
"""Marks messages whose property bytes go out as they are in contents of class file."""
STREAM_ENCODING: Final = "0-9 stream"

_PERSISTENT = 2


class OtherProperties(Protocol):
    """Properties of any protocol; see `model.message.Properties`."""

    @property
    def headers(self) -> dict[str, FieldValue] | None:
        """Application headers."""


class _Absent:
    """What neither class has."""

    __slots__ = ()

    delivery_mode: ClassVar[int | None] = None
    correlation_id: ClassVar[None] = None
    expiration: ClassVar[None] = None
    type: ClassVar[None] = None
    user_id: ClassVar[None] = None
    app_id: ClassVar[None] = None


_NAMES: Final = frozenset(BasicProperties.__slots__)


class FileMessageProperties(_Absent, FileProperties):
    """Properties of a content of class file. Files are there to last (file/01)."""

    __slots__ = ()

    delivery_mode: ClassVar[int | None] = _PERSISTENT

    @classmethod
    def of(cls, properties: OtherProperties) -> Self:
        """What any protocol's properties say, as far as this class can."""
        return cls(**_common(cls.LAYOUT, properties))

    def replace(self, **changes: Any) -> Self:
        """See the base class; to take out what the class does not have changes nothing."""
        return super().replace(**_meaningful(type(self), changes))


class StreamMessageProperties(_Absent, StreamProperties):
    """Properties of a content of class stream."""

    __slots__ = ()

    reply_to: ClassVar[None] = None
    message_id: ClassVar[None] = None

    @classmethod
    def of(cls, properties: OtherProperties) -> Self:
        """What any protocol's properties say, as far as this class can."""
        return cls(**_common(cls.LAYOUT, properties))

    def replace(self, **changes: Any) -> Self:
        """See the base class; to take out what the class does not have changes nothing."""
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
