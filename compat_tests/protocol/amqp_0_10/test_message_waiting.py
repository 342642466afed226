"""No message waits while a subscription could take it, also where a large one before it goes another way."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c
from fakeamqp.protocols.amqp_0_10.codec.constants import ErrorCode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

_LARGE = b"large" * 100
_SMALL = b"small"
_FEW_OCTETS = 60


def _subscribed(server: Server, **arguments: object) -> Session:
    """A subscription that has credit for the small one of two messages, before which waits the large one."""
    session = server.session(b"taker")
    session.declare("q")
    session.publish(_LARGE, ttl=1000)
    session.publish(_SMALL)
    session.subscribe(octets=_FEW_OCTETS, **arguments)  # type: ignore[arg-type]
    assert session.bodies() == []
    return session


@pytest.mark.rule("0-10/message.set-flow-mode/no-partial")
def test_subscription_receives_next_message_after_get_removes_too_large_message(server: Server) -> None:
    session = _subscribed(server)
    got = server.client().get("q", no_ack=True)
    assert got is not None and got.body == _LARGE
    assert session.bodies() == [_SMALL]


@pytest.mark.rule("0-10/message.set-flow-mode/no-partial")
def test_subscription_receives_next_message_after_browser_acquires_too_large_message(server: Server) -> None:
    session = _subscribed(server)
    browser = server.session(b"browser")
    browser.subscribe(acquire_mode=1, credit=1)
    browser.call(x.MessageAcquire(transfers=SequenceSet.of(browser.transfer().id)))
    assert session.bodies() == [_SMALL]


@pytest.mark.rule("0-10/message.set-flow-mode/no-partial")
def test_subscription_receives_next_message_after_too_large_message_expires(server: Server) -> None:
    session = _subscribed(server)
    server.advance(1)
    assert session.bodies() == [_SMALL]


@pytest.mark.rule("0-10/message.set-flow-mode/no-partial")
def test_browser_receives_next_message_after_too_large_message_is_taken(server: Server) -> None:
    browser = _subscribed(server, acquire_mode=1)
    server.session(b"other").subscribe(credit=1)
    assert browser.bodies() == [_SMALL]


@pytest.mark.rule("0-10/execution.exception/correlates#code")
@pytest.mark.rule("0-10/execution.exception/correlates#command")
def test_exception_is_sent_before_client_sends_session_expected(server: Server) -> None:
    """The client is to say which commands it has; the exception does not wait for that."""
    session = server.open().session(b"s", timeout=100)
    session.declare("q")
    session.publish()
    session.subscribe()
    session.client.drop()
    client = server.open()
    client.send(c.SessionAttach(name=b"s"))
    client.send(c.SessionCommandPoint(command_id=session.next_id, command_offset=0))
    client.send_command(x.MessageCancel(destination="none"))
    (exception,) = [each.what for each in client.inbox if isinstance(each.what, x.ExecutionException)]
    assert exception.error_code == ErrorCode.NOT_FOUND
    assert exception.command_id == session.next_id


@pytest.mark.rule("0-10/session.attach/force#attaches")
@pytest.mark.rule("0-10/execution/ends-session#session")
def test_forced_attach_of_failed_session_creates_new_session(server: Server) -> None:
    """Its client never heard of the exception, since it had lost the transport by then."""
    session = server.open().session(b"s", timeout=100)
    session.send(x.MessageCancel(destination="none"))
    again = server.open().session(b"s", force=True)
    again.declare("q")
    assert again.query().queue == "q"


def test_browser_receives_next_message_after_too_large_message_behind_another_expires(server: Server) -> None:
    session = server.session(b"publisher")
    session.declare("q")
    session.publish(b"1")
    session.publish(b"x" * 500, ttl=300)
    session.publish(b"3")
    browser = server.session(b"browser")
    browser.subscribe(octets=60, credit=10, acquire_mode=1)
    assert browser.bodies() == [b"1"]
    server.advance(1)
    assert browser.bodies() == [b"3"]


def test_browser_with_restored_credit_skips_expired_message_behind_another(server: Server) -> None:
    session = server.session(b"publisher")
    session.declare("q")
    session.publish(b"1")
    session.publish(b"2" * 30, ttl=300)  # Small enough once the credit for the first is back.
    browser = server.session(b"browser")
    browser.subscribe(octets=_FEW_OCTETS, credit=2, acquire_mode=1)
    shown = browser.transfer()
    assert shown.body == b"1"
    browser.expect_nothing()
    server.advance(0.5)
    browser.completed(shown.id)
    browser.expect_nothing()
    assert len(server.vhost.queues["q"].ready) == 2
    session.publish(b"3")
    assert browser.bodies() == [b"3"]


def test_cancel_of_waiting_browser_removes_its_timer(server: Server) -> None:
    session = server.session(b"publisher")
    session.declare("q")
    session.publish(b"x" * 500, ttl=60_000)
    browser = server.session(b"browser")
    browser.subscribe(octets=60, credit=10, acquire_mode=1)
    before = len(list(server.state.timers.pending()))
    browser.call(x.MessageCancel(destination="d"))
    assert len(list(server.state.timers.pending())) == before - 1
