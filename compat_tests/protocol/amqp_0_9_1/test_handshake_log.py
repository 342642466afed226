"""Anybody who reaches the port can have warnings logged; only some of them are."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server

LEFT_OUT = "{} more warnings about clients that have not logged in, within 10 seconds, were left out"


def garbage(server: Server, count: int) -> None:
    """So many clients that do not speak AMQP."""
    for _ in range(count):
        server.connect().send_bytes(b"garbage!")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings since the last look."""
    found = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    caplog.clear()
    return found


@pytest.mark.needs("virtual time")
def test_only_50_warnings_before_login_are_logged_in_10_seconds_and_further_ones_counted(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    garbage(server, 50)
    assert len(lines(caplog)) == 50
    garbage(server, 1000)
    assert lines(caplog) == []
    server.advance(10)
    assert lines(caplog) == [LEFT_OUT.format(1000)]
    garbage(server, 51)
    assert len(lines(caplog)) == 50
    server.advance(100)
    assert lines(caplog) == [LEFT_OUT.format(1)]


@pytest.mark.needs("virtual time", "inspection")
def test_50_warnings_in_10_seconds_are_all_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(10):
        garbage(server, 50)
        server.advance(10)
    assert len(lines(caplog)) == 500
    assert server.state.peer_timers.next_due() is None


def test_failed_login_warnings_are_limited_to_50(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(60):
        server.started().login(password="wrong")
    assert len(lines(caplog)) == 50


@pytest.mark.needs("virtual time")
def test_warnings_after_login_are_all_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    clients = [server.client(heartbeat=1) for _ in range(60)]
    garbage(server, 60)
    lines(caplog)
    server.advance(4)
    assert all(client.connection.aborted for client in clients)
    assert len(lines(caplog)) == 60
