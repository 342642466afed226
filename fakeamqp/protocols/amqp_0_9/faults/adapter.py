"""0-9 as rules see it. A method may be in a request or a response, and a message in a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_REQUEST,
    FRAME_RESPONSE,
)
from fakeamqp.protocols.amqp_0_9.codec.methods import ChannelPing, ChannelPong, MessageTransfer
from fakeamqp.protocols.amqp_0_9.codec.requests import encode_request
from fakeamqp.protocols.amqp_0_9.faults.units import IN_PROPERTIES, TRANSFER, MethodUnit09
from fakeamqp.protocols.framed.faults.adapter import FramedAdapter, kind_of
from fakeamqp.protocols.framed.faults.units import PUBLISH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.adapters import Framing
    from fakeamqp.faults.line import FaultPort

__all__ = ["Adapter09"]

_MESSAGE = 120
_FIRST_RESPONSE = 500
"""Methods of class message from this one on answer others."""
_NUMBERS = 16
"""Bytes of a request before its reserved ones or its method."""


class Adapter09(FramedAdapter):
    """0-9, or 0-8; see `FaultAdapter`, which says what each of these is."""

    wrapping = bytes(4)

    def __init__(self, name: str, framing: Framing, unit: type[MethodUnit09]) -> None:
        super().__init__(name, framing, unit, frozenset((PUBLISH, TRANSFER)), frozenset())
        if TRANSFER in self.kinds:
            self.kinds[TRANSFER] = kind_of(MessageTransfer, hidden=IN_PROPERTIES, has_content=True)

    def encode(
        self, what: Any, line: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """A method; what class message asks goes by a request."""
        asks = what.CLASS_ID == _MESSAGE and what.METHOD_ID < _FIRST_RESPONSE
        if not asks and not isinstance(what, (ChannelPing, ChannelPong)):
            return super().encode(what, line, channel, body, properties)
        numbers = line.next_request(channel)  # type: ignore[attr-defined]
        payload = encode_request(numbers._replace(method=what.encode()))
        unit = self.unit(line, "sent", channel, [(FRAME_REQUEST, payload)])
        return unit.changed(properties=dict(properties), body=body).octets

    def begins(self, octets: bytes, telling: frozenset[bytes]) -> bool:
        """Looks at the ids of methods, wherever they are."""
        for kind, _, payload, _ in self.framing.cut(octets):
            if kind == FRAME_METHOD:
                ids = payload[:4]
            elif kind == FRAME_REQUEST:
                start = _NUMBERS + 4 * (payload[_NUMBERS : _NUMBERS + 2] == b"\0\0")
                ids = payload[start : start + 4]
            elif kind == FRAME_RESPONSE:
                ids = payload[_NUMBERS + 4 : _NUMBERS + 8]
            elif kind == FRAME_HEARTBEAT:
                return True
            else:
                continue
            if ids in telling:
                return True
        return False
