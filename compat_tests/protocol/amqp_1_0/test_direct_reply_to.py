"""Direct reply-to of AMQP 1.0: replies without a queue, also between 1.0 and 0-9-1."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_1_0.test_management import ask, managed
from compat_tests.scripted.amqp_0_9_1 import Client as OldClient, QuietTap
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Link, Server, message
from fakeamqp.model.routing import is_reply_address
from fakeamqp.protocols.amqp_1_0.addresses import queue_of_source
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt

VOLATILE: dict[str, Any] = {
    "dynamic": True,
    "capabilities": (Symbol("rabbitmq:volatile-queue"),),
    "expiry_policy": Symbol("link-detach"),
}


def requester(client: Client, handle: int = 0, credit: int = 0, **fields: Any) -> tuple[Link, str]:
    """A link for replies, and its address."""
    terminus = {**VOLATILE, **fields.pop("terminus", {})}
    said = {"snd_settle_mode": 1, "terminus": terminus, **fields}
    link = client.receiver(None, handle, credit, **said)
    return link, c.read_composite(link.attached.source).address


def reply(body: bytes, address: str) -> bytes:
    return message(body, properties=c.Properties(to=address, correlation_id="1"))


@pytest.mark.rule("1-0/attach/volatile")
def test_answer_has_the_address_of_replies(rabbitmq: Server) -> None:
    link, address = requester(rabbitmq.session(), terminus={"outcomes": (Symbol("amqp:nope:list"),)})
    source = c.read_composite(link.attached.source)
    assert is_reply_address(queue_of_source(address) or "")
    assert (source.dynamic, source.timeout, source.expiry_policy) == (True, 0, "link-detach")
    assert (source.outcomes, source.default_outcome, source.distribution_mode) == (None, None, "move")
    assert link.attached.snd_settle_mode == 1


@pytest.mark.rule("1-0/attach/volatile")
@pytest.mark.parametrize(
    "fields",
    [
        {"snd_settle_mode": 0},
        {"terminus": {"durable": UInt(1)}},
        {"terminus": {"timeout": UInt(1)}},
        {"terminus": {"expiry_policy": Symbol("session-end")}},
        {"terminus": {"expiry_policy": None}},
    ],
)
def test_attach_that_lacks_a_condition_is_refused(rabbitmq: Server, fields: dict[str, Any]) -> None:
    said = {"snd_settle_mode": 1, **fields, "terminus": {**VOLATILE, **fields.get("terminus", {})}}
    client = rabbitmq.session()
    _, error = client.refused(RECEIVER, None, **said)
    assert error.condition == "amqp:not-implemented"
    client.refused(SENDER, None, terminus=VOLATILE)


@pytest.mark.rule("1-0/attach/volatile")
def test_direct_replies_come_with_rabbitmq_4_2() -> None:
    client = Server("rabbitmq-4.2").session()
    source = c.read_composite(requester(client)[0].attached.source)
    assert source.capabilities == ("rabbitmq:volatile-queue",)
    client = Server("rabbitmq-4.1").session()
    terminus = {**VOLATILE, "capabilities": (*VOLATILE["capabilities"], Symbol("temporary-queue"))}
    _, address = requester(client, terminus=terminus)
    assert address.startswith("/queues/amq.dyn-")


@pytest.mark.rule("1-0/transfer/volatile")
def test_replies_come_settled_and_are_lost_without_credit(rabbitmq: Server) -> None:
    client, responder = rabbitmq.session(), rabbitmq.session()
    link, address = requester(client)
    sender = responder.sender(None)
    assert isinstance(sender.publish(reply(b"lost", address)), c.Accepted)
    link.flow(link_credit=2)
    for body in (b"1", b"2", b"3"):
        assert isinstance(sender.publish(reply(body, address)), c.Accepted)
    link.flow(link_credit=5, delivery_count=2)
    sender.publish(reply(b"4", address))
    found = [link.take() for _ in range(3)]
    client.expect_nothing()
    assert [said["data"] for _, said in found] == [b"1", b"2", b"4"]
    assert {(each.settled, each.delivery_tag) for each, _ in found} == {(True, b"")}


@pytest.mark.rule("1-0/transfer/volatile")
def test_reply_without_credit_is_recorded_as_dropped(rabbitmq: Server) -> None:
    found = []

    class Tap(QuietTap):
        def event(self, event: str, connection: Any, message: Any, *values: object) -> None:
            if event == "dropped":
                found.append(values[1:3])

    _, address = requester(rabbitmq.session())
    sender = rabbitmq.session().sender(address)
    rabbitmq.state.tap = Tap()
    sender.publish()
    assert found == [("maxlen", "its requester has no credit")]


@pytest.mark.rule("1-0/transfer/volatile")
def test_each_link_of_a_session_has_its_address(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    first, one = requester(client, 0, 5)
    second, two = requester(client, 1, 5)
    assert one != two
    rabbitmq.session().sender(two).publish()
    assert second.take()[0].handle == 1
    client.expect_nothing()
    assert first.handle == 0


@pytest.mark.rule("1-0/transfer/volatile")
@pytest.mark.parametrize("how", ["detach", "end", "close", "lost"])
def test_late_reply_is_accepted_and_a_late_target_is_not_found(rabbitmq: Server, how: str) -> None:
    client, responder = rabbitmq.session(), rabbitmq.session()
    _, address = requester(client, credit=5)
    sender, anonymous = responder.sender(address), responder.sender(None, 1)
    if how == "lost":
        client.drop()
    else:
        client.send({"detach": c.Detach(handle=0), "end": c.End(), "close": c.Close()}[how])
    assert not rabbitmq.vhost.reply_addresses
    assert isinstance(sender.publish(), c.Accepted)
    assert isinstance(anonymous.publish(reply(b"", address)), c.Accepted)
    assert isinstance(anonymous.publish(reply(b"", "/queues/amq.rabbitmq.reply-to.a.b")), c.Released)
    _, error = responder.refused(SENDER, address, handle=2)
    assert error.condition == "amqp:not-found"


@pytest.mark.rule("1-0/attach/volatile")
def test_other_link_or_session_that_receives_from_an_address_of_replies_is_refused(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    _, address = requester(client)
    _, error = client.refused(RECEIVER, address, handle=1)
    assert error.condition == "amqp:not-found"
    _, error = rabbitmq.session().refused(RECEIVER, address)
    name = queue_of_source(address)
    assert error.condition == "amqp:precondition-failed"
    assert error.description == f"only creator channel may consume from queue '{name}' in vhost '/'"


# --- with 0-9-1 --------------------------------------------------------------------------------------------


@pytest.mark.rule("1-0/transfer/volatile")
def test_client_of_0_9_1_replies_to_a_requester_of_1_0(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    link, address = requester(client, 0, 5)
    client.sender("/queues/q", 1).publish(message(b"?", properties=c.Properties(reply_to=address)))
    old = rabbitmq.client()
    got = old.fetch("q", no_ack=True)
    replies = got.properties.reply_to
    assert replies is not None and is_reply_address(replies)
    old.publish(b"!", routing_key=replies)
    assert link.take()[1]["data"] == b"!"


@pytest.mark.rule("1-0/transfer/volatile")
@pytest.mark.parametrize("anonymous", [True, False])
def test_client_of_1_0_replies_to_a_requester_of_0_9_1(rabbitmq: Server, anonymous: bool) -> None:
    old, address = old_request(rabbitmq)
    responder = rabbitmq.session()
    sender = responder.sender(None if anonymous else address)
    payload = reply(b"!", address)
    assert isinstance(sender.publish(payload), c.Accepted)
    got = old.delivery()
    assert (got.body, got.properties.correlation_id) == (b"!", "1")


@pytest.mark.rule("1-0/transfer/volatile")
def test_requester_of_0_9_1_gets_no_reply_of_1_0_before_rabbitmq_4_2(rabbitmq_4_0: Server) -> None:
    old, address = old_request(rabbitmq_4_0)
    responder = rabbitmq_4_0.session()
    target = address if address.startswith("/queues/") else f"/queues/{address}"
    assert isinstance(responder.sender(None).publish(reply(b"!", target)), c.Released)
    old.expect_nothing()


def old_request(server: Server) -> tuple[OldClient, str]:
    """A client of 0-9-1 that has sent a request, and the reply address as 1.0 has it."""
    old = server.client()
    old.consume("amq.rabbitmq.reply-to", "t", no_ack=True)
    old.publish(b"?", routing_key="q", reply_to="amq.rabbitmq.reply-to")
    _, said = server.session().receiver("/queues/q", 0, 1).take()
    return old, said["properties"].reply_to


# --- operators ---------------------------------------------------------------------------------------------


@pytest.mark.rule("1-0/management/reply-address")
def test_management_node_tells_whether_the_requester_lives(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    _, address = requester(client)
    manager = managed(rabbitmq)
    status, said = ask(manager, "GET", address)
    assert (status, said["type"], said["consumer_count"]) == ("200", "rabbit_volatile_queue", 1)
    assert (said["durable"], said["auto_delete"], said["exclusive"]) == (False, True, False)
    assert ask(manager, "DELETE", f"{address}/messages") == ("200", {"message_count": 0})
    client.send(c.Detach(handle=0))
    assert ask(manager, "GET", address)[0] == "404"
