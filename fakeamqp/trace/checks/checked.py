"""Checks of a running broker: in the course of a test, and at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from fakeamqp.trace.checks.finding import INCOMPLETE, Finding, Findings
from fakeamqp.trace.checks.findings import allowed, chosen, of_rows
from fakeamqp.trace.checks.invariants import Invariants
from fakeamqp.trace.errors import CheckFailed, TraceIncomplete

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from fakeamqp.trace.checks.finding import Allow
    from fakeamqp.trace.recorder import Recorder

__all__ = ["Checked"]

T = TypeVar("T")


class Running(Protocol):
    """What `Checked` needs of the broker."""

    def inside(self, act: Callable[[], T], /) -> T:
        """Call a function between turns of the broker."""

    def wait_for(self, predicate: Callable[[], object], /, timeout: float) -> bool:
        """Wait until the predicate is true, at most so many real seconds; return whether it is."""

    def wait_until_idle(self, timeout: float) -> None:
        """Wait until the broker has processed all input and sent all output."""

    async def wait_for_async(self, predicate: Callable[[], object], /, timeout: float) -> bool:
        """`wait_for` for coroutines."""

    async def wait_until_idle_async(self, timeout: float) -> None:
        """`wait_until_idle` for coroutines."""


class Checked:
    """A part of a test in which the invariants hold: see `Broker.checked`.

    Each look at the broker reads only the events since the previous one.

    Args:
        broker: the broker.
        recorder: its recorder.
        names: of the checks; all, if there are none.
        allow: see `Trace.check`.
        timeout: how long to wait at the end, in real seconds.
        from_start: whether to check also what the trace has already.
    """

    def __init__(
        self,
        broker: Running,
        recorder: Recorder,
        names: tuple[str, ...] = (),
        allow: Allow = (),
        timeout: float = 5.0,
        *,
        from_start: bool = False,
    ) -> None:
        self._broker = broker
        self._recorder = recorder
        self._names = chosen(names, at_end=True)
        self._allowed = allowed(allow)
        self._timeout = timeout
        broker.inside(lambda: self._begin(from_start=from_start))

    def _begin(self, *, from_start: bool) -> None:
        recorder = self._recorder
        self._mark = None if from_start else recorder.mark()
        self._clears = recorder.clears
        self._invariants = Invariants(self._names)
        self._serial = 0
        self._missed = 0
        self._told = 0
        if from_start:
            return
        # What came before tells which channels are open and what they hold.
        self._serial = recorder.count
        self._invariants.see(recorder.trace().events)
        self._told = len(self._invariants.found)

    def step(self) -> None:
        """Check what has happened since the previous step.

        It checks what holds at any moment: the checks "lost", "duplicates" and "answers". All others run at
        the end.

        Raises:
            CheckFailed: there are findings.
            TraceIncomplete: the trace has dropped events that were not checked yet.
        """
        self._raise(self._broker.inside(self._news))

    def finish(self) -> None:
        """Wait until the broker is idle and nothing is left to do, then check all.

        Raises:
            CheckFailed: there are findings.
            TraceIncomplete: the trace has dropped events that were not checked yet.
        """
        self._broker.wait_until_idle(self._timeout)
        self._broker.wait_for(self._decided, self._timeout)
        self._raise(self._broker.inside(self._all))

    async def finish_async(self) -> None:
        """`finish` for coroutines: it does not block the event loop."""
        await self._broker.wait_until_idle_async(self._timeout)
        await self._broker.wait_for_async(self._decided, self._timeout)
        self._raise(self._broker.inside(self._all))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.finish_async()

    # --- between turns --------------------------------------------------------------------------------

    def _look(self) -> None:
        """Read the events that are new."""
        recorder = self._recorder
        if recorder.clears != self._clears:  # The broker was reset.
            self._begin(from_start=True)
        first, entries = recorder.entries_from(self._serial)
        self._missed += first - self._serial
        self._serial = first + len(entries)
        self._invariants.see(recorder.events_of(entries))

    def _decided(self) -> bool:
        """Whether there is a finding, or nothing that could still become one."""
        self._look()
        found = self._invariants.found[self._told :]
        return bool(self._missed or self._without_allowed(found)) or not self._without_allowed(
            self._invariants.at_end()
        )

    def _news(self) -> list[Finding]:
        self._look()
        found = self._invariants.found[self._told :]
        self._told += len(found)
        return self._without_allowed(found)

    def _all(self) -> list[Finding]:
        found = self._news()
        found += self._without_allowed(self._invariants.at_end())
        events = self._recorder.trace().events
        first = 0 if self._mark is None else len(events) - len(self._recorder.trace(self._mark))
        found += (finding for finding in of_rows(self._names, events) if finding.number >= first)
        return sorted(self._without_allowed(found), key=lambda finding: finding.number)

    def _without_allowed(self, found: object) -> list[Finding]:
        return [finding for finding in found if finding not in self._allowed]  # type: ignore[attr-defined]

    def _raise(self, found: list[Finding]) -> None:
        if found:
            raise CheckFailed(Findings(found, self._invariants.notes))
        if self._allowed.names(INCOMPLETE):
            return
        what = ""
        if self._missed:
            what = f"the trace dropped at least {self._missed} events before they were checked"
        elif unknown := self._invariants.unknown_channels:
            names = ", ".join(f"{alias} channel {channel}" for alias, channel in unknown)
            what = f"the trace no longer has the opening of {names}, so these are not checked"
        if what:
            raise TraceIncomplete(
                f"{what}; create the broker with a larger trace, such as Broker(trace=100_000), "
                f"call step() of checked() more often, or pass allow={INCOMPLETE!r}"
            )
