"""The login and the life of a connection of AMQP 1.0, as the standard has them."""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Server, message
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import PROTOCOL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UByte

rule = pytest.mark.rule


def init(**fields: Any) -> c.SaslInit:
    said = {"mechanism": Symbol("PLAIN"), "initial_response": b"\0guest\0guest"}
    return c.SaslInit(**{**said, **fields})


# --- SASL ---------------------------------------------------------------------------------------------------


@rule("1-0/sasl/offered", "1-0/composite/multiple")
def test_mechanisms_are_an_array_in_order_of_preference(server: Server) -> None:
    client = server.dial()
    client.send_bytes(b"AMQP\x03\x01\x00\x00").take()
    assert client.expect(c.SaslMechanisms).sasl_server_mechanisms == ("PLAIN", "AMQPLAIN", "ANONYMOUS")


@rule("1-0/sasl/channel")
@pytest.mark.parametrize("header", [b"\x02\x01\x00\x07", b"\x03\x01\xff\xff" + b"\xff" * 4])
def test_channel_and_extended_header_of_a_sasl_frame_are_ignored(server: Server, header: bytes) -> None:
    client = server.greeted()
    body = init().encode()
    client.send_bytes((4 + len(header) + len(body)).to_bytes(4, "big") + header + body)
    assert client.expect(c.SaslOutcome).code == 0


@rule("1-0/sasl/frames", "1-0/sasl/order", "1-0/sasl/once")
@pytest.mark.parametrize(
    "body",
    [
        c.SaslResponse(response=b"x"),
        c.SaslOutcome(code=UByte(0)),
        c.SaslMechanisms(sasl_server_mechanisms=(Symbol("PLAIN"),)),
        c.Open(container_id="x"),
    ],
    ids=lambda body: body.NAME,
)
def test_unexpected_frame_during_login_ends_the_transport(server: Server, body: c.Composite) -> None:
    server.greeted().send(body).expect_silent_end()
    client = server.greeted()
    assert client.login().expect(c.SaslOutcome).code == 0
    client.send(body).expect_silent_end()


@rule("1-0/sasl/once")
def test_second_login_ends_the_transport(server: Server) -> None:
    client = server.greeted()
    assert client.login().expect(c.SaslOutcome).code == 0
    client.login().expect_silent_end()


@rule("1-0/sasl/malformed-response", "1-0/sasl/initial-response")
@pytest.mark.parametrize("response", [None, b"", b"guest", b"other\0guest\0guest", b"\0guest\0guest\0"])
def test_response_without_the_form_of_plain_ends_the_transport_without_outcome(
    server: Server, response: bytes | None
) -> None:
    server.greeted().send(init(initial_response=response)).expect_silent_end()


@rule("1-0/sasl/initial-response")
@pytest.mark.parametrize("response", [None, b"", b"trace"])
def test_initial_response_of_anonymous_may_be_anything(server: Server, response: bytes | None) -> None:
    client = server.greeted().send(init(mechanism=Symbol("ANONYMOUS"), initial_response=response))
    assert client.expect(c.SaslOutcome).code == 0


@rule("1-0/sasl/hostname")
def test_hostname_of_sasl_does_not_choose_the_virtual_host(server: Server) -> None:
    client = server.greeted().send(init(hostname="vhost:none"))
    assert client.expect(c.SaslOutcome).code == 0
    client.send_bytes(PROTOCOL_HEADER).expect_header(PROTOCOL_HEADER)
    client.open()
    assert client.connection.virtual_host_name == "/"


@rule("1-0/sasl/mechanisms")
def test_names_of_mechanisms_are_case_sensitive(server: Server) -> None:
    server.greeted().send(init(mechanism=Symbol("plain"))).expect_silent_end()


@rule("1-0/sasl/challenge", "1-0/sasl/outcome-ok")
def test_mechanism_with_a_challenge_waits_for_the_response() -> None:
    personality = replace(PERSONALITIES["rabbitmq-4.3"], mechanisms=("CRAM-MD5",))
    client = Server(personality).greeted()
    client.send(init(mechanism=Symbol("CRAM-MD5"), initial_response=None))
    challenge = client.expect(c.SaslChallenge).challenge
    digest = hmac.new(b"guest", challenge, "md5").hexdigest().encode()
    client.send(c.SaslResponse(response=b"guest " + digest))
    outcome = client.expect(c.SaslOutcome)
    assert (outcome.code, outcome.additional_data) == (0, None)
    client.send_bytes(PROTOCOL_HEADER).expect_header(PROTOCOL_HEADER)


# --- open ---------------------------------------------------------------------------------------------------


@rule("1-0/open/first")
@pytest.mark.parametrize(
    "body",
    [c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), c.Detach(handle=0), c.End()],
    ids=lambda body: body.NAME,
)
def test_frame_before_open_ends_the_transport(server: Server, body: c.Composite) -> None:
    server.logged_in().send(body).expect_silent_end()


@rule("1-0/open/once")
def test_second_open_closes_the_connection_with_internal_error(server: Server) -> None:
    server.open().send(c.Open(container_id="x")).expect_close("amqp:internal-error")


@rule("1-0/open/channel-0")
def test_open_on_another_channel_ends_the_transport(server: Server) -> None:
    server.logged_in().send(c.Open(container_id="x"), 5).expect_silent_end()


