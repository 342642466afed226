"""Confirms under control: numbers stay right, whatever rules do to publishes and confirms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.faults.server import FaultServer, Publisher, publish_bytes
from fakeamqp.faults import Faults, FrameGroup, Rule
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


class TestMultiple:
    def test_held_confirms_are_released_as_one_multiple_ack(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2", b"3")
        assert rule.release(multiple=True) == 3
        assert publisher.confirms == ["ack 3 multiple"]

    def test_multiple_release_covers_the_given_count_of_confirms(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2", b"3", b"4", b"5")
        rule.release(2, multiple=True)
        rule.release(1, multiple=True)
        rule.release(multiple=True)
        assert publisher.confirms == ["ack 2 multiple", "ack 3", "ack 5 multiple"]

    def test_multiple_release_on_a_closed_channel_sends_no_confirm(self, publisher: Publisher) -> None:
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2")
        publisher.client.close_channel()
        assert rule.release(multiple=True) == 2
        assert publisher.confirms == []

    def test_multiple_release_sends_one_confirm_per_channel(self, server: FaultServer) -> None:
        rule = server.faults.on("confirm").hold()
        client = server.client_with("q", channels=2)
        for channel in (1, 2):
            client.call(m.ConfirmSelect(), m.ConfirmSelectOk, channel)
            client.publish(routing_key="q", channel=channel)
            client.publish(routing_key="q", channel=channel)
        rule.release(multiple=True)
        assert [(frame.channel, frame.method) for frame in client.inbox] == [
            (1, m.BasicAck(2, multiple=True)),
            (2, m.BasicAck(2, multiple=True)),
        ]

    def test_multiple_confirm_does_not_cover_publishes_with_the_opposite_verdict(
        self, server: FaultServer
    ) -> None:
        rule = server.faults.on("confirm").hold()
        publisher = server.publisher("full")
        client = publisher.client
        client.call(
            m.QueueDeclare(queue="tight", arguments={"x-max-length": 1, "x-overflow": "reject-publish"}),
            m.QueueDeclareOk,
        )
        for key in ("full", "tight", "tight", "full", "full", "tight", "tight"):
            client.publish(routing_key=key)
        assert rule.release(multiple=True) == 7
        assert publisher.confirms == ["ack 2 multiple", "nack 3", "ack 5 multiple", "nack 7"]

    def test_multiple_confirm_does_not_cover_a_dropped_publish(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish", body=b"2").drop()
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2", b"3", b"4")
        rule.release(multiple=True)
        assert publisher.confirms == ["ack 1", "ack 3", "ack 4"]

    def test_multiple_confirm_does_not_cover_a_dropped_confirm(self, publisher: Publisher) -> None:
        publisher.faults.on("confirm", body=b"3").drop()
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2", b"3", b"4", b"5")
        rule.release(multiple=True)
        assert publisher.confirms == ["ack 2 multiple", "ack 4", "ack 5"]

    def test_multiple_confirm_does_not_cover_a_confirm_held_by_another_rule(
        self, publisher: Publisher
    ) -> None:
        other = publisher.faults.on("confirm", body=b"1").hold()
        rule = publisher.faults.on("confirm").hold()
        publisher.publish(b"1", b"2", b"3")
        rule.release(multiple=True)
        assert publisher.confirms == ["ack 2", "ack 3"]
        other.release(multiple=True)
        assert publisher.confirms == ["ack 1"]

    def test_confirms_held_on_other_channels_do_not_limit_a_multiple_confirm(
        self, server: FaultServer
    ) -> None:
        """On another channel, and on another connection."""
        publisher, elsewhere = server.publisher(), server.publisher()
        publisher.client.call(m.ChannelOpen(), m.ChannelOpenOk, channel=2)
        publisher.client.call(m.ConfirmSelect(), m.ConfirmSelectOk, channel=2)
        others = server.faults.on("confirm").times(2).hold()
        publisher.client.publish(b"other", routing_key="q", channel=2)
        elsewhere.publish(b"elsewhere")
        rule = server.faults.on("confirm").after(1).hold()
        publisher.publish(b"1", b"2", b"3", b"4")
        assert (others.held, rule.held, publisher.confirms) == (2, 3, ["ack 1"])
        rule.release(multiple=True)
        assert publisher.confirms == ["ack 4 multiple"]

    def test_publish_lost_on_a_closed_channel_does_not_limit_a_multiple_confirm(
        self, publisher: Publisher
    ) -> None:
        publisher.faults.on("basic.publish", body=b"lost").drop()
        rule = publisher.faults.on("confirm", body=b"held").hold()
        publisher.publish(b"1", b"lost")
        assert publisher.confirms == ["ack 1"]
        client = publisher.client
        client.call(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk)
        client.call(m.ChannelOpen(), m.ChannelOpenOk)
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        publisher.publish(b"held", b"2", b"held")
        assert publisher.confirms == ["ack 2"]
        rule.release(multiple=True)
        assert publisher.confirms == ["ack 3 multiple"]


class TestWithoutRules:
    def test_confirms_are_combined_after_a_confirm_rule_is_removed(self, publisher: Publisher) -> None:
        publisher.faults.on("confirm").drop().remove()
        publisher.client.send_bytes(publish_bytes(b"1", "q") * 3)
        assert publisher.confirms == ["ack 3 multiple"]

    def test_rule_that_only_calls_leaves_confirms_combined(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").call(lambda group: None)
        publisher.client.send_bytes(publish_bytes(b"1", "q") * 3)
        assert publisher.confirms == ["ack 3 multiple"]

    def test_confirms_are_combined_if_their_rule_is_removed_before_they_are_sent(
        self, publisher: Publisher
    ) -> None:
        """It was there when the publishes came and is not when they are confirmed."""
        rule = publisher.faults.on("confirm").hold()
        spy = publisher.faults.on("basic.publish", body=b"2")
        spy.call(lambda group: rule.remove())
        publisher.client.send_bytes(b"".join(publish_bytes(body, "q") for body in (b"1", b"2", b"3")))
        assert publisher.confirms == ["ack 3 multiple"]


class TestStreamsAndQuorumQueues:
    def test_confirms_of_a_quorum_queue_are_held_and_released_as_multiple(self, server: FaultServer) -> None:
        rule = server.faults.on("confirm", queue="quorum").hold()
        client = server.client()
        client.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
        client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        client.fill("quorum", b"1", b"2")
        assert rule.held == 2
        rule.release(multiple=True)
        assert client.expect(m.BasicAck) == m.BasicAck(2, multiple=True)


Note: TypeAlias = "Callable[[str], Callable[[FrameGroup], object]]"
"""Makes a function that notes of the publishes at hand what is to become of them."""

RULES: dict[str, Callable[[Faults, Note], Rule]] = {
    "drop": lambda faults, note: faults.on("basic.publish").call(note("nothing")).drop(),
    "nack": lambda faults, note: faults.on("basic.publish").call(note("nack")).nack(),
    "return": lambda faults, note: faults.on("basic.publish").return_message(),
    "duplicate": lambda faults, note: faults.on("basic.publish").duplicate().replace(priority=1),
    "duplicate, nack": lambda faults, note: faults.on("basic.publish").duplicate(2).call(note("nack")).nack(),
    "delay": lambda faults, note: faults.on("basic.publish").delay(1),
    "delay, drop": lambda faults, note: faults.on("basic.publish").delay(1).call(note("nothing")).drop(),
    "hold": lambda faults, note: faults.on("basic.publish").hold(),
    "hold, nack": lambda faults, note: faults.on("basic.publish").hold().call(note("nack")).nack(),
    "half": lambda faults, note: faults.on("basic.publish", part="header").delay(1),
    "lost confirm": lambda faults, note: faults.on("confirm").call(note("nothing")).drop(),
    "false nack": lambda faults, note: faults.on("confirm").call(note("nack")).nack(),
    "held confirm": lambda faults, note: faults.on("confirm").hold(),
    "late confirm": lambda faults, note: faults.on("confirm").delay(1),
    "late nack": lambda faults, note: faults.on("confirm").delay(2).call(note("nack")).nack(),
    "late lost confirm": lambda faults, note: faults.on("confirm").delay(1).call(note("nothing")).drop(),
}

_STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(1, 4)),
    st.tuples(st.just("publish at once"), st.integers(1, 4)),
    st.tuples(st.just("rule"), st.tuples(st.sampled_from(sorted(RULES)), st.integers(0, 3))),
    st.tuples(st.just("remove"), st.integers(0, 5)),
    st.tuples(st.just("advance"), st.sampled_from([0.5, 1.0, 2.0])),
    st.tuples(
        st.just("release"),
        st.tuples(st.integers(0, 5), st.sampled_from([None, 1, 2]), st.booleans(), st.booleans()),
    ),
)


@examples(300)
@given(st.lists(_STEPS, max_size=25))
def test_every_publish_is_confirmed_once_as_the_rules_decide(steps: list[tuple[str, Any]]) -> None:
    """Once, by its own number; one that a rule has lost gets none, also not along with another."""
    server = FaultServer(trace=False)
    publisher = server.publisher()
    expected: dict[bytes, str] = {}
    rules: list[Rule] = []

    def note(verdict: str) -> Callable[[FrameGroup], object]:
        def of(group: FrameGroup) -> None:
            for each in group.settles or (group,):
                expected[each.body] = verdict

        return of

    for step, what in steps:
        if step.startswith("publish"):
            bodies = [b"%d" % (len(expected) + number) for number in range(1, what + 1)]
            expected.update(dict.fromkeys(bodies, "ack"))
            octets = [publish_bytes(body, "q") for body in bodies]
            for each in octets if step == "publish" else [b"".join(octets)]:
                publisher.client.send_bytes(each)
        elif step == "rule":
            rules.append(RULES[what[0]](server.faults, note))
            if what[1]:
                rules[-1].times(what[1])
        elif step == "remove" and rules:
            rules.pop(what % len(rules)).remove()
        elif step == "advance":
            server.advance(what)
        elif step == "release" and rules:
            rule = rules[what[0] % len(rules)]
            multiple = what[3] and rule._subject.confirms
            rule.release(what[1], reverse=what[2] and not multiple, multiple=multiple)
    server.faults.raise_errors()
    server.faults.clear()
    server.advance(10)
    # One more, without faults: what was wrongly left open would be confirmed with it.
    publisher.publish(b"last")
    expected[b"last"] = "ack"

    confirmed: dict[int, str] = {}
    for method in (frame.method for frame in publisher.client.inbox):
        if isinstance(method, (m.BasicAck, m.BasicNack)):
            tag = method.delivery_tag
            assert tag not in confirmed
            covered = range(1, tag + 1) if method.multiple else (tag,)
            verdict = "ack" if isinstance(method, m.BasicAck) else "nack"
            confirmed.update({each: verdict for each in covered if each not in confirmed})
    wanted = dict(enumerate(expected.values(), 1))
    assert confirmed == {tag: verdict for tag, verdict in wanted.items() if verdict != "nothing"}
