"""Links and termini of AMQP 1.0 as the standard has them, and what RabbitMQ does otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Server, attach, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, UInt

rule = pytest.mark.rule


@rule("1-0/attach/mirror", "1-0/attach/handle")
@pytest.mark.parametrize("role", [SENDER, RECEIVER])
def test_attach_is_answered_with_same_name_and_handle_and_other_role(client: Client, role: bool) -> None:
    client.send(attach(role, "/queues/q", 9, name="the link"))
    answer = client.expect(c.Attach)
    assert (answer.name, answer.handle, answer.role) == ("the link", 9, not role)


@rule("1-0/attach/name-per-direction")
def test_sender_and_receiver_may_share_a_name(server: Server) -> None:
    client = server.session()
    sender = client.sender(handle=0, name="same")
    receiver = client.receiver(handle=1, name="same")
    assert isinstance(sender.publish(), c.Accepted)
    assert receiver.flow(link_credit=1).take()[0].handle == 1


@pytest.mark.deviates("1-0/attach/name-once")
def test_second_link_of_a_name_leaves_the_first(server: Server) -> None:
    client = server.session()
    senders = [client.sender(handle=handle, name="same") for handle in (0, 1)]
    assert [isinstance(each.publish(), c.Accepted) for each in senders] == [True, True]
    client.expect_nothing()


@rule("1-0/attach/snd-settle-mode")
@pytest.mark.parametrize(("asked", "given"), [(None, 0), (0, 0), (1, 1), (2, 0)])
def test_answer_to_a_receiver_has_the_settle_mode_in_force(
    server: Server, asked: int | None, given: int
) -> None:
    client = server.session()
    client.sender().publish()
    receiver = client.receiver(handle=1, snd_settle_mode=asked)
    assert receiver.attached.snd_settle_mode == given
    assert receiver.flow(link_credit=1).take()[0].settled is (given == 1)


@rule("1-0/attach/snd-settle-mode")
@pytest.mark.parametrize(("mode", "settled"), [(0, False), (1, True), (2, False), (2, True), (None, True)])
def test_sender_settles_as_its_mode_says(server: Server, mode: int | None, settled: bool) -> None:
    client = server.session()
    sender = client.sender(snd_settle_mode=mode)
    assert sender.attached.snd_settle_mode == mode
    sender.transfer(settled=settled)
    assert len(client.take_all()) == (not settled)
    assert len(server.vhost.queues["q"].ready) == 1


@pytest.mark.deviates("1-0/attach/rcv-settle-mode")
@pytest.mark.parametrize("role", [SENDER, RECEIVER])
def test_receiver_settle_mode_second_is_refused(rabbitmq: Server, role: bool) -> None:
    _, error = rabbitmq.session().refused(role, "/queues/q", rcv_settle_mode=1)
    assert (error.condition, error.description) == (
        *("amqp:not-implemented", "rcv-settle-mode second not supported"),
    )


@rule("1-0/attach/initial-delivery-count-sender")
def test_sender_without_initial_delivery_count_ends_the_session(client: Client) -> None:
    client.send(attach(SENDER, "/queues/q", initial_delivery_count=None)).expect_end("amqp:internal-error")


@rule("1-0/attach/max-message-size-none")
@pytest.mark.parametrize("largest", [None, 0])
def test_receiver_without_largest_size_gets_messages_of_any_size(server: Server, largest: int | None) -> None:
    client = server.session()
    client.sender().publish(message(b"x" * 100_000))
    client.receiver(handle=1, credit=1, max_message_size=largest)
    assert b"".join(each.payload for each in client.take_all()).endswith(b"x" * 100_000)


@rule("1-0/attach/max-message-size")
def test_message_that_is_larger_than_the_client_takes_ends_the_session(server: Server) -> None:
    client = server.session()
    client.sender().publish(message(b"x" * 100))
    client.receiver(handle=1, credit=1, max_message_size=100)
    client.expect_end("amqp:link:message-size-exceeded")
    assert len(server.vhost.queues["q"].ready) == 1


@rule("1-0/attach/initial-delivery-count")
def test_first_delivery_count_of_the_broker_depends_on_the_version(
    rabbitmq: Server, rabbitmq_4_0: Server
) -> None:
    assert rabbitmq.session().receiver().attached.initial_delivery_count == 0
    assert rabbitmq_4_0.session().receiver().attached.initial_delivery_count == 4_294_967_291


@rule("1-0/attach/source")
def test_receiver_without_source_is_refused(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    _, error = rabbitmq.session().refused(RECEIVER, None, source=None)
    assert (error.condition, error.description) == ("amqp:invalid-field", "Attach refused: source_required")
    rabbitmq_4_0.session().send(attach(RECEIVER, None, source=None)).expect_end("amqp:internal-error")


@rule("1-0/begin/handle-max", "1-0/attach/handle-max")
def test_handle_above_the_maximum_of_the_client_ends_the_session(server: Server) -> None:
    client = server.open()
    assert client.begin(handle_max=7).handle_max == 7
    client.sender(handle=7)
    client.send(attach(SENDER, "/queues/q", 8)).expect_end("amqp:connection:framing-error")


@pytest.mark.deviates("1-0/attach/unsettled", "1-0/attach/incomplete-unsettled")
@pytest.mark.parametrize("fields", [{"unsettled": {b"1": None}}, {"incomplete_unsettled": True}])
@pytest.mark.parametrize("role", [SENDER, RECEIVER])
def test_recovery_of_a_link_is_refused(rabbitmq: Server, role: bool, fields: dict[str, Any]) -> None:
    _, error = rabbitmq.session().refused(role, "/queues/q", **fields)
    assert (error.condition, error.description) == ("amqp:not-implemented", "Link recovery not supported")


@rule("1-0/attach/unsettled-empty", "1-0/attach/unknown-fields")
@pytest.mark.parametrize(
    "fields",
    [
        {"unsettled": {}},
        {"incomplete_unsettled": False},
        {"offered_capabilities": (Symbol("a"),), "desired_capabilities": (Symbol("b"), Symbol("c"))},
        {"properties": {Symbol("unknown"): {"a": 1}}},
    ],
)
def test_fields_of_attach_that_say_nothing_have_no_effect(client: Client, fields: dict[str, Any]) -> None:
    assert isinstance(client.sender(**fields).publish(), c.Accepted)
    assert client.receiver(handle=1, **fields).flow(link_credit=1).take()[0].handle == 1


@rule("1-0/attach/refused-keeps-session", "1-0/attach/refused-frees-handle", "1-0/detach/others")
@rule("1-0/errors/condition", "1-0/detach/broker-closes")
def test_refused_attach_leaves_the_session_and_frees_its_handle(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    sender = client.sender(handle=1)
    _, error = client.refused(SENDER, "/queues/none")
    assert type(error.condition) is Symbol and error.condition == "amqp:not-found"
    assert isinstance(sender.publish(), c.Accepted)
    assert isinstance(client.sender(handle=0).publish(), c.Accepted)


@rule("1-0/attach/unknown-filter", "1-0/source/filter-null")
@pytest.mark.parametrize("said", [Described(Symbol("a"), 1), None])
def test_unknown_filter_is_left_out_and_all_messages_come(rabbitmq: Server, said: Any) -> None:
    client = rabbitmq.session()
    client.sender().publish(message(b"x"))
    receiver = client.receiver(handle=1, credit=1, terminus={"filter": {Symbol("a"): said}})
    assert c.read_composite(receiver.attached.source).filter == {}
    assert receiver.take()[1]["data"] == b"x"


# --- termini ------------------------------------------------------------------------------------------------


@rule("1-0/source/address", "1-0/target/address")
def test_addresses_name_queues_and_exchanges_with_a_key(server: Server) -> None:
    server.client().bind("q", "amq.direct", "k")
    client = server.session()
    for handle, address in enumerate(("/queues/q", "/exchanges/amq.direct/k")):
        assert isinstance(client.sender(address, handle).publish(message(b"%d" % handle)), c.Accepted)
    receiver = client.receiver("/queues/q", 5, credit=2)
    assert c.read_composite(receiver.attached.source).address == "/queues/q"
    assert [receiver.take()[1]["data"] for _ in range(2)] == [b"0", b"1"]


@rule("1-0/target/null-address", "1-0/properties/to")
def test_target_without_address_takes_messages_for_any_node(server: Server) -> None:
    client = server.session()
    sender = client.sender(None)
    assert c.read_composite(sender.attached.target).address is None
    for to, outcome in (("/queues/q", c.Accepted), ("/exchanges/amq.fanout/k", c.Released)):
        assert type(sender.publish(message(properties=c.Properties(to=to)))) is outcome
    assert len(server.vhost.queues["q"].ready) == 1


@pytest.mark.deviates("1-0/target/coordinator")
def test_coordinator_of_transactions_is_refused(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    target = c.Coordinator(capabilities=(Symbol("amqp:local-transactions"),))
    _, error = client.refused(SENDER, None, target=target)
    assert (error.condition, error.description) == ("amqp:not-implemented", "Transactions not supported")


@pytest.mark.deviates("1-0/target/absent")
def test_sender_without_target_ends_the_session(client: Client) -> None:
    client.send(attach(SENDER, None, target=None)).expect_end("amqp:internal-error")


@pytest.mark.deviates("1-0/source/durable", "1-0/source/expiry-policy")
def test_durable_terminus_is_echoed_and_not_kept(server: Server) -> None:
    said = {"durable": UInt(2), "expiry_policy": Symbol("never"), "timeout": UInt(60)}
    client = server.session()
    client.sender().publish()
    receiver = client.receiver(handle=1, credit=1, terminus=said)
    source = c.read_composite(receiver.attached.source)
    assert (source.durable, source.expiry_policy, source.timeout) == (2, "never", 60)
    receiver.take()
    client.drop()
    assert len(server.vhost.queues["q"].ready) == 1
    again = server.session().receiver(credit=1, terminus=said)
    assert again.attached.unsettled is None and again.take()[0].delivery_id == 0


@pytest.mark.deviates("1-0/source/distribution-mode")
def test_mode_copy_moves_the_messages_of_a_queue(server: Server) -> None:
    client = server.session()
    client.sender().publish()
    receiver = client.receiver(handle=1, credit=1, terminus={"distribution_mode": Symbol("copy")})
    receiver.take()
    receiver.settle(c.Accepted(), 0)
    assert not server.vhost.queues["q"].ready and not server.vhost.queues["q"].unacked


@rule("1-0/source/outcomes", "1-0/source/default-outcome")
def test_answer_has_the_asked_outcomes_or_all_and_released_as_default(client: Client) -> None:
    every = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
    asked = (Symbol("amqp:accepted:list"),)
    for handle, (said, given) in enumerate(((None, every), (asked, asked))):
        source = c.read_composite(client.receiver(handle=handle, terminus={"outcomes": said}).attached.source)
        assert source.outcomes == given
        assert c.read_composite(source.default_outcome) == c.Released()


@rule("1-0/source/outcomes-unknown")
def test_unknown_outcome_refuses_the_link(rabbitmq: Server) -> None:
    said = {"outcomes": (Symbol("amqp:accepted:list"), Symbol("x"))}
    _, error = rabbitmq.session().refused(RECEIVER, "/queues/q", terminus=said)
    assert (error.condition, error.description) == (
        *("amqp:not-implemented", 'Outcomes not supported: [{symbol,<<"x">>}]'),
    )


@rule("1-0/source/lost-default", "1-0/detach/handle-again")
def test_delivery_that_is_never_settled_is_released(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.sender().publish(message(b"x"))
    receiver = client.receiver(handle=1, credit=1)
    receiver.take()
    receiver.detach()
    transfer, said = client.receiver(handle=1, credit=1).take()
    assert (transfer.delivery_id, said["data"], said["header"].first_acquirer) == (1, b"x", False)


# --- detach -------------------------------------------------------------------------------------------------


@rule("1-0/detach/closed", "1-0/detach/error", "1-0/detach/handle-again")
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("problem", [None, c.Error(condition=Symbol("x:y"))])
def test_detach_is_answered_with_an_equal_one_without_error(
    client: Client, closed: bool, problem: c.Error | None
) -> None:
    client.sender()
    client.send(c.Detach(handle=0, closed=closed, error=problem))
    assert client.expect(c.Detach) == c.Detach(handle=0, closed=closed)
    client.sender()


@pytest.mark.deviates("1-0/detach/suspended")
def test_detach_that_does_not_close_forgets_the_link(server: Server) -> None:
    client = server.session()
    client.sender().publish()
    receiver = client.receiver(handle=1, credit=1)
    receiver.take()
    assert not receiver.detach(closed=False).closed
    assert len(server.vhost.queues["q"].ready) == 1
    assert client.receiver(handle=1).attached.unsettled is None


@rule("1-0/detach/broker-closes", "1-0/detach/others", "1-0/errors/link-scope")
def test_error_of_a_link_closes_it_and_leaves_the_others(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    bad, good = client.sender(handle=0), client.sender(handle=1)
    bad.transfer(b"")
    detach = client.expect(c.Detach)
    assert (detach.handle, detach.closed, detach.error.condition) == (0, True, "amqp:decode-error")
    assert isinstance(good.publish(), c.Accepted)


@rule("1-0/detach/partial-message")
def test_message_without_its_last_transfer_is_forgotten(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    sender.transfer(message()[:4], more=True)
    sender.detach()
    assert isinstance(client.sender().publish(message(b"x")), c.Accepted)
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"x"]
