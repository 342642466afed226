"""Runs the checks: on the events of a trace, and on a broker in the course of a test and at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fakeamqp.blocking import blocking
from fakeamqp.errors import near_match
from fakeamqp.trace.checks.conformance import RULES, conformance
from fakeamqp.trace.checks.deliveries import fifo_violations, unacked_high_water
from fakeamqp.trace.checks.finding import (
    INCOMPLETE,
    Allowed,
    CheckFailed,
    Finding,
    Findings,
    TraceIncomplete,
    UnknownCheck,
)
from fakeamqp.trace.checks.invariants import AT_END, INVARIANT_RULES, INVARIANTS, Invariants
from fakeamqp.trace.checks.messages import DROP_REASONS, Moment
from fakeamqp.trace.checks.rows import TraceRow, row_of
from fakeamqp.trace.events import Event

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from fakeamqp.trace.checks.finding import Allow
    from fakeamqp.trace.recorder import Recorder

Events: TypeAlias = Sequence[Event]
Rows: TypeAlias = Sequence[TraceRow]

_ORDER = "0-9-1/server-model/order-preserved"
_PREFETCH = "0-9-1/basic.qos/prefetch-count-01"
_OVERTAKEN = "overtaken"
_EXCEEDED = "prefetch-exceeded"
_RULES = (*RULES, _OVERTAKEN, _EXCEEDED, *INVARIANT_RULES)


def check(events: Events, *names: str, allow: Allow = (), at_end: bool = False, dropped: int = 0) -> Findings:
    """Run the checks of these names, or those that hold at any moment; see `Trace.findings`."""
    checks = chosen(names, at_end=at_end)
    fine = allowed(allow)
    found = _of_rows(checks, events)
    invariants = Invariants(checks)
    if invariants.active:
        invariants.see(events)
        found += invariants.found
        if at_end or any(name in AT_END for name in checks):
            found += invariants.at_end()
    found = sorted(fine.others(found), key=lambda finding: finding.number)
    notes = list(invariants.notes)
    if dropped:
        notes[:0] = [
            f"{dropped} earlier events are no longer kept, and what depends on them is not checked; "
            "Broker(trace=...) sets how many are"
        ]
    return Findings(found, notes)


def _of_rows(checks: Iterable[str], events: Events) -> list[Finding]:
    """What those of the checks find that have a query in Spark."""
    names = [name for name in checks if name in _OF_ROWS]
    rows = [row_of(number, event) for number, event in enumerate(events)] if names else []
    return [finding for name in names for finding in _OF_ROWS[name](events, rows)]


def chosen(names: Sequence[str], *, at_end: bool) -> tuple[str, ...]:
    """The checks to run; raises UnknownCheck if a name is not in `CHECKS`."""
    for name in names:
        if name not in CHECKS:
            raise UnknownCheck(f"there is no check {name!r}{near_match(name, CHECKS)}")
    if names:
        return tuple(name for name in CHECKS if name in names)
    return CHECKS if at_end else AT_ANY_MOMENT


def allowed(allow: Allow) -> Allowed:
    """What a test allows, with what is allowed anyway; raises UnknownRule."""
    anyway = [reason for reason, fine in DROP_REASONS.items() if fine]
    return Allowed(allow, (*_RULES, *DROP_REASONS, INCOMPLETE), anyway)


def _conformance(events: Events, rows: Rows) -> Iterator[Finding]:
    for row in conformance(rows):
        text = f"{row['description']}: {events[row['number']].text}"
        yield _finding(events, row, "conformance", row["rule"], text, row["spec"], row["broken_by"])


def _fifo(events: Events, rows: Rows) -> Iterator[Finding]:
    for row in fifo_violations(rows):
        event = events[row["number"]]
        text = (
            f"a later message overtook it (enqueued at event {row['enqueued_number']}, the later message was "
            f"delivered at event {row['overtaken_by_number']}): {event.text}"
        )
        yield _finding(events, row, "fifo", _OVERTAKEN, text, _ORDER)


def _prefetch(events: Events, rows: Rows) -> Iterator[Finding]:
    for row in unacked_high_water(rows):
        if not row["exceedances"]:
            continue
        holder = f"consumer {row['consumer_tag']!r}" if row["scope"] == "consumer" else "the channel"
        text = (
            f"{holder} held up to {row['high_water']} unsettled messages, the highest prefetch was "
            f"{row['prefetch']} ({row['exceedances']} of {row['deliveries']} deliveries exceeded it)"
        )
        place = {**row, "number": row["first_exceedance"]}
        yield _finding(events, place, "prefetch", _EXCEEDED, text, _PREFETCH)


def _finding(
    events: Events,
    row: dict[str, Any],
    check: str,
    rule: str,
    text: str,
    spec: str | None,
    broken_by: Literal["client", "broker"] = "broker",
) -> Finding:
    """A finding at the event whose number the row has."""
    number = row["number"]
    event = events[number]
    return Finding(
        check,
        rule,
        text,
        number,
        event.time,
        row["alias"],
        row["channel"],
        broken_by,
        spec,
        row.get("queue"),
        story=(Moment(number, event),),
    )


_OF_ROWS: dict[str, Callable[[Events, Rows], Iterator[Finding]]] = {
    "conformance": _conformance,
    "fifo": _fifo,
    "prefetch": _prefetch,
}
AT_ANY_MOMENT = (*_OF_ROWS, *(name for name in INVARIANTS if name not in AT_END))
"""The checks of what holds at any moment."""
CHECKS = (*AT_ANY_MOMENT, *AT_END)
"""By name: rules of the protocol, the order of deliveries, the limits of basic.qos, and the invariants."""


class Checked:
    """A part of a test in which the invariants hold: see `Broker.expect_no_findings.during`.

    Each look at the broker reads only the events since the previous one.
    """

    def __init__(
        self,
        broker: Any,
        recorder: Recorder,
        names: tuple[str, ...] = (),
        allow: Allow = (),
        timeout: float = 5.0,
        *,
        from_start: bool = False,
    ) -> None:
        self._broker = broker
        self._reader = broker._reader
        self._recorder = recorder
        self._names = chosen(names, at_end=True)
        self._allowed = allowed(allow)
        self._timeout = timeout
        self._reader.read(lambda _: self._begin(from_start=from_start))

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
        self._raise(self._reader.read(self._news))

    @blocking
    def finish(self) -> None:
        """Wait until the broker is idle and nothing is left to do, then check all.

        Raises:
            CheckFailed: there are findings.
            TraceIncomplete: the trace has dropped events that were not checked yet.
        """
        self._broker.wait_until_idle(self._timeout)
        self._reader.wait_for(self._decided, self._timeout)
        self._raise(self._reader.read(self._all))

    @finish.coroutine
    async def _finish_coroutine(self) -> None:
        await self._broker.wait_until_idle.aio(self._timeout)
        await self._reader.wait_for_async(self._decided, self._timeout)
        self._raise(self._reader.read(self._all))

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
            await self.finish.aio()

    # --- between turns --------------------------------------------------------------------------------

    def _look(self) -> None:
        recorder = self._recorder
        if recorder.clears != self._clears:  # The broker was reset.
            self._begin(from_start=True)
        first, entries = recorder.entries_from(self._serial)
        self._missed += first - self._serial
        self._serial = first + len(entries)
        self._invariants.see(recorder.events_of(entries))

    def _decided(self, _state: object) -> bool:
        """Whether there is a finding, or nothing that could still become one."""
        self._look()
        found = self._invariants.found[self._told :]
        if self._missed or self._allowed.others(found):
            return True
        return not self._allowed.others(self._invariants.at_end())

    def _news(self, state: object) -> list[Finding]:
        self._look()
        found = self._invariants.found[self._told :]
        self._told += len(found)
        return self._allowed.others(found)

    def _all(self, state: object) -> list[Finding]:
        found = self._news(state)
        found += self._allowed.others(self._invariants.at_end())
        events = self._recorder.trace().events
        first = 0 if self._mark is None else len(events) - len(self._recorder.trace(self._mark))
        found += (finding for finding in _of_rows(self._names, events) if finding.number >= first)
        return sorted(self._allowed.others(found), key=lambda finding: finding.number)

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
                f"call step() of expect_no_findings.during() more often, or pass allow={INCOMPLETE!r}"
            )
