"""JSON Schema of the arguments of functions and of the fields of views, made of their annotations.

A value of JSON stands for the same value of Python. Those that JSON lacks are objects with one key, as in
recordings (`fakeamqp.trace.json_form`), such as `{"base64": "AP8="}` for bytes; and `{"regex": "^order"}` for
a compiled regular expression.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias, get_args

from fakeamqp.dialects import Direction
from fakeamqp.errors import FakeAMQPError, near_match
from fakeamqp.trace.json_form import bytes_or_text, value_to_json
from fakeamqp.trace.json_lines import value_from_json

Schema: TypeAlias = "dict[str, Any]"

_BASE64 = {"type": "object", "properties": {"base64": {"type": "string"}}, "required": ["base64"]}
_REGEX = {"type": "object", "properties": {"regex": {"type": "string"}}, "required": ["regex"]}
_ATOMS: dict[str, Schema] = {
    "None": {"type": "null"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "bytes": {"anyOf": [{"type": "string"}, _BASE64]},
    "datetime": {"type": "string", "format": "date-time"},
    "re.Pattern[str]": _REGEX,
    "re.Pattern[bytes]": _REGEX,
    "Any": {},
    "FrozenDict": {"type": "object"},
    "list[Any]": {"type": "array"},
    "Iterable[str]": {"type": "array", "items": {"type": "string"}},
    "Count": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": ["integer", "null"]}}]},
    "Direction": {"enum": list(get_args(Direction))},
    "Allow": {"type": ["string", "array", "object"]},
}
"""By annotation. What is in none of the tables, such as a function, has no JSON."""

COMPONENTS: dict[str, Schema] = {}
"""The schemas of views, by the names of their classes."""

_LEFT_OUT = frozenset(("messages", "options"))
"""Fields of the view of a queue: one has no bound, the other has no JSON."""


class BadRequest(FakeAMQPError):
    """A request lacks a field, has one that does not exist, or one with a value of another type."""


def schema_of(annotation: str, names: Mapping[str, Any]) -> Schema | None:
    """The schema of an annotation, whose names are those of a module; None if JSON has no such value."""
    if annotation in _ATOMS:
        return _ATOMS[annotation]
    parts = re.split(r" \| (?![^\[]*\])", annotation)
    if len(parts) > 1:
        return _union([schema_of(part, names) for part in parts])
    if re.fullmatch(r"(Mapping|dict)\[str, .+\]", annotation):
        return {"type": "object"}
    if inner := re.fullmatch(r"tuple\[(.+), \.\.\.\]", annotation):
        items = schema_of(inner[1], names)
        return None if items is None else {"type": "array", "items": items}
    if inner := re.fullmatch(r"Literal\[(.+)\]", annotation):
        return {"enum": list(literal_eval(f"({inner[1]},)"))}
    known = names.get(annotation)
    if isinstance(known, str):
        return schema_of(known, names)
    if is_dataclass(known) and isinstance(known, type):
        return view_schema(known)
    return {"enum": list(get_args(known))} if get_args(known) else None


def _union(schemas: list[Schema | None]) -> Schema:
    """The schema of all that one of several takes."""
    kinds: list[str] = []
    others: list[Schema] = []
    for schema in (each for known in schemas if known is not None for each in known.get("anyOf", [known])):
        if list(schema) == ["type"]:
            kinds += [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        elif schema not in others:
            others.append(schema)
    if {} in others:
        return {}
    if kinds:
        kinds = list(dict.fromkeys(kinds))
        others.insert(0, {"type": kinds[0] if len(kinds) == 1 else kinds})
    return others[0] if len(others) == 1 else {"anyOf": others}


def view_schema(view: type) -> Schema:
    """A reference to the schema of a view, which is a dataclass."""
    if view.__name__ not in COMPONENTS:
        made: Schema = {"type": "object"}
        COMPONENTS[view.__name__] = made
        made["properties"] = {
            name: schema_of(annotation, vars(sys.modules[owner.__module__])) or {}
            for name, (annotation, owner) in _shown(view).items()
        }
        made["required"] = list(made["properties"])
    return {"$ref": f"#/components/schemas/{view.__name__}"}


@lru_cache
def _shown(view: type) -> dict[str, tuple[str, type]]:
    """The fields of a view that its JSON has: their annotations, and the classes that declare them."""
    owners = {name: each for each in reversed(view.__mro__) for name in inspect.get_annotations(each)}
    return {
        each.name: (str(each.type), owners[each.name])
        for each in fields(view)
        if each.repr and each.name not in _LEFT_OUT
    }


def to_json(value: Any) -> Any:
    """A view, or a sequence of views, as JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in _shown(type(value))}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return bytes_or_text(value)
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    return value_to_json(value)


