"""The part of a personality that is about branches of distributed transactions.

RabbitMQ has none. The personalities named after it do what Apache's qpidd does (measured).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["BranchChoices"]


@dataclass(frozen=True)
class BranchChoices:
    """Named choices; the defaults are qpidd's. Times are seconds."""

    contradictory_flags: Literal["command-invalid", "not-allowed"] = "command-invalid"
    """dtx.start/join-and-resume, dtx.end/suspend-and-fail: condition raised."""
    default_timeout: int = 60
    """dtx.get-timeout/value, dtx.set-timeout/reset."""
    longest_timeout: int | None = 3600
    """dtx.set-timeout/effective: invalid-argument is raised for more; None = any."""
    joins: bool = True
    """dtx.start/join-unsupported: a session can join a branch that another one has started; otherwise
    not-implemented is raised."""
