"""The text of 0-10 frames. Any bytes have a line.

A segment that is split into several frames, which is rare, is not decoded; only its first frame has the name
of the command.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from fakeamqp.protocols.amqp_0_10.codec import commands, constants, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import FIRST_FRAME, LAST_FRAME
from fakeamqp.protocols.amqp_0_10.codec.packed import Packed
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.dialect.framing import BODY, COMMAND, CONTROL, HEADER, OFF_TRACK, TYPE_MASK
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.trace.rendering import one_line, short
from fakeamqp.trace.truncation import Truncated

__all__ = [
    "SECRET_FIELDS",
    "decode",
    "describe",
    "frame_name",
    "kind_of",
    "ranges",
    "read_structs",
    "word",
]

SECRET_FIELDS = frozenset(("response", "challenge"))
"""Fields of controls that are never shown."""
_WHO = ("product", "version", "platform", "qpid.client_process")
_TABLES: dict[int, dict[int, type[Any]]] = {CONTROL: controls.CONTROLS, COMMAND: commands.COMMANDS}
_WORDS = {CONTROL: "control", COMMAND: "command", HEADER: "header", BODY: "body"}
_VALUES: dict[str, type[IntEnum]] = {
    "accept_mode": constants.AcceptMode,
    "acquire_mode": constants.AcquireMode,
    "delivery_mode": constants.DeliveryMode,
    "error_code": constants.ErrorCode,
    "flow_mode": constants.FlowMode,
    "status": constants.XaStatus,
    "unit": constants.CreditUnit,
    "session.detached.code": constants.DetachCode,
    "message.reject.code": constants.RejectCode,
    "connection.close.reply_code": constants.CloseCode,
}
"""Fields whose numbers have names, by the name of the field, or of the method and the field."""


def kind_of(kind: int, payload: bytes) -> type[Any] | None:
    """The control or command whose first frame this is."""
    if not kind >> 8 & FIRST_FRAME:
        return None
    return _TABLES.get(kind & TYPE_MASK, {}).get(int.from_bytes(payload[:2], "big"))


def frame_name(kind: int, payload: bytes) -> str:
    """The name of the control or command, or "header", "body"."""
    segment_type = kind & TYPE_MASK
    word = _WORDS.get(segment_type)
    if word is None:
        return f"unknown segment type {segment_type}"
    if segment_type not in _TABLES:
        return word
    if not kind >> 8 & FIRST_FRAME:
        return f"{word}, continued"
    if len(payload) < 2:
        return f"malformed {word}"
    found = kind_of(kind, payload)
    return f"unknown {word} {payload[0]}.{payload[1]}" if found is None else str(found.NAME)


def decode(kind: int, payload: bytes) -> tuple[Any, bool] | None:
    """The control or command in a frame, and its sync flag; None if it cannot be decoded."""
    if kind_of(kind, payload) is None or not kind >> 8 & LAST_FRAME:
        return None
    try:
        if kind & TYPE_MASK == CONTROL:
            return controls.decode(payload), False
        return commands.decode(payload)
    except WireError:
        return None


def read_structs(kind: int, payload: bytes) -> tuple[Any, ...] | None:
    """The structs in a frame with a whole header segment; None if they cannot be decoded."""
    flags = kind >> 8
    if kind & TYPE_MASK != HEADER or not (flags & FIRST_FRAME and flags & LAST_FRAME):
        return None
    try:
        return structs.decode_header(payload)
    except WireError:
        return None


def describe(kind: int, payload: bytes) -> str:
    """The frame in one line."""
    name = frame_name(kind, payload)
    segment_type = kind & TYPE_MASK
    words: list[str] | None = None
    if segment_type in _TABLES:
        read = decode(kind, payload)
        if read is not None:
            words = [*_fields(read[0]), *(["sync"] if read[1] else [])]
    elif segment_type == HEADER:
        found = read_structs(kind, payload)
        if found is not None:
            words = [f"{_struct_name(each)}({', '.join(_fields(each))})" for each in found]
    elif segment_type == BODY:
        words = [short(payload)]
    if words is None:
        return f"{name}: {_why_not(kind, payload)}"
    if kind & OFF_TRACK:
        words.append("(on the wrong track)")
    return " ".join((name, *words))


def _why_not(kind: int, payload: bytes) -> str:
    """Why a frame cannot be decoded, and its first bytes."""
    size = f"{len(payload)} bytes"
    if isinstance(payload, Truncated):
        return f"too long to be kept whole ({payload.size} bytes)"
    if kind & TYPE_MASK in _WORDS and not _whole(kind):
        return f"a part of its segment ({size})"
    found = kind_of(kind, payload)
    if found is not None and SECRET_FIELDS & {name for name, _ in found.FIELDS}:
        # The reason would depend on hidden bytes.
        return f"malformed ({size})"
    reason = "cannot be read"
    try:
        if kind & TYPE_MASK == CONTROL and found is not None:
            controls.decode(payload)
        elif kind & TYPE_MASK == COMMAND and found is not None:
            commands.decode(payload)
        elif kind & TYPE_MASK == HEADER:
            structs.decode_header(payload)
    except WireError as problem:
        reason = f"malformed: {one_line(str(problem), 160)}"
    return f"{reason} ({size}: {payload[:24].hex()}{'...' if len(payload) > 24 else ''})"


def _whole(kind: int) -> bool:
    flags = kind >> 8
    return bool(flags & FIRST_FRAME and flags & LAST_FRAME)


def _struct_name(struct: Any) -> str:
    """Without its class and the suffix "-properties"."""
    name = getattr(struct, "NAME", "")
    return name.rpartition(".")[2].removesuffix("-properties") or "unknown struct"


def _fields(record: Any) -> list[str]:
    """The fields that are present, without flags that are off."""
    if not isinstance(record, Packed):
        return [short(record)]
    words = []
    for field, _ in record.FIELDS:
        value = getattr(record, field)
        name = field.rstrip("_")
        if value is None or value is False:
            continue
        if value is True:
            words.append(name)
        elif name in SECRET_FIELDS:
            words.append(f"{name}=({len(value)} bytes)")
        elif name in ("client_properties", "server_properties"):
            words.append(f"{name}={short({key: value[key] for key in _WHO if key in value})}")
        else:
            words.append(f"{name}={word(record.NAME, name, value)}")
    return words


def word(owner: str, name: str, value: Any) -> str:
    """A value in short: a number by its name, a set of ids by its ranges."""
    named = _VALUES.get(name) or _VALUES.get(f"{owner}.{name}")
    if named is not None and value in tuple(named):
        known = named(value).name.lower().replace("_", "-")
        return f"{value} {known}" if value >= 100 else known
    if isinstance(value, (SequenceSet, ByteRanges)):
        return one_line(ranges(value), 120) or "none"
    if isinstance(value, Packed):
        return f"{_struct_name(value)}({', '.join(_fields(value))})"
    if isinstance(value, bytes):
        try:
            return short(value.decode())
        except UnicodeDecodeError:
            return short(value)
    return short(value)


def ranges(which: SequenceSet | ByteRanges) -> str:
    """Such as "0-4,7"."""
    return ",".join(str(lower) if lower == upper else f"{lower}-{upper}" for lower, upper in which.ranges)
