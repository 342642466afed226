"""The type system of AMQP 1.0, by golden bytes and by frames in other encodings than the broker's own."""

from __future__ import annotations

import pytest

from compat_tests.golden import tables_1_0 as golden
from compat_tests.scripted.amqp_1_0 import Client, Server, section
from compat_tests.tools.matrix import cases
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.amqp_1_0.codec.frames import frame
from fakeamqp.protocols.amqp_1_0.codec.types import (
    MAX_DEPTH,
    Array,
    Described,
    Symbol,
    UByte,
    UInt,
    ULong,
    encode_value,
    read_value,
    skip_value,
)

rule = pytest.mark.rule

TYPES = (
    *(
        "null",
        "boolean",
        "ubyte",
        "ushort",
        "uint",
        "ulong",
        "byte",
        "short",
        "int",
        "long",
        "float",
        "double",
    ),
    *("decimal32", "decimal64", "decimal128", "char", "timestamp", "uuid", "binary", "string", "symbol"),
    *("list", "map", "array"),
)


@pytest.mark.parametrize("name", [pytest.param(name, marks=rule(f"1-0/types/{name}")) for name in TYPES])
def test_type_is_read_and_written_in_the_golden_bytes_of_each_encoding(name: str) -> None:
    checked = [row for row in golden.rows("type") if row["type"] == name]
    assert checked
    with cases() as case:
        for row in checked:
            with case(row["encoding"], row["octets"][:20]):
                golden.check(row)


@rule("1-0/types/fixed-width", "1-0/types/variable-width", "1-0/types/compound", "1-0/types/array-width")
def test_width_of_data_follows_from_the_first_half_of_the_code() -> None:
    widths = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
    with cases() as case:
        for row in golden.rows("type"):
            octets = bytes.fromhex(row["octets"])
            with case(row["encoding"], row["octets"][:20]):
                half = octets[0] >> 4
                if half in widths:
                    assert len(octets) == 1 + widths[half]
                else:
                    width = 1 if half in (0xA, 0xC, 0xE) else 4
                    assert int.from_bytes(octets[1 : 1 + width], "big") == len(octets) - 1 - width
                assert skip_value(octets, 0) == len(octets)


@rule("1-0/types/any-width", "1-0/types/network-order")
def test_value_is_the_same_in_each_encoding() -> None:
    found: dict[str, set[str]] = {}
    for row in golden.rows("type"):
        value, _ = read_value(bytes.fromhex(row["octets"]))
        found.setdefault(f"{row['type']} {row['value']}", set()).add(f"{type(value).__name__} {value!r}")
    assert {name for name, values in found.items() if len(values) > 1} == set()
    assert read_value(b"\x70\0\0\1\2")[0] == 0x0102


@rule("1-0/types/described", "1-0/types/described-descriptor")
@pytest.mark.parametrize(
    ("octets", "descriptor"),
    [
        (b"\0\x53\x05\x41", ULong(5)),
        (b"\0\xa3\x03a:b\x41", Symbol("a:b")),
        (b"\0\x54\xff\x41", -1),
        (b"\0\0\x53\x01\xa1\x01d\x41", Described(ULong(1), "d")),
    ],
)
def test_described_value_has_any_descriptor(octets: bytes, descriptor: object) -> None:
    value, end = read_value(octets)
    assert (value, end) == (Described(descriptor, True), len(octets))
    assert encode_value(value) == octets


@rule("1-0/types/array-described")
def test_descriptor_of_an_array_is_that_of_every_item() -> None:
    octets = b"\xe0\x07\x02\0\x53\x05\x50\x01\x02"
    value, _ = read_value(octets)
    assert value == [Described(ULong(5), UByte(1)), Described(ULong(5), UByte(2))]
    assert encode_value(value) == octets


INVALID: dict[str, bytes] = {
    "boolean": b"\x56\x02",
    "char": b"\x73\0\x11\0\0",
    "odd-map": b"\xc1\x02\x01\x40",
    "map-too-long": b"\xc1\x04\x02\x40\x40\x40",
    "array-too-long": b"\xe0\x04\x01\x50\x01\x02",
    "array-of-nothing": b"\xe0\x03\x01\x3f\x01",
    "unknown-code": b"\x3f",
    "extension-code": b"\x4f",
    "cut-fixed": b"\x70\0\0\0",
    "cut-size": b"\xb0\0\0\0",
    "cut-data": b"\xa0\x05abc",
    "cut-compound": b"\xc0\x05\x01\x40",
    "cut-descriptor": b"\0\x53",
    "cut-described": b"\0\x53\x05",
    "empty": b"",
}


@rule("1-0/types/boolean-octet", "1-0/types/map-pairs", "1-0/types/size-matches", "1-0/types/cut")
@rule("1-0/types/unknown-code")
@pytest.mark.parametrize("name", INVALID)
def test_invalid_value_is_refused(name: str) -> None:
    with pytest.raises(DecodeError):
        read_value(INVALID[name])


