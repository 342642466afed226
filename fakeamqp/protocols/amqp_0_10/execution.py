"""Class execution: results, exceptions and synchronization of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_10.codec import commands

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession


def sync(session: ServerSession, command: commands.ExecutionSync) -> None:
    """Complete when all commands before it are: they are carried out in order (execution.sync/barrier)."""


def result(session: ServerSession, command: commands.ExecutionResult) -> None:
    """The result of a broker's command; the broker sends no command that has one."""


def exception(session: ServerSession, command: commands.ExecutionException) -> None:
    """A broker's command has failed at the client, which ends the session (execution/ends-session)."""
    session.note("session failed", detail=command.description or "", code=command.error_code or 0)
    session.client_failed()
