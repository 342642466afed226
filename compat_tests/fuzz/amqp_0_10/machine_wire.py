"""A client of 0-10 that may get any part of what the broker sends, and knows what it has.

A `Reader` cuts the bytes of one transport into controls and commands. What has come of a command when the
transport breaks off is kept, and goes on where the broker says so (session.command-point/nonzero-offset).
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from fakeamqp.protocols.amqp_0_10.codec import controls as c
from fakeamqp.protocols.amqp_0_10.codec.constants import SegmentType
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, HEADER_SIZE, Assembler, Assembly
from fakeamqp.protocols.amqp_0_10.codec.serial import successor
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Struct, encode_header

__all__ = ["Event", "Part", "Reader", "Stream", "payload_of", "segments_of"]


def segments_of(
    command: Command, header: Iterable[Struct] | None = None, body: bytes | None = None
) -> list[tuple[int, bytes]]:
    """The segments of a command and its content."""
    found: list[tuple[int, bytes]] = [(SegmentType.COMMAND, command.encode(False))]
    if header is not None:
        found.append((SegmentType.HEADER, encode_header(header)))
    if body is not None:
        found.append((SegmentType.BODY, body))
    return found


def payload_of(frames: bytes) -> int:
    """How many bytes of a command have come with these frames, the last of which may be cut off."""
    total = position = 0
    while len(frames) - position >= HEADER_SIZE:
        size = FRAME_HEADER.unpack_from(frames, position)[2]
        if position + size > len(frames):
            break
        total += size - HEADER_SIZE
        position += size
    return total


@dataclass(frozen=True)
class Event:
    """What has come: a control, or a command with its id."""

    channel: int
    control: Any = None
    id: int = 0
    assembly: Assembly | None = None


@dataclass
class Part:
    """The beginning of a command."""

    id: int
    assembler: Assembler


@dataclass
class Stream:
    """The broker's commands on one channel."""

    assembler: Assembler = field(default_factory=Assembler)
    next_id: int | None = None


class Reader:
    """One transport. `largest` is the size that frames may have."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self.streams: dict[int, Stream] = {}
        self._octets = b""

    def resume(self, channel: int, part: Part | None) -> None:
        """A session is about to be attached to a channel; so much of a command has come elsewhere."""
        self.streams[channel] = Stream()
        if part is not None:
            self.streams[channel] = Stream(part.assembler, part.id)

    def copy(self) -> Reader:
        """Another one that has read as much."""
        return deepcopy(self)

    def parts(self) -> dict[int, Part]:
        """What has come of commands, by channel."""
        return {
            channel: Part(stream.next_id, stream.assembler)
            for channel, stream in self.streams.items()
            if stream.next_id is not None and stream.assembler.received
        }

    def read(self, octets: bytes) -> list[Event]:
        """Cut what has come."""
        data = self._octets + octets
        found: list[Event] = []
        position = 0
        if data.startswith(b"AMQP"):
            position = 8
        while len(data) - position >= HEADER_SIZE:
            flags, kind, size, reserved, track, channel, reserved_2 = FRAME_HEADER.unpack_from(data, position)
            assert (reserved, reserved_2) == (0, 0) and track == (kind != 0), "a frame is well formed"
            assert size <= self.largest, "a frame is no larger than was agreed"
            if position + size > len(data):
                break
            payload = data[position + HEADER_SIZE : position + size]
            position += size
            if kind == SegmentType.CONTROL:
                control = c.decode(payload)
                if isinstance(control, c.SessionCommandPoint):
                    self._point(self.streams[channel], control.command_id or 0, control.command_offset or 0)
                found.append(Event(channel, control))
                continue
            stream = self.streams[channel]
            assert stream.next_id is not None, "a command point comes before the first command"
            assembly = stream.assembler.add(flags, kind, payload)
            if assembly is not None:
                found.append(Event(channel, None, stream.next_id, assembly))
                stream.next_id = successor(stream.next_id)
        self._octets = data[position:]
        return found

    @staticmethod
    def _point(stream: Stream, command_id: int, offset: int) -> None:
        if offset:
            assert stream.next_id == command_id, "the rest of a command comes whose beginning is here"
            assert offset <= stream.assembler.received, "no byte of a command is left out"
            stream.assembler.rewind(offset)
        else:
            stream.assembler.clear()
            stream.next_id = command_id