@rule("1-0/types/cut", "1-0/errors/connection-scope")
@pytest.mark.parametrize("name", [name for name in INVALID if name != "empty"])
def test_invalid_value_in_a_frame_closes_the_connection(server: Server, name: str) -> None:
    client = server.session()
    body = b"\0\x53\x16" + (b"\xc0" + bytes((len(INVALID[name]) + 1, 1)) + INVALID[name])
    client.send_bytes(frame(0, 0, body)).expect_close("amqp:internal-error")


@pytest.mark.deviates("1-0/types/compound")
@pytest.mark.parametrize(
    ("octets", "items"),
    [(b"\xc0\x03\x01\x40\x40", [None, None]), (b"\xd0\0\0\0\x05\xff\xff\xff\xff\x41", [True])],
)
def test_list_has_the_items_that_fill_its_size_whatever_its_count_is(
    octets: bytes, items: list[object]
) -> None:
    assert read_value(octets) == (items, len(octets))


@rule("1-0/types/map-order")
def test_map_keeps_the_order_of_its_pairs(client: Client) -> None:
    said = {Symbol("x-b"): 1, Symbol("x-a"): 2, Symbol("x-c"): 3}
    client.sender().publish(section(0x72, said) + section(0x75, b"x"))
    _, sections = client.receiver(handle=1, credit=1).take()
    assert [name for name in sections["annotations"] if name in said] == list(said)


@pytest.mark.deviates("1-0/types/string-utf8")
@pytest.mark.parametrize("octets", [b"\xa1\x02\xc3\x28", b"\xb1\0\0\0\x01\xff", b"\xa1\x03\xed\xa0\x80"])
def test_string_that_is_not_utf_8_is_taken_with_its_octets(octets: bytes) -> None:
    value, end = read_value(octets)
    assert (type(value), end) == (str, len(octets))
    assert encode_value(value) == b"\xa1" + bytes((len(value),)) + octets[-len(value) :]


@pytest.mark.deviates("1-0/types/array-constructors")
@pytest.mark.parametrize("code", [0x52, 0x53, 0x54, 0x55, 0x74, 0x84, 0x94, 0xC0, 0xC1, 0xE0])
def test_constructor_that_rabbitmq_does_not_read_in_arrays_is_refused(code: int) -> None:
    with pytest.raises(DecodeError):
        read_value(b"\xe0\x02\0" + bytes((code,)))


@pytest.mark.deviates("1-0/types/map-unique")
def test_map_with_two_equal_keys_keeps_the_first_value() -> None:
    assert read_value(b"\xc1\x09\x04\xa3\x01a\x41\xa3\x01a\x42")[0] == {Symbol("a"): True}


@rule("1-0/types/depth")
def test_value_that_nests_deeper_than_100_levels_is_refused() -> None:
    def nested(levels: int) -> bytes:
        value: list[object] = []
        for _ in range(levels):
            value = [value]
        return encode_value(value)

    assert read_value(nested(MAX_DEPTH))[1]
    with pytest.raises(DecodeError, match="nest deeper than 100 levels"):
        read_value(nested(MAX_DEPTH + 1))


# --- composites ---------------------------------------------------------------------------------------------

DETACH: dict[str, bytes] = {
    "symbolic": b"\0\xa3\x10amqp:detach:list\xc0\x03\x02\x43\x41",
    "wide-descriptor": b"\0\x80\0\0\0\0\0\0\0\x16\xc0\x03\x02\x43\x41",
    "wide-list": b"\0\x53\x16\xd0\0\0\0\x06\0\0\0\x02\x43\x41",
    "wide-uint": b"\0\x53\x16\xc0\x07\x02\x70\0\0\0\0\x41",
    "small-uint": b"\0\x53\x16\xc0\x04\x02\x52\0\x41",
    "boolean-octet": b"\0\x53\x16\xc0\x04\x02\x43\x56\x01",
    "null-at-the-end": b"\0\x53\x16\xc0\x04\x03\x43\x41\x40",
}


@rule("1-0/composite/numeric-descriptor", "1-0/composite/symbolic-descriptor", "1-0/composite/any-encoding")
@rule("1-0/composite/trailing-nulls", "1-0/composite/list")
@pytest.mark.parametrize("name", DETACH)
def test_performative_is_taken_in_any_encoding(server: Server, name: str) -> None:
    client = server.session()
    client.sender()
    client.send_bytes(frame(0, 0, DETACH[name]))
    assert client.expect(c.Detach) == c.Detach(handle=0, closed=True)


@rule("1-0/composite/list", "1-0/composite/multiple", "1-0/composite/trailing-nulls")
@pytest.mark.parametrize("row", golden.rows("composite"), ids=lambda row: row["composite"])
def test_composite_is_written_and_read_in_its_golden_bytes(row: golden.Row) -> None:
    assert row["octets"]
    golden.check(row)


