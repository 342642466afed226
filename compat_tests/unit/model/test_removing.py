"""What is removed from a broker with an account or a virtual host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import ManualClock
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.state import BrokerState


@pytest.fixture
def state() -> BrokerState:
    state = BrokerState(ManualClock())
    state.add_virtual_host("there")
    state.access.add(User("ann", "p", permissions={"/": Permission(), "there": Permission()}))
    return state


@pytest.fixture
def sessions(state: BrokerState) -> list[Any]:
    """A session of each user in each virtual host."""
    made = []
    for user in state.access.users.values():
        for virtual_host in state.virtual_hosts.values():
            session = SimpleNamespace(user=user, virtual_host=virtual_host, ended=False)
            session.end = lambda session=session: setattr(session, "ended", True)
            state.sessions[virtual_host.name, user.name, b"s"] = session
            made.append(session)
    return made


def test_removing_user_ends_only_sessions_of_that_user(state: BrokerState, sessions: list[Any]) -> None:
    state.remove_user("ann")
    assert [session.ended for session in sessions] == [each.user.name == "ann" for each in sessions]
    assert "ann" not in state.access.users


def test_removing_virtual_host_ends_its_sessions_and_removes_its_permissions(
    state: BrokerState, sessions: list[Any]
) -> None:
    ann = state.access.users["ann"]
    ann.topic_permissions["there", "amq.topic"] = ann.topic_permissions["/", "amq.topic"] = TopicPermission()
    state.remove_virtual_host("there")
    assert [session.ended for session in sessions] == [each.virtual_host.name == "there" for each in sessions]
    assert "there" not in state.virtual_hosts
    assert list(ann.permissions) == ["/"]
    assert list(ann.topic_permissions) == [("/", "amq.topic")]


def test_discarded_virtual_host_has_no_queues(state: BrokerState) -> None:
    there = state.virtual_hosts["there"]
    there.queues.declare("q", QueueDeclaration(durable=True))
    there.discard("it was deleted")
    assert not there.queues
