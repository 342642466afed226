"""Work that counts all together or not at all: of one session, or of a branch that many sessions share."""

from __future__ import annotations

from fakeamqp.model.transactions.transaction import Transaction

__all__ = ["Transaction"]
