"""Accounts: their passwords, and what is removed with them."""

from __future__ import annotations

import base64
import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import ManualClock
from fakeamqp import FakeAMQPError
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


# --- password hashes -----------------------------------------------------------------------------------


def encoded(algorithm: str, octets: bytes = b"salt") -> str:
    return base64.b64encode(octets + hashlib.new(algorithm, b"saltsecret").digest()).decode()


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_user_with_password_hash_accepts_only_its_password(algorithm: str) -> None:
    user = User("ann", password_hash=(algorithm, encoded(algorithm)))
    assert user.has_password("secret") and not user.has_password("Secret")


@pytest.mark.parametrize(
    ("password_hash", "words"),
    [
        (("sha256", "not base64!"), "must be base64 of 36 bytes .* got text that is not base64"),
        (("sha256", "c2FsdA=="), "got 4 bytes"),
        (("sha256", encoded("sha512")), "got 68 bytes"),
        (("sha512", encoded("sha512", b"salty")), "must be base64 of 68 bytes .* got 69 bytes"),
        (("md4", encoded("sha256")), "one of the algorithms sha256, sha512, not 'md4'"),
        (encoded("sha256"), "must be a pair"),
        (("sha256", None), "must be a pair"),
        (("sha256",), "must be a pair"),
    ],
)
def test_user_with_malformed_password_hash_is_refused(password_hash: Any, words: str) -> None:
    with pytest.raises(FakeAMQPError, match=f"user 'ann': password_hash .*{words}"):
        User("ann", password_hash=password_hash)
