"""Request and response frames: both forms of a request, and bytes that are neither."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fakeamqp.protocols.base.codec import FieldError, FrameError, WireError

rule = pytest.mark.rule
PING = m.ChannelPing().encode()
numbers = st.integers(0, 2**64 - 1)
#: What begins with a class id, which is never 0.
payloads = st.builds(
    lambda class_id, rest: class_id.to_bytes(2, "big") + rest,
    st.integers(1, 65535),
    st.binary(min_size=2, max_size=20),
)


@rule("0-9/frame/type-request")
@rule("0-9/request/layout")
def test_request_with_reserved_field_is_encoded_octet_for_octet() -> None:
    assert FRAME_REQUEST == 9
    octets = bytes.fromhex("0000000000000102 0000000000000003 00000000 0014003c")
    assert encode_request(Request(258, 3, PING)) == octets
    assert decode_request(octets) == Request(258, 3, PING, reserved=True)


@rule("0-9/request/layout")
def test_request_without_reserved_field_is_encoded_octet_for_octet() -> None:
    octets = bytes.fromhex("0000000000000102 0000000000000003 0014003c")
    assert encode_request(Request(258, 3, PING, reserved=False)) == octets
    assert decode_request(octets) == Request(258, 3, PING, reserved=False)


@rule("0-9/frame/type-response")
@rule("0-9/response/layout")
def test_response_is_encoded_octet_for_octet() -> None:
    assert FRAME_RESPONSE == 10
    octets = bytes.fromhex("0000000000000102 0000000000000003 00000004 00140050")
    assert encode_response(Response(258, 3, 4, m.ChannelOk().encode())) == octets
    assert decode_response(octets) == Response(258, 3, 4, m.ChannelOk().encode())


@rule("0-9/request/no-method-semantics-change")
@given(numbers, numbers, payloads, st.booleans())
def test_any_request_survives_encoding_and_decoding(
    one: int, other: int, method: bytes, reserved: bool
) -> None:
    request = Request(one, other, method, reserved)
    assert decode_request(encode_request(request)) == request


@given(numbers, numbers, st.integers(0, 2**32 - 1), payloads)
def test_any_response_survives_encoding_and_decoding(
    one: int, other: int, offset: int, method: bytes
) -> None:
    response = Response(one, other, offset, method)
    assert decode_response(encode_response(response)) == response


def test_reserved_octets_of_a_request_are_ignored() -> None:
    octets = encode_request(Request(1, 0, PING))
    assert decode_request(octets[:18] + b"\xab\xcd" + octets[20:]) == Request(1, 0, PING)


@pytest.mark.parametrize("reserved", [True, False])
def test_a_request_cut_at_any_octet_is_a_frame_error(reserved: bool) -> None:
    octets = encode_request(Request(1, 0, PING, reserved))
    for cut in range(len(octets)):
        with pytest.raises(FrameError, match="a request "):
            decode_request(octets[:cut])


def test_a_response_cut_at_any_octet_is_a_frame_error() -> None:
    octets = encode_response(Response(1, 1, 0, PING))
    for cut in range(len(octets)):
        with pytest.raises(FrameError, match="a response "):
            decode_response(octets[:cut])


@given(st.binary(max_size=40))
def test_any_octets_are_read_or_refused(octets: bytes) -> None:
    for decode, encode in ((decode_request, encode_request), (decode_response, encode_response)):
        try:
            found = decode(octets)
        except WireError:
            continue
        assert len(encode(found)) == len(octets)


@pytest.mark.parametrize("number", [-1, 2**64, "1", None])
def test_numbers_out_of_range_are_field_errors(number: object) -> None:
    for request in (Request(number, 1, PING), Request(1, number, PING)):
        with pytest.raises(FieldError, match="out of range"):
            encode_request(request)
    for response in (
        Response(number, 1, 1, PING),
        Response(1, number, 1, PING),
        Response(1, 1, number, PING),
    ):
        with pytest.raises(FieldError, match="out of range"):
            encode_response(response)


def test_a_batch_offset_has_32_bits() -> None:
    assert encode_response(Response(1, 1, 2**32 - 1, PING))[16:20] == b"\xff" * 4
    with pytest.raises(FieldError, match="out of range"):
        encode_response(Response(1, 1, 2**32, PING))
