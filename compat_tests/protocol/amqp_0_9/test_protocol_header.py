"""The protocol header of 0-9, and what answers it and its like."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import PROTOCOL_HEADER, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols import registry
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule

HEADERS = {header for row in registry.PROTOCOLS for header in row.headers} | {b"AMQP\x03\x01\x00\x00"}
"""Those of the protocols that are spoken, and that with which RabbitMQ answers since 4.0 (measured)."""


def refused(server: Server, octets: bytes) -> bytes:
    """The header that the broker answers with before it ends the transport."""
    client = server.connect()
    client.send_bytes(octets).expect_silent_end()
    assert not client.connection.aborted, "an answer that is waiting must still be written"
    return client.header


@rule("0-9/protocol-header/layout", "0-9/protocol-header/accept", "0-9/connection.start/version-fields")
def test_the_header_is_answered_with_start_of_this_version_and_no_header(server: Server) -> None:
    client = server.connect()
    start = client.send_bytes(b"AMQP\x01\x01\x00\x09").expect(m.ConnectionStart, 0)
    assert (start.version_major, start.version_minor) == (0, 9)
    client.expect_nothing()
    assert client.header == b""
    assert not client.closed


@rule("0-9/protocol-header/layout")
@pytest.mark.parametrize("position", range(8))
def test_each_of_the_eight_octets_counts(server: Server, position: int) -> None:
    header = bytearray(PROTOCOL_HEADER)
    header[position] ^= 0x40
    assert refused(server, bytes(header)) in HEADERS


@rule("0-9/protocol-header/rejected#literal", "0-9/protocol-header/rejected#version")
@rule("0-9/connection.start/protocol-name")
@rows(
    "octets",
    b"AMQP\x02\x00\x01\x01",
    b"HTTP/1.1",
    b"AMQP\x01\x01\x01\x00",
    b"AMQP\x01\x02\x00\x09",
    b"AMQQ\x01\x01\x00\x09",
)
def test_unknown_protocol_header_is_answered_with_a_valid_header_only(server: Server, octets: bytes) -> None:
    assert refused(server, octets) in HEADERS


@rule("0-9/protocol-header/other-protocols")
def test_other_protocols_are_not_served(server: Server) -> None:
    assert refused(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") in HEADERS


@rule("0-9/protocol-header/version-99")
@pytest.mark.parametrize("major", [99, 100, 255])
def test_versions_for_testing_are_not_spoken(server: Server, major: int) -> None:
    assert refused(server, b"AMQP\x01\x01" + bytes([major, 9])) in HEADERS


@rule("0-9/protocol-header/version-range")
def test_versions_are_the_octets_themselves_not_tens_and_ones(server: Server) -> None:
    assert refused(server, b"AMQP\x01\x01\x00\x5a") in HEADERS, "0-90 is not 9-0"
    assert refused(server, b"AMQP\x01\x01\x09\x00") in HEADERS


@rule("0-9/protocol-header/client-downgrade", "0-9/connection.start/server-support")
def test_header_offered_to_a_client_of_another_version_can_be_used(spec: Server) -> None:
    offered = refused(spec, b"AMQP\x01\x01\x09\x00")
    start = spec.connect().send_bytes(offered).expect(m.ConnectionStart, 0)
    assert (start.version_major, start.version_minor) <= (9, 0)


@rule("0-9/protocol-header/one-header-only")
def test_a_second_header_is_no_frame(server: Server) -> None:
    client = server.connect()
    client.send_bytes(PROTOCOL_HEADER).expect(m.ConnectionStart, 0)
    client.send_bytes(PROTOCOL_HEADER).expect_silent_end()
