"""Class connection of 0-10: the handshake, its limits, the close."""

from __future__ import annotations

import hmac
import logging
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Client, Server
from compat_tests.tools.matrix import marked_rows, rows
from fakeamqp.model.access import Permission, User
from fakeamqp.model.limits import VirtualHostLimits
from fakeamqp.model.personality import personality
from fakeamqp.model.state import Redirect
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER
from fakeamqp.protocols.amqp_0_10.codec.types import Array

rule = pytest.mark.rule


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
@rule("0-10/connection.start/server-properties-required-fields")
def test_connection_start_carries_required_server_properties_as_texts(server: Server) -> None:
    properties = server.dial().begin().server_properties
    assert properties is not None
    assert set(properties) >= {"host", "product", "version", "platform", "copyright", "information"}
    assert all(isinstance(each, str) and each for each in properties.values())


@rule("0-10/connection.start/mechanisms-array", "0-10/connection.start/locales-required-support")
def test_mechanisms_and_locales_are_arrays_of_strings(server: Server) -> None:
    start = server.dial().begin()
    assert isinstance(start.mechanisms, Array) and isinstance(start.locales, Array)
    assert {"PLAIN", "ANONYMOUS", "CRAM-MD5"} <= set(start.mechanisms)
    assert "en_US" in start.locales


@rule("0-10/connection.start-ok/response", "0-10/connection/grammar#opening")
def test_handshake_with_plain_opens_and_closes_connection(server: Server) -> None:
    client = server.tuned(channel_max=10, max_frame_size=4096, heartbeat=0)
    client.call(c.ConnectionOpen(virtual_host="/"), c.ConnectionOpenOk)
    client.call(c.ConnectionClose(reply_code=200), c.ConnectionCloseOk)
    client.expect_silent_end()


def test_handshake_accepts_controls_without_required_fields(server: Server) -> None:
    client = server.started()
    client.call(c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest"), c.ConnectionTune)
    client.send(c.ConnectionTuneOk()).call(c.ConnectionOpen(), c.ConnectionOpenOk)
    assert client.session().query("none").queue is None


@rule("0-10/connection.start-ok/mechanism-validity#ends")
@rule("0-10/connection.start-ok/mechanism-validity#silently")
@pytest.mark.deviates("0-10/connection.start-ok/mechanism-validity#silently")
def test_sasl_mechanism_not_offered_ends_connection(server: Server) -> None:
    client = server.started()
    client.send(c.ConnectionStartOk(mechanism="EXTERNAL", response=b"guest", locale="en_US"))
    _refused(client)


@rule("0-10/connection.start-ok/locale")
@pytest.mark.parametrize("locale", ["xx_XX", "", "en_us"])
def test_spec_personality_ends_connection_with_locale_not_offered(spec: Server, locale: str) -> None:
    client = spec.dial()
    assert tuple(client.begin().locales or ()) == ("en_US",)
    client.send(_plain(locale))
    _refused(client)


DEVIATION = pytest.mark.deviates(
    "0-10/connection.start-ok/locale", "0-10/execution.exception/description-locale"
)


@marked_rows(
    "personality, locale",
    (rule("0-10/execution.exception/description-locale"), "spec", "en_US"),
    (DEVIATION, "rabbitmq-4.3", "xx_XX"),
    (DEVIATION, "rabbitmq-4.3", ""),
    (DEVIATION, "rabbitmq-4.3", "en_us"),
)
def test_exception_description_is_in_english_for_any_locale(personality: str, locale: str) -> None:
    client = Server(personality).started()
    client.call(_plain(locale), c.ConnectionTune)
    client.send(c.ConnectionTuneOk()).call(c.ConnectionOpen(), c.ConnectionOpenOk)
    exception = client.session().fails(x.QueueDelete(queue="missing"), 404)
    assert exception.description == "there is no queue 'missing'"


def _plain(locale: str) -> c.ConnectionStartOk:
    return c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale=locale)


def test_anonymous_client_is_user_guest(server: Server) -> None:
    client = server.started()
    client.call(c.ConnectionStartOk(mechanism="ANONYMOUS", response=b"", locale="en_US"), c.ConnectionTune)
    client.send(c.ConnectionTuneOk()).call(c.ConnectionOpen(), c.ConnectionOpenOk)
    (connection,) = server.state.connections
    assert connection.user_name == "guest"


