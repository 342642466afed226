"""What valid 0-10 clients send, from the protocol header to the last octet: the raw material of the fuzzer.

Each recording is a list of pieces, the header first and then one frame each, so that mutations can act on
frames as well as on bytes. Ids of transfers are known beforehand: a broker that starts afresh counts from 0.
"""

from __future__ import annotations

import uuid
from typing import Any, TypeAlias

from compat_tests.scripted.amqp_0_10 import segments_of
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Control

__all__ = ["RECORDINGS", "Recording", "before", "command", "control", "frames", "handshake", "transfer"]

Recording: TypeAlias = "list[bytes]"

RICH_HEADERS: dict[str, Any] = {
    "text": "ü",
    "octets": b"\xff\x00",
    "truth": True,
    "number": -1,
    "float": 1.5,
    "uuid": uuid.UUID(int=7),
    "nothing": None,
    "list": [1, "two", [3.0, {"four": 4}]],
    "map": {"inner": {"innermost": []}},
}
RICH_PROPERTIES = structs.MessageProperties(
    content_length=4,
    message_id=uuid.UUID(int=1),
    correlation_id=b"c",
    reply_to=structs.ReplyTo(exchange="amq.direct", routing_key="k"),
    content_type="text/plain",
    user_id=b"guest",
    application_headers=RICH_HEADERS,
)
XID = structs.Xid(format=1, global_id=b"g", branch_id=b"b")


def frames(octets: bytes) -> list[bytes]:
    """Cut bytes into frames."""
    found = []
    while octets:
        size = FRAME_HEADER.unpack_from(octets)[2]
        found.append(octets[:size])
        octets = octets[size:]
    return found


def control(which: Control, channel: int = 0) -> list[bytes]:
    """The frames of a control."""
    return frames(control_frame(channel, which.encode()))


def command(which: Command, channel: int = 0, *, size: int = 65535, **content: Any) -> list[bytes]:
    """The frames of a command, each of at most `size` bytes, and its content."""
    return frames(encode_frames(channel, segments_of(which, **content), size))


def transfer(
    key: str,
    body: bytes | None = b"body",
    *,
    exchange: str = "",
    channel: int = 0,
    size: int = 65535,
    **delivery: Any,
) -> list[bytes]:
    """The frames of one transfer."""
    header = [structs.DeliveryProperties(routing_key=key, **delivery)]
    which = x.MessageTransfer(destination=exchange, accept_mode=1)
    return command(which, channel, header=header, body=body, size=size)


def handshake(heartbeat: int = 0) -> list[bytes]:
    """From the header to an open connection with a session on channel 0."""
    return [
        PROTOCOL_HEADER,
        *control(c.ConnectionStartOk({"product": "p"}, "PLAIN", b"\0guest\0guest", "en_US")),
        *control(c.ConnectionTuneOk(channel_max=100, max_frame_size=65535, heartbeat=heartbeat)),
        *control(c.ConnectionOpen(virtual_host="/")),
    ]


def attach(name: bytes = b"s", channel: int = 0, *, timeout: int | None = None) -> list[bytes]:
    """Attach a session and begin to count at 0."""
    wishes = [] if timeout is None else control(c.SessionRequestTimeout(timeout=timeout), channel)
    point = c.SessionCommandPoint(command_id=0, command_offset=0)
    return [*control(c.SessionAttach(name=name), channel), *wishes, *control(point, channel)]


def _many(*which: Command) -> list[bytes]:
    return [frame for each in which for frame in command(each)]


def _subscribed(destination: str = "d", *, accept_mode: int = 0, acquire_mode: int = 0) -> list[bytes]:
    return _many(
        x.MessageSubscribe(
            queue="q", destination=destination, accept_mode=accept_mode, acquire_mode=acquire_mode
        ),
        x.MessageFlow(destination=destination, unit=1, value=0xFFFFFFFF),
        x.MessageFlow(destination=destination, unit=0, value=10),
    )


def _ids(*ids: int) -> SequenceSet:
    return SequenceSet.of(*ids)


def _messages() -> Recording:
    return [
        *handshake(),
        *attach(),
        *_many(x.QueueDeclare(queue="q", auto_delete=True)),
        *transfer("q"),
        *transfer("q", b"x" * 300, size=64, ttl=10, priority=4, delivery_mode=2),
        *command(
            x.MessageTransfer(accept_mode=1),
            header=[RICH_PROPERTIES, structs.DeliveryProperties(routing_key="q")],
            body=b"rich",
            sync=True,
        ),
        *_subscribed(),
        *_many(x.MessageAccept(transfers=_ids(0)), x.MessageRelease(transfers=_ids(1), set_redelivered=True)),
        *control(c.SessionCompleted(commands=_ids(0, 1), timely_reply=True)),
        *_many(x.MessageReject(transfers=_ids(2)), x.MessageStop(destination="d")),
        *_many(x.MessageFlush(destination="d"), x.MessageCancel(destination="d")),
        *control(c.SessionDetach(name=b"s")),
        *control(c.ConnectionClose(reply_code=200)),
    ]


