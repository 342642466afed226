"""Every action on what the broker sends. It is sent in the midst of something, which goes on all the same."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.unit.faults.server import FaultServer, Publisher, bytes_of, only_0_9_1
from fakeamqp.faults import MALFORMATIONS, FaultError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def consumer(server: FaultServer, *bodies: bytes, **how: Any) -> Client:
    """A client that consumes from a queue with these messages."""
    client = server.client_with("q")
    client.fill("q", *bodies)
    client.consume("q", "tag", **how)
    return client


def bodies_and_tags(client: Client) -> list[tuple[bytes, int]]:
    got = []
    while client.inbox:
        content = client.delivery()
        got.append((content.body, content.method.delivery_tag))
    return got


class TestDrop:
    def test_dropped_delivery_uses_its_delivery_tag_and_stays_unacked(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver", body=b"2").drop()
        client = consumer(server, b"1", b"2", b"3")
        assert bodies_and_tags(client) == [(b"1", 1), (b"3", 3)]
        client.close_channel()
        client.open_channel()
        assert [queued.redelivered for queued in server.vhost.queues["q"].ready] == [True] * 3

    @pytest.mark.parametrize("mandatory", [False, True])
    def test_dropped_confirm_is_not_covered_by_later_confirms(
        self, publisher: Publisher, mandatory: bool
    ) -> None:
        rule = publisher.faults.on("confirm", body=b"2").drop()
        publisher.publish(b"1", b"2", b"3", mandatory=mandatory)
        assert publisher.confirms == ["ack 1", "ack 3"]
        assert publisher.stored == [b"1", b"2", b"3"]
        rule.remove()
        publisher.client.send_bytes(
            b"".join(bytes_of(m.BasicPublish(routing_key="q"), (2, HEADER)) for _ in range(3))
        )
        # Later ones are single, so that they do not cover the lost one.
        assert publisher.confirms == ["ack 4", "ack 5", "ack 6"]

    def test_dropped_declare_ok_leaves_the_queue_declared(self, server: FaultServer) -> None:
        server.faults.on("queue.declare-ok").drop()
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        client.expect_nothing()
        assert "q" in server.vhost.queues

    def test_consumer_cancel_of_the_broker_is_dropped(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.cancel", direction="sent").drop()
        client = server.client_with("q", client_properties={"capabilities": {"consumer_cancel_notify": True}})
        client.consume("q", "tag")
        server.vhost.queues.remove(server.vhost.queues["q"], "so it is")
        assert rule.hits == 1
        client.expect_nothing()


HEADER = b"\0\x3c\0\0" + bytes(8) + b"\0\0"


class TestNack:
    def test_nacked_confirm_leaves_its_message_in_the_queue(self, publisher: Publisher) -> None:
        publisher.faults.on("confirm").nack().once()
        publisher.publish(b"1", b"2")
        assert publisher.confirms == ["nack 1", "ack 2"]
        assert publisher.stored == [b"1", b"2"]


class TestWaiting:
    def test_delayed_delivery_is_overtaken_and_keeps_its_tag(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver", body=b"1").delay(3)
        client = consumer(server, b"1", b"2")
        assert bodies_and_tags(client) == [(b"2", 2)]
        server.advance(3)
        assert bodies_and_tags(client) == [(b"1", 1)]
        client.ack(2, multiple=True)
        client.expect_nothing()

    def test_held_deliveries_are_sent_in_the_order_of_their_release(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.deliver").hold()
        client = consumer(server, b"1", b"2", b"3", b"4")
        assert (rule.held, bodies_and_tags(client)) == (4, [])
        assert rule.release(1) == 1
        assert rule.release(2, reverse=True) == 2
        assert rule.release() == 1
        assert bodies_and_tags(client) == [(b"1", 1), (b"4", 4), (b"3", 3), (b"2", 2)]

    def test_held_confirms_are_sent_in_reverse_order(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2", b"3")
        rule.release(reverse=True)
        assert publisher.confirms == ["ack 3", "ack 2", "ack 1"]

    def test_delayed_declare_ok_follows_a_later_answer(self, server: FaultServer) -> None:
        server.faults.on("queue.declare-ok").delay(1)
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        client.send(m.BasicGet(queue="q"))
        client.expect(m.BasicGetEmpty)
        server.advance(1)
        client.expect(m.QueueDeclareOk)

    @pytest.mark.parametrize("name", ["channel.close-ok", "connection.close-ok"])
    def test_delayed_close_ok_is_sent_after_its_channel_or_connection_has_ended(
        self, server: FaultServer, name: str
    ) -> None:
        server.faults.on(name, direction="sent").delay(0.5)
        client = server.client()
        if name == "channel.close-ok":
            client.send(m.ChannelClose(reply_code=200))
        else:
            client.send(m.ConnectionClose(reply_code=200), 0)
        client.expect_nothing()
        server.advance(0.5)
        if name == "channel.close-ok":
            client.expect(m.ChannelCloseOk)
            client.open_channel()
        else:
            client.expect(m.ConnectionCloseOk, 0)

    def test_channel_close_of_the_broker_is_delayed(self, server: FaultServer) -> None:
        server.faults.on("channel.close", direction="sent").delay(1)
        client = server.client()
        client.send(m.QueueDeclare(queue="no such queue", passive=True))
        client.expect_nothing()
        server.advance(1)
        client.expect_channel_close(404)
        client.open_channel()


class TestDuplicate:
    def test_duplicate_of_a_delivery_has_a_tag_of_its_own(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver", body=b"1").duplicate(2)
        client = consumer(server, b"1", b"2")
        assert bodies_and_tags(client) == [(b"1", 1), (b"1", 2), (b"1", 3), (b"2", 4)]

    def test_duplicated_delivery_has_the_replaced_redelivered_flag(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver").duplicate().replace(redelivered=True)
        client = consumer(server, b"1")
        flags = [client.delivery().method.redelivered for _ in range(2)]
        assert flags == [True, True]

    @pytest.mark.parametrize("settle", ["ack", "nack", "reject"])
    @pytest.mark.parametrize("first", [1, 2])
    def test_delivery_and_its_duplicate_can_both_be_settled(
        self, server: FaultServer, settle: str, first: int
    ) -> None:
        """Only the one that is no copy counts."""
        server.faults.on("basic.deliver").duplicate().once()
        client = consumer(server, b"1")
        client.bodies()
        getattr(client, settle)(first)
        getattr(client, settle)(3 - first)
        client.expect_nothing() if settle != "nack" else client.delivery()
        client.close_channel()

    def test_tag_of_a_duplicate_cannot_be_acked_twice(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver").duplicate()
        client = consumer(server, b"1")
        client.bodies()
        client.ack(2)
        client.ack(2)
        client.expect_channel_close(406)

    @pytest.mark.parametrize("tag", [0, 2, 4])
    def test_multiple_ack_covers_the_tags_of_duplicates(self, server: FaultServer, tag: int) -> None:
        server.faults.on("basic.deliver").duplicate()
        client = consumer(server, b"1", b"2")
        assert bodies_and_tags(client) == [(b"1", 1), (b"1", 2), (b"2", 3), (b"2", 4)]
        client.ack(tag, multiple=True)
        client.close_channel()
        client.open_channel()
        assert client.empty("q") == ([b"2"] if tag == 2 else [])

    def test_multiple_ack_frees_the_tags_of_duplicates(self, server: FaultServer) -> None:
        """So that a long test does not gather them."""
        server.faults.on("basic.deliver").duplicate()
        client = consumer(server, *[b"x"] * 10)
        channel = server.state.connections.copy().popitem()[0].open_channels[0]
        assert len(channel.ledger.spares) == 10
        client.ack(10, multiple=True)
        assert len(channel.ledger.spares) == 5
        client.ack(0, multiple=True)
        assert len(channel.ledger.spares) == 0

    def test_duplicated_get_ok_has_a_tag_of_its_own(self, server: FaultServer) -> None:
        server.faults.on("basic.get-ok").duplicate()
        client = server.client_with("q")
        client.fill("q", b"1")
        client.send(m.BasicGet(queue="q"))
        tags = [client.expect_content(m.BasicGetOk).method.delivery_tag for _ in range(2)]
        assert tags == [1, 2]


class TestReplace:
    def test_redelivered_flag_of_a_delivery_is_replaced(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver").replace(redelivered=True).once()
        client = consumer(server, b"1", b"2")
        assert [client.delivery().method.redelivered for _ in range(2)] == [True, False]

    def test_consumer_gets_the_replaced_body_headers_and_channel(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver").replace(body=b"?" * 9000, headers={"x": 1}, channel=7)
        client = server.client_with("q", frame_max=8192)
        client.fill("q", b"1")
        client.consume("q")
        content = client.delivery(7)
        assert (content.body, content.properties.headers) == (b"?" * 9000, {"x": 1})


class TestEnds:
    @pytest.mark.parametrize("when", ["instead", "before", "after"])
    @pytest.mark.parametrize("end", ["channel", "connection", "fin", "reset"])
    def test_end_on_a_delivery_comes_before_later_deliveries_and_messages_are_requeued(
        self, server: FaultServer, end: str, when: Any
    ) -> None:
        rule = server.faults.on("basic.deliver", body=b"2")
        if end == "channel":
            rule.close_channel(406, when=when)
        elif end == "connection":
            rule.close_connection(541, when=when)
        else:
            rule.disconnect(end, when)  # type: ignore[arg-type]
        client = consumer(server, b"1", b"2", b"3")
        assert client.delivery().body == b"1"
        if when == "after":
            assert client.delivery().body == b"2"
        client.expect_nothing()
        server.settle()
        if end == "channel":
            client.expect_channel_close(406)
            client.open_channel()
        elif end == "connection":
            client.expect_connection_close(541)
        else:
            client.expect_silent_end()
        assert sorted(server.client().empty("q")) == [b"1", b"2", b"3"]

    def test_message_survives_a_crash_that_replaces_its_confirm(self, server: FaultServer) -> None:
        """What was confirmed survives; whether the publisher got to know is another question."""
        server.faults.on("confirm").crash(when="instead")
        client = server.client()
        client.declare("q", durable=True)
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        client.publish(b"1", routing_key="q", delivery_mode=2)
        client.expect_nothing()
        server.settle()
        assert server.restarts == [(True, True)]
        assert server.client().empty("q") == [b"1"]

    def test_disconnect_on_connection_start_ends_the_connection_silently(self, server: FaultServer) -> None:
        server.faults.on("connection.start").disconnect()
        client = server.connect()
        client.send_bytes(b"AMQP\0\0\x09\x01")
        server.settle()
        client.expect_silent_end()


class TestCut:
    @pytest.mark.parametrize(
        ("after", "frames"),
        [("method", 1), ("header", 2)],
    )
    def test_delivery_is_cut_after_its_method_or_header(
        self, server: FaultServer, after: str, frames: int
    ) -> None:
        server.faults.on("basic.deliver").cut(after=after)
        client = consumer(server, b"body")
        assert [frame.type for frame in client.inbox] == [1, 2, 3][:frames]
        server.settle()
        assert client.closed

    def test_answer_is_cut_within_a_frame(self, server: FaultServer) -> None:
        server.faults.on("queue.declare-ok").cut(after=9, how="reset")
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        assert client.take_bytes() == bytes_of(m.QueueDeclareOk(queue="q"))[:9]
        server.settle()
        assert client.closed

    def test_no_bytes_follow_a_cut_delivery(self, server: FaultServer) -> None:
        server.faults.on("basic.deliver", body=b"1").cut(after=3)
        client = consumer(server, b"1", b"2")
        client.expect_nothing()
        assert client._octets == b"\x01\x00\x01"


class TestMalform:
    @pytest.mark.parametrize("how", sorted(MALFORMATIONS))
    def test_every_malformation_changes_the_bytes_of_a_delivery(self, server: FaultServer, how: Any) -> None:
        """And the broker stays as it was: the message is out, its tag is used."""
        client = server.client_with("q")
        client.fill("q", b"body")
        expected = bytes_of(
            m.BasicDeliver("tag", 1, False, "", "q"),
            (2, b"\0\x3c\0\0" + bytes(7) + b"\x04\0\0"),
            (3, b"body"),
        )
        server.faults.on("basic.deliver").malform(how).once()
        client.send(m.BasicConsume(queue="q", consumer_tag="tag"))
        octets = client.take_bytes()
        ok = bytes_of(m.BasicConsumeOk("tag"))
        assert octets.startswith(ok)
        assert octets[len(ok) :] != expected
        assert len(octets) > len(ok)
        client.ack(1)
        assert list(server.vhost.queues["q"].ready) == []
        assert server.said[-1].startswith(f"sent malformed ({how}): ")

    def test_answer_is_malformed_with_an_unknown_method(self, server: FaultServer) -> None:
        server.faults.on("queue.declare-ok").malform("unknown-method")
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        assert client.take_bytes()[7:11] == b"\0\x32" + (4242).to_bytes(2, "big")


class TestAtOnce:
    @only_0_9_1
    def test_method_sent_by_the_test_is_received_and_traced(self, server: FaultServer) -> None:
        client = server.client()
        assert server.faults.send(m.BasicAck(7), channel=1) == 1
        assert client.expect(m.BasicAck) == m.BasicAck(7)
        assert server.recorder is not None
        assert any(getattr(event, "name", "") == "basic.ack" for event in server.recorder.trace().events)

    def test_content_sent_by_the_test_is_received_with_its_properties(self, server: FaultServer) -> None:
        client = server.client()
        server.faults.send(m.BasicDeliver("nobody", 1), channel=1, body=b"1", message_id="m")
        content = client.delivery()
        assert (content.body, content.properties.message_id) == (b"1", "m")

    def test_bytes_sent_by_the_test_go_to_the_named_connection_or_all(self, server: FaultServer) -> None:
        one = server.client(client_properties={"connection_name": "one"})
        two = server.client()
        assert server.faults.send(b"\1\2", connection="one") == 1
        assert (one.take_bytes(), two.take_bytes()) == (b"\1\2", b"")
        assert server.faults.send(b"\3") == 2

    @only_0_9_1
    def test_rule_does_not_fire_on_a_method_sent_by_the_test(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.ack", direction="sent").drop()
        client = server.client()
        server.faults.send(m.BasicAck(7), channel=1)
        client.expect(m.BasicAck)
        assert rule.hits == 0

    def test_channel_flow_fault_sends_flow_off_and_flow_on_when_removed(self, server: FaultServer) -> None:
        client = server.client(channels=2)
        flow = server.faults.channel_flow(channel=2)
        assert client.expect(m.ChannelFlow, 2) == m.ChannelFlow(active=False)
        client.send(m.ChannelFlowOk(active=False), 2)
        flow.remove()
        assert client.expect(m.ChannelFlow, 2) == m.ChannelFlow(active=True)
        client.send(m.ChannelFlowOk(active=True), 2)
        client.expect_nothing()
        assert str(flow) == "clients are told to stop publishing on 1 channel"

    def test_publisher_is_unblocked_after_the_last_alarm_is_removed(self, server: FaultServer) -> None:
        client = server.client(client_properties={"capabilities": {"connection.blocked": True}})
        memory = server.faults.memory_alarm()
        disk = server.faults.disk_alarm("no disk left")
        client.publish(routing_key="q")
        assert client.expect(m.ConnectionBlocked, 0).reason == "no disk left"
        assert not client.connection.reading
        disk.remove()
        client.expect_nothing()
        memory.remove()
        client.expect(m.ConnectionUnblocked, 0)
        assert client.connection.reading
        server.faults.verify()

    @pytest.mark.parametrize("first", ["memory", "disk"])
    def test_the_reason_names_the_resources_of_all_alarms(self, server: FaultServer, first: str) -> None:
        client = server.client(client_properties={"capabilities": {"connection.blocked": True}})
        alarms = [server.faults.memory_alarm, server.faults.disk_alarm]
        [one, other] = [alarm() for alarm in (alarms if first == "memory" else alarms[::-1])]
        client.publish(routing_key="q")
        assert client.expect(m.ConnectionBlocked, 0).reason == "low on disk & memory"
        one.remove()
        client.expect_nothing()
        other.remove()
        client.expect(m.ConnectionUnblocked, 0)
        [again] = [server.faults.disk_alarm()]
        client.publish(routing_key="q")
        assert client.expect(m.ConnectionBlocked, 0).reason == "low on disk"
        again.remove()

    def test_cancel_consumers_cancels_the_consumers_of_a_queue(self, server: FaultServer) -> None:
        client = server.client_with("q", client_properties={"capabilities": {"consumer_cancel_notify": True}})
        client.consume("q", "tag")
        assert server.faults.cancel_consumers("q") == 1
        with pytest.raises(FaultError, match=r"cancel_consumers\('q'\): the queue has no consumer; wait for"):
            server.faults.cancel_consumers("q")
        assert client.expect(m.BasicCancel).consumer_tag == "tag"
