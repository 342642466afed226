"""Validated user-id (RabbitMQ: documented extension)."""

from __future__ import annotations

from compat_tests.protocol.driver import Server
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def test_the_publishers_own_name_is_passed_on(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("q")
    client.publish(b"body", routing_key="q", user_id="guest")
    got = client.get("q")
    assert got is not None
    assert got.properties.user_id == "guest"


def test_an_impersonator_may_use_any_name(rabbitmq: Server) -> None:
    rabbitmq.state.access.add(User("actor", "secret", ("impersonator",), {"/": Permission()}))
    client = rabbitmq.client(user="actor", password="secret")
    client.declare("q")
    client.publish(b"body", routing_key="q", user_id="guest")
    got = client.get("q")
    assert got is not None
    assert got.properties.user_id == "guest"


def test_an_administrator_is_no_impersonator(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.publish(routing_key="q", user_id="other")
    client.expect_channel_close(406)


def test_a_refused_publish_is_not_confirmed(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    client.publish(routing_key="q", user_id="other")
    client.expect_channel_close(406)
    client.expect_nothing()
