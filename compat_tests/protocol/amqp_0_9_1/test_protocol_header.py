from __future__ import annotations

import logging
import socket

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.matrix import rows
from compat_tests.unit.runtime.fakes import real_engine
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.negotiation import accept

HEADER = b"AMQP\x00\x00\x09\x01"
HEADER_1_0 = b"AMQP\x03\x01\x00\x00"
HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def usual_answer(server: Server) -> bytes:
    """What answers most wrong headers: in RabbitMQ since 4.0 the header of AMQP 1.0 (measured)."""
    return HEADER if server.is_spec else HEADER_1_0


def refused(server: Server, octets: bytes) -> bytes:
    """What the broker answers before it ends the transport."""
    client = server.connect()
    client.send_bytes(octets).expect_silent_end()
    assert not client.connection.aborted, "an answer that is waiting must still be written"
    return client.header


@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9-1/protocol-header/client-first")
def test_frame_before_protocol_header_is_answered_with_header_and_end(server: Server) -> None:
    client = server.connect()
    client.send(m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"), 0)
    client.expect_silent_end()
    assert client.header == usual_answer(server)
    assert not server.state.connections


@pytest.mark.rule("0-9-1/protocol-header/accept-0-9-1")
def test_protocol_header_is_answered_with_one_connection_start_on_channel_0(server: Server) -> None:
    client = server.connect()
    client.expect_nothing()
    start = client.send_bytes(bytes.fromhex("414d515000000901")).expect(m.ConnectionStart, 0)
    assert (start.CLASS_ID, start.METHOD_ID) == (10, 10)
    client.expect_nothing()
    assert client.header == b""
    assert not client.closed


@pytest.mark.deviates("0-9-1/protocol-header/version-mismatch")
@pytest.mark.rule("0-9-1/protocol-header/version-mismatch")
@rows("version", "00010000", "00000902", "00000a00", "02000000", "ffffffff", "00000000")
def test_header_of_unsupported_version_is_answered_with_another(server: Server, version: str) -> None:
    later = version in ("00000902", "00000a00")
    assert refused(server, b"AMQP" + bytes.fromhex(version)) == (HEADER if later else usual_answer(server))


@pytest.mark.needs("personality of choices")
@pytest.mark.rule("0-9-1/protocol-header/version-mismatch")
def test_rabbitmq_3_13_answers_header_of_amqp_1_0_with_header_of_0_9_1(rabbitmq: Server) -> None:
    before = PERSONALITIES["rabbitmq-3.13"]
    older = rabbitmq.varied(
        header_for_others=before.header_for_others, unspoken_protocols=before.unspoken_protocols
    )
    assert refused(older, b"AMQP\x03\x01\x00\x00") == HEADER


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.rule("0-9-1/protocol-header/not-amqp#literal", "0-9-1/protocol-header/not-amqp#protocol-id")
@pytest.mark.parametrize(
    "octets",
    [b"GET / HT", b"amqp\x00\x00\x09\x01", b"AMQX\x00\x00\x09\x01", b"AMQP\x05\x00\x09\x01", bytes(8)],
)
def test_octets_other_than_protocol_header_are_answered_with_it(server: Server, octets: bytes) -> None:
    assert refused(server, octets) == usual_answer(server)


@pytest.mark.rule("0-9-1/protocol-header/not-amqp#literal")
def test_spec_personality_refuses_wrong_protocol_name_after_four_bytes(spec: Server) -> None:
    assert refused(spec, b"HTTP") == HEADER


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_rabbitmq_waits_for_eight_bytes(rabbitmq: Server) -> None:
    client = rabbitmq.connect()
    client.send_bytes(b"\x16\x03\x01\x02\x00\x01\x00").expect_nothing()
    assert not client.closed
    client.send_bytes(b"\x01").expect_silent_end()
    assert client.header == HEADER_1_0


@pytest.mark.needs("own broker")
@pytest.mark.rule("0-9-1/protocol-header/header-flushed")
def test_the_answer_to_a_bad_header_arrives_although_more_was_sent(server: Server) -> None:
    """Over TCP, where bytes left unread turn the end into a reset that discards what was written."""
    engine = real_engine(lambda peer, notify: accept(server.state, peer, notify))
    engine.start()
    try:
        with socket.create_connection(engine.listen().address, timeout=20) as client:
            client.sendall(HTTP + bytes(100_000))
            answer = bytearray()
            while piece := client.recv(100):
                answer += piece
        assert answer == usual_answer(server)
    finally:
        engine.stop()
    assert not engine.failures


@pytest.mark.rule("0-9-1/protocol-header/diagnostic")
@rows(
    "octets, hint",
    (HTTP, "looks like an HTTP request"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01", "looks like a TLS hello"),
    (b"AMQP\x00\x01\x00\x00", "AMQP 1.0 begins with SASL"),
    (b"nonsense", "b'nonsense' instead of a protocol header"),
)
def test_log_has_warning_with_octets_received_instead_of_protocol_header(
    server: Server, octets: bytes, hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused(server, octets)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert hint in record.getMessage()


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.rule("0-9-1/protocol-header/other-protocols")
def test_an_http_request_is_not_served_but_answered_with_a_header(server: Server) -> None:
    assert refused(server, HTTP) == usual_answer(server)


@pytest.mark.rule("0-9-1/protocol-header/client-downgrade")
def test_client_can_connect_again_with_the_offered_version(server: Server) -> None:
    offered = refused(server, b"AMQP\x00\x00\x0a\x00")
    client = server.connect()
    client.send_bytes(offered).expect(m.ConnectionStart, 0)
    client.login().expect(m.ConnectionTune, 0)
    client.send(m.ConnectionTuneOk(channel_max=1, frame_max=8192), 0)
    client.perform(m.ConnectionOpen(virtual_host="/"), channel=0)


@pytest.mark.rule("0-9-1/protocol-header/all-eight-octets")
@pytest.mark.parametrize("position", range(8))
def test_each_of_the_eight_octets_counts(server: Server, position: int) -> None:
    header = bytearray(HEADER)
    header[position] ^= 0x40
    assert refused(server, bytes(header)) == (HEADER if position > 5 else usual_answer(server))


@pytest.mark.rule("0-9-1/protocol-header/all-eight-octets")
def test_valid_protocol_header_is_answered_only_after_eighth_octet(server: Server) -> None:
    client = server.connect()
    for octet in HEADER[:7]:
        client.send_bytes(bytes((octet,))).expect_nothing()
        assert not client.closed
    client.send_bytes(HEADER[7:]).expect(m.ConnectionStart, 0)


@pytest.mark.needs("virtual time")
def test_connection_without_complete_protocol_header_is_aborted_after_10_seconds(server: Server) -> None:
    client = server.connect().send_bytes(HEADER[:5])
    assert not client.after(9.9).closed
    assert client.after(0.2).connection.aborted
