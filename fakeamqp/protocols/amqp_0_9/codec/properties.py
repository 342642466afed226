"""The properties of contents of AMQP 0-9; a test holds them equal to spec/amqp-0-9.toml.

`FileMessageProperties` and `StreamMessageProperties` have every attribute that the model reads; one that
their class does not have is always None. Contents from 0-10, which has the same two classes, keep the
properties that both have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from fakeamqp.protocols.amqp_0_9_1.codec.fields import Headers, Octet, ShortStr, Timestamp
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties, Properties, RawTable, properties

if TYPE_CHECKING:
    from typing_extensions import Self

FILE_ENCODING: Final = "0-9 file"
"""The encoding of messages whose property bytes are sent unchanged in contents of class file."""
STREAM_ENCODING: Final = "0-9 stream"

_PERSISTENT = 2
_NAMES: Final[frozenset[str]] = frozenset(BasicProperties.__slots__)


@properties("file", 70)
class FileProperties(Properties):
    """What describes a content of class file (70); None means absent."""

    content_type: ShortStr | None = None
    content_encoding: ShortStr | None = None
    headers: Headers | None = None
    priority: Octet | None = None
    reply_to: ShortStr | None = None
    message_id: ShortStr | None = None
    filename: ShortStr | None = None
    timestamp: Timestamp | None = None
    cluster_id: ShortStr | None = None
    _raw_headers: RawTable | None = None


@properties("stream", 80)
class StreamProperties(Properties):
    """What describes a content of class stream (80); None means absent."""

    content_type: ShortStr | None = None
    content_encoding: ShortStr | None = None
    headers: Headers | None = None
    priority: Octet | None = None
    timestamp: Timestamp | None = None
    _raw_headers: RawTable | None = None


@properties("tunnel", 110)
class TunnelProperties(Properties):
    """What describes a content of class tunnel (110); None means absent."""

    headers: Headers | None = None
    proxy_name: ShortStr | None = None
    data_name: ShortStr | None = None
    durable: Octet | None = None
    broadcast: Octet | None = None
    _raw_headers: RawTable | None = None


class _MessageProperties(Properties):
    __slots__ = ()

    delivery_mode: ClassVar[int | None] = None
    correlation_id: ClassVar[None] = None
    expiration: ClassVar[None] = None
    type: ClassVar[None] = None
    user_id: ClassVar[None] = None
    app_id: ClassVar[None] = None

    @classmethod
    def of(cls, properties: object) -> Self:
        """The properties of any protocol, as far as this class has them."""
        return cls(**{name: getattr(properties, name, None) for name, _ in cls.LAYOUT})

    def replace(self, **changes: Any) -> Self:
        """Removing a property that the class does not have changes nothing."""
        known = dict(self.LAYOUT)
        return super().replace(
            **{
                name: value
                for name, value in changes.items()
                if name in known or name not in _NAMES or value is not None
            }
        )


class FileMessageProperties(_MessageProperties, FileProperties):
    """Properties of a content of class file. Files are persistent (file/01)."""

    __slots__ = ()

    delivery_mode: ClassVar[int | None] = _PERSISTENT


class StreamMessageProperties(_MessageProperties, StreamProperties):
    """Properties of a content of class stream."""

    __slots__ = ()

    reply_to: ClassVar[None] = None
    message_id: ClassVar[None] = None
