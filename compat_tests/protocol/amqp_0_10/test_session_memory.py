"""What a session keeps of what it has sent: no more than it has to, however long it lasts."""

from __future__ import annotations

from compat_tests.scripted.amqp_0_10 import Server


def test_transfers_without_accept_in_unlimited_window_are_not_kept(server: Server) -> None:
    """Apache's low-level client has window mode without limits and completes no transfer."""
    session = server.session()
    session.declare()
    session.subscribe(window=True, accept_mode=1)
    for _ in range(10):
        session.publish(accept_mode=1)
    assert len(session.transfers()) == 10
    assert session.end.outgoing.held == 0
    assert not session.end.ledger.outstanding


def test_transfers_in_limited_window_are_kept_until_completed(server: Server) -> None:
    session = server.session()
    session.declare()
    session.subscribe(window=True, credit=3)
    for _ in range(5):
        session.publish()
    ids = [each.id for each in session.transfers()]
    assert session.end.outgoing.held == 3
    session.completed(*ids)
    assert session.end.outgoing.held == 2
    assert len(session.transfers()) == 2