# --- arguments ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arguments:
    """The arguments of a function as an object of JSON.

    Attributes:
        called: the name of the function.
        fields: the schemas of those that JSON has.
        help: what the docstring says about them.
        required: those without a default.
        rest: the name of the one that stands for all positional arguments; "" if there is none.
        open: whether the function takes any name, and refuses unknown ones itself.
    """

    called: str
    fields: dict[str, Schema]
    help: dict[str, str]
    required: tuple[str, ...]
    rest: str
    open: bool

    @classmethod
    @lru_cache
    def of(cls, function: Callable[..., Any], keywords: type | None = None) -> Arguments:
        """Those of a function without its first one; `keywords` declares what it takes as `**`."""
        made: dict[str, Schema] = {}
        required, rest, is_open = [], "", False
        names = inspect.unwrap(function).__globals__
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            schema = schema_of(str(parameter.annotation), names)
            if parameter.kind is parameter.VAR_KEYWORD:
                is_open = True
            elif parameter.kind is parameter.VAR_POSITIONAL:
                if schema is not None:
                    rest = parameter.name
                    made[rest] = {"type": "array", "items": schema}
            else:
                if parameter.default is parameter.empty:
                    required.append(parameter.name)
                if schema is not None:
                    made[parameter.name] = schema
        if keywords is not None:
            names = vars(sys.modules[keywords.__module__])
            for name, annotation in keywords.__annotations__.items():
                made[name] = schema_of(str(getattr(annotation, "__forward_arg__", annotation)), names) or {}
        about = _help(function.__doc__ or "")
        return cls(function.__name__, made, about, tuple(required), rest, is_open)

    @property
    def complete(self) -> bool:
        """Whether JSON has a value for all required ones."""
        return set(self.required) <= set(self.fields)

    @property
    def first(self) -> str:
        """The name of the first one, or ""."""
        return next(iter(self.fields), "")

    @property
    def schema(self) -> Schema:
        """The schema of the object."""
        made: Schema = {"type": "object", "properties": {}}
        for name, schema in self.fields.items():
            about = self.help.get(name)
            made["properties"][name] = {**schema, "description": about} if about else schema
        if self.required:
            made["required"] = list(self.required)
        if not self.open:
            made["additionalProperties"] = False
        return made

    def read(self, said: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the other arguments for a call.

        Raises:
            BadRequest: one is missing or unknown, or has a value of another type.
        """
        made = {}
        for name, value in said.items():
            schema = self.fields.get(name)
            if schema is None and not self.open:
                raise BadRequest(f"{self.called} has no field {name!r}{near_match(name, self.fields)}")
            if schema is not None and not fits(value, schema):
                raise BadRequest(f"{name} must be {in_words(schema)}, not {json.dumps(value):.100}")
            made[name] = value_of(value)
        missing = [name for name in self.required if name not in said]
        if missing:
            raise BadRequest(f"{self.called} needs {' and '.join(map(repr, missing))}")
        return made.pop(self.rest, []), made


def _help(docstring: str) -> dict[str, str]:
    """What the section `Args` of a docstring says, by argument."""
    section = re.search(r"^ *Args:\n(.*?)(\n\n|\Z)", inspect.cleandoc(docstring), re.MULTILINE | re.DOTALL)
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "null": (lambda value: value is None, "null"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "integer": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "number": (lambda value: isinstance(value, (int, float)) and not isinstance(value, bool), "a number"),
    "string": (lambda value: isinstance(value, str), "text"),
    "array": (lambda value: isinstance(value, list), "a list"),
    "object": (lambda value: isinstance(value, dict), "an object"),
}


def fits(value: Any, schema: Schema) -> bool:
    """Whether a value of JSON has the type that a schema says; the function checks the rest itself."""
    if "anyOf" in schema:
        return any(fits(value, each) for each in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if "required" in schema and not (isinstance(value, dict) and set(schema["required"]) <= set(value)):
        return False
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_KINDS[kind][0](value) for kind in kinds):
        return False
    if isinstance(value, list) and "items" in schema:
        return all(fits(each, schema["items"]) for each in value)
    return True


def in_words(schema: Schema) -> str:
    """What a schema takes."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(in_words, schema["anyOf"])))
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if "required" in schema:
        return " or ".join(f'{{"{name}": ...}}' for name in schema["required"])
    kinds = schema["type"]
    return " or ".join(_KINDS[kind][1] for kind in ([kinds] if isinstance(kinds, str) else kinds))


def value_of(said: Any) -> Any:
    """The value of Python that a value of JSON stands for.

    Raises:
        BadRequest: an object with one key does not fit its key.
    """
    if isinstance(said, list):
        return [value_of(each) for each in said]
    if not isinstance(said, dict):
        return said
    if len(said) == 1:
        ((key, value),) = said.items()
        try:
            if key == "regex":
                return re.compile(value)
            if key == "table" or not isinstance(value, (dict, list)):
                return value_from_json(said)
        except (re.error, TypeError, ValueError, ArithmeticError) as problem:
            raise BadRequest(f"{json.dumps(said):.100} cannot be read: {problem}") from None
    return {name: value_of(value) for name, value in said.items()}
