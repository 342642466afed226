"""No message waits while a subscription could take it, also where a large one before it goes another way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_10 import Server
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

rule = pytest.mark.rule

_LARGE = b"large" * 100
_SMALL = b"small"
_FEW_OCTETS = 60


def _is_got(server: Server) -> None:
    got = server.client().get("q", no_ack=True)
    assert got is not None and got.body == _LARGE


def _is_acquired(server: Server) -> None:
    browser = server.session(b"browser")
    browser.subscribe(acquire_mode=1, credit=1)
    browser.call(x.MessageAcquire(transfers=SequenceSet.of(browser.transfer().id)))


def _is_taken(server: Server) -> None:
    server.session(b"other").subscribe(credit=1)


def _expires(server: Server) -> None:
    server.advance(1)


@rule("0-10/message.set-flow-mode/no-partial")
@pytest.mark.parametrize("acquire_mode", [0, 1], ids=["subscription", "browser"])
@pytest.mark.parametrize("goes", [_is_got, _is_acquired, _is_taken, _expires])
def test_next_message_is_delivered_after_too_large_message_goes_another_way(
    server: Server, acquire_mode: int, goes: Callable[[Server], None]
) -> None:
    session = server.session(b"taker")
    session.declare("q")
    session.publish(_LARGE, ttl=1000)
    session.publish(_SMALL)
    session.subscribe(octets=_FEW_OCTETS, acquire_mode=acquire_mode)
    assert session.bodies() == []
    goes(server)
    assert session.bodies() == [_SMALL]


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
