"""New credentials over AMQP 1.0: PUT /auth/tokens of the management node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.protocol.amqp_1_0.conftest import with_queues
from compat_tests.protocol.amqp_1_0.test_management import PAIR, ask, request
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Server, attach
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_1_0.codec import composites as c

ALL = Permission(".*", ".*", ".*")


def worker(server: Server, permissions: dict[str, Permission]) -> None:
    server.state.access.add(User("worker", "secret", permissions=permissions))


def managed(server: Server) -> Client:
    """A client that publishes and receives (handles 2 and 3), with the pair of links (handles 0 and 1)."""
    worker(server, {"/": ALL})
    client = server.session(user="worker", password="secret")
    client.send(attach(SENDER, "/management", 0, **PAIR)).send(attach(RECEIVER, "/management", 1, **PAIR))
    client.send(c.Flow(incoming_window=99, next_outgoing_id=0, outgoing_window=99, handle=1, link_credit=9))
    client.take_all()
    client.sender(handle=2)
    client.receiver(handle=3)
    return client


@pytest.mark.rule("1-0/management/tokens")
@pytest.mark.parametrize("permission", [ALL, replace(ALL, configure="^$")], ids=["all", "configure"])
def test_new_credential_is_taken(rabbitmq: Server, permission: Permission) -> None:
    client = managed(rabbitmq)
    worker(rabbitmq, {"/": permission})
    assert ask(client, "PUT", "/auth/tokens", b"token") == ("204", None)
    assert not client.inbox and not client.closed


@pytest.mark.rule("1-0/management/tokens")
@pytest.mark.parametrize(
    ("action", "place"),
    [("read", "queue 'q'"), ("write", "exchange 'amq.default'")],
)
def test_link_without_its_permission_ends_the_session(rabbitmq: Server, action: str, place: str) -> None:
    client = managed(rabbitmq)
    client.begin(5)
    worker(rabbitmq, {"/": replace(ALL, **{action: "^$"})})
    request(client, "PUT", "/auth/tokens", b"token")
    client.expect(c.Transfer)
    text = f"{action} access to {place} in vhost '/' refused for user 'worker'"
    client.expect_end("amqp:unauthorized-access", text)
    assert not client.closed
    assert not client.inbox, "the other session goes on"


@pytest.mark.rule("1-0/management/tokens")
def test_user_without_the_virtual_host_loses_the_connection(rabbitmq: Server) -> None:
    client = managed(rabbitmq)
    worker(rabbitmq, {})
    request(client, "PUT", "/auth/tokens", b"token")
    client.expect(c.Transfer)
    error = client.expect_close("amqp:unauthorized-access")
    text = " ".join(str(error.description).split())
    assert text == (
        "access to vhost / failed for new credential: {amqp_error,not_allowed, "
        "\"access to vhost '/' refused for user 'worker'\", none}"
    )


@pytest.mark.rule("1-0/management/tokens", "1-0/management/crash")
@pytest.mark.parametrize(
    ("version", "path", "body"),
    [
        ("rabbitmq-4.0", "/auth/tokens", b"token"),
        ("rabbitmq-4.3", "/auth/tokens", "token"),
        ("rabbitmq-4.3", "/auth/nothing", b"token"),
    ],
    ids=["4.0", "text", "path"],
)
def test_other_request_ends_the_session(version: str, path: str, body: Any) -> None:
    client = managed(with_queues(Server(version)))
    request(client, "PUT", path, body)
    client.expect_end("amqp:internal-error")
