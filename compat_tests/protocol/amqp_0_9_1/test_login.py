from __future__ import annotations

import hmac
import logging
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import arguments, cut, field, long_string, short_string, table
from compat_tests.tools.matrix import rows
from fakeamqp.connection import PeerAddress
from fakeamqp.model.access import User
from fakeamqp.model.errors import AuthenticationFailed
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import method_frame
from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

rule = pytest.mark.rule
CAPABLE = {"capabilities": {"authentication_failure_close": True}}


def begin(server: Server) -> tuple[Client, m.ConnectionStart]:
    """A client that has got start."""
    client = server.connect()
    client.send_bytes(client.protocol_header)
    return client, client.expect(m.ConnectionStart, 0)


def start_ok(
    mechanism: str = "PLAIN", response: bytes = b"\0guest\0guest", **more: Any
) -> m.ConnectionStartOk:
    return m.ConnectionStartOk(**{"locale": "en_US", "mechanism": mechanism, "response": response, **more})


def expect_refusal(client: Client) -> None:
    """The socket ends without a word, and nobody is logged in."""
    client.expect_silent_end()
    assert client.connection not in client.server.state.connections


# --- start -------------------------------------------------------------------------------------------------
@rule("0-9-1/connection.start/first-frame")
def test_connection_start_is_the_first_frame_of_the_broker(server: Server) -> None:
    client = server.connect()
    client.send_bytes(client.protocol_header)
    [frame] = cut(client.take_bytes())
    assert (frame.type, frame.channel) == (1, 0)
    assert frame.payload[:4] == bytes.fromhex("000a000a")


@rule("0-9-1/connection.start/version-fields")
def test_start_names_version_0_9_and_no_revision(server: Server) -> None:
    client = server.connect()
    client.send_bytes(client.protocol_header)
    payload = cut(client.take_bytes())[0].payload
    assert payload[4:6] == b"\0\x09"
    properties = int.from_bytes(payload[6:10], "big")
    assert payload[10:].startswith(b"\x0ccapabilitiesF"), "the table follows at once"
    assert payload[10 + properties :].startswith(b"\0\0\0")


@rule("0-9-1/connection.start/protocol-name")
def test_unknown_protocol_name_is_answered_with_a_protocol_header(server: Server) -> None:
    client = server.connect()
    client.send_bytes(b"AMQX\x00\x00\x09\x01").expect_silent_end()
    assert client.header == server.state.personality.header_for_others


@rule("0-9-1/connection.start/server-support")
@pytest.mark.parametrize("version", [b"\x00\x02\x00\x00", b"\x02\x00\x00\x00", b"\x00\x00\x09\x02"])
def test_spec_answers_unknown_version_with_a_lower_version_header(spec: Server, version: bytes) -> None:
    client = spec.connect()
    client.send_bytes(b"AMQP" + version).expect_silent_end()
    assert client.header[:4] == b"AMQP"
    assert client.header[4:] < version


@rule("0-9-1/connection.start/server-support")
def test_connection_start_carries_the_requested_version_0_9(server: Server) -> None:
    _, start = begin(server)
    assert (start.version_major, start.version_minor) == (0, 9)


@rule("0-9-1/connection.start/server-properties-required-fields#others")
def test_server_properties_name_product_version_and_platform(server: Server) -> None:
    properties = begin(server)[1].server_properties
    for name in ("product", "version", "platform", "copyright", "information"):
        assert isinstance(properties[name], str)
        assert properties[name]
    assert (properties["product"] == "RabbitMQ") is (not server.is_spec)


@rule("0-9-1/connection.start/server-properties-required-fields#host")
def test_spec_personality_names_its_host_in_server_properties(spec: Server) -> None:
    client = spec.connect(server_host="192.0.2.1")
    client.send_bytes(client.protocol_header)
    assert client.expect(m.ConnectionStart, 0).server_properties["host"] == "192.0.2.1"


