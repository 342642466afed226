"""A message in several transfers is one for a rule, in both directions, and windows and ids go on."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Link, message
from compat_tests.unit.faults.amqp_1_0.server import FaultServer
from fakeamqp.protocols.amqp_1_0.codec import composites as c

LARGE = bytes(range(256)) * 40


def send_parts(link: Link, payload: bytes, size: int, **fields: object) -> None:
    """Send a message in transfers of a size."""
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    for number, part in enumerate(parts):
        link.transfer(part, more=True if number + 1 < len(parts) else None, **fields)


def outcome_of(link: Link) -> c.Composite:
    """The next outcome, behind any flow."""
    while isinstance(link.client.inbox[0].what, c.Flow):
        link.client.take()
    return link.outcome()


def test_rule_about_the_body_sees_the_whole_message_once(server: FaultServer, client: Client) -> None:
    rule = server.faults.on("transfer", queue="q", body=LARGE).nack()
    sender = client.sender()
    send_parts(sender, message(LARGE), 1000)
    assert isinstance(outcome_of(sender), c.Rejected)
    assert rule.hits == rule.calls == 1
    send_parts(sender, message(LARGE + b"x"), 1000)
    assert isinstance(outcome_of(sender), c.Accepted)
    assert server.bodies() == [LARGE + b"x"]
    assert rule.hits == rule.calls == 1


def test_messages_on_two_links_of_a_session_are_gathered_side_by_side(
    server: FaultServer, client: Client
) -> None:
    rule = server.faults.on("transfer", body=b"onetwo").drop()
    one, other = client.sender(handle=0), client.sender(handle=1)
    first, second = message(b"onetwo"), message(b"threefour")
    one.transfer(first[:4], more=True, delivery_id=0)
    other.transfer(second[:4], more=True, delivery_id=1)
    one.transfer(first[4:], delivery_id=0)
    other.transfer(second[4:], delivery_id=1)
    assert isinstance(outcome_of(other), c.Accepted)
    assert rule.hits == 1 and server.bodies() == [b"threefour"]


def test_window_is_renewed_while_the_message_is_gathered(server: FaultServer, client: Client) -> None:
    server.faults.on("transfer", body=LARGE).duplicate()
    sender = client.sender()
    send_parts(sender, message(LARGE), 20)  # More transfers than a window has.
    flows = [each.what for each in client.take_all() if isinstance(each.what, c.Flow)]
    assert flows and flows[-1].incoming_window == 400
    assert server.bodies() == [LARGE, LARGE]
    session = server.state.connections and next(iter(server.state.connections)).sessions[0]
    assert session.next_incoming_id == client.next_outgoing_id


def test_detach_amid_a_message_forgets_its_transfers(server: FaultServer, client: Client) -> None:
    rule = server.faults.on("transfer", body=b"ab").drop().optional()
    sender = client.sender()
    whole = message(b"ab")
    sender.transfer(whole[:4], more=True)
    sender.detach()
    client.next_delivery_id += 1
    assert isinstance(client.sender().publish(message(b"cd")), c.Accepted)
    assert rule.hits == 0 and server.bodies() == [b"cd"]


def test_end_amid_a_message_forgets_its_transfers(server: FaultServer, client: Client) -> None:
    server.faults.on("transfer", body=b"ab").drop().optional()
    sender = client.sender()
    sender.transfer(message(b"ab")[:4], more=True)
    client.send(c.End()).expect(c.End)
    client.next_outgoing_id = 0
    client.begin()
    assert isinstance(client.sender().publish(message(b"cd")), c.Accepted)
    assert server.bodies() == [b"cd"]


def test_rule_made_amid_a_message_leaves_the_rest_of_it(server: FaultServer, client: Client) -> None:
    sender = client.sender()
    whole = message(b"ab")
    sender.transfer(whole[:4], more=True)
    rule = server.faults.on("transfer").drop()
    sender.transfer(whole[4:])
    assert isinstance(outcome_of(sender), c.Accepted)
    assert rule.hits == 0


def test_replaced_body_comes_in_as_many_transfers_as_it_needs(server: FaultServer) -> None:
    client = server.session(max_frame_size=512)
    sender = client.sender()
    sender.publish(message(b"small"))
    server.faults.on("transfer", direction="sent").replace(body=LARGE).once()
    client.receiver(handle=1, credit=1)
    arrived = client.take_all()
    assert all(isinstance(each.what, c.Transfer) for each in arrived)
    assert [each.what.more for each in arrived] == [True] * (len(arrived) - 1) + [False]
    assert b"".join(each.payload for each in arrived).endswith(LARGE)


@pytest.mark.parametrize("action", ["drop", "hold"])
def test_delivery_in_parts_that_does_not_come_leaves_no_gap(server: FaultServer, action: str) -> None:
    client = server.session(max_frame_size=1024)
    sender = client.sender()
    sender.publish(message(LARGE))
    sender.publish(message(b"next"))
    rule = getattr(server.faults.on("transfer", direction="sent", body=LARGE), action)()
    client.receiver(handle=1, credit=5)
    transfer = client.expect(c.Transfer)
    assert transfer.delivery_id == 0
    client.expect_nothing()
    if action == "hold":
        rule.release()
        arrived = client.take_all()
        assert {each.what.delivery_id for each in arrived} == {1}
        assert b"".join(each.payload for each in arrived).endswith(LARGE)


def test_message_that_the_window_of_the_client_cuts_concerns_no_rule(server: FaultServer) -> None:
    client = server.open(max_frame_size=1024)
    client.begin(incoming_window=2)
    sender = client.sender()
    sender.publish(message(LARGE))
    rule = server.faults.on("transfer", direction="sent").drop().optional()
    client.receiver(handle=1).flow(link_credit=1, next_incoming_id=0, incoming_window=2)
    assert len(client.take_all()) == 2
    client.send(c.Flow(next_incoming_id=2, incoming_window=100, next_outgoing_id=1, outgoing_window=100))
    assert len(client.take_all()) > 2
    assert rule.hits == 0