def test_anonymous_client_is_refused_when_guest_has_other_or_no_password(server: Server) -> None:
    for guest in (User("guest", "another", (), {"/": Permission()}), User("guest", None)):
        server.state.access.add(guest)
        client = server.dial()
        client.begin()
        client.send(c.ConnectionStartOk(mechanism="ANONYMOUS", response=b"", locale="en_US"))
        _refused(client)


@rule("0-10/connection.secure-ok/response")
@pytest.mark.parametrize("mechanism", ["PLAIN", "CRAM-MD5"])
@pytest.mark.parametrize(("user", "password"), [("guest", "wrong"), ("blank", "")])
def test_login_with_wrong_password_fails(server: Server, mechanism: str, user: str, password: str) -> None:
    server.state.access.add(User("blank", "", (), {"/": Permission()}))
    client = server.started()
    if mechanism == "PLAIN":
        response = f"\0{user}\0{password}".encode()
        client.send(c.ConnectionStartOk(mechanism="PLAIN", response=response, locale="en_US"))
    else:
        _answer_challenge(client, user, password)
    _refused(client)


def _answer_challenge(client: Client, user: str, password: str) -> None:
    """Log in with CRAM-MD5."""
    secure = client.call(c.ConnectionStartOk(mechanism="CRAM-MD5", locale="en_US"), c.ConnectionSecure)
    assert secure.challenge
    digest = hmac.new(password.encode(), secure.challenge, "md5").hexdigest()
    client.send(c.ConnectionSecureOk(response=f"{user} {digest}".encode()))


def test_external_mechanism_accepts_name_of_verified_client_certificate(server: Server) -> None:
    client = server.dial(tls=True, certificate_subject="guest")
    assert "EXTERNAL" in (client.begin().mechanisms or ())
    client.call(c.ConnectionStartOk(mechanism="EXTERNAL", response=b"", locale="en_US"), c.ConnectionTune)


@rule("0-10/connection.secure/challenge", "0-10/connection.secure-ok/response")
@rule("0-10/connection/grammar#secure")
def test_cram_md5_login_answers_challenge_of_connection_secure(server: Server) -> None:
    client = server.started()
    _answer_challenge(client, "guest", "guest")
    client.expect(c.ConnectionTune)


# --- tune --------------------------------------------------------------------------------------------
@rule("0-10/connection.tune/channel-max", "0-10/connection.tune/max-frame-size-minimum#proposed")
@rule("0-10/connection.tune/heartbeat-max-permitted-range")
@rule("0-10/connection.tune/heartbeat-max-no-heartbeat-min")
def test_connection_tune_offers_valid_channel_frame_and_heartbeat_limits(server: Server) -> None:
    tune = server.started().login()
    assert tune.channel_max and tune.max_frame_size and tune.max_frame_size >= 4096
    assert tune.heartbeat_min is not None and tune.heartbeat_max is not None
    assert tune.heartbeat_min <= tune.heartbeat_max


def test_tune_ok_with_offered_maximum_values_is_accepted(server: Server) -> None:
    client = server.started()
    tune = client.login()
    client.send(c.ConnectionTuneOk(channel_max=tune.channel_max, max_frame_size=tune.max_frame_size))
    client.call(c.ConnectionOpen(virtual_host="/"), c.ConnectionOpenOk)


deviates = pytest.mark.deviates
MANY_CHANNELS = (
    rule("0-10/connection.tune-ok/channel-max-upper-limit#ends"),
    rule("0-10/connection.tune-ok/channel-max-upper-limit#silently"),
    deviates("0-10/connection.tune-ok/channel-max-upper-limit#silently"),
)
LARGE_FRAMES = (
    rule("0-10/connection.tune-ok/max-frame-size-upper-limit#ends"),
    rule("0-10/connection.tune-ok/max-frame-size-upper-limit#silently"),
    deviates("0-10/connection.tune-ok/max-frame-size-upper-limit#silently"),
)
CHANNELS = {"channel_max": 65535, "max_frame_size": 65535, "heartbeat": 0}
SMALLEST = rule("0-10/connection.tune/max-frame-size-minimum#agreed", "0-10/frame/min-max-frame-size#agreed")
SMALL_TUNE_OK = rule("0-10/connection.tune-ok/max-frame-size-minimum")
LEAST = rule("0-10/connection.tune-ok/heartbeat-permitted-range#least")
NO_HEARTBEAT = rule("0-10/connection.tune-ok/heartbeat-no-heartbeat-min")


