"""Protocol headers and frames of AMQP 1.0."""

from __future__ import annotations

import pytest

from compat_tests.golden import tables_1_0 as golden
from compat_tests.scripted.amqp_1_0 import Client, Server, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME, PROTOCOL_HEADER, SASL_HEADER, frame

rule = pytest.mark.rule

DETACH = c.Detach(handle=0, closed=True).encode()


@rule("1-0/protocol-header/layout", "1-0/protocol-header/echo")
def test_each_header_is_answered_with_itself(server: Server) -> None:
    client = server.dial()
    client.send_bytes(b"AMQP\x03\x01\x00\x00").expect_header(b"AMQP\x03\x01\x00\x00")
    client.expect(c.SaslMechanisms)
    assert client.login().expect(c.SaslOutcome).code == 0
    client.send_bytes(b"AMQP\x00\x01\x00\x00").expect_header(b"AMQP\x00\x01\x00\x00")


@rule("1-0/protocol-header/first")
def test_frame_in_place_of_a_header_is_answered_with_a_header(server: Server) -> None:
    client = server.dial()
    client.send_bytes(frame(0, 0, c.Open(container_id="x").encode())).expect_header(SASL_HEADER)
    assert client.closed


@pytest.mark.deviates("1-0/protocol-header/no-sasl", "1-0/tls/header")
@pytest.mark.parametrize("header", [PROTOCOL_HEADER, b"AMQP\x02\x01\x00\x00"], ids=["amqp", "tls"])
def test_header_without_sasl_is_refused(server: Server, header: bytes) -> None:
    client = server.dial()
    client.send_bytes(header).expect_header(SASL_HEADER)
    assert client.closed


@rule("1-0/protocol-header/second")
@pytest.mark.parametrize(
    "octets",
    [SASL_HEADER, b"AMQP\0\0\x09\x01", frame(0, 0, c.Open(container_id="x").encode())],
    ids=["sasl", "0-9-1", "open"],
)
def test_anything_but_the_amqp_header_behind_the_login_ends_the_transport(
    server: Server, octets: bytes
) -> None:
    client = server.greeted()
    assert client.login().expect(c.SaslOutcome).code == 0
    client.send_bytes(octets).expect_silent_end()


@rule("1-0/frame/layout", "1-0/frame/size", "1-0/frame/channel", "1-0/frame/body")
def test_frame_has_its_golden_bytes() -> None:
    rows = golden.rows("frame")
    assert {row["frame"] for row in rows} == {0, 1}
    for row in rows:
        golden.check(row)


@rule("1-0/frame/channel", "1-0/begin/initiated")
def test_frame_is_answered_on_its_channel(server: Server) -> None:
    client = server.open()
    client.send_bytes(
        frame(0, 63, c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1).encode())
    )
    assert client.expect(c.Begin, 63).remote_channel == 63


MALFORMED: dict[str, tuple[bytes, str]] = {
    "size": (b"\0\0\0\x07\x02\0\0\0", "frame size (7 bytes) < minimum frame size (8 bytes)"),
    "offset": (b"\0\0\0\x10\x01\0\0\0" + DETACH, "data offset (1) < minimum data offset (2)"),
    "beyond": (b"\0\0\0\x10\x09\0\0\0" + DETACH, "data offset (36 bytes) > frame size (16 bytes)"),
    "type": (b"\0\0\0\x10\x02\x05\0\0" + DETACH, "unexpected frame type 5 in amqp mode (expected 0)"),
    "sasl": (b"\0\0\0\x10\x02\x01\0\0" + DETACH, "unexpected frame type 1 in amqp mode (expected 0)"),
}


@rule("1-0/frame/size", "1-0/frame/data-offset", "1-0/frame/data-offset-beyond", "1-0/frame/type")
@rule("1-0/frame/malformed", "1-0/errors/condition", "1-0/errors/description")
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_frame_closes_the_connection_since_4_3(
    rabbitmq: Server, rabbitmq_4_0: Server, name: str
) -> None:
    octets, text = MALFORMED[name]
    client = rabbitmq.session()
    client.sender()
    client.send_bytes(octets).expect_close("amqp:connection:framing-error", text)
    older = rabbitmq_4_0.session()
    older.sender()
    older.send_bytes(octets).expect_silent_end()


