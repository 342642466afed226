"""Records: named values with a wire layout, and how a class becomes one.

A declared record is a class with annotated attributes. `declare` turns it into a class with slots, whose
functions are generated from its fields on first use. They read and write fields straight through, with one
struct for each run of fields of fixed size and the length of the string behind it.

A reader does not check lengths on the way. Reading behind the end raises IndexError or struct.error; a slice
that is too short is found when the end is compared with the length of the payload. After a failure, the
fields are checked one by one, to name the one that cannot be read or written.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar, cast

from fakeamqp.protocols.amqp_0_9_1.codec.fields import BitType, WireType, wire_type
from fakeamqp.protocols.amqp_0_9_1.codec.tables import OCTET
from fakeamqp.protocols.base.codec import FieldError, FrameError, WireError, shown_fields

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform as dataclass_transform

    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar
else:

    def dataclass_transform():
        """For type checkers only: nothing else needs typing_extensions."""
        return lambda function: function


Layout: TypeAlias = "tuple[tuple[str, str], ...]"

#: What reading malformed bytes may raise before `unreadable` explains it.
_UNREADABLE = (IndexError, struct.error, WireError)
#: What writing unfit values may raise before `unwritable` explains it.
_UNWRITABLE = (AttributeError, IndexError, TypeError, UnicodeError, struct.error, WireError)


class OnFirstUse:
    """A class attribute that `make` computes from the class on first access. The result replaces it."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        made = self._make(self._owner)
        setattr(self._owner, self._name, made)
        bind = getattr(made, "__get__", None)
        return made if bind is None else bind(instance, kind)


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
    #: the arguments of `__init__` and their defaults: the fields, and what is kept beside them
    VARIABLES: ClassVar[Mapping[str, Any]] = {}
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
    defaults = {**template.VARIABLES, **{name: template.__dict__[name] for name in annotations}}
    fields = _fields(template, annotations)
    replaced = {*annotations, "__dict__", "__weakref__"}
    namespace = {
        **{name: value for name, value in template.__dict__.items() if name not in replaced},
        "__slots__": tuple(name for name in annotations if name not in template.VARIABLES),
        "__dataclass_fields__": OnFirstUse(_dataclass_fields),
        "FIELDS": fields,
        "LAYOUT": tuple((field.name, field.type.name) for field in fields),
        "VARIABLES": defaults,
        **attributes,
    }
    if defaults:
        namespace["__init__"] = OnFirstUse(_compile_init)
    return cast("type[R]", type(template.__name__, template.__bases__, namespace))


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


# --- generating functions -------------------------------------------------------------------------------


def indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    """The lines, indented by so many levels."""
    return ["    " * levels + line for line in lines]


def compile_function(owner: type, lines: Iterable[str], names: Mapping[str, Any]) -> Any:
    """The function that `lines` define, as a method of `owner`; `names` are further globals."""
    source = "\n".join(lines)
    name = source.removeprefix("def ").partition("(")[0]
    namespace = {**_NAMES, **names, "__name__": owner.__module__}
    exec(compile(source, f"<{name} of {owner.__qualname__}>", "exec"), namespace)
    function = namespace[name]
    function.__qualname__ = f"{owner.__qualname__}.{name}"
    return function


def _compile_init(owner: type[Record]) -> Any:
    """`__init__` with a default for every variable. A default that is a dict stands for a new empty one."""
    names: dict[str, Any] = {}
    parameters = []
    lines = []
    for name, default in owner.VARIABLES.items():
        is_table = isinstance(default, dict)
        names[f"_{name}"] = None if is_table else default
        parameters.append(f"{name}=_{name}")
        value = f"{{}} if {name} is None else {name}" if is_table else name
        lines.append(f"self.{name} = {value}")
    head = f"def __init__({', '.join(['self', *parameters])}):"
    return compile_function(owner, [head, *indented(lines)], names)


@cache
def _struct(codes: str) -> struct.Struct:
    return struct.Struct(">" + codes)


