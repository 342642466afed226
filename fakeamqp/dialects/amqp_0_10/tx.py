"""Class tx: transfers and accepts that count all together or not at all."""

from __future__ import annotations

from typing import Any

HANDLERS: dict[Any, Any] = {}
