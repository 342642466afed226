"""Parsing of a body as JSON, and the text of the reason if it fails.

These functions return Spark expressions and never see a message. Spark parses each body once to find poison.
The reason takes one more parse for each field, for poison only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, functions as F
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

_CORRUPT = "_poison_corrupt"
_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}

# Appended to a body, to check that it ends where its JSON ends. No body ends with it.
_END, _ZEROS = "end of the body", 9

# The limit for a value or a list of names in a reason, in characters.
_SHOWN = 60

_NOUNS: tuple[tuple[type[DataType], str], ...] = (
    (NumericType, "a number of type {}"),
    (BooleanType, "a boolean"),
    (DateType, "a date"),
    (TimestampType, "a timestamp"),
    (TimestampNTZType, "a timestamp"),
    (StructType, "an object"),
    (DataType, "{}"),
)


def quoted(name: str) -> str:
    """The name of a column, quoted for Spark, which otherwise splits names at dots."""
    return "`" + name.replace("`", "``") + "`"


def parsed_body(text: Column, fields: StructType, options: Mapping[str, str]) -> Column:
    """The fields of a JSON object as a struct, and in one more field the text if a field did not fit."""
    nullable = [StructField(field.name, field.dataType, True) for field in fields]
    schema = StructType([*nullable, StructField(_CORRUPT, StringType())])
    return F.from_json(text, schema, {**options, **_PERMISSIVE})


def is_broken(text: Column, parsed: Column, fields: StructType, options: Mapping[str, str]) -> Column:
    """True if the body is poison. Never null."""
    flaws = [
        text.isNull(),
        parsed.isNull(),
        parsed.getField(_CORRUPT).isNotNull(),
        *_missing(parsed, fields),
        ~_is_one_value(text, options),
    ]
    return F.coalesce(reduce(or_, flaws), F.lit(True))


def problems(
    octets: Column, text: Column, parsed: Column, fields: StructType, options: Mapping[str, str]
) -> Column:
    """The reasons why a body is poison, as one text."""
    names = F.from_json(text, "map<string,string>", {**options, **_PERMISSIVE})
    of_fields = F.concat_ws("; ", *_problems(text, parsed, fields, options, ""))
    return (
        F.when(octets.isNull(), "no body")
        .when(text.isNull(), "not valid UTF-8")
        .when(~text.rlike(r"\S"), "empty body")
        .when(~_is_one_value(text, options) & (parsed.isNull() | names.isNull()), "not JSON")
        .when(~_is_one_value(text, options), "not JSON: text after the end of the object")
        .when(names.isNull() & ~text.rlike(r"^\s*\{"), F.concat(F.lit("not a JSON object: "), _shown(text)))
        .when(of_fields != "", of_fields)
        .otherwise("not JSON")
    )


def _problems(
    text: Column, parsed: Column, fields: StructType, options: Mapping[str, str], path: str
) -> Iterator[Column]:
    """One column for each field of an object: the reason, or null if the field is valid."""
    # A variant keeps the quotes of a value; an object with a duplicate name has no variants.
    variants = F.from_json(text, "map<string,variant>", {**options, **_PERMISSIVE})
    strings = F.from_json(text, "map<string,string>", {**options, **_PERMISSIVE})
    present = _shown(F.array_join(F.array_sort(F.array_distinct(F.map_keys(strings))), ", "))
    hint = F.when(present == "", "").otherwise(F.concat(F.lit(" (found: "), present, F.lit(")")))
    for field in fields:
        key, name = F.lit(field.name), path + field.name
        raw = F.try_element_at(strings, key)
        shown = F.coalesce(F.to_json(F.try_element_at(variants, key)), raw)
        value = parsed.getField(field.name)
        alone = parsed_body(text, StructType([field]), options)
        problem = F.when(
            alone.getField(_CORRUPT).isNotNull(),
            F.concat(F.lit(f"field {name} is not {_noun(field.dataType)}: "), _shown(shown)),
        )
        if isinstance(field.dataType, StructType):
            inner = F.concat_ws("; ", *_problems(raw, value, field.dataType, options, f"{name}."))
            problem = F.when(value.isNotNull() & (inner != ""), inner).when(problem.isNotNull(), problem)
        if not field.nullable:
            missing = F.concat(F.lit(f"missing field {name}"), hint)
            problem = problem.when(strings.isNotNull() & ~F.map_contains_key(strings, key), missing)
            problem = problem.when(value.isNull(), F.lit(f"field {name} is null"))
        yield problem


def _missing(parsed: Column, fields: StructType) -> Iterator[Column]:
    """For each required field, a column that is true if the field is missing."""
    for field in fields:
        value = parsed.getField(field.name)
        if not field.nullable:
            yield value.isNull()
        if isinstance(field.dataType, StructType):
            yield from (value.isNotNull() & each for each in _missing(value, field.dataType))


def _in_list(text: Column, end: str) -> Column:
    return F.concat(F.lit("["), text, F.lit(f",{end}]"))


def _is_one_value(text: Column, options: Mapping[str, str]) -> Column:
    """True if the body ends where its JSON ends; from_json ignores the rest."""
    # Counting does not create values and is three times as fast as from_json, but it has no options.
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
