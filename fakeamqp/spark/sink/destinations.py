"""Where rows go: by options, as in Spark's sink for Kafka, and by columns as far as options leave it to them.

| Set | Exchange | Routing key |
|---|---|---|
| no option | column `exchange` | column `routing_key` |
| `exchange` | the option | column `routing_key` |
| `routingKey` or `routingKeyColumn` | the default exchange | the option, or the column it names |

`exchangeColumn` and `routingKeyColumn` name the column in which rows choose for themselves; where it is null,
the options `exchange` and `routingKey` count. Without one, the exchange is the default exchange, and the
routing key is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.origin import Origin, is_column, origin_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from fakeamqp.spark.options import WriteOptions
    from fakeamqp.spark.sink.columns import Path

ON_PURPOSE = (
    "Publish to another queue; to put messages back on purpose, publish to an exchange with a binding to the "
    "queue"
)
SAME_NAME = "there are two columns {!r}, whose names differ by case only: drop or rename one of them"


def destination_columns(schema: StructType, options: WriteOptions) -> Mapping[str, int]:
    """The indexes of the columns with the exchange and the routing key, by `exchange` and `routing_key`.

    Raises:
        ColumnError: an option names a column that is not there, or there are two columns of a name.
        OptionError: neither options nor columns give a destination.
    """
    names = [name.lower() for name in schema.names]
    by_rows = options.routing_key is None and options.routing_key_column is None
    wanted = {
        "exchange": (options.exchange_column, "exchangeColumn", options.exchange is None and by_rows),
        "routing_key": (options.routing_key_column, "routingKeyColumn", by_rows),
    }
    found = {}
    for name, (chosen, key, left_to_rows) in wanted.items():
        if chosen is None and not left_to_rows:
            continue
        column = name if chosen is None else chosen.lower()
        if names.count(column) > 1:
            raise ColumnError(SAME_NAME.format(column))
        if column in names:
            found[name] = names.index(column)
        elif chosen is not None:
            raise ColumnError(
                f"option {key!r}: there is no column {chosen!r}{near_match(column, set(names))}"
            )
    if not (found or options.exchange or options.routing_key):
        raise OptionError(
            "the rows have no destination: set the option 'exchange' or 'routingKey' (for the default "
            "exchange, the name of a queue), or add the columns 'exchange' and 'routing_key'"
            + (
                "; column 'queue' is the queue that a row was read from, not a destination"
                * ("queue" in names)
            )
        )
    return found


def check_not_fed(
    schema: StructType, columns: Mapping[str, tuple[Path, ...]], options: WriteOptions
) -> Origin:
    """Refuse a streaming query that publishes to the queues that it reads.

    Args:
        schema: the schema of the DataFrame.
        columns: the places of the columns of the sink.
        options: the options of the sink.

    Returns:
        what the rows were read from, if it is on the broker of the options and as far as that is known: no
        row may be published to it.

    Raises:
        OptionError: all rows would.
    """
    read = origin_of(schema.fields, options.connection)
    if not read:
        return read
    of_rows = {name: schema.fields[paths[0][0]] for name, paths in columns.items()}
    exchange, routing_key = of_rows.get("exchange"), of_rows.get("routing_key")
    problem = f"the query would read its own messages: its rows come from {read}"
    if is_column(exchange, "exchange") and (
        options.exchange_column is None or is_column(routing_key, "routing_key")
    ):
        raise OptionError(
            f"{problem}, and have the exchange that led there. Set the option 'routingKey' or 'exchange', or "
            "compute the column. If the exchange takes new routing keys to other queues, set the option "
            "'exchangeColumn'"
        )
    fixed = exchange is None and (routing_key is None or options.exchange)
    if fixed and read.is_fed_by(options.exchange or "", options.routing_key or ""):
        raise OptionError(f"{problem}. {ON_PURPOSE}")
    return read
