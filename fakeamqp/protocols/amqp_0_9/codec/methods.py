"""The methods of AMQP 0-9, one class each; a test holds them equal to spec/amqp-0-9.toml.

Those that 0-9-1 has as they are stand there. The documents call class message, and resume, ping, pong and ok
of class channel, work in progress.
"""

from __future__ import annotations

from typing import Final

from fakeamqp.protocols.amqp_0_9.codec.bodies import NO_BODY, TransferBody
from fakeamqp.protocols.amqp_0_9_1.codec import methods as of_0_9_1
from fakeamqp.protocols.amqp_0_9_1.codec.fields import (
    EMPTY_TABLE,
    Bit,
    Long,
    LongLong,
    LongStr,
    Octet,
    Short,
    ShortStr,
    Table,
    Timestamp,
)
from fakeamqp.protocols.amqp_0_9_1.codec.method import (
    BOTH,
    CLIENT,
    SERVER,
    Method,
    bare_method,
    method,
    methods_by_index,
)
from fakeamqp.protocols.amqp_0_9_1.codec.methods import (
    BasicConsumeOk as BasicConsumeOk,
    BasicDeliver as BasicDeliver,
    BasicGetOk as BasicGetOk,
    BasicQos as BasicQos,
    BasicQosOk as BasicQosOk,
    BasicReject as BasicReject,
    BasicReturn as BasicReturn,
    ChannelClose as ChannelClose,
    ChannelCloseOk as ChannelCloseOk,
    ChannelFlow as ChannelFlow,
    ChannelFlowOk as ChannelFlowOk,
    ConnectionClose as ConnectionClose,
    ConnectionCloseOk as ConnectionCloseOk,
    ConnectionSecure as ConnectionSecure,
    ConnectionSecureOk as ConnectionSecureOk,
    ConnectionStart as ConnectionStart,
    ConnectionStartOk as ConnectionStartOk,
    ConnectionTune as ConnectionTune,
    ConnectionTuneOk as ConnectionTuneOk,
    ExchangeDeclareOk as ExchangeDeclareOk,
    ExchangeDeleteOk as ExchangeDeleteOk,
    QueueBindOk as QueueBindOk,
    QueueDeclareOk as QueueDeclareOk,
    QueueDeleteOk as QueueDeleteOk,
    QueuePurgeOk as QueuePurgeOk,
    QueueUnbindOk as QueueUnbindOk,
    TxCommit as TxCommit,
    TxCommitOk as TxCommitOk,
    TxRollback as TxRollback,
    TxRollbackOk as TxRollbackOk,
    TxSelect as TxSelect,
    TxSelectOk as TxSelectOk,
)


@method(
    "connection.open",
    10,
    40,
    received_by=SERVER,
    synchronous=True,
    responses=("connection.open-ok", "connection.redirect"),
)
class ConnectionOpen(Method):
    virtual_host: ShortStr = ""
    capabilities: ShortStr = ""
    insist: Bit = False


@method("connection.open-ok", 10, 41, received_by=CLIENT, synchronous=True)
class ConnectionOpenOk(Method):
    known_hosts: ShortStr = ""


@method("connection.redirect", 10, 42, received_by=CLIENT, synchronous=True)
class ConnectionRedirect(Method):
    host: ShortStr = ""
    known_hosts: ShortStr = ""


@method("channel.open", 20, 10, received_by=SERVER, synchronous=True, responses=("channel.open-ok",))
class ChannelOpen(Method):
    out_of_band: ShortStr = ""


@method("channel.open-ok", 20, 11, received_by=CLIENT, synchronous=True)
class ChannelOpenOk(Method):
    channel_id: LongStr = b""


@method("channel.resume", 20, 50, received_by=SERVER, responses=("channel.ok",))
class ChannelResume(Method):
    channel_id: LongStr = b""


@method("access.request", 30, 10, received_by=SERVER, synchronous=True, responses=("access.request-ok",))
class AccessRequest(of_0_9_1.AccessRequest):
    pass


