"""Frames of real implementations: read, compared with what they say, and written as they came."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fakeamqp.protocols.amqp_0_9.codec import METHODS, constants, version_0_8
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.contents import PROPERTIES, decode_header, encode_header
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_END, FRAME_HEADER, frame
from fakeamqp.protocols.amqp_0_9_1.codec.method import Record
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAMPLES = tomllib.loads(Path(__file__).with_name("samples.toml").read_text(encoding="utf-8"))["samples"]
FRAMES = [sample for sample in SAMPLES if "channel" in sample]
VOCABULARIES = {"0-9": METHODS, "0-8": version_0_8.METHODS}


def shown(value: object) -> str:
    """A value as the samples write it down."""
    if isinstance(value, Record):
        values = {
            name.rstrip("_").replace("_", "-").replace("octets", "bytes"): getattr(value, name)
            for name, _ in value.LAYOUT
        }
        return shown({name: found for name, found in values.items() if found})
    if isinstance(value, Body):
        return f"[{value.by_reference:d}, {shown(value.octets)}]" if value.octets else ""
    if isinstance(value, dict):
        said = {name: shown(item) for name, item in value.items()}
        return "{" + ", ".join(f"{name}: {text}" for name, text in said.items() if text) + "}"
    return repr(value).removeprefix("b")


@pytest.mark.parametrize("sample", FRAMES, ids=[f"{n}-{each['name']}" for n, each in enumerate(FRAMES)])
def test_a_sample_is_read_and_written_octet_for_octet(sample: dict) -> None:
    octets = bytes.fromhex(sample["octets"])
    kind, channel, size = FRAME_HEADER.unpack_from(octets)
    payload = octets[7:-1]
    assert (channel, size, octets[-1]) == (sample["channel"], len(payload), FRAME_END)
    text = ""
    method = payload
    if kind == constants.FRAME_REQUEST:
        request = decode_request(payload)
        assert encode_request(request) == payload
        method = request.method
        assert request.reserved
        text = f"request-id {request.request_id} response-mark {request.response_mark} reserved 0; "
    elif kind == constants.FRAME_RESPONSE:
        response = decode_response(payload)
        assert encode_response(response) == payload
        method = response.method
        text = "response-id {} request-id {} batch-offset {}; ".format(*response)
    if kind == constants.FRAME_HEADER:
        header = decode_header(payload)
        assert encode_header(header) == payload
        properties = PROPERTIES[header.class_id].decode(header.properties, 0, RABBITMQ)
        assert properties.encode() == header.properties
        name = properties.NAME.removesuffix(" properties")
        text = f"{{class: {name!r}, weight: {header.weight}, size: {header.size}, "
        text += f"properties: {shown(properties)}}}"
    elif kind == constants.FRAME_BODY:
        text = shown(payload)
    else:
        vocabulary = VOCABULARIES[sample["protocol"]]
        record = vocabulary[int.from_bytes(method[:4], "big")].decode(method, RABBITMQ)
        assert record.encode() == method
        assert sample["name"] == record.NAME
        text += shown(record)
    assert text == sample["args"]
    assert frame(kind, channel, payload) == octets


def test_samples_contain_methods_contents_requests_and_responses() -> None:
    assert len(FRAMES) == 26
    assert {bytes.fromhex(each["octets"])[0] for each in FRAMES} == {1, 2, 3, 9, 10}


def test_protocol_headers_of_0_9_and_0_8_equal_the_samples() -> None:
    headers = {each["protocol"]: bytes.fromhex(each["octets"]) for each in SAMPLES if "channel" not in each}
    assert headers["0-9"] == constants.PROTOCOL_HEADER
    assert headers["0-8"] in version_0_8.PROTOCOL_HEADERS
