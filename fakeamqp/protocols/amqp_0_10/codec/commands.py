"""The commands of AMQP 0-10; spec/amqp-0-10.toml describes them."""

from __future__ import annotations

from typing import Annotated, Final

from fakeamqp.protocols.amqp_0_10.codec import constants
from fakeamqp.protocols.amqp_0_10.codec.errors import SegmentError
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import (
    AnyMap,
    AnyStruct32,
    Bit,
    Command,
    SequenceNo,
    Str8,
    Str16,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Xid,
)


class ExecutionSync(Command, code=(3, 1), received_by="server client"):
    pass


class ExecutionResult(Command, code=(3, 2), received_by="server client"):
    command_id: SequenceNo = None
    value: AnyStruct32 = None


class ExecutionException(Command, code=(3, 3), received_by="client server"):
    error_code: Annotated[Uint16, constants.ErrorCode] = None
    command_id: SequenceNo = None
    class_code: Uint8 = None
    command_code: Uint8 = None
    field_index: Uint8 = None
    description: Str16 = None
    error_info: AnyMap = None


class MessageTransfer(
    Command,
    code=(4, 1),
    received_by="server client",
    header="delivery-properties fragment-properties message-properties",
):
    destination: Str8 = None
    accept_mode: Annotated[Uint8, constants.AcceptMode] = None
    acquire_mode: Annotated[Uint8, constants.AcquireMode] = None


class MessageAccept(Command, code=(4, 2), received_by="server client"):
    transfers: SequenceSet | None = None


class MessageReject(Command, code=(4, 3), received_by="server client"):
    transfers: SequenceSet | None = None
    code: Annotated[Uint16, constants.RejectCode] = None
    text: Str8 = None


class MessageRelease(Command, code=(4, 4), received_by="server client"):
    transfers: SequenceSet | None = None
    set_redelivered: Bit = False


class MessageAcquire(Command, code=(4, 5), result="message.acquired"):
    transfers: SequenceSet | None = None


class MessageResume(
    Command, code=(4, 6), received_by="server client", result="message.message-resume-result"
):
    destination: Str8 = None
    resume_id: Str16 = None


class MessageSubscribe(Command, code=(4, 7)):
    queue: Str8 = None
    destination: Str8 = None
    accept_mode: Annotated[Uint8, constants.AcceptMode] = None
    acquire_mode: Annotated[Uint8, constants.AcquireMode] = None
    exclusive: Bit = False
    resume_id: Str16 = None
    resume_ttl: Uint64 = None
    arguments: AnyMap = None


class MessageCancel(Command, code=(4, 8)):
    destination: Str8 = None


class MessageSetFlowMode(Command, code=(4, 9), received_by="server client"):
    destination: Str8 = None
    flow_mode: Annotated[Uint8, constants.FlowMode] = None


class MessageFlow(Command, code=(4, 10), received_by="server client"):
    destination: Str8 = None
    unit: Annotated[Uint8, constants.CreditUnit] = None
    value: Uint32 = None


class MessageFlush(Command, code=(4, 11)):
    destination: Str8 = None


class MessageStop(Command, code=(4, 12), received_by="server client"):
    destination: Str8 = None


class TxSelect(Command, code=(5, 1)):
    pass


class TxCommit(Command, code=(5, 2)):
    pass


class TxRollback(Command, code=(5, 3)):
    pass


class DtxSelect(Command, code=(6, 1)):
    pass


class DtxStart(Command, code=(6, 2), result="dtx.xa-result"):
    xid: Xid | None = None
    join: Bit = False
    resume: Bit = False


class DtxEnd(Command, code=(6, 3), result="dtx.xa-result"):
    xid: Xid | None = None
    fail: Bit = False
    suspend: Bit = False


class DtxCommit(Command, code=(6, 4), result="dtx.xa-result"):
    xid: Xid | None = None
    one_phase: Bit = False


class DtxForget(Command, code=(6, 5)):
    xid: Xid | None = None


class DtxGetTimeout(Command, code=(6, 6), result="dtx.get-timeout-result"):
    xid: Xid | None = None


class DtxPrepare(Command, code=(6, 7), result="dtx.xa-result"):
    xid: Xid | None = None


class DtxRecover(Command, code=(6, 8), result="dtx.recover-result"):
    pass


class DtxRollback(Command, code=(6, 9), result="dtx.xa-result"):
    xid: Xid | None = None


class DtxSetTimeout(Command, code=(6, 10)):
    xid: Xid | None = None
    timeout: Uint32 = None


class ExchangeDeclare(Command, code=(7, 1)):
    exchange: Str8 = None
    type: Str8 = None
    alternate_exchange: Str8 = None
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    arguments: AnyMap = None


class ExchangeDelete(Command, code=(7, 2)):
    exchange: Str8 = None
    if_unused: Bit = False


class ExchangeQuery(Command, code=(7, 3), result="exchange.exchange-query-result"):
    name: Str8 = None


