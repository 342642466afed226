"""Transactions: the local ones of a channel or session, and the branches of distributed ones."""

from __future__ import annotations

from fakeamqp.model.transactions.branch import BranchState, BranchView, XaOutcome
from fakeamqp.model.transactions.branches import Branches
from fakeamqp.model.transactions.planned import PlannedPublish
from fakeamqp.model.transactions.transaction import Transaction
from fakeamqp.model.transactions.xid import Xid

__all__ = ["BranchState", "BranchView", "Branches", "PlannedPublish", "Transaction", "XaOutcome", "Xid"]
