"""Commands and controls that come: what rules see of them, and that they keep their numbers."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import Session, SessionFailed, c, structs, x
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from compat_tests.unit.faults.server import seen
from fakeamqp.faults import Faults
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet


def completed(session: Session) -> SequenceSet:
    """What the broker has said is done, of all that was sent."""
    done = SequenceSet()
    for each in session.client.inbox:
        if isinstance(each.what, c.SessionCompleted):
            done.update(each.what.commands)
    session.client.inbox.clear()
    return done


# --- what a rule is about -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "wanted"),
    [
        (("queue.declare",), {"queue": "new"}),
        (("queue.*",), {"queue": "new", "durable": True}),
        (("message.subscribe",), {"queue": "q", "destination": "d"}),
        (("message.flow",), {"queue": "q"}),
        (("message.accept",), {"queue": "q", "body": b"two apples"}),
        (("message.release",), {"routing_key": "q", "exchange": ""}),
        (("exchange.bind",), {"routing_key": "k", "queue": "q", "exchange": "amq.topic"}),
        (("session.completed",), {}),
        (("session.attach",), {"session": "other"}),
        (("tx.select",), {}),
        (("execution.sync",), {"session": "shop"}),
    ],
    ids=str,
)
def test_rule_fires_on_other_commands_and_controls_that_meet_its_conditions(
    session: Session, faults: Faults, methods: tuple[str, ...], wanted: dict[str, Any]
) -> None:
    rule = faults.on(*methods, **wanted)
    session.call(x.QueueDeclare(queue="new", durable=True))
    session.publish(b"two apples")
    session.publish(b"three")
    session.subscribe("q")
    one, other = session.transfers()
    session.completed(one.id)
    session.release(other.id)
    again = session.transfer()
    session.release(again.id)
    session.transfer()
    session.accept(one.id)
    session.bind("q", "amq.topic", "k")
    session.call(x.TxSelect())
    session.call(x.ExecutionSync())
    session.client.session(b"other", 1)
    assert rule.hits == (2 if methods == ("message.release",) else rule.hits) >= 1


def test_rule_about_one_protocol_does_not_fire_on_connections_of_another(server: FaultServer) -> None:
    of_0_10 = server.faults.on("message.transfer", "session.*", optional=True)
    of_0_9_1 = server.faults.on("basic.publish", "channel.*", optional=True)
    shared = server.faults.on("queue.declare")
    only = server.faults.on("queue.declare", protocol="0-9-1", optional=True)
    failing = server.faults.on("queue.declare", queue="x", optional=True).exception(404)
    server.client().declare("x")
    assert (of_0_10.hits, of_0_9_1.hits, shared.hits, only.hits, failing.hits) == (0, 1, 1, 1, 0)
    assert "the connection speaks 0-9-1, not 0-10" in str(list(failing.near_misses()))
    session = server.session(b"s")
    assert (of_0_10.hits, of_0_9_1.hits) == (2, 1)
    session.publish(b"x", key="x")
    assert (of_0_10.hits, of_0_9_1.hits) == (3, 1)
    with pytest.raises(SessionFailed):
        session.declare("x")
    assert (shared.hits, only.hits, failing.hits) == (2, 1, 1)


def test_rule_sees_the_whole_body_of_a_transfer_in_many_frames(server: FaultServer) -> None:
    session = server.session_with("q", b"s", max_frame_size=4096)
    groups = seen(server.faults.on("message.transfer", body=lambda body: len(body) > 9000))
    body = bytes(range(250)) * 40
    session.publish(body, message=structs.MessageProperties(application_headers={"h": "x" * 9000}))
    session.publish(b"short")
    assert [group.body for group in groups] == [body]
    assert server.bodies() == [body, b"short"]


def test_transfer_arrives_whole_with_controls_between_its_frames(server: FaultServer) -> None:
    session = server.session_with("q", b"s")
    groups = seen(server.faults.on("message.transfer", routing_key="q"))
    command = x.MessageTransfer(destination="", accept_mode=1)
    header = [structs.DeliveryProperties(routing_key="q")]
    octets = session.client.command_bytes(command, 0, header=header, body=b"two apples")
    session.next_id += 1
    session.client.send_bytes(octets[:30])
    session.client.send_bytes(octets[30:])
    assert [group.body for group in groups] == [b"two apples"]
    first = len(session.client.command_bytes(command, 0))
    session.client.send_bytes(octets[:first])
    session.client.send(c.ConnectionHeartbeat())
    session.control(c.SessionFlush(completed=True))
    session.client.send_bytes(octets[first:])
    assert server.bodies() == [b"two apples"] * 2


def test_near_miss_of_a_0_10_rule_names_the_field_that_differs(session: Session, faults: Faults) -> None:
    rule = faults.on("message.transfer", routing_key="orders.#", session="shop").drop()
    session.publish(b"one")
    assert list(rule.near_misses()) == ["message.transfer: routing_key is 'q', not 'orders.#'"]
    other = faults.on("message.subscribe", queue="q", destination="e").drop()
    session.subscribe("q")
    assert list(other.near_misses()) == [
        "message.subscribe queue='q' destination='d': destination is 'd', not 'e'"
    ]


# --- what becomes of it -------------------------------------------------------------------------------


def test_a_dropped_command_keeps_its_number_and_is_never_completed(
    server: FaultServer, session: Session
) -> None:
    server.faults.on("message.transfer", body=b"two").drop()
    ids = [session.transfer_id(body) for body in (b"one", b"two", b"three")]
    assert server.bodies() == [b"one", b"three"]
    done = completed(session)
    assert [each in done for each in ids] == [True, False, True]
    assert session.query("q").message_count == 2


def test_delayed_command_delays_later_commands_of_its_session(server: FaultServer, session: Session) -> None:
    server.faults.on("message.transfer", body=b"one").delay(2)
    ids = [session.transfer_id(b"one"), session.transfer_id(b"two"), session.send(x.QueueQuery(queue="q"))]
    session.client.expect_nothing()
    session.client.send(c.ConnectionHeartbeat())
    server.advance(1)
    assert server.bodies() == []
    server.advance(1)
    assert server.bodies() == [b"one", b"two"]
    result = next(each.what for each in session.client.inbox if isinstance(each.what, x.ExecutionResult))
    assert (result.command_id, result.value.message_count) == (ids[2], 2)
    done = completed(session)
    assert all(each in done for each in ids)


def test_held_command_does_not_block_other_channels_or_the_connection(
    server: FaultServer, session: Session
) -> None:
    rule = server.faults.on("message.transfer", session="shop").hold()
    other = session.client.session(b"other", 1)
    session.publish(b"held")
    other.publish(b"not held")
    assert server.bodies() == [b"not held"]
    assert rule.release() == 1
    assert server.bodies() == [b"not held", b"held"]
    session.publish(b"held")
    session.client.inbox.clear()
    session.client.call(c.ConnectionClose(reply_code=200), c.ConnectionCloseOk)
    assert rule.held == 0
    assert server.bodies() == [b"not held", b"held"]


def test_duplicated_command_has_the_number_of_its_original(server: FaultServer, session: Session) -> None:
    server.faults.on("message.transfer", body=b"one").duplicate(2)
    ids = [session.transfer_id(b"one"), session.transfer_id(b"two")]
    assert server.bodies() == [b"one", b"one", b"one", b"two"]
    done = completed(session)
    assert all(each in done for each in ids)
    session.fails(x.QueuePurge(queue="nowhere"), 404)


def test_broker_receives_the_replaced_values_of_a_command(server: FaultServer, session: Session) -> None:
    session.declare("other")
    server.faults.on("message.transfer", body=b"one").replace(
        body=lambda body: body * 3, routing_key="other", priority=7, headers={"a": 1}, correlation_id="c"
    )
    server.faults.on("queue.declare", queue="b").replace(queue=lambda name: name + "c", durable=True)
    session.publish(b"one", message=structs.MessageProperties(content_type="text/plain"))
    session.publish(b"two")
    session.declare("b")
    (queued,) = server.vhost.queues["other"].ready
    message = queued.message
    assert message.body == b"oneoneone"
    assert (message.properties.priority, message.properties.headers["a"]) == (7, 1)
    assert message.properties.content_type == "text/plain"
    assert server.bodies() == [b"two"]
    assert server.vhost.queues["bc"].durable


def test_replaced_command_keeps_its_sync_flag(session: Session, faults: Faults) -> None:
    faults.on("queue.declare", queue="b").replace(queue="c")
    id_ = session.send(x.QueueDeclare(queue="b"), sync=True)
    assert id_ in completed(session)


def test_broker_receives_the_replaced_values_of_a_control(session: Session, faults: Faults) -> None:
    faults.on("session.request-timeout").replace(timeout=7)
    session.control(c.SessionRequestTimeout(timeout=1))
    assert session.expect(c.SessionTimeout).timeout == 7


def test_a_refused_publish_ends_the_session(server: FaultServer, session: Session) -> None:
    server.faults.on("message.transfer").nack()
    id_ = session.next_id
    with pytest.raises(SessionFailed) as caught:
        session.call(x.MessageTransfer(), header=[structs.DeliveryProperties(routing_key="q")], body=b"x")
    assert (caught.value.code, caught.value.exception.command_id) == (506, id_)
    assert server.bodies() == []


def test_spec_broker_answers_a_refused_publish_with_message_reject() -> None:
    server = FaultServer("spec")
    session = server.session_with("q", b"s")
    session.client.inbox.clear()
    server.faults.on("message.transfer", body=b"two").nack()
    ids = [session.transfer_id(body, accept_mode=0) for body in (b"one", b"two")]
    said = [
        each.what
        for each in session.client.inbox
        if isinstance(each.what, (x.MessageAccept, x.MessageReject))
    ]
    assert [(type(each), list(each.transfers)) for each in said] == [
        (x.MessageAccept, [ids[0]]),
        (x.MessageReject, [ids[1]]),
    ]
    assert ids[1] in completed(session)
    assert server.bodies() == [b"one"]


@pytest.mark.parametrize(
    "command",
    [
        x.QueueDeclare(queue="new"),
        x.MessageSubscribe(queue="q", destination="d"),
        x.MessageFlow(destination="d", unit=0, value=1),
        x.TxSelect(),
        x.DtxSelect(),
        x.ExecutionSync(),
        x.FileQos(),
        x.QueueQuery(queue="q"),
    ],
    ids=lambda command: command.NAME,
)
def test_exception_action_fails_a_command_with_the_given_code_and_text(
    session: Session, faults: Faults, command: Any
) -> None:
    faults.on(command.NAME).once().exception("resource-locked", "try again later", field_index=0)
    id_ = session.next_id
    exception = session.fails(command, 405)
    assert (exception.command_id, exception.class_code, exception.command_code) == (
        id_,
        command.CLASS,
        command.CODE,
    )
    assert (exception.description, exception.field_index) == ("try again later", 0)
    again = session.client.session(b"shop")
    again.call(x.ExecutionSync())


def test_exception_action_defaults_to_internal_error(session: Session, faults: Faults) -> None:
    faults.on("queue.declare").once().exception()
    exception = session.fails(x.QueueDeclare(queue="new"), 541)
    assert exception.description == "internal-error - a fault that the test asked for"


def test_close_channel_ends_the_session_with_the_given_code(server: FaultServer, session: Session) -> None:
    server.faults.on("message.transfer").close_channel(406)
    exception = session.fails(x.MessageTransfer(), 406, body=b"x")
    assert exception.command_id is None
    command = (exception.class_code, exception.command_code)
    assert command == (x.MessageTransfer.CLASS, x.MessageTransfer.CODE)
    server.faults.clear()
    other = session.client.session(b"other", 1)
    server.faults.on("execution.sync").close_channel(1)
    other.send(x.ExecutionSync())
    assert other.client.expect(c.SessionDetached, 1) == c.SessionDetached(name=b"other", code=1)
    assert server.state.sessions == {}


@pytest.mark.parametrize("code", [320, 501])
def test_close_connection_sends_the_given_code_and_text(session: Session, faults: Faults, code: int) -> None:
    faults.on("message.transfer").close_connection(code, "go away")
    session.publish()
    assert session.client.expect_close(code).reply_text == "go away"


def test_close_connection_sends_a_code_unknown_to_0_10(session: Session, faults: Faults) -> None:
    faults.on("message.transfer").close_connection(404)
    session.publish()
    assert (404).to_bytes(2, "big") + b"\x2bNOT_FOUND - a fault" in session.client.take_bytes()


def test_close_connection_after_a_command_follows_its_completion(
    server: FaultServer, session: Session
) -> None:
    server.faults.on("queue.declare").close_connection(when="after")
    id_ = session.send(x.QueueDeclare(queue="new"), sync=True)
    server.settle()
    assert "new" in server.vhost.queues
    assert id_ in session.client.expect(c.SessionCompleted).commands
    session.client.expect_close(320)


def test_disconnect_before_the_answer_ends_the_connection_silently(
    server: FaultServer, session: Session
) -> None:
    server.faults.on("queue.query").disconnect(when="before")
    session.send(x.QueueQuery(queue="q"))
    session.client.expect_silent_end()


def test_refused_login_closes_the_connection_with_the_given_text(server: FaultServer) -> None:
    server.faults.on("connection.start-ok").refuse_login("not today")
    client = server.dial()
    client.begin()
    product = {"product": "orders"}
    client.send(c.ConnectionStartOk(client_properties=product, mechanism="PLAIN", response=b"\0guest\0guest"))
    assert client.expect_close(320).reply_text == "not today"
    assert client.connection.client_properties == product


def test_crash_on_a_transfer_loses_it_but_no_completed_transfer(
    server: FaultServer, session: Session
) -> None:
    session.declare("d", durable=True)
    session.client.inbox.clear()
    server.faults.on("message.transfer", body=b"two").crash()
    session.publish(b"one", key="d", delivery_mode=2)
    session.publish(b"two", key="d", delivery_mode=2)
    server.settle()
    assert server.restarts == [(True, True)]
    assert server.bodies("d") == [b"one"]


def test_rule_about_the_header_fires_before_the_body_arrives(server: FaultServer, session: Session) -> None:
    rule = server.faults.on("message.transfer", part="header").disconnect("reset")
    command = x.MessageTransfer(destination="", accept_mode=1)
    header = [structs.DeliveryProperties(routing_key="q")]
    octets = session.client.command_bytes(command, 0, header=header, body=b"two apples")
    session.client.send_bytes(octets[:-22])
    assert rule.hits == 1
    session.client.expect_silent_end()
    assert session.client.connection.resets


def test_rule_does_not_fire_on_a_transfer_interrupted_by_another_command(
    server: FaultServer, session: Session
) -> None:
    rule = server.faults.on("message.transfer").drop()
    header = [structs.DeliveryProperties(routing_key="q")]
    octets = session.client.command_bytes(x.MessageTransfer(destination=""), 0, header=header, body=b"1")
    session.client.send_bytes(octets[: -len(b"1") - 12])  # Without the frame of the body.
    session.client.send_bytes(session.client.command_bytes(x.QueueDeclare(queue="new")))
    session.client.expect_close(501)
    assert rule.hits == 0


def test_heartbeats_are_dropped_in_both_directions(server: FaultServer) -> None:
    client = server.open(heartbeat=10)
    rule = server.faults.on("heartbeat").drop()
    for _ in range(3):
        server.advance(9)
        client.send(c.ConnectionHeartbeat())
        client.inbox.clear()
    assert client.closed
    assert rule.hits >= 2
    also = server.faults.on("connection.heartbeat", direction="sent").drop()
    server.open(heartbeat=10)
    server.advance(10)
    assert also.hits >= 1


def test_transfer_without_routing_key_matches_the_queue_bound_with_an_empty_key(
    session: Session, faults: Faults
) -> None:
    session.bind("q", "amq.direct", "")
    rule = faults.on("message.transfer", queue="q")
    command = x.MessageTransfer(destination="amq.direct", accept_mode=1)
    session.send(command, header=[structs.DeliveryProperties(priority=1)], body=b"1")
    assert rule.hits == 1


def test_exception_rule_does_not_fire_on_a_0_9_1_connection(server: FaultServer) -> None:
    rule = server.faults.on("queue.declare", optional=True).exception(404)
    client = server.client()
    client.declare("q")
    assert rule.hits == 0 and "q" in server.vhost.queues
    assert any("the connection speaks 0-9-1, not 0-10" in each for each in rule.near_misses())
