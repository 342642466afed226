"""A connection driven by hand: it comes up, says why it does not, and never dies unseen."""

from __future__ import annotations

import logging
import ssl
import threading
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pika")

import pika
from pika.adapters.utils.connection_workflow import AMQPConnectorTransportSetupError

from fakeamqp import Broker
from fakeamqp.model.personality import personality
from fakeamqp.spark.connection import Link, _in_words, quiet
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, LoginRefused, OptionError
from fakeamqp.spark.login import is_refusal
from fakeamqp.spark.options import write_options


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


def options(url, **others):
    return write_options({"amqp.url": url, **others}).connection


def test_connection_has_given_client_name_and_heartbeat(broker):
    with Link(options(broker.url, **{"amqp.clientName": "orders job", "amqp.heartbeat": "7"})):
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
        Link(options(f"amqp://{user}{broker.host}:{broker.port}/{path}", **others)),
    ):
        (connection,) = broker.connections
        assert (connection.user, connection.virtual_host) == ("me", "v@h")


def test_the_first_broker_that_answers_is_taken(broker):
    with Broker() as other:
        closed = other.url
    with Link(options(f"{closed},{broker.url}")):
        assert len(broker.connections) == 1


def test_every_broker_that_does_not_answer_is_named_without_its_password(broker):
    wrong = f"amqp://guest:s3cret@{broker.host}:{broker.port}/"
    with Broker() as other:
        closed = other.url
    with pytest.raises(BrokerUnreachable) as caught:
        Link(options(f"{closed},{wrong}")).open()
    assert not isinstance(caught.value, LoginRefused)  # One of them may come back.
    text = str(caught.value)
    assert "refused" in text and "403" in text and "ACCESS_REFUSED" in text
    assert "s3cret" not in text and f"amqp://guest@{broker.host}:{broker.port}/" in text


def test_error_of_closed_channel_has_reply_text_of_broker(broker):
    with Link(options(broker.url)) as link:
        channel = link.channel()
        with pytest.raises(ConnectionLost, match="404 NOT_FOUND - no queue 'nowhere'"):
            link.call(channel.queue_declare, "nowhere", passive=True)


def test_request_timeout_error_names_request(broker):
    broker.faults.on("channel.open").drop()
    with Link(options(broker.url)) as link:
        # Only now: a busy machine may need longer for the login.
        link._options = options(broker.url, **{"amqp.connectionTimeout": "50ms"})
        with pytest.raises(ConnectionLost, match=r"did not open a channel within 0\.05 s"):
            link.channel()


def test_silent_broker_raises_broker_unreachable_after_connection_timeout(broker):
    broker.faults.network.hang()
    with pytest.raises(BrokerUnreachable, match="no answer within"):
        Link(options(broker.url, **{"amqp.connectionTimeout": "50ms"})).open()


def test_another_thread_can_end_a_wait(broker):
    with Link(options(broker.url)) as link:
        asked = threading.Event()
        thread = threading.Thread(target=lambda: (asked.set(), link.wake()))
        thread.start()
        link.wait_for(asked.is_set, 5, "be woken")
        thread.join()


def test_lost_connection_raises_reply_text_of_broker_and_may_be_closed_twice(broker):
    link = Link(options(broker.url))
    link.open()
    broker.connections[0].close(320, "maintenance")
    for use in (lambda: link.wait_for(lambda: False, 5, "answer"), link.channel):
        with pytest.raises(ConnectionLost, match=r"320 .*maintenance"):
            use()
    link.send(b"nowhere")
    link.close()
    link.close()


@pytest.mark.parametrize("verify", ["true", "false"])
def test_tls_connection_opens_with_ca_file_or_without_verification(verify):
    pytest.importorskip("trustme")
    with Broker(tls=True) as broker:
        others = {"amqp.caFile": broker.tls.ca_file} if verify == "true" else {"amqp.verify": "false"}
        with Link(options(broker.url, **others)):
            assert len(broker.connections) == 1


