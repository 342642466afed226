"""What the clients have in common that do one thing after another in their own thread."""

from __future__ import annotations

from collections.abc import Callable

from compat_tests.faults.observation import Observation, trouble
from compat_tests.faults.scenario import BODIES, Stage

__all__ = ["TICK", "Direct", "Work"]

TICK = 0.02


class Work:
    """One client's way through the scenario."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.seen = stage, Observation()

    def tried(self, step: str, do: Callable[[], object]) -> bool:
        """Whether it could be done; what it raised is noted."""
        try:
            do()
        except Exception as error:
            self.seen.troubles.append(trouble(step, error))
            return False
        return True

    def published(self, publish: Callable[[str], object], hopeless: Callable[[], bool]) -> bool:
        """Publish each message; False if `hopeless()` after one that could not be published."""
        for body in BODIES:
            if self.tried("publishing", lambda body=body: publish(body)):  # type: ignore[misc]
                self.seen.confirmed.append(body)
            elif hopeless():
                return False
        return True


class Direct(Work):
    """The way of a client that never reconnects, once it is connected."""

    declare: Callable[[], object]
    publish: Callable[[str], object]
    hopeless: Callable[[], bool]
    """Whether the connection or the channel is of no more use."""
    subscribe: Callable[[], object]
    wait: Callable[[float], object]
    """Take messages until the stage says that it is over, or so many times the patience is."""

    def all(self) -> None:
        stage = self.stage
        if not self.tried("declaring", self.declare):
            return
        stage.reached("declared")
        if not self.published(self.publish, self.hopeless):
            return
        stage.reached("published")
        if self.tried("consuming", self.consume) and stage.scenario.waits:
            stage.reached("waiting")
            self.tried("waiting", lambda: self.wait(stage.scenario.patience))

    def consume(self) -> None:
        self.subscribe()
        self.stage.reached("consuming")
        self.wait(1)
