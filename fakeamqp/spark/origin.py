"""Where rows were read: metadata of the columns of the source, so that the sink does not publish them there.

Spark keeps the metadata of a column that is selected or renamed, and drops it from one that is computed. So
the sink sees the source of its rows as far as they still have a column of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark.sql.types import StructField, StructType

if TYPE_CHECKING:
    from fakeamqp.spark.options import ConnectionOptions, ReadOptions

__all__ = ["is_column", "marked", "queues_of"]

_KEY = "fakeamqp.source"
_PORTS = {"amqp": 5672, "amqps": 5671}
_LOOPBACK = ("127.0.0.1", "::1")


def marked(schema: StructType, options: ReadOptions) -> StructType:
    """The schema of the source, with the brokers and the queues of the options in each column."""
    read = {"brokers": _brokers(options.connection), "queues": [*options.queues, *options.streams]}
    return StructType(
        [
            StructField(each.name, each.dataType, metadata={_KEY: {**read, "column": each.name}})
            for each in schema.fields
        ]
    )


def queues_of(fields: Iterable[StructField], options: ConnectionOptions) -> set[str]:
    """The queues and streams that rows with these columns come from, as far as they are on this broker."""
    ours = set(_brokers(options))
    return {
        queue
        for read in map(_mark, fields)
        if not ours.isdisjoint(read.get("brokers", ()))
        for queue in read["queues"]
    }


def is_column(field: StructField, name: str) -> bool:
    """Whether a column is one of the source, unchanged."""
    return bool(_mark(field).get("column") == name)


def _mark(field: StructField) -> dict[str, Any]:
    return (field.metadata or {}).get(_KEY) or {}


def _brokers(options: ConnectionOptions) -> list[str]:
    """Host, port and virtual host of each URL."""
    found = []
    for url in options.urls:
        parts = urlsplit(url)
        host = parts.hostname or "localhost"
        port = parts.port or _PORTS[parts.scheme]
        virtual_host = options.virtual_host or unquote(parts.path[1:]) or "/"
        found.append(f"{'localhost' if host in _LOOPBACK else host}:{port} {virtual_host}")
    return found
