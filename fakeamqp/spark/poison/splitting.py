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
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import StructType

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.poison.reasons import OWN_OPTIONS, Bodies

#: The column of poison with the reasons.
REASON = "reason"

_TEXT, _PARSED = "_poison_text", "_poison_parsed"


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
    fields = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(fields, StructType) or not fields.names:
        raise ColumnError(f"the schema of a body must have fields, as a StructType or DDL; it is {schema!r}")
    _check_columns(df, body, fields)
    for key in options or {}:
        if key.lower() in map(str.lower, OWN_OPTIONS):
            raise OptionError(f"option {key!r} cannot be set: poison_split sets it itself")
    octets, parsed = F.col(_quoted(body)), F.col(_PARSED)
    bodies = Bodies(F.col(_TEXT), fields, options or {})

    texts = df.select("*", F.try_validate_utf8(octets.cast("string")).alias(_TEXT))
    # A generator of one row: Spark would push the filter through a projection, and parse the body twice.
    read = texts.select("*", F.explode(F.array(bodies.parsed())).alias(_PARSED))
    spread = read.select("*", *(parsed.getField(name).alias(name) for name in fields.names))

    breaches = [(why, F.expr(rule) if isinstance(rule, str) else rule) for why, rule in (rules or {}).items()]
    breached = reduce(or_, (F.coalesce(rule, F.lit(False)) for _, rule in breaches), F.lit(False))
    broken = bodies.is_poison(parsed)
    # Rules apply only to valid bodies, and only poison gets the text of a reason.
    is_poison = F.when(broken, True).otherwise(breached)
    reason = F.when(broken, bodies.reasons(octets, parsed)).otherwise(
        F.concat_ws("; ", *(F.when(rule, F.lit(why)) for why, rule in breaches))
    )
    if "_error" in df.columns:  # The column of the source with what it could not read.
        unread = F.col("_error")
        is_poison = F.when(unread.isNotNull(), True).otherwise(is_poison)
        reason = F.concat_ws("; ", unread.getField("reason"), F.nullif(reason, F.lit("")))
    original = [_quoted(name) for name in df.columns]
    return PoisonSplit(
        good=spread.filter(~is_poison).select(*map(_quoted, fields.names), *original),
        poison=spread.filter(is_poison).select(*original, reason.alias(REASON)),
    )


def _quoted(name: str) -> str:
    """The name of a column, quoted for Spark, which otherwise splits names at dots."""
    return "`" + name.replace("`", "``") + "`"


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
