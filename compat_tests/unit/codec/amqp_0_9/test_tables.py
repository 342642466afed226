"""Field tables of 0-9: the six tags of its text, those in use beside them, and the checks of the text."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.tables import (
    PUBLISHED_0_9,
    RABBITMQ,
    Grammar,
    Timestamp,
    encode_table,
)
from fakeamqp.protocols.base.codec import FieldError, FieldNameError, WireError

rule = pytest.mark.rule
both = pytest.mark.parametrize("grammar", [RABBITMQ, PUBLISHED_0_9], ids=repr)


def raw_table(*fields: tuple[bytes, bytes]) -> bytes:
    """A table of (name, tag and value)."""
    octets = b"".join(bytes([len(name)]) + name + value for name, value in fields)
    return struct.pack(">I", len(octets)) + octets


def read(octets: bytes, grammar: Grammar = PUBLISHED_0_9) -> dict:
    fields, end = grammar.decode(octets, 0, len(octets))
    assert end == len(octets)
    return fields


@both
@pytest.mark.parametrize(
    ("octets", "value"),
    [
        pytest.param(b"S\0\0\0\2\xc3\xa9", "é", id="S", marks=rule("0-9/types/value-longstr")),
        pytest.param(b"I\x80\0\0\0", -(2**31), id="I", marks=rule("0-9/types/value-int")),
        pytest.param(b"D\2\0\0\x30\x39", Decimal("123.45"), id="D", marks=rule("0-9/types/value-decimal")),
        pytest.param(b"T\0\0\1\0\0\0\0\0", Timestamp(2**40), id="T", marks=rule("0-9/types/value-timestamp")),
        pytest.param(b"F\0\0\0\3\1aV", {"a": None}, id="F", marks=rule("0-9/types/value-table")),
        pytest.param(b"V", None, id="V", marks=rule("0-9/types/value-void")),
    ],
)
def test_field_tags_of_the_0_9_specification_are_read(grammar: Grammar, octets: bytes, value: object) -> None:
    found = read(raw_table((b"k", octets), (b"z", b"V")), grammar)
    assert found == {"k": value, "z": None}
    assert type(found["k"]) is type(value)


@rule("0-9/types/value-decimal")
def test_decimal_number_of_0_9_is_signed() -> None:
    assert read(raw_table((b"k", b"D\2\xff\xff\xcf\xc7"))) == {"k": Decimal("-123.45")}


@pytest.mark.deviates("0-9/types/table-types")
@both
def test_field_tags_outside_of_the_0_9_specification_are_read_if_in_use(grammar: Grammar) -> None:
    in_use = {b"k%d" % n: bytes((tag,)) + bytes(8)[:size] for n, (tag, size) in enumerate(SIZES.items())}
    assert len(read(raw_table(*in_use.items()), grammar)) == len(SIZES)
    for tag in set(range(256)) - SIZES.keys():
        with pytest.raises(FieldError, match="'name' has the unknown tag"):
            read(raw_table((b"name", bytes((tag,)) + bytes(8))), grammar)


#: tag -> bytes of a zero
SIZES = {
    **dict.fromkeys(b"tbB", 1),
    **dict.fromkeys(b"su", 2),
    **dict.fromkeys(b"iIfSxAF", 4),
    **dict.fromkeys(b"lLdT", 8),
    **dict.fromkeys(b"D", 5),
    **dict.fromkeys(b"V", 0),
}


@rule("0-9/types/table-duplicates")
@both
def test_first_of_several_fields_with_the_same_name_counts(grammar: Grammar) -> None:
    octets = raw_table((b"a", b"I\0\0\0\1"), (b"b", b"V"), (b"a", b"I\0\0\0\2"), (b"b", b"I\0\0\0\3"))
    assert read(octets, grammar) == {"a": 1, "b": None}


@rule("0-9/types/table-duplicates")
def test_first_of_several_arguments_with_the_same_name_counts_in_a_method() -> None:
    table = raw_table((b"x-match", b"S\0\0\0\3any"), (b"x-match", b"S\0\0\0\3all"))
    octets = m.QueueBind(queue="q").encode()[:-4] + table
    for grammar in (RABBITMQ, PUBLISHED_0_9):
        assert m.QueueBind.decode(octets, grammar).arguments == {"x-match": "any"}


@rule(
    "0-9/types/table-name-syntax#first",
    "0-9/types/table-name-syntax#following",
    "0-9/types/table-name-syntax#length",
)
@rule("0-9/types/table-name-validation")
def test_published_0_9_grammar_refuses_invalid_field_names() -> None:
    for name in (b"a", b"$a", b"#9_", b"x-match", b"a" * 128):
        assert read(raw_table((name, b"V"))) == {name.decode(): None}
    for name in (b"", b"9", b"_a", b"a b", b"a.b", b"a" * 129):
        with pytest.raises(FieldNameError) as caught:
            read(raw_table((name, b"V")))
        assert caught.value.condition == "command-invalid"
        assert read(raw_table((name, b"V")), RABBITMQ) == {name.decode(): None}


@rule("0-9/types/shortstr-no-nul")
def test_published_0_9_grammar_refuses_a_zero_octet_in_a_short_string() -> None:
    octets = m.QueueDeclareOk("a\0b").encode()
    with pytest.raises(FieldError, match="zero byte"):
        m.QueueDeclareOk.decode(octets, PUBLISHED_0_9)
    assert m.QueueDeclareOk.decode(octets, PUBLISHED_0_9.unchecked).queue == "a\0b"


@rule("0-9/types/max-longstr")
def test_sizes_of_tables_and_long_strings_have_32_bits() -> None:
    assert encode_table({"k": "x" * 70_000})[:11] == b"\0\1\x11\x77\1kS\0\1\x11\x70"
    assert m.MessageOpen(b"r" * 70_000).encode()[4:8] == b"\0\1\x11\x70"


@given(st.binary(max_size=200))
def test_random_octets_give_fields_or_a_wire_error(octets: bytes) -> None:
    try:
        fields = read(struct.pack(">I", len(octets)) + octets)
    except WireError as error:
        assert str(error)
    else:
        assert isinstance(fields, dict)
