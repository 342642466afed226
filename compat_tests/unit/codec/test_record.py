"""The compiler of the codec is right for layouts that no protocol happens to have."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from fakeamqp.protocols.amqp_0_9.codec.bodies import NO_BODY, Body, TransferBody
from fakeamqp.protocols.amqp_0_9_1.codec import fields as f
from fakeamqp.protocols.amqp_0_9_1.codec.fields import EMPTY_TABLE, Headers, Long, Octet, ShortStr, Timestamp
from fakeamqp.protocols.amqp_0_9_1.codec.method import SERVER, Method, method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties, RawTable, properties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ
from fakeamqp.protocols.base.codec import FieldError, FrameError

rule = pytest.mark.rule

#: the aliases by which `declared` names the wire types
Bit, Short, LongLong, LongStr, Table = f.Bit, f.Short, f.LongLong, f.LongStr, f.Table
Transferred = TransferBody
#: wire type -> the alias that declares it, and its default
DECLARED = {
    "bit": ("Bit", False),
    "octet": ("Octet", 0),
    "short": ("Short", 0),
    "long": ("Long", 0),
    "longlong": ("LongLong", 0),
    "timestamp": ("Timestamp", 0),
    "shortstr": ("ShortStr", ""),
    "longstr": ("LongStr", b""),
    "table": ("Table", EMPTY_TABLE),
    "content": ("Transferred", NO_BODY),
}
ODD_LAYOUTS = {
    "nine-bits": ["bit"] * 9,
    "bits-apart": ["bit", "octet", "bit", "bit", "shortstr", "bit"],
    "seventeen-bits-and-more": ["short", *["bit"] * 17, "longlong", "bit"],
    "two-tables": ["table", "bit", "table", "octet", "table"],
    "strings-in-a-row": ["longstr", "shortstr", "shortstr", "longstr", "longstr", "octet"],
    "string-after-numbers": [
        "longlong",
        "octet",
        "shortstr",
        "long",
        "short",
        "longstr",
        "timestamp",
        "shortstr",
    ],
    "table-then-string": ["table", "shortstr", "table", "longstr"],
    "numbers-after-string": ["shortstr", "octet", "octet", "octet", "shortstr", "octet"],
    "one-octet": ["octet"],
    "bit-and-number": ["bit", "long"],
    "bodies": ["content", "bit", "content"],
    "long-statements": ["shortstr", *["longlong"] * 9, "shortstr"],
}


def declared(name: str, number: int) -> type[Method]:
    """A method with the layout of that name."""
    kinds = ODD_LAYOUTS[name]
    namespace = {f"f_{n}": DECLARED[kind][1] for n, kind in enumerate(kinds)}
    annotations = {f"f_{n}": DECLARED[kind][0] for n, kind in enumerate(kinds)}
    template = type(name, (Method,), {"__module__": __name__, "__annotations__": annotations, **namespace})
    return method(f"odd.{name}", 7, number, received_by=SERVER)(template)


ODD = {name: declared(name, number) for number, name in enumerate(ODD_LAYOUTS)}


VALUES = {
    "octet": 0xA1,
    "short": 0xB1B2,
    "long": 0xC1C2C3C4,
    "longlong": 0xD1D2D3D4D5D6D7D8,
    "timestamp": 0xE1E2E3E4E5E6E7E8,
    "shortstr": "short é",
    "longstr": b"long \xff",
    "table": {"k": [1, {"n": None}]},
    "content": Body(b"\x00body", by_reference=True),
}


@rule("0-9/types/bits-break#ninth")
@rule("0-9-1/types/bits-break#other-type", "0-9-1/types/bits-break#ninth")
@pytest.mark.parametrize(
    ("name", "bits", "octets"),
    [
        ("nine-bits", range(9), b"\xff\x01"),
        ("nine-bits", [8], b"\x00\x01"),
        ("nine-bits", [7], b"\x80\x00"),
        ("bits-apart", [0, 3, 5], b"\x01\x00\x02\x00\x01"),
        ("seventeen-bits-and-more", [1, 9, 17, 19], b"\x00\x00\x01\x01\x01" + bytes(8) + b"\x01"),
    ],
)
def test_a_ninth_bit_or_another_type_starts_a_new_octet(name: str, bits: list[int], octets: bytes) -> None:
    value = ODD[name](**{f"f_{bit}": True for bit in bits})
    assert value.encode()[4:] == octets
    assert type(value).decode(value.encode(), RABBITMQ) == value


@pytest.mark.parametrize("method", ODD.values(), ids=ODD)
def test_methods_of_unusual_layouts_are_encoded_decoded_and_checked(method: type[Method]) -> None:
    assert [kind for _, kind in method.LAYOUT] == ODD_LAYOUTS[method.NAME.removeprefix("odd.")]
    for on in (0, 1, 2):
        values = {
            name: (n + on) % 3 == 0 if kind == "bit" else VALUES[kind]
            for n, (name, kind) in enumerate(method.LAYOUT)
        }
        value = method(**values)
        payload = value.encode()
        assert method.decode(payload, RABBITMQ) == value
        for cut in range(4, len(payload)):
            with pytest.raises(FrameError, match=rf"^{method.NAME}, field "):
                method.decode(payload[:cut], RABBITMQ)
        with pytest.raises(FrameError, match="left over"):
            method.decode(payload + b"\0", RABBITMQ)
    for name, kind in method.LAYOUT:
        if kind != "bit":
            with pytest.raises(FieldError, match=f"field {name}: "):
                method(**{name: object()}).encode()


@method("odd.parent", 7, 100, received_by=SERVER)
class Parent(Method):
    """Says more."""

    limit: ClassVar[int] = 3
    number: Octet = 1
    text: ShortStr = ""

    def doubled(self) -> int:
        return self.number * 2


@method("odd.child", 7, 101, received_by=SERVER)
class Child(Parent):
    number: Octet = 2
    more: Long = 5


@properties("odd", 7)
class OddProperties(Properties):
    first: Octet | None = None
    headers: Headers | None = None
    last: Timestamp | None = None
    _raw_headers: RawTable | None = None


def test_declared_method_keeps_functions_class_variables_and_docstring() -> None:
    assert Parent(number=4).doubled() == 8
    assert Parent.limit == 3
    assert Parent.__doc__ == "odd.parent (7, 100), received by the server.\n\nSays more."
    assert not hasattr(Parent(), "__dict__")
    assert pickle.loads(pickle.dumps(Parent(3, "x"))) == copy.copy(Parent(3, "x")) == Parent(3, "x")


def test_a_declared_subclass_has_functions_of_its_own() -> None:
    assert Parent().encode() == b"\0\x07\0\x64\x01\0"
    assert Child().encode() == b"\0\x07\0\x65\x02\0\0\0\0\x05"
    assert Child.decode(Child(7, "x", 9).encode(), RABBITMQ) == Child(7, "x", 9)
    assert (*Parent.LAYOUT, ("more", "long")) == Child.LAYOUT
    assert Child.__slots__ == ("more",)


def test_a_declaration_is_a_dataclass_with_a_signature() -> None:
    assert str(inspect.signature(Child)) == "(number=2, text='', more=5)"
    assert [field.name for field in dataclasses.fields(Child)] == ["number", "text", "more"]
    assert dataclasses.replace(Child(), more=6) == Child(more=6)
    assert [field.name for field in dataclasses.fields(Parent)] == ["number", "text"]


def test_declared_properties_are_encoded_decoded_and_checked() -> None:
    value = OddProperties(first=1, headers={"k": 2}, last=3)
    assert value.encode()[:3] == b"\xe0\0\x01"
    assert OddProperties.decode(value.encode(), 0, RABBITMQ) == value
    assert OddProperties.decode(OddProperties(last=4).encode(), 0, RABBITMQ).last == 4
    with pytest.raises(FieldError, match=r"^odd properties: property flags 0x1000 name a property"):
        OddProperties.decode(b"\x10\0", 0, RABBITMQ)
    with pytest.raises(FrameError, match=r"^odd properties, field last: 8 bytes are due"):
        OddProperties.decode(value.encode()[:-1], 0, RABBITMQ)


def test_field_annotation_without_a_wire_type_is_refused() -> None:
    namespace = {"__module__": __name__, "__annotations__": {"field": "int"}, "field": 0}
    with pytest.raises(TypeError, match="int is no wire type"):
        method("odd.wrong", 7, 102, received_by=SERVER)(type("Wrong", (Method,), namespace))
