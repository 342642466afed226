"""Poison messages as rows for the sink, which can send each of them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import DataType, StringType, StructType

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import ColumnError
from fakeamqp.spark.poison.splitting import REASON

# Headers of the original message that a dead letter must not have. Brokers route by them, and close the
# channel if they are not lists. In a map of strings they are not.
_LEFT_OUT = ("CC", "BCC")

# Properties that a dead letter does not have: it must not expire, and a user may send only its own user id.
_NOT_SENT = ("expiration", "user_id")

# The bytes of a short string of AMQP, and the characters that always fit into it.
_SHORT, _FITTING = 255, 63
# All properties have to fit into one frame, which has 128 KiB by default. This leaves 11 KB for the others.
# A map of texts is as large in a table as it is as JSON.
_MOST_BYTES = 120_000
# Other JSON becomes at most 2.5 times as large: "1," has five bytes in a table.
_MOST_JSON = _MOST_BYTES * 2 // 5
# Characters have at most four bytes.
_MOST_TEXT = _MOST_BYTES // 4


def dead_letters(poison: DataFrame, exchange: str, *, routing_key: str | None = None) -> DataFrame:
    """Convert poison to rows for the sink: the original messages, with headers for the reason and the origin.

    >>> letters = dead_letters(poison, "orders.dead")
    >>> letters.write.format("amqp").option("amqp.url", url).mode("append").save()

    The headers are those of the message, and `x-reason`, `x-original-exchange`, `x-original-routing-key` and
    `x-original-queue` if `poison` has the columns. Headers and properties that the source did not read
    (`includeHeaders`, `includeProperties`) are lost. The headers CC and BCC and the properties
    `expiration` and `user_id` are left out, because a broker would act on them.

    What the source could read and the sink cannot send does not make the query fail. Headers that are too
    large for a frame as text, or have a name that is too long, become one header `x-original-headers` of
    JSON, of 30,000 characters at most. Other texts are cut to 63 characters if they have more than 255 bytes;
    both happens if bytes that are no text were replaced. A delivery mode other than 1 and 2 is left out.

    Args:
        poison: messages with a column `reason`, from `poison_split`.
        exchange: the exchange for the dead letters. It must exist, and should have a queue.
        routing_key: the routing key for the dead letters. The default is the original one, as in brokers.

    Returns:
        The columns `value`, `exchange`, `routing_key` and `headers`, and those of `message_id`, `timestamp`
        and the properties that `poison` has.

    Raises:
        ColumnError: a required column is missing.
    """
    present = {field.name.lower(): field.dataType for field in poison.schema}
    for needed in ["value", REASON] + ["routing_key"] * (routing_key is None):
        if needed not in present:
            raise ColumnError(f"dead_letters needs the column {needed!r}{near_match(needed, present)}")
    added = {"x-reason": REASON}
    origins = ("exchange", "routing_key", "queue")
    added |= {f"x-original-{name.replace('_', '-')}": name for name in origins if name in present}
    key = _short(F.col("routing_key")) if routing_key is None else F.lit(routing_key)
    columns = [
        F.col("value"),
        F.lit(exchange).alias("exchange"),
        key.alias("routing_key"),
        _headers(present.get("headers"), added).alias("headers"),
        *(_sendable(name, F.col(name)) for name in ("message_id", "timestamp") if name in present),
    ]
    properties = present.get("properties")
    if isinstance(properties, StructType):
        sent = [name for name in properties.names if name not in _NOT_SENT]
        columns += [_sendable(name, F.col("properties").getField(name)) for name in sent]
    return poison.select(*columns)


def _short(text: Column) -> Column:
    """A text that fits into a short string."""
    return F.when(F.octet_length(text) > _SHORT, F.left(text, F.lit(_FITTING))).otherwise(text)


def _sendable(name: str, value: Column) -> Column:
    """A property as the sink accepts it."""
    if name == "delivery_mode":
        value = F.when(value.between(1, 2), value)
    elif name not in ("timestamp", "priority"):
        value = _short(value)
    return value.alias(name)


def _headers(kind: DataType | None, added: Mapping[str, str]) -> Column:
    """The headers of the message and the added ones, in the format of the source."""
    ours = F.create_map(*(part for name, column in added.items() for part in (F.lit(name), F.col(column))))
    if kind is None:
        return ours
    as_json = isinstance(kind, StringType)
    theirs = F.col("headers")
    text, most = (theirs, _MOST_JSON) if as_json else (F.to_json(theirs), _MOST_BYTES)
    original = F.left(text, F.lit(_MOST_TEXT))
    if as_json:
        theirs = F.from_json(text, "map<string,variant>")
        ours = F.transform_values(ours, lambda _, value: value.cast("variant"))
        original = original.cast("variant")
    kept = F.map_filter(theirs, lambda name, _: ~name.isin(*added, *_LEFT_OUT))
    fits = ~F.exists(F.map_keys(kept), lambda name: F.octet_length(name) > _SHORT)
    headers = (
        F.when(F.col("headers").isNull(), ours)
        .when(fits & (F.octet_length(text) <= most), F.map_concat(kept, ours))
        .otherwise(F.map_concat(ours, F.create_map(F.lit("x-original-headers"), original)))
    )
    return F.to_json(headers) if as_json else headers