def test_an_unknown_authority_is_refused():
    pytest.importorskip("trustme")
    with Broker(tls=True) as broker, pytest.raises(LoginRefused, match=r"(?i)certificate verify failed"):
        Link(options(broker.url)).open()


# Logins


@pytest.fixture
def guarded():
    with Broker(users={"me": "s3cret"}) as broker:
        yield broker


def test_password_file_is_read_for_each_connection(guarded, tmp_path):
    file = tmp_path / "password"
    login = options(f"amqp://me@{guarded.host}:{guarded.port}/", **{"amqp.passwordFile": str(file)})
    with pytest.raises(OptionError, match=f"'amqp.passwordFile': cannot read {file}: No such file"):
        Link(login).open()
    file.write_text("0ld\n")
    with pytest.raises(BrokerUnreachable, match="403") as caught:
        Link(login).open()
    assert not isinstance(caught.value, LoginRefused)  # It may be renewed until the next attempt.
    file.write_text("s3cret\n")
    with Link(login):
        assert guarded.connections[0].user == "me"
    garbled = tmp_path / "garbled"
    garbled.write_bytes(b"\xff s3cret")
    with pytest.raises(OptionError, match=r"cannot read .*: UnicodeDecodeError$"):
        Link(options(guarded.url, **{"amqp.passwordFile": str(garbled)})).open()


def test_unreadable_password_file_is_temporary_error_after_earlier_successful_read(guarded, tmp_path):
    """A renewal of the file may delete it first."""
    file = tmp_path / "password"
    file.write_text("s3cret")
    login = options(f"amqp://me@{guarded.host}:{guarded.port}/", **{"amqp.passwordFile": str(file)})
    with Link(login) as link:
        for spoil, why in ((file.unlink, "No such file"), (lambda: file.write_bytes(b"\xff"), "Unicode")):
            spoil()
            said = (
                f"^option 'amqp.passwordFile': cannot read {file}: {why}.*; this process has read it before"
            )
            with pytest.raises(BrokerUnreachable, match=said) as caught:
                Link(login).open()
            assert not isinstance(caught.value, LoginRefused)
            with pytest.raises(BrokerUnreachable, match=said):
                _ = link.password_changed


def test_a_password_may_be_in_the_environment(guarded, monkeypatch):
    login = options(f"amqp://me@{guarded.host}:{guarded.port}/", **{"amqp.passwordEnv": "BROKER_PASSWORD"})
    with pytest.raises(OptionError, match="no variable with the name that the option gives") as caught:
        Link(login).open()
    # It may be the password itself, by mistake.
    assert "BROKER_PASSWORD" not in f"{caught.value} {login}"
    monkeypatch.setenv("BROKER_PASSWORD", "s3cret")
    with Link(login):
        assert guarded.connections[0].user == "me"


def test_external_mechanism_logs_in_with_client_certificate(tmp_path):
    pytest.importorskip("trustme")
    with Broker(tls=True, users={"job": {"permissions": {"/": ("", "", "")}}}) as broker:
        made = broker.tls.client_certificate("job")
        files = {
            "amqp.caFile": broker.tls.ca_file,
            "amqp.certFile": made.certificate,
            "amqp.keyFile": made.key,
        }
        with Link(options(broker.url, **files, **{"amqp.mechanism": "external"})):
            assert broker.connections[0].user == "job"
        files["amqp.keyFile"] = str(tmp_path / "missing")
        with pytest.raises(OptionError, match=r"'amqp.certFile': cannot read .*missing: No such file"):
            Link(options(broker.url, **files)).open()


