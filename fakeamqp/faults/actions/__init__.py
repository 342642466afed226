"""What a rule can do to a unit. Each action knows its words, what it fits, and how it is done."""

from __future__ import annotations

from fakeamqp.faults.actions.action import Action
from fakeamqp.faults.actions.answers import Drop, Fail, Nack, Return
from fakeamqp.faults.actions.changes import Call, Duplicate, Malform, Replace
from fakeamqp.faults.actions.ends import (
    CloseChannel,
    CloseConnection,
    Crash,
    Cut,
    Disconnect,
    How,
    RefuseLogin,
    When,
)
from fakeamqp.faults.actions.waiting import Delay, Hold, put_together

__all__ = [
    "Action",
    "Call",
    "CloseChannel",
    "CloseConnection",
    "Crash",
    "Cut",
    "Delay",
    "Disconnect",
    "Drop",
    "Duplicate",
    "Fail",
    "Hold",
    "How",
    "Malform",
    "Nack",
    "RefuseLogin",
    "Replace",
    "Return",
    "When",
    "put_together",
]
