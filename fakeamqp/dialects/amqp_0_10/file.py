"""Class file: bulk messages, staged before they are sent."""

from __future__ import annotations

from typing import Any

HANDLERS: dict[Any, Any] = {}
CONTENT_HANDLERS: dict[Any, Any] = {}
