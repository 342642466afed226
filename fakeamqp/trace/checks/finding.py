"""What checks find, and what of it is allowed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fakeamqp.errors import FakeAMQPError, Result, near_match

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.trace.checks.messages import Moment

Allow: TypeAlias = "str | Collection[str] | Mapping[str, str | Collection[str]]"
"""Names of rules or reasons that are allowed, or a mapping from such names to patterns of queues."""

INCOMPLETE = "incomplete"
"""Allows that the trace has dropped events."""
_MOST_SHOWN = 10


class UnknownCheck(FakeAMQPError, ValueError):
    """No check has this name."""

    __module__ = "fakeamqp.trace"


class CheckFailed(FakeAMQPError, AssertionError):
    """The checks of a trace have found something: `findings`. The text shows what led to it."""

    __module__ = "fakeamqp.trace"

    def __init__(self, findings: Findings) -> None:
        super().__init__(f"the trace has {findings}")
        self.findings = findings


class TraceIncomplete(FakeAMQPError, AssertionError):
    """The trace no longer has all events that were to be checked."""

    __module__ = "fakeamqp.trace"


class UnknownRule(FakeAMQPError, ValueError):
    """No rule and no reason for the loss of a message has this name."""

    __module__ = "fakeamqp.trace"


@dataclass(frozen=True)
class Finding:
    """One violation.

    Args:
        check: the name of the check that found it, such as "conformance" or "lost".
        rule: the id of the violated rule, such as "settled-twice".
        text: the violation in one line.
        number: the position of the event in `trace.events`.
        time: of the event, in seconds since the trace began.
        alias: the short name of the connection, or "".
        channel: its number, or None.
        broken_by: "client" or "broker"; "" if neither has violated the protocol.
        spec: the id of the rule in the specification, if it is in there.
        queue: the name of the queue that it is about, or None.
        reason: of "message-lost": why the message was dropped, as in `broker.dropped`; "not sent" if its
            queue delivered it and it was not sent; "no trace" if the broker never took it.
        story: the events that led to it, in order, each with its number; the last is the event itself.
    """

    check: str
    rule: str
    text: str
    number: int
    time: float
    alias: str
    channel: int | None
    broken_by: Literal["client", "broker", ""]
    spec: str | None = None
    queue: str | None = None
    reason: str | None = None
    story: tuple[Moment, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        place = "" if self.channel is None else f"{self.alias} channel {self.channel}".lstrip()
        where = ", ".join(filter(None, (f"{self.time:.3f} s", place or self.alias)))
        whose = f" by the {self.broken_by}" if self.broken_by else ""
        return f"event {self.number} ({where}): {self.rule}{whose}: {self.text}"


class Findings(Result, tuple[Finding, ...]):
    """All that checks have found, in the order of the events: a tuple that equals () if there is nothing.

    `str` is a report with the events that led to each finding. Findings that nothing reads fail the test: see
    `fakeamqp.errors.Result`.

    Attributes:
        notes: what could not be checked, a sentence each.
    """

    notes: tuple[str, ...]

    def __new__(cls, found: Iterable[Finding] = (), notes: Iterable[str] = ()) -> Self:
        findings = super().__new__(cls, found)
        findings.notes = tuple(notes)
        return findings

    def __str__(self) -> str:
        from fakeamqp.trace.timeline import line_of

        count = len(self)
        lines = [f"{count or 'no'} finding{'' if count == 1 else 's'}{':' if count else ''}"]
        for finding in self[:_MOST_SHOWN]:
            lines.append(f"  {finding}")
            lines += (f"    {number:>6}  {line_of(event)}" for number, event in finding.story)
        if count > _MOST_SHOWN:
            lines.append(f"  ... and {count - _MOST_SHOWN} more")
        return "\n".join((*lines, *(f"({note})" for note in self.notes)))

    def _failure(self) -> str:
        if not tuple.__len__(self):
            return ""
        return (
            f"trace.findings() has found something, and nothing has read it: use expect_no_findings()\n{self}"
        )


def _reading(method: Callable[..., Any]) -> Callable[..., Any]:
    def read(findings: Findings, *arguments: Any) -> Any:
        for each in (findings, *arguments):  # A comparison reads both sides.
            if isinstance(each, Findings):
                each._is_read = True
        return method(findings, *arguments)

    return read


for _name in ("__contains__", "__eq__", "__getitem__", "__iter__", "__len__", "__ne__", "__repr__"):
    setattr(Findings, _name, _reading(getattr(tuple, _name)))


class Allowed:
    """What a test allows."""

    def __init__(self, allow: Allow, known: Iterable[str], at_once: Collection[str] = ()) -> None:
        names = tuple(known)
        if isinstance(allow, str):
            allow = (allow,)
        for name in allow:
            if name not in names:
                raise UnknownRule(f"there is no rule or reason {name!r} to allow{near_match(name, names)}")
        self._patterns: dict[str, tuple[str, ...]] = dict.fromkeys(at_once, ("*",))
        for name in allow:
            patterns = allow[name] if isinstance(allow, Mapping) else "*"
            self._patterns[name] = (patterns,) if isinstance(patterns, str) else tuple(patterns)

    def others(self, found: Iterable[Finding]) -> list[Finding]:
        """The findings that are not allowed."""
        return [each for each in found if not (self._has(each.rule, each) or self._has(each.reason, each))]

    def names(self, name: str) -> bool:
        """Whether this rule or reason is allowed for all queues."""
        return "*" in self._patterns.get(name, ())

    def _has(self, name: str | None, finding: Finding) -> bool:
        patterns, queue = self._patterns.get(name or "", ()), finding.queue
        return any(each == "*" or (queue is not None and fnmatchcase(queue, each)) for each in patterns)
