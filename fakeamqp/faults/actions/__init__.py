"""What a rule can do to a frame group: one class per action, named like the method of `Rule`."""

from __future__ import annotations

from fakeamqp.faults.actions.action import Action
from fakeamqp.faults.actions.answers import CommandException, Drop, Nack, ReturnMessage
from fakeamqp.faults.actions.changes import Call, Duplicate, Malform, Replace
from fakeamqp.faults.actions.closing import (
    CloseChannel,
    CloseConnection,
    Crash,
    Cut,
    Disconnect,
    How,
    RefuseLogin,
    When,
)
from fakeamqp.faults.actions.waiting import Delay, Hold, combine_confirms

__all__ = [
    "Action",
    "Call",
    "CloseChannel",
    "CloseConnection",
    "CommandException",
    "Crash",
    "Cut",
    "Delay",
    "Disconnect",
    "Drop",
    "Duplicate",
    "Hold",
    "How",
    "Malform",
    "Nack",
    "RefuseLogin",
    "Replace",
    "ReturnMessage",
    "When",
    "combine_confirms",
]
