"""Validated user-id (RabbitMQ: documented extension)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def test_user_id_equal_to_publishers_name_is_accepted_and_delivered(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").publish(b"body", routing_key="q", user_id="guest")
    assert client.fetch("q").properties.user_id == "guest"


@pytest.mark.needs("settings")
def test_user_with_tag_impersonator_may_publish_with_another_user_id(rabbitmq: Server) -> None:
    rabbitmq.state.access.add(User("actor", "secret", ("impersonator",), {"/": Permission()}))
    client = rabbitmq.client(user="actor", password="secret")
    client.declare("q").publish(b"body", routing_key="q", user_id="guest")
    assert client.fetch("q").properties.user_id == "guest"


def test_user_id_of_another_user_is_refused_with_406_even_for_administrator(rabbitmq: Server) -> None:
    rabbitmq.client().publish(routing_key="q", user_id="other").expect_channel_close(406)


def test_publish_refused_for_its_user_id_is_not_confirmed(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.perform(m.ConfirmSelect()).publish(routing_key="q", user_id="other").expect_channel_close(406)
    client.expect_nothing()
