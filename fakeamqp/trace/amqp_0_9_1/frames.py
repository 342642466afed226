"""Frames of 0-9-1 in words. Whatever the octets are, there is a line for them."""

from __future__ import annotations

from typing import Any

from fakeamqp.trace.amqp_0_9_1.secrets import SECRET_FIELDS, SECRET_METHODS
from fakeamqp.trace.parts import Cut
from fakeamqp.trace.words import one_line, short
from fakeamqp.wire.amqp_0_9_1.constants import CLASS_NAMES, METHOD_NAMES
from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties
from fakeamqp.wire.amqp_0_9_x.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
)
from fakeamqp.wire.amqp_0_9_x.method import Method
from fakeamqp.wire.amqp_0_9_x.tables import PUBLISHED, RABBITMQ
from fakeamqp.wire.errors import WireError

__all__ = ["decode_header", "decode_method", "describe", "frame_name"]

_GRAMMARS = (RABBITMQ, PUBLISHED)
_WHO = ("connection_name", "product", "version", "platform")


def frame_name(frame_type: int, payload: bytes) -> str:
    """What kind of frame it is: the method's name, or "content header", "content body", "heartbeat"."""
    if frame_type == FRAME_METHOD:
        if len(payload) < 4:
            return "malformed method"
        index = int.from_bytes(payload[:4], "big")
        return METHOD_NAMES.get(index) or f"unknown method {index >> 16}.{index & 0xFFFF}"
    names = {FRAME_CONTENT_HEADER: "content header", FRAME_BODY: "content body", FRAME_HEARTBEAT: "heartbeat"}
    return names.get(frame_type) or f"unknown frame type {frame_type}"


def decode_method(payload: bytes) -> Method | None:
    """The method in a method frame, or None where there is none to be read."""
    kind = METHODS.get(int.from_bytes(payload[:4], "big"))
    return None if kind is None else _read(lambda grammar: kind.decode(payload, grammar))


def decode_header(payload: bytes) -> tuple[int, BasicProperties] | None:
    """Body size and properties in a content header frame, or None where they cannot be read."""
    if len(payload) < CONTENT_HEADER.size + 2:
        return None
    properties = _read(lambda grammar: BasicProperties.decode(payload, CONTENT_HEADER.size, grammar))
    return None if properties is None else (CONTENT_HEADER.unpack_from(payload)[2], properties)


def describe(frame_type: int, payload: bytes) -> str:
    """The frame in one line."""
    name = frame_name(frame_type, payload)
    if frame_type == FRAME_METHOD and len(payload) >= 4:
        method = decode_method(payload)
        words = None if method is None else _fields(method)
    elif frame_type == FRAME_CONTENT_HEADER:
        header = decode_header(payload)
        words = None if header is None else [f"body_size={header[0]}", *_fields(header[1])]
        class_id = int.from_bytes(payload[:2], "big")
        if words is not None and CLASS_NAMES.get(class_id) != "basic":
            words.insert(0, f"class_id={class_id}")
    elif frame_type == FRAME_BODY:
        words = [short(payload)]
    else:
        words = [] if not payload and frame_type == FRAME_HEARTBEAT else None
    if words is None:
        return f"{name}: {_why_not(frame_type, payload)}"
    return " ".join((name, *words))


def _read(decode: Any) -> Any:
    """What `decode` makes of the first grammar that it can be read with."""
    for grammar in _GRAMMARS:
        try:
            return decode(grammar)
        except WireError:
            continue
    return None


def _why_not(frame_type: int, payload: bytes) -> str:
    """Why a frame cannot be read, and what it holds."""
    if isinstance(payload, Cut):
        return f"too long to be kept whole ({payload.size} octets)"
    if int.from_bytes(payload[:4], "big") in SECRET_METHODS:
        # Why would depend on what is hidden.
        return f"malformed ({len(payload)} octets)"
    reason = "cannot be read"
    try:
        if frame_type == FRAME_METHOD and len(payload) >= 4:
            METHODS[int.from_bytes(payload[:4], "big")].decode(payload, RABBITMQ)
        elif frame_type == FRAME_CONTENT_HEADER and len(payload) >= CONTENT_HEADER.size:
            BasicProperties.decode(payload, CONTENT_HEADER.size, RABBITMQ)
    except WireError as problem:
        reason = f"malformed: {one_line(str(problem), 160)}"
    except KeyError:
        pass
    return f"{reason} ({len(payload)} octets: {payload[:24].hex()}{'...' if len(payload) > 24 else ''})"


def _fields(record: Method | BasicProperties) -> list[str]:
    """The fields worth showing: not the reserved ones, not the flags that are off, not what is absent."""
    words = []
    values = {name: getattr(record, name) for name, _ in record.LAYOUT}
    if "reply_code" in values and "class_id" in values:
        index = values.pop("class_id") << 16 | values.pop("method_id")
        if index:
            values["method"] = METHOD_NAMES.get(index) or f"{index >> 16}.{index & 0xFFFF}"
    for name, value in values.items():
        if name.startswith("reserved_") or value is None or value is False or value == {}:
            continue
        name = name.rstrip("_")
        if value is True:
            words.append(name)
        elif name in SECRET_FIELDS:
            words.append(f"{name}=({len(value)} octets)")
        elif name == "method":
            words.append(f"method={value}")
        elif name == "reply_text":
            words.append(f"reply_text={value!r}")
        elif name in ("client_properties", "server_properties"):
            words.append(f"{name}={short({key: value[key] for key in _WHO if key in value})}")
        elif isinstance(value, bytes):
            words.append(f"{name}={short(value.decode('utf-8', 'surrogateescape'))}")
        else:
            words.append(f"{name}={short(value)}")
    return words
