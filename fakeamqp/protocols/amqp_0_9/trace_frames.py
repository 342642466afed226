"""Trace frames: passed to the handlers that a test has registered, otherwise discarded (trace/discard)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9.registrations import Registrations, TraceFrame
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError
from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

__all__ = ["receive"]


def receive(connection: Amqp09Connection, number: int, payload: bytes) -> None:
    """Process a trace frame.

    Raises:
        ProtocolError: the frame is not on channel 0 (trace/channel-zero).
        ModelError: a handler failed.
    """
    if connection.state is ConnectionState.CLOSING:
        return
    connection.method_index = 0
    if number != 0:
        raise ProtocolError("frame-error", f"trace frame on channel {number}, not 0")
    for handle in tuple(connection.broker.extensions[Registrations].trace_handlers):
        handle(TraceFrame(connection.name, payload))
