"""Credit of links, drain and echo in AMQP 1.0."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import Server, message
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c


def fill(server: Server, count: int, queue: str = "q") -> None:
    sender = server.session().sender(f"/queues/{queue}")
    for _ in range(count):
        sender.publish()


@pytest.mark.rule("1-0/flow/link-credit")
def test_credit_is_absolute_and_can_be_taken_back(rabbitmq: Server) -> None:
    fill(rabbitmq, 6)
    client = rabbitmq.session()
    receiver = client.receiver()
    client.expect_nothing()
    receiver.flow(link_credit=2)
    assert len(client.take_all()) == 2
    receiver.flow(link_credit=2).client.expect_nothing()
    receiver.flow(link_credit=2, delivery_count=2)
    assert len(client.take_all()) == 2
    receiver.flow(link_credit=0, delivery_count=4).settle(c.Accepted(), 0, 3)
    client.expect_nothing()


@pytest.mark.rule("1-0/flow/link-credit")
def test_credit_counts_from_the_initial_delivery_count_of_4_0(rabbitmq_4_0: Server) -> None:
    fill(rabbitmq_4_0, 6)
    client = rabbitmq_4_0.session()
    receiver = client.receiver(credit=2)
    assert receiver.attached.initial_delivery_count == 4_294_967_291
    assert len(client.take_all()) == 2
    receiver.flow(link_credit=4, delivery_count=4_294_967_293)
    assert len(client.take_all()) == 4


@pytest.mark.rule("1-0/flow/link-credit")
def test_settling_gives_no_credit_back(server: Server) -> None:
    fill(server, 3)
    client = server.session()
    receiver = client.receiver(credit=1)
    receiver.take()
    receiver.settle(c.Accepted(), 0)
    client.expect_nothing()


@pytest.mark.rule("1-0/flow/drain")
def test_drain_uses_up_the_credit(rabbitmq: Server) -> None:
    fill(rabbitmq, 2)
    client = rabbitmq.session()
    receiver = client.receiver().flow(link_credit=5, drain=True)
    receiver.take()
    receiver.take()
    drained = client.expect(c.Flow)
    assert (drained.delivery_count, drained.link_credit, drained.drain) == (5, 0, True)
    fill(rabbitmq, 1)
    client.expect_nothing()


@pytest.mark.rule("1-0/flow/echo")
def test_echo_is_answered_with_number_of_available_messages(rabbitmq: Server) -> None:
    fill(rabbitmq, 3)
    client = rabbitmq.session()
    receiver = client.receiver().flow(link_credit=1, echo=True)
    receiver.take()
    told = client.expect(c.Flow)
    assert (told.handle, told.delivery_count, told.link_credit, told.available) == (0, 1, 0, 2)


@pytest.mark.rule("1-0/flow/active")
def test_consumer_of_a_quorum_queue_is_told_that_it_is_active_in_4_3(rabbitmq: Server) -> None:
    arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}
    rabbitmq.vhost.queues.declare("s", QueueDeclaration(durable=True, arguments=arguments))
    client = rabbitmq.session()
    client.receiver("/queues/s", 0, credit=1)
    assert client.expect(c.Flow).properties == {"rabbitmq:active": True}
    client.receiver("/queues/s", 1, credit=1)
    assert client.expect(c.Flow).properties == {"rabbitmq:active": False}


@pytest.mark.rule("1-0/flow/full-outbox")
def test_client_that_does_not_read_gets_no_more_than_the_outbox_holds(rabbitmq: Server) -> None:
    sender = rabbitmq.session().sender()
    for _ in range(80):
        sender.publish(message(b"x" * 50_000))
    client = rabbitmq.session()
    client.receiver(credit=80)
    assert len(rabbitmq.vhost.queues["q"].ready) > 50
    while client.take_all():
        pass
    assert not rabbitmq.vhost.queues["q"].ready
