"""Controls, commands and structs: what stands around their fields, and what is refused."""

from __future__ import annotations

import sys
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.strategies import records
from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.commands import COMMANDS
from fakeamqp.protocols.amqp_0_10.codec.controls import CONTROLS
from fakeamqp.protocols.amqp_0_10.codec.errors import (
    FramingError,
    IllegalValue,
    SegmentError,
)
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import NESTED, STRUCTS, Command, Control, Packed

rule = pytest.mark.rule
KINDS = [*CONTROLS.values(), *COMMANDS.values(), *STRUCTS.values(), *NESTED.values()]
KINDS = list(dict.fromkeys(KINDS))


def named(kinds: list) -> dict:
    return {"argvalues": kinds, "ids": [kind.NAME for kind in kinds]}


def bytes_of(text: str) -> bytes:
    return bytes.fromhex(text)


# --- byte for byte -----------------------------------------------------------------------------------


@rule("0-10/encoding/control-code")
def test_a_control_begins_with_its_code() -> None:
    octets = controls.SessionAttach(b"n", force=True).encode()
    assert octets == bytes_of("02 01 03 00 0001 6e")
    assert controls.decode(octets) == controls.SessionAttach(b"n", True)
    assert controls.ConnectionStart().encode()[:2] == b"\x01\x01"


@rule("0-10/encoding/command-code")
@rule("0-10/encoding/session-header")
def test_a_command_has_the_session_header_behind_its_code() -> None:
    command = commands.MessageTransfer("d")
    assert command.encode() == bytes_of("04 01 01 00 01 00 01 64")
    assert command.encode(sync=True) == bytes_of("04 01 01 01 01 00 01 64")
    assert commands.decode(command.encode(sync=True)) == (command, True)
    assert commands.decode(command.encode()) == (command, False)


@rule("0-10/encoding/packing-flags")
def test_the_flag_of_the_first_field_is_the_lowest_bit_of_the_first_octet() -> None:
    octets = commands.MessageSubscribe("q", "d").encode()
    assert octets[4:6] == b"\x03\x00"
    assert octets[6:] == b"\x01q\x01d"
    last = structs.MessageProperties(application_headers={}).encode()
    assert last[6:8] == b"\x00\x01"
    found, _ = commands.decode(octets)
    assert found == commands.MessageSubscribe("q", "d")
    assert found.accept_mode is None and found.exclusive is False and found.arguments is None