@rule("1-0/frame/extended-header")
@pytest.mark.parametrize("words", [1, 2, 253])
def test_extended_header_is_ignored(server: Server, words: int) -> None:
    client = server.session()
    client.sender()
    size = 8 + 4 * words + len(DETACH)
    client.send_bytes(size.to_bytes(4, "big") + bytes((2 + words, 0, 0, 0)) + b"\xff" * 4 * words + DETACH)
    assert client.expect(c.Detach).handle == 0


@rule("1-0/frame/payload")
def test_octets_behind_a_performative_without_payload_end_the_session(server: Server) -> None:
    client = server.session()
    client.sender()
    client.send_bytes(frame(0, 0, DETACH + b"abc")).expect_end("amqp:internal-error")
    begin = c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1).encode()
    client.send_bytes(frame(0, 0, begin + b"abc")).expect_nothing()


@rule("1-0/frame/payload", "1-0/open/first")
def test_octets_behind_open_end_the_transport(server: Server) -> None:
    client = server.logged_in()
    client.send_bytes(frame(0, 0, c.Open(container_id="x").encode() + b"abc")).expect_silent_end()


@rule("1-0/frame/empty")
@pytest.mark.parametrize("channel", [0, 5, 65535])
def test_empty_frame_has_no_effect_on_any_channel(client: Client, channel: int) -> None:
    octets = EMPTY_FRAME[:6] + channel.to_bytes(2, "big")
    client.send_bytes(octets * 3).expect_nothing()
    assert not client.closed


@rule("1-0/frame/empty")
def test_empty_frame_during_the_login_has_no_effect(server: Server) -> None:
    client = server.greeted()
    client.send_bytes(b"\0\0\0\x08\x02\x01\0\0").expect_nothing()
    assert client.login().expect(c.SaslOutcome).code == 0


@rule("1-0/frame/any-cut")
def test_frames_come_in_single_octets(server: Server) -> None:
    client = server.dial()
    opening = SASL_HEADER + frame(
        1, 0, c.SaslInit(mechanism="PLAIN", initial_response=b"\0guest\0guest").encode()
    )
    opening += PROTOCOL_HEADER + frame(0, 0, c.Open(container_id="x").encode())
    for octet in opening:
        client.send_bytes(bytes((octet,)))
    assert [type(each.what) for each in client.take_all()] == [
        *(bytes, c.SaslMechanisms, c.SaslOutcome, bytes, c.Open)
    ]


@rule("1-0/frame/any-cut")
def test_several_frames_come_at_once(client: Client) -> None:
    client.sender()
    bodies = [c.Transfer(handle=0, delivery_id=each, delivery_tag=b"%d" % each) for each in range(3)]
    octets = b"".join(frame(0, 0, each.encode() + message()) for each in bodies)
    client.send_bytes(octets[:-1]).take_all()
    client.send_bytes(octets[-1:])
    assert client.expect(c.Disposition).first == 2


@rule("1-0/frame/before-open", "1-0/sasl/frames")
def test_frames_of_the_broker_before_open_have_512_octets_at_most(server: Server) -> None:
    client = server.open()
    octets = client.bytes_in
    sizes = []
    while octets:
        size = 8 if octets.startswith(b"AMQP") else int.from_bytes(octets[:4], "big")
        sizes.append(size)
        octets = octets[size:]
    assert len(sizes) == 5 and max(sizes) <= 512


@rule("1-0/open/max-frame-size", "1-0/transfer/split-anywhere")
@pytest.mark.parametrize("largest", [512, 600, 4096])
def test_no_frame_is_larger_than_the_client_takes(server: Server, largest: int) -> None:
    server.session().sender().publish(message(b"x" * 20_000, application={"a": "b" * 700}))
    client = server.session(max_frame_size=largest)
    client.receiver(credit=1)
    before = len(client.bytes_in)
    payload = b"".join(each.payload for each in client.take_all())
    octets = client.bytes_in[before:]
    while octets:
        size = int.from_bytes(octets[:4], "big")
        assert size <= largest
        octets = octets[size:]
    assert payload.endswith(message(b"x" * 20_000, application={"a": "b" * 700}))
