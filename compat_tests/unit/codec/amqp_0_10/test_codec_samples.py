"""Frames of real implementations: read, compared with what they say, and written as they came."""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import UUID

import pytest

from compat_tests.unit.codec.amqp_0_10.cutting import assemblies, cut
from fakeamqp.protocols.amqp_0_10.codec import commands, constants, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import encode_frames
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, read_sequence_set
from fakeamqp.protocols.amqp_0_10.codec.structs import Packed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAMPLES = tomllib.loads(Path(__file__).with_name("samples.toml").read_text(encoding="utf-8"))["samples"]
FRAMES = [sample for sample in SAMPLES if "channel" in sample]
rule = pytest.mark.rule


def shown(value: object) -> str:
    """A value as the samples write it down."""
    if isinstance(value, Packed):
        fields = [
            f"{name.rstrip('_').replace('_', '-')}: " + (named(found) if kind == "struct32" else shown(found))
            for name, kind in value.FIELDS
            if (found := getattr(value, name)) is not None and found is not False
        ]
        return "{" + ", ".join(fields) + "}"
    if isinstance(value, SequenceSet):
        return shown([list(each) for each in value.ranges])
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {shown(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, bytes):
        return f"'{value.decode()}'" if value.isalnum() or b"ssn-" in value else f"0x{value.hex()}"
    return str(value) if isinstance(value, UUID) else repr(value)


def named(struct: Packed) -> str:
    return f"['{struct.NAME}', {shown(struct)}]"


@rule("0-10/types/array")
@rule("0-10/types/str16-array")
@pytest.mark.parametrize("sample", FRAMES, ids=[f"{n}-{each['name']}" for n, each in enumerate(FRAMES)])
def test_a_sample_is_read_and_written_octet_for_octet(sample: dict) -> None:
    octets = bytes.fromhex(sample["octets"])
    (assembly,) = assemblies(octets)
    segments = []
    text = ""
    if assembly.is_command:
        record, sync = commands.decode(assembly.first)
        assert sync is sample["sync"]
        segments.append((1, record.encode(sync)))
    else:
        record = controls.decode(assembly.first)
        segments.append((0, record.encode()))
    if assembly.header is not None:
        header = structs.decode_header(assembly.header)
        segments.append((2, structs.encode_header(header)))
        text += f" headers [{', '.join(map(named, header))}]"
    if assembly.body is not None:
        segments.append((3, assembly.body))
        text += f" body '{assembly.body.decode()}'"
    assert sample["name"] == record.NAME
    assert shown(record) + text == sample["args"]
    assert {channel for _, _, _, channel, _ in cut(octets)} == {sample["channel"]}
    assert encode_frames(sample["channel"], segments, 65535) == octets


def test_samples_contain_every_segment_type() -> None:
    assert len(FRAMES) == 51
    assert {kind for each in FRAMES for _, kind, _, _, _ in cut(bytes.fromhex(each["octets"]))} == {
        0,
        1,
        2,
        3,
    }


@rule("0-10/types/sequence-set")
def test_sequence_set_example_of_the_specification_is_read_and_written() -> None:
    (sample,) = [each for each in SAMPLES if each["name"] == "sequence-set example"]
    octets = bytes.fromhex(sample["octets"])
    assert SequenceSet.of(0, 1, 2, 5, 6, 15).encode() == octets
    found, _ = read_sequence_set(octets, 0)
    assert found == SequenceSet.of(15, 6, 5, 2, 1, 0)
    assert found.ranges == ((0, 2), (5, 6), (15, 15))
    assert SequenceSet().encode() == b"\0\0"
    assert read_sequence_set(b"\0\0", 0) == (SequenceSet(), 2)


def test_protocol_header_equals_the_recorded_sample() -> None:
    (sample,) = [each for each in SAMPLES if each["name"] == "protocol-header"]
    assert bytes.fromhex(sample["octets"]) == constants.PROTOCOL_HEADER