def _topology() -> Recording:
    return [
        *handshake(heartbeat=60),
        *attach(),
        *_many(
            x.ExchangeDeclare(exchange="alt", type="fanout"),
            x.ExchangeDeclare(exchange="e", type="topic", alternate_exchange="alt", durable=True),
            x.QueueDeclare(queue="q", alternate_exchange="alt", exclusive=True, auto_delete=True),
            x.ExchangeBind(queue="q", exchange="e", binding_key="a.*"),
            x.ExchangeBound(exchange="e", queue="q", binding_key="a.*"),
            x.ExchangeQuery(name="e"),
            x.QueueQuery(queue="q"),
        ),
        *transfer("a.b", exchange="e"),
        *transfer("nowhere", exchange="e"),
        *_many(
            x.QueuePurge(queue="q"),
            x.ExchangeUnbind(queue="q", exchange="e", binding_key="a.*"),
            x.ExchangeDelete(exchange="e"),
            x.QueueDelete(queue="q"),
        ),
        *control(c.ConnectionHeartbeat()),
        *control(c.SessionFlush(expected=True, confirmed=True, completed=True)),
        *control(c.SessionKnownCompleted(commands=_ids(0, 1, 2))),
    ]


def _transactions() -> Recording:
    return [
        *handshake(),
        *attach(timeout=10),
        *_many(x.QueueDeclare(queue="q"), x.TxSelect()),
        *transfer("q"),
        *_many(x.TxCommit(), x.TxRollback()),
        *attach(b"d", 1),
        *command(x.DtxSelect(), 1),
        *command(x.DtxStart(xid=XID), 1),
        *transfer("q", channel=1),
        *command(x.DtxEnd(xid=XID), 1),
        *command(x.DtxPrepare(xid=XID), 1),
        *command(x.DtxRecover(), 1),
        *command(x.DtxSetTimeout(xid=XID, timeout=5), 1),
        *command(x.DtxCommit(xid=XID), 1),
        *control(c.SessionDetach(name=b"d"), 1),
    ]


def _sessions() -> Recording:
    return [
        *handshake(),
        *attach(b"one", 0, timeout=60),
        *attach(b"two", 5),
        *_many(x.QueueDeclare(queue="q")),
        *_subscribed(acquire_mode=1),
        *transfer("q"),
        *_many(x.MessageAcquire(transfers=_ids(0))),
        *control(c.SessionAttach(name=b"two", force=True), 6),
        *control(c.SessionGap(commands=_ids(7, 8, 9))),
        *control(c.SessionExpected(commands=_ids(0))),
        *control(c.SessionConfirmed(commands=_ids(0))),
        *control(c.SessionDetach(name=b"one")),
        *control(c.SessionAttach(name=b"one"), 3),
        *_many(x.ExecutionSync()),
        *control(c.SessionRequestTimeout(timeout=0), 3),
        *control(c.SessionDetach(name=b"one"), 3),
    ]


def _files_and_streams() -> Recording:
    properties = structs.FileProperties(content_type="text/plain", priority=1)
    return [
        *handshake(),
        *attach(),
        *_many(
            x.QueueDeclare(queue="q"),
            x.FileQos(prefetch_count=1),
            x.FileConsume(queue="q", consumer_tag="f"),
            x.FileOpen(identifier="i", content_size=4),
        ),
        *command(x.FileStage(), header=[properties], body=b"file"),
        *_many(
            x.FilePublish(routing_key="q", identifier="i"), x.FileOpenOk(staged_size=0), x.FileCancel("f")
        ),
        *_many(x.StreamQos(consume_rate=100), x.StreamConsume(queue="q", consumer_tag="t")),
        *command(
            x.StreamPublish(routing_key="q"), header=[structs.StreamProperties(priority=1)], body=b"drop"
        ),
        *_many(x.StreamCancel(consumer_tag="t")),
    ]


RECORDINGS: tuple[Recording, ...] = (
    _messages(),
    _topology(),
    _transactions(),
    _sessions(),
    _files_and_streams(),
)


def before() -> dict[str, bytes]:
    """What a client has said, by the point it has come to."""
    opening = handshake()
    return {
        "header": PROTOCOL_HEADER,
        "start-ok": b"".join(opening[:2]),
        "handshake": b"".join(opening),
        "session": b"".join([*opening, *attach()]),
        "transfer": b"".join([*opening, *attach(), *transfer("q", b"body", size=14)[:-1]]),
    }
