"""The methods of AMQP 0-9-1 as RabbitMQ speaks it, one class each.

A test holds them equal to spec/amqp-0-9-1.toml.
"""

from __future__ import annotations

from typing import Final

from fakeamqp.protocols.amqp_0_9_1.codec.fields import (
    EMPTY_TABLE,
    Bit,
    Exact,
    Long,
    LongLong,
    LongStr,
    Octet,
    Short,
    ShortStr,
    Table,
)
from fakeamqp.protocols.amqp_0_9_1.codec.method import (
    BOTH,
    CLIENT,
    EXTENSION,
    SERVER,
    Method,
    bare_method,
    method,
    methods_by_index,
)


@method("connection.start", 10, 10, received_by=CLIENT, synchronous=True, responses=("connection.start-ok",))
class ConnectionStart(Method):
    version_major: Octet = 0
    version_minor: Octet = 0
    server_properties: Table = EMPTY_TABLE
    mechanisms: LongStr = b""
    locales: LongStr = b""


@method("connection.start-ok", 10, 11, received_by=SERVER, synchronous=True)
class ConnectionStartOk(Method):
    client_properties: Table = EMPTY_TABLE
    mechanism: ShortStr = ""
    response: LongStr = b""
    locale: ShortStr = ""


@method(
    "connection.secure", 10, 20, received_by=CLIENT, synchronous=True, responses=("connection.secure-ok",)
)
class ConnectionSecure(Method):
    challenge: LongStr = b""


@method("connection.secure-ok", 10, 21, received_by=SERVER, synchronous=True)
class ConnectionSecureOk(Method):
    response: LongStr = b""


@method("connection.tune", 10, 30, received_by=CLIENT, synchronous=True, responses=("connection.tune-ok",))
class ConnectionTune(Method):
    channel_max: Short = 0
    frame_max: Long = 0
    heartbeat: Short = 0


@method("connection.tune-ok", 10, 31, received_by=SERVER, synchronous=True)
class ConnectionTuneOk(Method):
    channel_max: Short = 0
    frame_max: Long = 0
    heartbeat: Short = 0


@method("connection.open", 10, 40, received_by=SERVER, synchronous=True, responses=("connection.open-ok",))
class ConnectionOpen(Method):
    virtual_host: ShortStr = ""
    reserved_1: ShortStr = ""
    reserved_2: Bit = False


@method("connection.open-ok", 10, 41, received_by=CLIENT, synchronous=True)
class ConnectionOpenOk(Method):
    reserved_1: ShortStr = ""


@method("connection.close", 10, 50, received_by=BOTH, synchronous=True, responses=("connection.close-ok",))
class ConnectionClose(Method):
    reply_code: Short = 0
    reply_text: ShortStr = ""
    class_id: Short = 0
    method_id: Short = 0


@method("connection.blocked", 10, 60, received_by=CLIENT)
class ConnectionBlocked(Method):
    """RabbitMQ's extension."""

    reason: ShortStr = ""


@method(
    "connection.update-secret",
    10,
    70,
    received_by=SERVER,
    synchronous=True,
    responses=("connection.update-secret-ok",),
)
class ConnectionUpdateSecret(Method):
    """RabbitMQ's extension."""

    new_secret: LongStr = b""
    reason: ShortStr = ""


@method("channel.open", 20, 10, received_by=SERVER, synchronous=True, responses=("channel.open-ok",))
class ChannelOpen(Method):
    reserved_1: ShortStr = ""


@method("channel.open-ok", 20, 11, received_by=CLIENT, synchronous=True)
class ChannelOpenOk(Method):
    reserved_1: LongStr = b""


@method("channel.flow", 20, 20, received_by=BOTH, synchronous=True, responses=("channel.flow-ok",))
class ChannelFlow(Method):
    active: Bit = False


@method("channel.flow-ok", 20, 21, received_by=BOTH)
class ChannelFlowOk(Method):
    active: Bit = False


@method("channel.close", 20, 40, received_by=BOTH, synchronous=True, responses=("channel.close-ok",))
class ChannelClose(Method):
    reply_code: Short = 0
    reply_text: ShortStr = ""
    class_id: Short = 0
    method_id: Short = 0


@method("access.request", 30, 10, received_by=SERVER, synchronous=True, responses=("access.request-ok",))
class AccessRequest(Method):
    """RabbitMQ's extension."""

    realm: ShortStr = ""
    exclusive: Bit = False
    passive: Bit = False
    active: Bit = False
    write: Bit = False
    read: Bit = False


