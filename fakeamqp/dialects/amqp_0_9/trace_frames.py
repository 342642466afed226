"""Trace frames: for whoever the test has registered to see them, and otherwise for nobody (trace/discard)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9_x.replies import ProtocolError
from fakeamqp.dialects.connection_states import ConnectionState
from fakeamqp.model.extensions import TraceFrame

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.endpoint import Endpoint

__all__ = ["receive"]


def receive(endpoint: Endpoint, number: int, payload: bytes) -> None:
    """A trace frame has come.

    Raises:
        ProtocolError: it is not on channel 0 (trace/channel-zero).
        ModelError: a handler has failed.
    """
    if endpoint.state is ConnectionState.CLOSING:
        return
    endpoint.note_method(0)
    if number != 0:
        raise ProtocolError("frame-error", f"trace frame on channel {number}, not 0")
    for handle in tuple(endpoint.broker.extensions.trace_handlers):
        handle(TraceFrame(endpoint.name, payload))
