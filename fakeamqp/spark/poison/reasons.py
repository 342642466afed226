"""Bodies as JSON objects of a schema: their fields, whether they are poison, and the reasons.

Everything here is a Spark expression, and no Python sees a message. Spark parses each body once to find
poison. The reason takes one more parse for each field, for poison only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, functions as F
from pyspark.sql.types import DataType, NumericType, StringType, StructField, StructType

_CORRUPT = "_poison_corrupt"

#: Options of from_json that are not for the user.
OWN_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}

# Appended to a body, to check that it ends where its JSON ends. No body ends with it.
_END, _ZEROS = "end of the body", 9

# The limit for a value or a list of names in a reason, in characters.
_SHOWN = 60

_NOUNS = {"boolean": "a boolean", "date": "a date", "struct": "an object"}
_NOUNS |= dict.fromkeys(("timestamp", "timestamp_ntz"), "a timestamp")


class Bodies:
    """Bodies in the text column `text`, which is null for those that are not UTF-8.

    Args:
        fields: the schema of the JSON objects.
        options: further options of from_json.
    """

    def __init__(self, text: Column, fields: StructType, options: Mapping[str, str]) -> None:
        self._text = text
        self._fields = fields
        self._options = {**options, **OWN_OPTIONS}

    def parsed(self) -> Column:
        """The fields as a struct, and in one more field the text if a field does not fit."""
        return self._struct(self._text, *self._fields)

    def is_poison(self, parsed: Column) -> Column:
        """True if the body is poison. Never null."""
        flaws = [
            self._text.isNull(),
            parsed.isNull(),
            parsed.getField(_CORRUPT).isNotNull(),
            *_missing(parsed, self._fields),
            ~self._is_one_value(),
        ]
        return F.coalesce(reduce(or_, flaws), F.lit(True))

    def reasons(self, octets: Column, parsed: Column) -> Column:
        """The reasons why a body is poison, as one text."""
        names = self._json(self._text, "map<string,string>")
        of_fields = F.concat_ws("; ", *self._problems(self._text, parsed, self._fields, ""))
        goes_on = ~self._is_one_value()
        not_an_object = names.isNull() & ~self._text.rlike(r"^\s*\{")
        return (
            F.when(octets.isNull(), "no body")
            .when(self._text.isNull(), "not valid UTF-8")
            .when(~self._text.rlike(r"\S"), "empty body")
            .when(goes_on & (parsed.isNull() | names.isNull()), "not JSON")
            .when(goes_on, "not JSON: text after the end of the object")
            .when(not_an_object, F.concat(F.lit("not a JSON object: "), _shown(self._text)))
            .when(of_fields != "", of_fields)
            .otherwise("not JSON")
        )

    def _problems(self, text: Column, parsed: Column, fields: StructType, path: str) -> Iterator[Column]:
        """For each field of an object, a column with the reason; null if the field is valid."""
        # A variant keeps the quotes of a value; an object with a duplicate name has no variants.
        variants, strings = (self._json(text, f"map<string,{kind}>") for kind in ("variant", "string"))
        present = _shown(F.array_join(F.array_sort(F.array_distinct(F.map_keys(strings))), ", "))
        hint = F.when(present == "", "").otherwise(F.concat(F.lit(" (found: "), present, F.lit(")")))
        for field in fields:
            key, name = F.lit(field.name), path + field.name
            raw = F.try_element_at(strings, key)
            shown = F.coalesce(F.to_json(F.try_element_at(variants, key)), raw)
            value = parsed.getField(field.name)
            misfit = F.concat(F.lit(f"field {name} is not {_noun(field.dataType)}: "), _shown(shown))
            problem = F.when(self._struct(text, field).getField(_CORRUPT).isNotNull(), misfit)
            if isinstance(field.dataType, StructType):
                inner = F.concat_ws("; ", *self._problems(raw, value, field.dataType, f"{name}."))
                problem = F.when(value.isNotNull() & (inner != ""), inner).when(problem.isNotNull(), problem)
            if not field.nullable:
                missing = F.concat(F.lit(f"missing field {name}"), hint)
                problem = problem.when(strings.isNotNull() & ~F.map_contains_key(strings, key), missing)
                problem = problem.when(value.isNull(), F.lit(f"field {name} is null"))
            yield problem

    def _struct(self, text: Column, *fields: StructField) -> Column:
        nullable = [StructField(field.name, field.dataType) for field in fields]
        return self._json(text, StructType([*nullable, StructField(_CORRUPT, StringType())]))

    def _json(self, text: Column, kind: StructType | str) -> Column:
        return F.from_json(text, kind, self._options)

    def _is_one_value(self) -> Column:
        """True if the body ends where its JSON ends; from_json ignores the rest."""
        begin = F.concat(F.lit("["), self._text)
        # Counting does not create values and is three times as fast as from_json, but it has no options.
        counted = F.json_array_length(F.concat(begin, F.lit(",0" * _ZEROS + "]"))) == 1 + _ZEROS
        values = self._json(F.concat(begin, F.lit(f',"{_END}"]')), "array<string>")
        read = (F.size(values) == 2) & (F.try_element_at(values, F.lit(2)) == _END)
        # Not `counted | read`: Spark would evaluate both.
        return F.when(counted, True).otherwise(F.coalesce(read, F.lit(False)))


def _missing(parsed: Column, fields: StructType) -> Iterator[Column]:
    """For each required field, a column that is true if the field is missing."""
    for field in fields:
        value = parsed.getField(field.name)
        if not field.nullable:
            yield value.isNull()
        if isinstance(field.dataType, StructType):
            yield from (value.isNotNull() & each for each in _missing(value, field.dataType))


def _shown(value: Column) -> Column:
    cut = F.concat(F.left(value, F.lit(_SHOWN)), F.lit("…"))
    return F.when(F.length(value) > _SHOWN, cut).otherwise(value)


def _noun(kind: DataType) -> str:
    spelled = kind.simpleString().upper()
    if isinstance(kind, NumericType):
        return f"a number of type {spelled}"
    return _NOUNS.get(kind.typeName()) or (spelled if len(spelled) <= _SHOWN else spelled[:_SHOWN] + "…")
