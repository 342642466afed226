"""The properties of contents of AMQP 0-9; a test holds them equal to spec/amqp-0-9.toml."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.fields import Headers, Octet, ShortStr, Timestamp
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties, Properties, RawTable, properties

__all__ = ["BasicProperties", "FileProperties", "StreamProperties", "TunnelProperties"]


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
