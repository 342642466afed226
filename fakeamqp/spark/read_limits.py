"""What PySpark calls the limits of a micro-batch; versions before 4.2 do not know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["AvailableNow", "default_limit", "most_rows"]

if TYPE_CHECKING:

    class AvailableNow:
        """Marks a reader that knows the trigger AvailableNow."""

else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:

        class AvailableNow:
            """Marks a reader that knows the trigger AvailableNow; for this PySpark no reader does."""


def default_limit(rows: int) -> Any:
    """At most so many rows."""
    from pyspark.sql.streaming.datasource import ReadMaxRows

    return ReadMaxRows(rows)


def most_rows(limit: Any, otherwise: int) -> int | None:
    """How many rows a limit allows, None for all there are; limits of other things allow `otherwise`."""
    if type(limit).__name__ == "ReadAllAvailable":
        return None
    rows = getattr(limit, "max_rows", None)
    return otherwise if rows is None else int(rows)
