"""The login of a connection: where it goes, what it says, why it is refused, and what is agreed on."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from compat_tests.unit.spark.wire.peers import (
    OPENED,
    START,
    content,
    opened,
    options,
    pair,
    received,
    sent,
    tune,
)
from fakeamqp import Broker, ServerTLS
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.spark.errors import BrokerUnreachable, ChannelClosed, ConnectionLost, LoginRefused, OptionError
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.login import is_untrusted
from fakeamqp.spark.wire.transport import in_words


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def guarded():
    with Broker(users={"me": "s3cret"}) as broker:
        yield broker


def test_connection_has_given_client_name_and_heartbeat(broker):
    given = {"amqp.clientName": "orders job", "amqp.heartbeat": "7"}
    with WireConnection(options(broker.url, **given)):
        (connection,) = broker.connections
        assert connection.client_properties["connection_name"] == "orders job"
        assert connection.heartbeat == 7
    broker.wait_until_idle()
    assert not broker.connections


@pytest.mark.parametrize(
    ("user", "path", "others"),
    [
        ("", "", {"amqp.username": "me", "amqp.password": "s3cret", "amqp.virtualHost": "v@h"}),
        ("me@", "v@h", {"amqp.password": "s3cret"}),
    ],
)
def test_user_password_and_virtual_host_may_be_options_of_their_own(user, path, others):
    with (
        Broker(users={"me": "s3cret"}, virtual_hosts=["v@h"]) as broker,
        WireConnection(options(f"amqp://{user}{broker.host}:{broker.port}/{path}", **others)),
    ):
        (connection,) = broker.connections
        assert (connection.user, connection.virtual_host) == ("me", "v@h")


def test_the_first_broker_that_answers_is_taken(broker):
    with Broker() as other:
        closed = other.url
    with WireConnection(options(f"{closed},{broker.url}")) as connection:
        assert len(broker.connections) == 1
        assert connection.channel().is_open


def test_every_broker_that_does_not_answer_is_named_without_its_password(broker):
    wrong = f"amqp://guest:s3cret@{broker.host}:{broker.port}/"
    with Broker() as other:
        closed = other.url
    long = f"amqp://guest:s3cret@{'x' * 64}.example/"
    with pytest.raises(BrokerUnreachable) as caught:
        WireConnection(options(f"{wrong},{closed},{long}")).open()
    assert not isinstance(caught.value, LoginRefused)  # One of them may come back.
    text = str(caught.value)
    assert "Connection refused" in text and "403 ACCESS_REFUSED" in text and "label" in text
    assert "s3cret" not in text and f"amqp://guest@{broker.host}:{broker.port}/" in text


def test_silent_broker_raises_broker_unreachable_after_connection_timeout(broker):
    broker.faults.network.hang()
    with pytest.raises(BrokerUnreachable, match=r"did not send connection\.start within 0\.05 s") as caught:
        WireConnection(options(broker.url, **{"amqp.connectionTimeout": "50ms"})).open()
    assert not isinstance(caught.value, LoginRefused)


def test_timeout_is_that_of_the_whole_login(monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, time_ns=lambda: 0)
    monkeypatch.setattr("fakeamqp.spark.wire.transport.time", clock)
    monkeypatch.setattr("fakeamqp.spark.wire.connection.time", clock)
    with pair() as (connection, peer):
        turn = connection.turn

        def slowly(left):
            assert left == 10.0 - clock.now
            peer.sendall({0.0: START, 6.0: b""}[clock.now])
            turn(0.0)
            clock.now += 6.0

        connection.turn = slowly
        with pytest.raises(BrokerUnreachable, match=r"did not send connection\.tune within 10 s"):
            connection.open()


# --- what is agreed on ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [(0, 131072), (4096, 4096), (131072, 131072), (1 << 20, 131072), (4294967295, 131072)],
)
def test_largest_frame_is_that_of_the_broker_up_to_128_kib(offered, agreed):
    with opened(tune(frame_max=offered)) as (connection, peer):
        assert connection.frame_max == agreed
        assert m.ConnectionTuneOk(channel_max=65535, frame_max=agreed, heartbeat=0) in received(peer)


def test_channels_are_as_many_as_the_broker_allows_and_their_numbers_are_used_again():
    with opened(tune(channel_max=2)) as (connection, peer):
        assert m.ConnectionTuneOk(channel_max=2, frame_max=131072, heartbeat=0) in received(peer)
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        first = connection.channel()
        peer.sendall(sent(m.ChannelOpenOk(), 2))
        second = connection.channel()
        assert (first.number, second.number) == (1, 2)
        with pytest.raises(ConnectionLost, match="the broker allows 2 channels, and all of them are open"):
            connection.channel()
        peer.sendall(sent(m.ChannelCloseOk(), 1))
        first.close()
        peer.sendall(sent(m.ChannelOpenOk(), 1))
        assert connection.channel().number == 1


def test_blocked_connection_has_the_reason_of_the_broker_until_it_is_unblocked(broker):
    with WireConnection(options(broker.url)) as connection:
        channel = connection.channel()
        channel.call(m.QueueDeclare(queue="q"))
        alarm = broker.faults.memory_alarm()
        connection.send(content(m.BasicPublish(routing_key="q"), b"m"))  # A broker tells publishers only.
        connection.wait_for(lambda: connection.blocked is not None, 5, "block")
        assert connection.blocked == "low on memory"
        alarm.remove()
        connection.wait_for(lambda: connection.blocked is None, 5, "unblock")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, (4, 2)),
        ({"version": "3.13.7"}, (3, 13)),
        ({"version": "a snapshot"}, (0, 0)),
        ({"product": "Another broker", "version": "4.2.1"}, (0, 0)),
        ({"product": "Another broker", "version": "new"}, (0, 0)),
    ],
)
def test_version_is_that_of_rabbitmq_only(changes, found):
    named = replace(personality("rabbitmq-4.2"), **changes)
    with Broker(personality=named) as broker, WireConnection(options(broker.url)) as connection:
        assert connection.broker_version == found
        assert connection.product == changes.get("product", "RabbitMQ")


# --- ends -------------------------------------------------------------------------------------------------


def test_lost_connection_raises_reply_text_of_broker_and_may_be_closed_twice(broker):
    connection = WireConnection(options(broker.url))
    connection.open()
    broker.connections[0].close(320, "maintenance")
    for use in (lambda: connection.wait_for(lambda: False, 5, "answer"), connection.channel):
        with pytest.raises(ConnectionLost, match=r"ended: 320 .*maintenance"):
            use()
    assert connection.closed.reply_code == 320
    assert "maintenance" in connection.closed.reply_text
    connection.send(b"nowhere")
    connection.close()
    connection.close()


def test_close_of_the_broker_is_answered():
    with opened() as (connection, peer):
        received(peer)
        peer.sendall(sent(m.ConnectionClose(reply_code=320, reply_text="maintenance")))
        connection.turn(5)
        assert received(peer) == [m.ConnectionCloseOk()]


def test_channel_closed_by_the_broker_leaves_the_connection_and_other_channels_usable(broker):
    with WireConnection(options(broker.url)) as connection:
        channel, other = connection.channel(), connection.channel()
        with pytest.raises(ChannelClosed, match="closed the channel: 404 NOT_FOUND - no queue 'nowhere'"):
            channel.count("nowhere")
        assert connection.lost is None
        other.call(m.QueueDeclare(queue="q"))
        assert connection.channel().number == channel.number


# --- passwords --------------------------------------------------------------------------------------------


def test_password_file_is_read_for_each_connection(guarded, tmp_path):
    file = tmp_path / "password"
    login = options(f"amqp://me@{guarded.host}:{guarded.port}/", **{"amqp.passwordFile": str(file)})
    with pytest.raises(OptionError, match=f"'amqp.passwordFile': cannot read {file}: No such file"):
        WireConnection(login).open()
    file.write_text("0ld\n")
    with pytest.raises(BrokerUnreachable, match="403") as caught:
        WireConnection(login).open()
    assert not isinstance(caught.value, LoginRefused)  # It may be renewed until the next attempt.
    file.write_text("s3cret\n")
    with WireConnection(login):
        assert guarded.connections[0].user == "me"
    garbled = tmp_path / "garbled"
    garbled.write_bytes(b"\xff s3cret")
    with pytest.raises(OptionError, match=r"cannot read .*: UnicodeDecodeError$"):
        WireConnection(options(guarded.url, **{"amqp.passwordFile": str(garbled)})).open()


def test_unreadable_password_file_is_temporary_error_after_earlier_successful_read(guarded, tmp_path):
    """A renewal of the file may delete it first."""
    file = tmp_path / "password"
    file.write_text("s3cret")
    login = options(f"amqp://me@{guarded.host}:{guarded.port}/", **{"amqp.passwordFile": str(file)})
    with WireConnection(login) as connection:
        for spoil, why in ((file.unlink, "No such file"), (lambda: file.write_bytes(b"\xff"), "Unicode")):
            spoil()
            said = (
                f"^option 'amqp.passwordFile': cannot read {file}: {why}.*; this process has read it before"
            )
            with pytest.raises(BrokerUnreachable, match=said) as caught:
                WireConnection(login).open()
            assert not isinstance(caught.value, LoginRefused)
            with pytest.raises(BrokerUnreachable, match=said):
                _ = connection.password_changed


def test_a_password_changes_only_in_its_file(broker, tmp_path):
    file = tmp_path / "password"
    file.write_text("guest")
    with WireConnection(options(broker.url)) as connection:
        assert not connection.password_changed
    connection = WireConnection(options(broker.url, **{"amqp.passwordFile": str(file)}))
    assert not connection.password_changed  # It is not open.
    with connection:
        assert not connection.password_changed
        file.write_text("another")
        assert connection.password_changed
    assert not connection.password_changed  # It is closed.


def test_a_password_may_be_in_the_environment(guarded, monkeypatch):
    login = options(f"amqp://me@{guarded.host}:{guarded.port}/", **{"amqp.passwordEnv": "BROKER_PASSWORD"})
    with pytest.raises(OptionError, match="no variable with the name that the option gives") as caught:
        WireConnection(login).open()
    # It may be the password itself, by mistake.
    assert "BROKER_PASSWORD" not in f"{caught.value} {login}"
    monkeypatch.setenv("BROKER_PASSWORD", "s3cret")
    with WireConnection(login):
        assert guarded.connections[0].user == "me"


@pytest.mark.parametrize(
    "query",
    ["password=s3cret&s3cret", "heartbeat=s3cret", "frame_max=1", "heartbeat=3&ssl=1", "heartbeat=65536"],
)
def test_url_with_query_settings_is_refused_without_showing_them(query):
    names = ", ".join(each.partition("=")[0] for each in query.split("&") if "=" in each)
    shown = rf"'amqp.url': amqp://me@host:5672/ cannot be used with its query \({names}\)"
    with pytest.raises(OptionError, match=rf"{shown}\. Settings of the connection are options, ") as caught:
        WireConnection(options(f"amqp://me:s3cret@host:5672/?{query}")).open()
    assert "s3cret" not in str(caught.value)


def test_no_error_shows_the_query_of_a_url():
    with Broker() as other:
        closed = f"amqp://{other.host}:{other.port}/v"
    with pytest.raises(BrokerUnreachable, match=f"cannot connect to {closed}: ") as caught:
        WireConnection(options(f"{closed}?heartbeat=31415")).open()
    assert "31415" not in str(caught.value)


# --- refusals that stay, and others -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [{"amqp.password": "wrong"}, {"amqp.virtualHost": "nowhere"}], ids=["password", "virtual host"]
)
def test_wrong_password_or_virtual_host_raises_login_refused(broker, given):
    with pytest.raises(LoginRefused, match=r": (403 ACCESS_REFUSED|530 NOT_ALLOWED) - "):
        WireConnection(options(broker.url, **given)).open()


def test_a_password_file_softens_only_a_wrong_password(broker, tmp_path):
    pytest.importorskip("trustme")
    file = tmp_path / "password"
    file.write_text("guest")
    login = {"amqp.passwordFile": str(file)}
    with pytest.raises(LoginRefused, match=": 530 NOT_ALLOWED"):
        WireConnection(options(broker.url, **login, **{"amqp.virtualHost": "nowhere"})).open()
    with Broker(tls=True) as other, pytest.raises(LoginRefused, match=r"(?i)certificate verify failed"):
        WireConnection(options(other.url, **login)).open()


def test_limit_of_connections_is_no_refusal_that_stays():
    with Broker(users={"guest": {"password": "guest", "limits": {"max-connections": 0}}}) as broker:
        reached = pytest.raises(BrokerUnreachable, match=r": 530 NOT_ALLOWED .*limit")
        with reached as caught, WireConnection(options(broker.url)):
            """It is not opened."""
    assert not isinstance(caught.value, LoginRefused)


def test_mechanism_that_the_broker_does_not_offer_raises_login_refused():
    with pair() as (connection, peer):
        peer.sendall(sent(m.ConnectionStart(mechanisms=b"AMQPLAIN EXTERNAL", locales=b"en_US")))
        with pytest.raises(LoginRefused, match=": the broker offers no PLAIN, only AMQPLAIN EXTERNAL"):
            connection.open()


@pytest.mark.parametrize("script", [b"", START, START + tune()], ids=["start", "tune", "open"])
def test_broker_that_closes_the_socket_during_login_is_unreachable(script):
    with pair() as (connection, peer):
        peer.sendall(script)
        peer.shutdown(1)
        with pytest.raises(BrokerUnreachable, match=": the connection to the broker ended: ") as caught:
            connection.open()
        assert not isinstance(caught.value, LoginRefused)


def test_unexpected_method_during_login_is_named():
    with pair() as (connection, peer):
        peer.sendall(START + OPENED)
        with pytest.raises(BrokerUnreachable, match=r"sent connection\.open-ok instead of connection\.tune"):
            connection.open()


def test_something_else_than_a_broker_is_unreachable():
    with pair() as (connection, peer):
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(BrokerUnreachable, match=r"b'HTTP/1\.1' is no frame of AMQP 0-9-1"):
            connection.open()


# --- certificates -----------------------------------------------------------------------------------------


def test_external_mechanism_logs_in_with_client_certificate(tmp_path):
    pytest.importorskip("trustme")
    with Broker(tls=True, users={"job": {"permissions": {"/": ("", "", "")}}}) as broker:
        made = broker.tls.client_certificate("job")
        files = {
            "amqp.caFile": broker.tls.ca_file,
            "amqp.certFile": made.certificate,
            "amqp.keyFile": made.key,
        }
        with WireConnection(options(broker.url, **files, **{"amqp.mechanism": "external"})):
            assert broker.connections[0].user == "job"
        files["amqp.keyFile"] = str(tmp_path / "missing")
        with pytest.raises(OptionError, match=r"'amqp.certFile': cannot read .*missing: No such file"):
            WireConnection(options(broker.url, **files)).open()


@pytest.mark.parametrize("given", ["none", "of another authority"])
def test_alert_about_the_client_certificate_after_the_handshake_is_a_refusal_that_stays(given):
    """In TLS 1.3 a server looks at it when the handshake of the client is complete."""
    pytest.importorskip("trustme")
    with Broker(tls=True) as trusted, Broker(tls=True) as other:
        made, theirs = trusted.tls.client_certificate("127.0.0.1"), other.tls.client_certificate("job")
        files = {"amqp.verify": "false"}
        if given != "none":
            files |= {"amqp.certFile": theirs.certificate, "amqp.keyFile": theirs.key}
        tls = ServerTLS.from_files(
            made.certificate, made.key, client_ca=trusted.tls.ca_file, require_client_certificate=True
        )
        with Broker(tls=tls) as broker, pytest.raises(LoginRefused, match=r"\[SSL: \w*ALERT_\w+\]"):
            WireConnection(options(broker.url, **files)).open()


@pytest.mark.parametrize(
    ("reason", "stays"),
    [
        ("CERTIFICATE_VERIFY_FAILED", True),
        ("UNSUPPORTED_PROTOCOL", True),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", True),
        ("SSLV3_ALERT_BAD_CERTIFICATE", True),
        ("TLSV1_ALERT_UNKNOWN_CA", True),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", True),
        ("TLSV1_ALERT_PROTOCOL_VERSION", True),
        ("TLSV1_ALERT_INTERNAL_ERROR", False),
        ("UNEXPECTED_EOF_WHILE_READING", False),
        ("", False),
    ],
)
def test_tls_errors_of_certificate_or_protocol_are_refusals_and_other_errors_are_not(reason, stays):
    """Other errors come from a broker or a proxy that stops."""
    text = f"[SSL: {reason}] text (_ssl.c:1007)"
    error = ssl.SSLError(1, text) if reason else ssl.SSLZeroReturnError(6, "closed")
    # During the handshake, and after that of the client.
    assert is_untrusted(error) == is_untrusted(ConnectionLost(f"it ended: {in_words(error)}")) == stays


def test_an_encrypted_key_is_an_error(tmp_path):
    pytest.importorskip("trustme")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    with Broker(tls=True) as broker:
        made = broker.tls.client_certificate("job")
        key = serialization.load_pem_private_key(Path(made.key).read_bytes(), None)
        secret = tmp_path / "key.pem"
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b"s3cret"),
            )
        )
        files = {"amqp.certFile": made.certificate, "amqp.keyFile": str(secret)}
        with pytest.raises(OptionError, match=r"'amqp.keyFile': the key is encrypted; give a file"):
            WireConnection(options(broker.url, **files)).open()


def test_text_of_a_socket_error_has_no_number_unless_there_is_nothing_else():
    assert in_words(ConnectionRefusedError(111, "Connection refused")) == "Connection refused"
    assert in_words(TimeoutError("timed out")) == "timed out"
    assert in_words(OSError()) == "OSError"