@method("access.request-ok", 30, 11, received_by=CLIENT, synchronous=True)
class AccessRequestOk(Method):
    ticket: Short = 0


@method("exchange.declare", 40, 10, received_by=SERVER, synchronous=True, responses=("exchange.declare-ok",))
class ExchangeDeclare(Method):
    ticket: Short = 0
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
    ticket: Short = 0
    exchange: ShortStr = ""
    if_unused: Bit = False
    no_wait: Bit = False


@method("exchange.bound", 40, 22, received_by=SERVER, synchronous=True, responses=("exchange.bound-ok",))
class ExchangeBound(Method):
    """Qpid's extension."""

    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    queue: ShortStr = ""


@method("exchange.bound-ok", 40, 23, received_by=CLIENT, synchronous=True)
class ExchangeBoundOk(Method):
    """Qpid's extension."""

    reply_code: Short = 0
    reply_text: ShortStr = ""


@method("queue.declare", 50, 10, received_by=SERVER, synchronous=True, responses=("queue.declare-ok",))
class QueueDeclare(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    no_wait: Bit = False
    arguments: Table = EMPTY_TABLE


@method("queue.bind", 50, 20, received_by=SERVER, synchronous=True, responses=("queue.bind-ok",))
class QueueBind(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    no_wait: Bit = False
    arguments: Table = EMPTY_TABLE


@method("queue.unbind", 50, 50, received_by=SERVER, synchronous=True, responses=("queue.unbind-ok",))
class QueueUnbind(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    arguments: Table = EMPTY_TABLE


@method("queue.purge", 50, 30, received_by=SERVER, synchronous=True, responses=("queue.purge-ok",))
class QueuePurge(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    no_wait: Bit = False


@method("queue.delete", 50, 40, received_by=SERVER, synchronous=True, responses=("queue.delete-ok",))
class QueueDelete(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    if_unused: Bit = False
    if_empty: Bit = False
    no_wait: Bit = False


@method("basic.consume", 60, 20, received_by=SERVER, synchronous=True, responses=("basic.consume-ok",))
class BasicConsume(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    consumer_tag: ShortStr = ""
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    no_wait: Bit = False
    filter: Table = EMPTY_TABLE


@method("basic.cancel", 60, 30, received_by=SERVER, synchronous=True, responses=("basic.cancel-ok",))
class BasicCancel(Method):
    consumer_tag: ShortStr = ""
    no_wait: Bit = False


@method("basic.cancel-ok", 60, 31, received_by=CLIENT, synchronous=True)
class BasicCancelOk(Method):
    consumer_tag: ShortStr = ""


@method("basic.publish", 60, 40, received_by=SERVER, content=True)
class BasicPublish(Method):
    ticket: Short = 0
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    mandatory: Bit = False
    immediate: Bit = False


@method(
    "basic.get", 60, 70, received_by=SERVER, synchronous=True, responses=("basic.get-ok", "basic.get-empty")
)
class BasicGet(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    no_ack: Bit = False


@method("basic.get-empty", 60, 72, received_by=CLIENT, synchronous=True)
class BasicGetEmpty(Method):
    cluster_id: ShortStr = ""


@method("basic.ack", 60, 80, received_by=SERVER)
class BasicAck(Method):
    delivery_tag: LongLong = 0
    multiple: Bit = False


@method("basic.recover", 60, 100, received_by=SERVER)
class BasicRecover(Method):
    requeue: Bit = False


@method("basic.recover-sync", 60, 102, received_by=SERVER, responses=("basic.recover-sync-ok",))
class BasicRecoverSync(Method):
    """Qpid's extension."""

    requeue: Bit = False


@method("file.qos", 70, 10, received_by=SERVER, synchronous=True, responses=("file.qos-ok",))
class FileQos(BasicQos):
    pass


@method("file.consume", 70, 20, received_by=SERVER, synchronous=True, responses=("file.consume-ok",))
class FileConsume(BasicConsume):
    pass


@method("file.consume-ok", 70, 21, received_by=CLIENT, synchronous=True)
class FileConsumeOk(Method):
    consumer_tag: ShortStr = ""


@method("file.cancel", 70, 30, received_by=SERVER, synchronous=True, responses=("file.cancel-ok",))
class FileCancel(BasicCancel):
    pass


@method("file.cancel-ok", 70, 31, received_by=CLIENT, synchronous=True)
class FileCancelOk(Method):
    consumer_tag: ShortStr = ""


@method("file.open", 70, 40, received_by=BOTH, synchronous=True, responses=("file.open-ok",))
class FileOpen(Method):
    identifier: ShortStr = ""
    content_size: LongLong = 0


@method("file.open-ok", 70, 41, received_by=BOTH, synchronous=True, responses=("file.stage",))
class FileOpenOk(Method):
    staged_size: LongLong = 0


@method("file.stage", 70, 50, received_by=BOTH, content=True)
class FileStage(Method):
    pass


@method("file.publish", 70, 60, received_by=SERVER)
class FilePublish(BasicPublish):
    identifier: ShortStr = ""


@method("file.return", 70, 70, received_by=CLIENT, content=True)
class FileReturn(BasicReturn):
    pass


@method("file.deliver", 70, 80, received_by=CLIENT)
class FileDeliver(BasicDeliver):
    identifier: ShortStr = ""


@method("file.ack", 70, 90, received_by=SERVER)
class FileAck(BasicAck):
    pass


@method("file.reject", 70, 100, received_by=SERVER)
class FileReject(BasicReject):
    pass


@method("stream.qos", 80, 10, received_by=SERVER, synchronous=True, responses=("stream.qos-ok",))
class StreamQos(Method):
    prefetch_size: Long = 0
    prefetch_count: Short = 0
    consume_rate: Long = 0
    global_: Bit = False


@method("stream.consume", 80, 20, received_by=SERVER, synchronous=True, responses=("stream.consume-ok",))
class StreamConsume(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    consumer_tag: ShortStr = ""
    no_local: Bit = False
    exclusive: Bit = False
    no_wait: Bit = False
    filter: Table = EMPTY_TABLE


@method("stream.consume-ok", 80, 21, received_by=CLIENT, synchronous=True)
class StreamConsumeOk(Method):
    consumer_tag: ShortStr = ""


@method("stream.cancel", 80, 30, received_by=SERVER, synchronous=True, responses=("stream.cancel-ok",))
class StreamCancel(BasicCancel):
    pass


@method("stream.cancel-ok", 80, 31, received_by=CLIENT, synchronous=True)
class StreamCancelOk(Method):
    consumer_tag: ShortStr = ""


@method("stream.publish", 80, 40, received_by=SERVER, content=True)
class StreamPublish(BasicPublish):
    pass


@method("stream.return", 80, 50, received_by=CLIENT, content=True)
class StreamReturn(BasicReturn):
    pass


@method("stream.deliver", 80, 60, received_by=CLIENT, content=True)
class StreamDeliver(Method):
    consumer_tag: ShortStr = ""
    delivery_tag: LongLong = 0
    exchange: ShortStr = ""
    queue: ShortStr = ""


@method("dtx.start", 100, 20, received_by=SERVER, synchronous=True, responses=("dtx.start-ok",))
class DtxStart(Method):
    dtx_identifier: ShortStr = ""


@method("tunnel.request", 110, 10, received_by=SERVER, content=True)
class TunnelRequest(Method):
    meta_data: Table = EMPTY_TABLE


@method("message.transfer", 120, 10, received_by=BOTH, responses=("message.ok", "message.reject"))
class MessageTransfer(Method):
    ticket: Short = 0
    destination: ShortStr = ""
    redelivered: Bit = False
    immediate: Bit = False
    ttl: LongLong = 0
    priority: Octet = 0
    timestamp: Timestamp = 0
    delivery_mode: Octet = 0
    expiration: Timestamp = 0
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    message_id: ShortStr = ""
    correlation_id: ShortStr = ""
    reply_to: ShortStr = ""
    content_type: ShortStr = ""
    content_encoding: ShortStr = ""
    user_id: ShortStr = ""
    app_id: ShortStr = ""
    transaction_id: ShortStr = ""
    security_token: LongStr = b""
    application_headers: Table = EMPTY_TABLE
    body: TransferBody = NO_BODY


@method("message.consume", 120, 20, received_by=SERVER, responses=("message.ok",))
class MessageConsume(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    destination: ShortStr = ""
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    filter: Table = EMPTY_TABLE


@method("message.cancel", 120, 30, received_by=SERVER, responses=("message.ok",))
class MessageCancel(Method):
    destination: ShortStr = ""


@method("message.get", 120, 40, received_by=SERVER, responses=("message.ok", "message.empty"))
class MessageGet(Method):
    ticket: Short = 0
    queue: ShortStr = ""
    destination: ShortStr = ""
    no_ack: Bit = False


@method("message.recover", 120, 50, received_by=SERVER, responses=("message.ok",))
class MessageRecover(Method):
    requeue: Bit = False


@method("message.open", 120, 60, received_by=BOTH, responses=("message.ok",))
class MessageOpen(Method):
    reference: LongStr = b""


@method("message.close", 120, 70, received_by=BOTH, responses=("message.ok",))
class MessageClose(Method):
    reference: LongStr = b""


@method("message.append", 120, 80, received_by=BOTH, responses=("message.ok",))
class MessageAppend(Method):
    reference: LongStr = b""
    octets: LongStr = b""


@method("message.checkpoint", 120, 90, received_by=BOTH, responses=("message.ok",))
class MessageCheckpoint(Method):
    reference: LongStr = b""
    identifier: ShortStr = ""


@method("message.resume", 120, 100, received_by=BOTH, responses=("message.offset",))
class MessageResume(MessageCheckpoint):
    pass


@method("message.qos", 120, 110, received_by=SERVER, responses=("message.ok",))
class MessageQos(BasicQos):
    pass


@method("message.reject", 120, 520, received_by=BOTH)
class MessageReject(Method):
    code: Short = 0
    text: ShortStr = ""


@method("message.offset", 120, 530, received_by=BOTH)
class MessageOffset(Method):
    value: LongLong = 0


ChannelPing: Final = bare_method(
    "channel.ping", 20, 60, received_by=BOTH, synchronous=False, responses=("channel.ok",)
)
ChannelPong: Final = bare_method(
    "channel.pong", 20, 70, received_by=BOTH, synchronous=False, responses=("channel.ok",)
)
ChannelOk: Final = bare_method("channel.ok", 20, 80, received_by=BOTH, synchronous=False)
BasicRecoverSyncOk: Final = bare_method(
    "basic.recover-sync-ok", 60, 101, received_by=CLIENT, note="Qpid's extension."
)
FileQosOk: Final = bare_method("file.qos-ok", 70, 11, received_by=CLIENT)
StreamQosOk: Final = bare_method("stream.qos-ok", 80, 11, received_by=CLIENT)
DtxSelect: Final = bare_method("dtx.select", 100, 10, received_by=SERVER, responses=("dtx.select-ok",))
DtxSelectOk: Final = bare_method("dtx.select-ok", 100, 11, received_by=CLIENT)
DtxStartOk: Final = bare_method("dtx.start-ok", 100, 21, received_by=CLIENT)
MessageOk: Final = bare_method("message.ok", 120, 500, received_by=BOTH, synchronous=False)
MessageEmpty: Final = bare_method("message.empty", 120, 510, received_by=BOTH, synchronous=False)

#: class id << 16 | method id -> class
METHODS: Final[dict[int, type[Method]]] = dict(sorted(methods_by_index(globals()).items()))
#: What 0-9-1 and RabbitMQ add to them. What both have has the same bytes; a test holds that. Method 100 of
#: class basic has two names, `recover` in 0-9 and `recover-async` in 0-9-1.
ADDED: Final[dict[int, type[Method]]] = {
    index: each for index, each in of_0_9_1.METHODS.items() if index not in METHODS
}
RABBITMQ_METHODS: Final[dict[int, type[Method]]] = {**METHODS, **ADDED}
