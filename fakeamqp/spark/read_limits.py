"""PySpark's classes for the limits of a micro-batch, with replacements for versions before 4.2.

Spark prepares the sources of a query for the trigger AvailableNow one after the other, and if one fails, it
does not stop the ones before. So readers only note the preparation, and begin with the next call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class AvailableNow:
        """Marks a reader that supports the trigger AvailableNow."""

else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:

        class AvailableNow:
            """Marks a reader that supports the trigger AvailableNow; this PySpark has no such readers."""


def default_limit(rows: int) -> Any:
    """A limit of the number of rows."""
    from pyspark.sql.streaming.datasource import ReadMaxRows

    return ReadMaxRows(rows)


def most_rows(limit: Any, otherwise: int) -> int | None:
    """The number of rows that a limit allows, None for all; `otherwise` for limits that do not count rows."""
    if type(limit).__name__ == "ReadAllAvailable":
        return None
    rows = getattr(limit, "max_rows", None)
    return otherwise if rows is None else int(rows)
