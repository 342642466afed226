"""The protocol header of 0-10 and what answers it."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server
from fakeamqp.protocols.amqp_0_10.codec import controls as c
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER

rule = pytest.mark.rule


@rule("0-10/protocol-header/layout", "0-10/protocol-header/class-instance")
@rule("0-10/protocol-header/server-echo")
def test_protocol_header_is_echoed_before_connection_start(server: Server) -> None:
    octets = server.dial().send_bytes(b"AMQP\x01\x01\x00\x0a").take_bytes()
    assert octets[:8] == PROTOCOL_HEADER == b"AMQP\x01\x01\x00\x0a"
    # A frame with one control follows: all flags, type 0, and class 1, code 1 behind the twelve bytes.
    assert octets[8:10] == b"\x0f\x00" and octets[20:22] == b"\x01\x01"


@rule("0-10/protocol-header/layout")
def test_broker_sends_no_octets_before_protocol_header_is_complete(server: Server) -> None:
    client = server.dial()
    for octet in PROTOCOL_HEADER[:-1]:
        client.send_bytes(bytes([octet])).expect_nothing()
    client.send_bytes(PROTOCOL_HEADER[-1:]).expect(c.ConnectionStart)


@rule("0-10/protocol-header/mismatch#answered", "0-10/protocol-header/mismatch#closed")
@rule("0-10/connection.start/protocol-name")
@pytest.mark.parametrize(
    "header",
    [b"AMQP\x01\x01\x00\x0b", b"AMQP\x01\x02\x00\x0a", b"AMQP\x02\x01\x00\x0a", b"AMQQ\x01\x01\x00\x0a"],
)
def test_unknown_protocol_header_is_answered_with_header_and_end(server: Server, header: bytes) -> None:
    client = server.dial()
    octets = client.send_bytes(header).take_bytes()
    assert len(octets) == 8 and octets.startswith(b"AMQP")
    assert client.closed
    # RabbitMQ since 4.0 answers with the header of AMQP 1.0 (measured).
    assert not server.dial().send_bytes(octets).closed
