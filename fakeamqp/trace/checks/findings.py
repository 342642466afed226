"""Runs the checks on the events of a trace, and describes what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fakeamqp.errors import FakeAMQPError, near_match
from fakeamqp.trace.checks.conformance import conformance
from fakeamqp.trace.checks.fifo import fifo_violations
from fakeamqp.trace.checks.high_water import unacked_high_water
from fakeamqp.trace.events import Event

__all__ = ["CHECKS", "Finding", "UnknownCheck", "check"]

Events: TypeAlias = Sequence[Event]

_ORDER = "0-9-1/server-model/order-preserved"
_PREFETCH = "0-9-1/basic.qos/prefetch-count-01"


class UnknownCheck(FakeAMQPError, ValueError):
    """No check has this name."""


@dataclass(frozen=True)
class Finding:
    """One violation.

    Args:
        check: the name of the check that found it: "conformance", "fifo" or "prefetch".
        rule: the id of the violated rule, such as "settled-twice".
        text: the violation in one line.
        number: the position of the event in `trace.events`.
        time: of the event, in seconds since the trace began.
        alias: the short name of the connection, or "".
        channel: its number, or None.
        broken_by: "client" or "broker".
        spec: the id of the rule in the specification, if it is in there.
    """

    check: str
    rule: str
    text: str
    number: int
    time: float
    alias: str
    channel: int | None
    broken_by: Literal["client", "broker"]
    spec: str | None = None

    def __str__(self) -> str:
        place = f"{self.alias} channel {self.channel}".lstrip()
        where = f"event {self.number} ({self.time:.3f} s, {place})"
        return f"{where}: {self.rule} by the {self.broken_by}: {self.text}"


def check(events: Events, *names: str) -> tuple[Finding, ...]:
    """Run the checks of these names, or all of `CHECKS`. The findings are in the order of the events.

    Raises:
        UnknownCheck: a name is not in `CHECKS`.
    """
    for name in names:
        if name not in CHECKS:
            raise UnknownCheck(f"there is no check {name!r}{near_match(name, CHECKS)}")
    chosen = [run for name, run in CHECKS.items() if not names or name in names]
    found = [finding for run in chosen for finding in run(events)]
    return tuple(sorted(found, key=lambda finding: finding.number))


def _conformance(events: Events) -> Iterator[Finding]:
    for row in conformance(events):
        text = f"{row['description']}: {events[row['number']].text}"
        yield _finding(events, row, "conformance", row["rule"], text, row["spec"], row["broken_by"])


def _fifo(events: Events) -> Iterator[Finding]:
    for row in fifo_violations(events):
        event = events[row["number"]]
        text = (
            f"a later message overtook it (enqueued at event {row['enqueued_number']}, the later message was "
            f"delivered at event {row['overtaken_by_number']}): {event.text}"
        )
        yield _finding(events, row, "fifo", "overtaken", text, _ORDER)


def _prefetch(events: Events) -> Iterator[Finding]:
    for row in unacked_high_water(events):
        if not row["exceedances"]:
            continue
        holder = f"consumer {row['consumer_tag']!r}" if row["scope"] == "consumer" else "the channel"
        text = (
            f"{holder} held up to {row['high_water']} unsettled messages, the highest prefetch was "
            f"{row['prefetch']} ({row['exceedances']} of {row['deliveries']} deliveries exceeded it)"
        )
        place = {**row, "number": row["first_exceedance"]}
        yield _finding(events, place, "prefetch", "prefetch-exceeded", text, _PREFETCH)


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
    time = events[number].time
    return Finding(check, rule, text, number, time, row["alias"], row["channel"], broken_by, spec)


CHECKS: dict[str, Callable[[Events], Iterator[Finding]]] = {
    "conformance": _conformance,
    "fifo": _fifo,
    "prefetch": _prefetch,
}
"""By name: rules of the protocol, the order of deliveries, and the limits of basic.qos."""
