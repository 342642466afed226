"""What faults know of 0-9: a method may be inside a request or a response, a message inside a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_0_9.codec.constants import (
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_REQUEST,
    FRAME_RESPONSE,
    REPLY_NAMES,
)
from fakeamqp.protocols.amqp_0_9.codec.methods import BasicRecover, ChannelPing, ChannelPong, MessageTransfer
from fakeamqp.protocols.amqp_0_9.codec.requests import encode_request
from fakeamqp.protocols.amqp_0_9.faults.frame_groups import IN_PROPERTIES, TRANSFER, MethodGroup09
from fakeamqp.protocols.amqp_0_9_1.faults.adapter import Adapter091, method_info
from fakeamqp.protocols.amqp_0_9_1.faults.frame_groups import PUBLISH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.adapters import Framing
    from fakeamqp.faults.fault_port import FaultPort

__all__ = ["Adapter09"]

_MESSAGE = 120
_FIRST_RESPONSE = 500
"""Methods of class message with this id and above are responses."""
_NUMBERS = 16
"""The bytes of a request before its reserved bytes or its method."""


class Adapter09(Adapter091):
    """0-9 or 0-8; see `FaultAdapter`."""

    wrapper_prefix: bytes = bytes(4)

    def __init__(
        self,
        name: str,
        framing: Framing,
        group: type[MethodGroup09],
        confirms: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(name, framing, group, frozenset((PUBLISH, TRANSFER)), confirms, REPLY_NAMES)
        if TRANSFER in self.kinds:
            self.kinds[TRANSFER] = method_info(MessageTransfer, hidden=IN_PROPERTIES, has_content=True)
        if confirms:
            # 0-9 and 0-9-1 call different methods basic.recover: 60.100 without and 60.110 with an answer.
            both = self.kinds[BasicRecover.NAME].prefixes | method_info(BasicRecover).prefixes
            self.kinds[BasicRecover.NAME] = method_info(BasicRecover)._replace(prefixes=both)

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """Requests of class message are sent inside a request frame."""
        asks = what.CLASS_ID == _MESSAGE and what.METHOD_ID < _FIRST_RESPONSE
        if not asks and not isinstance(what, (ChannelPing, ChannelPong)):
            return super().encode(what, port, channel, body, properties)
        numbers = port.next_request(channel)  # type: ignore[attr-defined]
        payload = encode_request(numbers._replace(method=what.encode()))
        group = self.group(port, "sent", channel, [(FRAME_REQUEST, payload)])
        return group.replace(properties=dict(properties), body=body).data

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        """Methods may be inside requests and responses."""
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
            if ids in prefixes:
                return True
        return False
