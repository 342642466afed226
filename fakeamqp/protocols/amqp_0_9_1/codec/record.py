"""Records: named values with a wire layout, and how a class becomes one.

A declared record is a class with annotated attributes. `declare` turns it into a class with slots whose
functions are compiled on first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar, cast

from fakeamqp.protocols.amqp_0_9_1.codec.compiling import OnFirstUse, Variable, compile_init
from fakeamqp.protocols.amqp_0_9_1.codec.fields import WireType, wire_type
from fakeamqp.protocols.base.codec import shown_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import dataclass_transform

else:

    def dataclass_transform():
        """For type checkers only: nothing else needs typing_extensions."""
        return lambda function: function


__all__ = ["Field", "Layout", "Record", "dataclass_transform", "declare"]

Layout: TypeAlias = "tuple[tuple[str, str], ...]"


class Field(NamedTuple):
    """A field of a record."""

    name: str
    type: WireType


class Record:
    """Named values with a wire layout: a method or the properties of a content. Compares by value.

    A declared record is a dataclass, for type checkers and for `dataclasses`.
    """

    __slots__ = ()

    NAME: ClassVar[str]
    #: in wire order
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    #: (field, wire type) in wire order
    LAYOUT: ClassVar[Layout]
    #: the arguments of `__init__`: the fields, and what is kept beside them
    VARIABLES: ClassVar[tuple[Variable, ...]] = ()
    #: a field that is None is left out
    OPTIONAL: ClassVar[bool] = False

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name, _ in self.LAYOUT)

    def __repr__(self) -> str:
        values = shown_fields((name, getattr(self, name)) for name, _ in self.LAYOUT)
        return f"{type(self).__name__}({values})"


R = TypeVar("R", bound=Record)


def declare(template: type[R], attributes: Mapping[str, Any]) -> type[R]:
    """A class like `template` with slots instead of annotated attributes, and with further attributes.

    The annotations must be strings (`from __future__ import annotations`). Those without a leading underscore
    name wire types, see `fields`. The fields of a declared base class come first; a subclass may change their
    defaults. The template is discarded, so its functions cannot use `super()` without arguments.
    """
    annotations = {
        name: annotation
        for name, annotation in template.__annotations__.items()
        if not annotation.startswith("ClassVar")
    }
    defaults = dict(template.VARIABLES) | {name: template.__dict__[name] for name in annotations}
    fields = _fields(template, annotations)
    namespace = _without(template, {*annotations, "__dict__", "__weakref__"}) | {
        "__slots__": tuple(name for name in annotations if name not in dict(template.VARIABLES)),
        "__dataclass_fields__": OnFirstUse(_dataclass_fields),
        "FIELDS": fields,
        "LAYOUT": tuple((field.name, field.type.name) for field in fields),
        "VARIABLES": tuple(Variable(*each) for each in defaults.items()),
    }
    if defaults:
        namespace["__init__"] = OnFirstUse(lambda owner: compile_init(owner, owner.VARIABLES))
    return cast("type[R]", type(template.__name__, template.__bases__, {**namespace, **attributes}))


def _without(template: type[Record], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in template.__dict__.items() if name not in names}


def _fields(template: type[Record], annotations: Mapping[str, str]) -> tuple[Field, ...]:
    here = vars(sys.modules[template.__module__])
    fields = {field.name: field for field in template.FIELDS}
    for name, annotation in annotations.items():
        if not name.startswith("_"):
            fields[name] = Field(name, wire_type(annotation, here))
    return tuple(fields.values())


def _dataclass_fields(owner: type[Record]) -> Any:
    from dataclasses import dataclass

    return dataclass(init=False, repr=False, eq=False)(owner).__dict__["__dataclass_fields__"]
