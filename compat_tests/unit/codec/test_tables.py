"""Field tables in both grammars: every tag byte for byte, what is refused, what an edit leaves alone."""

from __future__ import annotations

import copy
import math
import pickle
import struct
import sys
from collections import OrderedDict
from datetime import datetime, timedelta, timezone
from decimal import Decimal, localcontext
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.codec.strategies import tables
from fakeamqp.protocols.amqp_0_9_1.codec.tables import (
    MAX_DEPTH,
    PUBLISHED,
    RABBITMQ,
    REMOVED,
    DeepArray,
    DeepTable,
    Grammar,
    Timestamp,
    edit_table,
    encode_table,
    rewritten_table,
)
from fakeamqp.protocols.base.codec import FieldError, FieldNameError, FrameError, WireError

GRAMMARS = [RABBITMQ, PUBLISHED]
rule = pytest.mark.rule
both = pytest.mark.protocols("0-9-1", "0-9")


def raw_table(*fields: tuple[bytes, bytes]) -> bytes:
    """A table of (name, tag and value)."""
    octets = b"".join(bytes([len(name)]) + name + value for name, value in fields)
    return struct.pack(">I", len(octets)) + octets


def read(octets: bytes, grammar: Grammar = RABBITMQ) -> dict:
    fields, end = grammar.decode(octets, 0, len(octets))
    assert end == len(octets)
    return fields


