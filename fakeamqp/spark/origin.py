"""Where rows were read: metadata of the columns of the source, so that the sink does not publish them there.

Spark keeps the metadata of a column that is selected or renamed, and drops it from one that is computed. So
the sink sees the source of its rows as far as they still have a column of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark.sql.types import StructField, StructType

if TYPE_CHECKING:
    from fakeamqp.spark.options import ConnectionOptions, ReadOptions

_KEY = "fakeamqp.source"
_PORTS = {"amqp": 5672, "amqps": 5671}
_LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class Origin:
    """What rows were read from, on one broker.

    Attributes:
        queues: the queues and streams.
        super_streams: the super streams, whose partitions are the streams `NAME-0`, `NAME-1` and so on.
        exchanges: the exchanges that the options of the source name, which lead to its queues.
    """

    queues: frozenset[str]
    super_streams: frozenset[str]
    exchanges: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.queues or self.super_streams)

    def __str__(self) -> str:
        return ", ".join(map(repr, sorted(self.queues | self.super_streams)))

    def is_fed_by(self, exchange: str, routing_key: str) -> bool:
        """Whether a message that is published this way is read, as far as the options of the source say."""
        if exchange:
            return exchange in self.exchanges
        stream, _, number = routing_key.rpartition("-")
        return routing_key in self.queues or (number.isdecimal() and stream in self.super_streams)


def marked(schema: StructType, options: ReadOptions) -> StructType:
    """The schema of the source, with the brokers and the queues of the options in each column."""
    read = {
        "brokers": _brokers(options.connection),
        "queues": [*options.queues, *options.streams],
        "super_streams": [*options.super_streams],
        "exchanges": [*options.super_streams, *filter(None, [options.shard_exchange])],
    }
    return StructType(
        [
            StructField(each.name, each.dataType, metadata={_KEY: {**read, "column": each.name}})
            for each in schema.fields
        ]
    )


def origin_of(fields: Iterable[StructField], options: ConnectionOptions) -> Origin:
    """What rows with these columns were read from, as far as it is on this broker."""
    ours = set(_brokers(options))
    marks = [mark for mark in map(_mark, fields) if not ours.isdisjoint(mark.get("brokers", ()))]
    return Origin(
        *(
            frozenset(name for mark in marks for name in mark.get(kind, ()))
            for kind in ("queues", "super_streams", "exchanges")
        )
    )


def is_column(field: StructField | None, name: str) -> bool:
    """Whether a column is one of the source, unchanged."""
    return field is not None and bool(_mark(field).get("column") == name)


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
