"""The invariants of a trace: no message is lost, repeated or left over, and each request has an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.differential.script import CONFIRMS as SELECT_CONFIRMS, open_channel, publish as publishing
from compat_tests.fuzz.profile import examples
from compat_tests.programs.program import CONFIRMS, Program
from compat_tests.programs.strategies import programs
from compat_tests.scripted.amqp_0_9 import Server as Server09
from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.scripted.amqp_0_10 import Server as Server010, Session, c, x
from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults.server import FaultServer, publish_bytes
from compat_tests.unit.trace.records import traced
from fakeamqp.protocols.amqp_0_9.codec import methods as m09
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.trace import Event, FrameEvent, ModelEvent, Recorder, Trace, checks, load
from fakeamqp.trace.checks.invariants import AT_END, INVARIANTS
from fakeamqp.trace.checks.messages import DROP_REASONS, serial_of
from fakeamqp.trace.checks.rows import row_of
from fakeamqp.trace.json_form import event_to_json

Found = list[tuple[str, str | None]]


@pytest.fixture
def server() -> FaultServer:
    return FaultServer()


@pytest.fixture
def client(server: FaultServer) -> Client:
    """A client with a queue; channel 2 has its publishes confirmed."""
    client = server.client_with("q", channels=2)
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk, channel=2)
    return client


def trace_of(server: Any) -> Trace:
    recorder = server.state.tap if isinstance(server.state.tap, Recorder) else server.recorder
    return recorder.trace()


def found(trace: Trace, *names: str, **options: Any) -> Found:
    """The rules that are violated, and the reasons, in the end."""
    findings = trace.findings(*(names or INVARIANTS), at_end=True, **options)
    return [(finding.rule, finding.reason) for finding in findings]


def publish(client: Client, key: str = "q", body: bytes = b"1", **how: Any) -> None:
    """A publish that is confirmed."""
    client.publish(body, routing_key=key, channel=2, **how)
    client.take_bytes()


def without(trace: Trace, *numbers: int) -> Trace:
    return Trace.of(event for number, event in enumerate(trace.events) if number not in numbers)


def number_of(trace: Trace, name: str, nth: int = 0) -> int:
    """The number of the nth event of this name."""
    return [number for number, event in enumerate(trace.events) if event.name == name][nth]


def repeated(trace: Trace, *numbers: int) -> Trace:
    """The trace with some events twice: their repetition follows the last of them."""
    events: list[Event] = []
    for number, event in enumerate(trace.events):
        events.append(event)
        if number == max(numbers):
            events += [trace.events[each] for each in numbers]
    return Trace.of(events)


# --- lost -------------------------------------------------------------------------------------------------


def test_confirmed_and_acked_message_is_not_lost(server: FaultServer, client: Client):
    publish(client)
    client.get("q")
    client.ack(1)
    assert found(trace_of(server)) == []


def test_confirmed_unroutable_message_is_lost(server: FaultServer, client: Client):
    publish(client, "nowhere")
    trace = trace_of(server)
    (finding,) = trace.findings("lost")
    assert (finding.rule, finding.reason, finding.queue) == ("message-lost", "unroutable", None)
    assert (finding.alias, finding.channel, finding.broken_by) == ("c1", 2, "")
    assert trace.events[finding.number].name == "basic.ack"
    assert [event.name for _, event in finding.story] == [
        "basic.publish",
        "published",
        "dropped",
        "basic.ack",
    ]
    assert all(trace.events[number] is event for number, event in finding.story)
    assert finding.text == (
        "message b'1' (routing key 'nowhere') was confirmed, and then dropped (unroutable): "
        "no queue was there for it"
    )


def test_returned_message_is_not_lost(server: FaultServer, client: Client):
    client.publish(b"1", routing_key="nowhere", channel=2, mandatory=True)
    assert found(trace_of(server)) == []


def test_a_delayed_message_is_not_lost(server: FaultServer, client: Client):
    delayed = m.ExchangeDeclare(
        exchange="later", type="x-delayed-message", arguments={"x-delayed-type": "fanout"}
    )
    client.call(delayed, m.ExchangeDeclareOk)
    client.bind("q", "later")
    publish(client, exchange="later", headers={"x-delay": 1000})
    assert found(trace_of(server)) == []


def test_unconfirmed_message_may_be_lost(server: FaultServer, client: Client):
    client.publish(b"1", routing_key="nowhere")
    server.faults.on("basic.ack", direction="sent").drop().once()
    publish(client, "nowhere")
    assert found(trace_of(server), "lost") == []


def test_refused_publish_may_be_lost(server: FaultServer, client: Client):
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    publish(client, "full")
    assert "basic.nack" in [event.name for event in trace_of(server).events]
    assert found(trace_of(server)) == []


@pytest.mark.parametrize("crash", [True, False])
def test_confirmed_message_that_does_not_survive_a_restart_or_crash_is_lost(
    server: FaultServer, client: Client, crash: bool
):
    client.declare("durable", durable=True)
    publish(client, "durable", b"kept", delivery_mode=2)
    publish(client, "durable", b"lost")
    server.restart(crash=crash)
    (finding,) = trace_of(server).findings("lost")
    assert (finding.reason, finding.queue) == ("crash" if crash else "restart", "durable")
    assert "message b'lost'" in finding.text


def test_tx_commit_confirms_the_messages_of_its_transaction(server: FaultServer, client: Client):
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(b"1", routing_key="nowhere")
    client.publish(b"2", routing_key="q")
    assert found(trace_of(server)) == []
    client.call(m.TxCommit(), m.TxCommitOk)
    assert found(trace_of(server)) == [("message-lost", "unroutable")]


def test_message_acked_without_a_delivery_is_lost(server: FaultServer, client: Client):
    publish(client)
    client.get("q")
    client.ack(1)
    trace = trace_of(server)
    trace = without(trace, number_of(trace, "delivered"))
    (finding,) = trace.findings("lost")
    assert (finding.rule, finding.reason, finding.queue) == ("message-lost", "not sent", "q")
    assert finding.text.endswith("was confirmed, and acked in queue 'q' without a delivery")
    assert trace.events[finding.number].name == "acked"


def test_each_publish_covered_by_a_multiple_ack_counts_as_confirmed(server: FaultServer, client: Client):
    # Frames of one turn are confirmed by one basic.ack.
    client.send_bytes(b"".join(publish_bytes(b"%d" % number, "q", channel=2) for number in range(3)))
    server.restart()
    trace = trace_of(server)
    assert found(trace) == [("message-lost", "restart")] * 3
    confirms = [event for event in trace.events if event.name == "basic.ack"]
    assert isinstance(confirms[0], FrameEvent) and confirms[0].method.multiple


def test_expiry_and_length_limits_lose_messages_unless_they_dead_letter(server: FaultServer, client: Client):
    client.declare("brief", arguments={"x-message-ttl": 1000})
    client.declare("short", arguments={"x-max-length": 1})
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    client.declare("safe", arguments={"x-message-ttl": 1000, "x-max-length": 1, **dead})
    for queue in ("brief", "safe", "short", "short", "safe"):
        publish(client, queue)
    server.advance(2)
    assert found(trace_of(server)) == [("message-lost", "maxlen"), ("message-lost", "expired")]


def test_rejected_purged_or_deleted_message_is_not_lost(server: FaultServer, client: Client):
    for _ in range(3):
        publish(client)
    client.get("q")
    client.reject(1)
    client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk)
    publish(client)
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    assert found(trace_of(server)) == []


def test_confirmed_message_without_an_enqueued_event_is_lost(server: FaultServer, client: Client):
    publish(client)
    trace = trace_of(server)
    taken = number_of(trace, "published"), number_of(trace, "enqueued")
    assert found(without(trace, *taken)) == [("message-lost", "no trace")]
    # The event "published" alone says that it was routed, and not that a queue has it.
    assert found(without(trace, taken[1])) == [("message-lost", "no trace")]


@pytest.mark.parametrize("no_ack", [True, False])
def test_message_of_a_dropped_delivery_is_lost_unless_requeued(
    server: FaultServer, client: Client, no_ack: bool
):
    client.consume("q", "tag", no_ack=no_ack)
    server.faults.on("basic.deliver", direction="sent").drop().once()
    publish(client)
    assert found(trace_of(server), "lost") == [("message-lost", "not sent")]
    client.drop()
    # The queue takes back what needs an acknowledgement, and nothing else.
    assert found(trace_of(server), "lost") == ([("message-lost", "not sent")] if no_ack else [])


# --- what is allowed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allow", "left"),
    [
        ((), 2),
        ("expired", 0),
        (["expired"], 0),
        (["maxlen"], 2),
        (["message-lost"], 0),
        ({"expired": "cache.*"}, 1),
        ({"expired": ("cache.*", "brief")}, 0),
        ({"message-lost": "brief"}, 1),
        ({"expired": ()}, 2),
    ],
)
def test_allowed_reasons_rules_and_queues_give_no_findings(
    server: FaultServer, client: Client, allow: Any, left: int
):
    for queue in ("cache.a", "brief"):
        client.declare(queue, arguments={"x-message-ttl": 0})
        publish(client, queue)
    assert len(found(trace_of(server), allow=allow)) == left


def test_a_misspelled_allowance_is_an_error_that_names_the_nearest(server: FaultServer):
    with pytest.raises(checks.UnknownRule) as raised:
        trace_of(server).findings(allow="expird")
    assert str(raised.value) == "there is no rule or reason 'expird' to allow; did you mean 'expired'?"


def test_every_reason_of_a_drop_is_known():
    from typing import get_args

    from fakeamqp.model.history import DropReason

    assert set(get_args(DropReason)) == set(DROP_REASONS) - {"not sent", "no trace"}


# --- duplicates -------------------------------------------------------------------------------------------


def test_second_delivery_is_a_duplicate_unless_marked_as_redelivered(server: FaultServer, client: Client):
    publish(client)
    client.get("q")
    client.reject(1, requeue=True)
    client.get("q")
    trace = trace_of(server)
    assert found(trace, "duplicates") == []
    again = [
        replace(event, facts={**event.facts, "redelivered": False})
        if isinstance(event, ModelEvent) and event.name == "delivered"
        else event
        for event in trace.events
    ]
    (finding,) = Trace.of(again).findings("duplicates")
    assert (finding.rule, finding.queue, finding.broken_by) == ("delivered-twice", "q", "broker")
    assert [event.name for _, event in finding.story][-2:] == ["delivered", "delivered"]


def test_message_delivered_from_two_queues_is_no_duplicate(server: FaultServer, client: Client):
    client.declare("r")
    for queue in "qr":
        client.bind(queue, "amq.fanout")
    client.publish(b"1", exchange="amq.fanout")
    client.get("q")
    client.get("r")
    assert found(trace_of(server), "duplicates") == []


def test_dead_letter_back_in_its_queue_is_no_duplicate(server: FaultServer, client: Client):
    client.declare("again", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "again"})
    client.consume("again", "tag")
    publish(client, "again")
    client.reject(1)
    trace = trace_of(server)
    assert [event.name for event in trace.events].count("delivered") == 2
    assert found(trace, "duplicates") == []


def test_deliveries_of_a_stream_to_two_consumers_are_no_duplicates(server: FaultServer, client: Client):
    client.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    client.qos(10)
    for tag in "ab":
        client.consume("s", tag, arguments={"x-stream-offset": "first"})
    publish(client, "s")
    trace = trace_of(server)
    assert [event.name for event in trace.events].count("delivered") == 2
    assert found(trace, "duplicates") == []
    # Without the declaration it is not known that it is a stream, and that is said.
    declared = number_of(trace, "queue declared", 1)
    unknown = without(trace, declared).findings("duplicates")
    assert unknown == ()
    assert unknown.notes == (
        "duplicates of queue 's' are not checked: it was declared before the first event, "
        "and may be a stream",
    )


def test_delivery_sent_twice_is_a_duplicate(server: FaultServer, client: Client):
    server.faults.on("basic.deliver", direction="sent").duplicate().once()
    client.consume("q", "tag")
    publish(client)
    (finding,) = trace_of(server).findings("duplicates")
    assert (finding.rule, finding.queue) == ("sent-twice", "q")
    assert finding.text == (
        "a delivery (tag 2) was sent that no queue has made; the delivery before it was of message b'1' "
        "(routing key 'q') of queue 'q'"
    )


def test_delivery_with_a_used_tag_is_a_duplicate(server: FaultServer, client: Client):
    client.consume("q", "tag")
    publish(client)
    trace = trace_of(server)
    sent = number_of(trace, "basic.deliver")
    assert found(repeated(trace, sent, sent + 1, sent + 2), "duplicates") == [("sent-twice", None)]


# --- unacked ----------------------------------------------------------------------------------------------


def test_unacked_message_is_a_finding_at_the_end_only(server: FaultServer, client: Client):
    publish(client, message_id="m1")
    client.consume("q", "tag")
    trace = trace_of(server)
    assert trace.findings() == ()
    (finding,) = trace.findings("unacked")
    assert trace.findings(at_end=True) == (finding,)
    assert (finding.rule, finding.queue, finding.broken_by) == ("left-unacked", "q", "client")
    assert finding.text == (
        "message b'1' (routing key 'q', message_id 'm1') of queue 'q' is held by consumer 'tag', "
        "which has not settled it"
    )
    assert trace.events[finding.number].name == "basic.deliver"
    assert [event.name for _, event in finding.story] == ["basic.publish", "delivered", "basic.deliver"]
    (later,) = without(trace, number_of(trace, "published")).findings("unacked")
    assert later.text == finding.text, "the delivery has the message, too"
    assert [event.name for _, event in later.story] == ["delivered", "basic.deliver"]
    client.ack(1)
    assert found(trace_of(server)) == []


@pytest.mark.parametrize("how", ["get", "consume"])
@pytest.mark.parametrize("no_ack", [True, False])
def test_no_ack_deliveries_are_not_left_unacked(server: FaultServer, client: Client, how: str, no_ack: bool):
    publish(client)
    if how == "get":
        client.get("q", no_ack=no_ack)
    else:
        client.consume("q", no_ack=no_ack)
    assert found(trace_of(server)) == ([] if no_ack else [("left-unacked", None)])


@pytest.mark.parametrize(
    "end",
    [
        Client.close_channel,
        Client.drop,
        Client.recover,
        lambda client: client.nack(1),
        lambda client: client.server.restart(),
    ],
    ids=["channel", "connection", "recover", "nack", "restart"],
)
def test_requeued_message_is_not_left_unacked(
    server: FaultServer, client: Client, end: Callable[[Client], object]
):
    client.publish(routing_key="q")
    client.get("q")
    end(client)
    assert found(trace_of(server), "unacked") == []


# --- answers ----------------------------------------------------------------------------------------------


def test_method_without_an_answer_is_a_finding_at_the_end(server: FaultServer, client: Client):
    server.faults.on("queue.declare-ok", direction="sent").drop().once()
    client.send(m.QueueDeclare(queue="r"))
    trace = trace_of(server)
    assert trace.findings() == ()
    (finding,) = trace.findings("unanswered")
    assert (finding.rule, finding.broken_by, finding.channel) == ("unanswered", "broker", 1)
    assert finding.text == "queue.declare has no answer"
    client.close_channel()
    assert found(trace_of(server)) == []


def test_method_with_two_answers_is_a_finding(server: FaultServer, client: Client):
    server.faults.on("queue.declare-ok", direction="sent").duplicate().once()
    client.declare("r")
    (finding,) = trace_of(server).findings("answers")
    assert (finding.rule, finding.broken_by) == ("answered-twice", "broker")
    assert [event.name for _, event in finding.story] == ["queue.declare", *["queue.declare-ok"] * 2]


def test_answer_without_a_request_is_a_finding(server: FaultServer, client: Client):
    client.send(m.ChannelFlowOk(active=True))
    trace = trace_of(server)
    (finding,) = trace.findings("answers")
    assert (finding.rule, finding.broken_by) == ("answers-nothing", "client")


def test_no_wait_methods_need_no_answer(server: FaultServer, client: Client):
    client.send(m.QueueDeclare(queue="r", no_wait=True))
    client.send(m.BasicConsume(queue="r", consumer_tag="t", no_wait=True))
    client.send(m.BasicCancel(consumer_tag="t", no_wait=True))
    assert found(trace_of(server)) == []


def test_channel_error_answers_all_open_requests(server: FaultServer, client: Client):
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.send(m.QueueDeclare(queue="r"))
    client.send(m.ChannelCloseOk())
    assert found(trace_of(server)) == []


def test_unconfirmed_publish_is_unanswered(server: FaultServer, client: Client):
    server.faults.on("basic.ack", direction="sent").drop().once()
    publish(client)
    assert found(trace_of(server)) == [("unanswered", None)]


def test_publish_with_two_confirms_is_answered_twice(server: FaultServer, client: Client):
    server.faults.on("basic.ack", direction="sent").duplicate().once()
    publish(client)
    assert found(trace_of(server)) == [("answered-twice", None)]


def reply(client: Client, times: int = 1, **how: Any) -> None:
    """Take a request from the queue and answer it."""
    got = client.get("q")
    assert got is not None
    for _ in range(times):
        properties = got.properties
        client.publish(routing_key=properties.reply_to, correlation_id=properties.correlation_id, **how)
    client.ack(got.method.delivery_tag)


@pytest.mark.parametrize("reply_to", ["replies", "amq.rabbitmq.reply-to"])
@pytest.mark.parametrize(
    ("times", "rule"), [(0, ["unanswered"]), (1, []), (2, ["answered-twice"]), (3, ["answered-twice"] * 2)]
)
def test_request_message_needs_exactly_one_reply(
    server: FaultServer, client: Client, reply_to: str, times: int, rule: list[str]
):
    if reply_to == "replies":
        client.declare(reply_to)
    else:
        client.consume(reply_to, "tag", no_ack=True)
    client.publish(routing_key="q", reply_to=reply_to, correlation_id="1")
    reply(server.client(), times)
    assert found(trace_of(server)) == [(each, None) for each in rule]


def test_requests_with_the_same_correlation_id_are_answered_separately(server: FaultServer, client: Client):
    client.declare("replies")
    for _ in range(2):
        publish(client, reply_to="replies", correlation_id="1")
        reply(client)
    assert found(trace_of(server)) == []


def test_unroutable_reply_is_no_answer(server: FaultServer, client: Client):
    client.declare("replies")
    publish(client, reply_to="replies", correlation_id="1")
    client.call(m.QueueDelete(queue="replies"), m.QueueDeleteOk)
    reply(client)
    (finding,) = trace_of(server).findings("unanswered")
    assert finding.text.endswith("has no answer at 'replies'; an answer came into no queue")


def test_request_with_an_unknown_reply_queue_needs_no_reply(server: FaultServer, client: Client):
    publish(client, reply_to="results of nobody", correlation_id="1")
    publish(client, correlation_id="1")
    assert found(trace_of(server)) == []


# --- other protocols --------------------------------------------------------------------------------------


@pytest.fixture
def session() -> Session:
    """A session of 0-10 with a queue, on a broker with a recorder."""
    server = Server010()
    server.state.tap = Recorder(server.clock.now)
    session = server.session()
    session.declare("q")
    return session


def of(session: Session) -> Trace:
    return trace_of(session.client.server)


def test_settled_0_10_session_has_no_findings(session: Session):
    session.publish(b"1")
    session.subscribe("q", credit=5)
    assert found(of(session)) == [("left-unacked", None)]
    (transfer,) = session.transfers()
    session.accept(transfer.id)
    session.query("q")
    session.call(x.TxSelect())
    session.publish(b"2")
    session.call(x.TxCommit())
    session.accept(*(each.id for each in session.transfers()))
    session.detach()
    assert found(of(session)) == []


def test_completion_confirms_a_0_10_transfer(session: Session):
    session.publish(b"1", key="nowhere")
    (finding,) = of(session).findings("lost")
    assert (finding.reason, [event.name for _, event in finding.story][-1]) == (
        "unroutable",
        "session.completed",
    )


def test_released_0_10_message_is_no_duplicate_without_set_redelivered(session: Session):
    session.publish(b"1")
    session.subscribe("q", credit=1)
    session.release(session.transfer().id)
    session.flow(1)
    session.transfer()
    trace = of(session)
    assert [event.facts["redelivered"] for event in trace.events if event.name == "delivered"] == [False] * 2  # type: ignore[attr-defined]
    assert found(trace, "duplicates") == []
    released = [
        replace(
            event, payload=x.MessageRelease(transfers=event.method.transfers, set_redelivered=True).encode()
        )
        if isinstance(event, FrameEvent) and event.name == "message.release"
        else event
        for event in trace.events
    ]
    assert found(Trace.of(released), "duplicates") == [("delivered-twice", None)]


def test_0_10_message_seen_by_a_browser_and_a_consumer_is_no_duplicate(session: Session):
    session.publish(b"1")
    session.subscribe("q", "browser", credit=5, acquire_mode=1)
    session.subscribe("q", "taker", credit=5, accept_mode=1)
    assert found(of(session)) == []


def test_0_10_transfer_sent_twice_or_never_is_a_finding(session: Session):
    session.publish(b"1")
    session.subscribe("q", credit=5, accept_mode=1)
    trace = of(session)
    assert found(trace) == []
    sent = number_of(trace, "message.transfer", 1)
    assert found(without(trace, sent, sent + 1, sent + 2)) == [("message-lost", "not sent")]
    again = repeated(trace, sent, sent + 1, sent + 2)
    assert found(again) == [("sent-twice", None)]
    session.transfer()
    session.detach()
    assert found(without(of(session), sent, sent + 1, sent + 2)) == [], "it may have been on its way"


def test_0_10_query_needs_exactly_one_result(session: Session):
    session.query("q")
    trace = of(session)
    result = number_of(trace, "execution.result")
    assert found(without(trace, result)) == [("unanswered", None)]
    assert found(repeated(trace, result)) != []


def test_0_10_attach_and_detach_need_an_answer(session: Session):
    trace = of(session)
    attached = number_of(trace, "session.attached")
    assert found(without(trace, attached)) == [("unanswered", None)]
    session.detach()
    trace = of(session)
    detached = number_of(trace, "session.detached")
    assert found(without(trace, detached)) == [("unanswered", None)]
    session.client.call(c.ConnectionClose(reply_code=200), c.ConnectionCloseOk)
    assert found(of(session)) == []


@pytest.fixture
def requester() -> Requester:
    """The requests of a 0-9 client with a queue, on a broker with a recorder."""
    server = Server09("spec", tickets=True)
    server.state.tap = Recorder(server.clock.now)
    client = server.client()
    client.declare("q")
    return Requester(client)


def test_answered_0_9_transfer_is_not_left_unacked(requester: Requester):
    requester.publish("q", b"1")
    requester.consume("q")
    trace = trace_of(requester.client.server)
    assert found(trace) == [("left-unacked", None)]
    requester.answer(requester.transfer().number)
    assert found(trace_of(requester.client.server)) == []


def test_response_confirms_a_0_9_transfer(requester: Requester):
    requester.ask(m09.MessageTransfer(routing_key="nowhere"))
    assert isinstance(requester.response().method, m09.MessageReject)
    requester.publish("q", b"1")
    trace = trace_of(requester.client.server)
    assert found(trace) == []
    taken = number_of(trace, "published", -1), number_of(trace, "enqueued", -1)
    assert found(without(trace, *taken)) == [("message-lost", "no trace")]
    told = number_of(trace, "message.ok")
    assert found(without(trace, told)) == [("unanswered", None)]
    assert ("answered-twice", None) in found(repeated(trace, told))


def test_repeated_0_9_request_loses_no_message(requester: Requester):
    requester.publish("q", b"1")
    requester.repeat(m09.MessageTransfer(routing_key="q"), 1)
    assert found(trace_of(requester.client.server), "lost") == []


# --- traces that are not whole ----------------------------------------------------------------------------


def test_channels_with_a_missing_opening_are_not_checked(server: FaultServer, client: Client):
    publish(client, "nowhere")
    publish(client)
    client.get("q")
    client.send(m.ChannelFlowOk(active=True))
    whole = trace_of(server)
    later = Trace.of(whole.events[number_of(whole, "basic.publish") :], dropped=7)
    findings = later.findings(*INVARIANTS)
    assert findings == ()
    assert findings.notes == (
        "7 earlier events are no longer kept, and what depends on them is not checked; "
        "Broker(trace=...) sets how many are",
    )
    assert str(findings) == f"no findings\n({findings.notes[0]})"
    invariants = checks.Invariants()
    invariants.see(later.events)
    assert set(invariants.unknown_channels) == {("c1", 1), ("c1", 2)}


def test_a_loaded_recording_has_the_same_findings(server: FaultServer, client: Client, tmp_path: Path):
    client.declare("replies")
    publish(client, "nowhere")
    publish(client, reply_to="replies", correlation_id="1")
    client.get("q")
    trace = trace_of(server)
    trace.jsonl(tmp_path / "trace.jsonl")
    again = load(tmp_path / "trace.jsonl").findings(at_end=True)
    assert again == trace.findings(at_end=True)
    assert {finding.rule for finding in again} == {"message-lost", "left-unacked", "unanswered"}


def test_report_shows_the_events_that_led_to_a_finding(server: FaultServer, client: Client):
    publish(client, "nowhere")
    findings = trace_of(server).findings()
    number = findings[0].number
    assert str(findings).splitlines() == [
        "1 finding:",
        f"  {findings[0]}",
        *[
            f"    {place:>6}  {line}"
            for place, line in zip(
                (number - 5, number - 2, number - 1, number),
                [
                    "    0.000  c1 -> 2    basic.publish exchange='' routing_key='nowhere'",
                    "    0.000  c1 ==      message with exchange='' routing_key='nowhere': unroutable",
                    "    0.000  c1 ==      message b'1' dropped because no queue was there for it",
                    "    0.000  c1 <- 2    basic.ack delivery_tag=1",
                ],
                strict=True,
            )
        ],
    ]


def test_report_shows_at_most_ten_findings(server: FaultServer, client: Client):
    for _ in range(12):
        publish(client, "nowhere")
    lines = str(trace_of(server).findings()).splitlines()
    assert lines[0] == "12 findings:" and lines[-1] == "  ... and 2 more"


def assert_same_rows(trace: Trace) -> None:
    """The rows of events are those of their lines in a recording."""
    for number, event in enumerate(trace.events):
        of_line = row_of(number, event_to_json(event))
        if of_line.kind != "connection":
            of_line.text = ""  # Only that of connections is ever asked for.
        assert row_of(number, event) == of_line


def test_rows_of_0_10_events_equal_the_rows_of_their_recorded_lines(session: Session):
    test_settled_0_10_session_has_no_findings(session)
    assert_same_rows(of(session))


def test_rows_of_0_9_events_equal_the_rows_of_their_recorded_lines(requester: Requester):
    requester.client.qos(7, global_=True)
    test_answered_0_9_transfer_is_not_left_unacked(requester)
    requester.client.publish(b"1", routing_key="q", priority=3)
    assert_same_rows(trace_of(requester.client.server))


@given(programs())
@examples(50)
def test_rows_of_0_9_1_events_equal_the_rows_of_their_recorded_lines(program: Program):
    trace = traced(program, "rabbitmq-4.2")
    if trace is not None:
        assert_same_rows(trace)


# --- any program ------------------------------------------------------------------------------------------

_CONFIRMED = (open_channel(7), SELECT_CONFIRMS.with_(ch=7), publishing("@a", "m0", ch=7))
_LEGAL = frozenset(("expired", "maxlen", "unroutable", "delivery_limit", "cycle"))
"""Why programs lose messages: they ask for it."""


@given(programs(), st.sampled_from(["rabbitmq-4.2", "rabbitmq-3.13", "spec"]))
@examples(300)
def test_no_program_violates_an_invariant(program: Program, personality: str):
    trace = traced(program, personality)
    if trace is not None:
        assert found(trace, allow=_LEGAL) == []


Mutation = Callable[[Trace, int], Trace]


def _later(trace: Trace, number: int) -> Trace:
    """The frame also comes after all others of its turn."""
    return repeated(trace, number)


MUTATIONS: dict[str, tuple[str, Mutation, frozenset[str]]] = {
    "a delivery is not sent": ("basic.deliver", without, frozenset(("delivery-not-sent",))),
    "a delivery is sent twice": ("basic.deliver", _later, frozenset(("sent-twice",))),
    "a get is answered twice": ("basic.get-ok", _later, frozenset(("sent-twice",))),
    "a queue delivers twice": ("delivered", _later, frozenset(("delivered-twice",))),
    "a queue forgets a delivery": ("delivered", without, frozenset(("sent-twice", "message-lost"))),
    "a declaration is answered twice": ("queue.declare-ok", _later, frozenset(("answered-twice",))),
    "a declaration is not answered": ("queue.declare-ok", without, frozenset(("unanswered",))),
    "a confirm comes twice": ("basic.ack", _later, frozenset(("answered-twice",))),
    "a message is never taken": ("published", without, frozenset(("message-lost",))),
}


def delivers_once(trace: Trace, number: int) -> bool:
    """Whether the queue has the message of a delivery once, and the trace notes that before the delivery.

    A dead-lettered copy is the same message. The trace notes a dead letter of a quorum queue when all queues
    have it, which is behind the delivery to a consumer that was waiting; the check does not count these.
    """

    def place(event: Event) -> tuple[object, object]:
        assert isinstance(event, ModelEvent)
        return serial_of(event), event.facts["queue"]

    delivered = trace.events[number]
    assert isinstance(delivered, ModelEvent)
    came = [
        at
        for at, event in enumerate(trace.events)
        if event.name == "enqueued" and place(event) == place(delivered)
    ]
    return not delivered.facts["redelivered"] and len(came) == 1 and came[0] < number


@pytest.mark.parametrize("what", MUTATIONS)
@given(programs(), st.integers(0, 99))
@examples(120)
def test_violation_in_a_mutated_trace_is_found(what: str, program: Program, chance: int):
    name, mutate, rules = MUTATIONS[what]
    trace = traced([*_CONFIRMED, *program], "rabbitmq-4.2")
    if trace is None:
        return
    before = set(trace.findings(at_end=True))
    places = [number for number, event in enumerate(trace.events) if event.name == name]
    if what in ("a queue delivers twice",):
        places = [n for n in places if delivers_once(trace, n)]
    elif what == "a declaration is not answered":
        trace = without(trace, len(trace) - 1)  # The end of the connection would explain it.
        closes = [n for n, event in enumerate(trace.events) if event.name == "channel.close"]
        places = [n for n in places if not closes or n > closes[-1]]
    elif what == "a message is never taken":
        places = [n for n in places if confirmed(trace, n)]
    elif name == "basic.ack":
        places = [n for n in places if sent_alone(trace.events[n])]
    if not places:
        return
    changed = mutate(trace, places[chance % len(places)])
    new = {finding.rule for finding in changed.findings(at_end=True)}
    assert new & rules, f"{what}: found {sorted(new)}, before {len(before)}"


def sent_alone(event: Event) -> bool:
    """Whether it is a confirm of one publish."""
    return isinstance(event, FrameEvent) and event.direction == "sent" and not event.method.multiple


def confirmed(trace: Trace, number: int) -> bool:
    """Whether the published message is the one that the next basic.ack to its publisher confirms."""
    channel = next(e.channel for e in trace.events[number::-1] if e.name == "basic.publish")  # type: ignore[attr-defined]
    return (
        channel in (7, CONFIRMS)
        and any(
            event.name == "basic.ack" and event.channel == channel and event.direction == "sent"  # type: ignore[attr-defined]
            for event in trace.events[number : number + 40]
            if isinstance(event, FrameEvent)
        )
    )


def test_checks_at_the_end_are_all_checks_not_valid_at_any_moment(server: FaultServer):
    assert set(checks.CHECKS) - set(checks.AT_ANY_MOMENT) == set(AT_END)
