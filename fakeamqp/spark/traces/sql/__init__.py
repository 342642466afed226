"""The queries that are shipped, each a file of SQL over the views `trace` and `deliveries`."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

__all__ = ["QUERIES", "Query", "text_of"]


class Query(NamedTuple):
    """A query: its title, and whether a correct broker has no rows."""

    title: str
    expects_nothing: bool = False


QUERIES: dict[str, Query] = {
    "latency_by_queue": Query("Latency by queue: seconds from the queue to the first delivery"),
    "redelivery_rate": Query("Deliveries and redeliveries by queue"),
    "unacked_age": Query("How long clients held messages: seconds from delivery to settlement"),
    "unacked_high_water": Query("Most messages held at once, by consumer and by channel"),
    "fifo_violations": Query("Deliveries out of order", expects_nothing=True),
    "conformance": Query("Violations of the protocol", expects_nothing=True),
}
"""By name: that of the file, and of the method of `Traces`."""


@cache
def text_of(name: str) -> str:
    """The SQL of a query or view, by its name."""
    from importlib.resources import files

    return files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
