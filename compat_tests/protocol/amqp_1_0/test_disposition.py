"""How a client of AMQP 1.0 settles deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Server, message
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol

KINDS = ("classic", "quorum")
OUTCOMES: dict[str, tuple[c.Composite, bool, bool]] = {
    "accepted": (c.Accepted(), False, False),
    "rejected": (c.Rejected(), False, True),
    "released": (c.Released(), True, False),
    "modified": (c.Modified(), True, False),
    "failed": (c.Modified(delivery_failed=True), True, False),
    "undeliverable": (c.Modified(undeliverable_here=True), False, True),
}
"""By name: the outcome, whether the message is requeued, and whether it is dead-lettered."""


def held(server: Server, kind: str) -> tuple[Client, Any, Any]:
    """A client that holds a message of a queue, the queue, and the queue of its dead letters."""
    arguments = {
        "x-queue-type": kind,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q",
    }
    queue = server.vhost.queues.declare("held", QueueDeclaration(durable=True, arguments=arguments))
    client = server.session()
    client.sender("/queues/held").publish(message(b"x"))
    client.receiver("/queues/held", 1, credit=1)
    client.take_all()
    return client, queue, server.vhost.queues["q"]


@pytest.mark.rule("1-0/disposition/outcomes")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome_removes_requeues_or_dead_letters(server: Server, name: str, kind: str) -> None:
    state, requeued, dead = OUTCOMES[name]
    client, queue, dead_letters = held(server, kind)
    client.send(c.Disposition(role=True, first=0, settled=True, state=state)).expect_nothing()
    assert (len(queue.ready), len(dead_letters.ready), len(queue.unacked)) == (requeued, dead, 0)


@pytest.mark.rule("1-0/disposition/delivery-count")
@pytest.mark.parametrize("kind", KINDS)
def test_failed_delivery_counts_and_released_one_does_not_in_4_3(rabbitmq: Server, kind: str) -> None:
    for state, count in ((c.Released(), 0), (c.Modified(delivery_failed=True), 1)):
        client, _, _ = held(rabbitmq, kind)
        client.send(c.Disposition(role=True, first=0, settled=True, state=state))
        _, said = rabbitmq.session().receiver("/queues/held", credit=1).take()
        assert (said["header"].first_acquirer, said["header"].delivery_count) == (False, count)
        rabbitmq.vhost.queues.delete("held", None)


@pytest.mark.rule("1-0/disposition/annotations")
def test_quorum_queue_keeps_the_annotations_of_a_modified_outcome(rabbitmq: Server) -> None:
    client, _, _ = held(rabbitmq, "quorum")
    state = c.Modified(delivery_failed=True, message_annotations={Symbol("x-a"): "t"})
    client.send(c.Disposition(role=True, first=0, settled=True, state=state))
    _, said = rabbitmq.session().receiver("/queues/held", credit=1).take()
    assert said["annotations"]["x-a"] == "t"
    assert (said["annotations"]["x-delivery-count"], said["annotations"]["x-acquired-count"]) == (1, 1)


@pytest.mark.rule("1-0/disposition/dead-letters")
def test_dead_letter_has_its_deaths_in_annotations(rabbitmq: Server) -> None:
    client, _, _ = held(rabbitmq, "classic")
    client.send(c.Disposition(role=True, first=0, settled=True, state=c.Rejected()))
    _, said = rabbitmq.session().receiver(credit=1).take()
    annotations = said["annotations"]
    (death,) = annotations["x-opt-deaths"]
    assert (death["queue"], death["reason"], death["count"]) == ("held", "rejected", 1)
    assert list(death["routing-keys"]) == ["held"]
    assert annotations["x-first-death-queue"] == "held"


@pytest.mark.rule("1-0/disposition/ranges")
def test_disposition_over_a_range_settles_deliveries_of_all_links(server: Server) -> None:
    server.vhost.queues.create("r")
    client = server.session()
    for handle, queue in ((0, "q"), (1, "r")):
        sender = client.sender(f"/queues/{queue}", handle)
        sender.publish()
        sender.publish()
    receivers = [client.receiver(f"/queues/{queue}", handle) for handle, queue in ((2, "q"), (3, "r"))]
    for receiver in receivers:
        receiver.flow(link_credit=5)
    assert len(client.take_all()) == 4
    client.send(c.Disposition(role=True, first=1, last=2, settled=True, state=c.Accepted()))
    assert [len(server.vhost.queues[name].unacked) for name in "qr"] == [1, 1]


@pytest.mark.rule("1-0/disposition/reply")
def test_unsettled_disposition_is_answered_with_a_settled_disposition(server: Server) -> None:
    client, queue, _ = held(server, "classic")
    client.send(c.Disposition(role=True, first=0, last=9, state=c.Accepted()))
    answer = client.expect(c.Disposition)
    assert (answer.role, answer.first, answer.last, answer.settled) == (False, 0, 9, True)
    assert not queue.unacked
    client.send(c.Disposition(role=True, first=0, state=c.Accepted())).expect_nothing()


@pytest.mark.rule("1-0/disposition/state")
@pytest.mark.parametrize("state", [None, c.Received(section_number=0, section_offset=0)])
def test_disposition_with_state_other_than_an_outcome_ends_the_session(
    server: Server, state: c.Composite | None
) -> None:
    client, queue, _ = held(server, "classic")
    client.send(c.Disposition(role=True, first=0, settled=True, state=state))
    assert "Unrecognised state" in client.expect_end("amqp:invalid-field").description
    assert len(queue.ready) == 1


@pytest.mark.rule("1-0/disposition/lost")
@pytest.mark.parametrize("kind", KINDS)
def test_message_of_a_lost_client_is_requeued(server: Server, kind: str) -> None:
    client, queue, _ = held(server, kind)
    client.drop()
    assert len(queue.ready) == 1


@pytest.mark.rule("1-0/disposition/settled")
def test_deliveries_of_a_settled_link_need_no_disposition(server: Server) -> None:
    client = server.session()
    client.sender().publish()
    transfer, _ = client.receiver(handle=1, credit=1, snd_settle_mode=1).take()
    assert (transfer.settled, transfer.delivery_tag) == (True, b"")
    queue = server.vhost.queues["q"]
    assert (len(queue.ready), len(queue.unacked)) == (0, 0)


@pytest.mark.rule("1-0/disposition/annotations")
def test_outcome_with_a_reserved_annotation_ends_the_session_and_returns_the_message(server: Server) -> None:
    client, queue, _ = held(server, "quorum")
    state = c.Modified(message_annotations={Symbol("a"): 1})
    client.send(c.Disposition(role=True, first=0, settled=True, state=state))
    client.expect_end("amqp:internal-error")
    assert len(queue.ready) == 1


@pytest.mark.rule("1-0/disposition/annotations")
def test_annotations_of_an_outcome_are_written_with_the_broker_s_own_by_name(rabbitmq: Server) -> None:
    client, _, _ = held(rabbitmq, "quorum")
    state = c.Modified(message_annotations={Symbol("x-b"): Symbol("text"), Symbol("x-a"): True})
    client.send(c.Disposition(role=True, first=0, settled=True, state=state))
    _, said = client.receiver("/queues/held", 2, credit=1).take()
    names = ["x-b", "x-acquired-count", "x-a", "x-routing-key", "x-exchange"]
    assert list(said["annotations"]) == names
    assert type(said["annotations"]["x-b"]) is str


@pytest.mark.rule("1-0/disposition/state")
def test_disposition_of_a_sender_about_deliveries_to_it_ends_the_session(server: Server) -> None:
    client = server.session()
    client.send(c.Disposition(role=False, first=0, settled=True, state=c.Accepted()))
    client.expect_end("amqp:internal-error")


@pytest.mark.rule("1-0/end/releases")
@pytest.mark.parametrize("kind", KINDS)
def test_session_that_ends_gets_nothing_of_what_it_gives_back(server: Server, kind: str) -> None:
    client, queue, _ = held(server, kind)
    link = client.receiver("/queues/held", 2, credit=5)
    client.take_all()
    client.send(c.End()).expect(c.End)
    client.expect_nothing()
    assert (len(queue.ready), queue.consumer_count, link.handle) == (1, 0, 2)


@pytest.mark.rule("1-0/disposition/dead-letters")
def test_times_of_deaths_are_those_of_the_first_and_the_last(rabbitmq: Server) -> None:
    queues = rabbitmq.vhost.queues
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "b", "x-message-ttl": 1000}
    queues.declare("a", QueueDeclaration(durable=True, arguments=arguments))
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a"}
    queues.declare("b", QueueDeclaration(durable=True, arguments=back))
    client = rabbitmq.session()
    client.sender("/queues/a").publish(message(b"x"))
    rabbitmq.advance(1)
    link = client.receiver("/queues/b", 1, credit=2)
    transfer, _ = link.take()
    link.settle(c.Rejected(), transfer.delivery_id)
    rabbitmq.advance(1)
    _, said = link.take()
    times = [death["last-time"] - death["first-time"] for death in said["annotations"]["x-opt-deaths"]]
    assert times == [1000, 0]
