"""No message is lost and none is invented, whatever goes wrong.

Clients do what they may while rules, chaos and the network do what they can; after every step the books are
compared with the broker. See `chaos_world` for the steps and `chaos_books` for what must be so.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from hypothesis import note, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from compat_tests.fuzz.chaos_world import TARGETS, WEIGHTS, World
from compat_tests.fuzz.profile import FACTOR, examples
from fakeamqp.faults import FaultError
from fakeamqp.faults.chaos import FAULTS, PROFILES

MOST = 2**16
NUMBERS = {"who": st.integers(0, 2), "pick": st.integers(0, MOST), "more": st.integers(0, MOST)}


class Machine(RuleBasedStateMachine):
    """Every step is one of `OPERATIONS`; each group has one rule, lest the small ones be crowded out."""

    @initialize(
        chosen=st.lists(st.integers(0, len(TARGETS) - 1), min_size=1, max_size=5, unique=True),
        consumes=st.booleans(),
    )
    def begin(self, chosen: list[int], consumes: bool) -> None:
        self.world = World(tuple(chosen))
        if consumes:
            self.do("consume", 0, 0, 1)

    def do(self, what: str, who: int, pick: int, more: int) -> None:
        try:
            self.world.do(what, who, pick, more)
        except BaseException:
            note(self.world.report())
            raise

    @rule(**NUMBERS)
    def publish(self, who: int, pick: int, more: int) -> None:
        self.do("publish", who, pick, more)

    @rule(**NUMBERS)
    def publish_more(self, who: int, pick: int, more: int) -> None:
        self.do("publish", who, pick, more)

    @rule(**NUMBERS)
    def settle(self, who: int, pick: int, more: int) -> None:
        self.do("settle", who, pick, more)

    @rule(what=st.sampled_from(["consume", "consume", "get", "cancel", "wait", "wait"]), **NUMBERS)
    def take(self, what: str, who: int, pick: int, more: int) -> None:
        self.do(what, who, pick, more)

    @rule(what=st.sampled_from(["rule", "rule", "ending", "network", "at once", "chaos"]), **NUMBERS)
    def fault(self, what: str, who: int, pick: int, more: int) -> None:
        self.do(what, who, pick, more)

    @rule(what=st.sampled_from(["heal", "heal", "rarely", "wait"]), **NUMBERS)
    def now_and_then(self, what: str, who: int, pick: int, more: int) -> None:
        self.do(what, who, pick, more)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.world.tear_down()
            except BaseException:
                note(self.world.report())
                raise


def test_no_message_is_lost_or_invented_under_random_faults() -> None:
    run_state_machine_as_test(Machine, settings=examples(300, stateful_step_count=50))


STEPS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]


def run(program: int, **chaos: Any) -> tuple[World, list[str]]:
    """What a program with this number does under chaos: the world, and the plan without its head."""
    random = Random(program)
    world = World(tuple(random.sample(range(len(TARGETS)), 4)))
    world.chaos = world.faults.chaos(**chaos)
    try:
        for _ in range(int(60 * max(1, FACTOR**0.5))):
            world.do(random.choice(STEPS), *(random.randrange(MOST) for _ in range(3)))
        world.tear_down()
    except BaseException:
        print(world.report())
        raise
    return world, world.chaos.plan.splitlines()[1:]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", [1, 2, "it's three"])
def test_repeated_chaos_plan_gives_the_same_faults_and_history(profile: str, seed: int | str) -> None:
    """Also where only what the plan is about is looked at, and for clients that say no name (c)."""
    world, plan = run(len(profile), seed=seed, profile=profile, intensity=6)
    assert plan
    again, second = run(len(profile), seed=0, plan=world.chaos.plan)
    assert second == plan
    assert again.chaos.plan == world.chaos.plan
    assert again.books.history == world.books.history


@pytest.mark.parametrize("fault", [name for name, kind in FAULTS.items() if kind.happens_in("0-9-1")])
def test_every_fault_happens_and_no_message_is_lost(fault: str) -> None:
    plans = [run(seed, seed=seed, profile={fault: 0.3})[1] for seed in range(4)]
    assert any(plans)
    assert all(f": {fault} (" in line for plan in plans for line in plan)


def test_equal_chaos_seeds_give_equal_plans_and_other_seeds_other_plans() -> None:
    runs = [run(7, seed=seed, profile="hostile", intensity=5)[1] for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_memory_alarm_and_rules_end_with_the_chaos() -> None:
    world = World()
    for peer in world.peers:
        world.bring_back(peer)
    with world.faults.chaos(profile={"alarm": 1.0}) as chaos:
        for peer in world.peers:
            peer.publish(0, 2, persistent=True, mandatory=False, keep=None)
        world.settle()
        assert world.server.state.blocked_reason == "low on memory"
        assert chaos.hits and len(world.faults.rules) > 1
    assert world.server.state.blocked_reason is None
    assert world.faults.rules == ()
    world.tear_down()


def test_mixed_profile_has_all_faults_except_malformed_ones() -> None:
    assert set(PROFILES["mixed"]) == {name for name in FAULTS if not name.startswith("malformed")}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"profile": "netwerk"}, "did you mean 'network'"),
        ({"profile": {"nak": 0.5}}, "did you mean 'nack'"),
        ({"profile": {"nack": 1.5}}, "between 0 and 1, not 1.5"),
        ({"plan": "connection 'a': received basic.publish"}, "line 1 of the plan cannot be read"),
        (
            {"plan": "# seed 1\nconnection 'a': sent confirm number 1 on channel 1: late-confrim"},
            "did you mean 'late-confirm'",
        ),
    ],
)
def test_invalid_chaos_profile_or_plan_raises_fault_error(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(FaultError, match=re.escape(text)):
        World().faults.chaos(**wrong)
