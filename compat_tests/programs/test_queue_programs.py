"""Random programs: whatever clients do with queues, the reference foretells what comes of it."""

from __future__ import annotations

import pytest
from hypothesis import given, reject, seed

from compat_tests.fuzz.profile import examples
from compat_tests.programs.check import run_program
from compat_tests.programs.program import Program
from compat_tests.programs.seeds import seed_of
from compat_tests.programs.strategies import programs


def test_random_queue_program_matches_reference(request: pytest.FixtureRequest) -> None:
    chosen = seed_of(request.config)

    @seed(chosen)
    @examples(1000)
    @given(programs())
    def foretold(program: Program) -> None:
        if not run_program(program):
            reject()

    print(f"To draw the same programs again: --hypothesis-seed={chosen}")
    foretold()
