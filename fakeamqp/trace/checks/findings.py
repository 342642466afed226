"""Runs the checks on the events of a trace, and describes what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fakeamqp.errors import near_match
from fakeamqp.trace.checks.conformance import RULES, conformance
from fakeamqp.trace.checks.fifo import fifo_violations
from fakeamqp.trace.checks.finding import INCOMPLETE, Allowed, Finding, Findings, UnknownCheck
from fakeamqp.trace.checks.high_water import unacked_high_water
from fakeamqp.trace.checks.invariants import AT_END, INVARIANTS, Invariants
from fakeamqp.trace.checks.messages import DROP_REASONS, Moment
from fakeamqp.trace.checks.rows import TraceRow, row_of
from fakeamqp.trace.events import Event

if TYPE_CHECKING:
    from fakeamqp.trace.checks.finding import Allow

__all__ = ["AT_ANY_MOMENT", "CHECKS", "allowed", "check", "chosen", "notes_of", "of_rows"]

Events: TypeAlias = Sequence[Event]
Rows: TypeAlias = Sequence[TraceRow]

_ORDER = "0-9-1/server-model/order-preserved"
_PREFETCH = "0-9-1/basic.qos/prefetch-count-01"
_OVERTAKEN = "overtaken"
_EXCEEDED = "prefetch-exceeded"
_RULES = (
    *RULES,
    _OVERTAKEN,
    _EXCEEDED,
    "message-lost",
    "delivered-twice",
    "sent-twice",
    "left-unacked",
    "answers-nothing",
    "answered-twice",
    "unanswered",
)


def check(events: Events, *names: str, allow: Allow = (), at_end: bool = False, dropped: int = 0) -> Findings:
    """Run the checks of these names, or those that hold at any moment; see `Trace.check`.

    Args:
        events: in order.
        names: of checks, in `CHECKS`.
        allow: what is allowed.
        at_end: nothing more will happen. Without names, run all checks.
        dropped: the number of earlier events that are not there, for the notes.

    Raises:
        UnknownCheck: a name is not in `CHECKS`.
        UnknownRule: `allow` names no rule and no reason.
    """
    checks = chosen(names, at_end=at_end)
    fine = allowed(allow)
    found = of_rows(checks, events)
    invariants = Invariants(checks)
    if invariants.active:
        invariants.see(events)
        found += invariants.found
        if at_end or any(name in AT_END for name in checks):
            found += invariants.at_end()
    found = [finding for finding in found if finding not in fine]
    found.sort(key=lambda finding: finding.number)
    return Findings(found, notes_of(dropped, invariants))


def of_rows(checks: Iterable[str], events: Events) -> list[Finding]:
    """What those of the checks find that have a query in Spark."""
    names = [name for name in checks if name in _OF_ROWS]
    rows = [row_of(number, event) for number, event in enumerate(events)] if names else []
    return [finding for name in names for finding in _OF_ROWS[name](events, rows)]


def chosen(names: Sequence[str], *, at_end: bool) -> tuple[str, ...]:
    """The checks to run.

    Raises:
        UnknownCheck: a name is not in `CHECKS`.
    """
    for name in names:
        if name not in CHECKS:
            raise UnknownCheck(f"there is no check {name!r}{near_match(name, CHECKS)}")
    if names:
        return tuple(name for name in CHECKS if name in names)
    return CHECKS if at_end else AT_ANY_MOMENT


def allowed(allow: Allow) -> Allowed:
    """What a test allows, with what is allowed anyway.

    Raises:
        UnknownRule: `allow` names no rule and no reason.
    """
    anyway = [reason for reason, fine in DROP_REASONS.items() if fine]
    return Allowed(allow, (*_RULES, *DROP_REASONS, INCOMPLETE), anyway)


def notes_of(dropped: int, invariants: Invariants) -> Iterable[str]:
    """What could not be checked, a sentence each."""
    if dropped:
        yield (
            f"{dropped} earlier events are no longer kept, and what depends on them is not checked; "
            "Broker(trace=...) sets how many are"
        )
    yield from invariants.notes


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
