"""When a rule fires, and which one does where several could."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.unit.faults.server import FaultServer, Publisher
from fakeamqp.faults import FaultError, Faults, Rule


def nacked(server: FaultServer, trigger: Callable[[Rule], Any], count: int = 8) -> list[int]:
    """Which of so many publishes a rule with that trigger refuses, from 1."""
    rule = server.faults.on("basic.publish")
    trigger(rule)
    rule.nack()
    publisher = server.publisher()
    publisher.publish(*[b"x"] * count)
    return [number for number, said in enumerate(publisher.confirms, 1) if said.startswith("nack")]


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (lambda rule: rule, [1, 2, 3, 4, 5, 6, 7, 8]),
        (lambda rule: rule.once(), [1]),
        (lambda rule: rule.times(3), [1, 2, 3]),
        (lambda rule: rule.on_call(4), [4]),
        (lambda rule: rule.after(6), [7, 8]),
        (lambda rule: rule.after(0), [1, 2, 3, 4, 5, 6, 7, 8]),
        (lambda rule: rule.after(2).times(2), [3, 4]),
        (lambda rule: rule.after(2).once(), [3]),
        (lambda rule: rule.with_probability(0), []),
        (lambda rule: rule.with_probability(1).times(2), [1, 2]),
    ],
)
def test_rule_fires_on_the_calls_that_its_trigger_selects(
    server: FaultServer, trigger: Callable[[Rule], Any], expected: list[int]
) -> None:
    assert nacked(server, trigger) == expected


def test_trigger_may_be_given_after_an_action(publisher: Publisher) -> None:
    publisher.faults.on("basic.publish").nack().after(1).once()
    publisher.publish(b"1", b"2", b"3")
    assert publisher.confirms == ["ack 1", "nack 2", "ack 3"]


class TestProbability:
    def test_seed_decides_on_which_calls_a_probability_fires(self) -> None:
        def drawn(seed: object) -> list[int]:
            server = FaultServer()
            server.state.seed = seed  # type: ignore[assignment]
            return nacked(server, lambda rule: rule.with_probability(0.5), 40)

        assert drawn(1) == drawn(1)
        assert drawn(1) != drawn(2)
        assert drawn(1)[:5] == [3, 6, 7, 11, 12], "the same in every release"
        assert 5 < len(drawn(1)) < 35

    def test_rules_with_a_probability_draw_independently(self, publisher: Publisher) -> None:
        """Another rule in front changes nothing about what one draws, only how many were made before."""
        one = publisher.faults.on("basic.publish").with_probability(0.5)
        other = publisher.faults.on("basic.publish").with_probability(0.5)
        drawn: list[tuple[int, int]] = []
        for _ in range(40):
            publisher.publish(b"x")
            drawn.append((one.hits, other.hits))
        assert len({first == second for first, second in drawn}) == 2

    def test_probability_draws_the_same_again_after_clear(self, server: FaultServer) -> None:
        def hits() -> int:
            server.faults.clear()
            rule = server.faults.on("basic.publish").with_probability(0.5)
            pattern = 0
            for _ in range(30):
                publisher.publish(b"x")
                pattern = pattern * 2 + rule.hits
            return pattern

        publisher = server.publisher()
        assert hits() == hits()


class TestSeveral:
    def test_only_the_first_rule_that_fires_acts_on_a_publish(self, publisher: Publisher) -> None:
        first = publisher.faults.on("basic.publish", body=b"1").nack()
        second = publisher.faults.on("basic.publish").drop()
        publisher.publish(b"1", b"2")
        assert (first.hits, second.hits) == (1, 1)
        assert publisher.confirms == ["nack 1"]

    def test_publish_goes_to_the_next_rule_after_the_first_is_used_up(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").nack().once()
        publisher.faults.on("basic.publish").duplicate()
        publisher.publish(b"1", b"2")
        assert publisher.confirms == ["nack 1", "ack 2"]
        assert publisher.stored == [b"2", b"2"]

    def test_rule_without_action_leaves_the_publish_to_the_next_rule(self, publisher: Publisher) -> None:
        spy = publisher.faults.on("basic.publish")
        rule = publisher.faults.on("basic.publish").nack()
        publisher.publish(b"1", b"2")
        assert (spy.hits, rule.hits) == (2, 2)
        assert publisher.confirms == ["nack 1", "nack 2"]

    def test_publish_taken_by_an_earlier_rule_is_no_call_of_a_later_rule(self, publisher: Publisher) -> None:
        publisher.faults.on("basic.publish").nack().times(2)
        later = publisher.faults.on("basic.publish").drop().on_call(2)
        publisher.publish(b"1", b"2", b"3", b"4")
        assert (later.calls, later.hits) == (2, 1)
        assert publisher.confirms == ["nack 1", "nack 2", "ack 3"]


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda rule: rule.times(0), "times takes a whole number from 1 on, not 0"),
        (lambda rule: rule.times(True), "times takes a whole number from 1 on, not True"),
        (lambda rule: rule.on_call(0), "on_call takes a whole number from 1 on, not 0"),
        (lambda rule: rule.after(-1), "after takes a whole number from 0 on, not -1"),
        (lambda rule: rule.with_probability(1.01), "a probability is between 0 and 1, not 1.01"),
        (lambda rule: rule.delay(-1), "a delay is a number of seconds from 0 on, not -1"),
        (lambda rule: rule.delay(1, jitter=-2), "a jitter is a number of seconds from 0 on, not -2"),
        (lambda rule: rule.duplicate(0), "duplicate takes a whole number from 1 on, not 0"),
        (lambda rule: rule.release(-1), "release takes a whole number from 0 on, not -1"),
        (lambda rule: rule.wait(0), "wait for at least one hit: wait(1), not wait(0)"),
    ],
)
def test_invalid_number_of_a_trigger_or_action_is_an_error(
    faults: Faults, ask: Callable[[Rule], Any], text: str
) -> None:
    with pytest.raises(FaultError) as caught:
        ask(faults.on("basic.publish"))
    assert str(caught.value) == text
