"""The properties of contents of class basic: the same in 0-9-1 and 0-9."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.fields import Headers, Octet, ShortStr, Timestamp
from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties, RawTable, properties

__all__ = ["BasicProperties"]


@properties("basic", 60)
class BasicProperties(Properties):
    """What describes a content of class basic (60); None means absent."""

    content_type: ShortStr | None = None
    content_encoding: ShortStr | None = None
    headers: Headers | None = None
    delivery_mode: Octet | None = None
    priority: Octet | None = None
    correlation_id: ShortStr | None = None
    reply_to: ShortStr | None = None
    expiration: ShortStr | None = None
    message_id: ShortStr | None = None
    timestamp: Timestamp | None = None
    type: ShortStr | None = None
    user_id: ShortStr | None = None
    app_id: ShortStr | None = None
    cluster_id: ShortStr | None = None
    _raw_headers: RawTable | None = None
