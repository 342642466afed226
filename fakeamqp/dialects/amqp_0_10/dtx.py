"""Class dtx: distributed transactions, seen from one session."""

from __future__ import annotations

from typing import Any

HANDLERS: dict[Any, Any] = {}