@pytest.mark.deviates("0-9-1/connection.start/server-properties-required-fields#host")
def test_rabbitmq_server_properties_have_no_host(rabbitmq: Server) -> None:
    assert "host" not in begin(rabbitmq)[1].server_properties


@rule("0-9-1/connection.start/mechanisms")
def test_mechanisms_of_connection_start_are_separated_by_spaces(server: Server) -> None:
    mechanisms = begin(server)[1].mechanisms.split(b" ")
    assert {b"PLAIN", b"AMQPLAIN"} <= set(mechanisms)
    assert all(mechanisms)


@rule("0-9-1/connection.start/locales-required-support")
def test_connection_start_offers_locale_en_us(server: Server) -> None:
    assert b"en_US" in begin(server)[1].locales.split(b" ")


@rule("0-9-1/connection.start/locales-format")
def test_locales_of_connection_start_are_separated_by_spaces(server: Server) -> None:
    locales = begin(server)[1].locales.split(b" ")
    assert locales
    assert all(locales)


@rule("0-9-1/connection.start/locale-of-texts")
def test_reply_text_of_channel_close_is_english(client: Client) -> None:
    assert (
        client.fails(m.QueueDeclare(queue="missing", passive=True), 404).reply_text
        == "NOT_FOUND - no queue 'missing' in vhost '/'"
    )


# --- start-ok ----------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
@rule("0-9-1/connection.start-ok/mechanism-validity")
@pytest.mark.parametrize("mechanism", ["XYZ", "", "plain", "EXTERNAL", "CRAM-MD5"])
@pytest.mark.parametrize("properties", [{}, CAPABLE], ids=["plain-client", "capable-client"])
def test_unoffered_mechanism_ends_socket(server: Server, mechanism: str, properties: dict[str, Any]) -> None:
    client, _ = begin(server)
    client.send(start_ok(mechanism, client_properties=properties), 0)
    expect_refusal(client)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.start-ok/mechanism-one-offered")
def test_start_ok_with_two_mechanisms_is_refused(server: Server) -> None:
    client, _ = begin(server)
    client.send(start_ok("PLAIN"), 0).expect(m.ConnectionTune, 0)
    client, _ = begin(server)
    client.send(start_ok("PLAIN AMQPLAIN"), 0)
    expect_refusal(client)


@rule("0-9-1/connection.start-ok/mechanism-one-offered")
def test_login_succeeds_with_every_offered_mechanism(server: Server) -> None:
    login = field("LOGIN", b"S" + long_string(b"guest")) + field("PASSWORD", b"S" + long_string(b"guest"))
    responses = {b"PLAIN": b"\0guest\0guest", b"AMQPLAIN": login, b"ANONYMOUS": b""}
    for mechanism in begin(server)[1].mechanisms.split(b" "):
        client, _ = begin(server)
        client.send(start_ok(mechanism.decode(), responses[mechanism]), 0).expect(m.ConnectionTune, 0)


GUEST = long_string(b"guest")


@pytest.mark.parametrize("login", [b"S" + GUEST, b"x" + GUEST])
@pytest.mark.parametrize("password", [b"S" + GUEST, b"x" + GUEST])
def test_amqplain_accepts_byte_arrays_as_credentials(server: Server, login: bytes, password: bytes) -> None:
    # RabbitMQ: measured on 4.0.5 and 4.3.6.
    client, _ = begin(server)
    client.send(start_ok("AMQPLAIN", field("LOGIN", login) + field("PASSWORD", password)), 0)
    client.expect(m.ConnectionTune, 0)


@rows("password", b"I\0\0\0\x05", b"t\x01", b"V", b"F" + table(), b"x" + long_string(b"x"))
def test_amqplain_password_of_non_string_type_is_refused_as_wrong(rabbitmq: Server, password: bytes) -> None:
    # RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6.
    client, _ = begin(rabbitmq)
    response = field("LOGIN", b"S" + GUEST) + field("PASSWORD", password)
    client.ends(start_ok("AMQPLAIN", response, client_properties=CAPABLE), 403, channel=0)


