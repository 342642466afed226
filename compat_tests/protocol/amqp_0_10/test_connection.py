"""Class connection of 0-10: the handshake, its limits, the close."""

from __future__ import annotations

import hmac
import logging
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server
from fakeamqp.model.access import Permission, User
from fakeamqp.model.limits import VirtualHostLimits
from fakeamqp.model.personality import personality
from fakeamqp.model.state import Redirect
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER
from fakeamqp.protocols.amqp_0_10.codec.types import Array


def _refused(client: Client) -> None:
    """The handshake has failed: by personality with a word or without one, and the transport ends."""
    if client.server.state.personality.extension(Amqp010Choices).speaks_of_failed_handshakes:
        client.expect_close(320)
    else:
        client.expect_silent_end()


def _offering(name: str, **choices: Any) -> Server:
    """A broker of this personality that offers other limits."""
    known = personality(name)
    return Server(
        replace(known, extensions={Amqp010Choices: replace(known.extension(Amqp010Choices), **choices)})
    )


# --- start -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/connection.start/server-properties-required-fields")
def test_connection_start_carries_required_server_properties_as_texts(server: Server) -> None:
    properties = server.dial().begin().server_properties
    assert properties is not None
    assert set(properties) >= {"host", "product", "version", "platform", "copyright", "information"}
    assert all(isinstance(each, str) and each for each in properties.values())


@pytest.mark.rule("0-10/connection.start/mechanisms-array")
@pytest.mark.rule("0-10/connection.start/locales-required-support")
def test_mechanisms_and_locales_are_arrays_of_strings(server: Server) -> None:
    start = server.dial().begin()
    assert isinstance(start.mechanisms, Array) and isinstance(start.locales, Array)
    assert {"PLAIN", "ANONYMOUS", "CRAM-MD5"} <= set(start.mechanisms)
    assert "en_US" in start.locales


@pytest.mark.rule("0-10/connection.start-ok/response")
@pytest.mark.rule("0-10/connection/grammar#opening")
def test_handshake_with_plain_opens_and_closes_connection(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk(channel_max=10, max_frame_size=4096, heartbeat=0))
    client.call(c.ConnectionOpen(virtual_host="/"), c.ConnectionOpenOk)
    client.call(c.ConnectionClose(reply_code=200), c.ConnectionCloseOk)
    client.expect_silent_end()


