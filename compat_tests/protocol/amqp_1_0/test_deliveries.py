"""Deliveries in both directions and their settlement in AMQP 1.0, as the standard has them."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Link, Server, message
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UByte, UInt

rule = pytest.mark.rule


def stored(server: Server, queue: str = "q") -> list[bytes]:
    return [each.message.body for each in server.vhost.queues[queue].ready]


def holding(server: Server, count: int = 1, kind: str = "classic") -> tuple[Client, Link]:
    """A client that holds messages 0, 1... of queue "held", and its link."""
    arguments = {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    server.vhost.queues.declare("held", QueueDeclaration(durable=True, arguments=arguments))
    client = server.session()
    sender = client.sender("/queues/held")
    for number in range(count):
        sender.publish(message(b"%d" % number))
    receiver = client.receiver("/queues/held", 1, credit=count)
    assert sum(isinstance(each.what, c.Transfer) for each in client.take_all()) == count
    return client, receiver


# --- transfers of clients -----------------------------------------------------------------------------------


@rule("1-0/transfer/delivery-id-first")
def test_first_transfer_without_delivery_id_ends_the_session(client: Client) -> None:
    client.sender().transfer(delivery_id=None)
    client.expect_end("amqp:internal-error")


@pytest.mark.deviates("1-0/transfer/delivery-tag", "1-0/transfer/delivery-tag-length")
@pytest.mark.parametrize("tag", [None, b"", b"x" * 33])
def test_delivery_without_tag_or_with_a_long_one_is_taken(server: Server, tag: bytes | None) -> None:
    assert isinstance(server.session().sender().publish(delivery_tag=tag), c.Accepted)
    assert stored(server) == [b"body"]


@pytest.mark.deviates("1-0/transfer/message-format-other")
@pytest.mark.parametrize("number", [1, 0x80000000])
def test_message_of_another_format_is_taken_for_one_of_format_0(server: Server, number: int) -> None:
    client = server.session()
    assert isinstance(client.sender().publish(message_format=UInt(number)), c.Accepted)
    assert client.receiver(handle=1, credit=1).take()[0].message_format == 0


@rule("1-0/transfer/batchable", "1-0/transfer/state", "1-0/transfer/rcv-settle-mode")
@rule("1-0/transfer/message-format", "1-0/transfer/delivery-tag-size")
@pytest.mark.parametrize(
    "fields",
    [
        {"batchable": True},
        {"state": c.Accepted()},
        {"state": c.Received(section_number=UInt(0), section_offset=0)},
        {"rcv_settle_mode": UByte(0)},
        {"message_format": UInt(0)},
        {"delivery_tag": b"x" * 32},
        {"delivery_id": UInt(0xFFFFFFFF)},
    ],
)
def test_fields_of_transfer_that_say_nothing_have_no_effect(server: Server, fields: dict[str, Any]) -> None:
    assert isinstance(server.session().sender().publish(**fields), c.Accepted)
    assert stored(server) == [b"body"]


@rule("1-0/transfer/rcv-settle-mode", "1-0/errors/link-scope")
def test_transfer_with_mode_second_detaches_the_link(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.sender().transfer(rcv_settle_mode=UByte(1))
    client.expect_detach("amqp:not-implemented", "rcv-settle-mode second not supported")


@pytest.mark.deviates("1-0/transfer/resume", "1-0/transactions/publish")
@pytest.mark.parametrize(
    "fields", [{"resume": True}, {"state": c.TransactionalState(txn_id=b"1")}], ids=["resume", "transaction"]
)
def test_resumed_or_transactional_transfer_is_a_new_one(server: Server, fields: dict[str, Any]) -> None:
    assert isinstance(server.session().sender().publish(**fields), c.Accepted)
    assert stored(server) == [b"body"]


@pytest.mark.deviates("1-0/transfer/aborted")
def test_aborted_delivery_is_what_has_come(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    sender.transfer(message(b"x"), more=True)
    client.send(c.Transfer(handle=0, aborted=True))
    assert isinstance(sender.outcome(), c.Accepted)
    assert stored(server) == [b"x"]


@pytest.mark.deviates("1-0/transfer/settled-later")
def test_later_transfer_that_says_settled_is_refused(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    text = (
        "field 'settled' of continuation transfer (true) differs from (interpreted) field 'settled' on first "
        "transfer (false)"
    )
    for server in (rabbitmq, rabbitmq_4_0):
        client = server.session()
        client.sender().transfer(message()[:4], more=True)
        client.send(c.Transfer(handle=0, settled=True), payload=message()[4:])
        if server is rabbitmq:
            client.expect_detach("amqp:invalid-field", text)
        else:
            client.expect_end("amqp:connection:framing-error", text)


@rule("1-0/transfer/continuation", "1-0/transfer/more-default", "1-0/transfer/settled-default")
@pytest.mark.parametrize(
    "fields",
    [{}, {"settled": False}, {"delivery_tag": b"0"}, {"message_format": UInt(0)}, {"more": False}],
)
def test_further_transfers_may_leave_out_or_repeat_what_the_first_has_said(
    server: Server, fields: dict[str, Any]
) -> None:
    client = server.session()
    sender = client.sender()
    sender.transfer(message(b"abcdef")[:5], more=True)
    client.expect_nothing()
    client.send(c.Transfer(handle=0, **fields), payload=message(b"abcdef")[5:])
    assert isinstance(sender.outcome(), c.Accepted)
    assert stored(server) == [b"abcdef"]


@rule("1-0/transfer/interleaved")
def test_transfers_of_two_links_may_be_interleaved(server: Server) -> None:
    server.vhost.queues.create("r")
    client = server.session()
    client.sender("/queues/q", 0)
    client.sender("/queues/r", 1)
    for handle in (0, 1):
        first = c.Transfer(handle=handle, delivery_id=handle, delivery_tag=b"0", more=True)
        client.send(first, payload=message(b"%dabc" % handle)[:6])
    for handle in (1, 0):
        client.send(c.Transfer(handle=handle), payload=message(b"%dabc" % handle)[6:])
    assert (stored(server, "q"), stored(server, "r")) == ([b"0abc"], [b"1abc"])


@rule("1-0/transfer/split-anywhere")
def test_message_may_be_cut_at_each_octet_and_in_empty_pieces(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    octets = message(b"abc", header=c.Header(durable=True), application={"a": 1})
    sender.transfer(b"", more=True)
    for at in range(len(octets)):
        client.send(c.Transfer(handle=0, more=True), payload=octets[at : at + 1])
    client.send(c.Transfer(handle=0))
    assert isinstance(sender.outcome(), c.Accepted)
    assert stored(server) == [b"abc"]


@rule("1-0/transfer/on-receiver")
def test_transfer_on_a_link_of_the_broker_ends_the_session(client: Client) -> None:
    client.receiver()
    client.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"0"), payload=message())
    client.expect_end("amqp:session:unattached-handle", "Unknown link handle: 0")


@rule("1-0/transfer/settled-outcome", "1-0/settlement/at-most-once")
def test_settled_delivery_has_no_disposition(server: Server) -> None:
    client = server.session()
    client.sender().transfer(settled=True)
    client.expect_nothing()
    client.receiver(handle=1, credit=1, snd_settle_mode=1).take()
    client.drop()
    assert stored(server) == []


# --- transfers of the broker --------------------------------------------------------------------------------


@rule("1-0/transfer/delivery-id-session", "1-0/transfer/delivery-tag-unique")
@rule("1-0/transfer/delivery-tag-size", "1-0/transfer/message-format")
def test_deliveries_count_over_the_links_of_a_session(server: Server) -> None:
    server.vhost.queues.create("r")
    client = server.session()
    for handle, name in ((0, "q"), (1, "r")):
        sender = client.sender(f"/queues/{name}", handle)
        for _ in range(3):
            sender.publish()
    receivers = [client.receiver(f"/queues/{name}", handle) for handle, name in ((2, "q"), (3, "r"))]
    for receiver in receivers:
        receiver.flow(link_credit=3)
    sent = [each.what for each in client.take_all()]
    assert [each.delivery_id for each in sent] == [*range(6)]
    for handle in (2, 3):
        tags = [each.delivery_tag for each in sent if each.handle == handle]
        assert len(set(tags)) == 3 and {len(tag) for tag in tags} == {4}
    assert {each.message_format for each in sent} == {0}


@rule("1-0/settlement/competing", "1-0/settlement/order")
def test_acquired_message_goes_to_no_other_link_and_returns_to_its_place(rabbitmq: Server) -> None:
    client, _ = holding(rabbitmq, 2)
    other = rabbitmq.session()
    receiver = other.receiver("/queues/held", credit=5)
    other.expect_nothing()
    client.send(c.Disposition(role=True, first=1, settled=True, state=c.Released()))
    assert receiver.take()[1]["data"] == b"1"
    other.drop()
    client.send(c.Disposition(role=True, first=0, settled=True, state=c.Released()))
    again = rabbitmq.session().receiver("/queues/held", credit=5)
    assert [again.take()[1]["data"] for _ in range(2)] == [b"0", b"1"]


# --- dispositions -------------------------------------------------------------------------------------------


@rule("1-0/disposition/single", "1-0/disposition/accepted")
def test_disposition_without_last_is_about_one_delivery(server: Server) -> None:
    _, receiver = holding(server, 3)
    receiver.settle(c.Accepted(), 1)
    assert len(server.vhost.queues["held"].unacked) == 2


@rule("1-0/disposition/unknown")
def test_unknown_and_settled_deliveries_are_left_out(server: Server) -> None:
    client, receiver = holding(server, 2)
    receiver.settle(c.Accepted(), 0)
    receiver.settle(c.Released(), 0, 99)
    receiver.settle(c.Rejected(), 500, 600)
    client.expect_nothing()
    assert (stored(server, "held"), stored(server)) == ([b"1"], [])


@rule("1-0/disposition/wrapped")
def test_range_of_deliveries_may_wrap(server: Server) -> None:
    client, receiver = holding(server, 2)
    receiver.settle(c.Accepted(), 0xFFFFFFFE, 1)
    client.expect_nothing()
    assert not server.vhost.queues["held"].unacked


@rule("1-0/disposition/reversed")
def test_range_whose_last_is_before_its_first_ends_the_session(server: Server) -> None:
    client, receiver = holding(server, 2)
    receiver.settle(c.Accepted(), 1, 0)
    client.expect_end("amqp:internal-error")


@rule("1-0/disposition/batchable")
def test_answer_repeats_batchable(server: Server) -> None:
    client, _ = holding(server)
    client.send(c.Disposition(role=True, first=0, state=c.Accepted(), batchable=True))
    answer = client.expect(c.Disposition)
    assert (answer.role, answer.settled, answer.batchable) == (False, True, True)


@pytest.mark.deviates("1-0/disposition/sender")
def test_disposition_of_a_sender_ends_the_session(server: Server) -> None:
    client, _ = holding(server)
    client.send(c.Disposition(role=False, first=0, settled=True, state=c.Accepted()))
    client.expect_end("amqp:internal-error")
    assert stored(server, "held") == [b"0"]


@rule("1-0/disposition/two-steps")
def test_outcome_that_is_not_settled_is_settled_by_the_broker(server: Server) -> None:
    client, receiver = holding(server, 2)
    receiver.settle(c.Accepted(), 0, 1, settled=False)
    answer = client.expect(c.Disposition)
    assert (answer.role, answer.first, answer.last, answer.settled) == (False, 0, 1, True)
    assert c.read_composite(answer.state) == c.Accepted()
    receiver.settle(c.Accepted(), 0, 1)
    client.expect_nothing()


@pytest.mark.deviates("1-0/disposition/received", "1-0/disposition/transactional")
@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (c.Received(section_number=UInt(1), section_offset=2), "{'v1_0.received',{uint,1},{ulong,2}}"),
        (c.Declared(txn_id=b"1"), "{'v1_0.declared',{binary,<<\"1\">>}}"),
    ],
)
def test_state_that_is_no_outcome_ends_the_session_with_its_term(
    server: Server, state: c.Composite, shown: str
) -> None:
    client, receiver = holding(server)
    receiver.settle(state, 0, settled=False)
    client.expect_end("amqp:invalid-field", f"Unrecognised state: {shown} in DISPOSITION")


@rule("1-0/disposition/accepted", "1-0/disposition/rejected", "1-0/disposition/released")
@rule("1-0/disposition/modified", "1-0/disposition/undeliverable-here")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize(
    ("state", "returned", "dead"),
    [
        (c.Accepted(), [], []),
        (c.Rejected(error=c.Error(condition=Symbol("x:y"), info={Symbol("a"): 1})), [], [b"0"]),
        (c.Released(), [b"0"], []),
        (c.Modified(delivery_failed=True), [b"0"], []),
        (c.Modified(undeliverable_here=True), [], [b"0"]),
    ],
)
def test_outcome_removes_returns_or_dead_letters_a_message(
    server: Server, state: c.Composite, returned: list[bytes], dead: list[bytes], kind: str
) -> None:
    client, receiver = holding(server, kind=kind)
    receiver.settle(state, 0)
    client.expect_nothing()
    assert (stored(server, "held"), stored(server)) == (returned, dead)


@rule("1-0/header/delivery-count", "1-0/header/first-acquirer", "1-0/disposition/modified")
@pytest.mark.parametrize(
    ("state", "count"), [(c.Released(), 0), (c.Modified(), 0), (c.Modified(delivery_failed=True), 1)]
)
def test_header_counts_failures_and_knows_the_first_delivery(
    rabbitmq: Server, state: c.Composite, count: int
) -> None:
    client, receiver = holding(rabbitmq)
    receiver.settle(state, 0)
    _, said = receiver.flow(link_credit=1, delivery_count=1).take()
    assert (said["header"].first_acquirer, said["header"].delivery_count) == (False, count)
    client.sender(handle=2).publish()
    _, said = client.receiver(handle=3, credit=1).take()
    assert (said["header"].first_acquirer, said["header"].delivery_count) == (True, 0)


@pytest.mark.deviates("1-0/disposition/modified-annotations")
def test_classic_queue_leaves_out_the_annotations_of_modified(rabbitmq: Server) -> None:
    _, receiver = holding(rabbitmq)
    receiver.settle(c.Modified(message_annotations={Symbol("x-a"): "t"}), 0)
    _, said = receiver.flow(link_credit=1, delivery_count=1).take()
    assert "x-a" not in said["annotations"]


@rule("1-0/disposition/after-detach")
def test_outcome_for_a_link_that_is_gone_has_no_effect(server: Server) -> None:
    client, receiver = holding(server)
    receiver.detach()
    receiver.settle(c.Accepted(), 0)
    client.expect_nothing()
    assert stored(server, "held") == [b"0"]


@rule("1-0/settlement/at-least-once")
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_unsettled_message_comes_until_it_is_settled(server: Server, kind: str) -> None:
    for _ in range(2):
        client = server.session()
        if "held" not in server.vhost.queues:
            client, _ = holding(server, kind=kind)
        else:
            assert client.receiver("/queues/held", credit=1).take()[1]["data"] == b"0"
        client.drop()
    client = server.session()
    receiver = client.receiver("/queues/held", credit=1)
    receiver.take()
    receiver.settle(c.Accepted(), 0)
    client.drop()
    assert stored(server, "held") == []


@rule("1-0/transfer/tags-of-queues")
@pytest.mark.parametrize(("kind", "again"), [("classic", 0), ("quorum", 1)])
def test_tag_is_the_number_of_the_message_in_its_queue(rabbitmq: Server, kind: str, again: int) -> None:
    client, receiver = holding(rabbitmq, kind=kind)
    receiver.settle(c.Released(), 0)
    transfer, _ = receiver.flow(link_credit=1, delivery_count=1).take()
    assert (transfer.delivery_id, int.from_bytes(transfer.delivery_tag, "big")) == (1, again)
    client.sender(handle=2).publish()
    assert client.receiver(handle=3, credit=1, snd_settle_mode=1).take()[0].delivery_tag == b""
