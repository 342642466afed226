"""How much the crash suite does: all of it, with five seeds, if `FAKEAMQP_CRASHES=5`; or the core of it."""

from __future__ import annotations

import os

import pytest

__all__ = ["AT_LENGTH", "ONE_AFTER_THE_OTHER", "SEEDS", "only_at_length"]

AT_LENGTH = bool(os.environ.get("FAKEAMQP_CRASHES"))
SEEDS = range(1, 1 + int(os.environ.get("FAKEAMQP_CRASHES") or 1))

only_at_length = pytest.mark.skipif(not AT_LENGTH, reason="takes minutes; make crashes runs it")

# Where processes share the suite, one of them does all that starts a Java: two at once are slower than that.
ONE_AFTER_THE_OTHER = pytest.mark.xdist_group("spark")
