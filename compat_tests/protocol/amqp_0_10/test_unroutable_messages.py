"""Messages that no queue is there for, and what publishers are told of theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.model.personality import personality
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import RejectCode

rule = pytest.mark.rule

EXPLICIT, NONE = 0, 1


def topology(session: Session) -> Session:
    """An exchange with nothing bound to it, whose alternate exchange leads to a queue."""
    session.declare("unrouted").declare_exchange("alternate", "fanout")
    return session.bind("unrouted", "alternate").declare_exchange("e", alternate_exchange="alternate")


@pytest.fixture
def by_the_text(spec: Server) -> Session:
    return topology(spec.session())


@pytest.fixture
def in_the_field(lenient: Server) -> Session:
    return topology(lenient.session())


def depth(session: Session, queue: str = "unrouted") -> int | None:
    return session.query(queue).message_count


# --- unroutable --------------------------------------------------------------------------------------
@rule("0-10/message.delivery-properties/discard-unroutable#dropped")
@rule("0-10/message.delivery-properties/discard-unroutable#rejected")
@rule("0-10/message.delivery-properties/discard-unroutable#alternate")
@pytest.mark.parametrize("mode", [EXPLICIT, NONE])
@pytest.mark.parametrize("discard", [True, False])
def test_unroutable_message_is_dropped_rejected_or_sent_to_alternate_exchange_by_flags(
    by_the_text: Session, mode: int, discard: bool
) -> None:
    session = by_the_text
    id_ = session.transfer_id(exchange="e", accept_mode=mode, discard_unroutable=discard)
    if mode == EXPLICIT and not discard:
        reject = session.news(x.MessageReject)
        assert (list(reject.transfers or ()), reject.code) == ([id_], RejectCode.UNROUTABLE)
    elif mode == EXPLICIT:
        assert list(session.news(x.MessageAccept).transfers or ()) == [id_]
    session.expect_nothing()
    assert depth(session) == (1 if mode == NONE and not discard else 0)


@rule("0-10/exchange.declare/alternate-exchange-conditions#taken")
@pytest.mark.deviates("0-10/exchange.declare/alternate-exchange-conditions#accept-mode")
@pytest.mark.deviates("0-10/exchange.declare/alternate-exchange-conditions#discard")
@rule("0-10/message.delivery-properties/discard-unroutable#alternate")
@pytest.mark.deviates("0-10/message.delivery-properties/discard-unroutable#rejected")
@pytest.mark.parametrize("mode", [EXPLICIT, NONE, None])
@pytest.mark.parametrize("discard", [True, False])
def test_default_personality_sends_unroutable_message_to_alternate_exchange_in_any_accept_mode(
    in_the_field: Session, mode: int | None, discard: bool
) -> None:
    in_the_field.publish(exchange="e", accept_mode=mode, discard_unroutable=discard).expect_nothing()
    assert depth(in_the_field) == 1


@pytest.mark.deviates("0-10/message.reject/by-server")
def test_default_personality_drops_unroutable_message_silently(lenient: Server) -> None:
    session = lenient.session()
    session.call(x.MessageTransfer(destination="amq.direct"), body=b"lost")
    session.expect_nothing()


@rule("0-10/message/reject-code-unroutable", "0-10/message.reject/by-server", "0-10/message.reject/code-text")
def test_spec_personality_rejects_unroutable_message_with_code_1(spec: Server) -> None:
    session = spec.session()
    id_ = session.transfer_id(key="nobody", accept_mode=EXPLICIT)
    reject = session.news(x.MessageReject)
    assert list(reject.transfers or ()) == [id_]
    assert (reject.code, reject.text) == (1, "unroutable")
    session.expect_nothing()


@rule("0-10/message/grammar#recipients", "0-10/message.transfer/accepts-explicit")
@pytest.mark.parametrize("mode", [EXPLICIT, None])
def test_spec_accepts_queued_messages_of_explicit_accept_mode(spec: Server, mode: int | None) -> None:
    session = spec.session().declare("q")
    ids = [session.transfer_id(accept_mode=mode) for _ in range(3)]
    assert [list(session.news(x.MessageAccept).transfers or ()) for _ in ids] == [[id_] for id_ in ids]
    session.publish(accept_mode=NONE).expect_nothing()


@pytest.mark.deviates("0-10/message.transfer/accepts-explicit")
def test_default_personality_sends_no_message_accept_to_publisher(lenient: Server) -> None:
    lenient.session().declare("q").publish(accept_mode=EXPLICIT).expect_nothing()


def test_spec_personality_rejects_message_for_full_queue_with_code_unspecified(spec: Server) -> None:
    session = spec.session()
    spec.client().declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    for _ in range(2):
        session.publish(accept_mode=EXPLICIT)
    session.news(x.MessageAccept)
    reject = session.news(x.MessageReject)
    assert reject.code == RejectCode.UNSPECIFIED
    assert "full" in (reject.text or "")


@pytest.mark.parametrize("name", ["rabbitmq-4.2", "spec"])
def test_publish_without_accept_to_full_queue_ends_session_with_506(name: str) -> None:
    """As brokers in the field do: completion would say that the message is safe."""
    server = Server(name)
    session = server.session()
    server.client().declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    session.publish(accept_mode=NONE)
    header = [structs.DeliveryProperties(routing_key="q")]
    session.fails(x.MessageTransfer(accept_mode=NONE), 506, header=header, body=b"one too many")


# --- immediate ---------------------------------------------------------------------------------------
@rule("0-10/message/reject-code-immediate")
def test_spec_personality_rejects_immediate_message_without_subscriber_that_has_credit(spec: Server) -> None:
    session = spec.session().declare("q")
    assert session.publish(accept_mode=EXPLICIT, immediate=True).news(x.MessageReject).code == 2
    session.subscribe(credit=1)
    assert session.publish(b"taken", accept_mode=NONE, immediate=True).bodies() == [b"taken"]
    session.publish(b"too many", accept_mode=EXPLICIT, immediate=True)
    assert session.news(x.MessageReject).code == RejectCode.IMMEDIATE
    assert session.query().message_count == 0


@rule("0-10/message.delivery-properties/immediate#any", "0-10/message.delivery-properties/immediate#none")
def test_spec_personality_delivers_immediate_message_only_if_all_queues_have_subscriber(spec: Server) -> None:
    session = spec.session()
    for queue in ("able", "unable"):
        session.declare(queue).bind(queue, "amq.fanout")
    session.subscribe("able")
    session.publish(exchange="amq.fanout", accept_mode=NONE, immediate=True).expect_nothing()
    assert depth(session, "unable") == 0
    session.subscribe("unable", "u")
    assert len(session.publish(exchange="amq.fanout", accept_mode=NONE, immediate=True).bodies()) == 2


@pytest.mark.parametrize("discard", [True, False])
def test_immediate_message_without_subscriber_goes_to_alternate_exchange_unless_discard_unroutable(
    by_the_text: Session, discard: bool
) -> None:
    session = by_the_text
    session.declare("q").bind("q", "e", "k")
    session.publish(exchange="e", key="k", accept_mode=NONE, immediate=True, discard_unroutable=discard)
    assert depth(session, "q") == 0
    assert depth(session) == (0 if discard else 1)


@pytest.mark.deviates("0-10/message.delivery-properties/immediate#any")
def test_default_personality_ignores_immediate_flag(lenient: Server) -> None:
    session = lenient.session().declare("q")
    assert session.publish(immediate=True).query().message_count == 1


def test_honoured_immediate_message_without_subscriber_goes_silently_to_alternate_exchange() -> None:
    known = personality("rabbitmq-4.2")
    server = Server(
        replace(
            known,
            extensions={Amqp010Choices: replace(known.extension(Amqp010Choices), honours_immediate=True)},
        )
    )
    session = topology(server.session()).declare("q").bind("q", "e", "k")
    session.publish(exchange="e", key="k", accept_mode=EXPLICIT, immediate=True).expect_nothing()
    assert (depth(session, "q"), depth(session)) == (0, 1)


# --- in transactions ---------------------------------------------------------------------------------
@rule("0-10/message.transfer/transactional-publish")
def test_message_published_in_transaction_is_queued_at_commit(server: Server) -> None:
    session = server.session()
    assert session.declare("q").perform(x.TxSelect()).publish(accept_mode=NONE).query().message_count == 0
    assert session.perform(x.TxCommit()).query().message_count == 1


def test_spec_personality_accepts_and_rejects_publishes_of_transaction_at_commit(spec: Server) -> None:
    session = spec.session()
    taken = session.declare("q").perform(x.TxSelect()).transfer_id(accept_mode=EXPLICIT)
    lost = session.transfer_id(key="nobody", accept_mode=EXPLICIT)
    session.expect_nothing()
    session.perform(x.TxCommit())
    assert list(session.news(x.MessageAccept).transfers or ()) == [taken]
    assert list(session.news(x.MessageReject).transfers or ()) == [lost]
    session.publish(accept_mode=EXPLICIT).perform(x.TxRollback()).expect_nothing()


def test_commit_of_publish_to_full_queue_fails_with_506(lenient: Server) -> None:
    session = lenient.session()
    lenient.client().declare("q", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    session.perform(x.TxSelect()).publish().fails(x.TxCommit(), 506)