class Reader:
    """Collects the statements that read fields out of `payload`, from `start` on, or with None from `end`.

    After the statements in `lines`, `end` is the end of the last field, unless `known` is: its end while that
    is a constant. The statements need the globals in `names`.
    """

    def __init__(self, start: int | None = None) -> None:
        self.lines: list[str] = []
        self.known = start
        self.names: dict[str, Any] = {}
        self._skip = f"{start}x" if start else ""  # lets the first struct begin at offset 0
        self._run: list[tuple[str, str]] = []  # (struct code, target)
        self._bits: list[str] = []
        self._after: list[str] = []  # statements that must wait for the run

    def bit(self, target: str) -> None:
        """Read a bit. Adjacent bits share a byte, eight at most."""
        if len(self._bits) == 8:
            self._end_bits()
        self._bits.append(target)

    def number(self, code: str, target: str) -> None:
        """Read a number with this struct code."""
        self._end_bits()
        self._run.append((code, target))

    def string(self, code: str, target: str, convert: str = "", *, kept: int = 0) -> None:
        """Read a length with this struct code, then as many bytes, with `kept` bytes of the length."""
        self._end_bits()
        if self.known is None and not self._run and code == "B":
            self.lines += ["start = end + 1", "end = start + payload[end]"]
        else:
            self._run.append((code, "size"))
            self._flush(is_string=True)
        start = f"start - {kept}" if kept else "start"
        self.lines.append(f"{target} = payload[{start}:end]{convert}")

    def value(self, expression: str, target: str, **names: Any) -> None:
        """Read with an expression for value and end; it may use `{position}` and `names`."""
        self._end_bits()
        self._flush()
        self.names.update(names)
        self.lines.append(f"{target}, end = {expression.format(position=self._position)}")
        self.known = None

    def finish(self) -> None:
        """Add the pending numbers and bits."""
        self._end_bits()
        self._flush()

    @property
    def _position(self) -> str:
        return "end" if self.known is None else str(self.known)

    def _end_bits(self) -> None:
        if self._bits:
            octet = f"bits_{len(self._after)}"
            self._run.append(("B", octet))
            self._after += [f"{target} = {octet} & {1 << n} != 0" for n, target in enumerate(self._bits)]
            self._bits = []

    def _flush(self, is_string: bool = False) -> None:
        """Read the run; when it ends with the length of a string, set `start` and `end` of that string."""
        if self._run:
            codes = "".join(code for code, _ in self._run)
            self._read_run(codes)
            self._advance(struct.calcsize(">" + codes), is_string)
        self.lines += self._after
        self._run, self._after, self._skip = [], [], ""

    def _read_run(self, codes: str) -> None:
        targets = ", ".join(target for _, target in self._run)
        if codes == "B":
            self.lines.append(f"{targets} = payload[{self._position}]")
            return
        name = f"read_{self._skip}{codes}"
        self.names[name] = _struct(self._skip + codes).unpack_from
        arguments = "payload" if self._skip else f"payload, {self._position}"
        comma = "," if len(codes) == 1 else ""
        self.lines.append(f"{targets}{comma} = {name}({arguments})")

    def _advance(self, size: int, is_string: bool) -> None:
        if is_string:
            start = f"end + {size}" if self.known is None else str(self.known + size)
            self.lines += [f"start = {start}", "end = start + size"]
            self.known = None
        elif self.known is None:
            self.lines.append(f"end += {size}")
        else:
            self.known += size