class ExchangeBind(Command, code=(7, 4)):
    queue: Str8 = None
    exchange: Str8 = None
    binding_key: Str8 = None
    arguments: AnyMap = None


class ExchangeUnbind(Command, code=(7, 5)):
    queue: Str8 = None
    exchange: Str8 = None
    binding_key: Str8 = None


class ExchangeBound(Command, code=(7, 6), result="exchange.exchange-bound-result"):
    exchange: Str8 = None
    queue: Str8 = None
    binding_key: Str8 = None
    arguments: AnyMap = None


class QueueDeclare(Command, code=(8, 1)):
    queue: Str8 = None
    alternate_exchange: Str8 = None
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    arguments: AnyMap = None


class QueueDelete(Command, code=(8, 2)):
    queue: Str8 = None
    if_unused: Bit = False
    if_empty: Bit = False


class QueuePurge(Command, code=(8, 3)):
    queue: Str8 = None


class QueueQuery(Command, code=(8, 4), result="queue.queue-query-result"):
    queue: Str8 = None


class FileQos(Command, code=(9, 1), responses="qos-ok"):
    prefetch_size: Uint32 = None
    prefetch_count: Uint16 = None
    global_: Bit = False


class FileQosOk(Command, code=(9, 2), received_by="client"):
    pass


class FileConsume(Command, code=(9, 3), responses="consume-ok"):
    queue: Str8 = None
    consumer_tag: Str8 = None
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    nowait: Bit = False
    arguments: AnyMap = None


class FileConsumeOk(Command, code=(9, 4), received_by="client"):
    consumer_tag: Str8 = None


class FileCancel(Command, code=(9, 5)):
    consumer_tag: Str8 = None


class FileOpen(Command, code=(9, 6), received_by="server client", responses="open-ok"):
    identifier: Str8 = None
    content_size: Uint64 = None


class FileOpenOk(Command, code=(9, 7), received_by="server client", responses="stage"):
    staged_size: Uint64 = None


class FileStage(Command, code=(9, 8), received_by="server client", header="file-properties"):
    pass


class FilePublish(Command, code=(9, 9)):
    exchange: Str8 = None
    routing_key: Str8 = None
    mandatory: Bit = False
    immediate: Bit = False
    identifier: Str8 = None


class FileReturn(Command, code=(9, 10), received_by="client", header="file-properties"):
    reply_code: Annotated[Uint16, constants.ReturnCode] = None
    reply_text: Str8 = None
    exchange: Str8 = None
    routing_key: Str8 = None


class FileDeliver(Command, code=(9, 11), received_by="client"):
    consumer_tag: Str8 = None
    delivery_tag: Uint64 = None
    redelivered: Bit = False
    exchange: Str8 = None
    routing_key: Str8 = None
    identifier: Str8 = None


class FileAck(Command, code=(9, 12)):
    delivery_tag: Uint64 = None
    multiple: Bit = False


class FileReject(Command, code=(9, 13)):
    delivery_tag: Uint64 = None
    requeue: Bit = False


class StreamQos(Command, code=(10, 1), responses="qos-ok"):
    prefetch_size: Uint32 = None
    prefetch_count: Uint16 = None
    consume_rate: Uint32 = None
    global_: Bit = False


class StreamQosOk(Command, code=(10, 2), received_by="client"):
    pass


class StreamConsume(Command, code=(10, 3), responses="consume-ok"):
    queue: Str8 = None
    consumer_tag: Str8 = None
    no_local: Bit = False
    exclusive: Bit = False
    nowait: Bit = False
    arguments: AnyMap = None


class StreamConsumeOk(Command, code=(10, 4), received_by="client"):
    consumer_tag: Str8 = None


class StreamCancel(Command, code=(10, 5)):
    consumer_tag: Str8 = None


class StreamPublish(Command, code=(10, 6), header="stream-properties"):
    exchange: Str8 = None
    routing_key: Str8 = None
    mandatory: Bit = False
    immediate: Bit = False


class StreamReturn(Command, code=(10, 7), received_by="client", header="stream-properties"):
    reply_code: Annotated[Uint16, constants.ReturnCode] = None
    reply_text: Str8 = None
    exchange: Str8 = None
    routing_key: Str8 = None


class StreamDeliver(Command, code=(10, 8), received_by="client", header="stream-properties"):
    consumer_tag: Str8 = None
    delivery_tag: Uint64 = None
    exchange: Str8 = None
    queue: Str8 = None


#: class << 8 | code -> command
COMMANDS: Final[dict[int, type[Command]]] = {each.INDEX: each for each in Command.__subclasses__()}


def decode(data: bytes) -> tuple[Command, bool]:
    """Read a whole command segment: the command, and whether its session header says sync.

    Raises SegmentError for an unknown one, and what `Packed.decode` raises.
    """
    command = COMMANDS.get(int.from_bytes(data[:2], "big"))
    if command is None or len(data) < 2:
        raise SegmentError(f"there is no command with the code 0x{data[:2].hex()}")
    return command.decode(data), data[3] == 1
