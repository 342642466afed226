"""Addresses that fail to log in again and again are blocked for a time (security/log-and-block)."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.amqp_0_10 import Server as Server010
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import controls as c

rule = pytest.mark.rule

ATTACKER, OTHER = "192.0.2.1", "192.0.2.2"


@pytest.fixture
def blocking(server: Server) -> Server:
    """A broker that blocks an address with its third failed login, for a minute."""
    blocking = server.varied(most_failed_logins=3, login_block_time=60.0)
    blocking.state.access.users["guest"].name = "ann"  # guest may log in from this machine only.
    blocking.state.access.users["ann"] = blocking.state.access.users.pop("guest")
    return blocking


def log_in(
    server: Server, password: str, host: str = ATTACKER, *, user: str = "ann", mechanism: str = "PLAIN"
) -> bool:
    """Try to log in; answers whether that succeeded."""
    client = server.connect(host=host)
    client.begin()
    response = f"\0{user}\0{password}".encode()
    client.send(m.ConnectionStartOk(mechanism=mechanism, response=response, locale="en_US"), 0)
    if not client.closed:
        client.expect(m.ConnectionTune, 0)
        client.drop()
        return True
    client.expect_silent_end()
    return False


def fail(server: Server, times: int, host: str = ATTACKER) -> None:
    for _ in range(times):
        assert not log_in(server, "wrong", host)


@pytest.mark.needs("settings", "addresses of peers", "personality of choices")
@rule("0-9-1/security/log-and-block")
def test_address_is_blocked_by_third_failed_login(blocking: Server, caplog: pytest.LogCaptureFixture) -> None:
    fail(blocking, 2)
    assert log_in(blocking, "guest")
    fail(blocking, 2)  # The success has set the count to zero.
    assert "blocked" not in caplog.text
    with caplog.at_level(logging.WARNING, "fakeamqp"):
        fail(blocking, 1)
    assert "192.0.2.1 is blocked for 60 s after 3 failed logins" in caplog.text
    assert not log_in(blocking, "guest")


@pytest.mark.needs("settings", "addresses of peers", "personality of choices")
@rule("0-9-1/security/log-and-block")
def test_other_addresses_can_log_in_while_one_address_is_blocked(blocking: Server) -> None:
    fail(blocking, 2, OTHER)
    fail(blocking, 3)
    assert log_in(blocking, "guest", OTHER)
    assert not log_in(blocking, "guest")


@pytest.mark.needs("virtual time", "settings", "addresses of peers", "personality of choices")
@rule("0-9-1/security/log-and-block")
def test_block_ends_after_its_time_even_if_further_logins_failed_meanwhile(blocking: Server) -> None:
    fail(blocking, 3)
    blocking.advance(59)
    fail(blocking, 5)
    assert not log_in(blocking, "guest")
    assert not log_in(blocking, "guest", mechanism="unknown")
    blocking.advance(1)
    assert log_in(blocking, "guest")


@pytest.mark.needs("virtual time", "settings", "addresses of peers", "personality of choices")
@rule("0-9-1/security/log-and-block")
def test_failed_logins_are_forgotten_after_the_block_time(blocking: Server) -> None:
    fail(blocking, 2)
    blocking.advance(60)
    fail(blocking, 2)
    assert log_in(blocking, "guest")


@pytest.mark.needs("settings", "addresses of peers", "personality of choices")
@rule("0-9-1/security/log-and-block")
@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [("nobody", "guest", "PLAIN"), ("ann", "guest", "unknown"), ("an\0other", "x", "PLAIN")],
    ids=["unknown-user", "unknown-mechanism", "malformed-response"],
)
def test_unknown_user_unknown_mechanism_and_malformed_response_count_as_failed_logins(
    blocking: Server, user: str, password: str, mechanism: str
) -> None:
    for _ in range(3):
        assert not log_in(blocking, password, user=user, mechanism=mechanism)
    assert not log_in(blocking, "guest")


@rule("0-9-1/security/log-and-block")
def test_spec_personality_blocks_address_for_one_minute_after_100_failed_logins(spec: Server) -> None:
    fail(spec, 99, "127.0.0.1")
    assert log_in(spec, "guest", "127.0.0.1", user="guest")
    fail(spec, 100, "127.0.0.1")
    spec.advance(59)
    assert not log_in(spec, "guest", "127.0.0.1", user="guest")
    spec.advance(1)
    assert log_in(spec, "guest", "127.0.0.1", user="guest")


@pytest.mark.needs("addresses of peers")
def test_rabbitmq_does_not_block_address_after_200_failed_logins(rabbitmq: Server) -> None:
    fail(rabbitmq, 200, "127.0.0.1")
    assert log_in(rabbitmq, "guest", "127.0.0.1", user="guest")


@pytest.mark.needs("restart", "inspection", "settings", "addresses of peers", "personality of choices")
def test_restart_ends_the_block_of_an_address(blocking: Server) -> None:
    fail(blocking, 3)
    blocking.restart()
    assert log_in(blocking, "guest")


@pytest.mark.needs("own broker")
def test_failed_logins_over_0_9_1_and_0_10_are_counted_together() -> None:
    known = replace(personality("rabbitmq-4.3"), most_failed_logins=3)
    server = Server010(known)
    fail(server, 2, "127.0.0.1")
    client = server.dial()
    client.begin()
    client.send(c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0wrong", locale="en_US"))
    client.expect_close(320)
    assert not log_in(server, "guest", "127.0.0.1", user="guest")
    client = server.dial()
    client.begin()
    client.send(c.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"))
    assert "is blocked for another 60 s after 3 failed logins" in (client.expect_close(320).reply_text or "")
    server.advance(60)
    server.open()