@rule("1-0/open/container-id", "1-0/composite/mandatory")
def test_open_without_container_id_ends_the_transport(server: Server) -> None:
    server.logged_in().send(c.Open()).expect_silent_end()


@rule("1-0/open/server-container-id", "1-0/open/properties", "1-0/open/hostname-default")
def test_open_of_the_broker_names_itself_and_takes_any_properties(server: Server) -> None:
    client = server.logged_in()
    answer = client.open(properties={Symbol("product"): "x", Symbol("unknown"): {"a": [1]}})
    assert answer.container_id == server.state.cluster_name
    assert all(type(name) is Symbol for name in answer.properties)
    assert answer.properties["product"] == "RabbitMQ"
    assert client.connection.client_properties["product"] == "x"
    assert client.connection.virtual_host_name == "/"


@rule("1-0/open/max-frame-size-least")
def test_largest_frame_of_512_octets_is_taken_and_of_511_not(server: Server) -> None:
    assert server.logged_in().open(max_frame_size=512).max_frame_size >= 512
    server.logged_in().send(c.Open(container_id="x", max_frame_size=511)).expect_silent_end()


@rule("1-0/open/channel-max", "1-0/open/channel-max-default", "1-0/open/channel-max-exceeded")
def test_channels_up_to_the_brokers_maximum_may_be_used(server: Server) -> None:
    client = server.logged_in()
    assert client.open(channel_max=None).channel_max == 63
    client.begin(63)
    client.send(c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), 64)
    client.expect_close("amqp:connection:framing-error")


@rule("1-0/open/idle-time-out-none")
@pytest.mark.parametrize("milliseconds", [None, 0])
def test_client_without_idle_time_out_gets_no_empty_frames(server: Server, milliseconds: int | None) -> None:
    client = server.open(idle_time_out=milliseconds)
    client.after(50).expect_nothing()


@rule("1-0/open/idle-time-out-half", "1-0/open/idle-time-out-least")
def test_broker_names_half_of_what_it_waits_and_takes_one_second_at_least(server: Server) -> None:
    client = server.logged_in()
    assert client.open(idle_time_out=1000).idle_time_out == 30_000
    client.after(31).take_all()
    assert not client.closed
    server.logged_in().send(c.Open(container_id="x", idle_time_out=999)).expect_silent_end()


@rule("1-0/open/idle-time-out-traffic")
def test_flow_frames_postpone_the_idle_timeout(server: Server) -> None:
    client = server.session()
    for _ in range(4):
        client.after(40).send(c.Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1))
    client.expect_nothing()
    assert not client.closed


@pytest.mark.deviates("1-0/open/refused-with-close")
def test_refused_open_has_no_answer(server: Server) -> None:
    server.logged_in().send(c.Open(container_id="x", hostname="vhost:none")).expect_silent_end()


# --- close --------------------------------------------------------------------------------------------------


@rule("1-0/close/any-channel", "1-0/close/error", "1-0/close/last")
@pytest.mark.parametrize("problem", [None, c.Error(condition=Symbol("x:y"), description="why")])
def test_close_on_any_channel_with_any_error_is_answered(server: Server, problem: c.Error | None) -> None:
    client = server.session()
    client.send(c.Close(error=problem), 3)
    assert client.expect(c.Close).error is None
    assert client.closed
    client.send(c.Detach(handle=0)).expect_nothing()


@rule("1-0/close/ends-sessions", "1-0/settlement/at-least-once")
def test_close_returns_what_the_client_holds_and_ends_its_links(server: Server) -> None:
    client = server.session()
    client.sender().publish(message(b"x"))
    client.receiver(handle=1, credit=1).take()
    client.send(c.Close()).expect(c.Close)
    queue = server.vhost.queues["q"]
    assert (len(queue.ready), len(queue.subscriptions)) == (1, 0)


@rule("1-0/close/discards", "1-0/close/last")
def test_broker_ignores_everything_but_close_after_its_own(server: Server) -> None:
    client = server.session()
    client.sender()
    client.connection.close_by_operator(320, "why")
    assert client.expect(c.Close).error.condition == "amqp:internal-error"
    client.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"0"), payload=message())
    client.send_bytes(frame(0, 0, b"\xff"))
    client.expect_nothing()
    assert not client.closed and not server.vhost.queues["q"].ready
    client.send(c.Close()).expect_nothing()
    assert client.closed


@rule("1-0/close/unanswered")
def test_close_without_answer_ends_the_transport_later(server: Server) -> None:
    client = server.session()
    client.connection.close_by_operator(320, "why")
    client.expect(c.Close)
    client.after(29).expect_nothing()
    assert not client.closed
    client.after(2)
    assert client.closed


@rule("1-0/begin/several", "1-0/end/others", "1-0/end/detaches", "1-0/errors/session-scope")
def test_error_of_a_session_leaves_the_others(server: Server) -> None:
    client: Client = server.session()
    client.begin(1)
    client.sender(handle=0)
    client.send(c.Detach(handle=0), 1).expect_nothing()
    client.send(c.Transfer(handle=9, delivery_id=0, delivery_tag=b"0"), 1, message())
    client.expect_end("amqp:session:unattached-handle", channel=1)
    client.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"0"), 0, message())
    assert client.expect(c.Disposition).first == 0