@rule("0-10/encoding/packing-width")
@pytest.mark.parametrize("kind", **named([*CONTROLS.values(), *COMMANDS.values()]))
def test_controls_and_commands_have_two_octets_of_flags(kind: type[Packed]) -> None:
    head = 4 if issubclass(kind, Command) else 2
    for index, (name, wire_type) in enumerate(kind.FIELDS):
        if wire_type == "bit":
            octets = kind(**{name: True}).encode()
            assert len(octets) == head + 2
            assert octets[head + index // 8] == 1 << index % 8
            assert octets[head + 1 - index // 8] == 0
    assert kind().encode()[head:] == b"\0\0"


@rule("0-10/encoding/packing-empty")
def test_record_without_fields_is_encoded_with_its_packing_flags() -> None:
    assert controls.ConnectionHeartbeat().encode() == bytes_of("01 0a 00 00")
    assert commands.TxSelect().encode() == bytes_of("05 01 01 00 00 00")
    assert commands.TxSelect().encode(sync=True) == bytes_of("05 01 01 01 00 00")
    assert commands.decode(bytes_of("05 01 01 01 00 00")) == (commands.TxSelect(), True)


@rule("0-10/encoding/bit-fields")
@rule("0-10/types/bit")
def test_bit_field_is_encoded_as_its_packing_flag_alone() -> None:
    clear = commands.ExchangeDeclare("e", "direct").encode()
    passive = commands.ExchangeDeclare("e", "direct", passive=True).encode()
    assert [n for n, (one, other) in enumerate(zip(clear, passive, strict=True)) if one != other] == [4]
    assert passive[4] ^ clear[4] == 8
    assert commands.decode(passive)[0].passive is True and commands.decode(clear)[0].passive is False


@rule("0-10/encoding/struct-sizes")
def test_a_struct_has_the_size_and_code_of_its_definition() -> None:
    assert structs.ReplyTo("e", "k").encode() == bytes_of("0006 0300 01 65 01 6b")
    delivery = structs.DeliveryProperties(exchange="", ttl=1)
    assert delivery.encode() == bytes_of("0000000d 0401 2001 0000000000000001 00")
    fragment = structs.CommandFragment(7, ByteRanges.of((0, 1)))
    assert fragment.encode() == bytes_of("00000007 0010" + "00" * 15 + "01")
    for struct in (structs.ReplyTo("e"), delivery, fragment):
        assert type(struct).decode(struct.encode()) == struct


@rule("0-10/message.delivery-properties/encoding")
def test_delivery_properties_are_encoded_octet_for_octet() -> None:
    every = structs.DeliveryProperties(
        discard_unroutable=True,
        immediate=True,
        redelivered=True,
        priority=9,
        delivery_mode=2,
        ttl=1000,
        timestamp=1,
        expiration=2,
        exchange="e",
        routing_key="k",
        resume_id="r",
        resume_ttl=3,
    )
    values = "09 02 00000000000003e8 0000000000000001 0000000000000002 0165 016b 000172 0000000000000003"
    assert every.encode() == bytes_of("0000002d 0401 ff0f" + values)
    assert structs.DeliveryProperties.decode(every.encode()) == every


@rule("0-10/message.message-properties/encoding")
def test_message_properties_are_encoded_octet_for_octet() -> None:
    every = structs.MessageProperties(
        content_length=5,
        message_id=UUID(int=1),
        correlation_id=b"c",
        reply_to=structs.ReplyTo("e", "k"),
        content_type="t",
        content_encoding="n",
        user_id=b"u",
        app_id=b"a",
        application_headers={"x": None},
    )
    values = "0000000000000005" + "00" * 15 + "01" + "000163 0006 0300 0165 016b 0174 016e 000175 000161"
    values += "00000007 00000001 0178 f0"
    assert every.encode() == bytes_of("0000003c 0403 ff01" + values)
    assert structs.MessageProperties.decode(every.encode()) == every


@rule("0-10/dtx/xid#parts")
def test_xid_is_encoded_as_a_struct_with_size_and_code() -> None:
    xid = structs.Xid(7, b"g" * 64, b"b1")
    octets = bytes_of("0000004c 0604 0700 00000007 40" + "67" * 64 + "02 6231")
    assert xid.encode() == octets
    assert structs.Xid.decode(octets) == xid
    start = commands.DtxStart(xid, join=True).encode()
    assert start == bytes_of("06 02 01 00 03 00") + octets
    assert commands.decode(start)[0].xid == xid
    result = structs.RecoverResult(in_doubt=[xid])
    assert structs.RecoverResult.decode(result.encode()).in_doubt == [xid]


@rule("0-10/encoding/defaults")
def test_absent_fields_are_decoded_as_their_defaults() -> None:
    header = structs.DeliveryProperties().encode()
    (found,) = structs.decode_header(header)
    assert found == structs.DeliveryProperties()
    assert all(getattr(found, name) in (None, False) for name, _ in found.FIELDS)


def test_controls_with_command_fragments_are_decoded_as_they_were_encoded() -> None:
    fragments = [structs.CommandFragment(1, ByteRanges.of((0, 9))), structs.CommandFragment(2, ByteRanges())]
    control = controls.SessionExpected(SequenceSet.of(5), fragments)
    assert controls.decode(control.encode()) == control
    empty = controls.decode(controls.SessionConfirmed(fragments=[]).encode())
    assert empty.fragments == []


# --- there and back ------------------------------------------------------------------------------------


@examples(8)
@given(st.data())
@pytest.mark.parametrize("kind", **named(KINDS))
def test_any_record_survives_encoding_and_decoding(kind: type[Packed], data: st.DataObject) -> None:
    record = data.draw(records(kind, whole=kind.FLAGS_AT is None))
    octets = record.encode()
    found = kind.decode(octets)
    assert found == record
    assert found.encode() == octets
    assert repr(found).startswith(f"{kind.__name__}(")
    if isinstance(record, Control):
        assert controls.decode(octets) == record
    elif isinstance(record, Command):
        assert commands.decode(record.encode(sync=True)) == (record, True)
    for cut in range(len(octets)):
        with pytest.raises(SegmentError):
            kind.decode(octets[:cut])
    with pytest.raises(SegmentError):
        kind.decode(octets + b"\0")


@examples(100)
@given(records(), st.integers(0, 10**6), st.integers(0, 255))
def test_record_with_one_changed_octet_is_decoded_or_refused(record: Packed, place: int, octet: int) -> None:
    octets = bytearray(record.encode())
    octets[place % len(octets)] = octet
    try:
        found = type(record).decode(bytes(octets))
    except SegmentError as problem:
        assert record.NAME in str(problem)
        return
    try:
        again = found.encode()
    except SegmentError:  # text that was cut in the middle of a character, say
        return
    assert type(record).decode(again) == found or found != found


# --- what is refused -----------------------------------------------------------------------------------


@rule("0-10/encoding/packing-unused")
@pytest.mark.parametrize("kind", **named([kind for kind in KINDS if kind.FLAGS_AT is not None]))
def test_packing_flags_without_a_field_are_refused(kind: type[Packed]) -> None:
    at = kind.FLAGS_AT
    plain = bytearray(kind().encode())
    for index in range(len(kind.FIELDS), 16):
        octets = bytearray(plain)
        octets[at + index // 8] |= 1 << index % 8
        with pytest.raises(IllegalValue, match=f"^{kind.NAME}: flags 0x[0-9a-f]+ stand for no field"):
            kind.decode(bytes(octets))


@rule("0-10/encoding/enum-values")
@rule("0-10/encoding/domain-check#outside")
@pytest.mark.parametrize("kind", **named([kind for kind in KINDS if kind.DOMAINS]))
def test_field_values_outside_of_their_domain_are_refused(kind: type[Packed]) -> None:
    for name, domain in kind.DOMAINS.items():
        for value in domain:
            record = kind(**{name: value})
            assert kind.decode(record.encode()) == record
        wrong = next(value for value in range(1, 256) if value not in domain)
        with pytest.raises(IllegalValue, match=f"field {name}: {wrong} is none of its values") as problem:
            kind.decode(kind(**{name: wrong}).encode())
        assert problem.value.field_index == [field for field, _ in kind.FIELDS].index(name)
        assert problem.value.condition == "illegal-argument"


def test_only_fields_with_a_fixed_set_of_values_have_domains() -> None:
    assert set(commands.MessageSubscribe.DOMAINS) == {"accept_mode", "acquire_mode"}
    assert set(commands.MessageFlow.DOMAINS) == {"unit"}
    assert set(structs.DeliveryProperties.DOMAINS) == {"delivery_mode"}  # any byte is a priority


def test_decoding_error_names_the_invalid_field() -> None:
    octets = commands.MessageSubscribe("q", "d", arguments={"a": 1}).encode()
    with pytest.raises(
        SegmentError, match=r"^message.subscribe, field arguments: a map announces 15 bytes, 14 are left"
    ) as problem:
        commands.decode(octets[:-1])
    assert problem.value.field_index == 7
    timeout = commands.DtxSetTimeout(structs.Xid(1, b"g", b"b"), 5).encode()
    with pytest.raises(SegmentError, match=r"^dtx.set-timeout, field timeout: 4 bytes are due at") as problem:
        commands.decode(timeout[:-4])
    assert problem.value.field_index == 1
    with pytest.raises(SegmentError, match=r"^message.subscribe: 3 bytes are left over") as problem:
        commands.decode(octets + b"abc")
    assert problem.value.field_index is None


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        ("04 01 00 00 00 00", "session header is not one byte"),
        ("04 01 02 00 00 00", "session header is not one byte"),
        ("04 01 01 02 00 00", "flags of the session header"),
        ("04 01 01 00 00", "ends inside its flags"),
        ("04 01", "session header"),
        ("05 01 01 00 00 00 00", "left over"),
        ("05 01 01 02 00 00", "flags of the session header"),
    ],
)
def test_command_with_an_invalid_session_header_or_length_is_refused(octets: str, why: str) -> None:
    with pytest.raises(SegmentError, match=why):
        commands.decode(bytes_of(octets))


@pytest.mark.parametrize("octets", ["", "04", "0001 0000", "04ff 01000000", "0b01 01000000"])
def test_unknown_command_code_is_refused(octets: str) -> None:
    with pytest.raises(SegmentError, match="no command with the code 0x"):
        commands.decode(bytes_of(octets))


@pytest.mark.parametrize("octets", ["", "01", "010d 0000", "0301 0000"])
def test_unknown_control_code_is_a_framing_error(octets: str) -> None:
    with pytest.raises(FramingError, match="no control with the code 0x") as problem:
        controls.decode(bytes_of(octets))
    assert isinstance(problem.value, FramingError) and problem.value.condition == "framing-error"


def test_a_struct_with_another_code_or_size_is_refused() -> None:
    octets = structs.Xid(1).encode()
    for wrong in (octets[:5] + b"\x05" + octets[6:], octets[:3] + b"\x01" + octets[4:], b"\0" * 8):
        with pytest.raises(SegmentError, match=r"^dtx.xid: "):
            structs.Xid.decode(wrong)
    with pytest.raises(SegmentError, match="its size does not fit"):
        structs.ReplyTo.decode(bytes_of("0003 0000"))


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (commands.MessageTransfer(5), "destination"),
        (commands.MessageTransfer("x" * 256), "destination"),
        (commands.MessageTransfer("\ud800"), "destination"),
        (commands.MessageTransfer(accept_mode=256), "accept_mode"),
        (commands.MessageTransfer(accept_mode="1"), "accept_mode"),
        (commands.MessageAccept([1]), "transfers"),
        (commands.MessageFlow(value=-1), "value"),
        (commands.ExecutionResult(1, "x"), "value"),
        (commands.ExecutionResult(1, structs.ReplyTo()), "value"),
        (commands.DtxStart(structs.ReplyTo()), "xid"),
        (commands.MessageSubscribe(arguments=[]), "arguments"),
        (commands.MessageSubscribe(arguments={"a": object()}), "arguments"),
        (controls.SessionAttach("text"), "name"),
        (controls.SessionAttach([1]), "name"),
        (controls.ConnectionStart(mechanisms=[1, "x"]), "mechanisms"),
        (controls.SessionExpected(fragments=[1]), "fragments"),
        (structs.MessageProperties(message_id="x"), "message_id"),
        (structs.MessageProperties(reply_to="x"), "reply_to"),
        (structs.CommandFragment("x"), "command_id"),
        (structs.CommandFragment(1, "x"), "byte_ranges"),
    ],
)
def test_invalid_field_value_is_refused_with_the_name_of_the_field(record: Packed, field: str) -> None:
    with pytest.raises(SegmentError, match=f"^{record.NAME}, field {field}: ") as problem:
        record.encode()
    assert problem.value.field_index == [name for name, _ in record.FIELDS].index(field)


