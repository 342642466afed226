"""The credit of subscriptions (message.flow, set-flow-mode, stop, flush)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fakeamqp.model.errors import NotFound
from fakeamqp.protocols.amqp_0_10.codec.constants import CreditUnit, FlowMode

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.codec import commands
    from fakeamqp.protocols.amqp_0_10.message.server_subscription import ServerSubscription
    from fakeamqp.protocols.amqp_0_10.sessions.server_session import ServerSession

__all__ = ["flow", "flush", "set_flow_mode", "stop", "subscription"]

_UNITS: dict[int, Literal["message", "byte"]] = {CreditUnit.MESSAGE: "message", CreditUnit.BYTE: "byte"}


def subscription(session: ServerSession, destination: str | None) -> ServerSubscription:
    """The subscription with this destination.

    Raises:
        NotFound: there is none (message.set-flow-mode/unknown-destination).
    """
    found = session.subscriptions.get(destination or "")
    if found is None:
        raise NotFound(f"no subscription '{destination or ''}' in session '{session.display_name}'")
    return found


def flow(session: ServerSession, command: commands.MessageFlow) -> None:
    """Add to the credit of one unit; no value, or the largest, is credit without end (message.flow/*).

    Raises:
        NotFound: there is no such subscription.
        ResourceDeleted: its queue is deleted.
    """
    end = subscription(session, command.destination)
    end.grant.grant(_UNITS[command.unit or 0], command.value)
    end.go_on()


def set_flow_mode(session: ServerSession, command: commands.MessageSetFlowMode) -> None:
    """Choose whether completed transfers give their credit back (message.set-flow-mode/*).

    Raises:
        NotFound: there is no such subscription.
        IllegalState: it has credit left, where the personality refuses that.
    """
    grant = subscription(session, command.destination).grant
    window = command.flow_mode == FlowMode.WINDOW
    grant.set_mode(window, strict=session.choices.set_flow_mode_needs_no_credit)


def stop(session: ServerSession, command: commands.MessageStop) -> None:
    """Stop deliveries until there is new credit (message.stop/zero-credit).

    Raises:
        NotFound: there is no such subscription.
    """
    subscription(session, command.destination).grant.stop()


def flush(session: ServerSession, command: commands.MessageFlush) -> None:
    """Send ready messages as far as credit goes, and drop the rest of the credit (message.flush/exhausts).

    Raises:
        NotFound: there is no such subscription.
    """
    subscription(session, command.destination).flush()
