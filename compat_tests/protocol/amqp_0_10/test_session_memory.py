"""What a session keeps of what it has sent: no more than it has to, however long it lasts."""

from __future__ import annotations

from compat_tests.protocol.amqp_0_10.driver import Server


def test_who_never_completes_anything_costs_nothing(server: Server) -> None:
    """Apache's low-level client leaves its subscriptions in window mode, without limits, and says nothing."""
    session = server.session()
    session.declare()
    session.subscribe(window=True, accept_mode=1)
    for _ in range(10):
        session.publish(accept_mode=1)
    assert len(session.transfers()) == 10
    assert session.end.outgoing.held == 0
    assert not session.end.ledger.outstanding


def test_a_window_waits_for_what_it_gets_back(server: Server) -> None:
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
