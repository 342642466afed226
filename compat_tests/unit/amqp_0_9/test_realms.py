"""Access realms and their tickets."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import ManualClock
from fakeamqp.model.access import Permission, User
from fakeamqp.model.errors import AccessRefused
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9.access import FIRST_REALM, Realms, Ticket

GUEST = User("guest", "guest", permissions={"/": Permission()})


@pytest.fixture
def state() -> BrokerState:
    return BrokerState(ManualClock())


@pytest.fixture
def realms(state: BrokerState) -> Realms:
    return state.virtual_hosts["/"].extensions[Realms]


def grant(realms: Realms, holder: object, name: str = FIRST_REALM, exclusive: bool = False) -> Ticket:
    return realms.grant(holder, GUEST, name, ["read"], exclusive=exclusive)


def test_ticket_numbers_wrap_around_and_skip_numbers_in_use(realms: Realms) -> None:
    realms.add("/kept")
    kept = grant(realms, "a", "/kept")
    assert kept.number == 1
    numbers = [grant(realms, "a").number for _ in range(0xFFFF)]
    assert numbers[:2] == [2, 3]
    assert numbers[-2:] == [0xFFFF, 2]


def test_ticket_expires_when_any_realm_changes(realms: Realms) -> None:
    realms.add("/admin")
    ticket = grant(realms, "a")
    realms.add("/admin", ["somebody"])
    assert not realms.is_valid(ticket)


def test_expired_exclusive_ticket_does_not_block_other_sessions(state: BrokerState, realms: Realms) -> None:
    grant(realms, "a", exclusive=True)
    with pytest.raises(AccessRefused, match="exclusive use"):
        grant(realms, "b")
    state.access.changed()
    grant(realms, "b")


def test_new_exclusive_ticket_replaces_first_ticket_of_same_holder(realms: Realms) -> None:
    first = grant(realms, "a", exclusive=True)
    second = grant(realms, "a", exclusive=True)
    assert not realms.is_valid(first)
    assert realms.is_valid(second)


def test_refused_exclusive_request_keeps_existing_ticket_valid(realms: Realms) -> None:
    mine = grant(realms, "a")
    grant(realms, "b")
    with pytest.raises(AccessRefused, match="others have tickets"):
        grant(realms, "a", exclusive=True)
    assert realms.is_valid(mine)


def test_realms_survive_restart_but_not_removal_of_virtual_host(state: BrokerState, realms: Realms) -> None:
    realms.add("/admin")
    state.restart()
    assert grant(state.virtual_hosts["/"].extensions[Realms], "a", "/admin")
    state.clear()
    state.populate()
    with pytest.raises(AccessRefused):
        grant(state.virtual_hosts["/"].extensions[Realms], "a", "/admin")
