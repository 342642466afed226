"""Class queue: declare, delete, purge, query."""

from __future__ import annotations

from typing import Any

HANDLERS: dict[Any, Any] = {}