@pytest.mark.parametrize("name", ["password", "heartbeat", "frame_max", "socket_timeout", "ssl_options"])
def test_url_with_query_settings_is_refused_without_showing_password(name):
    shown = rf"'amqp.url': amqp://me@host:5672/ cannot be used with its query \(locale, {name}\)"
    with pytest.raises(OptionError, match=rf"{shown}\. Settings of the connection are options, ") as caught:
        Link(options(f"amqp://me:s3cret@host:5672/?locale=s3cret&{name}=s3cret&s3cret")).open()
    assert "s3cret" not in str(caught.value)


def test_no_error_shows_the_query_of_a_url():
    with Broker() as other:
        closed = f"amqp://{other.host}:{other.port}/v"
    with pytest.raises(BrokerUnreachable, match=f"cannot connect to {closed}: ") as caught:
        Link(options(f"{closed}?locale=s3cret")).open()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("how", ["password", "virtual host"])
def test_wrong_password_or_virtual_host_raises_login_refused(broker, how):
    more = {"password": {"amqp.password": "wrong"}, "virtual host": {"amqp.virtualHost": "nowhere"}}[how]
    with pytest.raises(LoginRefused, match=r"\((403|530)\)"):
        Link(options(broker.url, **more)).open()


def test_connection_lost_during_login_is_not_login_refused(broker):
    broker.faults.on("connection.start-ok").disconnect()
    with pytest.raises(BrokerUnreachable) as caught:
        Link(options(broker.url)).open()
    assert not isinstance(caught.value, LoginRefused)


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
    error = (
        ssl.SSLError(1, f"[SSL: {reason}] text (_ssl.c:1007)")
        if reason
        else ssl.SSLZeroReturnError(6, "closed")
    )
    # As pika reports them during its handshake, and for RabbitMQ with TLS 1.3 after that of the client.
    wrapped = AMQPConnectorTransportSetupError(error)
    lost = pika.exceptions.StreamLostError(f"Stream connection lost: {error!r}")
    assert is_refusal(wrapped) == is_refusal(pika.exceptions.IncompatibleProtocolError(repr(lost))) == stays
    assert is_refusal(wrapped, password_may_change=True) == stays


def test_a_password_file_softens_only_a_wrong_password(broker, tmp_path):
    file = tmp_path / "password"
    file.write_text("guest")
    login = {"amqp.passwordFile": str(file)}
    with pytest.raises(LoginRefused, match=r"\(530\)"):
        Link(options(broker.url, **login, **{"amqp.virtualHost": "nowhere"})).open()
    with Broker(tls=True) as other, pytest.raises(LoginRefused, match=r"(?i)certificate verify failed"):
        Link(options(other.url, **login)).open()


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
            Link(options(broker.url, **files)).open()


def test_the_log_of_pika_has_its_level_again_after_the_last_of_several_threads():
    logger = logging.getLogger("pika")
    before = logger.level
    first, second = quiet(), quiet()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert logger.level == logging.CRITICAL
    second.__exit__(None, None, None)
    assert logger.level == before


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
    with Broker(personality=named) as broker, Link(options(broker.url)) as link:
        assert link.broker_version == found


def test_error_text_is_text_of_last_inner_error():
    inner = ValueError("first"), ValueError("last")
    assert _in_words(Exception(*inner)) == "last"
    several = pika.exceptions.AMQPConnectionError()
    several.exceptions = inner
    assert _in_words(several) == "last"
    assert _in_words(pika.exceptions.ChannelClosedByBroker(404, "NOT_FOUND")) == "404 NOT_FOUND"
    assert _in_words(ValueError()) == "ValueError"
    assert _in_words("lost") == "lost"


def test_a_password_changes_only_in_its_file(broker, tmp_path):
    file = tmp_path / "password"
    file.write_text("guest")
    with Link(options(broker.url)) as link:
        assert not link.password_changed
    login = options(broker.url, **{"amqp.passwordFile": str(file)})
    with Link(login) as link:
        assert not link.password_changed
        file.write_text("another")
        assert link.password_changed
    assert not link.password_changed  # It is closed.
