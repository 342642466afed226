"""Every action on what the broker receives."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.unit.faults.server import FaultServer, Publisher, bytes_of, only_0_9_1, publish_bytes
from fakeamqp.faults import FrameGroup
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties


class TestDrop:
    def test_dropped_publish_is_lost_and_not_confirmed(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish", body=b"2").drop()
        publisher.publish(b"1", b"2", b"3")
        assert publisher.confirms == ["ack 1", "ack 3"]
        assert publisher.stored == [b"1", b"3"]

    def test_later_confirms_do_not_cover_a_dropped_publish(self, publisher: Publisher) -> None:
        """Also when no rule is left."""
        rule = publisher.faults.on("basic.publish", body=b"1").drop()
        publisher.publish(b"1")
        rule.remove()
        publisher.client.send_bytes(publish_bytes(b"2", "q") + publish_bytes(b"3", "q"))
        assert publisher.confirms == ["ack 2", "ack 3"]

    def test_dropped_method_is_not_carried_out_or_answered(self, server: FaultServer) -> None:
        server.faults.on("queue.declare").drop().once()
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        client.expect_nothing()
        assert "q" not in server.vhost.queues
        client.declare("q")

    def test_message_with_dropped_ack_is_requeued_when_the_channel_closes(self, server: FaultServer) -> None:
        server.faults.on("basic.ack").drop()
        client = server.client_with("q")
        client.fill("q", b"1")
        client.get("q")
        client.ack(1)
        client.close_channel()
        client.open_channel()
        content = client.get("q")
        assert content is not None
        assert content.method.redelivered


class TestNack:
    def test_publish_is_nacked_after_a_delay(self, server: FaultServer, publisher: Publisher) -> None:
        """Nobody is dealing with input when it is refused; the client is told all the same."""
        server.faults.on("basic.publish", body=b"1").delay(2).nack()
        publisher.publish(b"1", b"2")
        assert publisher.confirms == []
        server.advance(2)
        assert publisher.confirms == ["nack 1", "ack 2"]
        assert publisher.stored == [b"2"]

    def test_duplicates_of_a_publish_get_no_confirm_of_their_own(self, publisher: Publisher) -> None:
        """Copies have no place in the count, whatever becomes of them."""
        publisher.faults.on("basic.publish", body=b"1").duplicate(2).replace(body=b"x").nack()
        publisher.faults.on("basic.publish", body=b"2").duplicate().drop()
        publisher.faults.on("basic.publish", body=b"3").duplicate().return_message()
        publisher.faults.on("basic.publish", body=b"4").duplicate().replace(body=b"y")
        publisher.publish(b"1", b"2", b"3", b"4", b"5")
        returned = [publisher.client.inbox.pop(1) for _ in range(6)]
        assert [frame.method for frame in returned[::3]] == [m.BasicReturn(312, "NO_ROUTE", "", "q")] * 2
        assert publisher.confirms == ["nack 1", "ack 3", "ack 4", "ack 5"]
        assert publisher.stored == [b"y", b"y", b"5"]


class TestReturn:
    def test_returned_publish_comes_back_and_is_confirmed(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").return_message(313, "NO_CONSUMERS").once()
        publisher.publish(b"1", message_id="m")
        content = publisher.client.expect_content(m.BasicReturn)
        assert content.method == m.BasicReturn(313, "NO_CONSUMERS", "", "q")
        assert (content.properties.message_id, content.body) == ("m", b"1")
        assert publisher.confirms == ["ack 1"]
        assert publisher.stored == []

    def test_publish_without_confirms_is_returned(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").return_message()
        client = server.client()
        client.publish(b"1", routing_key="q")
        assert client.expect_content(m.BasicReturn).body == b"1"
        client.expect_nothing()

    def test_publish_is_returned_after_a_delay(self, server: FaultServer, publisher: Publisher) -> None:
        server.faults.on("basic.publish").delay(1).return_message()
        publisher.publish(b"1")
        server.advance(1)
        publisher.client.expect_content(m.BasicReturn)
        assert publisher.confirms == ["ack 1"]


class TestEnds:
    """By channel.close, by connection.close, and by the transport; instead of, before and after."""

    @pytest.mark.parametrize(
        ("when", "stored", "confirms"),
        [("instead", [], []), ("before", [b"1"], []), ("after", [b"1"], ["ack 1"])],
    )
    @pytest.mark.parametrize("end", ["channel", "connection", "fin", "reset"])
    def test_end_on_a_publish_comes_instead_of_it_or_before_or_after_its_confirm(
        self,
        publisher: Publisher,
        end: str,
        when: Any,
        stored: list[bytes],
        confirms: list[str],
    ) -> None:
        rule = publisher.faults.on("basic.publish").once()
        if end == "channel":
            rule.close_channel(406, when=when)
        elif end == "connection":
            rule.close_connection(541, "so it is", when=when)
        else:
            rule.disconnect(end, when)  # type: ignore[arg-type]
        publisher.publish(b"1")
        client = publisher.client
        for expected in confirms:
            assert publisher._words(client.take_frame()) == expected
        if end == "channel":
            close = client.expect_channel_close(406)
            assert close.reply_text == "PRECONDITION_FAILED - a fault that the test asked for"
            assert (close.class_id, close.method_id) == (60, 40)
            client.open_channel()
            client.declare("p")
        elif end == "connection":
            close = client.expect_connection_close(541)
            assert (close.reply_text, close.class_id, close.method_id) == ("so it is", 60, 40)
        else:
            client.expect_silent_end()
        assert publisher.stored == stored

    @pytest.mark.parametrize("when", ["instead", "before", "after"])
    def test_earlier_publishes_are_confirmed_before_close_channel(
        self, publisher: Publisher, when: Any
    ) -> None:
        """Though it came in one go with the publish at fault."""
        publisher.faults.on("basic.publish", body=b"3").close_channel(when=when)
        publisher.client.send_bytes(b"".join(publish_bytes(body, "q") for body in (b"1", b"2", b"3", b"4")))
        close = publisher.client.inbox.pop()
        assert isinstance(close.method, m.ChannelClose)
        told = {"ack 1", "ack 2", "ack 2 multiple", "ack 3", "ack 3 multiple"} & set(publisher.confirms)
        assert ("ack 3" in told or "ack 3 multiple" in told) == (when == "after")
        assert "ack 2 multiple" in told or "ack 3 multiple" in told

    @pytest.mark.parametrize("when", ["instead", "before", "after"])
    def test_close_channel_on_a_declare_comes_instead_of_it_or_before_or_after_its_answer(
        self, server: FaultServer, when: Any
    ) -> None:
        server.faults.on("queue.declare").close_channel(403, when=when).once()
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        if when == "after":
            client.expect(m.QueueDeclareOk)
        client.expect_channel_close(403)
        client.expect_nothing()
        assert ("q" in server.vhost.queues) == (when != "instead")

    def test_close_channel_on_channel_open_comes_instead_of_its_answer(self, server: FaultServer) -> None:
        server.faults.on("channel.open").close_channel(504).once()
        client = server.client(channels=0)
        client.fails(m.ChannelOpen(), 504)
        client.open_channel()

    def test_close_channel_on_a_connection_method_closes_the_connection(self, server: FaultServer) -> None:
        """A rule about anything may ask for the end of a channel where there is none."""
        client = server.client()
        server.faults.on("*").close_channel(504).once()
        client.ends(m.ConnectionClose(), 504, channel=0)

    @pytest.mark.parametrize("how", ["close", "fin"])
    def test_connection_open_is_answered_with_a_close_or_a_disconnect(
        self, server: FaultServer, how: str
    ) -> None:
        rule = server.faults.on("connection.open")
        if how == "close":
            rule.close_connection(530)
        else:
            rule.disconnect()
        client = server.connect()
        client.send_bytes(b"AMQP\0\0\x09\x01")
        client.expect(m.ConnectionStart, 0)
        client.login()
        client.expect(m.ConnectionTune, 0)
        client.send(m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=0), 0)
        client.send(m.ConnectionOpen(virtual_host="/"), 0)
        assert rule.hits == 1
        if how == "close":
            client.expect_connection_close(530)
        else:
            client.expect_silent_end()

    def test_publish_behind_a_disconnect_is_not_stored(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").disconnect()
        publisher.client.send_bytes(publish_bytes(b"1", "q") + publish_bytes(b"2", "q"))
        assert publisher.stored == []


class TestCrash:
    @pytest.mark.parametrize(
        ("when", "stored", "confirms"),
        [("instead", [], []), ("before", [], []), ("after", [b"1"], ["ack 1"])],
    )
    def test_persistent_publish_survives_a_crash_only_after_its_confirm(
        self, server: FaultServer, when: Any, stored: list[bytes], confirms: list[str]
    ) -> None:
        """Before its answer: what was not confirmed is lost. After it: what was confirmed is there."""
        server.faults.on("basic.publish").crash(when=when).once()
        client = server.client()
        client.declare("q", durable=True)
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        client.publish(b"1", routing_key="q", delivery_mode=2)
        client.publish(b"unheard", routing_key="q", delivery_mode=2)
        assert len(client.inbox) == len(confirms)
        assert server.restarts == []
        server.settle()
        assert server.restarts == [(True, True)]
        assert client.closed
        assert server.client().empty("q") == stored

    @pytest.mark.parametrize(("when", "bodies"), [("instead", []), ("before", [b"1"]), ("after", [b"1"])])
    def test_consumer_gets_the_message_of_a_publish_carried_out_before_a_crash(
        self, server: FaultServer, when: Any, bodies: list[bytes]
    ) -> None:
        consumer = server.client()
        consumer.declare("q", durable=True)
        consumer.consume("q")
        server.faults.on("basic.publish").crash(when=when).once()
        server.client().publish(b"1", routing_key="q", delivery_mode=2)
        assert consumer.bodies() == bodies

    def test_crash_with_durable_false_loses_durable_queues(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").crash(durable=False)
        client = server.client()
        client.declare("q", durable=True)
        client.publish(routing_key="q")
        server.settle()
        assert server.restarts == [(True, False)]
        assert "q" not in server.vhost.queues

    def test_rules_survive_a_crash(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").crash().once()
        server.faults.on("basic.publish").nack()
        server.client().publish(routing_key="q")
        server.settle()
        publisher = server.publisher()
        publisher.publish(b"1")
        assert publisher.confirms == ["nack 1"]


class TestRefuseLogin:
    def test_refused_login_sends_close_403_to_a_client_with_the_capability(self, server: FaultServer) -> None:
        server.faults.on("connection.start-ok").refuse_login("no way").once()
        client = server.connect()
        client.send_bytes(b"AMQP\0\0\x09\x01")
        client.expect(m.ConnectionStart, 0)
        client.login(client_properties={"capabilities": {"authentication_failure_close": True}})
        assert client.expect_connection_close(403).reply_text == "ACCESS_REFUSED - no way"
        server.client()

    def test_refused_login_ends_the_connection_of_a_client_without_the_capability(
        self, server: FaultServer
    ) -> None:
        server.faults.on("connection.start-ok").refuse_login()
        client = server.connect()
        client.send_bytes(b"AMQP\0\0\x09\x01")
        client.expect(m.ConnectionStart, 0)
        client.login()
        client.expect_silent_end()


class TestDelay:
    def test_delayed_publish_delays_later_methods_of_its_channel(self, server: FaultServer) -> None:
        server.faults.on("basic.publish", body=b"1").delay(5)
        publisher = server.publisher()
        publisher.publish(b"1", b"2")
        publisher.client.send(m.QueueDeclare(queue="q", passive=True))
        server.advance(4.9)
        publisher.client.expect_nothing()
        server.advance(0.1)
        assert publisher._words(publisher.client.inbox.pop(0)) == "ack 1"
        assert publisher._words(publisher.client.inbox.pop(0)) == "ack 2"
        assert publisher.client.expect(m.QueueDeclareOk).message_count == 2

    def test_delayed_publishes_wait_one_after_another(self, server: FaultServer) -> None:
        """Since a channel is in order."""
        server.faults.on("basic.publish").delay(1)
        publisher = server.publisher()
        publisher.publish(b"1", b"2", b"3")
        for expected in ("ack 1", "ack 2", "ack 3"):
            server.advance(1)
            assert publisher.confirms == [expected]

    def test_delayed_publish_does_not_delay_other_channels(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").delay(5)
        client = server.client(channels=2)
        client.publish(routing_key="q", channel=1)
        client.declare("q", channel=2)

    def test_jitter_of_a_delay_is_drawn_by_the_seed(self) -> None:
        def due() -> list[float]:
            server = FaultServer()
            server.faults.on("basic.publish").delay(1, jitter=2)
            client = server.client(channels=5)
            for channel in range(1, 6):
                client.publish(routing_key="q", channel=channel)
            labels = [
                timer.due - server.clock.now()
                for timer in server.state.timers.pending()
                if timer.words == "fault: basic.publish goes on"
            ]
            assert all(1 <= each <= 3 for each in labels)
            return labels

        assert due() == due()
        assert len(set(due())) == 5

    def test_publish_with_a_delay_of_zero_is_confirmed(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").delay(0)
        publisher.publish(b"1")
        assert publisher.confirms == ["ack 1"]


class TestHold:
    def test_held_publishes_pass_when_released(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish").hold()
        publisher.publish(b"1", b"2")
        assert (rule.held, rule.hits, publisher.stored) == (1, 1, [])
        assert rule.release() == 2
        assert publisher.confirms == ["ack 1", "ack 2"]
        assert rule.held == 0

    def test_release_of_a_count_releases_that_many_publishes(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish").hold()
        publisher.publish(b"1", b"2", b"3")
        assert rule.release(1) == 1
        assert publisher.confirms == ["ack 1"]
        assert rule.held == 1
        assert rule.release(2) == 2
        assert publisher.confirms == ["ack 2", "ack 3"]
        assert rule.release() == 0

    def test_release_in_reverse_starts_with_the_latest_publish(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.publish").hold()
        client = server.client_with("q", channels=3)
        for channel in (1, 2, 3):
            client.publish(b"%d" % channel, routing_key="q", channel=channel)
        rule.release(1, reverse=True)
        rule.release(reverse=True)
        assert client.empty("q") == [b"3", b"2", b"1"]

    def test_actions_after_hold_are_carried_out_on_release(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish").hold().nack()
        publisher.publish(b"1")
        assert publisher.confirms == []
        rule.release()
        assert publisher.confirms == ["nack 1"]

    def test_publish_held_twice_needs_two_releases(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish").hold().hold()
        publisher.publish(b"1")
        assert (rule.release(), rule.held) == (1, 1)
        assert publisher.confirms == []
        assert (rule.release(), rule.held) == (1, 0)
        assert publisher.confirms == ["ack 1"]

    def test_publish_behind_a_held_publish_can_be_held_by_another_rule(self, publisher: Publisher) -> None:
        one = publisher.faults.on("basic.publish", body=b"1").hold()
        two = publisher.faults.on("basic.publish", body=b"2").hold()
        publisher.publish(b"1", b"2", b"3")
        assert (one.held, two.held) == (1, 0)
        one.release()
        assert (one.held, two.held) == (0, 1)
        assert publisher.confirms == ["ack 1"]
        two.release()
        assert publisher.confirms == ["ack 2", "ack 3"]

    def test_release_of_a_confirm_does_not_release_held_publishes(self, publisher: Publisher) -> None:
        """Although both are on one channel."""
        publishes = publisher.faults.on("basic.publish", body=b"2").hold()
        confirms = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2", b"3")
        assert confirms.release() == 1
        assert publisher.confirms == ["ack 1"]
        assert publisher.stored == [b"1"]
        publishes.release()
        confirms.release()
        assert publisher.confirms == ["ack 2", "ack 3"]


class TestDuplicate:
    def test_duplicated_publish_is_stored_several_times_and_confirmed_once(
        self, publisher: Publisher
    ) -> None:
        publisher.faults.on("basic.publish", body=b"1").duplicate(2)
        publisher.publish(b"1", b"2")
        assert publisher.stored == [b"1", b"1", b"1", b"2"]
        assert publisher.confirms == ["ack 1", "ack 2"]

    def test_duplicated_publish_without_confirms_is_stored_twice(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").duplicate()
        client = server.client_with("q")
        client.publish(routing_key="q")
        assert client.count("q") == 2

    def test_duplicated_publish_in_a_transaction_is_stored_twice_on_commit(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").duplicate()
        client = server.client_with("q")
        client.call(m.TxSelect(), m.TxSelectOk)
        client.publish(routing_key="q")
        assert server.client().count("q") == 0
        client.call(m.TxCommit(), m.TxCommitOk)
        assert client.count("q") == 2

    def test_duplicated_method_is_answered_twice(self, server: FaultServer) -> None:
        server.faults.on("queue.declare").duplicate()
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        client.expect(m.QueueDeclareOk)
        client.expect(m.QueueDeclareOk)


class TestReplace:
    def test_publish_is_stored_with_its_replaced_routing_key_body_and_properties(
        self, server: FaultServer
    ) -> None:
        server.faults.on("basic.publish").replace(
            routing_key="q",
            body=lambda body: body.upper(),
            message_id=lambda old: f"{old}!",
            properties={"type": "t"},
        )
        publisher = server.publisher()
        publisher.publish(b"body", routing_key="nowhere", message_id="m", content_type="text/plain")
        got = server.client().get("q")
        assert got is not None
        assert (got.method.routing_key, got.body) == ("q", b"BODY")
        assert got.properties == BasicProperties(message_id="m!", type="t", content_type="text/plain")
        assert publisher.confirms == ["ack 1"]

    def test_replaced_body_may_be_larger_than_a_frame(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").replace(body=b"x" * 20_000)
        publisher = server.publisher(frame_max=8192)
        publisher.publish(b"small")
        assert publisher.stored == [b"x" * 20_000]

    def test_body_and_headers_can_be_replaced_by_empty_values(self, server: FaultServer) -> None:
        server.faults.on("basic.publish").replace(body="", headers=None)
        publisher = server.publisher()
        publisher.publish(b"body", headers={"a": 1})
        got = server.client().get("q")
        assert got is not None
        assert (got.body, got.properties) == (b"", BasicProperties())

    def test_field_is_replaced_only_in_methods_that_have_it(self, server: FaultServer) -> None:
        server.faults.on("queue.declare", "exchange.declare").replace(type="fanout")
        client = server.client_with("q")
        client.call(m.ExchangeDeclare(exchange="e", type="direct"), m.ExchangeDeclareOk)
        assert server.vhost.exchanges["e"].type_name == "fanout"

    def test_replaced_field_on_a_heartbeat_is_no_error(self, server: FaultServer) -> None:
        rule = server.faults.on("heartbeat", "queue.declare").replace(queue="other")
        client = server.client()
        client.send_frame(8, 0, b"")
        client.declare("q")
        assert (rule.hits, rule.error) == (2, None)
        assert list(server.vhost.queues) == ["other"]

    @pytest.mark.parametrize("channel", [2, lambda channel: channel + 1])
    def test_method_with_replaced_channel_is_answered_on_that_channel(
        self, server: FaultServer, channel: Any
    ) -> None:
        server.faults.on("queue.declare", channel=1).replace(channel=channel)
        client = server.client(channels=2)
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk, 2)
        client.send(m.QueueDeclare(queue="q"), channel=1)
        client.expect(m.QueueDeclareOk, channel=2)


class TestCall:
    @only_0_9_1
    def test_function_gets_the_publish_and_the_publish_passes(self, publisher: Publisher) -> None:
        seen: list[FrameGroup] = []
        publisher.faults.on("basic.publish").call(seen.append)
        publisher.publish(b"1", message_id="m")
        assert publisher.confirms == ["ack 1"]
        (group,) = seen
        assert (group.name, group.channel, group.direction) == ("basic.publish", 1, "received")
        assert (group.method, group.body) == (m.BasicPublish(routing_key="q"), b"1")
        assert group.properties == BasicProperties(message_id="m")
        assert str(group) == "basic.publish exchange='' routing_key='q'"
        assert repr(group) == (
            "<basic.publish exchange='' routing_key='q' received on 127.0.0.1:50001 -> 127.0.0.1:0 channel 1>"
        )

    def test_function_may_make_and_remove_rules(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("basic.publish").once()

        def change(group: FrameGroup) -> None:
            rule.remove()
            publisher.faults.on("basic.publish").nack()

        rule.call(change)
        publisher.publish(b"1", b"2")
        assert publisher.confirms == ["ack 1", "nack 2"]

    def test_function_may_remove_the_last_rule(self, publisher: Publisher) -> None:
        """What it was called with is not lost thereby, received or sent."""
        received = publisher.faults.on("basic.publish")
        received.call(lambda group: received.remove())
        publisher.publish(b"1")
        assert publisher.confirms == ["ack 1"]
        sent = publisher.faults.on("confirm")
        sent.call(lambda group: sent.remove())
        publisher.publish(b"2")
        assert publisher.confirms == ["ack 2"]
        half = publisher.faults.on("basic.publish", part="header")
        half.call(lambda group: half.remove())
        publisher.publish(b"3")
        assert publisher.confirms == ["ack 3"]
        assert publisher.stored == [b"1", b"2", b"3"]

    def test_function_may_release_a_publish_held_on_another_connection(self, server: FaultServer) -> None:
        """Those are not being dealt with, so nobody else would send their confirms."""
        held = server.faults.on("basic.publish", connection="one").hold()
        server.faults.on("queue.declare", queue="go").call(lambda group: held.release())
        one = server.publisher(client_properties={"connection_name": "one"})
        one.publish(b"1")
        server.client().declare("go")
        assert one.confirms == ["ack 1"]


class TestSeveralActions:
    def test_actions_are_carried_out_in_the_order_of_their_calls(self, publisher: Publisher) -> None:
        seen: list[bytes] = []
        publisher.faults.on("basic.publish").replace(body=b"one").call(
            lambda group: seen.append(group.body)
        ).duplicate()
        publisher.publish(b"1")
        assert (seen, publisher.stored) == ([b"one"], [b"one", b"one"])

    def test_nack_is_sent_before_the_close_of_the_connection(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").nack().close_connection(320, when="after")
        publisher.publish(b"1")
        assert publisher._words(publisher.client.take_frame()) == "nack 1"
        publisher.client.expect_connection_close(320)

    def test_return_and_confirm_are_sent_before_the_disconnect(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").return_message().disconnect(when="after")
        publisher.publish(b"1")
        publisher.client.expect_content(m.BasicReturn)
        assert publisher._words(publisher.client.take_frame()) == "ack 1"
        assert publisher.client.closed

    def test_delayed_method_closes_its_channel_after_the_delay(self, server: FaultServer) -> None:
        server.faults.on("queue.declare").delay(1).close_channel(405)
        client = server.client()
        client.send(m.QueueDeclare(queue="q"))
        client.expect_nothing()
        server.advance(1)
        client.expect_channel_close(405)


class TestPart:
    def header(self, size: int) -> bytes:
        return bytes_of((2, CONTENT_HEADER.pack(60, 0, size) + b"\0\0"))

    @pytest.mark.parametrize("size", [0, 4])
    def test_disconnect_on_the_header_part_comes_before_the_body(
        self, server: FaultServer, size: int
    ) -> None:
        rule = server.faults.on("basic.publish", part="header").disconnect()
        client = server.client()
        client.send(m.BasicPublish(routing_key="q"))
        assert rule.hits == 0
        client.send_bytes(self.header(size))
        assert rule.hits == 1
        client.expect_silent_end()

    def test_delay_on_the_header_part_delays_the_publish(self, server: FaultServer) -> None:
        server.faults.on("basic.publish", part="header").delay(1)
        publisher = server.publisher()
        publisher.publish(b"12345678", frame_size=3)
        assert publisher.stored == []
        server.advance(1)
        assert publisher.stored == [b"12345678"]
        assert publisher.confirms == ["ack 1"]

    def test_rule_about_the_header_part_considers_properties(self, server: FaultServer) -> None:
        rule = server.faults.on("basic.publish", part="header", message_id="m").close_channel()
        client = server.client()
        client.publish(b"1", message_id="n")
        assert rule.hits == 0
        client.publish(b"1", message_id="m")
        client.expect_channel_close(406)

    def test_rules_without_actions_about_the_header_and_the_publish_both_fire(
        self, publisher: Publisher
    ) -> None:
        half = publisher.faults.on("basic.publish", part="header")
        whole = publisher.faults.on("basic.publish")
        publisher.publish(b"1")
        assert (half.hits, whole.hits, publisher.confirms) == (1, 1, ["ack 1"])
