"""Why a login was refused: the log and the trace say it, the client must not learn it."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import QuietTap, Server
from compat_tests.scripted.amqp_0_10 import Server as Server010
from fakeamqp import Broker
from fakeamqp.errors import troubleshooting
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import controls as c

CASES = [
    ("guest", "wrong", "/", "the password of user 'guest' is wrong"),
    ("gest", "guest", "/", "there is no user 'gest'; did you mean 'guest'?"),
    ("bob", "guest", "/", "there is no user 'bob'; there are 'CN=client', 'alice', 'guest'"),
    ("guest", "", "/", "user 'guest' gave no password"),
    ("CN=client", "x", "/", "user 'CN=client' has no password here, and can only log in with EXTERNAL"),
    ("alice", "pw", "north", "user 'alice' has no permissions on virtual host 'north', only on: '/'"),
    ("alice", "pw", "norht", "there is no virtual host 'norht'; did you mean 'north'?"),
    ("x" * 200, "pw", "/", f"there is no user {'x' * 100!r}; there are 'CN=client', 'alice', 'guest'"),
]
OF_0_9_1 = ("alice", "pw", "", "there is no virtual host '' (the URL of virtual host '/' ends in /%2F)")


class Connections(QuietTap):
    """Keeps the events of connections."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def connection(self, *event: object) -> None:
        self.events.append(event[1:])


def prepared(server: Server) -> Connections:
    server.state.tap = tap = Connections()
    server.state.add_virtual_host("north")
    server.state.access.add(User("alice", "pw", permissions={"/": Permission()}))
    server.state.access.add(User("CN=client"))
    return tap


def check(why: str, tap: Connections, caplog: pytest.LogCaptureFixture) -> None:
    assert [event for event in tap.events if event[0] == "login refused"] == [("login refused", why)]
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    said = f"Login was refused: {why}; {troubleshooting('the-login-is-refused')}"
    assert [text.partition(": ")[2] for text in warnings] == [said]


@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("name", ["rabbitmq-4.3", "spec"])
@pytest.mark.parametrize(("user", "password", "virtual_host", "why"), [*CASES, OF_0_9_1])
@pytest.mark.parametrize("capable", [True, False])
def test_log_and_trace_name_reason_of_refused_login(
    caplog: pytest.LogCaptureFixture,
    name: str,
    user: str,
    password: str,
    virtual_host: str,
    why: str,
    capable: bool,
) -> None:
    server = Server(name)
    tap = prepared(server)
    client = server.started()
    client.login(user, password, {"capabilities": {"authentication_failure_close": capable}})
    if "virtual host" in why:
        client.expect(m.ConnectionTune, 0)
        client.send(m.ConnectionTuneOk(channel_max=10, frame_max=8192), 0)
        client.send(m.ConnectionOpen(virtual_host=virtual_host), 0)
    elif name == "spec" or not capable:
        client.expect_silent_end()
    else:
        assert client.expect_connection_close(403).reply_text == (
            "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the "
            "broker logfile."
        )
    check(why, tap, caplog)


@pytest.mark.needs("own broker")
@pytest.mark.parametrize(("user", "password", "virtual_host", "why"), CASES)
def test_log_and_trace_name_reason_of_refused_login_in_0_10(
    caplog: pytest.LogCaptureFixture, user: str, password: str, virtual_host: str, why: str
) -> None:
    server = Server010("rabbitmq-4.3")
    tap = prepared(server)
    client = server.dial()
    client.begin()
    response = f"\0{user}\0{password}".encode()
    client.send(c.ConnectionStartOk(mechanism="PLAIN", response=response, locale="en_US"))
    if "virtual host" in why:
        client.expect(c.ConnectionTune)
        client.send(c.ConnectionTuneOk(channel_max=10, max_frame_size=4096))
        client.send(c.ConnectionOpen(virtual_host=virtual_host))
    else:
        assert why not in (client.expect_close(320).reply_text or "")
    check(why, tap, caplog)


@pytest.mark.needs("own broker")
def test_timeline_of_broker_shows_reason_of_refused_login() -> None:
    with Broker() as broker, broker.connect() as client:
        client.sendall(b"AMQP\0\0\x09\1")
        client.recv(4096)
        # connection.start-ok without properties: PLAIN with "\0guest\0wrong", en_US.
        arguments = b"\0\x0a\0\x0b\0\0\0\0\x05PLAIN\0\0\0\x0c\0guest\0wrong\x05en_US"
        client.sendall(b"\1\0\0" + len(arguments).to_bytes(4, "big") + arguments + b"\xce")
        assert client.recv(4096) == b""
        assert "login refused: the password of user 'guest' is wrong" in broker.trace.timeline()
