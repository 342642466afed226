"""The commands of AMQP 0-10; spec/amqp-0-10.toml describes them."""

from __future__ import annotations

from typing import Annotated, Final

from fakeamqp.protocols.amqp_0_10.codec.constants import (
    AcceptMode,
    AcquireMode,
    CreditUnit,
    ErrorCode,
    FlowMode,
    RejectCode,
    ReturnCode,
)
from fakeamqp.protocols.amqp_0_10.codec.errors import UnknownCommand
from fakeamqp.protocols.amqp_0_10.codec.packed import (
    AnyMap,
    AnyStruct32,
    Bit,
    Command,
    Required,
    SequenceNo,
    Str8,
    Str16,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Xid

# --- execution (3) --------------------------------------------------------------------------------------


class ExecutionSync(Command, name="execution.sync", code=(3, 1), received_by="server client"):
    pass


class ExecutionResult(Command, name="execution.result", code=(3, 2), received_by="server client"):
    command_id: Required[SequenceNo] = None
    value: AnyStruct32 = None


class ExecutionException(Command, name="execution.exception", code=(3, 3), received_by="client server"):
    error_code: Required[Annotated[Uint16, ErrorCode]] = None
    command_id: SequenceNo = None
    class_code: Uint8 = None
    command_code: Uint8 = None
    field_index: Uint8 = None
    description: Str16 = None
    error_info: AnyMap = None


# --- message (4) ----------------------------------------------------------------------------------------


class MessageTransfer(
    Command,
    name="message.transfer",
    code=(4, 1),
    received_by="server client",
    header="message.delivery-properties message.fragment-properties message.message-properties",
):
    destination: Str8 = None
    accept_mode: Required[Annotated[Uint8, AcceptMode]] = None
    acquire_mode: Required[Annotated[Uint8, AcquireMode]] = None


class MessageAccept(Command, name="message.accept", code=(4, 2), received_by="server client"):
    transfers: Required[SequenceSet | None] = None


class MessageReject(Command, name="message.reject", code=(4, 3), received_by="server client"):
    transfers: Required[SequenceSet | None] = None
    code: Required[Annotated[Uint16, RejectCode]] = None
    text: Str8 = None


class MessageRelease(Command, name="message.release", code=(4, 4), received_by="server client"):
    transfers: Required[SequenceSet | None] = None
    set_redelivered: Bit = False


class MessageAcquire(
    Command, name="message.acquire", code=(4, 5), received_by="server", result="message.acquired"
):
    transfers: Required[SequenceSet | None] = None


class MessageResume(
    Command,
    name="message.resume",
    code=(4, 6),
    received_by="server client",
    result="message.message-resume-result",
):
    destination: Str8 = None
    resume_id: Required[Str16] = None


class MessageSubscribe(Command, name="message.subscribe", code=(4, 7), received_by="server"):
    queue: Required[Str8] = None
    destination: Str8 = None
    accept_mode: Required[Annotated[Uint8, AcceptMode]] = None
    acquire_mode: Required[Annotated[Uint8, AcquireMode]] = None
    exclusive: Bit = False
    resume_id: Str16 = None
    resume_ttl: Uint64 = None
    arguments: AnyMap = None


class MessageCancel(Command, name="message.cancel", code=(4, 8), received_by="server"):
    destination: Required[Str8] = None


class MessageSetFlowMode(Command, name="message.set-flow-mode", code=(4, 9), received_by="server client"):
    destination: Str8 = None
    flow_mode: Required[Annotated[Uint8, FlowMode]] = None


class MessageFlow(Command, name="message.flow", code=(4, 10), received_by="server client"):
    destination: Str8 = None
    unit: Required[Annotated[Uint8, CreditUnit]] = None
    value: Uint32 = None


class MessageFlush(Command, name="message.flush", code=(4, 11), received_by="server"):
    destination: Str8 = None


class MessageStop(Command, name="message.stop", code=(4, 12), received_by="server client"):
    destination: Str8 = None


# --- tx (5) ---------------------------------------------------------------------------------------------


class TxSelect(Command, name="tx.select", code=(5, 1), received_by="server"):
    pass


class TxCommit(Command, name="tx.commit", code=(5, 2), received_by="server"):
    pass


class TxRollback(Command, name="tx.rollback", code=(5, 3), received_by="server"):
    pass


# --- dtx (6) --------------------------------------------------------------------------------------------


class DtxSelect(Command, name="dtx.select", code=(6, 1), received_by="server"):
    pass


class DtxStart(Command, name="dtx.start", code=(6, 2), received_by="server", result="dtx.xa-result"):
    xid: Required[Xid | None] = None
    join: Bit = False
    resume: Bit = False


class DtxEnd(Command, name="dtx.end", code=(6, 3), received_by="server", result="dtx.xa-result"):
    xid: Required[Xid | None] = None
    fail: Bit = False
    suspend: Bit = False


class DtxCommit(Command, name="dtx.commit", code=(6, 4), received_by="server", result="dtx.xa-result"):
    xid: Required[Xid | None] = None
    one_phase: Bit = False


class DtxForget(Command, name="dtx.forget", code=(6, 5), received_by="server"):
    xid: Required[Xid | None] = None


class DtxGetTimeout(
    Command, name="dtx.get-timeout", code=(6, 6), received_by="server", result="dtx.get-timeout-result"
):
    xid: Required[Xid | None] = None


class DtxPrepare(Command, name="dtx.prepare", code=(6, 7), received_by="server", result="dtx.xa-result"):
    xid: Required[Xid | None] = None


class DtxRecover(Command, name="dtx.recover", code=(6, 8), received_by="server", result="dtx.recover-result"):
    pass


class DtxRollback(Command, name="dtx.rollback", code=(6, 9), received_by="server", result="dtx.xa-result"):
    xid: Required[Xid | None] = None


class DtxSetTimeout(Command, name="dtx.set-timeout", code=(6, 10), received_by="server"):
    xid: Required[Xid | None] = None
    timeout: Required[Uint32] = None


# --- exchange (7) ---------------------------------------------------------------------------------------


class ExchangeDeclare(Command, name="exchange.declare", code=(7, 1), received_by="server"):
    exchange: Required[Str8] = None
    type: Required[Str8] = None
    alternate_exchange: Str8 = None
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    arguments: AnyMap = None


class ExchangeDelete(Command, name="exchange.delete", code=(7, 2), received_by="server"):
    exchange: Required[Str8] = None
    if_unused: Bit = False


class ExchangeQuery(
    Command, name="exchange.query", code=(7, 3), received_by="server", result="exchange.exchange-query-result"
):
    name: Str8 = None


class ExchangeBind(Command, name="exchange.bind", code=(7, 4), received_by="server"):
    queue: Required[Str8] = None
    exchange: Required[Str8] = None
    binding_key: Required[Str8] = None
    arguments: AnyMap = None


class ExchangeUnbind(Command, name="exchange.unbind", code=(7, 5), received_by="server"):
    queue: Required[Str8] = None
    exchange: Required[Str8] = None
    binding_key: Required[Str8] = None


class ExchangeBound(
    Command, name="exchange.bound", code=(7, 6), received_by="server", result="exchange.exchange-bound-result"
):
    exchange: Str8 = None
    queue: Required[Str8] = None
    binding_key: Str8 = None
    arguments: AnyMap = None


# --- queue (8) ------------------------------------------------------------------------------------------


class QueueDeclare(Command, name="queue.declare", code=(8, 1), received_by="server"):
    queue: Required[Str8] = None
    alternate_exchange: Str8 = None
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    arguments: AnyMap = None


class QueueDelete(Command, name="queue.delete", code=(8, 2), received_by="server"):
    queue: Required[Str8] = None
    if_unused: Bit = False
    if_empty: Bit = False


class QueuePurge(Command, name="queue.purge", code=(8, 3), received_by="server"):
    queue: Required[Str8] = None


class QueueQuery(
    Command, name="queue.query", code=(8, 4), received_by="server", result="queue.queue-query-result"
):
    queue: Required[Str8] = None


# --- file (9) -------------------------------------------------------------------------------------------


class FileQos(Command, name="file.qos", code=(9, 1), received_by="server", responses="file.qos-ok"):
    prefetch_size: Uint32 = None
    prefetch_count: Uint16 = None
    global_: Bit = False


class FileQosOk(Command, name="file.qos-ok", code=(9, 2), received_by="client"):
    pass


class FileConsume(
    Command, name="file.consume", code=(9, 3), received_by="server", responses="file.consume-ok"
):
    queue: Str8 = None
    consumer_tag: Str8 = None
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    nowait: Bit = False
    arguments: AnyMap = None


class FileConsumeOk(Command, name="file.consume-ok", code=(9, 4), received_by="client"):
    consumer_tag: Str8 = None


class FileCancel(Command, name="file.cancel", code=(9, 5), received_by="server"):
    consumer_tag: Str8 = None


class FileOpen(Command, name="file.open", code=(9, 6), received_by="server client", responses="file.open-ok"):
    identifier: Str8 = None
    content_size: Uint64 = None


class FileOpenOk(
    Command, name="file.open-ok", code=(9, 7), received_by="server client", responses="file.stage"
):
    staged_size: Uint64 = None


class FileStage(
    Command, name="file.stage", code=(9, 8), received_by="server client", header="file.file-properties"
):
    pass


class FilePublish(Command, name="file.publish", code=(9, 9), received_by="server"):
    exchange: Str8 = None
    routing_key: Str8 = None
    mandatory: Bit = False
    immediate: Bit = False
    identifier: Str8 = None


class FileReturn(
    Command, name="file.return", code=(9, 10), received_by="client", header="file.file-properties"
):
    reply_code: Annotated[Uint16, ReturnCode] = None
    reply_text: Str8 = None
    exchange: Str8 = None
    routing_key: Str8 = None


class FileDeliver(Command, name="file.deliver", code=(9, 11), received_by="client"):
    consumer_tag: Str8 = None
    delivery_tag: Uint64 = None
    redelivered: Bit = False
    exchange: Str8 = None
    routing_key: Str8 = None
    identifier: Str8 = None


class FileAck(Command, name="file.ack", code=(9, 12), received_by="server"):
    delivery_tag: Uint64 = None
    multiple: Bit = False


class FileReject(Command, name="file.reject", code=(9, 13), received_by="server"):
    delivery_tag: Uint64 = None
    requeue: Bit = False


# --- stream (10) ----------------------------------------------------------------------------------------


class StreamQos(Command, name="stream.qos", code=(10, 1), received_by="server", responses="stream.qos-ok"):
    prefetch_size: Uint32 = None
    prefetch_count: Uint16 = None
    consume_rate: Uint32 = None
    global_: Bit = False


class StreamQosOk(Command, name="stream.qos-ok", code=(10, 2), received_by="client"):
    pass


class StreamConsume(
    Command, name="stream.consume", code=(10, 3), received_by="server", responses="stream.consume-ok"
):
    queue: Str8 = None
    consumer_tag: Str8 = None
    no_local: Bit = False
    exclusive: Bit = False
    nowait: Bit = False
    arguments: AnyMap = None


class StreamConsumeOk(Command, name="stream.consume-ok", code=(10, 4), received_by="client"):
    consumer_tag: Str8 = None


class StreamCancel(Command, name="stream.cancel", code=(10, 5), received_by="server"):
    consumer_tag: Str8 = None


class StreamPublish(
    Command, name="stream.publish", code=(10, 6), received_by="server", header="stream.stream-properties"
):
    exchange: Str8 = None
    routing_key: Str8 = None
    mandatory: Bit = False
    immediate: Bit = False


class StreamReturn(
    Command, name="stream.return", code=(10, 7), received_by="client", header="stream.stream-properties"
):
    reply_code: Annotated[Uint16, ReturnCode] = None
    reply_text: Str8 = None
    exchange: Str8 = None
    routing_key: Str8 = None


class StreamDeliver(
    Command, name="stream.deliver", code=(10, 8), received_by="client", header="stream.stream-properties"
):
    consumer_tag: Str8 = None
    delivery_tag: Uint64 = None
    exchange: Str8 = None
    queue: Required[Str8] = None


#: class << 8 | code -> command
COMMANDS: Final[dict[int, type[Command]]] = {each.INDEX: each for each in Command.__subclasses__()}


def decode(data: bytes) -> tuple[Command, bool]:
    """Read a whole command segment: the command, and whether its session header says sync.

    Raises UnknownCommand, and what `Packed.decode` raises.
    """
    command = COMMANDS.get(int.from_bytes(data[:2], "big"))
    if command is None or len(data) < 2:
        raise UnknownCommand(f"there is no command with the code 0x{data[:2].hex()}")
    return command.decode(data), data[3] == 1