# --- headers -------------------------------------------------------------------------------------------


@rule("0-10/assembly/header-entries#sequence")
def test_a_header_has_structs_in_any_order() -> None:
    one = structs.DeliveryProperties(routing_key="k")
    two = structs.MessageProperties(content_type="t")
    assert structs.decode_header(structs.encode_header([one, two])) == (one, two)
    assert structs.decode_header(structs.encode_header([two, one])) == (two, one)
    assert structs.decode_header(b"") == ()
    strange = structs.UnknownStruct(0x6301, b"\0\0")
    assert structs.decode_header(structs.encode_header([strange, one])) == (strange, one)


@rule("0-10/assembly/header-entries#once")
def test_header_with_the_same_struct_twice_is_refused() -> None:
    octets = structs.DeliveryProperties().encode()
    with pytest.raises(IllegalValue, match="0x0401 twice"):
        structs.decode_header(octets + octets)
    strange = structs.UnknownStruct(0x6301, b"").encode()
    with pytest.raises(IllegalValue, match="0x6301 twice"):
        structs.decode_header(strange + strange)


@pytest.mark.parametrize("octets", ["00", "00000001 04", "00000005 0401 0000", "00000004 0401 0000 ff"])
def test_header_with_invalid_struct_sizes_is_refused(octets: str) -> None:
    with pytest.raises(SegmentError):
        structs.decode_header(bytes_of(octets))


def test_records_have_neither_dict_nor_hash() -> None:
    for kind in KINDS:
        record = kind()
        assert not hasattr(record, "__dict__"), kind
        with pytest.raises(TypeError):
            hash(record)
        assert record != object()
    assert sys.getsizeof(commands.MessageTransfer()) < 100


def test_repr_of_a_record_shows_only_present_fields() -> None:
    assert repr(structs.XaResult(status=0)) == "XaResult(status=0)"
    assert repr(commands.MessageFlow(destination="", unit=0)) == "MessageFlow(destination='', unit=0)"
    assert repr(commands.MessageTransfer()) == "MessageTransfer()"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (commands.QueueDeclare(queue="q", arguments="t"), "queue.declare, field arguments: 't' is no map"),
        (commands.MessageAccept(transfers=1), "message.accept, field transfers: 1 is no SequenceSet"),
    ],
    ids=["map", "sequence-set"],
)
def test_error_of_a_value_of_a_wrong_type_names_field_and_type(record: Packed, said: str) -> None:
    with pytest.raises(SegmentError, match=f"^{said}$"):
        record.encode()
