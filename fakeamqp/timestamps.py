"""An instant as all protocols carry it: seconds since 1970."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class Timestamp(int):
    """Seconds since 1970-01-01 UTC: an `int` that is written as a timestamp (0-9-x) or a datetime (0-10)."""

    __slots__ = ()

    @property
    def datetime(self) -> datetime:
        """The instant as an aware UTC datetime. Raises OverflowError or ValueError beyond the year 9999."""
        from datetime import datetime, timezone

        return datetime.fromtimestamp(self, timezone.utc)

    def __repr__(self) -> str:
        return f"Timestamp({int(self)})"
