"""No message is lost and none is invented, whatever goes wrong.

Clients do what they may while rules, chaos and the network do what they can; after every step the books are
compared with the broker. See `chaos_world` for the steps and `chaos_books` for what must be so.
"""

from __future__ import annotations

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from compat_tests.fuzz.chaos_world import TARGETS, World
from compat_tests.fuzz.profile import examples

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


def test_no_message_is_lost_and_none_invented() -> None:
    run_state_machine_as_test(Machine, settings=examples(60, stateful_step_count=50))