@method("access.request-ok", 30, 11, received_by=CLIENT, synchronous=True)
class AccessRequestOk(Method):
    """RabbitMQ's extension."""

    ticket: Short = 0


@method("exchange.declare", 40, 10, received_by=SERVER, synchronous=True, responses=("exchange.declare-ok",))
class ExchangeDeclare(Method):
    reserved_1: Short = 0
    exchange: ShortStr = ""
    type: ShortStr = ""
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    internal: Bit = False
    no_wait: Bit = False
    arguments: Table = EMPTY_TABLE


@method("exchange.delete", 40, 20, received_by=SERVER, synchronous=True, responses=("exchange.delete-ok",))
class ExchangeDelete(Method):
    reserved_1: Short = 0
    exchange: ShortStr = ""
    if_unused: Bit = False
    no_wait: Bit = False


@method("exchange.bind", 40, 30, received_by=SERVER, synchronous=True, responses=("exchange.bind-ok",))
class ExchangeBind(Method):
    """RabbitMQ's extension."""

    reserved_1: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    no_wait: Bit = False
    arguments: Exact = EMPTY_TABLE


@method("exchange.unbind", 40, 40, received_by=SERVER, synchronous=True, responses=("exchange.unbind-ok",))
class ExchangeUnbind(Method):
    """RabbitMQ's extension."""

    reserved_1: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    no_wait: Bit = False
    arguments: Exact = EMPTY_TABLE


@method("queue.declare", 50, 10, received_by=SERVER, synchronous=True, responses=("queue.declare-ok",))
class QueueDeclare(Method):
    reserved_1: Short = 0
    queue: ShortStr = ""
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    no_wait: Bit = False
    arguments: Table = EMPTY_TABLE


@method("queue.declare-ok", 50, 11, received_by=CLIENT, synchronous=True)
class QueueDeclareOk(Method):
    queue: ShortStr = ""
    message_count: Long = 0
    consumer_count: Long = 0


@method("queue.bind", 50, 20, received_by=SERVER, synchronous=True, responses=("queue.bind-ok",))
class QueueBind(Method):
    reserved_1: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    no_wait: Bit = False
    arguments: Exact = EMPTY_TABLE


@method("queue.purge", 50, 30, received_by=SERVER, synchronous=True, responses=("queue.purge-ok",))
class QueuePurge(Method):
    reserved_1: Short = 0
    queue: ShortStr = ""
    no_wait: Bit = False


@method("queue.purge-ok", 50, 31, received_by=CLIENT, synchronous=True)
class QueuePurgeOk(Method):
    message_count: Long = 0


@method("queue.delete", 50, 40, received_by=SERVER, synchronous=True, responses=("queue.delete-ok",))
class QueueDelete(Method):
    reserved_1: Short = 0
    queue: ShortStr = ""
    if_unused: Bit = False
    if_empty: Bit = False
    no_wait: Bit = False


@method("queue.delete-ok", 50, 41, received_by=CLIENT, synchronous=True)
class QueueDeleteOk(Method):
    message_count: Long = 0


@method("queue.unbind", 50, 50, received_by=SERVER, synchronous=True, responses=("queue.unbind-ok",))
class QueueUnbind(Method):
    reserved_1: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    arguments: Exact = EMPTY_TABLE


@method("basic.qos", 60, 10, received_by=SERVER, synchronous=True, responses=("basic.qos-ok",))
class BasicQos(Method):
    prefetch_size: Long = 0
    prefetch_count: Short = 0
    global_: Bit = False


@method("basic.consume", 60, 20, received_by=SERVER, synchronous=True, responses=("basic.consume-ok",))
class BasicConsume(Method):
    reserved_1: Short = 0
    queue: ShortStr = ""
    consumer_tag: ShortStr = ""
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    no_wait: Bit = False
    arguments: Table = EMPTY_TABLE


@method("basic.consume-ok", 60, 21, received_by=CLIENT, synchronous=True)
class BasicConsumeOk(Method):
    consumer_tag: ShortStr = ""


@method("basic.cancel", 60, 30, received_by=BOTH, synchronous=True, responses=("basic.cancel-ok",))
class BasicCancel(Method):
    consumer_tag: ShortStr = ""
    no_wait: Bit = False


@method("basic.cancel-ok", 60, 31, received_by=BOTH, synchronous=True)
class BasicCancelOk(Method):
    consumer_tag: ShortStr = ""


@method("basic.publish", 60, 40, received_by=SERVER, content=True)
class BasicPublish(Method):
    reserved_1: Short = 0
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    mandatory: Bit = False
    immediate: Bit = False


