"""The root of every error fakeamqp raises. A leaf: every room may import it, and it imports none."""

from __future__ import annotations

__all__ = ["FakeAMQPError"]


class FakeAMQPError(Exception):
    """Base class of all errors that fakeamqp raises on purpose; the text says what to do about it."""