@pytest.mark.needs("inspection", "settings")
@rows(
    "mechanism, response",
    ("PLAIN", b"\0blank\0"),
    ("AMQPLAIN", field("LOGIN", b"S" + long_string(b"blank")) + field("PASSWORD", b"S" + long_string(b""))),
)
def test_login_with_blank_password_is_refused(server: Server, mechanism: str, response: bytes) -> None:
    # RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6.
    hashed = ("sha256", b64encode(b"salt" + sha256(b"salt").digest()).decode())
    for user in (User("blank", ""), User("blank", password_hash=hashed)):
        server.state.access.add(user)
        client, _ = begin(server)
        client.send(start_ok(mechanism, response), 0)
        expect_refusal(client)


@pytest.mark.needs("inspection", "settings")
def test_anonymous_login_is_refused_when_guest_has_another_password(server: Server) -> None:
    # RabbitMQ: measured on 4.0.5 and 4.3.6.
    for password in ("another", None):
        server.state.access.add(User("guest", password))
        client, start = begin(server)
        assert b"ANONYMOUS" in start.mechanisms.split(b" ")
        client.send(start_ok("ANONYMOUS", b""), 0)
        expect_refusal(client)


@pytest.mark.needs("inspection", "settings")
@rule("0-9-1/connection.start-ok/response-opaque")
@pytest.mark.parametrize("password", [" ", "'\"\\%s:@/?", "\x01\x7f\t\n", "x" * 2000, "ÿ\N{SNOWMAN}"])
def test_plain_response_is_compared_octet_by_octet(server: Server, password: str) -> None:
    server.state.access.add(User("name with: signs", password))
    response = b"\0name with: signs\0" + password.encode()
    client, _ = begin(server)
    client.send(start_ok("PLAIN", response), 0).expect(m.ConnectionTune, 0)
    for other in (response[:-1], response + b" ", response[1:], response.upper(), b"\0" + response):
        if other != response:
            client, _ = begin(server)
            client.send(start_ok("PLAIN", other), 0)
            expect_refusal(client)


@pytest.mark.needs("inspection", "settings")
@rule("0-9-1/connection.start-ok/response-opaque")
def test_plain_response_with_non_ascii_user_name_is_accepted(server: Server) -> None:
    server.state.access.add(User("ü\N{SNOWMAN}", "pass word"))
    client, _ = begin(server)
    client.send(start_ok("PLAIN", "\0ü\N{SNOWMAN}\0pass word".encode()), 0).expect(m.ConnectionTune, 0)
    client, _ = begin(server)
    client.send(start_ok("PLAIN", b"\0guest\0wrong"), 0)
    expect_refusal(client)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.start-ok/response-opaque")
@pytest.mark.parametrize("properties", [{}, CAPABLE], ids=["plain-client", "capable-client"])
@rows(
    "mechanism, response",
    ("PLAIN", b""),
    ("PLAIN", b"guest\0guest"),
    ("PLAIN", b"\0guest\0guest\0"),
    ("PLAIN", b"other\0guest\0guest"),
    ("AMQPLAIN", b""),
    ("AMQPLAIN", b"\xff\xff"),
    ("AMQPLAIN", field("LOGIN", b"S" + long_string(b"guest"))),
    ("AMQPLAIN", field("LOGIN", b"I\0\0\0\x01") + field("PASSWORD", b"S" + long_string(b"guest"))),
)
def test_malformed_plain_or_amqplain_response_ends_the_socket_silently(
    server: Server, mechanism: str, response: bytes, properties: dict[str, Any]
) -> None:
    client, _ = begin(server)
    client.send(start_ok(mechanism, response, client_properties=properties), 0)
    expect_refusal(client)


OTHER_LOCALES = pytest.mark.parametrize("locale", ["xx_XX", "", "en_us", "en_US en_US"])


