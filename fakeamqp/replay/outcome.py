"""The outcome of a replay: the differences of each connection, as a diff; and the errors of a replay."""

from __future__ import annotations

from dataclasses import dataclass, field

from fakeamqp.errors import FakeAMQPError, Result
from fakeamqp.trace.rendering import one_line

__all__ = ["Comparison", "Difference", "NoBroker", "NotTheSame", "Replay", "ReplayError"]


class ReplayError(FakeAMQPError):
    """The recording cannot be replayed on this broker."""

    __module__ = "fakeamqp.replay"


class NotTheSame(FakeAMQPError, AssertionError):
    """Replayed answers differ from the recorded ones; the text is a diff."""

    __module__ = "fakeamqp.replay"


class NoBroker(ReplayError):
    """There is no broker at the URL."""

    __module__ = "fakeamqp.replay"


@dataclass(frozen=True)
class Difference:
    """A recorded answer and the replayed one; None stands for no answer."""

    recorded: str | None
    replayed: str | None
    note: str = ""

    def __str__(self) -> str:
        lines = [f"- {one_line(self.recorded)}" if self.recorded else "- (nothing)"]
        lines.append(f"+ {one_line(self.replayed)}" if self.replayed else "+ (nothing)")
        if self.note:
            lines.append(f"  {one_line(self.note)}")
        return "\n".join(lines)


@dataclass
class Comparison:
    """The comparison of one connection.

    `replies` is the number of compared answers. `skipped` is the reason for not replaying it, or "".
    """

    connection: str
    alias: str
    replies: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: str = ""

    def __str__(self) -> str:
        head = one_line(f"{self.alias} {self.connection}")
        if self.skipped:
            return f"{head}: not replayed: {self.skipped}"
        if not self.differences:
            return f"{head}: the same {self.replies} replies"
        count = len(self.differences)
        head += f": {count} difference{'s' if count > 1 else ''} in {self.replies} replies"
        body = "\n".join(map(str, self.differences))
        return head + "\n" + "\n".join(f"  {line}" for line in body.splitlines())


@dataclass(frozen=True)
class Replay(Result):
    """The outcome of a replay. Its text is a diff by connection.

    Differences that nothing reads fail the test: see `fakeamqp.errors.Result`.
    """

    connections: tuple[Comparison, ...]

    @property
    def same(self) -> bool:
        """True if every connection was replayed and all answers were the same."""
        return not any(each.differences or each.skipped for each in self.connections)

    def expect_same(self) -> None:
        """Assert that every connection was replayed and all answers were the same.

        Raises:
            NotTheSame: they were not.
        """
        if not self.same:
            raise NotTheSame(f"the replay differs from the recording:\n{self}")

    def _failure(self) -> str:
        if self.same:
            return ""
        return f"a replay differs from its recording, and nothing has read it: use expect_same()\n{self}"

    def __str__(self) -> str:
        return "\n".join(map(str, self.connections))
