"""Rules come and go, and so do channels and connections, while something is under way."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from compat_tests.unit.faults.server import FaultServer, Publisher, bytes_of
from fakeamqp.faults.errors import FaultError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER

PIECES = [
    bytes_of(m.BasicPublish(routing_key="q")),
    bytes_of((2, CONTENT_HEADER.pack(60, 0, 4) + b"\0\0")),
    bytes_of((3, b"bo")),
    bytes_of((3, b"dy")),
]


def out_of_the_way(server: FaultServer) -> bool:
    """Whether nothing stands between the broker and its trace."""
    return server.tapped.tap is server.recorder


def test_rule_removed_by_its_own_function_after_a_delay_passes_the_publish(server: FaultServer) -> None:
    rule = server.faults.on("basic.publish").delay(1)
    rule.call(lambda group: rule.remove())
    publisher = server.publisher()
    publisher.publish(b"x")
    server.advance(1)
    assert publisher.stored == [b"x"]
    assert out_of_the_way(server)


@pytest.mark.parametrize("how", ["hold", "delay"])
def test_rule_removed_by_its_own_function_neither_holds_nor_delays(server: FaultServer, how: str) -> None:
    rule = server.faults.on("basic.publish").call(lambda group: rule.remove())
    rule.hold() if how == "hold" else rule.delay(1)
    publisher = server.publisher()
    publisher.publish(b"x")
    assert publisher.stored == [b"x"]
    assert (rule.held, rule.release()) == (0, 0)
    assert not any("goes on" in timer.words for timer in server.state.timers.pending())
    assert out_of_the_way(server)


@pytest.mark.parametrize("active", [True, False])
def test_channel_flow_fault_sends_the_opposite_flow_when_removed(server: FaultServer, active: bool) -> None:
    client = server.client()
    flow = server.faults.channel_flow(active=active)
    assert client.expect(m.ChannelFlow).active is active
    flow.remove()
    assert client.expect(m.ChannelFlow).active is not active


class TestInTheMidstOfAContent:
    @pytest.mark.parametrize("when", [1, 2, 3])
    def test_rule_added_within_a_content_applies_to_the_next_publish(
        self, publisher: Publisher, when: int
    ) -> None:
        for number, piece in enumerate(PIECES):
            if number == when:
                publisher.faults.on("basic.publish").nack()
            publisher.client.send_bytes(piece)
        publisher.client.send_bytes(b"".join(PIECES))
        assert publisher.confirms == ["ack 1", "nack 2"]
        assert publisher.stored == [b"body"]

    @pytest.mark.parametrize("when", [1, 2, 3])
    def test_rule_removed_within_a_content_does_not_apply_to_it(self, server: FaultServer, when: int) -> None:
        rule = server.faults.on("basic.publish").nack()
        publisher = server.publisher()
        for number, piece in enumerate(PIECES):
            if number == when:
                rule.remove()
                assert out_of_the_way(server)
            publisher.client.send_bytes(piece)
        assert publisher.confirms == ["ack 1"]
        assert publisher.stored == [b"body"]

    @pytest.mark.parametrize("when", [1, 2, 3])
    def test_second_rule_applies_if_the_first_is_removed_within_a_content(
        self, publisher: Publisher, when: int
    ) -> None:
        first = publisher.faults.on("basic.publish").drop()
        publisher.faults.on("basic.publish").nack()
        for number, piece in enumerate(PIECES):
            if number == when:
                first.remove()
            publisher.client.send_bytes(piece)
        assert publisher.confirms == ["nack 1"]

    @pytest.mark.parametrize("when", [1, 2, 3])
    def test_publish_cut_off_by_a_channel_close_of_the_broker_is_no_hit(
        self, server: FaultServer, when: int
    ) -> None:
        rule = server.faults.on("basic.publish").drop()
        client = server.client_with("q")
        for piece in PIECES[:when]:
            client.send_bytes(piece)
        endpoint = server.state.connections.copy().popitem()[0]
        endpoint.fault_port.close_channel(1, 406, "so it is", 0)  # type: ignore[attr-defined]
        for piece in PIECES[when:]:
            client.send_bytes(piece)
        client.expect_channel_close(406)
        client.open_channel()
        assert client.count("q") == 0
        assert rule.hits == 0

    def test_unexpected_frame_within_a_content_is_the_same_error_with_a_rule(
        self, server: FaultServer
    ) -> None:
        server.faults.on("basic.publish")
        for wrong in (bytes_of(m.QueueDeclare(queue="q")), PIECES[2], PIECES[0]):
            client = server.client()
            client.send_bytes(PIECES[0] + wrong)
            client.expect_connection_close(505)

    def test_publish_sent_in_single_bytes_is_replaced_by_a_rule(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish", body=b"body").replace(body=b"other")
        for octet in b"".join(PIECES):
            publisher.client.send_bytes(bytes((octet,)))
        assert (rule.hits, publisher.stored) == (1, [b"other"])


class TestPublishesThatCount:
    def test_publish_on_a_closing_channel_is_no_hit(self, server: FaultServer) -> None:
        """The broker discards them, so there is nothing to do something to."""
        rule = server.faults.on("basic.publish").nack()
        client = server.client()
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        client.send_bytes(bytes_of(m.QueueDeclare(queue="?", passive=True)) + b"".join(PIECES))
        client.expect_channel_close(404)
        client.expect_nothing()
        assert rule.hits == 0

    def test_publish_on_an_unopened_channel_is_no_hit(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.publish").nack()
        client = server.client(channels=0)
        client.send_bytes(b"".join(PIECES))
        client.expect_connection_close(504)
        assert rule.hits == 0


class TestWhatWaitsWhenItsRuleGoes:
    @pytest.mark.parametrize("subject", ["basic.publish", "confirm", "basic.deliver"])
    @pytest.mark.parametrize("how", ["delay", "hold", "hold and delay"])
    def test_waiting_methods_pass_when_the_faults_are_cleared(
        self, server: FaultServer, subject: str, how: str
    ) -> None:
        publisher = server.publisher()
        consumer = server.client()
        consumer.consume("q", "tag", no_ack=True)
        rule = server.faults.on(subject)
        if "hold" in how:
            rule.hold()
        if "delay" in how:
            rule.delay(5)
        publisher.publish(b"1", b"2")
        server.faults.clear()
        assert publisher.confirms == ["ack 1", "ack 2"]
        assert consumer.bodies() == [b"1", b"2"]
        assert out_of_the_way(server)
        server.advance(10)
        consumer.expect_nothing()
        publisher.client.expect_nothing()

    def test_publish_held_for_the_second_time_passes_when_its_rule_is_removed(
        self, server: FaultServer
    ) -> None:
        rule = server.faults.on("basic.publish").delay(1).hold().delay(1).hold()
        publisher = server.publisher()
        publisher.publish(b"1")
        server.advance(1)
        assert rule.held == 1
        rule.release()
        rule.remove()
        assert publisher.confirms == ["ack 1"]

    def test_removed_rule_releases_its_own_confirms_only(self, publisher: Publisher) -> None:
        one = publisher.faults.on("confirm", body=b"1").hold()
        two = publisher.faults.on("confirm", body=b"2").hold()
        publisher.publish(b"1", b"2")
        two.remove()
        assert publisher.confirms == ["ack 2"]
        assert one.held == 1


class TestWhatWaitsWhenItsChannelGoes:
    def test_delayed_delivery_is_not_sent_on_a_reopened_channel(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver").delay(1).once()
        client = server.client_with("q")
        client.fill("q", b"1")
        client.consume("q", "old")
        client.close_channel()
        client.open_channel()
        client.consume("q", "new")
        content = client.delivery()
        assert (content.method.consumer_tag, content.method.delivery_tag) == ("new", 1)
        server.advance(1)
        client.expect_nothing()
        assert server.said[-1].endswith("is not sent: its channel has been closed")

    @pytest.mark.parametrize("how", ["client", "broker"])
    def test_held_confirm_is_not_sent_on_a_reopened_channel(self, publisher: Publisher, how: str) -> None:
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1")
        client = publisher.client
        if how == "client":
            client.close_channel()
        else:
            client.fails(m.QueueDeclare(queue="?", passive=True), 404)
        client.open_channel()
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        assert rule.release() == 1
        client.expect_nothing()
        publisher.publish(b"2")
        rule.release()
        assert publisher.confirms == ["ack 1"]

    def test_delayed_publish_is_stored_before_the_channel_close_behind_it(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").delay(1)
        publisher = server.publisher()
        publisher.publish(b"1")
        publisher.client.send(m.ChannelClose(reply_code=200))
        publisher.client.expect_nothing()
        server.advance(1)
        publisher.client.expect(m.BasicAck)
        publisher.client.expect(m.ChannelCloseOk)
        assert publisher.stored == [b"1"]

    def test_delayed_publish_is_discarded_when_the_broker_closes_its_channel(
        self, server: FaultServer
    ) -> None:
        server.faults.on("basic.publish").delay(1)
        publisher = server.publisher()
        publisher.publish(b"1", b"2")
        endpoint = server.state.connections.copy().popitem()[0]
        endpoint.fault_port.close_channel(1, 406, "so it is", 0)  # type: ignore[attr-defined]
        publisher.client.expect(m.ChannelClose)
        publisher.client.send(m.ChannelCloseOk())
        publisher.client.send(m.ChannelOpen())
        server.advance(5)
        publisher.client.expect(m.ChannelOpenOk)
        assert publisher.stored == []
        publisher.client.declare("q", passive=True)


class TestWhatWaitsWhenItsConnectionGoes:
    @pytest.mark.parametrize("subject", ["basic.publish", "confirm"])
    @pytest.mark.parametrize("end", ["lost", "closed", "restart", "crash"])
    def test_waiting_methods_are_discarded_when_their_connection_ends(
        self, server: FaultServer, subject: str, end: str
    ) -> None:
        held = server.faults.on(subject, body=b"1").hold()
        server.faults.on(subject, body=b"2").delay(5)
        one, two = server.publisher(), server.publisher()
        one.publish(b"1")
        two.publish(b"2")
        if end == "closed":
            for publisher in (one, two):
                publisher.client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, 0)
        elif end == "lost":
            one.client.drop()
            two.client.drop()
        else:
            server.restart(crash=end == "crash")
        assert held.held == 0
        assert held.release() == 0
        assert [timer for timer in server.state.timers.pending() if timer.words.startswith("fault")] == []
        server.advance(10)
        server.faults.clear()
        assert out_of_the_way(server)
        publisher = server.publisher()
        publisher.publish(b"1")
        assert publisher.confirms == ["ack 1"]

    def test_rule_applies_to_connections_after_a_restart(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").nack()
        server.publisher().publish(b"1")
        server.restart()
        publisher = server.publisher()
        publisher.publish(b"1")
        assert publisher.confirms == ["nack 1"]

    def test_close_channel_on_a_lost_connection_has_no_effect(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver").close_channel()
        client = server.client_with("q")
        client.fill("q", b"1")
        client.consume("q")
        client.drop()
        server.settle()
        server.faults.clear()
        assert out_of_the_way(server)
        assert server.client().count("q") == 1


class TestBlocked:
    def test_publisher_is_blocked_when_the_content_header_arrives_during_an_alarm(
        self, server: FaultServer
    ) -> None:
        """As without a rule; and the publish goes on when the alarm is over."""
        server.faults.on("basic.publish")
        client = server.client_with("q", client_properties={"capabilities": {"connection.blocked": True}})
        alarm = server.faults.memory_alarm()
        client.send_bytes(PIECES[0])
        client.expect_nothing()
        client.send_bytes(b"".join(PIECES[1:]))
        client.expect(m.ConnectionBlocked, 0)
        assert not client.connection.reading
        alarm.remove()
        client.expect(m.ConnectionUnblocked, 0)
        assert client.count("q") == 1

    def test_publish_held_before_an_alarm_is_stored_when_released_during_it(
        self, server: FaultServer
    ) -> None:
        """It had been read; what comes behind it stays whole though half of it was there."""
        rule = server.faults.on("basic.publish", routing_key="q").hold()
        client = server.client_with("q", channels=2)
        client.publish(b"1", routing_key="q")
        octets = bytes_of(m.QueueDeclare(queue="p"), channel=2)
        client.send_bytes(octets[:9])
        alarm = server.faults.disk_alarm()
        rule.release()
        assert [queued.message.body for queued in server.vhost.queues["q"].ready] == [b"1"]
        client.send_bytes(octets[9:])
        alarm.remove()
        client.expect(m.QueueDeclareOk, 2)

    def test_the_reason_of_an_alarm_has_1_to_255_bytes(self, server: FaultServer) -> None:
        for reason in ("x", "\xe9" * 127 + "x"):
            server.faults.memory_alarm(reason).remove()
        for reason in ("", "\xe9" * 128):
            with pytest.raises(FaultError, match="a str of 1 to 255 bytes"):
                server.faults.memory_alarm(reason)

    def test_alarms_outlast_a_restart(self, server: FaultServer) -> None:
        alarm = server.faults.memory_alarm()
        server.restart()
        server.faults.after_restart()
        client = server.client(client_properties={"capabilities": {"connection.blocked": True}})
        client.publish(routing_key="q")
        client.expect(m.ConnectionBlocked, 0)
        alarm.remove()
        client.expect(m.ConnectionUnblocked, 0)


class TestTransactions:
    def test_publishes_in_a_transaction_are_dropped_and_delayed_by_rules(self, server: FaultServer) -> None:
        server.faults.on("basic.publish", body=b"1").drop()
        server.faults.on("basic.publish", body=b"2").delay(1)
        client = server.client_with("q")
        client.call(m.TxSelect(), m.TxSelectOk)
        client.fill("q", b"1", b"2", b"3")
        client.send(m.TxCommit())
        client.expect_nothing()
        server.advance(1)
        client.expect(m.TxCommitOk)
        assert client.empty("q") == [b"2", b"3"]

    def test_close_channel_before_the_answer_to_tx_commit_keeps_the_commit(self, server: FaultServer) -> None:
        server.faults.on("tx.commit").close_channel(when="before")
        client = server.client_with("q")
        client.call(m.TxSelect(), m.TxSelectOk)
        client.publish(routing_key="q")
        client.fails(m.TxCommit(), 406)
        client.open_channel()
        assert client.count("q") == 1


class TestMemory:
    def test_memory_of_rules_does_not_grow_while_they_never_fire(self, server: FaultServer) -> None:
        rules = [
            server.faults.on("basic.publish", body=b"never", optional=True).nack(),
            server.faults.on("confirm", body=b"never", optional=True).drop(),
            server.faults.on("basic.deliver", body=b"never", optional=True).drop(),
        ]
        publisher = server.publisher()
        consumer = server.client()
        consumer.consume("q", no_ack=True)
        sizes = []
        for _ in range(3):
            for number in range(200):
                publisher.publish(b"%d" % number, routing_key="q")
            consumer.bodies()
            assert len(publisher.confirms) == 200
            sizes.append(_reachable(server.faults._executor) + sum(_reachable(rule._near) for rule in rules))
        assert sizes[1] == sizes[2]

    def test_ended_connections_are_freed_from_memory(self) -> None:
        """Also what was under way on them."""
        server = FaultServer(trace=False)
        faults = server.faults
        faults.on("confirm", body=b"never", optional=True).hold()
        faults.on("confirm").hold()
        references = []
        for _ in range(3):
            publisher = server.publisher()
            publisher.publish(b"1", routing_key="nowhere")
            references.append(weakref.ref(next(iter(server.state.connections))))
            publisher.client.drop()
            del publisher
        gc.collect()
        assert [reference() for reference in references] == [None, None, None]

    def test_connection_that_ended_while_no_rule_existed_is_freed_from_memory(
        self, server: FaultServer
    ) -> None:
        client = server.client()
        server.faults.on("queue.declare").drop().remove()
        reference = weakref.ref(next(iter(server.state.connections)))
        client.drop()
        del client
        server.faults.on("queue.declare", optional=True).drop()
        gc.collect()
        assert reference() is None

    def test_reading_stops_when_too_many_bytes_wait_behind_a_held_publish(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish").hold().once()
        publisher.publish(b"first")
        while publisher.client.connection.reading:
            publisher.publish(b"x" * 100_000)
        count = 11
        rule.release()
        assert publisher.client.connection.reading
        assert len(publisher.stored) == 1 + count
        assert publisher.confirms == [f"ack {tag}" for tag in range(1, count + 2)]

    def test_reading_resumes_when_at_most_half_of_the_limit_waits(self, server: FaultServer) -> None:
        client = server.client()
        client.call(m.ChannelOpen(), m.ChannelOpenOk, channel=2)
        rules = [server.faults.on("basic.publish", channel=channel).hold().once() for channel in (1, 2)]
        for channel in (1, 2):
            client.publish(b"first", channel=channel)
        for channel, count in ((1, 4), (2, 7)):
            for _ in range(count):
                assert client.connection.reading
                client.publish(b"x" * 100_000, channel=channel)
        assert not client.connection.reading
        rules[0].release()
        assert not client.connection.reading
        rules[1].release()
        assert client.connection.reading


def _reachable(thing: Any) -> int:
    """How many containers hang together in the tap's own books."""
    seen: dict[int, Any] = {}
    ahead = [thing._states if hasattr(thing, "_states") else thing]
    while ahead:
        each = ahead.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, dict):
            ahead += each.values()
        elif isinstance(each, (list, tuple, set)):
            ahead += each
        elif type(each).__name__ == "ConnectionFaultState":
            ahead += [value for name, value in vars(each).items() if name not in ("tapped", "port")]
    return len(seen)
