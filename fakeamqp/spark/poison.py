"""Separates valid messages from poison messages, which no retry can parse.

A query that fails because of a message fails again after every restart. The broker cannot dead-letter the
message, because the source has already acknowledged it, so the query has to publish it: `poison_split` finds
poison with the reasons, and `dead_letters` converts it to rows for the sink. Both work with DataFrames of
batches and of streams, and run no Python in the executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from fakeamqp.errors import near_match
from fakeamqp.protocols.amqp_0_9_1.codec.tables import MAX_DEPTH
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.poison_reasons import is_broken, parsed_body, problems, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REASON = "reason"

# The column of the source with what it could not read.
_ERROR = "_error"

_TEXT, _PARSED = "_poison_text", "_poison_parsed"

# Options of from_json that `poison_split` sets.
_OURS = ("mode", "columnNameOfCorruptRecord")

# Headers of the original message that a dead letter must not have. Brokers route by them, and close the
# channel if they are not lists. In a map of strings they are not.
_LEFT_OUT = ("CC", "BCC")

# Properties that a dead letter does not have: it must not expire, and a user may send only its own user id.
_NOT_SENT = ("expiration", "user_id")

# The header with the headers of a message as JSON, if they cannot be sent again.
_ORIGINAL_HEADERS = "x-original-headers"

# The bytes of a short string of AMQP, and the characters that always fit into it.
_SHORT, _FITTING = 255, 63
# All properties have to fit into one frame, which has 128 KiB by default. This leaves 11 KB for the others.
_MOST_OCTETS = 120_000
# JSON becomes at most 2.5 times as large in a table: "1," has five bytes there.
_MOST_JSON = _MOST_OCTETS * 2 // 5
# Characters have at most four bytes.
_MOST_TEXT = _MOST_OCTETS // 4


class PoisonSplit(NamedTuple):
    """The result of a split: `good` has the fields of the body as columns, `poison` has a column `reason`."""

    good: DataFrame
    poison: DataFrame


def poison_split(
    df: DataFrame,
    schema: StructType | str,
    *,
    body: str = "value",
    rules: Mapping[str, Column | str] | None = None,
    options: Mapping[str, str] | None = None,
) -> PoisonSplit:
    """Separate the messages whose body is a JSON object of this schema from all others.

    >>> orders, poison = poison_split(messages, "order_id STRING NOT NULL, total DECIMAL(10, 2)")

    `from_json` parses the body in its mode PERMISSIVE, so no body makes the query fail. The body must be
    UTF-8 and exactly one JSON object. Fields must have the types of the schema. Fields that are NOT NULL in
    the schema must be present, also within structs. Fields that the schema does not have are ignored. A
    message whose properties the source could not read is poison, too, if `df` has the column `_error`.

    On a stream, write `good` and `poison` with one query (`unionByName`), or give each query its own queue:
    two queries on one queue would compete for its messages.

    Args:
        df: a DataFrame of the source, or any DataFrame with a column of bodies.
        schema: the fields of the body, as a StructType or as DDL.
        body: the name of the column with the bodies, BINARY or STRING.
        rules: further reasons for poison, each a text with its condition, which is a Column or SQL.
            Conditions apply to valid bodies, and can use their fields and the columns of `df`.
        options: further options of `from_json`, such as `timestampFormat`.

    Returns:
        `good`: the fields of the schema as columns, then the columns of `df`. `poison`: the columns of `df`,
        then `reason`, such as `not JSON` or `field total is not a number of type INT: "12"`; semicolons
        separate several reasons.

    Raises:
        ColumnError: the column `body` is missing or has another type, the schema has no fields, or two
            columns would have the same name.
        OptionError: an option that `poison_split` sets itself.
    """
    fields = _fields(schema)
    _check_columns(df, body, fields)
    options = _options(options)
    octets, text, parsed = F.col(quoted(body)), F.col(_TEXT), F.col(_PARSED)

    texts = df.select("*", F.try_validate_utf8(octets.cast("string")).alias(_TEXT))
    # A generator of one row: Spark would push the filter through a projection, and parse the body twice.
    read = texts.select("*", F.explode(F.array(parsed_body(text, fields, options))).alias(_PARSED))
    spread = read.select("*", *(parsed.getField(name).alias(name) for name in fields.names))

    breaches = [(why, F.expr(rule) if isinstance(rule, str) else rule) for why, rule in (rules or {}).items()]
    breached = reduce(or_, (F.coalesce(rule, F.lit(False)) for _, rule in breaches), F.lit(False))
    broken = is_broken(text, parsed, fields, options)
    # Rules apply only to valid bodies, and only poison gets the text of a reason.
    is_poison = F.when(broken, True).otherwise(breached)
    reason = F.when(broken, problems(octets, text, parsed, fields, options)).otherwise(
        F.concat_ws("; ", *(F.when(rule, F.lit(why)) for why, rule in breaches))
    )
    if _ERROR in df.columns:
        unread = F.col(_ERROR)
        is_poison = F.when(unread.isNotNull(), True).otherwise(is_poison)
        reason = F.concat_ws("; ", unread.getField("reason"), F.nullif(reason, F.lit("")))
    original = [quoted(name) for name in df.columns]
    return PoisonSplit(
        good=spread.filter(~is_poison).select(*map(quoted, fields.names), *original),
        poison=spread.filter(is_poison).select(*original, reason.alias(REASON)),
    )


def dead_letters(poison: DataFrame, exchange: str, *, routing_key: str | None = None) -> DataFrame:
    """Convert poison to rows for the sink: the original messages, with headers for the reason and the origin.

    >>> letters = dead_letters(poison, "orders.dead")
    >>> letters.write.format("amqp").option("amqp.url", url).mode("append").save()

    The headers are those of the message, and `x-reason`, `x-original-exchange`, `x-original-routing-key` and
    `x-original-queue` if `poison` has the columns. Headers and properties that the source did not read
    (`includeHeaders`, `includeProperties`) are lost. The headers CC and BCC and the properties
    `expiration` and `user_id` are left out, because a broker would act on them.

    What the source could read and the sink cannot send does not make the query fail. Headers that are too
    large for a frame as text, nest too deep, or have a name that is too long become one header
    `x-original-headers` of JSON, of 30,000 characters at most. Other texts are cut to 63 characters if they
    have more than 255 bytes; both happens if bytes that are no text were replaced. A delivery mode other than
    1 and 2 is left out.

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
    present = {
        name.lower(): field.dataType for name, field in zip(poison.columns, poison.schema, strict=True)
    }
    for needed in ("value", REASON, *(() if routing_key is not None else ("routing_key",))):
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
    headers = F.col("headers")
    theirs = F.from_json(headers, "map<string,variant>") if as_json else headers
    kept = F.map_filter(theirs, lambda name, _: ~name.isin(*added, *_LEFT_OUT))
    text = headers if as_json else F.to_json(headers)
    replaced = F.map_concat(ours, F.create_map(F.lit(_ORIGINAL_HEADERS), F.left(text, F.lit(_MOST_TEXT))))
    fits = ~F.exists(F.map_keys(kept), lambda name: F.octet_length(name) > _SHORT)
    if not as_json:
        fits &= F.aggregate(F.map_entries(kept), F.lit(0), _with_octets) <= _MOST_OCTETS
        sent = F.when(fits, F.map_concat(kept, ours)).otherwise(replaced)
        return F.when(headers.isNull(), ours).otherwise(sent)
    # The sink sends no tables that nest deeper. The number of brackets is not less than the depth.
    brackets = F.length(text) - F.length(F.translate(text, "{[", ""))
    fits &= (F.octet_length(text) <= _MOST_JSON) & (brackets <= MAX_DEPTH)
    first, second = F.to_json(kept), F.to_json(ours)
    joined = F.concat(F.left(first, F.length(first) - 1), F.lit(","), F.substr(second, F.lit(2)))
    nothing_kept = headers.isNull() | (F.size(kept) == 0)
    # Spark parses no JSON that nests deeper than 1000 levels: `kept` is null then.
    sent = F.when(fits, joined).otherwise(F.to_json(replaced))
    return F.when(nothing_kept, second).otherwise(sent)


