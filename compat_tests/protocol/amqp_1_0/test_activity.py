"""What RabbitMQ 4.3 tells the consumers of quorum queues of AMQP 1.0: activity, and consumer timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Link, Server, filters
from fakeamqp.model.operations import carry_out
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Int, Symbol, UInt

LATE = {Symbol("rabbitmq:consumer-timeout"): UInt(1000)}


def quorum(server: Server, *, single: bool = False, timeout: int | None = None) -> Any:
    """Queue "qq"; its timeout is in milliseconds."""
    arguments: dict[str, Any] = {"x-queue-type": "quorum", "x-single-active-consumer": single}
    if timeout is not None:
        arguments["x-consumer-timeout"] = timeout
    return server.vhost.queues.declare("qq", QueueDeclaration(durable=True, arguments=arguments))


def activities(client: Client) -> list[tuple[int, bool]]:
    """Handle and activity of all flows that tell it."""
    flows = [each.what for each in client.take_all() if isinstance(each.what, c.Flow)]
    return [(each.handle, each.properties["rabbitmq:active"]) for each in flows if each.properties]


# --- activity ----------------------------------------------------------------------------------------------


@pytest.mark.rule("1-0/flow/active")
def test_consumer_without_rivals_is_told_once_that_it_is_active(rabbitmq: Server) -> None:
    quorum(rabbitmq)
    client = rabbitmq.session()
    receiver = client.receiver("/queues/qq")
    assert activities(client) == []
    receiver.flow(link_credit=0)
    assert activities(client) == [(0, True)]
    receiver.flow(link_credit=5, echo=True)
    assert activities(client) == []


@pytest.mark.rule("1-0/flow/active")
def test_single_active_consumer_is_told_at_attach_and_the_next_at_each_change(rabbitmq: Server) -> None:
    quorum(rabbitmq, single=True)
    one, two = rabbitmq.session(), rabbitmq.session()
    first = one.receiver("/queues/qq")
    assert activities(one) == [(0, True)]
    first.flow(link_credit=5)
    assert activities(one) == []
    second = two.receiver("/queues/qq")
    assert activities(two) == []
    second.flow(link_credit=5)
    assert activities(two) == [(0, False)]
    one.send(c.Detach(handle=0))
    assert activities(one) == []
    assert activities(two) == [(0, True)]


@pytest.mark.rule("1-0/flow/active")
def test_consumer_of_higher_priority_takes_over(rabbitmq: Server) -> None:
    quorum(rabbitmq, single=True)
    one, two = rabbitmq.session(), rabbitmq.session()
    one.receiver("/queues/qq")
    one.take_all()
    two.receiver("/queues/qq", properties={Symbol("rabbitmq:priority"): Int(5)})
    assert activities(one) == [(0, False)]
    assert activities(two) == [(0, True)]


@pytest.mark.rule("1-0/flow/active")
def test_consumer_that_holds_messages_stays_active_until_it_settles_them(rabbitmq: Server) -> None:
    quorum(rabbitmq, single=True)
    one, two = rabbitmq.session(), rabbitmq.session()
    first = one.receiver("/queues/qq", credit=5)
    sender = rabbitmq.session().sender("/queues/qq")
    sender.publish()
    two.receiver("/queues/qq", credit=5, properties={Symbol("rabbitmq:priority"): Int(5)})
    assert activities(two) == [(0, False)]
    sender.publish()
    one.take_all()
    first.settle(c.Accepted(), 0)
    assert activities(one) == [(0, False)]
    flow, transfer = two.take_all()
    assert flow.what.properties == {"rabbitmq:active": True}
    assert flow.what.available == 1
    assert isinstance(transfer.what, c.Transfer)


@pytest.mark.rule("1-0/flow/active")
def test_drained_consumer_that_waits_has_nothing_available(rabbitmq: Server) -> None:
    quorum(rabbitmq, single=True)
    rabbitmq.session().sender("/queues/qq").publish()
    rabbitmq.session().receiver("/queues/qq")
    client = rabbitmq.session()
    client.receiver("/queues/qq").flow(link_credit=5, drain=True)
    flow = client.expect(c.Flow)
    assert (flow.drain, flow.delivery_count, flow.link_credit, flow.available) == (True, 5, 0, 0)
    assert flow.properties == {"rabbitmq:active": False}


@pytest.mark.rule("1-0/flow/active")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_activity_is_told_by_quorum_queues_since_rabbitmq_4_3_only(kind: str) -> None:
    for version in ("rabbitmq-4.2", "rabbitmq-4.3"):
        server = Server(version)
        arguments = {"x-queue-type": kind, "x-single-active-consumer": True}
        server.vhost.queues.declare("s", QueueDeclaration(durable=True, arguments=arguments))
        client = server.session()
        client.receiver("/queues/s", credit=5)
        assert bool(activities(client)) is (kind == "quorum" and version == "rabbitmq-4.3")


# --- consumer timeouts -------------------------------------------------------------------------------------


def held(server: Server, count: int = 1, properties: Any = None) -> tuple[Client, Link]:
    """A client that holds so many messages of the queue."""
    sender = server.session().sender("/queues/qq")
    for _ in range(count):
        sender.publish()
    client = server.session()
    link = client.receiver("/queues/qq", credit=count, properties=properties)
    client.take_all()
    return client, link


@pytest.mark.rule("1-0/disposition/consumer-timeout")
@pytest.mark.parametrize("how", ["property", "argument", "policy"])
def test_message_held_too_long_is_released_for_the_client_to_settle(rabbitmq: Server, how: str) -> None:
    queue = quorum(rabbitmq, timeout=1000 if how == "argument" else None)
    if how == "policy":
        policy = {"pattern": "qq", "definition": {"consumer-timeout": 1000}, "priority": 0, "apply-to": "all"}
        carry_out(rabbitmq.vhost.policies.setting("p", policy))
    client, link = held(rabbitmq, properties=LATE if how == "property" else None)
    rabbitmq.advance(0.9)
    client.expect_nothing()
    rabbitmq.advance(0.2)
    said = client.expect(c.Disposition)
    assert (said.role, said.first, said.last, said.settled) == (False, 0, None, False)
    assert isinstance(c.read_composite(said.state), c.Released)
    assert (len(queue.ready), len(queue.unacked)) == (1, 0)
    link.flow(link_credit=1, delivery_count=1)
    client.expect_nothing()
    link.settle(c.Released(), 0)
    transfer, sections = link.take()
    assert transfer.delivery_id == 1
    assert sections["annotations"]["x-acquired-count"] == 1


@pytest.mark.rule("1-0/disposition/consumer-timeout")
def test_consumer_timeout_of_another_type_than_uint_is_ignored(rabbitmq: Server) -> None:
    quorum(rabbitmq)
    client, _ = held(rabbitmq, properties={Symbol("rabbitmq:consumer-timeout"): Int(1000)})
    rabbitmq.advance(2)
    client.expect_nothing()


@pytest.mark.rule("1-0/disposition/consumer-timeout")
def test_settling_a_message_that_was_taken_back_has_no_effect_on_it(rabbitmq: Server) -> None:
    queue = quorum(rabbitmq)
    client, link = held(rabbitmq, properties=LATE)
    rabbitmq.advance(2)
    client.take_all()
    link.settle(c.Accepted(), 0, settled=False)
    answer = client.expect(c.Disposition)
    assert (answer.settled, type(c.read_composite(answer.state))) == (True, c.Accepted)
    assert len(queue.ready) == 1


@pytest.mark.rule("1-0/disposition/consumer-timeout")
def test_messages_held_too_long_are_told_in_ranges_and_once(rabbitmq: Server) -> None:
    quorum(rabbitmq)
    client, link = held(rabbitmq, 4, properties=LATE)
    link.settle(c.Accepted(), 1)
    rabbitmq.advance(2)
    ranges = [(each.what.first, each.what.last) for each in client.take_all()]
    assert ranges == [(0, None), (2, 3)]
    rabbitmq.advance(10)
    client.expect_nothing()


@pytest.mark.rule("1-0/disposition/consumer-timeout")
def test_each_message_is_told_when_its_own_time_is_over(rabbitmq: Server) -> None:
    quorum(rabbitmq)
    sender = rabbitmq.session().sender("/queues/qq")
    client = rabbitmq.session()
    client.receiver("/queues/qq", credit=2, properties=LATE)
    sender.publish()
    rabbitmq.advance(0.5)
    sender.publish()
    client.take_all()
    told = []
    for _ in range(2):
        rabbitmq.advance(0.6)
        told.append([(each.what.first, each.what.last) for each in client.take_all()])
    assert told == [[(0, None)], [(1, None)]]


@pytest.mark.rule("1-0/disposition/consumer-timeout")
def test_detach_after_a_timeout_returns_no_message_twice(rabbitmq: Server) -> None:
    queue = quorum(rabbitmq)
    client, link = held(rabbitmq, properties=LATE)
    rabbitmq.advance(2)
    client.take_all()
    link.detach()
    assert len(queue.ready) == 1
    other = rabbitmq.session()
    other.receiver("/queues/qq", credit=5)
    (transfer,) = [each for each in other.take_all() if isinstance(each.what, c.Transfer)]
    assert transfer.what.delivery_id == 0


@pytest.mark.rule("1-0/disposition/consumer-timeout", "1-0/flow/active")
def test_timeout_of_a_single_active_consumer_activates_the_next(rabbitmq: Server) -> None:
    quorum(rabbitmq, single=True)
    client, _ = held(rabbitmq, properties=LATE)
    other = rabbitmq.session()
    other.receiver("/queues/qq", credit=5)
    other.take_all()
    rabbitmq.advance(2)
    kinds = sorted(type(each.what).__name__ for each in client.inbox)
    assert kinds == ["Disposition", "Flow"]
    assert activities(client) == [(0, False)]
    flow, transfer = other.take_all()
    assert flow.what.properties == {"rabbitmq:active": True}
    assert isinstance(transfer.what, c.Transfer)


@pytest.mark.rule("1-0/disposition/consumer-timeout")
def test_operators_see_that_a_link_has_timed_out(rabbitmq: Server) -> None:
    quorum(rabbitmq)
    client, _ = held(rabbitmq, properties=LATE)
    (connection,) = [each for each in rabbitmq.state.connections if each is client.connection]

    def shown() -> bool:
        said: bool = connection.session_facts()[0]["outgoing_links"][0]["consumer_timeout"]
        return said

    assert shown() is False
    rabbitmq.advance(2)
    assert shown() is True


@pytest.mark.rule("1-0/disposition/consumer-timeout")
def test_consumers_have_no_timeout_before_rabbitmq_4_3(rabbitmq_4_0: Server) -> None:
    queue = quorum(rabbitmq_4_0, timeout=1000)
    client, _ = held(rabbitmq_4_0, properties=LATE)
    rabbitmq_4_0.advance(50)
    client.expect_nothing()
    assert len(queue.unacked) == 1


# --- tags --------------------------------------------------------------------------------------------------


@pytest.mark.rule("1-0/transfer/tags-of-queues")
@pytest.mark.parametrize(("kind", "tag"), [("classic", b""), ("quorum", b"\0" * 4), ("stream", b"\0" * 4)])
def test_settled_delivery_has_a_tag_unless_it_comes_from_a_classic_queue(
    server: Server, kind: str, tag: bytes
) -> None:
    server.vhost.queues.declare("t", QueueDeclaration(durable=True, arguments={"x-queue-type": kind}))
    client = server.session()
    client.sender("/queues/t").publish()
    fields = {"terminus": {"filter": filters(offset_spec="first")}} if kind == "stream" else {}
    client.receiver("/queues/t", 1, 1, snd_settle_mode=1, **fields)
    (transfer,) = [each.what for each in client.take_all() if isinstance(each.what, c.Transfer)]
    assert (transfer.delivery_tag, transfer.settled) == (tag, True)
