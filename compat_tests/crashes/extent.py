"""How much the crash suite does: all of it, with five seeds, if `FAKEAMQP_CRASHES=5`; or the core of it.

`FAKEAMQP_CRASH_MESSAGES` is the number of messages of a lane under random kills, 8000 by default.
The core has sessions in fast mode, which start in half the time; all of it has the usual ones.
"""

from __future__ import annotations

import os

import pytest

__all__ = ["AT_LENGTH", "MESSAGES", "SEEDS", "only_at_length"]

AT_LENGTH = bool(os.environ.get("FAKEAMQP_CRASHES"))
SEEDS = range(1, 1 + int(os.environ.get("FAKEAMQP_CRASHES") or 1))

MESSAGES = int(os.environ.get("FAKEAMQP_CRASH_MESSAGES") or 8000)

only_at_length = pytest.mark.skipif(not AT_LENGTH, reason="takes minutes; make crashes runs it")
