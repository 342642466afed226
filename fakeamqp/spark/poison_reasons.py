"""Parsing of a body as JSON, and the text of the reason if it fails.

All of it is expressions of Spark, so nothing here sees a message. A body is read once to know whether it is
poison; the words cost one more reading for each field, and only for bodies that are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

__all__ = ["complaints", "is_broken", "parsed_body", "quoted"]

_CORRUPT = "_poison_corrupt"
_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}

# Put after a body to see whether it ends where its JSON ends: something that bodies do not end with.
_END, _ZEROS = "end of the body", 9

# How much of a value or of a list of names a reason shows, in characters.
_SHOWN = 60

_NOUNS: tuple[tuple[type[DataType], str], ...] = (
    (NumericType, "number of type {}"),
    (BooleanType, "boolean"),
    (DateType, "date"),
    (TimestampType, "timestamp"),
    (TimestampNTZType, "timestamp"),
    (StructType, "object"),
    (DataType, "{}"),
)


def quoted(name: str) -> str:
    """The name of a column as Spark takes it where names may have dots in them."""
    return "`" + name.replace("`", "``") + "`"


def parsed_body(text: Column, fields: StructType, options: Mapping[str, str]) -> Column:
    """The fields of a JSON object as a struct, and in one more field the text if any of them did not fit."""
    nullable = [StructField(field.name, field.dataType, True) for field in fields]
    schema = StructType([*nullable, StructField(_CORRUPT, StringType())])
    return F.from_json(text, schema, {**options, **_PERMISSIVE})


def is_broken(text: Column, parsed: Column, fields: StructType, options: Mapping[str, str]) -> Column:
    """Whether there is anything to complain about. Never null."""
    flaws = [
        text.isNull(),
        parsed.isNull(),
        parsed.getField(_CORRUPT).isNotNull(),
        *_lacks(parsed, fields),
        ~_is_one_value(text, options),
    ]
    return F.coalesce(reduce(or_, flaws), F.lit(True))


def complaints(
    octets: Column, text: Column, parsed: Column, fields: StructType, options: Mapping[str, str]
) -> Column:
    """The text of the problem of a body."""
    names = F.from_json(text, "map<string,string>", {**options, **_PERMISSIVE})
    of_fields = F.concat_ws("; ", *_complaints(text, parsed, fields, options, ""))
    return (
        F.when(octets.isNull(), "no body")
        .when(text.isNull(), "not valid UTF-8")
        .when(~text.rlike(r"\S"), "empty body")
        .when(~_is_one_value(text, options) & (parsed.isNull() | names.isNull()), "not JSON")
        .when(~_is_one_value(text, options), "not JSON: there is more after the end of the object")
        .when(names.isNull() & ~text.rlike(r"^\s*\{"), F.concat(F.lit("no JSON object but "), _shown(text)))
        .when(of_fields != "", of_fields)
        .otherwise("not JSON")
    )


def _complaints(
    text: Column, parsed: Column, fields: StructType, options: Mapping[str, str], path: str
) -> Iterator[Column]:
    """One column for each field of an object: null, or what is wrong with it."""
    # As a variant a value shows its quotes; where an object has a name twice there are no variants.
    variants = F.from_json(text, "map<string,variant>", {**options, **_PERMISSIVE})
    strings = F.from_json(text, "map<string,string>", {**options, **_PERMISSIVE})
    there = _shown(F.array_join(F.array_sort(F.array_distinct(F.map_keys(strings))), ", "))
    hint = F.when(there == "", "").otherwise(F.concat(F.lit(" (there are "), there, F.lit(")")))
    for field in fields:
        key, name = F.lit(field.name), path + field.name
        raw = F.try_element_at(strings, key)
        shown = F.coalesce(F.to_json(F.try_element_at(variants, key)), raw)
        value = parsed.getField(field.name)
        alone = parsed_body(text, StructType([field]), options)
        said = F.when(
            alone.getField(_CORRUPT).isNotNull(),
            F.concat(F.lit(f"field {name} is no {_noun(field.dataType)}: "), _shown(shown)),
        )
        if isinstance(field.dataType, StructType):
            inner = F.concat_ws("; ", *_complaints(raw, value, field.dataType, options, f"{name}."))
            said = F.when(value.isNotNull() & (inner != ""), inner).when(said.isNotNull(), said)
        if not field.nullable:
            missing = F.concat(F.lit(f"missing field {name}"), hint)
            said = said.when(strings.isNotNull() & ~F.map_contains_key(strings, key), missing)
            said = said.when(value.isNull(), F.lit(f"field {name} is null"))
        yield said


def _lacks(parsed: Column, fields: StructType) -> Iterator[Column]:
    """For each field that has to be there, whether it is missing."""
    for field in fields:
        value = parsed.getField(field.name)
        if not field.nullable:
            yield value.isNull()
        if isinstance(field.dataType, StructType):
            yield from (value.isNotNull() & lack for lack in _lacks(value, field.dataType))


def _in_list(text: Column, end: str) -> Column:
    return F.concat(F.lit("["), text, F.lit(f",{end}]"))


def _is_one_value(text: Column, options: Mapping[str, str]) -> Column:
    """Whether the body ends where its JSON ends; from_json does not look further than that."""
    # Counting skips over what from_json would make values of, three times as fast; but it knows no options.
    counted = F.json_array_length(_in_list(text, ",".join("0" * _ZEROS))) == 1 + _ZEROS
    values = F.from_json(_in_list(text, f'"{_END}"'), "array<string>", {**options, "mode": "PERMISSIVE"})
    read = (F.size(values) == 2) & (F.try_element_at(values, F.lit(2)) == _END)
    # Not `counted | read`: Spark would evaluate both.
    return F.when(counted, True).otherwise(F.coalesce(read, F.lit(False)))


def _shown(value: Column) -> Column:
    return F.when(F.length(value) > _SHOWN, F.concat(F.left(value, F.lit(_SHOWN)), F.lit("…"))).otherwise(
        value
    )


def _noun(kind: DataType) -> str:
    noun = next(noun for family, noun in _NOUNS if isinstance(kind, family))
    spelled = kind.simpleString().upper()
    return noun.format(spelled if len(spelled) <= _SHOWN else spelled[:_SHOWN] + "…")
