"""Links of AMQP 1.0: attach and detach, addresses, refusals and their scope."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Server, attach, filters
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Int, Symbol


@pytest.mark.rule("1-0/attach/sender")
def test_sender_gets_the_attach_back_and_credit(client: Client) -> None:
    sender = client.sender(snd_settle_mode=2)
    assert (sender.attached.role, sender.attached.snd_settle_mode) == (RECEIVER, 2)
    assert sender.attached.max_message_size == 16_777_216
    assert (sender.granted.link_credit, sender.granted.delivery_count) == (170, 0)


@pytest.mark.rule("1-0/attach/receiver")
def test_receiver_subscribes_at_once_and_gets_the_outcomes(rabbitmq: Server) -> None:
    attached = rabbitmq.session().receiver().attached
    source = c.read_composite(attached.source)
    assert (attached.snd_settle_mode, attached.initial_delivery_count) == (0, 0)
    assert source.distribution_mode == "move"
    assert c.read_composite(source.default_outcome) == c.Released()
    assert len(source.outcomes) == 4
    (subscription,) = rabbitmq.vhost.queues["q"].subscriptions
    assert subscription.tag == "0"


REFUSED: dict[str, tuple[bool, str | None, dict[str, Any], str, str]] = {
    "queue": (SENDER, "/queues/none", {}, "amqp:not-found", "no queue 'none' in vhost '/'"),
    "exchange": (SENDER, "/exchanges/none/k", {}, "amqp:not-found", "no exchange 'none' in vhost '/'"),
    "source": (RECEIVER, "/queues/none", {}, "amqp:not-found", "no queue 'none' in vhost '/'"),
    "recovery": (
        RECEIVER,
        "/queues/q",
        {"unsettled": {b"1": None}},
        "amqp:not-implemented",
        "Link recovery not supported",
    ),
    "second": (
        SENDER,
        "/queues/q",
        {"rcv_settle_mode": 1},
        "amqp:not-implemented",
        "rcv-settle-mode second not supported",
    ),
    "transactions": (
        SENDER,
        None,
        {"target": c.Coordinator()},
        "amqp:not-implemented",
        "Transactions not supported",
    ),
    "internal": (
        SENDER,
        "/exchanges/amq.rabbitmq.trace/k",
        {},
        "amqp:unauthorized-access",
        "forbidden to publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'",
    ),
    "address": (
        SENDER,
        "/exchanges//k",
        {},
        "amqp:invalid-field",
        'Attach refused: {bad_address_string,<<"/exchanges//k">>}',
    ),
    "version-1": (
        SENDER,
        "q",
        {},
        "amqp:invalid-field",
        'Attach refused: {amqp_address_v1_not_permitted,{utf8,<<"q">>}}',
    ),
    "no-address": (RECEIVER, None, {}, "amqp:invalid-field", "Attach refused: {bad_address,undefined}"),
    "no-source": (
        RECEIVER,
        None,
        {"source": None},
        "amqp:invalid-field",
        "Attach refused: source_required",
    ),
}


@pytest.mark.rule("1-0/attach/refused", "1-0/errors/link-scope")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_attach_is_answered_without_terminus_and_detached(rabbitmq: Server, name: str) -> None:
    role, address, fields, condition, text = REFUSED[name]
    client = rabbitmq.session()
    _, error = client.refused(role, address, **fields)
    assert (error.condition, error.description) == (condition, text)
    client.sender(handle=1)


@pytest.mark.rule("1-0/errors/link-scope")
@pytest.mark.parametrize("name", ["queue", "source", "second", "transactions", "recovery"])
def test_refused_attach_ends_the_session_in_rabbitmq_4_0(rabbitmq_4_0: Server, name: str) -> None:
    role, address, fields, condition, text = REFUSED[name]
    client = rabbitmq_4_0.session()
    client.send(attach(role, address, **fields))
    client.expect_end(condition, text)


@pytest.mark.rule("1-0/attach/address")
@pytest.mark.parametrize(("address", "name"), [("/queues/a%2Fb", "a/b"), ("/queues/%C3%A9", "é")])
def test_addresses_are_percent_encoded(rabbitmq: Server, address: str, name: str) -> None:
    rabbitmq.vhost.queues.create(name)
    client = rabbitmq.session()
    assert isinstance(client.sender(address).publish(), c.Accepted)
    assert len(rabbitmq.vhost.queues[name].ready) == 1


@pytest.mark.rule("1-0/attach/exclusive")
def test_exclusive_queue_of_another_connection_is_locked(rabbitmq: Server) -> None:
    queue = rabbitmq.vhost.queues.create("mine")
    rabbitmq.vhost.queues.claim(queue, object())
    _, error = rabbitmq.session().refused(RECEIVER, "/queues/mine")
    assert error.condition == "amqp:resource-locked"
    assert error.description == "cannot obtain exclusive access to locked queue 'mine' in vhost '/'"


@pytest.mark.rule("1-0/errors/rights")
def test_missing_permission_ends_the_session(rabbitmq: Server) -> None:
    permissions = rabbitmq.state.access.users["guest"].permissions
    permissions["/"] = type(permissions["/"])("", "", "")
    client = rabbitmq.session()
    client.send(attach(RECEIVER, "/queues/q"))
    client.expect_end(
        "amqp:unauthorized-access", "read access to queue 'q' in vhost '/' refused for user 'guest'"
    )


@pytest.mark.rule("1-0/attach/handle-max")
def test_handle_above_the_maximum_ends_the_session(client: Client) -> None:
    client.send(attach(SENDER, "/queues/q", 256))
    text = "link handle value (256) exceeds maximum link handle value (255)"
    client.expect_end("amqp:connection:framing-error", text)


@pytest.mark.rule("1-0/attach/handle-in-use")
def test_handle_in_use_ends_the_session_or_replaces_the_link(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    client = rabbitmq.session()
    client.sender(handle=3)
    client.send(attach(SENDER, "/queues/q", 3))
    client.expect_end("amqp:session:handle-in-use", "handle 3 is already associated with a link")
    client = rabbitmq_4_0.session()
    client.sender(handle=3)
    client.sender(handle=3)


@pytest.mark.rule("1-0/detach/reply")
def test_detach_is_answered_and_returns_what_the_client_holds(server: Server) -> None:
    client = server.session()
    client.sender().publish()
    receiver = client.receiver(handle=1, credit=5)
    receiver.take()
    client.take_all()
    assert not receiver.detach(closed=False).closed
    queue = server.vhost.queues["q"]
    assert (len(queue.ready), len(queue.subscriptions)) == (1, 0)


@pytest.mark.rule("1-0/detach/unknown")
def test_detach_of_an_unknown_handle_has_no_answer(client: Client) -> None:
    client.send(c.Detach(handle=9, closed=True)).expect_nothing()


@pytest.mark.rule("1-0/detach/queue-deleted")
def test_deletion_of_the_queue_detaches_its_links(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.receiver(credit=1)
    client.sender(handle=1)
    rabbitmq.vhost.queues.delete("q", None)
    assert client.expect_detach("amqp:resource-deleted").description is None
    client.expect_detach("amqp:resource-deleted")


@pytest.mark.rule("1-0/detach/unattached")
def test_frames_on_a_handle_without_link_end_the_session(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.refused(RECEIVER, "/queues/none")
    client.send(c.Flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9, handle=0, link_credit=1))
    client.expect_end("amqp:session:unattached-handle", "Unattached link handle: 0")
    client.begin()
    client.send(c.Transfer(handle=3, delivery_id=0, delivery_tag=b"0"))
    client.expect_end("amqp:session:unattached-handle", "Unknown link handle: 3")


@pytest.mark.rule("1-0/attach/priority")
def test_link_property_gives_the_consumer_a_priority(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.receiver(credit=5)
    urgent = client.receiver(handle=1, credit=5, properties={Symbol("rabbitmq:priority"): Int(5)})
    client.sender(handle=2).transfer(settled=True)
    assert urgent.take()[0].handle == 1


@pytest.mark.rule("1-0/attach/filter")
def test_filters_of_streams_are_echoed_and_choose_where_to_begin(rabbitmq: Server) -> None:
    rabbitmq.session().sender().publish()
    queue = rabbitmq.vhost.queues.declare("s", _stream())
    client = rabbitmq.session()
    sender = client.sender("/queues/s")
    for _ in range(3):
        sender.publish()
    said = filters(offset_spec=1) if queue else {}
    receiver = client.receiver("/queues/s", 1, terminus={"filter": said})
    assert c.read_composite(receiver.attached.source).filter == said
    receiver.flow(link_credit=10)
    offsets = [receiver.take()[1]["annotations"]["x-stream-offset"] for _ in range(2)]
    assert offsets == [1, 2]


def _stream() -> Any:
    from fakeamqp.model.queues import QueueDeclaration

    return QueueDeclaration(durable=True, arguments={"x-queue-type": "stream"})