@method("basic.return", 60, 50, received_by=CLIENT, content=True)
class BasicReturn(Method):
    reply_code: Short = 0
    reply_text: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""


@method("basic.deliver", 60, 60, received_by=CLIENT, content=True)
class BasicDeliver(Method):
    consumer_tag: ShortStr = ""
    delivery_tag: LongLong = 0
    redelivered: Bit = False
    exchange: ShortStr = ""
    routing_key: ShortStr = ""


@method(
    "basic.get", 60, 70, received_by=SERVER, synchronous=True, responses=("basic.get-ok", "basic.get-empty")
)
class BasicGet(Method):
    reserved_1: Short = 0
    queue: ShortStr = ""
    no_ack: Bit = False


@method("basic.get-ok", 60, 71, received_by=CLIENT, synchronous=True, content=True)
class BasicGetOk(Method):
    delivery_tag: LongLong = 0
    redelivered: Bit = False
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    message_count: Long = 0


@method("basic.get-empty", 60, 72, received_by=CLIENT, synchronous=True)
class BasicGetEmpty(Method):
    reserved_1: ShortStr = ""


@method("basic.ack", 60, 80, received_by=BOTH)
class BasicAck(Method):
    delivery_tag: LongLong = 0
    multiple: Bit = False


@method("basic.reject", 60, 90, received_by=SERVER)
class BasicReject(Method):
    delivery_tag: LongLong = 0
    requeue: Bit = False


@method("basic.recover-async", 60, 100, received_by=SERVER)
class BasicRecoverAsync(Method):
    """Deprecated."""

    requeue: Bit = False


@method("basic.recover", 60, 110, received_by=SERVER)
class BasicRecover(Method):
    requeue: Bit = False


@method("basic.nack", 60, 120, received_by=BOTH)
class BasicNack(Method):
    """RabbitMQ's extension."""

    delivery_tag: LongLong = 0
    multiple: Bit = False
    requeue: Bit = False


@method("confirm.select", 85, 10, received_by=SERVER, synchronous=True, responses=("confirm.select-ok",))
class ConfirmSelect(Method):
    """RabbitMQ's extension."""

    no_wait: Bit = False


ConnectionCloseOk: Final = bare_method("connection.close-ok", 10, 51, received_by=BOTH)
ConnectionUnblocked: Final = bare_method(
    "connection.unblocked", 10, 61, received_by=CLIENT, synchronous=False, note=EXTENSION
)
ConnectionUpdateSecretOk: Final = bare_method(
    "connection.update-secret-ok", 10, 71, received_by=CLIENT, note=EXTENSION
)
ChannelCloseOk: Final = bare_method("channel.close-ok", 20, 41, received_by=BOTH)
ExchangeDeclareOk: Final = bare_method("exchange.declare-ok", 40, 11, received_by=CLIENT)
ExchangeDeleteOk: Final = bare_method("exchange.delete-ok", 40, 21, received_by=CLIENT)
ExchangeBindOk: Final = bare_method("exchange.bind-ok", 40, 31, received_by=CLIENT, note=EXTENSION)
ExchangeUnbindOk: Final = bare_method("exchange.unbind-ok", 40, 51, received_by=CLIENT, note=EXTENSION)
QueueBindOk: Final = bare_method("queue.bind-ok", 50, 21, received_by=CLIENT)
QueueUnbindOk: Final = bare_method("queue.unbind-ok", 50, 51, received_by=CLIENT)
BasicQosOk: Final = bare_method("basic.qos-ok", 60, 11, received_by=CLIENT)
BasicRecoverOk: Final = bare_method("basic.recover-ok", 60, 111, received_by=CLIENT)
ConfirmSelectOk: Final = bare_method("confirm.select-ok", 85, 11, received_by=CLIENT, note=EXTENSION)
TxSelect: Final = bare_method("tx.select", 90, 10, received_by=SERVER, responses=("tx.select-ok",))
TxSelectOk: Final = bare_method("tx.select-ok", 90, 11, received_by=CLIENT)
TxCommit: Final = bare_method("tx.commit", 90, 20, received_by=SERVER, responses=("tx.commit-ok",))
TxCommitOk: Final = bare_method("tx.commit-ok", 90, 21, received_by=CLIENT)
TxRollback: Final = bare_method("tx.rollback", 90, 30, received_by=SERVER, responses=("tx.rollback-ok",))
TxRollbackOk: Final = bare_method("tx.rollback-ok", 90, 31, received_by=CLIENT)

#: class id << 16 | method id -> class
METHODS: Final[dict[int, type[Method]]] = methods_by_index(globals())