@rule("1-0/composite/defaults", "1-0/transfer/settled-default", "1-0/transfer/more-default")
def test_null_stands_for_the_default_of_a_field() -> None:
    defaults = {
        f"{kind.NAME}.{field.name}": field.default
        for kind in c.COMPOSITES.values()
        for field in kind.FIELDS
        if field.default is not None
    }
    assert defaults["open.max-frame-size"] == 4_294_967_295
    assert defaults["begin.handle-max"] == 4_294_967_295
    assert (defaults["attach.snd-settle-mode"], defaults["attach.rcv-settle-mode"]) == (2, 0)
    assert defaults["transfer.more"] is defaults["detach.closed"] is defaults["disposition.settled"] is False
    assert c.Open().or_default("channel_max") == 65535
    assert c.Transfer().settled is None and c.Transfer().or_default("more") is False


@rule("1-0/composite/multiple")
@pytest.mark.parametrize(
    ("octets", "values"),
    [
        (b"\x40", None),
        (b"\xa3\x01a", (Symbol("a"),)),
        (b"\xe0\x04\x02\xa3\0\0", (Symbol(""), Symbol(""))),
        (b"\xf0\0\0\0\x09\0\0\0\x01\xb3\0\0\0\0", (Symbol(""),)),
    ],
)
def test_field_of_several_values_is_null_one_value_or_an_array(
    octets: bytes, values: tuple[Symbol, ...] | None
) -> None:
    body = b"\0\x53\x30\xc0" + bytes((len(octets) + 1, 1)) + octets
    assert c.composite_of(read_value(body)[0], c.Coordinator).capabilities == values


@rule("1-0/composite/multiple", "1-0/open/locales", "1-0/open/capabilities")
@pytest.mark.parametrize("names", [(Symbol("a"),), (Symbol("a"), Symbol("b"))])
def test_unknown_locales_and_capabilities_have_no_effect(server: Server, names: tuple[Symbol, ...]) -> None:
    plain = server.logged_in().open()
    told = server.logged_in().open(
        outgoing_locales=names, incoming_locales=names, offered_capabilities=names, desired_capabilities=names
    )
    assert told == plain
    assert told.offered_capabilities == (Symbol("LINK_PAIR_V1_0"), Symbol("ANONYMOUS-RELAY"))


MISFITS: dict[str, bytes] = {
    "missing": b"\0\x53\x16\x45",
    "null": b"\0\x53\x16\xc0\x02\x01\x40",
    "other-type": b"\0\x53\x16\xc0\x04\x01\xa1\x01a",
    "map": b"\0\x53\x16\xc1\x01\0",
    "value": b"\xc0\x03\x02\x43\x41",
    "section": b"\0\x53\x75\xa0\0",
    "sasl": c.SaslInit(mechanism=Symbol("PLAIN")).encode(),
}


@rule("1-0/composite/mandatory", "1-0/composite/wrong-type", "1-0/composite/other-descriptor")
@rule("1-0/errors/session-scope")
@pytest.mark.parametrize("name", MISFITS)
def test_body_that_is_no_performative_ends_its_session(server: Server, name: str) -> None:
    client = server.session()
    client.send_bytes(frame(0, 0, MISFITS[name])).expect_end("amqp:internal-error")
    client.send_bytes(frame(0, 0, MISFITS[name])).expect_nothing()
    client.begin()


@rule("1-0/composite/too-many-fields", "1-0/composite/unknown-descriptor", "1-0/frame/body")
@pytest.mark.parametrize(
    "body", [b"\0\x53\x16\xc0\x06\x05\x43\x41\x40\x40\x40", b"\0\x53\x7f\x45", b"\0\xa3\x01a\x45"]
)
def test_body_that_cannot_be_told_closes_the_connection(server: Server, body: bytes) -> None:
    client = server.session()
    client.send_bytes(frame(0, 0, body)).expect_close("amqp:internal-error")


@rule("1-0/begin/mandatory")
@pytest.mark.parametrize("body", [b"\0\x53\x11\x45", b"\0\x53\x11\xc0\x05\x03\x40\x43\x43\x40"])
def test_begin_without_its_fields_closes_the_connection(server: Server, body: bytes) -> None:
    client = server.open()
    client.send_bytes(frame(0, 0, body)).expect_close("amqp:internal-error")


@rule("1-0/attach/mandatory")
@pytest.mark.parametrize("missing", ["name", "handle", "role"])
def test_attach_without_name_handle_or_role_ends_the_session(client: Client, missing: str) -> None:
    said = {"name": "a", "handle": UInt(0), "role": False, missing: None}
    client.send(c.Attach(**said)).expect_end("amqp:internal-error")


def test_array_knows_the_class_of_its_items() -> None:
    assert read_value(b"\xe0\x02\0\x50")[0].of is UByte
    assert Array().of is Symbol