class Writer:
    """Collects the code that writes fields, after a run of numbers: (struct code, expression) of each.

    The code is the statements in `lines`, then the expressions in `parts`, whose bytes are joined. They need
    the globals in `names`.
    """

    def __init__(self, run: Iterable[tuple[str, str]] = ()) -> None:
        self.lines: list[str] = []
        self.parts: list[str] = []
        self.names: dict[str, Any] = {}
        self._run = list(run)
        self._bits: list[str] = []

    def bit(self, value: str) -> None:
        """Write a bit; see `Reader.bit`."""
        if len(self._bits) == 8:
            self._end_bits()
        self._bits.append(f"({1 << len(self._bits)} if {value} else 0)")

    def number(self, code: str, value: str) -> None:
        """Write a number with this struct code."""
        self._end_bits()
        self._run.append((code, value))

    def string(self, code: str, octets: str) -> None:
        """Write bytes behind their length, which has this struct code."""
        self.number(code, f"len({octets})")
        self._flush()
        self.parts.append(octets)

    def value(self, expression: str, **names: Any) -> None:
        """Write the bytes of an expression, which may use `names`."""
        self._end_bits()
        self._flush()
        self.names.update(names)
        self.parts.append(expression)

    @property
    def joined(self) -> str:
        """An expression for the bytes of all parts."""
        return self.parts[0] if len(self.parts) == 1 else f'b"".join(({", ".join(self.parts)}))'

    def local(self, expression: str) -> str:
        """The name of a new local variable with the value of the expression."""
        name = f"local_{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def finish(self) -> None:
        """Add the pending numbers and bits."""
        self._end_bits()
        self._flush()

    def _end_bits(self) -> None:
        if self._bits:
            bits, self._bits = " | ".join(self._bits), []
            self._run.append(("B", self.local(bits)))

    def _flush(self) -> None:
        codes = "".join(code for code, _ in self._run)
        values = ", ".join(value for _, value in self._run)
        if codes == "B" and values.startswith(("len(", "local_")):
            self.parts.append(f"OCTET[{values}]")
        elif codes:
            self.names[f"pack_{codes}"] = _struct(codes).pack
            self.parts.append(f"pack_{codes}({values})")
        self._run = []


# --- explaining failures --------------------------------------------------------------------------------


def _forbid_nul(record: Record) -> None:
    """Raise FieldError when a short string holds a zero byte. Source: 0-9-1/types/shortstr-no-nul."""
    for name, kind in record.LAYOUT:
        if kind == "shortstr" and "\0" in (getattr(record, name) or ""):
            raise FieldError(f"{record.NAME}, field {name}: a short string must not hold a zero byte")


def unreadable(
    record: type[Record], fields: Iterable[Field], octets: bytes, offset: int, grammar: Grammar
) -> WireError:
    """The error for `octets` that are not one value for each of `fields` from `offset` on."""
    for name, kind in apart(fields):
        try:
            offset = kind.skip(octets, offset, grammar)
        except WireError as problem:
            return type(problem)(f"{record.NAME}, field {name}: {problem}")
    return FrameError(f"{record.NAME}: {len(octets) - offset} bytes are left over after the last field")


def fits(fields: Iterable[Field], octets: bytes, offset: int) -> bool:
    """True if `octets` have from `offset` on the lengths of these fields, whatever their tables contain."""
    try:
        for _, kind in apart(fields):
            offset = kind.measure(octets, offset)
    except FrameError:
        return False
    return offset == len(octets)


def apart(fields: Iterable[Field]) -> Iterator[Field]:
    """The fields that take bytes of their own: of bits that share a byte, the first."""
    bits = 0
    for field in fields:
        bits = bits + 1 if isinstance(field.type, BitType) else 0
        if not bits or bits % 8 == 1:
            yield field


def _unwritable(record: Record) -> FieldError:
    """The error for a record with a value that its field cannot hold."""
    for name, kind in record.FIELDS:
        value = getattr(record, name)
        if value is None and record.OPTIONAL:
            continue
        try:
            kind.check(value)
        except (AttributeError, TypeError):
            return FieldError(f"{record.NAME}, field {name}: {value!r:.80} is no {kind.name}")
        except WireError as problem:
            return FieldError(f"{record.NAME}, field {name}: {problem}")
    return FieldError(f"{record.NAME}: {record!r:.200} cannot be written")


_NAMES = {
    "OCTET": OCTET,
    "UNREADABLE": _UNREADABLE,
    "UNWRITABLE": _UNWRITABLE,
    "forbid_nul": _forbid_nul,
    "new": object.__new__,
    "unreadable": unreadable,
    "unwritable": _unwritable,
}
"""The globals of all generated functions."""
