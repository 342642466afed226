"""The bytes that wait for a client: how long the body of a message stays charged."""

from __future__ import annotations

import gc
from typing import Any, cast

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.base.outbox import Outbox


def test_body_stays_charged_until_its_last_byte_is_sent() -> None:
    """Behind bytes that were sent before, and not a byte longer."""
    server = Server()
    server.client()
    (connection,) = server.state.connections
    outbox = Outbox(cast("Any", connection), lambda: None)
    memory = server.state.memory
    outbox.write(b"before")
    outbox.sent(6)
    message = Message("", "q", BasicProperties(), bytes(100))
    before = memory.messages.octets
    outbox.write_pieces([b"head", memoryview(message.body), b"end"], message)
    outbox.write(b"behind")
    del message
    gc.collect()
    charged = memory.messages.octets - before
    assert charged >= 100
    outbox.sent(106)
    assert (outbox.shared, memory.messages.octets - before) == (100, charged)
    outbox.sent(1)
    assert (outbox.shared, memory.messages.octets - before) == (0, 0)
