"""What a rule can do to a frame group: one class per action, named like the method of `Rule`."""

from __future__ import annotations

from fakeamqp.faults.actions.action import Action
from fakeamqp.faults.actions.answers import CommandException, Drop, Nack, ReturnMessage
from fakeamqp.faults.actions.changes import CallFunction, Duplicate, Malform, Replace
from fakeamqp.faults.actions.closing import (
    CloseChannel,
    CloseConnection,
    CrashBroker,
    CutConnection,
    Disconnect,
    How,
    RefuseLogin,
    When,
)
from fakeamqp.faults.actions.waiting import Delay, HoldBack, combine_confirms

__all__ = [
    "Action",
    "CallFunction",
    "CloseChannel",
    "CloseConnection",
    "CommandException",
    "CrashBroker",
    "CutConnection",
    "Delay",
    "Disconnect",
    "Drop",
    "Duplicate",
    "HoldBack",
    "How",
    "Malform",
    "Nack",
    "RefuseLogin",
    "Replace",
    "ReturnMessage",
    "When",
    "combine_confirms",
]
