"""What users without permission may not do with messages, and connection.update-secret (RabbitMQ)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def limited(server: Server, **permission: str) -> Client:
    """Somebody whose permissions are patterns for names; what is not given admits everything."""
    server.state.access.add(User("limited", "secret", (), {"/": Permission(**permission)}))
    return server.client(user="limited", password="secret")


def refused(client: Client, action: str, entity: str) -> None:
    """The channel is closed with this text; it is opened again."""
    assert client.expect_channel_close(403).reply_text == (
        f"ACCESS_REFUSED - {action} access to {entity} in vhost '/' refused for user 'limited'"
    )
    client.open_channel()


# --- permissions -------------------------------------------------------------------------------------
@pytest.mark.needs("settings")
@pytest.mark.parametrize("method", [m.BasicGet, m.BasicConsume, m.QueuePurge], ids=lambda each: each.NAME)
def test_taking_messages_needs_read_permission(server: Server, method: type[m.Method]) -> None:
    client = limited(server, read="^ok")
    for queue in ("ok", "no"):
        client.declare(queue)
    assert client.send(method(queue="ok")).take_frame().channel == 1
    client.send(method(queue="no"))
    refused(client, "read", "queue 'no'")
    client.send(method(queue="no and missing"))
    refused(client, "read", "queue 'no and missing'")


@pytest.mark.needs("settings")
def test_publishing_needs_write_permission(server: Server) -> None:
    client = limited(server, write="^amq.direct$")
    client.publish(exchange="amq.direct").expect_nothing()
    client.publish(exchange="amq.fanout")
    refused(client, "write", "exchange 'amq.fanout'")
    client.publish(exchange="", routing_key="q")
    refused(client, "write", "exchange 'amq.default'")


@pytest.mark.needs("settings")
def test_empty_write_pattern_refuses_every_publish(server: Server) -> None:
    client = limited(server, write="").publish(exchange="amq.direct")
    refused(client, "write", "exchange 'amq.direct'")


@pytest.mark.needs("settings")
def test_publish_after_write_permission_was_revoked_is_refused(server: Server) -> None:
    client = limited(server)
    client.publish(exchange="amq.direct", routing_key="k").expect_nothing()
    user = server.state.access.users["limited"]
    user.permissions["/"] = Permission(write="")
    server.state.access.changed()
    client.publish(exchange="amq.direct", routing_key="k")
    refused(client, "write", "exchange 'amq.direct'")


@pytest.mark.needs("settings")
def test_transacted_publish_without_write_permission_is_refused_before_commit(server: Server) -> None:
    client = limited(server, write="").perform(m.TxSelect()).publish(exchange="amq.direct")
    refused(client, "write", "exchange 'amq.direct'")


@pytest.mark.needs("settings")
def test_rejected_message_is_dead_lettered_without_write_permission_of_consumer(rabbitmq: Server) -> None:
    owner = rabbitmq.client().declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    owner.declare("q", arguments=arguments).fill("q", b"m")
    client = limited(rabbitmq, write="")
    client.get("q")
    client.reject(1).expect_nothing()
    assert owner.count("dead") == 1


# --- topic permissions -------------------------------------------------------------------------------
def limited_topics(server: Server, write: str) -> Client:
    topics = {("/", "amq.topic"): TopicPermission(write=write)}
    server.state.access.add(User("limited", "secret", (), {"/": Permission()}, topics))
    return server.client(user="limited", password="secret")


@pytest.mark.needs("settings")
def test_a_topic_permission_limits_routing_keys(server: Server) -> None:
    client = limited_topics(server, "^ok")
    client.publish(exchange="amq.topic", routing_key="ok.1").expect_nothing()
    client.publish(exchange="amq.topic", routing_key="no")
    refused(client, "write", "topic 'no' in exchange 'amq.topic'")


@pytest.mark.needs("settings")
def test_topic_permission_does_not_limit_publishes_to_other_exchanges(server: Server) -> None:
    client = limited_topics(server, "^ok").declare_exchange("other", "topic")
    client.publish(exchange="other", routing_key="no")
    client.publish(exchange="amq.direct", routing_key="no").expect_nothing()


@pytest.mark.needs("settings")
def test_a_topic_permission_may_name_the_user_and_the_virtual_host(server: Server) -> None:
    client = limited_topics(server, "^{username}-{vhost}$")
    client.publish(exchange="amq.topic", routing_key="limited-/").expect_nothing()
    client.publish(exchange="amq.topic", routing_key="other-/")
    refused(client, "write", "topic 'other-/' in exchange 'amq.topic'")


# --- update-secret -----------------------------------------------------------------------------------
def test_update_secret_is_answered_with_update_secret_ok(server: Server) -> None:
    client = server.client().send(m.ConnectionUpdateSecret(new_secret=b"new", reason="rotation"), 0)
    client.expect(m.ConnectionUpdateSecretOk, 0)
    client.declare("q")


def test_update_secret_on_channel_1_closes_the_connection_with_503(server: Server) -> None:
    client = server.client()
    client.ends(m.ConnectionUpdateSecret(new_secret=b"new", reason="rotation"), 503, channel=1)
