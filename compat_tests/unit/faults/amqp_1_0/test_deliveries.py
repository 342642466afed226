"""Deliveries of 1.0 in another order, twice or not at all: the client counts them without a gap."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import SENDER, Client, Link, message
from compat_tests.unit.faults.amqp_1_0.server import FaultServer
from fakeamqp.faults.actions import malformations
from fakeamqp.protocols.amqp_1_0.codec import composites as c


def receiver_of(server: FaultServer, *bodies: bytes, credit: int = 10) -> Link:
    """A link to a client of a queue that has messages."""
    sender = server.session().sender()
    for body in bodies:
        sender.publish(message(body))
    return server.session().receiver(credit=credit)


def got(client: Client) -> list[tuple[int, bytes]]:
    """Delivery id and body of each delivery that has come."""
    return [(each.what.delivery_id, each.payload[-1:]) for each in client.take_all()]


def test_reordered_deliveries_have_ids_in_the_order_of_sending(server: FaultServer) -> None:
    server.faults.on("transfer", direction="sent", body=b"1").reorder().once()
    link = receiver_of(server, b"1", b"2", b"3", credit=3)
    assert got(link.client) == [(0, b"2"), (1, b"1"), (2, b"3")]
    link.settle(c.Accepted(), 0).settle(c.Released(), 1)
    assert server.bodies() == [b"1"]


def test_duplicate_of_a_delivery_has_an_id_of_its_own_and_settles_nothing(server: FaultServer) -> None:
    server.faults.on("transfer", direction="sent", body=b"1").duplicate().once()
    link = receiver_of(server, b"1", b"2", credit=2)
    assert got(link.client) == [(0, b"1"), (1, b"1"), (2, b"2")]
    link.settle(c.Released(), 1).settle(c.Accepted(), 0).settle(c.Released(), 2)
    assert server.bodies() == [b"2"]


def test_held_delivery_has_the_next_id_when_it_is_released(server: FaultServer) -> None:
    rule = server.faults.on("transfer", direction="sent", body=b"1").hold()
    link = receiver_of(server, b"1", b"2", credit=2)
    assert got(link.client) == [(0, b"2")]
    rule.release()
    assert got(link.client) == [(1, b"1")]
    link.settle(c.Released(), 1)
    assert rule.hits == 1 and server.bodies() == [b"1"]


def test_conditions_of_a_disposition_are_those_of_its_deliveries(server: FaultServer) -> None:
    rule = server.faults.on("disposition", queue="q", body=b"2").drop()
    link = receiver_of(server, b"1", b"2", credit=2)
    link.settle(c.Accepted(), 0).settle(c.Accepted(), 1)
    assert rule.hits == 1
    assert [each.message.body for each in server.unsettled()] == [b"2"]


def test_state_of_a_disposition_is_compared_with_the_name_of_an_outcome(server: FaultServer) -> None:
    rule = server.faults.on("disposition", state="released").drop()
    link = receiver_of(server, b"1", b"2", credit=2)
    link.settle(c.Accepted(), 0).settle(c.Released(), 1)
    assert rule.hits == 1
    assert [each.message.body for each in server.unsettled()] == [b"2"]


def test_terminus_of_an_attach_is_compared_by_its_fields(server: FaultServer) -> None:
    rule = server.faults.on("attach", target=lambda target: target.address == "/queues/q").detach()
    client = server.session()
    client.refused(SENDER, "/queues/q")
    client.receiver()
    assert rule.hits == 1


def test_replaced_properties_and_body_are_those_of_the_stored_message(server: FaultServer) -> None:
    changes = {"body": b"other", "message_id": "m", "headers": {"shop": "north"}, "delivery_mode": 2}
    server.faults.on("transfer").replace(**changes)
    assert server.session().sender().publish(message(b"one")) == c.Accepted()
    [stored] = server.vhost.queues["q"].ready
    assert (stored.message.body, stored.message.properties.message_id) == (b"other", "m")
    assert stored.message.properties.headers == {"shop": "north"} and stored.message.persistent


def test_dropped_flow_grants_no_credit(server: FaultServer) -> None:
    rule = server.faults.on("flow", queue="q").drop().once()
    link = receiver_of(server, b"1")
    link.client.expect_nothing()
    link.flow(link_credit=1)
    assert got(link.client) == [(0, b"1")] and rule.hits == 1


def test_starved_link_gets_no_message_until_starvation_is_removed(server: FaultServer) -> None:
    starvation = server.faults.starve("q")
    link = receiver_of(server, b"1", b"2", credit=1)
    assert starvation.hits == 1
    link.client.expect_nothing()
    starvation.remove()
    assert got(link.client) == [(0, b"1")]


def test_starvation_concerns_the_links_of_a_name_only(server: FaultServer) -> None:
    link = receiver_of(server, credit=0)
    other = link.client.receiver(handle=7)
    starvation = server.faults.starve(destination="link 7")
    assert starvation.hits == 1
    for each in (other, link):
        each.flow(link_credit=1)
    for body in (b"1", b"2"):
        server.session().sender().publish(message(body))
    assert [each.what.handle for each in link.client.take_all()] == [0]


@pytest.mark.parametrize("name", sorted(malformations(["1-0"])))
def test_malformed_delivery_is_what_its_name_says_and_the_link_goes_on(
    server: FaultServer, name: str
) -> None:
    server.faults.on("transfer", direction="sent").malform(name).once()
    link = receiver_of(server, b"1")
    octets = link.client.take_bytes()
    assert octets
    said = [each for each in server.said if "malformed" in each]
    assert name in said[0]


def test_channel_flow_closes_and_opens_the_window(server: FaultServer, client: Client) -> None:
    flow = server.faults.channel_flow()
    assert client.expect(c.Flow).incoming_window == 0
    sender = client.sender()
    assert sender.granted.incoming_window == 0
    assert sender.publish() == c.Accepted()  # It was on its way.
    flow.remove()
    assert client.expect(c.Flow).incoming_window in (400, 399)  # Behind a proxy: what is left of it.