def test_handshake_accepts_controls_without_required_fields(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.call(c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest"), c.ConnectionTune)
    client.send(c.ConnectionTuneOk())
    client.call(c.ConnectionOpen(), c.ConnectionOpenOk)
    assert client.session().query("none").queue is None


@pytest.mark.rule("0-10/connection.start-ok/mechanism-validity#ends")
@pytest.mark.rule("0-10/connection.start-ok/mechanism-validity#silently")
@pytest.mark.deviates("0-10/connection.start-ok/mechanism-validity#silently")
def test_sasl_mechanism_not_offered_ends_connection(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.send(c.ConnectionStartOk(mechanism="EXTERNAL", response=b"guest", locale="en_US"))
    _refused(client)


OTHER_LOCALES = pytest.mark.parametrize("locale", ["xx_XX", "", "en_us"])


@pytest.mark.rule("0-10/connection.start-ok/locale")
@OTHER_LOCALES
def test_spec_personality_ends_connection_with_locale_not_offered(spec: Server, locale: str) -> None:
    client = spec.dial()
    assert tuple(client.begin().locales or ()) == ("en_US",)
    client.send(_plain(locale))
    _refused(client)


@pytest.mark.deviates("0-10/connection.start-ok/locale", "0-10/execution.exception/description-locale")
@OTHER_LOCALES
def test_default_personality_accepts_any_locale_and_describes_errors_in_english(
    lenient: Server, locale: str
) -> None:
    client = lenient.dial()
    client.begin()
    client.call(_plain(locale), c.ConnectionTune)
    assert _described(client) == "there is no queue 'missing'"


@pytest.mark.rule("0-10/execution.exception/description-locale")
def test_exception_description_is_in_chosen_locale(spec: Server) -> None:
    """en_US is the only locale that a client can choose: the broker refuses all others."""
    client = spec.dial()
    client.begin()
    client.call(_plain("en_US"), c.ConnectionTune)
    assert _described(client) == "there is no queue 'missing'"


def _plain(locale: str) -> c.ConnectionStartOk:
    return c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale=locale)


def _described(client: Client) -> str | None:
    """The description of the exception that a queue which does not exist is answered with."""
    client.send(c.ConnectionTuneOk())
    client.call(c.ConnectionOpen(), c.ConnectionOpenOk)
    return client.session().fails(x.QueueDelete(queue="missing"), 404).description


def test_wrong_password_ends_connection(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.send(c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0wrong", locale="en_US"))
    _refused(client)


def test_anonymous_client_is_user_guest(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.call(c.ConnectionStartOk(mechanism="ANONYMOUS", response=b"", locale="en_US"), c.ConnectionTune)
    client.send(c.ConnectionTuneOk())
    client.call(c.ConnectionOpen(), c.ConnectionOpenOk)
    (connection,) = server.state.connections
    assert connection.user_name == "guest"


def test_anonymous_client_is_refused_when_guest_has_other_or_no_password(server: Server) -> None:
    for guest in (User("guest", "another", (), {"/": Permission()}), User("guest", None)):
        server.state.access.add(guest)
        client = server.dial()
        client.begin()
        client.send(c.ConnectionStartOk(mechanism="ANONYMOUS", response=b"", locale="en_US"))
        _refused(client)


def test_login_with_blank_password_is_refused(server: Server) -> None:
    server.state.access.add(User("blank", "", (), {"/": Permission()}))
    client = server.dial()
    client.begin()
    client.send(c.ConnectionStartOk(mechanism="PLAIN", response=b"\0blank\0", locale="en_US"))
    _refused(client)
    client = server.dial()
    client.begin()
    secure = client.call(c.ConnectionStartOk(mechanism="CRAM-MD5", locale="en_US"), c.ConnectionSecure)
    digest = hmac.new(b"", secure.challenge or b"", "md5").hexdigest()
    client.send(c.ConnectionSecureOk(response=f"blank {digest}".encode()))
    _refused(client)


def test_external_mechanism_accepts_name_of_verified_client_certificate(server: Server) -> None:
    client = server.dial(tls=True, certificate_subject="guest")
    assert "EXTERNAL" in (client.begin().mechanisms or ())
    client.call(c.ConnectionStartOk(mechanism="EXTERNAL", response=b"", locale="en_US"), c.ConnectionTune)


@pytest.mark.rule("0-10/connection.secure/challenge")
@pytest.mark.rule("0-10/connection.secure-ok/response")
@pytest.mark.rule("0-10/connection/grammar#secure")
def test_cram_md5_login_answers_challenge_of_connection_secure(server: Server) -> None:
    client = server.dial()
    client.begin()
    secure = client.call(c.ConnectionStartOk(mechanism="CRAM-MD5", locale="en_US"), c.ConnectionSecure)
    assert secure.challenge
    digest = hmac.new(b"guest", secure.challenge, "md5").hexdigest()
    client.call(c.ConnectionSecureOk(response=f"guest {digest}".encode()), c.ConnectionTune)


@pytest.mark.rule("0-10/connection.secure-ok/response")
def test_wrong_cram_md5_response_ends_connection(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.call(c.ConnectionStartOk(mechanism="CRAM-MD5", locale="en_US"), c.ConnectionSecure)
    client.send(c.ConnectionSecureOk(response=b"guest 0123456789abcdef0123456789abcdef"))
    _refused(client)


# --- tune --------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/connection.tune/channel-max")
@pytest.mark.rule("0-10/connection.tune/max-frame-size-minimum#proposed")
@pytest.mark.rule("0-10/connection.tune/heartbeat-max-permitted-range")
@pytest.mark.rule("0-10/connection.tune/heartbeat-max-no-heartbeat-min")
def test_connection_tune_offers_valid_channel_frame_and_heartbeat_limits(server: Server) -> None:
    client = server.dial()
    client.begin()
    tune = client.login()
    assert tune.channel_max and tune.max_frame_size and tune.max_frame_size >= 4096
    assert tune.heartbeat_min is not None and tune.heartbeat_max is not None
    assert tune.heartbeat_min <= tune.heartbeat_max


def test_tune_ok_with_offered_maximum_values_is_accepted(server: Server) -> None:
    client = server.dial()
    client.begin()
    tune = client.login()
    client.send(c.ConnectionTuneOk(channel_max=tune.channel_max, max_frame_size=tune.max_frame_size))
    client.call(c.ConnectionOpen(virtual_host="/"), c.ConnectionOpenOk)


@pytest.mark.rule("0-10/connection.tune-ok/channel-max-upper-limit#ends")
@pytest.mark.rule("0-10/connection.tune-ok/channel-max-upper-limit#silently")
@pytest.mark.deviates("0-10/connection.tune-ok/channel-max-upper-limit#silently")
def test_channel_max_above_offer_ends_connection(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk(channel_max=65535, max_frame_size=65535, heartbeat=0))
    _refused(client)


def _asking_for_too_large_frames(name: str) -> Client:
    client = _offering(name, max_frame_size=4096).dial()
    client.begin()
    assert client.login().max_frame_size == 4096
    client.send(c.ConnectionTuneOk(channel_max=10, max_frame_size=4097))
    return client


@pytest.mark.rule("0-10/connection.tune-ok/max-frame-size-upper-limit#ends")
@pytest.mark.rule("0-10/connection.tune-ok/max-frame-size-upper-limit#silently")
def test_spec_personality_ends_connection_silently_when_max_frame_size_is_above_offer() -> None:
    _asking_for_too_large_frames("spec").expect_silent_end()


@pytest.mark.rule("0-10/connection.tune-ok/max-frame-size-upper-limit#ends")
@pytest.mark.deviates("0-10/connection.tune-ok/max-frame-size-upper-limit#silently")
def test_default_personality_sends_close_320_when_max_frame_size_is_above_offer() -> None:
    _asking_for_too_large_frames("rabbitmq-4.3").expect_close(320)


@pytest.mark.rule("0-10/connection.tune/max-frame-size-minimum#agreed")
@pytest.mark.rule("0-10/frame/min-max-frame-size#agreed")
@pytest.mark.rule("0-10/connection.tune-ok/max-frame-size-minimum")
def test_max_frame_size_below_4096_ends_connection(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk(channel_max=10, max_frame_size=4095))
    _refused(client)


@pytest.mark.rule("0-10/connection.tune-ok/heartbeat-permitted-range#most")
def test_heartbeat_above_offered_range_ends_connection_with_reason(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = server.dial()
    client.begin()
    tune = client.login()
    most = tune.heartbeat_max or 0
    client.send(c.ConnectionTuneOk(channel_max=10, heartbeat=most + 1))
    answer = client.inbox[-1].what if client.inbox else None
    _refused(client)
    said = [record.getMessage() for record in caplog.records] + [getattr(answer, "reply_text", None) or ""]
    text = f"negotiated heartbeat = {most + 1} is higher than what is allowed ({most})"
    assert any(text in each for each in said)


@pytest.mark.rule("0-10/connection.tune-ok/heartbeat-permitted-range#least")
@pytest.mark.parametrize("name", ["rabbitmq-4.3", "spec"])
def test_heartbeat_below_offered_range_ends_connection(name: str) -> None:
    server = _offering(name, heartbeat_min=5)
    server.open(heartbeat=5)
    client = server.dial()
    client.begin()
    assert client.login().heartbeat_min == 5
    client.send(c.ConnectionTuneOk(channel_max=10, heartbeat=4))
    _refused(client)


@pytest.mark.rule("0-10/frame/min-max-frame-size#before")
@pytest.mark.rule("0-10/connection.tune/max-frame-size-minimum#before")
def test_frame_of_4096_octets_is_accepted_before_tuning(server: Server) -> None:
    client = server.dial()
    client.begin()
    start_ok = c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
    start_ok.client_properties = {"filling": ""}
    start_ok.client_properties = {"filling": "x" * (4096 - 12 - len(start_ok.encode()))}
    assert len(start_ok.encode()) + 12 == 4096
    client.call(start_ok, c.ConnectionTune)


@pytest.mark.rule("0-10/connection.tune-ok/max-frame-size-max-frame-size#taken")
@pytest.mark.rule("0-10/frame/framing-error")
def test_frame_above_agreed_size_closes_connection_with_framing_error(server: Server) -> None:
    client = server.open(max_frame_size=4096)
    session = client.session()
    session.declare("q")
    client.max_frame_size = 4097
    session.publish(b"x" * 5000)
    session._skip(c.SessionCompleted, c.SessionCommandPoint)
    client.expect_close(501)


@pytest.mark.rule("0-10/connection.tune-ok/max-frame-size-max-frame-size#sent")
def test_broker_sends_no_frame_above_agreed_size(server: Server) -> None:
    session = server.open(max_frame_size=4096).session()
    session.declare("q")
    session.publish(b"x" * 20_000)
    session.subscribe()
    (transfer,) = session.transfers()
    assert transfer.body == b"x" * 20_000
    octets, sizes = session.client.bytes_in.removeprefix(session.client.header), []
    while octets:
        sizes.append(FRAME_HEADER.unpack_from(octets)[2])
        octets = octets[sizes[-1] :]
    assert max(sizes) == 4096


@pytest.mark.rule("0-10/connection.tune-ok/channel-max-available-channels#within")
@pytest.mark.rule("0-10/connection.tune-ok/channel-max-available-channels#beyond")
@pytest.mark.rule("0-10/frame/channel-range#within")
@pytest.mark.rule("0-10/frame/channel-range#beyond")
def test_channel_numbers_run_from_zero_to_channel_max_minus_1(server: Server) -> None:
    client = server.open(channel_max=3)
    for channel in (0, 2):
        client.session(b"%d" % channel, channel)
    client.send(c.SessionAttach(name=b"3"), 3)
    client.expect_close(501)


# --- open --------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/connection.open-ok/known-hosts")
@pytest.mark.rule("0-10/connection.open/capabilities")
def test_open_ok_carries_known_hosts(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk())
    capabilities = Array.of("str16", ["wishes"])
    open_ok = client.call(c.ConnectionOpen(virtual_host="/", capabilities=capabilities), c.ConnectionOpenOk)
    assert open_ok.known_hosts == []


@pytest.mark.rule("0-10/connection.open/unknown-vhost")
@pytest.mark.rule("0-10/connection/close-code-invalid-path")
def test_open_of_unknown_virtual_host_closes_connection_with_invalid_path(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk())
    client.send(c.ConnectionOpen(virtual_host="nowhere"))
    assert "nowhere" in (client.expect_close(402).reply_text or "")


@pytest.mark.rule("0-10/connection.open/virtual-host-security")
def test_open_of_virtual_host_without_permission_closes_connection_with_320(server: Server) -> None:
    server.state.access.add(User("stranger", "secret", (), {}))
    client = server.dial()
    client.begin()
    client.login("stranger", "secret")
    client.send(c.ConnectionTuneOk())
    client.send(c.ConnectionOpen(virtual_host="/"))
    client.expect_close(320)


@pytest.mark.rule("0-10/exchange/name#scoped")
@pytest.mark.rule("0-10/connection.open/virtual-host-separation#queues")
@pytest.mark.rule("0-10/connection.open/virtual-host-separation#exchanges")
@pytest.mark.rule("0-10/connection.open/virtual-host-separation#messages")
def test_virtual_hosts_have_separate_queues_exchanges_and_messages(server: Server) -> None:
    server.state.add_virtual_host("other")
    server.state.access.add(User("two", "two", (), {"/": Permission(), "other": Permission()}))
    here = server.session(user="two", password="two")
    here.declare("q")
    here.declare_exchange("e", "fanout")
    there = server.session(user="two", password="two", virtual_host="other")
    assert there.query("q").queue is None
    assert there.call(x.ExchangeQuery(name="e")).not_found
    there.declare("q")
    there.bind("q", "amq.fanout")
    here.publish(b"for here")
    here.publish(b"for nobody", exchange="amq.fanout")
    there.publish(b"for there")
    for each, bodies in ((here, [b"for here"]), (there, [b"for there"])):
        each.subscribe()
        assert each.bodies() == bodies


@pytest.mark.rule("0-10/connection.redirect/instead")
@pytest.mark.rule("0-10/connection.redirect/usage")
@pytest.mark.rule("0-10/connection/host-url")
@pytest.mark.rule("0-10/connection/host-array")
def test_open_is_answered_with_redirect_when_broker_has_moved(server: Server) -> None:
    server.state.redirect = Redirect("there.example:5673", ("elsewhere.example",))
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk())
    redirect = client.call(c.ConnectionOpen(virtual_host="/"), c.ConnectionRedirect)
    assert (redirect.host, redirect.known_hosts) == ("there.example:5673", ["elsewhere.example"])


@pytest.mark.rule("0-10/connection.open/insist-behavior#opens")
def test_open_with_insist_is_not_redirected(server: Server) -> None:
    server.state.redirect = Redirect("there.example:5673")
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk())
    client.call(c.ConnectionOpen(virtual_host="/", insist=True), c.ConnectionOpenOk)


@pytest.mark.rule("0-10/connection.open/insist-behavior#closes")
def test_open_with_insist_of_unknown_virtual_host_closes_connection_with_402(server: Server) -> None:
    server.state.redirect = Redirect("there.example:5673")
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk())
    client.send(c.ConnectionOpen(virtual_host="nowhere", insist=True))
    client.expect_close(402)


# --- order -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/connection/out-of-order")
@pytest.mark.parametrize(
    "control",
    [c.ConnectionTuneOk(), c.ConnectionOpen(virtual_host="/"), c.ConnectionSecureOk(response=b"")],
    ids=lambda control: control.NAME,
)
def test_connection_control_out_of_order_ends_connection(server: Server, control: Any) -> None:
    client = server.dial()
    client.begin()
    client.send(control)
    _refused(client)


@pytest.mark.rule("0-10/connection/out-of-order")
def test_session_attach_before_open_ends_connection(server: Server) -> None:
    client = server.dial()
    client.begin()
    client.send(c.SessionAttach(name=b"early"))
    _refused(client)
    assert not server.state.sessions


@pytest.mark.rule("0-10/connection/out-of-order")
def test_second_connection_open_closes_connection_with_320(client: Client) -> None:
    client.send(c.ConnectionOpen(virtual_host="/"))
    client.expect_close(320)


# --- heartbeats --------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/connection.heartbeat/no-reply")
def test_heartbeat_of_client_is_not_answered(client: Client) -> None:
    client.send(c.ConnectionHeartbeat())
    client.expect_nothing()


@pytest.mark.rule("0-10/connection.heartbeat/idle")
def test_broker_sends_heartbeat_on_idle_connection(server: Server) -> None:
    client = server.open(heartbeat=10)
    server.advance(10)
    client.expect(c.ConnectionHeartbeat)


def test_heartbeat_zero_disables_heartbeats_and_timeout(server: Server) -> None:
    client = server.open(heartbeat=0)
    server.advance(1000)
    client.expect_nothing()
    assert not client.closed


@pytest.mark.rule("0-10/connection.tune/heartbeat-min")
@pytest.mark.rule("0-10/connection.tune/heartbeat-max-no-heartbeat-min")
@pytest.mark.parametrize("name", ["rabbitmq-4.3", "spec"])
def test_offer_without_heartbeat_min_disables_heartbeats_and_timeout(name: str) -> None:
    server = _offering(name, heartbeat_min=None)
    client = server.dial()
    client.begin()
    tune = client.login()
    assert (tune.heartbeat_min, tune.heartbeat_max) == (None, None)
    client.send(c.ConnectionTuneOk())
    client.call(c.ConnectionOpen(virtual_host="/"), c.ConnectionOpenOk)
    server.advance(1000)
    client.expect_nothing()
    assert not client.closed


@pytest.mark.rule("0-10/connection.tune-ok/heartbeat-no-heartbeat-min")
@pytest.mark.parametrize("name", ["rabbitmq-4.3", "spec"])
def test_heartbeat_not_offered_ends_connection(name: str) -> None:
    client = _offering(name, heartbeat_min=None).dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk(heartbeat=1))
    _refused(client)


@pytest.mark.rule("0-10/connection.heartbeat/timeout")
def test_connection_is_aborted_after_client_is_silent_for_two_heartbeat_intervals(server: Server) -> None:
    client = server.open(heartbeat=10)
    server.advance(15)
    client.send(c.ConnectionHeartbeat())
    server.advance(19)
    assert not client.closed
    server.advance(3)
    assert client.connection.aborted


# --- close -------------------------------------------------------------------------------------------


@pytest.mark.rule("0-10/connection.close/answered")
@pytest.mark.rule("0-10/connection/grammar#closing")
@pytest.mark.rule("0-10/connection.close-ok/release")
@pytest.mark.rule("0-10/connection/close-code-normal")
def test_connection_close_is_answered_and_transport_ends(client: Client) -> None:
    client.call(c.ConnectionClose(reply_code=200, reply_text="done"), c.ConnectionCloseOk)
    client.expect_silent_end()


@pytest.mark.rule("0-10/connection.close/reason")
@pytest.mark.rule("0-10/connection/grammar#closing")
@pytest.mark.rule("0-10/connection/close-code-forced")
def test_close_by_operator_carries_code_and_reason(server: Server, client: Client) -> None:
    (connection,) = server.state.connections
    connection.close_by_operator(320, "maintenance")
    assert client.expect_close(320).reply_text == "maintenance"


@pytest.mark.rule("0-10/connection/close-code-forced")
def test_close_by_operator_with_code_541_is_sent_as_connection_forced(server: Server, client: Client) -> None:
    (connection,) = server.state.connections
    connection.close_by_operator(541, "trouble")
    client.expect_close(320)


@pytest.mark.rule("0-10/frame/connection-any-channel#culprit")
@pytest.mark.rule("0-10/connection.close/culprit-channel")
def test_connection_close_is_sent_on_channel_of_faulty_frame(client: Client) -> None:
    client.session(b"five", 5)
    client.send_frame(b"", kind=2, track=1, channel=5)
    got = client.take()
    assert isinstance(got.what, c.ConnectionClose) and got.channel == 5
    assert got.what.reply_code == 501


def test_commands_are_ignored_after_connection_close_of_broker(server: Server, client: Client) -> None:
    session = client.session()
    (connection,) = server.state.connections
    connection.close_by_operator(320, "maintenance")
    client.inbox.clear()
    session.send(x.QueueDeclare(queue="late"))
    client.expect_nothing()
    assert "late" not in server.vhost.queues
    client.send(c.ConnectionClose(reply_code=200))
    client.expect(c.ConnectionCloseOk)


@pytest.mark.rule("0-10/frame/connection-any-channel#any")
def test_connection_controls_are_accepted_on_any_channel(client: Client) -> None:
    client.send(c.ConnectionHeartbeat(), 7)
    client.expect_nothing()
    client.send(c.ConnectionClose(reply_code=200), 7)
    assert isinstance(client.take().what, c.ConnectionCloseOk)


# --- what the broker's log and limits say ---------------------------------------------------------------


@pytest.mark.rule("0-10/connection.close-ok/reporting")
@pytest.mark.parametrize("closing", [False, True])
def test_socket_end_without_close_ok_is_logged(
    server: Server, client: Client, closing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    (connection,) = server.state.connections
    if closing:
        connection.close_by_operator(320, "maintenance")
    with caplog.at_level(logging.INFO, "fakeamqp"):
        caplog.clear()
        client.drop()
    assert [record.getMessage() for record in caplog.records] == [
        f"{connection.name}: the transport ended without connection.close-ok"
    ]


@pytest.mark.rule("0-10/connection.close-ok/reporting")
def test_socket_end_after_close_ok_is_not_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fakeamqp"):
        client.call(c.ConnectionClose(reply_code=200, reply_text="done"), c.ConnectionCloseOk)
        client.drop()
    assert not caplog.records


@pytest.mark.rule("0-10/connection.open/limits")
@pytest.mark.parametrize("limit", [0, 2])
def test_connection_above_limit_of_virtual_host_is_refused(server: Server, limit: int) -> None:
    server.vhost.limits = VirtualHostLimits(max_connections=limit)
    clients = [server.open() for _ in range(limit)]
    refused = server.dial()
    refused.begin()
    refused.login()
    refused.send(c.ConnectionTuneOk())
    refused.send(c.ConnectionOpen(virtual_host="/"))
    text = f"access to vhost '/' refused for user 'guest': connection limit ({limit}) is reached"
    assert refused.expect_close(320).reply_text == text
    for number, client in enumerate(clients):
        client.session(b"stays %d" % number)
    if clients:
        clients[0].drop()
        server.open()


@pytest.mark.rule("0-10/connection.open/limits")
def test_connection_limit_does_not_apply_to_another_virtual_host(server: Server) -> None:
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = Permission()
    server.vhost.limits = VirtualHostLimits(max_connections=0)
    session = server.session(virtual_host="other")
    session.declare("q")
    assert session.query("q").queue == "q"
