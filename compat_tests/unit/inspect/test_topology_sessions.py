"""Connections and sessions of AMQP 0-10, as a test sees them."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server, c, x
from compat_tests.unit.inspect.views import connection_views
from fakeamqp.inspect import CreditView
from fakeamqp.inspect.topology import session_views


@pytest.fixture
def server() -> Server:
    return Server()


def test_0_10_connection_view_shows_protocol_and_sessions(server: Server) -> None:
    client = server.open(heartbeat=30)
    session = client.session(b"orders", 3)
    client.session(b"other", 1, timeout=60)
    server.client()
    session.declare("q", exclusive=True)
    session.subscribe("q", credit=5, octets=None)
    session.publish(b"one")
    of_0_10, of_0_9_1 = connection_views(server.state)
    assert (of_0_10.protocol, of_0_10.user, of_0_10.virtual_host, of_0_10.heartbeat) == (
        "0-10",
        "guest",
        "/",
        30,
    )
    assert [(each.name, each.channel) for each in of_0_10.sessions] == [("other", 1), ("orders", 3)]
    assert [each.number for each in of_0_10.channels] == [1, 3]
    assert (of_0_9_1.protocol, of_0_9_1.sessions) == ("0-9-1", ())
    assert repr(of_0_10) == (
        f"<connection '{of_0_10.name}' user='guest' virtual_host='/' protocol='0-10' sessions=2>"
    )
    assert repr(of_0_10.sessions[1]) == (
        f"<session 'orders' of 'guest' on {of_0_10.name} channel 3 subscriptions=1 unacked=0>"
    )


def test_subscription_view_shows_credit_and_browsing(server: Server) -> None:
    session = server.session(b"s")
    session.declare("q")
    session.subscribe("q", "d", credit=3, octets=100)
    session.subscribe("q", "browser", window=True, acquire_mode=1)
    session.publish(b"0123456789")
    (view,) = session_views(server.state)
    one, browser = view.subscriptions
    (transfer, seen) = session.transfers()
    spent = next(each.cost for each in (transfer, seen) if each.command.destination == "d")
    assert (one.tag, one.queue, one.unacked, one.browses) == ("d", "q", 1, False)
    assert one.credit == CreditView(messages=2, bytes=100 - spent, window=False)
    assert browser.credit == CreditView(messages=None, bytes=None, window=True)
    assert repr(one) == (
        f"<consumer 'd' of queue 'q' on {view.connection} channel 0 unacked=1 "
        f"credit=2 messages and {100 - spent} bytes>"
    )
    assert "credit=unlimited (window) browses" in repr(browser)


def test_detached_session_is_shown_until_its_timeout(server: Server) -> None:
    client = server.open()
    session = client.session(b"s", timeout=60)
    session.call(x.TxSelect())
    client.drop()
    server.advance(20)
    (view,) = session_views(server.state)
    assert (view.attached, view.connection, view.channel) == (False, None, None)
    assert (view.timeout, view.left, view.mode) == (60, 40, "tx")
    assert repr(view) == "<session 's' of 'guest' detached, kept for 40 s more subscriptions=0 unacked=0 tx>"
    assert connection_views(server.state) == ()
    server.advance(40)
    assert session_views(server.state) == ()


def test_detached_session_without_a_timeout_is_kept_for_ever(server: Server) -> None:
    client = server.open()
    client.session(b"\xff\x00", timeout=None)
    client.drop()
    (view,) = session_views(server.state)
    assert (view.name, view.left) == ("\\xff\x00", None)
    assert "detached, kept for ever" in repr(view)


def test_failed_session_is_shown_until_detached(server: Server) -> None:
    session = server.session(b"s")
    session.send(x.QueuePurge(queue="nowhere"))
    (view,) = session_views(server.state)
    assert view.failed and "failed" in repr(view)
    session.control(c.SessionDetached(name=b"s", code=0))
    assert session_views(server.state) == ()


@pytest.mark.parametrize(("code", "told"), [(320, 320), (501, 501), (404, 320)])
def test_connection_closed_by_the_operator_gets_a_valid_code_and_the_text(
    server: Server, code: int, told: int
) -> None:
    client = server.open()
    (connection,) = server.state.connections
    connection.close_by_operator(code, "enough")
    assert client.expect_close(told).reply_text == "enough"
    assert connection_views(server.state) == ()