def same(one: object, other: object) -> bool:
    """Equal with equal types, nan being nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


BOTH = [
    pytest.param(b"t\x00", False, id="t-false", marks=rule("0-9-1/types/value-boolean#zero")),
    pytest.param(b"t\x01", True, id="t-true", marks=rule("0-9-1/types/value-boolean#other")),
    pytest.param(b"t\x80", True, id="t-any-nonzero", marks=rule("0-9-1/types/value-boolean#other")),
    pytest.param(b"b\x80", -128, id="b", marks=rule("0-9-1/types/value-int8")),
    pytest.param(b"B\xff", 255, id="B", marks=rule("0-9-1/types/value-uint8")),
    pytest.param(b"u\xff\xfe", 65534, id="u", marks=rule("0-9-1/types/value-uint16")),
    pytest.param(b"I\x80\x00\x00\x00", -(2**31), id="I", marks=rule("0-9-1/types/value-int32")),
    pytest.param(b"i\xff\xff\xff\xff", 2**32 - 1, id="i", marks=rule("0-9-1/types/value-uint32")),
    pytest.param(b"L\x80" + bytes(6) + b"\x01", -(2**63) + 1, id="L", marks=rule("0-9-1/types/value-int64")),
    pytest.param(b"f\x3f\xc0\x00\x00", 1.5, id="f", marks=rule("0-9-1/types/value-float")),
    pytest.param(b"d\x3f\xb9\x99\x99\x99\x99\x99\x9a", 0.1, id="d", marks=rule("0-9-1/types/value-double")),
    pytest.param(
        b"D\x02\x00\x00\x30\x39", Decimal("123.45"), id="D", marks=rule("0-9-1/types/value-decimal")
    ),
    pytest.param(b"S\x00\x00\x00\x03a\x00\xc3", "a\0\udcc3", id="S", marks=rule("0-9-1/types/value-longstr")),
    pytest.param(
        b"A\x00\x00\x00\x05t\x01b\xffV", [True, -1, None], id="A", marks=rule("0-9-1/types/value-array")
    ),
    pytest.param(b"A\x00\x00\x00\x00", [], id="A-empty", marks=rule("0-9-1/types/value-array")),
    pytest.param(
        b"T\x00\x00\x01\x00\x00\x00\x00\x00",
        Timestamp(2**40),
        id="T",
        marks=rule("0-9-1/types/value-timestamp"),
    ),
    pytest.param(b"F\x00\x00\x00\x04\x01at\x01", {"a": True}, id="F", marks=rule("0-9-1/types/value-table")),
    pytest.param(b"V", None, id="V", marks=rule("0-9-1/types/value-void")),
]


@pytest.mark.parametrize("grammar", GRAMMARS, ids=repr)
@pytest.mark.parametrize(("octets", "value"), BOTH)
def test_common_field_tags_are_read_equally_by_both_grammars(
    grammar: Grammar, octets: bytes, value: object
) -> None:
    assert same(read(raw_table((b"k", octets), (b"z", b"B\x07")), grammar), {"k": value, "z": 7})


@pytest.mark.parametrize(
    ("grammar", "octets", "value"),
    [
        (RABBITMQ, b"s\x80\x01", -32767),
        (RABBITMQ, b"l\xff" + b"\xff" * 7, -1),
        (RABBITMQ, b"D\x01\xff\xff\xff\xff", Decimal("429496729.5")),
        (RABBITMQ, b"x\x00\x00\x00\x02\x00\xff", b"\x00\xff"),
        pytest.param(
            PUBLISHED, b"s\x03abc", "abc", marks=rule("0-9-1/types/value-shortstr"), id="PUBLISHED-s"
        ),
        pytest.param(
            PUBLISHED, b"U\x80\x01", -32767, marks=rule("0-9-1/types/value-int16"), id="PUBLISHED-U"
        ),
        pytest.param(
            PUBLISHED,
            b"l" + b"\xff" * 8,
            2**64 - 1,
            marks=rule("0-9-1/types/value-uint64"),
            id="PUBLISHED-l",
        ),
        pytest.param(
            PUBLISHED,
            b"D\x02\xff\xff\xcf\xc7",
            Decimal("-123.45"),
            marks=rule("0-9-1/types/value-decimal"),
            id="PUBLISHED-D",
        ),
    ],
)
def test_tags_that_the_grammars_read_differently(grammar: Grammar, octets: bytes, value: object) -> None:
    assert same(read(raw_table((b"k", octets), (b"z", b"B\x07")), grammar), {"k": value, "z": 7})


KNOWN = {RABBITMQ: b"tbBsuIilLfdDSATFVx", PUBLISHED: b"tbBUuIilLfdDsSATFV"}


@rule("0-9-1/types/value-unknown")
@rule("0-9-1/frame/illegal-field-value")
@pytest.mark.parametrize("grammar", GRAMMARS, ids=repr)
def test_field_tags_outside_of_the_grammar_are_unknown(grammar: Grammar) -> None:
    def is_unknown(tag: int) -> bool:
        try:
            read(raw_table((b"name", bytes([tag]) + bytes(8))), grammar)
        except WireError as error:
            return isinstance(error, FieldError) and "'name' has the unknown tag" in str(error)
        return False

    assert {tag for tag in range(256) if not is_unknown(tag)} == set(KNOWN[grammar])


def test_an_unknown_tag_inside_an_array_is_a_syntax_error() -> None:
    with pytest.raises(FieldError, match="unknown tag 'z'") as caught:
        read(raw_table((b"list", b"A\x00\x00\x00\x02z\x00")))
    assert caught.value.condition == "syntax-error"


@both
@rule("0-9-1/types/table-encoding")
def test_table_of_mixed_types_is_encoded_octet_for_octet() -> None:
    fields = {
        "flag": True,
        "small": -2,
        "large": 2**31,
        "ratio": 0.5,
        "price": Decimal("9.99"),
        "text": "é",
        "raw": b"\xff",
        "when": Timestamp(1),
        "none": None,
        "list": [1, "x"],
        "table": {"a": False},
    }
    octets = bytes.fromhex(
        "04666c6167 7401"
        "05736d616c6c 49fffffffe"
        "056c61726765 6c0000000080000000"
        "05726174696f 643fe0000000000000"
        "057072696365 4402000003e7"
        "0474657874 5300000002c3a9"
        "03726177 7800000001ff"
        "047768656e 540000000000000001"
        "046e6f6e65 56"
        "046c697374 410000000b 4900000001 530000000178"
        "057461626c65 4600000004 01617400"
    )
    octets = struct.pack(">I", len(octets)) + octets
    assert encode_table(fields) == octets
    assert same(read(octets), fields)


@both
@rule("0-9-1/types/table-empty")
@pytest.mark.parametrize("grammar", GRAMMARS, ids=repr)
def test_the_empty_table_is_four_zero_octets(grammar: Grammar) -> None:
    assert encode_table({}) == bytes(4)
    assert grammar.decode(b"\xee" + bytes(4) + b"\xee", 1, 6) == ({}, 5)


@given(tables())
def test_any_table_survives_encoding_and_decoding(fields: dict) -> None:
    assert same(read(encode_table(fields)), fields)


def test_nan_and_infinities_are_read_back() -> None:
    fields = {"nan": math.nan, "plus": math.inf, "minus": -math.inf}
    assert same(read(encode_table(fields)), fields)


def test_a_decimal_does_not_depend_on_the_decimal_context() -> None:
    octets = raw_table((b"k", b"D\x02\xff\xff\xff\xff"))
    with localcontext() as context:
        context.prec = 2
        assert read(octets) == {"k": Decimal("42949672.95")}
        assert encode_table({"k": Decimal("42949672.95")}) == octets


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (Decimal("-123.45"), b"D\x02\xff\xff\xcf\xc7"),
        (Decimal("1E+3"), b"D\x00\x00\x00\x03\xe8"),
        (Decimal("0E+50"), b"D\x00\x00\x00\x00\x00"),
        (Decimal("0.00"), b"D\x02\x00\x00\x00\x00"),
        (datetime(1970, 1, 2, tzinfo=timezone.utc), b"T" + bytes(5) + b"\x01\x51\x80"),
        (datetime(1970, 1, 2), b"T" + bytes(5) + b"\x01\x51\x80"),
        (datetime(1970, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))), b"T" + bytes(5) + b"\x01\x51\x80"),
        (bytearray(b"ab"), b"x\x00\x00\x00\x02ab"),
        ((1, 2), b"A\x00\x00\x00\x0aI\x00\x00\x00\x01I\x00\x00\x00\x02"),
        (MappingProxyType({"a": None}), b"F\x00\x00\x00\x03\x01aV"),
        (OrderedDict(a=None), b"F\x00\x00\x00\x03\x01aV"),
        (-(2**31), b"I\x80\x00\x00\x00"),
        (2**31 - 1, b"I\x7f\xff\xff\xff"),
        (-(2**31) - 1, b"l\xff\xff\xff\xff\x7f\xff\xff\xff"),
        (2**63 - 1, b"l\x7f" + b"\xff" * 7),
    ],
)
def test_value_is_encoded_with_the_tag_for_its_type_and_size(value: object, octets: bytes) -> None:
    assert encode_table({"k": value}) == raw_table((b"k", octets))


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        Timestamp(-1),
        Timestamp(2**64),
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1E+11"),
        Decimal("1E+999999"),
        Decimal("1E-256"),
        Decimal(2**32),
        Decimal(-(2**31) - 1),
        Decimal("1." + "0" * 6000),
        "\ud800",
        object(),
        {1, 2},
        1j,
        datetime(1969, 12, 31),
        range(3),
    ],
    ids=lambda value: repr(value)[:20],
)
@pytest.mark.parametrize(
    "wrap", [lambda v: v, lambda v: [v], lambda v: {"inner": v}], ids=["plain", "list", "table"]
)
def test_a_value_that_does_not_fit_names_its_field(value: object, wrap: object) -> None:
    with pytest.raises(FieldError, match="'culprit'"):
        encode_table({"fine": 1, "culprit": wrap(value)})


@pytest.mark.parametrize(
    "name", ["x" * 256, "é" * 128, "\ud800", 5, None, b"raw"], ids=lambda n: repr(n)[:12]
)
def test_invalid_field_name_is_a_field_error_on_encoding(name: object) -> None:
    with pytest.raises(FieldError, match="field name"):
        encode_table({name: 1})


def test_a_name_may_have_255_octets() -> None:
    fields = {"é" * 127 + "x": 1}
    assert read(encode_table(fields)) == fields


@both
@rule("0-9-1/types/table-nested")
@pytest.mark.parametrize("tag", [b"F", b"A"])
def test_deeply_nested_tables_and_arrays_are_decoded_down_to_the_depth_limit(tag: bytes) -> None:
    def nested(levels: int) -> bytes:
        value = b"V"
        for _ in range(levels):
            inner = value if tag == b"A" else b"\x01n" + value
            value = tag + struct.pack(">I", len(inner)) + inner
        return raw_table((b"n", value))

    octets = nested(MAX_DEPTH - 1)
    fields = read(octets)
    assert encode_table(fields) == octets
    depth, value = 0, fields
    while value is not None:
        value = value["n"] if isinstance(value, dict) else value[0]
        depth += 1
    assert depth == MAX_DEPTH >= 100
    for levels in (MAX_DEPTH, MAX_DEPTH + 1, 20_000):
        fields = read(nested(levels))
        assert encode_table(fields) == nested(levels)
        depth, value = 0, fields
        while not isinstance(value, bytes):
            value = value["n"] if isinstance(value, dict) else value[0]
            depth += 1
        assert depth == MAX_DEPTH
        assert type(value) is {b"F": DeepTable, b"A": DeepArray}[tag]
        with pytest.raises(FieldError, match="unknown tag"):
            read(nested(levels)[:-1] + b"?")


def test_int64_at_any_nesting_level_gets_the_tag_of_rabbitmq() -> None:
    int64 = b"L" + bytes(8)
    items = int64 + b"S\0\0\0\x01x" + b"t\x01" + b"x\0\0\0\x02yz" + int64
    inner = b"\x01tS\0\0\0\x03abc" + b"\x01aA" + struct.pack(">I", len(items)) + items + b"\x01b" + int64
    value = b"F" + struct.pack(">I", len(inner)) + inner
    table = raw_table((b"n", value), (b"z", int64))
    assert rewritten_table(table, RABBITMQ) == table.replace(b"L", b"l")
    exact = RABBITMQ.decode_exactly(table, 0, len(table))[0].exact
    assert [octets for _, _, octets in exact] == [value.replace(b"L", b"l"), int64.replace(b"L", b"l")]


def test_rewritten_table_keeps_fields_of_one_name_only_if_asked_to() -> None:
    table = raw_table((b"n", b"t\x01"), (b"n", b"t\x00"), (b"a", b"V"))
    first = raw_table((b"a", b"V"), (b"n", b"t\x01"))
    both = raw_table((b"a", b"V"), (b"n", b"t\x01"), (b"n", b"t\x00"))
    assert rewritten_table(table, RABBITMQ) == first
    assert rewritten_table(table, RABBITMQ, duplicates=True) == both


@pytest.mark.parametrize("make", [lambda inner: [inner], lambda inner: {"n": inner}], ids=["list", "table"])
def test_table_nested_deeper_than_the_limit_cannot_be_encoded(make: object) -> None:
    value = None
    for _ in range(MAX_DEPTH - 1):
        value = make(value)
    read(encode_table({"n": value}))
    with pytest.raises(FieldError, match="deeper"):
        encode_table({"n": make(value)})


def test_a_table_that_holds_itself_is_refused() -> None:
    endless: dict = {}
    endless["self"] = endless
    with pytest.raises(FieldError, match="deeper"):
        encode_table(endless)


def test_no_recursion_error_when_the_stack_is_nearly_used_up() -> None:
    value: object = None
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    octets = encode_table({"n": value})

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
            return
        for call in (lambda: RABBITMQ.decode(octets, 0, len(octets)), lambda: encode_table({"n": value})):
            with pytest.raises(FieldError, match="stack"):
                call()

    frame, used = sys._getframe(), 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    deep(sys.getrecursionlimit() - used - 100)


@rule("0-9-1/types/table-duplicates")
@pytest.mark.parametrize("grammar", GRAMMARS, ids=repr)
def test_first_of_several_fields_with_the_same_name_counts(grammar: Grammar) -> None:
    octets = raw_table((b"a", b"B\x01"), (b"b", b"B\x02"), (b"a", b"B\x03"))
    assert read(octets, grammar) == {"a": 1, "b": 2}


LEGAL_NAMES = ["a", "Z", "$", "#", "a1_$#", "x-match", "x" * 128]
ILLEGAL_NAMES = ["", "1abc", "_a", "-a", "a b", "é", "aé", "a.b", "a\n", "x" * 129]


@rule(
    "0-9-1/types/table-name-syntax#first",
    "0-9-1/types/table-name-syntax#following",
    "0-9-1/types/table-name-syntax#length",
)
@rule("0-9-1/types/table-name-validation")
def test_the_published_grammar_checks_names() -> None:
    for name in LEGAL_NAMES:
        assert read(encode_table({name: 1}), PUBLISHED) == {name: 1}
    for name in ILLEGAL_NAMES:
        for fields in ({name: 1}, {"outer": {name: 1}}, {"outer": [{name: 1}]}):
            with pytest.raises(FieldNameError) as caught:
                read(encode_table(fields), PUBLISHED)
            assert caught.value.condition == "command-invalid"


def test_rabbitmq_takes_any_name() -> None:
    for name in LEGAL_NAMES + ILLEGAL_NAMES:
        assert read(encode_table({name: 1})) == {name: 1}


@rule("0-9-1/types/shortstr-no-nul")
def test_the_published_grammar_refuses_a_zero_octet_in_a_short_string() -> None:
    with pytest.raises(FieldError, match="zero byte"):
        read(raw_table((b"k", b"s\x03a\x00b")), PUBLISHED)
    assert read(raw_table((b"k", b"s\x03a\x00b")), PUBLISHED.unchecked) == {"k": "a\0b"}


EVERYTHING = raw_table(
    *((b"k%d" % n, param.values[0]) for n, param in enumerate(BOTH)),
    (b"deep", b"F\x00\x00\x00\x0d\x01aA\x00\x00\x00\x06S\x00\x00\x00\x01x"),
)


@rule("0-9-1/frame/truncated-arguments")
@pytest.mark.parametrize("grammar", GRAMMARS, ids=repr)
@pytest.mark.parametrize("follow", [b"", bytes(300), b"\xff" * 300], ids=["nothing", "zeros", "ones"])
def test_a_table_cut_short_at_any_octet_is_a_frame_error(grammar: Grammar, follow: bytes) -> None:
    assert read(EVERYTHING, grammar)
    for cut in range(len(EVERYTHING)):
        octets = EVERYTHING[:cut]
        with pytest.raises(FrameError):
            grammar.decode(octets + follow, 0, cut)
        if cut >= 4:  # the same fields, and a length that says so
            shortened = struct.pack(">I", cut - 4) + octets[4:]
            boundary = cut == 4 or any(cut == end for end in field_ends(EVERYTHING))
            if boundary:
                grammar.decode(shortened + follow, 0, cut)
            else:
                with pytest.raises(FrameError):
                    grammar.decode(shortened + follow, 0, cut)


def field_ends(table: bytes) -> list[int]:
    """The offsets at which a prefix of EVERYTHING is a whole table: found by adding its fields one by one."""
    ends, fields = [], [(b"k%d" % n, param.values[0]) for n, param in enumerate(BOTH)]
    for count in range(len(fields) + 1):
        ends.append(len(raw_table(*fields[:count])))
    return [*ends, len(table)]


@pytest.mark.parametrize("grammar", GRAMMARS, ids=repr)
@pytest.mark.parametrize("tag", [b"S", b"x", b"A", b"F", b"s"])
def test_impossible_lengths_are_wire_errors(grammar: Grammar, tag: bytes) -> None:
    for length in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x09"):
        octets = raw_table((b"k", tag + length + b"abc"))
        with pytest.raises(WireError):
            grammar.decode(octets + bytes(20), 0, len(octets))


def test_frame_error_of_a_truncated_table_names_the_field() -> None:
    with pytest.raises(FrameError, match="'culprit'"):
        read(raw_table((b"fine", b"V"), (b"culprit", b"S\x00\x00\x00\x09abc")))


@given(st.binary(max_size=200), st.sampled_from(GRAMMARS))
def test_random_octets_give_fields_or_a_wire_error(octets: bytes, grammar: Grammar) -> None:
    octets = struct.pack(">I", len(octets)) + octets
    try:
        fields = read(octets, grammar)
    except WireError as error:
        assert str(error)
    else:
        assert isinstance(fields, dict)


@given(tables(), st.sampled_from(GRAMMARS), st.data())
def test_damaged_tables_give_fields_or_a_wire_error(
    fields: dict, grammar: Grammar, data: st.DataObject
) -> None:
    octets = bytearray(encode_table(fields))
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    try:
        grammar.decode(bytes(octets), 0, len(octets))
    except WireError as error:
        assert str(error)


@pytest.mark.parametrize("grammar", [RABBITMQ, PUBLISHED, PUBLISHED.unchecked])
def test_copied_or_pickled_grammar_is_the_same_object(grammar: Grammar) -> None:
    assert copy.deepcopy(grammar) is grammar
    assert pickle.loads(pickle.dumps(grammar)) is grammar


def test_a_timestamp_is_an_int_with_an_instant() -> None:
    stamp = Timestamp(86400)
    assert stamp == 86400
    assert repr(stamp) == "Timestamp(86400)"
    assert stamp.datetime == datetime(1970, 1, 2, tzinfo=timezone.utc)


ODD = raw_table(
    (b"a", b"b\xff"),
    (b"b", b"B\x01"),
    (b"a", b"u\x00\x02"),
    (b"c", b"f\x3f\xc0\x00\x00"),
    (b"d", b"i\x00\x00\x00\x07"),
)


def test_table_edit_changes_a_field_in_place_and_keeps_all_other_octets() -> None:
    assert edit_table(ODD, {"b": "new", "e": None}) == raw_table(
        (b"a", b"b\xff"),
        (b"b", b"S\x00\x00\x00\x03new"),
        (b"a", b"u\x00\x02"),
        (b"c", b"f\x3f\xc0\x00\x00"),
        (b"d", b"i\x00\x00\x00\x07"),
        (b"e", b"V"),
    )


def test_table_edit_of_a_duplicate_name_replaces_or_removes_all_its_fields() -> None:
    rest = [(b"b", b"B\x01"), (b"c", b"f\x3f\xc0\x00\x00"), (b"d", b"i\x00\x00\x00\x07")]
    assert edit_table(ODD, {"a": True}) == raw_table((b"a", b"t\x01"), *rest)
    assert edit_table(ODD, {"a": REMOVED, "absent": REMOVED}) == raw_table(*rest)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=repr)
def test_table_edit_without_changes_gives_the_same_octets(grammar: Grammar) -> None:
    assert edit_table(EVERYTHING, {}, grammar) == EVERYTHING
    special = raw_table((b"k", b"s\x05abcde"[: 3 if grammar is RABBITMQ else 7]), (b"z", b"V"))
    assert edit_table(special, {}, grammar) == special


@given(tables(), tables(), st.data())
def test_table_edit_has_the_effect_of_the_same_dict_update(
    fields: dict, new: dict, data: st.DataObject
) -> None:
    gone = data.draw(st.lists(st.sampled_from(sorted(fields)), unique=True)) if fields else []
    changes = {**new, **dict.fromkeys(gone, REMOVED)}
    expected = {**fields, **{n: v for n, v in changes.items() if v is not REMOVED}}
    for name in gone:
        expected.pop(name, None)
    assert read(edit_table(encode_table(fields), changes)) == expected


def test_table_edit_refuses_an_invalid_table_or_value() -> None:
    with pytest.raises(FrameError):
        edit_table(ODD[:-1], {})
    with pytest.raises(FrameError, match="left over"):
        edit_table(ODD + b"\0", {})
    with pytest.raises(FieldError, match="'k'"):
        edit_table(ODD, {"k": 2**64})
