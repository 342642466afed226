"""SASL, open and close of AMQP 1.0."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_1_0.conftest import with_queues
from compat_tests.scripted.amqp_1_0 import Server
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME, PROTOCOL_HEADER, SASL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol


@pytest.mark.rule("1-0/protocol-header/sasl")
def test_sasl_header_is_answered_with_itself_and_the_mechanisms(server: Server) -> None:
    client = server.dial()
    client.send_bytes(SASL_HEADER).expect_header(SASL_HEADER)
    offered = client.expect(c.SaslMechanisms).sasl_server_mechanisms
    assert offered == ("PLAIN", "AMQPLAIN", "ANONYMOUS")


@pytest.mark.rule("1-0/protocol-header/refused")
@pytest.mark.parametrize("header", [b"AMQP\0\1\0\0", b"AMQP\2\1\0\0", b"AMQP\3\1\1\0"])
def test_other_header_of_1_0_is_answered_with_that_of_sasl_and_the_transport_ends(
    server: Server, header: bytes
) -> None:
    client = server.dial()
    client.send_bytes(header).expect_header(SASL_HEADER)
    assert client.closed


@pytest.mark.rule("1-0/protocol-header/refused")
@pytest.mark.parametrize("name", ["rabbitmq-3.13", "spec"])
def test_personality_that_does_not_speak_1_0_answers_its_header_with_that_of_0_9_1(name: str) -> None:
    client = Server(name).dial()
    client.send_bytes(SASL_HEADER).expect_header(b"AMQP\0\0\x09\1")
    assert client.closed


@pytest.mark.rule("1-0/sasl/mechanisms")
@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0guest\0guest"),
        ("AMQPLAIN", b"\x05LOGINS\0\0\0\x05guest\x08PASSWORDS\0\0\0\x05guest"),
        ("ANONYMOUS", None),
    ],
)
def test_client_logs_in_with_each_mechanism(server: Server, mechanism: str, response: bytes | None) -> None:
    client = server.greeted()
    client.send(c.SaslInit(mechanism=Symbol(mechanism), initial_response=response))
    assert client.expect(c.SaslOutcome).code == 0


@pytest.mark.rule("1-0/sasl/outcome")
def test_wrong_password_has_outcome_auth_and_ends_the_transport(server: Server) -> None:
    client = server.greeted().login("guest", "wrong")
    assert client.expect(c.SaslOutcome).code == 1
    assert client.closed


@pytest.mark.rule("1-0/sasl/mechanisms")
def test_unknown_mechanism_ends_the_transport_without_an_outcome(server: Server) -> None:
    client = server.greeted()
    client.send(c.SaslInit(mechanism=Symbol("NOPE")))
    client.expect_silent_end()


@pytest.mark.rule("1-0/open/pipelined")
def test_whole_opening_may_come_at_once(server: Server) -> None:
    client = server.dial()
    bodies = (c.Open(container_id="x"), c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    client.send_bytes(
        SASL_HEADER
        + frame(1, 0, c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest").encode())
        + PROTOCOL_HEADER
        + b"".join(frame(0, 0, body.encode()) for body in bodies)
    )
    client.expect_header(SASL_HEADER)
    client.expect(c.SaslMechanisms)
    client.expect(c.SaslOutcome)
    client.expect_header(PROTOCOL_HEADER)
    client.expect(c.Open)
    client.expect(c.Begin)


@pytest.mark.rule("1-0/open/limits")
def test_open_answers_with_the_smaller_channel_max_and_its_own_frame_size(server: Server) -> None:
    answer = server.logged_in().open(channel_max=5, max_frame_size=1000)
    assert (answer.channel_max, answer.max_frame_size, answer.idle_time_out) == (5, 131072, 30000)
    assert answer.offered_capabilities == ("LINK_PAIR_V1_0", "ANONYMOUS-RELAY")


@pytest.mark.rule("1-0/open/virtual-host")
def test_hostname_names_the_virtual_host(server: Server) -> None:
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = server.state.access.users["guest"].permissions[
        "/"
    ]
    client = server.open(hostname="vhost:other")
    assert client.connection.virtual_host_name == "other"
    assert server.open(hostname="example.org").connection.virtual_host_name == "/"


@pytest.mark.rule("1-0/open/refused")
@pytest.mark.parametrize(
    "fields",
    [{"hostname": "vhost:none"}, {"idle_time_out": 999}, {"max_frame_size": 511}],
    ids=["virtual-host", "idle-time-out", "max-frame-size"],
)
def test_refused_open_ends_the_transport_without_a_frame(server: Server, fields: dict[str, object]) -> None:
    client = server.logged_in()
    client.send(c.Open(container_id="x", **fields))
    client.expect_silent_end()


@pytest.mark.rule("1-0/open/idle-time-out")
def test_broker_sends_an_empty_frame_at_half_of_the_clients_idle_time_out(server: Server) -> None:
    client = server.open(idle_time_out=2000)
    client.after(1).expect_nothing()
    for _ in range(3):
        client.after(1)
        assert client.take().what == EMPTY_FRAME
        client.expect_nothing()


@pytest.mark.rule("1-0/open/idle-time-out")
def test_silent_client_is_closed_after_two_idle_time_outs_of_the_broker(server: Server) -> None:
    client = server.open()
    client.after(59).expect_nothing()
    client.after(2)
    text = "no frame received from client within idle timeout threshold"
    client.expect_close("amqp:resource-limit-exceeded", text)


@pytest.mark.rule("1-0/open/idle-time-out")
def test_empty_frames_keep_a_connection_open(server: Server) -> None:
    client = server.open()
    for _ in range(5):
        client.after(40).send_bytes(EMPTY_FRAME)
    client.expect_nothing()
    assert not client.closed


@pytest.mark.rule("1-0/close/reply")
def test_close_is_answered_with_close(server: Server) -> None:
    client = server.session()
    client.send(c.Close())
    assert client.expect(c.Close).error is None
    assert client.closed


@pytest.mark.rule("1-0/errors/connection-scope")
def test_channel_above_the_agreed_maximum_closes_the_connection(server: Server) -> None:
    client = server.open(channel_max=5)
    client.send(c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), 6)
    client.expect_close(
        "amqp:connection:framing-error", "channel number (6) exceeds maximum channel number (5)"
    )


@pytest.mark.rule("1-0/errors/connection-scope")
def test_frame_above_the_agreed_size_closes_the_connection(server: Server) -> None:
    client = server.open()
    client.send_bytes(frame(0, 0, bytes(140000)))
    text = "frame size (140008 bytes) > maximum frame size (131072 bytes)"
    client.expect_close("amqp:connection:framing-error", text)


@pytest.mark.rule("1-0/errors/connection-scope")
@pytest.mark.parametrize("body", [b"\0\x53\x7f\x45", b"\xff", b"\0\x53\x10\xc0\x03\x02\x3f\x3f"])
def test_body_that_cannot_be_decoded_closes_the_connection(server: Server, body: bytes) -> None:
    client = server.session()
    client.send_bytes(frame(0, 0, body))
    client.expect_close("amqp:internal-error")


@pytest.mark.rule("1-0/errors/connection-scope")
def test_second_open_closes_the_connection(server: Server) -> None:
    client = server.open()
    client.send(c.Open(container_id="again"))
    client.expect_close("amqp:internal-error")


@pytest.mark.rule("1-0/close/operator")
@pytest.mark.parametrize(
    ("reason", "shown"),
    [("why", '<<"why">>'), ("CONNECTION_FORCED - via management", '"via management"')],
)
def test_operator_closes_a_connection_with_internal_error(server: Server, reason: str, shown: str) -> None:
    client = server.session()
    client.connection.close_by_operator(320, reason)
    client.expect_close("amqp:internal-error", f"Connection forced: {shown}")


def test_connection_is_gone_from_the_broker_when_its_transport_is_lost() -> None:
    server = with_queues(Server())
    client = server.session()
    client.receiver(credit=1)
    client.drop()
    assert not server.state.connections and not server.vhost.queues["q"].subscriptions
