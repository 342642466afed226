"""The methods: known bytes, round trips, and what malformed bytes and unfit values lead to."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import struct

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.strategies import ALL_METHODS, BITS, methods
from fakeamqp.protocols.amqp_0_9.codec import version_0_8
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED, RABBITMQ, Grammar
from fakeamqp.protocols.base.codec import SECRET_FIELDS, FieldError, FieldNameError, FrameError, WireError

rule = pytest.mark.rule
both = pytest.mark.protocols("0-9-1", "0-9")


def name_of(method: type[Method]) -> str:
    return f"{method.NAME} {method.__module__.removeprefix('fakeamqp.protocols.base.codec.amqp_')}"


#: What may end before its last field, so that not every cut is one too early.
OPEN_ENDED = {version_0_8.BasicConsume, version_0_8.FileConsume, version_0_8.StreamConsume}
every_method = pytest.mark.parametrize("method", ALL_METHODS, ids=name_of)
every_closed_method = pytest.mark.parametrize(
    "method", [method for method in ALL_METHODS if method not in OPEN_ENDED], ids=name_of
)
with_fields = pytest.mark.parametrize(
    "method", [method for method in ALL_METHODS if method.LAYOUT], ids=name_of
)

#: The largest value of every wire type, and a table that both grammars read
FULL = {
    **{kind: 2**bits - 1 for kind, bits in BITS.items()},
    "bit": True,
    "shortstr": "é" * 127 + "x",
    "longstr": b"\x00\xff" * 200,
    "table": {"a": True, "b": {"c": [1, "x", None]}},
    "content": Body(b"\xce" * 300, by_reference=True),
}


def full(method: type[Method]) -> Method:
    return method(**{name: FULL[kind] for name, kind in method.LAYOUT})


@given(methods())
@examples(150)
def test_any_method_survives_encoding_and_decoding(method: Method) -> None:
    payload = method.encode()
    assert payload[:4] == struct.pack(">HH", method.CLASS_ID, method.METHOD_ID)
    assert type(method).decode(payload, RABBITMQ) == method


@every_method
@pytest.mark.parametrize("grammar", [RABBITMQ, PUBLISHED], ids=repr)
def test_smallest_and_largest_field_values_are_read_back(method: type[Method], grammar: Grammar) -> None:
    for value in (method(), full(method)):
        assert method.decode(value.encode(), grammar) == value


@both
@rule("0-9-1/frame/truncated-arguments")
@every_closed_method
def test_a_payload_cut_at_any_octet_is_a_frame_error_that_names_the_method(method: type[Method]) -> None:
    payload = full(method).encode()
    for cut in range(4, len(payload)):
        with pytest.raises(FrameError, match=rf"^{method.NAME}, field ") as caught:
            method.decode(payload[:cut], RABBITMQ)
        assert caught.value.condition == "frame-error"


@every_closed_method
def test_octets_left_over_are_a_frame_error(method: type[Method]) -> None:
    for value in (method(), full(method)):
        with pytest.raises(FrameError, match=rf"^{method.NAME}: 2 bytes are left over"):
            method.decode(value.encode() + b"\x00\x01", RABBITMQ)


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        (b"\x00\x00\x01", "queue"),
        (b"\x00\x00\x01q", "passive"),
        (b"\x00\x00\x01q\x00\x00\x00", "arguments"),
        (b"\x00\x00\x01q\x00\x00\x00\x00\x09", "arguments"),
        (b"\x00", "reserved_1"),
    ],
)
def test_frame_error_of_a_truncated_method_names_the_field(payload: bytes, field: str) -> None:
    with pytest.raises(FrameError, match=rf"^queue.declare, field {field}: "):
        m.QueueDeclare.decode(b"\x00\x32\x00\x0a" + payload, RABBITMQ)


@both
@rule("0-9-1/frame/illegal-field-value")
def test_error_in_a_table_argument_keeps_its_type_and_names_the_method() -> None:
    unknown_tag = b"\x00\x32\x00\x0a\x00\x00\x01q\x00\x00\x00\x00\x04\x01az\x00"
    with pytest.raises(FieldError, match=r"^queue.declare, field arguments: .*'a'.*unknown tag 'z'"):
        m.QueueDeclare.decode(unknown_tag, RABBITMQ)
    bad_name = m.QueueDeclare(arguments={"9x": 1}).encode()
    with pytest.raises(FieldNameError, match=r"^queue.declare, field arguments: .*'9x'"):
        m.QueueDeclare.decode(bad_name, PUBLISHED)
    assert m.QueueDeclare.decode(bad_name, RABBITMQ).arguments == {"9x": 1}


@given(st.sampled_from(ALL_METHODS), st.binary(max_size=80), st.sampled_from([RABBITMQ, PUBLISHED]))
@examples(300)
def test_random_octets_give_a_method_or_a_wire_error(
    method: type[Method], octets: bytes, grammar: Grammar
) -> None:
    try:
        value = method.decode(bytes(4) + octets, grammar)
    except WireError as error:
        assert str(error).startswith(method.NAME)
    else:
        assert isinstance(value, method)


@given(methods(), st.data(), st.sampled_from([RABBITMQ, PUBLISHED]))
@examples(150)
def test_damaged_payloads_give_a_method_or_a_wire_error(
    method: Method, data: st.DataObject, grammar: Grammar
) -> None:
    octets = bytearray(method.encode() + bytes(2))
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    try:
        type(method).decode(bytes(octets[: data.draw(st.integers(0, len(octets)))]), grammar)
    except WireError as error:
        assert str(error).startswith(method.NAME)


UNFIT = {
    "octet": [-1, 256, "1", None, 1.5],
    "short": [-1, 65536, "1", None],
    "long": [-1, 2**32, b"1", None],
    "longlong": [-1, 2**64, [], None],
    "timestamp": [-1, 2**64, None],
    "shortstr": ["x" * 256, "é" * 128, "\ud800", b"raw", None, 5],
    "longstr": ["text", None, 5],
    "table": [{"k": 2**64}, {"x" * 256: 1}, {"k": object()}, 5, None],
    "content": [Body("text"), Body(None), b"octets", None],
}


@with_fields
def test_invalid_field_value_is_a_field_error_with_method_and_field(method: type[Method]) -> None:
    for name, kind in method.LAYOUT:
        for value in UNFIT.get(kind, []):
            record = full(method)
            setattr(record, name, value)
            with pytest.raises(FieldError, match=rf"^{method.NAME}, field {name}: "):
                record.encode()


def test_bits_take_any_truth_value_and_never_spill_into_each_other() -> None:
    method = m.QueueDeclare(passive=8, durable="yes", exclusive=None, auto_delete=[], no_wait=0)
    assert method.encode()[7:8] == b"\x03"


def test_unused_bits_of_an_octet_are_ignored() -> None:
    assert m.ChannelFlow.decode(b"\x00\x14\x00\x14\xfe", RABBITMQ) == m.ChannelFlow(False)
    assert m.ChannelFlow.decode(b"\x00\x14\x00\x14\xff", RABBITMQ) == m.ChannelFlow(True)


def test_short_string_of_invalid_utf_8_is_written_back_unchanged() -> None:
    payload = b"\x00\x32\x00\x0b\x04\xff\xfe\xed\xa0" + bytes(8)
    method = m.QueueDeclareOk.decode(payload, RABBITMQ)
    assert isinstance(method.queue, str)
    assert method.encode() == payload


@both
@rule("0-9-1/types/shortstr-no-nul")
def test_a_zero_octet_in_a_short_string_is_an_error_in_the_published_grammar_only() -> None:
    for method in ALL_METHODS:
        for name, kind in method.LAYOUT:
            if kind == "shortstr":
                payload = method(**{name: "a\0b"}).encode()
                assert getattr(method.decode(payload, RABBITMQ), name) == "a\0b"
                with pytest.raises(FieldError, match=rf"^{method.NAME}, field {name}: .*zero byte"):
                    method.decode(payload, PUBLISHED)


@every_method
def test_methods_compare_by_value_and_can_be_copied(method: type[Method]) -> None:
    value = full(method)
    assert value == full(method)
    assert copy.deepcopy(value) == copy.copy(value) == pickle.loads(pickle.dumps(value)) == value
    hidden = {name: b"*" * len(getattr(value, name)) for name, _ in method.LAYOUT if name in SECRET_FIELDS}
    shown = dataclasses.replace(value, **hidden)
    assert eval(repr(value), {method.__name__: method, "Body": Body}) == shown
    assert value != object()
    if method.LAYOUT:
        assert value != method()
        name = method.LAYOUT[0][0]
        changed = dataclasses.replace(value, **{name: getattr(method(), name)})
        assert changed != value
        assert [f.name for f in dataclasses.fields(method)] == [name for name, _ in method.LAYOUT]


def test_methods_of_two_classes_are_never_equal() -> None:
    assert m.TxSelect() != m.TxCommit()
    assert m.BasicReject(1, True) != m.BasicNack(1, True)


def test_methods_have_no_dict_and_share_no_table() -> None:
    assert not hasattr(m.QueueDeclare(), "__dict__")
    m.QueueDeclare().arguments["x"] = 1
    assert m.QueueDeclare().arguments == {}
