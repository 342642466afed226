"""All attempts, in the order of the page."""

from __future__ import annotations

from compat_tests.attempts import crowds, files, floods, protocols, slow, tables
from compat_tests.attempts.attempt import ATTEMPTS

__all__ = ["ATTEMPTS", "MODULES"]

MODULES = (slow, crowds, floods, tables, protocols, files)
