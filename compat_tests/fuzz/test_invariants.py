"""Whatever clients do, over any protocol, the trace has no finding about the broker.

The machines are those of the neighbouring tests, which keep books of all messages. Here their traces are
checked, which know no books.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from compat_tests.fuzz import machine_world as world_0_9_1, test_state_machine as machine_0_9_1
from compat_tests.fuzz.amqp_0_9 import machine_world as world_0_9, test_machine as machine_0_9
from compat_tests.fuzz.amqp_0_10 import machine_world as world_0_10, test_machine as machine_0_10
from compat_tests.fuzz.profile import examples
from fakeamqp.trace import Recorder

CHECKS = ("lost", "duplicates", "answers", "unacked", "unanswered")
LEGAL = ("expired", "maxlen", "unroutable", "delivery_limit", "cycle", "crash", "restart")
"""Why machines lose messages: they ask for it, or have the broker crash with transient messages."""
LEFT = ("left-unacked", "unanswered")
"""What clients leave undone when a machine stops."""


class Both:
    """A tap in front of another one."""

    confirms_singly = False
    intercepts = False

    def __init__(self, first: Any, second: Any) -> None:
        self._taps = first, second

    def __getattr__(self, name: str) -> Any:
        first, second = (getattr(tap, name) for tap in self._taps)

        def call(*values: Any, **more: Any) -> Any:
            first(*values, **more)
            return second(*values, **more)

        return call


def recorded(server: type, recorders: list[Recorder]) -> type:
    """A class of servers that record all."""

    class Recorded(server):  # type: ignore[misc]
        def __init__(self, *values: Any, **more: Any) -> None:
            super().__init__(*values, **more)
            self.recording = self.state.tap = Recorder(self.clock.now, 100_000)
            recorders.append(self.recording)

    return Recorded


def checked(machine: type, recorders: list[Recorder], seen: list[int]) -> type:
    """The machine, with checks in the end."""

    class Checked(machine):  # type: ignore[misc]
        def teardown(self) -> None:
            super().teardown()
            while recorders:
                seen.append(recorders[-1].count)
                findings = recorders.pop().trace().findings(*CHECKS, allow=(*LEGAL, *LEFT))
                assert findings == (), str(findings)

    return Checked


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("machine", "module"),
    [
        (machine_0_10.Machine, world_0_10),
        (machine_0_10.StrictMachine, world_0_10),
        (machine_0_9.Machine, world_0_9),
        (machine_0_9.StrictMachine, world_0_9),
        (machine_0_9_1.Machine, world_0_9_1),
        (machine_0_9_1.SpecMachine, world_0_9_1),
    ],
    ids=lambda each: f"{each.__module__.split('.')[2]}-{each.__name__}" if isinstance(each, type) else "",
)
def test_no_machine_violates_an_invariant(
    machine: type, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorders: list[Recorder] = []
    monkeypatch.setattr(module, "Server", recorded(module.Server, recorders))
    own = world_0_9_1._Tap
    monkeypatch.setattr(world_0_9_1, "_Tap", lambda user: Both(user.server.recording, own(user)))
    seen: list[int] = []
    settings = examples(60, stateful_step_count=50)
    run_state_machine_as_test(checked(machine, recorders, seen), settings=settings)
    assert sum(seen) > 1000, "the machine has done next to nothing"