def _with_octets(sum_of_others: Column, header: Column) -> Column:
    """The bytes of header fields of text: a name and a value with their lengths, and a type."""
    value = F.coalesce(F.octet_length(header.getField("value")), F.lit(0))
    return sum_of_others + F.octet_length(header.getField("key")) + value + F.lit(6)


def _fields(schema: StructType | str) -> StructType:
    fields = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(fields, StructType) or not fields.names:
        raise ColumnError(f"the schema of a body must have fields, as a StructType or DDL; it is {schema!r}")
    return fields


def _check_columns(df: DataFrame, body: str, fields: StructType) -> None:
    if body not in df.columns:
        raise ColumnError(f"there is no column {body!r} with the bodies{near_match(body, df.columns)}")
    kind = df.schema[body].dataType.simpleString()
    if kind not in ("binary", "string"):
        raise ColumnError(f"column {body!r} is {kind}; it must be BINARY or STRING")
    columns = {name.lower() for name in df.columns}
    if REASON in columns:
        raise ColumnError(f"the messages already have a column {REASON!r}; rename or drop it first")
    for name in sorted(columns & {name.lower() for name in fields.names}):
        raise ColumnError(
            f"both the schema and the messages have a field {name!r}; rename the column first: "
            f"df.withColumnRenamed({name!r}, 'amqp_{name}')"
            + (f", and set body='amqp_{name}'" if name == body.lower() else ", or drop it")
        )


def _options(given: Mapping[str, str] | None) -> dict[str, str]:
    for key in given or {}:
        if key.lower() in map(str.lower, _OURS):
            raise OptionError(f"option {key!r} cannot be set: poison_split sets it itself")
    return dict(given or {})
