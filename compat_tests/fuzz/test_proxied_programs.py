"""Random programs through a proxy with random faults: each side can explain all that it gets.

See `proxied_legs` for what is checked, and `proxied_world` for what goes wrong.
"""

from __future__ import annotations

import gc
from random import Random

from hypothesis import given, strategies as st

from compat_tests.differential.script import ack, consume, get, publish, queue
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.proxied_world import TROUBLES, Trouble, run
from compat_tests.programs.program import CONFIRMS, Program
from compat_tests.programs.strategies import programs

_WEIGHTS = {"rule": 6, "ending": 3, "network": 2, "at once": 1, "heal": 4, "stall": 2, "vanish": 1}
_KINDS = [kind for kind in TROUBLES for _ in range(_WEIGHTS.get(kind, 1))]
_MOST = 2520
# Sampled, because Hypothesis draws the ends of a range of integers more often than the rest.
_NUMBERS = st.sampled_from(range(_MOST))
TROUBLE = st.builds(Trouble, st.sampled_from(range(30)), st.sampled_from(_KINDS), _NUMBERS, _NUMBERS)


@examples(1000)
@given(programs(), st.lists(TROUBLE, min_size=4, max_size=20))
def test_frames_on_both_legs_of_a_proxy_are_explained_under_random_faults(
    program: Program, troubles: list[Trouble]
) -> None:
    run(program, troubles)


def test_proxy_keeps_no_connection_after_its_end() -> None:
    random = Random(1)
    program = [queue(), consume(), publish(ch=CONFIRMS), get(no_ack=0), ack(1)] * 8
    troubles = [
        Trouble(before, kind, random.randrange(_MOST), random.randrange(_MOST))
        for before, kind in enumerate(_KINDS * 2)
    ]
    world = run(program, troubles)
    assert len(world.server.proxied) > 2
    gc.collect()
    assert [each() for each in world.server.proxied] == [None] * len(world.server.proxied)
