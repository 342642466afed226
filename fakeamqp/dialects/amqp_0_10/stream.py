"""Class stream: messages that nobody acknowledges."""

from __future__ import annotations

from typing import Any

HANDLERS: dict[Any, Any] = {}
CONTENT_HANDLERS: dict[Any, Any] = {}
