"""Parts messages that can be worked with from poison: those that no retry makes readable.

A query that fails over a message fails over it again after every restart. And the broker cannot dead-letter
what the source has acknowledged already, so the pipeline has to: `poison_split` finds poison and says what is
wrong with it, `dead_letters` makes rows for the sink of it. Both take a DataFrame of a batch or of a stream,
and neither runs Python on the executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.poison_reasons import complaints, is_broken, parsed_body, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PoisonSplit", "dead_letters", "poison_split"]

REASON = "reason"

_TEXT, _PARSED = "_poison_text", "_poison_parsed"

# What `poison_split` itself says to from_json.
_OURS = ("mode", "columnNameOfCorruptRecord")

# Headers of the message as it came that a dead letter must not have. Brokers route by them, and close the
# channel where they are no lists, as after a map of strings.
_LEFT_OUT = ("CC", "BCC")

# Properties that a dead letter does not get: it shall not expire, and only its own user may send a user id.
_NOT_SENT = ("expiration", "user_id")


class PoisonSplit(NamedTuple):
    """The two parts: `good` has the fields of the body as columns, `poison` has a column `reason`."""

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
    """Part messages with a JSON object of this schema in their body from all others.

    >>> orders, poison = poison_split(messages, "order_id STRING NOT NULL, total DECIMAL(10, 2)")

    The body is read as `from_json` does in its mode PERMISSIVE, and none makes the query fail. It has to be
    UTF-8, JSON, one object and nothing after it; fields have to be of their types; those that are NOT NULL in
    the schema have to be there, also within structs. Fields that the schema does not have are left out.

    On a stream, `good` and `poison` are parts of one DataFrame. Two queries that write one each would compete
    for the messages of a queue: write them as one again (`unionByName`), or give each query its own queue.

    Args:
        df: what the source gives, or anything with a column of bodies.
        schema: the fields of the body, as a StructType or as DDL.
        body: the name of the column with the bodies, BINARY or STRING.
        rules: further reasons for poison, each a text with its condition: a Column
            or SQL. Conditions are asked about messages that could be read, and see fields and other columns.
        options: further options of `from_json`, such as `timestampFormat`.

    Returns:
        `good`: the fields of the schema as columns, then the columns of `df`. `poison`: the columns of `df`,
        then `reason`, such as `not JSON` or `field total is no number of type INT: "12"`, with
        semicolons between several.

    Raises:
        ColumnError: there is no column of that name or it holds no body, the schema has no fields, or two
            columns would have one name.
        OptionError: an option that is not for the caller to set.
    """
    fields = _fields(schema)
    _check_columns(df, body, fields)
    options = _options(options)
    octets, text, parsed = F.col(quoted(body)), F.col(_TEXT), F.col(_PARSED)

    texts = df.select("*", F.try_validate_utf8(octets.cast("string")).alias(_TEXT))
    # A generator of one row: through a projection Spark would push the filter, and read the body once more.
    read = texts.select("*", F.explode(F.array(parsed_body(text, fields, options))).alias(_PARSED))
    spread = read.select("*", *(parsed.getField(name).alias(name) for name in fields.names))

    breaches = [(why, F.expr(rule) if isinstance(rule, str) else rule) for why, rule in (rules or {}).items()]
    breached = reduce(or_, (F.coalesce(rule, F.lit(False)) for _, rule in breaches), F.lit(False))
    broken = is_broken(text, parsed, fields, options)
    # Rules are asked only where there is something to ask about, and words made only where they are needed.
    is_poison = F.when(broken, True).otherwise(breached)
    reason = F.when(broken, complaints(octets, text, parsed, fields, options)).otherwise(
        F.concat_ws("; ", *(F.when(rule, F.lit(why)) for why, rule in breaches))
    )
    came = [quoted(name) for name in df.columns]
    return PoisonSplit(
        good=spread.filter(~is_poison).select(*map(quoted, fields.names), *came),
        poison=spread.filter(is_poison).select(*came, reason.alias(REASON)),
    )


def dead_letters(poison: DataFrame, exchange: str, *, routing_key: str | None = None) -> DataFrame:
    """Make rows for the sink of poison: the messages as they came, with headers that say why and from where.

    >>> dead_letters(poison, "orders.dead").write.format("amqp").option("amqp.url", url).save()

    The headers are those of the message and `x-reason`, `x-original-exchange`, `x-original-routing-key` and
    `x-original-queue`, as far as `poison` has the columns. Headers and properties that the source was told
    not to read (`includeHeaders`, `includeProperties`) are lost. The headers CC and BCC and the properties
    `expiration` and `user_id` are left out, because a broker would act on them.

    Args:
        poison: messages with a column `reason`, as from `poison_split`.
        exchange: where they shall go. It has to exist, and a queue should be bound to it.
        routing_key: with which key; by default with the one they came with, as a broker dead-letters.

    Returns:
        The columns `value`, `exchange`, `routing_key` and `headers`, and those of `message_id`, `timestamp`
        and the properties that `poison` has.

    Raises:
        ColumnError: if a column is missing that this needs.
    """
    there = {name.lower(): field.dataType for name, field in zip(poison.columns, poison.schema, strict=True)}
    for needed in ("value", REASON, *(() if routing_key is not None else ("routing_key",))):
        if needed not in there:
            raise ColumnError(f"dead_letters needs the column {needed!r}{near_match(needed, there)}")
    said = {"x-reason": REASON}
    origins = ("exchange", "routing_key", "queue")
    said |= {f"x-original-{name.replace('_', '-')}": name for name in origins if name in there}
    key = F.col("routing_key") if routing_key is None else F.lit(routing_key)
    columns = [
        F.col("value"),
        F.lit(exchange).alias("exchange"),
        key.alias("routing_key"),
        _headers(there.get("headers"), said).alias("headers"),
        *(F.col(name) for name in ("message_id", "timestamp") if name in there),
    ]
    properties = there.get("properties")
    if isinstance(properties, StructType):
        sent = [name for name in properties.names if name not in _NOT_SENT]
        columns += [F.col("properties").getField(name).alias(name) for name in sent]
    return poison.select(*columns)


def _headers(kind: DataType | None, said: Mapping[str, str]) -> Column:
    """The headers of the message and ours, in the format in which the source has given them."""
    ours = F.create_map(*(part for name, column in said.items() for part in (F.lit(name), F.col(column))))
    if kind is None:
        return ours
    as_json = isinstance(kind, StringType)
    theirs = F.from_json("headers", "map<string,variant>") if as_json else F.col("headers")
    kept = F.map_filter(theirs, lambda name, _: ~name.isin(*said, *_LEFT_OUT))
    if not as_json:
        return F.when(theirs.isNull(), ours).otherwise(F.map_concat(kept, ours))
    first, second = F.to_json(kept), F.to_json(ours)
    joined = F.concat(F.left(first, F.length(first) - 1), F.lit(","), F.substr(second, F.lit(2)))
    return F.when(F.size(kept) > 0, joined).otherwise(second)


def _fields(schema: StructType | str) -> StructType:
    fields = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(fields, StructType) or not fields.names:
        raise ColumnError(
            f"the schema of a body has to have fields, as a StructType or DDL; it is {schema!r}"
        )
    return fields


def _check_columns(df: DataFrame, body: str, fields: StructType) -> None:
    if body not in df.columns:
        raise ColumnError(f"there is no column {body!r} to read bodies from{near_match(body, df.columns)}")
    kind = df.schema[body].dataType.simpleString()
    if kind not in ("binary", "string"):
        raise ColumnError(f"column {body!r} is {kind}; a body is BINARY or STRING")
    columns = {name.lower() for name in df.columns}
    if REASON in columns:
        raise ColumnError(f"the messages have a column {REASON!r} already; rename or drop it before")
    for name in sorted(columns & {name.lower() for name in fields.names}):
        raise ColumnError(
            f"the schema has a field {name!r}, and so have the messages a column; rename that one before: "
            f"df.withColumnRenamed({name!r}, 'amqp_{name}')"
            + (f", and say body='amqp_{name}'" if name == body.lower() else ", or leave it out")
        )


def _options(given: Mapping[str, str] | None) -> dict[str, str]:
    for key in given or {}:
        if key.lower() in map(str.lower, _OURS):
            raise OptionError(f"option {key!r} is not for the caller of poison_split: it has to be as it is")
    return dict(given or {})
