"""Transactions: the local ones of a channel or session, and the branches of distributed ones."""

from __future__ import annotations

from fakeamqp.model.transactions.branches import Branches, BranchState, BranchView, XaOutcome, Xid
from fakeamqp.model.transactions.transaction import PlannedPublish, Transaction

__all__ = ["BranchState", "BranchView", "Branches", "PlannedPublish", "Transaction", "XaOutcome", "Xid"]