@marked_rows(
    "offer, tune_ok",
    (MANY_CHANNELS, {}, CHANNELS),
    (LARGE_FRAMES, {"max_frame_size": 4096}, {"max_frame_size": 4097}),
    ((SMALLEST, SMALL_TUNE_OK), {}, {"max_frame_size": 4095}),
    (LEAST, {"heartbeat_min": 5}, {"heartbeat": 4}),
    (NO_HEARTBEAT, {"heartbeat_min": None}, {"heartbeat": 1}),
    ids=["channels", "large frames", "small frames", "heartbeat below range", "heartbeat not offered"],
)
def test_tune_ok_outside_of_the_offer_ends_connection(
    server: Server, offer: dict[str, int | None], tune_ok: dict[str, int]
) -> None:
    if offer:
        server = _offering(server.state.personality.name, **offer)
    client = server.started()
    tune = client.login()
    assert all(getattr(tune, name) == value for name, value in offer.items())
    client.send(c.ConnectionTuneOk(**tune_ok))
    _refused(client)


def test_lowest_offered_heartbeat_is_accepted(server: Server) -> None:
    _offering(server.state.personality.name, heartbeat_min=5).open(heartbeat=5)


@rule("0-10/connection.tune-ok/heartbeat-permitted-range#most")
def test_heartbeat_above_offered_range_ends_connection_with_reason(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = server.started()
    tune = client.login()
    most = tune.heartbeat_max or 0
    client.send(c.ConnectionTuneOk(channel_max=10, heartbeat=most + 1))
    answer = client.inbox[-1].what if client.inbox else None
    _refused(client)
    said = [record.getMessage() for record in caplog.records] + [getattr(answer, "reply_text", None) or ""]
    text = f"negotiated heartbeat = {most + 1} is higher than what is allowed ({most})"
    assert any(text in each for each in said)


@rule("0-10/frame/min-max-frame-size#before", "0-10/connection.tune/max-frame-size-minimum#before")
def test_frame_of_4096_octets_is_accepted_before_tuning(server: Server) -> None:
    client = server.started()
    start_ok = c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
    start_ok.client_properties = {"filling": ""}
    start_ok.client_properties = {"filling": "x" * (4096 - 12 - len(start_ok.encode()))}
    assert len(start_ok.encode()) + 12 == 4096
    client.call(start_ok, c.ConnectionTune)


@rule("0-10/connection.tune-ok/max-frame-size-max-frame-size#taken", "0-10/frame/framing-error")
def test_frame_above_agreed_size_closes_connection_with_framing_error(server: Server) -> None:
    client = server.open(max_frame_size=4096)
    session = client.session().declare("q")
    client.max_frame_size = 4097
    session.publish(b"x" * 5000)._skip(c.SessionCompleted, c.SessionCommandPoint)
    client.expect_close(501)


@rule("0-10/connection.tune-ok/max-frame-size-max-frame-size#sent")
def test_broker_sends_no_frame_above_agreed_size(server: Server) -> None:
    session = server.open(max_frame_size=4096).session().declare("q")
    (transfer,) = session.publish(b"x" * 20_000).subscribe().transfers()
    assert transfer.body == b"x" * 20_000
    octets, sizes = session.client.bytes_in.removeprefix(session.client.header), []
    while octets:
        sizes.append(FRAME_HEADER.unpack_from(octets)[2])
        octets = octets[sizes[-1] :]
    assert max(sizes) == 4096


@rule("0-10/connection.tune-ok/channel-max-available-channels#within")
@rule("0-10/connection.tune-ok/channel-max-available-channels#beyond", "0-10/frame/channel-range#within")
@rule("0-10/frame/channel-range#beyond")
def test_channel_numbers_run_from_zero_to_channel_max_minus_1(server: Server) -> None:
    client = server.open(channel_max=3)
    for channel in (0, 2):
        client.session(b"%d" % channel, channel)
    client.send(c.SessionAttach(name=b"3"), 3).expect_close(501)


# --- open --------------------------------------------------------------------------------------------
@rule("0-10/connection.open-ok/known-hosts", "0-10/connection.open/capabilities")
def test_open_ok_carries_known_hosts(server: Server) -> None:
    client = server.tuned()
    capabilities = Array.of("str16", ["wishes"])
    open_ok = client.call(c.ConnectionOpen(virtual_host="/", capabilities=capabilities), c.ConnectionOpenOk)
    assert open_ok.known_hosts == []


@rule("0-10/connection.open/unknown-vhost", "0-10/connection/close-code-invalid-path")
def test_open_of_unknown_virtual_host_closes_connection_with_invalid_path(server: Server) -> None:
    client = server.tuned().send(c.ConnectionOpen(virtual_host="nowhere"))
    assert "nowhere" in (client.expect_close(402).reply_text or "")


@rule("0-10/connection.open/virtual-host-security")
def test_open_of_virtual_host_without_permission_closes_connection_with_320(server: Server) -> None:
    server.state.access.add(User("stranger", "secret", (), {}))
    server.tuned("stranger", "secret").send(c.ConnectionOpen(virtual_host="/")).expect_close(320)


@rule("0-10/exchange/name#scoped", "0-10/connection.open/virtual-host-separation#queues")
@rule("0-10/connection.open/virtual-host-separation#exchanges")
@rule("0-10/connection.open/virtual-host-separation#messages")
def test_virtual_hosts_have_separate_queues_exchanges_and_messages(server: Server) -> None:
    server.state.add_virtual_host("other")
    server.state.access.add(User("two", "two", (), {"/": Permission(), "other": Permission()}))
    here = server.session(user="two", password="two").declare("q").declare_exchange("e", "fanout")
    there = server.session(user="two", password="two", virtual_host="other")
    assert there.query("q").queue is None
    assert there.call(x.ExchangeQuery(name="e")).not_found
    there.declare("q").bind("q", "amq.fanout")
    here.publish(b"for here").publish(b"for nobody", exchange="amq.fanout")
    there.publish(b"for there")
    for each, bodies in ((here, [b"for here"]), (there, [b"for there"])):
        each.subscribe()
        assert each.bodies() == bodies


@rule("0-10/connection.redirect/instead", "0-10/connection.redirect/usage", "0-10/connection/host-url")
@rule("0-10/connection/host-array")
def test_open_is_answered_with_redirect_when_broker_has_moved(server: Server) -> None:
    server.state.redirect = Redirect("there.example:5673", ("elsewhere.example",))
    redirect = server.tuned().call(c.ConnectionOpen(virtual_host="/"), c.ConnectionRedirect)
    assert (redirect.host, redirect.known_hosts) == ("there.example:5673", ["elsewhere.example"])


@rule("0-10/connection.open/insist-behavior#opens", "0-10/connection.open/insist-behavior#closes")
def test_open_with_insist_is_not_redirected(server: Server) -> None:
    server.state.redirect = Redirect("there.example:5673")
    server.tuned().call(c.ConnectionOpen(virtual_host="/", insist=True), c.ConnectionOpenOk)
    server.tuned().send(c.ConnectionOpen(virtual_host="nowhere", insist=True)).expect_close(402)


# --- order -------------------------------------------------------------------------------------------
@rule("0-10/connection/out-of-order")
@rows(
    "control",
    c.ConnectionTuneOk(),
    c.ConnectionOpen(virtual_host="/"),
    c.ConnectionSecureOk(response=b""),
    c.SessionAttach(name=b"early"),
    ids=lambda control: control.NAME,
)
def test_control_out_of_order_ends_connection(server: Server, control: Any) -> None:
    client = server.started().send(control)
    _refused(client)
    assert not server.state.sessions


@rule("0-10/connection/out-of-order")
def test_second_connection_open_closes_connection_with_320(client: Client) -> None:
    client.send(c.ConnectionOpen(virtual_host="/")).expect_close(320)


# --- heartbeats --------------------------------------------------------------------------------------
@rule("0-10/connection.heartbeat/no-reply")
def test_heartbeat_of_client_is_not_answered(client: Client) -> None:
    client.send(c.ConnectionHeartbeat()).expect_nothing()


@rule("0-10/connection.heartbeat/idle")
def test_broker_sends_heartbeat_on_idle_connection(server: Server) -> None:
    server.open(heartbeat=10).after(10).expect(c.ConnectionHeartbeat)


@rule("0-10/connection.tune/heartbeat-min", "0-10/connection.tune/heartbeat-max-no-heartbeat-min")
@pytest.mark.parametrize(("offer", "asked"), [({}, {"heartbeat": 0}), ({"heartbeat_min": None}, {})])
def test_heartbeat_of_zero_or_without_offer_disables_heartbeats_and_timeout(
    server: Server, offer: dict[str, None], asked: dict[str, int]
) -> None:
    server = _offering(server.state.personality.name, **offer)
    client = server.started()
    tune = client.login()
    if offer:
        assert (tune.heartbeat_min, tune.heartbeat_max) == (None, None)
    client.send(c.ConnectionTuneOk(**asked)).call(c.ConnectionOpen(virtual_host="/"), c.ConnectionOpenOk)
    client.after(1000).expect_nothing()
    assert not client.closed


@rule("0-10/connection.heartbeat/timeout")
def test_connection_is_aborted_after_client_is_silent_for_two_heartbeat_intervals(server: Server) -> None:
    client = server.open(heartbeat=10).after(15).send(c.ConnectionHeartbeat())
    assert not client.after(19).closed
    assert client.after(3).connection.aborted


# --- close -------------------------------------------------------------------------------------------
@rule("0-10/connection.close/answered", "0-10/connection/grammar#closing", "0-10/connection.close-ok/release")
@rule("0-10/connection/close-code-normal")
def test_connection_close_is_answered_and_transport_ends(client: Client) -> None:
    client.call(c.ConnectionClose(reply_code=200, reply_text="done"), c.ConnectionCloseOk)
    client.expect_silent_end()


@rule("0-10/connection.close/reason", "0-10/connection/grammar#closing")
@rule("0-10/connection/close-code-forced")
@pytest.mark.parametrize("code", [320, 541])
def test_close_by_operator_is_sent_as_connection_forced_with_reason(
    server: Server, client: Client, code: int
) -> None:
    (connection,) = server.state.connections
    connection.close_by_operator(code, "maintenance")
    assert client.expect_close(320).reply_text == "maintenance"


@rule("0-10/frame/connection-any-channel#culprit", "0-10/connection.close/culprit-channel")
def test_connection_close_is_sent_on_channel_of_faulty_frame(client: Client) -> None:
    client.session(b"five", 5)
    got = client.send_frame(b"", kind=2, track=1, channel=5).take()
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
    client.send(c.ConnectionClose(reply_code=200)).expect(c.ConnectionCloseOk)


@rule("0-10/frame/connection-any-channel#any")
def test_connection_controls_are_accepted_on_any_channel(client: Client) -> None:
    client.send(c.ConnectionHeartbeat(), 7).expect_nothing()
    client.send(c.ConnectionClose(reply_code=200), 7)
    assert isinstance(client.take().what, c.ConnectionCloseOk)


# --- what the broker's log and limits say ---------------------------------------------------------------
@rule("0-10/connection.close-ok/reporting")
@pytest.mark.parametrize("closing", [None, "by the broker", "by the client"])
def test_socket_end_is_logged_unless_connection_was_closed(
    server: Server, client: Client, closing: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    (connection,) = server.state.connections
    if closing == "by the broker":
        connection.close_by_operator(320, "maintenance")
    elif closing == "by the client":
        client.call(c.ConnectionClose(reply_code=200, reply_text="done"), c.ConnectionCloseOk)
    with caplog.at_level(logging.INFO, "fakeamqp"):
        caplog.clear()
        client.drop()
    logged = f"{connection.name}: the transport ended without connection.close-ok"
    expected = [] if closing == "by the client" else [logged]
    assert [record.getMessage() for record in caplog.records] == expected


@rule("0-10/connection.open/limits")
@pytest.mark.parametrize("limit", [0, 2])
def test_connection_above_limit_of_virtual_host_is_refused(server: Server, limit: int) -> None:
    server.vhost.limits = VirtualHostLimits(max_connections=limit)
    clients = [server.open() for _ in range(limit)]
    refused = server.tuned().send(c.ConnectionOpen(virtual_host="/"))
    text = f"access to vhost '/' refused for user 'guest': connection limit ({limit}) is reached"
    assert refused.expect_close(320).reply_text == text
    for number, client in enumerate(clients):
        client.session(b"stays %d" % number)
    if clients:
        clients[0].drop()
        server.open()


@rule("0-10/connection.open/limits")
def test_connection_limit_does_not_apply_to_another_virtual_host(server: Server) -> None:
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = Permission()
    server.vhost.limits = VirtualHostLimits(max_connections=0)
    assert server.session(virtual_host="other").declare("q").query("q").queue == "q"
