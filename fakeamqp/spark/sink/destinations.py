"""Where rows go: by options, as in Spark's sink for Kafka, and by columns as far as options leave it to them.

| Set | Exchange | Routing key |
|---|---|---|
| no option | column `exchange` | column `routing_key` |
| `exchange` | the option | column `routing_key` |
| `routingKey` | the default exchange | the option |

`exchangeColumn` and `routingKeyColumn` name another column; where it is null, the option counts.
Without one, the exchange is the default exchange, and the routing key is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.origin import is_column, queues_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from fakeamqp.spark.options import WriteOptions
    from fakeamqp.spark.sink.columns import Path

__all__ = ["ON_PURPOSE", "check_not_fed", "destination_columns"]

_BOTH = ("exchange", "routing_key")
ON_PURPOSE = (
    "Publish to another queue; to put messages back on purpose, publish to an exchange with a binding to the "
    "queue"
)


def destination_columns(schema: StructType, options: WriteOptions) -> Mapping[str, int]:
    """The indexes of the columns with the exchange and the routing key, by `exchange` and `routing_key`.

    Raises:
        ColumnError: an option names a column that is not there.
        OptionError: neither options nor columns give a destination.
    """
    indexes = {field.name.lower(): index for index, field in enumerate(schema.fields)}
    by_rows = options.routing_key is None
    wanted = {
        "exchange": (options.exchange_column, "exchangeColumn", options.exchange is None and by_rows),
        "routing_key": (options.routing_key_column, "routingKeyColumn", by_rows),
    }
    found = {}
    for name, (chosen, key, left_to_rows) in wanted.items():
        if chosen is not None and chosen.lower() not in indexes:
            raise ColumnError(
                f"option {key!r}: there is no column {chosen!r}{near_match(chosen.lower(), indexes)}"
            )
        if chosen is not None:
            found[name] = indexes[chosen.lower()]
        elif left_to_rows and name in indexes:
            found[name] = indexes[name]
    if not (found or options.exchange or options.routing_key):
        raise OptionError(
            "the rows have no destination: set the option 'exchange' or 'routingKey' (for the default "
            "exchange, the name of a queue), or add the columns 'exchange' and 'routing_key'"
            + (
                "; column 'queue' is the queue that a row was read from, not a destination"
                if "queue" in indexes
                else ""
            )
        )
    return found


def check_not_fed(
    schema: StructType, columns: Mapping[str, tuple[Path, ...]], options: WriteOptions
) -> frozenset[str]:
    """Refuse a query that publishes to the queues that it reads.

    Args:
        schema: the schema of the DataFrame.
        columns: the places of the columns of the sink.
        options: the options of the sink.

    Returns:
        the queues and streams that the rows come from, if they are on the broker of the options and as far
        as that is known: no row may go to one of them by way of the default exchange.

    Raises:
        OptionError: all rows would.
    """
    read = queues_of(schema.fields, options.connection)
    if not read:
        return frozenset()
    names = ", ".join(map(repr, sorted(read)))
    of_rows = {name: schema.fields[columns[name][0][0]] for name in _BOTH if name in columns}
    if len(of_rows) == 2 and all(is_column(field, name) for name, field in of_rows.items()):
        raise OptionError(
            f"the query would read its own messages: its rows come from {names}, and have the exchange "
            "and the routing key that led there. Set the option 'routingKey' or 'exchange', or compute these "
            "columns"
        )
    if not of_rows and not options.exchange and options.routing_key in read:
        raise OptionError(f"the query would read its own messages: its rows come from {names}. {ON_PURPOSE}")
    return frozenset(read)