@rule("0-9-1/connection.start-ok/locale-one-offered")
@OTHER_LOCALES
def test_spec_personality_refuses_locale_not_offered(spec: Server, locale: str) -> None:
    client, start = begin(spec)
    assert start.locales == b"en_US"
    client.send(start_ok(locale=locale), 0)
    expect_refusal(client)
    client, _ = begin(spec)
    client.send(start_ok(locale="en_US"), 0).expect(m.ConnectionTune, 0)


@pytest.mark.deviates("0-9-1/connection.start-ok/locale-one-offered")
@OTHER_LOCALES
def test_rabbitmq_accepts_any_locale(rabbitmq: Server, locale: str) -> None:
    client, _ = begin(rabbitmq)
    client.send(start_ok(locale=locale), 0).expect(m.ConnectionTune, 0)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.start-ok/authentication-failure")
@pytest.mark.parametrize("response", [b"\0guest\0wrong", b"\0nobody\0guest", b"\0guest\0"])
@pytest.mark.parametrize("properties", [{}, {"capabilities": {"authentication_failure_close": False}}])
def test_wrong_credentials_end_socket(server: Server, response: bytes, properties: dict[str, Any]) -> None:
    client, _ = begin(server)
    client.send(start_ok(response=response, client_properties=properties), 0)
    expect_refusal(client)


@pytest.mark.needs("inspection")
@pytest.mark.deviates("0-9-1/connection.start-ok/authentication-failure")
@pytest.mark.parametrize("response", [b"\0guest\0wrong", b"\0nobody\0guest", b"\0guest\0"])
def test_rabbitmq_answers_capable_client_with_403(rabbitmq: Server, response: bytes) -> None:
    rabbitmq.state.authentication_failure_delay = 3
    client, _ = begin(rabbitmq)
    close = client.ends(start_ok(response=response, client_properties=CAPABLE), 403, channel=0)
    assert close.reply_text == (
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
        "For details see the broker logfile."
    )
    assert (close.class_id, close.method_id) == (0, 0)


@rule("0-9-1/connection.start-ok/authentication-failure")
def test_spec_personality_ends_the_socket_of_capable_client_with_wrong_credentials(spec: Server) -> None:
    client, _ = begin(spec)
    client.send(start_ok(response=b"\0guest\0wrong", client_properties=CAPABLE), 0)
    expect_refusal(client)


@rule("0-9-1/connection.start-ok/large-properties")
def test_start_ok_of_4096_octets_is_accepted(server: Server) -> None:
    def payload(padding: int) -> bytes:
        properties = table(field("padding", b"S" + long_string(bytes(padding))))
        response = long_string(b"\0guest\0guest")
        return arguments(10, 11, properties, short_string("PLAIN"), response, short_string("en_US"))

    exact = payload(4096 - 8 - len(payload(0)))
    client, _ = begin(server)
    client.send_frame(1, 0, exact).expect(m.ConnectionTune, 0)


# --- failed handshakes -------------------------------------------------------------------------------------

FAILURES: list[Callable[[Client], None]] = [
    lambda client: client.send(start_ok(response=b"\0guest\0wrong"), 0),
    lambda client: client.send(start_ok("XYZ"), 0),
    lambda client: client.send(m.ConnectionTuneOk(), 0),
    lambda client: client.send_frame(1, 0, arguments(10, 11, b"\xff")),
]
FAILURE_NAMES = ["wrong-password", "unknown-mechanism", "out-of-order", "unreadable"]


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/security/negotiation-pause#pause", "0-9-1/security/negotiation-pause#close")
@pytest.mark.parametrize("fail", FAILURES, ids=FAILURE_NAMES)
def test_socket_of_failed_handshake_ends_after_authentication_failure_delay(
    server: Server, fail: Callable[[Client], None]
) -> None:
    server.state.authentication_failure_delay = 3
    client, _ = begin(server)
    fail(client)
    client.after(2.9).expect_nothing()
    assert not client.closed
    client.after(0.1).expect_silent_end()


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/security/negotiation-pause#pause", "0-9-1/security/negotiation-pause#close")
@pytest.mark.parametrize("fail", FAILURES, ids=FAILURE_NAMES)
def test_bytes_received_during_authentication_failure_delay_are_ignored(
    server: Server, fail: Callable[[Client], None]
) -> None:
    server.state.authentication_failure_delay = 3
    client, _ = begin(server)
    fail(client)
    client.send(start_ok(), 0).send_bytes(b"\xff" * 100).expect_nothing()
    assert not client.closed
    client.after(3).expect_silent_end()


