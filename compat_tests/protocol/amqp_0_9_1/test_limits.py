"""Limits of virtual hosts and users, and the queue type a virtual host has where a client names none."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, User
from fakeamqp.model.limits import LimitsError, UserLimits, VirtualHostLimits
from fakeamqp.model.policies import ParameterError
from fakeamqp.model.virtual_host.virtual_host import VirtualHostMetadata
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

rule = pytest.mark.rule

RABBITS = ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
LIMITED = [*((name, 530) for name in RABBITS), ("spec", 506)]


def limit_host(server: Server, **limits: int) -> None:
    server.vhost.limits = VirtualHostLimits(**limits)


def limit_guest(server: Server, **limits: int) -> None:
    server.state.access.users["guest"].limits = UserLimits(**limits)


def refused(server: Server, code: int) -> str:
    """What a client is told that wants to open a connection in vain."""
    client = server.tuned(channel_max=2047, frame_max=131072)
    close = client.ends(m.ConnectionOpen(virtual_host="/"), code, channel=0)
    assert (close.class_id, close.method_id) == (10, 40)
    return close.reply_text.partition(" - ")[2]


# --- connections -----------------------------------------------------------------------------------
@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("whose", ["virtual host", "user"])
def test_a_connection_counts_until_its_client_ends_the_transport(whose: str) -> None:
    server = Server("rabbitmq-4.3")
    (limit_host if whose == "virtual host" else limit_guest)(server, max_connections=1)
    client = server.client().perform(m.ConnectionClose(reply_code=200), channel=0)
    assert "connection limit (1) is reached" in refused(server, 530)
    client.drop()
    server.client()


@pytest.mark.needs("inspection")
def test_a_connection_that_the_broker_closes_counts_until_close_ok() -> None:
    server = Server("rabbitmq-4.3")
    limit_host(server, max_connections=1)
    client = server.client()
    [connection] = server.state.connections
    connection.close_by_operator(320, "CONNECTION_FORCED - maintenance")
    client.expect(m.ConnectionClose, 0)
    assert "connection limit (1) is reached" in refused(server, 530)
    client.send(m.ConnectionCloseOk(), 0)
    server.client()


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.open/vhost-limits", "0-9-1/reply-code/resource-error")
@pytest.mark.parametrize(("personality", "code"), LIMITED)
@pytest.mark.parametrize("limit", [0, 2])
def test_connection_above_max_connections_of_virtual_host_is_refused(
    personality: str, protocol: str, code: int, limit: int
) -> None:
    server = Server(personality, protocol=protocol)
    limit_host(server, max_connections=limit)
    clients = [server.client() for _ in range(limit)]
    text = f"access to vhost '/' refused for user 'guest': connection limit ({limit}) is reached"
    assert refused(server, code) == text
    for client in clients:
        client.open_channel(2)  # Those there are stay.
        client.drop()
    if limit:
        server.client()


@pytest.mark.needs("inspection")
def test_clients_that_have_not_opened_a_virtual_host_do_not_count() -> None:
    server = Server()
    limit_host(server, max_connections=1)
    server.connect()
    server.client()


@pytest.mark.needs("inspection", "settings")
def test_connections_to_other_virtual_host_do_not_count_against_the_limit() -> None:
    server = Server()
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = Permission()
    limit_host(server, max_connections=1)
    server.client(virtual_host="other")
    server.client()


@pytest.mark.needs("settings")
@rule("0-9-1/reply-code/resource-error")
@pytest.mark.parametrize(("personality", "code"), LIMITED)
def test_connection_above_limit_of_user_is_refused(personality: str, protocol: str, code: int) -> None:
    server = Server(personality, protocol=protocol)
    server.state.access.add(User("else", "else", (), {"/": Permission()}))
    limit_guest(server, max_connections=1)
    server.client(user="else", password="else")
    server.client()
    assert (
        refused(server, code) == "connection refused for user 'guest': user connection limit (1) is reached"
    )
    server.client(user="else", password="else")


@pytest.mark.needs("inspection", "settings")
def test_limit_of_virtual_host_is_checked_before_limit_of_user_and_permissions_last() -> None:
    server = Server()
    limit_host(server, max_connections=0)
    limit_guest(server, max_connections=0)
    server.state.access.users["guest"].permissions.clear()
    assert "connection limit (0) is reached" in refused(server, 530)
    limit_host(server)
    assert "user connection limit (0) is reached" in refused(server, 530)
    limit_guest(server)
    assert refused(server, 530) == "access to vhost '/' refused for user 'guest'"


@pytest.mark.needs("inspection", "settings")
def test_negative_limits_mean_unlimited() -> None:
    server = Server()
    limit_host(server, max_connections=-1, max_queues=-1)
    limit_guest(server, max_connections=-1, max_channels=-1)
    for _ in range(3):
        server.client(channels=3).declare()


# --- channels --------------------------------------------------------------------------------------
@pytest.mark.needs("settings")
@rows(
    "personality, code, text",
    ("rabbitmq-3.10", 530, "'guest' has reached the maximum allowed user limit of (2)"),
    ("rabbitmq-3.13", 530, "'fakeamqp@localhost' has reached the maximum allowed user limit of (2)"),
    ("rabbitmq-4.0", 530, "'fakeamqp@localhost' has reached the maximum allowed user limit of (2)"),
    ("rabbitmq-4.2", 530, "'guest' has reached the maximum allowed user limit of 2"),
    ("rabbitmq-4.3", 530, "'guest' has reached the maximum allowed user limit of 2"),
    ("spec", 506, "'guest' has reached the maximum allowed user limit of 2"),
)
def test_channel_above_max_channels_of_user_closes_the_connection(
    personality: str, protocol: str, code: int, text: str
) -> None:
    server = Server(personality, protocol=protocol)
    limit_guest(server, max_channels=2)
    one = server.client(channels=1)
    two = server.client(channels=1)
    close = two.ends(m.ChannelOpen(), code, channel=2)
    assert close.reply_text.partition(" - ")[2] == f"number of channels opened for user {text}"
    two.drop()
    one.open_channel(2).close_channel(2).open_channel(3)


@pytest.mark.needs("settings")
def test_channel_of_user_with_max_channels_zero_closes_the_connection() -> None:
    server = Server()
    limit_guest(server, max_channels=0)
    server.client(channels=0).ends(m.ChannelOpen(), 530, channel=1)


# --- queues ----------------------------------------------------------------------------------------
def one_too_many(client: Client, name: str = "b", **declare: Any) -> tuple[int, str]:
    """Declare a queue that must not be; the code and the text of the refusal."""
    client.send(m.QueueDeclare(queue=name, **declare))
    close: Any = client.take_frame().method
    return close.reply_code, close.reply_text


@pytest.mark.needs("inspection")
@rule("0-9-1/reply-code/resource-error")
@pytest.mark.parametrize(
    ("personality", "code", "word"),
    [*((name, 406, "PRECONDITION_FAILED") for name in RABBITS), ("spec", 506, "RESOURCE_ERROR")],
)
def test_queue_above_max_queues_is_refused(personality: str, protocol: str, code: int, word: str) -> None:
    server = Server(personality, protocol=protocol)
    client = server.client().declare("a", exclusive=True)  # Exclusive ones count.
    limit_host(server, max_queues=1)
    client.declare("a", exclusive=True).declare("a", passive=True)
    text = f"{word} - cannot declare queue 'b': queue limit in vhost '/' (1) is reached"
    assert one_too_many(client, durable=True) == (code, text)
    assert "b" not in server.vhost.queues


@pytest.mark.needs("inspection")
def test_refusal_of_unnamed_queue_has_the_name_the_broker_would_have_given() -> None:
    server = Server()
    limit_host(server, max_queues=0)
    code, text = one_too_many(server.client(), "")
    assert code == 406
    assert text.startswith("PRECONDITION_FAILED - cannot declare queue 'amq.gen-")


@pytest.mark.needs("inspection")
def test_queue_can_be_declared_at_queue_limit_after_another_is_deleted() -> None:
    server = Server()
    client = server.client()
    limit_host(server, max_queues=1)
    client.declare("a").perform(m.QueueDelete(queue="a")).declare("b")


@pytest.mark.needs("inspection")
def test_invalid_queue_argument_is_reported_before_queue_limit() -> None:
    server = Server()
    limit_host(server, max_queues=0)
    assert "x-expires" in one_too_many(server.client(), arguments={"x-expires": 0})[1]


# --- reading them ----------------------------------------------------------------------------------
@pytest.mark.needs("own broker")
@rows(
    "value, reason, hint",
    ({"max-connections": "a"}, 'max-connections should be a number, actually was <<"a">>', "limits of"),
    ({"max-queues": 1.5}, "max-queues should be a number, actually was 1.5", "limits of"),
    ({"max-quues": 1}, 'Unrecognised terms [{<<"max-quues">>,1}] in limits', "did you mean 'max-queues'"),
    ("none", 'limits not a list <<"none">>', "limits of"),
)
def test_bad_limits_of_virtual_hosts_are_refused(value: Any, reason: str, hint: str) -> None:
    with pytest.raises(LimitsError, match=hint) as refusal:
        VirtualHostLimits.read("virtual host '/'", value)
    assert refusal.value.reason == f"Validation failed\n\n{reason}\n"
    assert str(refusal.value).startswith(f"limits of virtual host '/': {reason}")


@pytest.mark.needs("own broker")
def test_bad_limits_of_users_are_refused() -> None:
    with pytest.raises(LimitsError, match=r'Unrecognised terms \[\{<<"max-queues">>,1\}\] in user-limits'):
        UserLimits.read("user 'u'", {"max-queues": 1})
    with pytest.raises(LimitsError, match="max-channels should be a number, actually was false"):
        UserLimits.read("user 'u'", {"max-channels": False})


@pytest.mark.needs("own broker")
def test_changed_limits_keep_the_values_given_before() -> None:
    limits = VirtualHostLimits.read("x", {"max-queues": -1}).changed("x", max_connections=0)
    assert limits == VirtualHostLimits(max_connections=0, max_queues=-1)
    assert limits.value() == {"max-connections": 0, "max-queues": -1}
    assert VirtualHostLimits.read("x", []) == VirtualHostLimits()


# --- the default queue type ------------------------------------------------------------------------
def arguments(personality: str, default: str | None, **declare: Any) -> dict[str, Any]:
    """The arguments that a queue has once it is there."""
    server = Server(personality)
    if default is not None:
        server.vhost.metadata = VirtualHostMetadata(default_queue_type=default)
    server.client().declare("q", **declare)
    found: dict[str, Any] = server.vhost.queues["q"].arguments
    return found


@pytest.mark.needs("inspection")
@rows(
    "personality, expected",
    ("rabbitmq-3.13", {}),
    ("rabbitmq-4.0", {"x-queue-type": "classic"}),
    ("rabbitmq-4.2", {"x-queue-type": "classic"}),
    ("rabbitmq-4.3", {"x-queue-type": "classic"}),
    ("spec", {}),
)
def test_queue_has_x_queue_type_argument_since_4_0(personality: str, expected: dict[str, str]) -> None:
    assert arguments(personality, None, durable=True) == expected


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("personality", RABBITS)
def test_exclusive_and_auto_delete_queues_are_classic_with_default_type_quorum(personality: str) -> None:
    for flags in ({"exclusive": True}, {"durable": True, "auto_delete": True}):
        assert arguments(personality, "quorum", **flags) == {"x-queue-type": "classic"}


@pytest.mark.parametrize("personality", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"])
def test_queue_types_undefined_and_classic_differ_in_redeclare_since_4_0(personality: str) -> None:
    for first, second in (("undefined", "classic"), ("classic", "undefined")):
        client = Server(personality).client().declare("q", arguments={"x-queue-type": first})
        client.declare("q", arguments={"x-queue-type": first})
        close = client.fails(m.QueueDeclare(queue="q", arguments={"x-queue-type": second}), 406)
        assert f"'x-queue-type' for queue 'q' in vhost '/': received '{second}' but current is '{first}'" in (
            close.reply_text
        )


@pytest.mark.needs("own broker")
def test_unknown_default_queue_type_is_refused() -> None:
    with pytest.raises(ParameterError, match="qorum is not a valid queue type; did you mean 'quorum'"):
        VirtualHostMetadata(default_queue_type="qorum")


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
@pytest.mark.parametrize("default", ["quorum", "stream"])
def test_durable_queues_without_x_queue_type_have_the_default_type(default: str) -> None:
    assert arguments("rabbitmq-4.2", default, durable=True) == {"x-queue-type": default}
