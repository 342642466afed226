"""Values of the broker as JSON, as RabbitMQ writes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any


def jsonable(value: Any) -> Any:
    """A value of a field table, an argument or a property as JSON."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, Decimal):
        return float(value)
    return str(value)


def instant(seconds: float) -> str:
    """An instant in seconds since the epoch, as RabbitMQ writes it: 2026-01-31T12:00:00.000+00:00."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