@pytest.mark.needs("virtual time", "inspection")
@rule("0-9-1/security/negotiation-pause#pause", "0-9-1/security/negotiation-pause#close")
@rows("behind", b"\xff" * 100, b"\x01\0\0\0\0\0\x04\0\x0a\0\x1f\xce", ids=["garbage", "method"])
def test_bytes_in_one_write_behind_wrong_password_are_ignored(server: Server, behind: bytes) -> None:
    server.state.authentication_failure_delay = 3
    client, _ = begin(server)
    client.send_bytes(method_frame(0, start_ok(response=b"\0guest\0wrong").encode()) + behind)
    client.expect_nothing()
    assert not client.closed
    client.after(3).expect_silent_end()


@pytest.mark.deviates("0-9-1/security/negotiation-pause#pause")
@rule("0-9-1/security/negotiation-pause#close")
def test_failed_login_ends_the_socket_at_once_by_default(server: Server) -> None:
    client, _ = begin(server)
    client.send(start_ok(response=b"\0guest\0wrong"), 0).expect_silent_end()


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("fail", FAILURES, ids=FAILURE_NAMES)
def test_failed_handshake_is_logged_as_a_warning(
    server: Server, fail: Callable[[Client], None], caplog: pytest.LogCaptureFixture
) -> None:
    client, _ = begin(server)
    fail(client)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert client.connection.name in record.getMessage()


@pytest.mark.needs("virtual time")
def test_incomplete_handshake_is_aborted_after_10_seconds(server: Server) -> None:
    client, _ = begin(server)
    assert not client.after(9.9).closed
    assert client.after(0.2).connection.aborted


@pytest.mark.needs("virtual time", "settings")
def test_handshake_timeout_does_not_count_busy_time_of_the_broker(server: Server) -> None:
    client, _ = begin(server)
    server.state.operations.busy_seconds += 23
    assert not client.after(32.9).closed
    assert client.after(0.2).connection.aborted


# --- secure, secure-ok -------------------------------------------------------------------------------------
class Rounds:
    """A mechanism that asks three times, in bytes of every value, for the challenge reversed."""

    challenges = (b"\0\xff", bytes(range(256)), b"")

    def __init__(self, state: BrokerState, peer: PeerAddress) -> None:
        self.state = state
        self.asked = 0

    def step(self, response: bytes) -> User | bytes:
        if self.asked and response != self.challenges[self.asked - 1][::-1]:
            raise AuthenticationFailed("not reversed")
        if self.asked == len(self.challenges):
            return self.state.access.known("guest")
        self.asked += 1
        return self.challenges[self.asked - 1]


