"""The structs of AMQP 0-10; spec/amqp-0-10.toml describes them.

session.header is not among them: each command reads and writes its own (see `codec`).
"""

from __future__ import annotations

from typing import Annotated

from fakeamqp.protocols.amqp_0_10.codec.constants import DeliveryMode, XaStatus
from fakeamqp.protocols.amqp_0_10.codec.packed import (
    AnyArray,
    AnyMap,
    Bit,
    DateTime,
    Required,
    SequenceNo,
    Str8,
    Str16,
    Struct,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uuid,
    Vbin8,
    Vbin16,
    decode_header as decode_header,
    encode_header as encode_header,
)
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.types import STRUCTS as STRUCTS, UnknownStruct as UnknownStruct


class CommandFragment(Struct, name="session.command-fragment", size=0):
    command_id: Required[SequenceNo] = None
    byte_ranges: Required[ByteRanges | None] = None


class DeliveryProperties(Struct, name="message.delivery-properties", code=(4, 1)):
    discard_unroutable: Bit = False
    immediate: Bit = False
    redelivered: Bit = False
    priority: Required[Uint8] = None
    delivery_mode: Required[Annotated[Uint8, DeliveryMode]] = None
    ttl: Uint64 = None
    timestamp: DateTime = None
    expiration: DateTime = None
    exchange: Str8 = None
    routing_key: Str8 = None
    resume_id: Str16 = None
    resume_ttl: Uint64 = None


class FragmentProperties(Struct, name="message.fragment-properties", code=(4, 2)):
    first: Bit = False
    last: Bit = False
    fragment_size: Uint64 = None


class ReplyTo(Struct, name="message.reply-to", size=2):
    exchange: Str8 = None
    routing_key: Str8 = None


class MessageProperties(Struct, name="message.message-properties", code=(4, 3)):
    content_length: Uint64 = None
    message_id: Uuid = None
    correlation_id: Vbin16 = None
    reply_to: ReplyTo | None = None
    content_type: Str8 = None
    content_encoding: Str8 = None
    user_id: Vbin16 = None
    app_id: Vbin16 = None
    application_headers: AnyMap = None


class Acquired(Struct, name="message.acquired", code=(4, 4)):
    transfers: Required[SequenceSet | None] = None


class MessageResumeResult(Struct, name="message.message-resume-result", code=(4, 5)):
    offset: Uint64 = None


class XaResult(Struct, name="dtx.xa-result", code=(6, 1)):
    status: Required[Annotated[Uint16, XaStatus]] = None


class Xid(Struct, name="dtx.xid", code=(6, 4)):
    format: Required[Uint32] = None
    global_id: Required[Vbin8] = None
    branch_id: Required[Vbin8] = None


class GetTimeoutResult(Struct, name="dtx.get-timeout-result", code=(6, 2)):
    timeout: Required[Uint32] = None


class RecoverResult(Struct, name="dtx.recover-result", code=(6, 3)):
    in_doubt: Required[AnyArray] = None


class ExchangeQueryResult(Struct, name="exchange.exchange-query-result", code=(7, 1)):
    type: Str8 = None
    durable: Bit = False
    not_found: Bit = False
    arguments: AnyMap = None


class ExchangeBoundResult(Struct, name="exchange.exchange-bound-result", code=(7, 2)):
    exchange_not_found: Bit = False
    queue_not_found: Bit = False
    queue_not_matched: Bit = False
    key_not_matched: Bit = False
    args_not_matched: Bit = False


class QueueQueryResult(Struct, name="queue.queue-query-result", code=(8, 1)):
    queue: Required[Str8] = None
    alternate_exchange: Str8 = None
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    arguments: AnyMap = None
    message_count: Required[Uint32] = None
    subscriber_count: Required[Uint32] = None


class FileProperties(Struct, name="file.file-properties", code=(9, 1)):
    content_type: Str8 = None
    content_encoding: Str8 = None
    headers: AnyMap = None
    priority: Uint8 = None
    reply_to: Str8 = None
    message_id: Str8 = None
    filename: Str8 = None
    timestamp: DateTime = None
    cluster_id: Str8 = None


class StreamProperties(Struct, name="stream.stream-properties", code=(10, 1)):
    content_type: Str8 = None
    content_encoding: Str8 = None
    headers: AnyMap = None
    priority: Uint8 = None
    timestamp: DateTime = None
