"""Class execution: what is said about commands themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.wire.amqp_0_10 import commands

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_10.sessions.session_end import SessionEnd
    from fakeamqp.wire.amqp_0_10.packed import Command

__all__ = ["HANDLERS"]


def sync(session: SessionEnd, command: commands.ExecutionSync) -> None:
    """Done when everything before it is: commands are carried out in order (execution.sync/barrier)."""


def result(session: SessionEnd, command: commands.ExecutionResult) -> None:
    """The result of a command of the broker's; it sends none that have one."""


def exception(session: SessionEnd, command: commands.ExecutionException) -> None:
    """A command of the broker's has failed at the client: the session is over (execution/ends-session)."""
    session.note("session failed", detail=command.description or "", code=command.error_code or 0)
    session.client_failed()


HANDLERS: dict[type[Command], Callable[[SessionEnd, Any], None]] = {
    commands.ExecutionSync: sync,
    commands.ExecutionResult: result,
    commands.ExecutionException: exception,
}