@pytest.fixture
def asking(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A broker that offers ROUNDS and CRAM-MD5."""
    monkeypatch.setitem(Amqp091Connection.MECHANISMS, "ROUNDS", Rounds)
    return server.varied(mechanisms=("ROUNDS", "CRAM-MD5"))


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.secure/challenge")
def test_mechanism_can_send_several_secure_challenges(asking: Server) -> None:
    client, start = begin(asking)
    assert start.mechanisms == b"ROUNDS CRAM-MD5"
    client.send(start_ok("ROUNDS", b""), 0)
    for _ in range(3):
        challenge = client.expect(m.ConnectionSecure, 0).challenge
        client.expect_nothing()
        client.send(m.ConnectionSecureOk(response=challenge[::-1]), 0)
    client.expect(m.ConnectionTune, 0)


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.secure/opaque")
def test_secure_challenge_can_contain_any_octets(asking: Server) -> None:
    client, _ = begin(asking)
    client.send(start_ok("ROUNDS", b""), 0)
    for challenge in Rounds.challenges:
        [frame] = cut(client.take_bytes())
        assert frame.payload == arguments(10, 20, long_string(challenge))
        client.send(m.ConnectionSecureOk(response=challenge[::-1]), 0)


def answer(challenge: bytes, password: bytes) -> bytes:
    return b"guest " + hmac.new(password, challenge, "md5").hexdigest().encode()


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.secure-ok/response")
def test_correct_cram_md5_response_is_answered_with_tune(asking: Server) -> None:
    client, _ = begin(asking)
    challenge = client.send(start_ok("CRAM-MD5", b""), 0).expect(m.ConnectionSecure, 0).challenge
    client.send(m.ConnectionSecureOk(response=answer(challenge, b"guest")), 0).expect(m.ConnectionTune, 0)


@pytest.mark.needs("inspection", "personality of choices")
@rule("0-9-1/connection.secure-ok/response")
@pytest.mark.parametrize("password", [b"wrong", None])
def test_wrong_cram_md5_response_ends_the_socket_silently(asking: Server, password: bytes | None) -> None:
    client, _ = begin(asking)
    challenge = client.send(start_ok("CRAM-MD5", b""), 0).expect(m.ConnectionSecure, 0).challenge
    response = b"" if password is None else answer(challenge, password)
    client.send(m.ConnectionSecureOk(response=response), 0)
    expect_refusal(client)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.secure-ok/unexpected")
def test_secure_ok_without_challenge_ends_the_socket_silently(server: Server) -> None:
    client, _ = begin(server)
    client.send(m.ConnectionSecureOk(response=b"\0guest\0guest"), 0)
    expect_refusal(client)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.secure-ok/unexpected")
def test_secure_ok_after_tune_ends_the_socket_silently(server: Server) -> None:
    client, _ = begin(server)
    client.send(start_ok(), 0).expect(m.ConnectionTune, 0)
    client.send(m.ConnectionSecureOk(response=b"\0guest\0guest"), 0)
    expect_refusal(client)


# --- EXTERNAL ----------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection", "settings", "addresses of peers")
def test_external_login_succeeds_with_verified_client_certificate(server: Server) -> None:
    server.state.access.add(User("worker"))
    client = server.connect(certificate_subject="worker", tls=True)
    client.send_bytes(client.protocol_header)
    assert client.expect(m.ConnectionStart, 0).mechanisms.startswith(b"EXTERNAL ")
    client.send(start_ok("EXTERNAL", b""), 0).expect(m.ConnectionTune, 0)
    [connection] = server.state.connections
    assert connection.user_name == "worker"


@pytest.mark.needs("inspection", "addresses of peers")
def test_external_login_with_certificate_of_unknown_user_is_refused(server: Server) -> None:
    client = server.started(certificate_subject="stranger", tls=True).send(start_ok("EXTERNAL", b""), 0)
    expect_refusal(client)


@pytest.mark.needs("inspection", "addresses of peers")
def test_guest_login_from_remote_host_is_refused(server: Server) -> None:
    client = server.started(host="192.0.2.7").send(start_ok(), 0)
    expect_refusal(client)


@pytest.mark.needs("addresses of peers", "personality of choices")
def test_guest_login_from_remote_host_succeeds_when_not_in_loopback_users(server: Server) -> None:
    client = server.varied(loopback_users=("ann",)).started(host="192.0.2.7")
    client.send(start_ok(), 0).expect(m.ConnectionTune, 0)
